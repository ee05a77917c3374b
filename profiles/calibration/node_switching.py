"""Times and power of switching a node off and on, with commands that the site gives.

Rule: every wait has a limit, and a node that was switched off is switched on again whatever fails, unless switching on
is what failed; the error then says so. Commands run in a shell on this machine with the node in $PILOTFISH_NODE, each
in its own session, so that a timeout ends all their processes; at most MOST_OUTPUT bytes of their output are kept.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import IO, Any

from ...simulate.errors import PilotfishError
from ...simulate.model.cluster import Power, Transition
from .result import rounded
from .statistics import MeasuredNumber, figure

#: A state counts after so many checks in a row; timeout of a check or a power reading, seconds.
_BELIEVED, ASK_S = 2, 10.0
_RETRY_S, MOST_W = 5.0, 1e6
_POWER = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*(?:[Ww](?:atts?)?)?\s*")
Progress = Callable[[str], None]
MOST_OUTPUT = 65536
#: What timeout(1) exits with.
_TOO_LONG = 124


class SwitchingError(PilotfishError):
    """The node is not in the expected state."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """Exit code and output of a command."""

    code: int
    output: str


@dataclass(frozen=True, slots=True)
class SwitchingCommands:
    """The site's commands: off and on start to switch; up and down exit with 0 in that state; power prints watts."""

    off: str
    on: str
    up: str
    down: str | None = None
    power: str | None = None


@dataclass(frozen=True, slots=True)
class SwitchTiming:
    """Times: the limit of switching one way, to settle and to measure the power then, and between two checks."""

    limit_s: float = 900.0
    settle_s: float = 10.0
    every_s: float = 1.0


@dataclass(frozen=True, slots=True)
class SwitchMeasurement:
    """Switching one way: duration, mean power (W), and the largest time between two checks at its end."""

    seconds: MeasuredNumber
    watts: MeasuredNumber | None
    step_s: float


@dataclass(frozen=True, slots=True)
class SwitchingResult:
    """The result: powers in W, None = unknown; trace: (s since the beginning, W, state of the node)."""

    date: str
    node: str
    idle: MeasuredNumber | None
    off: MeasuredNumber | None
    switch_off: SwitchMeasurement
    switch_on: SwitchMeasurement
    trace: tuple[tuple[float, float, str], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"schema": "pilotfish/switching/v1", **asdict(self)}

    def power(self) -> Power | None:
        """Return the `power` of a node type with that of the idle node; None if a power is unknown."""
        ways = self.switch_off, self.switch_on
        if self.idle is None or self.off is None or any(way.watts is None for way in ways):
            return None
        off, on = (Transition(rounded(way.watts.value), rounded(way.seconds.value)) for way in ways if way.watts)
        return Power(rounded(self.idle.value), off=rounded(self.off.value), switch_off=off, switch_on=on)


def measure(
    node: str,
    commands: SwitchingCommands,
    site: Shell,
    timing: SwitchTiming,
    repeat: int = 1,
    progress: Progress = lambda text: None,
) -> SwitchingResult:
    """Switch a node off and on again.

    Args:
        node: its name.
        commands: the site's commands.
        site: runs them, and has the clock.
        timing: limits.
        repeat: number of repetitions, >= 1.
        progress: called with a line before each step.

    Raises:
        SwitchingError: the node was not up, does not switch, or its power cannot be read.
    """
    return _Bench(node, commands, site, timing, progress).run(repeat)


class _Bench:
    def __init__(
        self, node: str, commands: SwitchingCommands, site: Shell, timing: SwitchTiming, progress: Progress
    ) -> None:
        self._node, self._commands, self._site, self._timing, self._progress = node, commands, site, timing, progress
        self._begin = site.now()
        self._trace: list[tuple[float, float, str]] = []

    def run(self, repeat: int) -> SwitchingResult:
        date = datetime.now(UTC).isoformat(timespec="seconds")
        self._check()
        idle, off, stops, starts = list[float](), list[float](), list[_Switch](), list[_Switch]()
        for turn in range(1, repeat + 1):
            self._progress(f"{self._node}: idle ({turn} of {repeat})")
            idle += self._sample_state("idle")
            try:
                self._progress(f"{self._node}: switching off, at most {self._timing.limit_s:g} s")
                stops.append(self._switch(self._commands.off, self._down, "off"))
                off += self._sample_state("off")
            except BaseException as error:
                self._bring_back(wait=not isinstance(error, SwitchingError))
                raise
            self._progress(f"{self._node}: switching on, at most {self._timing.limit_s:g} s")
            starts.append(self._come_back())
        self._progress(f"{self._node}: idle")
        idle += self._sample_state("idle")
        at_rest, off_w = (figure(watts) if watts else None for watts in (idle, off))
        return SwitchingResult(
            date, self._node, at_rest, off_w, _combined(stops), _combined(starts), tuple(self._trace)
        )

    def _check(self) -> None:
        if not self._up():
            raise SwitchingError(f"{self._node} is not up according to `{self._commands.up}`: nothing was done")
        down, power = self._commands.down, self._commands.power
        if down is not None and self._down():
            raise SwitchingError(f"{self._node} is both up and off according to `{down}`: nothing was done")
        if power is not None and self._watts() is None:
            output = self._site.ask(power, ASK_S).output.strip()[:80]
            raise SwitchingError(f"`{power}` must print watts, and printed {output!r}: nothing was done")

    def _come_back(self) -> _Switch:
        try:
            return self._switch(self._commands.on, self._up, "on")
        except SwitchingError as error:
            raise SwitchingError(f"{self._node} DID NOT COME BACK, switch it on by hand: {error}") from None
        except BaseException:
            self._bring_back(wait=False)
            raise

    def _bring_back(self, *, wait: bool) -> None:
        """Switch the node on after an error; with `wait`, only when a node that may be switching off is off."""
        site, begin = self._site, self._site.now()
        if wait:
            self._progress(
                f"{self._node}: interrupted; waiting until it is off, to switch it on (interrupt again to leave it off)"
            )
        while wait and not self._down() and site.now() - begin < self._timing.limit_s:
            site.pause(self._timing.every_s)
        if self._up():
            return
        self._progress(f"{self._node}: running `{self._commands.on}`")
        answer = self._site.ask(self._commands.on, self._timing.limit_s)
        if answer.code:
            self._progress(f"{self._node} IS OFF, switch it on by hand: the command failed ({_tail(answer)})")

    def _switch(self, command: str, is_there: Callable[[], bool], goal: str) -> _Switch:
        """Run a command until the node is in the state; a failed `on` is run again."""
        site, timing = self._site, self._timing
        begin = missed = at = site.now()
        samples: list[tuple[float, float]] = []
        job, times = site.launch(command), 0
        self._sample(f"switch_{goal}", samples)
        try:
            while times < _BELIEVED:
                site.pause(timing.every_s)
                self._sample(f"switch_{goal}", samples)
                if is_there():
                    at, times = at if times else site.now(), times + 1
                    continue
                times, missed = 0, site.now()
                if missed - begin > timing.limit_s:
                    raise SwitchingError(f"after {timing.limit_s:g} s of `{command}` the node is not {goal}")
                answer = job.poll()
                if answer is not None and answer.code:
                    if goal == "off":
                        raise SwitchingError(f"`{command}` failed ({_tail(answer)})")
                    self._progress(f"{self._node}: `{command}` failed ({_tail(answer)}); trying again")
                    site.pause(_RETRY_S)
                    job = site.launch(command)
        except BaseException:
            job.stop()
            raise
        if goal == "off":  # a late `off` would do harm; `on` may be what keeps the node up
            job.stop()
        # It may have arrived some time before the last sample.
        between = [sample for sample in samples if sample[0] <= missed]
        return _Switch(at - begin, _mean(between if len(between) > 1 else samples), at - missed)

    def _up(self) -> bool:
        return self._site.ask(self._commands.up, ASK_S).code == 0

    def _down(self) -> bool:
        down = self._commands.down
        return not self._up() if down is None else self._site.ask(down, ASK_S).code == 0

    def _sample_state(self, state: str) -> list[float]:
        """Let the node settle, then sample its power for the same time."""
        timing, samples = self._timing, list[tuple[float, float]]()
        self._site.pause(timing.settle_s)
        end = self._site.now() + timing.settle_s
        while self._commands.power is not None and self._site.now() < end:
            self._sample(state, samples)
            self._site.pause(timing.every_s)
        return [watts for _, watts in samples]

    def _sample(self, state: str, samples: list[tuple[float, float]]) -> None:
        watts, now = self._watts(), self._site.now()
        if watts is not None:
            samples.append((now, watts))
            self._trace.append((now - self._begin, watts, state))

    def _watts(self) -> float | None:
        if self._commands.power is None:
            return None
        answer = self._site.ask(self._commands.power, ASK_S)
        match = _POWER.fullmatch(answer.output) if answer.code == 0 else None
        return float(match[1]) if match and float(match[1]) <= MOST_W else None


@dataclass(frozen=True, slots=True)
class _Switch:
    """Switching one way, once."""

    seconds: float
    watts: float | None
    step_s: float


def _combined(switches: list[_Switch]) -> SwitchMeasurement:
    seconds, watts = [one.seconds for one in switches], [one.watts for one in switches if one.watts is not None]
    return SwitchMeasurement(figure(seconds), figure(watts) if watts else None, max(one.step_s for one in switches))


def _mean(samples: list[tuple[float, float]]) -> float | None:
    """Return the mean over time by the trapezoidal rule, None with fewer than two readings."""
    if len(samples) < 2 or samples[-1][0] <= samples[0][0]:
        return None
    energy = sum((then - now) * (a + b) / 2 for (now, a), (then, b) in pairwise(samples))
    return energy / (samples[-1][0] - samples[0][0])


def _tail(answer: CommandResult) -> str:
    output = " ".join(answer.output.split())[-200:]
    return f"exit {answer.code}: {output}" if output else f"exit {answer.code}"


class Shell:
    """Runs commands on this machine, and has its clock."""

    def __init__(self, node: str) -> None:
        self._environment = {**os.environ, "PILOTFISH_NODE": node}

    def launch(self, command: str) -> RunningCommand:
        """Start a command."""
        return RunningCommand(command, self._environment)

    def ask(self, command: str, limit_s: float) -> CommandResult:
        """Run a command to its end; a timeout is a failure."""
        running = self.launch(command)
        try:
            return running.wait(limit_s)
        finally:
            running.stop()

    now = staticmethod(time.monotonic)

    def pause(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(max(0.0, seconds))


class RunningCommand:
    """A running command; its output goes to a file, so it cannot block on it."""

    def __init__(self, command: str, environment: dict[str, str]) -> None:
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as this object)
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", command], start_new_session=True, env=environment, stdin=subprocess.DEVNULL,
            stdout=self._output, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def poll(self) -> CommandResult | None:
        """Return its answer, None while it runs."""
        code = self._process.poll()
        return None if code is None else self._answer(code)

    def wait(self, limit_s: float) -> CommandResult:
        """Wait for its answer."""
        try:
            return self._answer(self._process.wait(limit_s))
        except subprocess.TimeoutExpired:
            return CommandResult(_TOO_LONG, f"it took longer than {limit_s:g} s")

    def stop(self) -> None:
        """End it and all its processes, if it still runs."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _answer(self, code: int) -> CommandResult:
        self._output.seek(0)
        return CommandResult(code, self._output.read(MOST_OUTPUT).decode(errors="replace"))
