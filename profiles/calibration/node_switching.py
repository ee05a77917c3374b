"""How long a node takes to go off and to come back, and what it draws meanwhile, by commands that the site gives.

Rule: nothing waits without a limit, and a node that was switched off is switched on again whatever goes wrong, unless
it is that which went wrong; then the error says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Protocol

from ...simulate.errors import PilotfishError
from ...simulate.platform import Power, Transition
from .figures import Figure, figure
from .result import rounded

#: A check that fails this often in a row is believed; seconds that a check and a reading of the power may take.
_BELIEVED, ASK_S = 2, 10.0
_RETRY_S, MOST_W = 5.0, 1e6
_POWER = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*(?:[Ww](?:atts?)?)?\s*")
Tell = Callable[[str], None]


class SwitchingError(PilotfishError):
    """The node is not as it should be, or not as it was."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command came to."""

    code: int
    said: str


class Launched(Protocol):
    """A command that runs."""

    def poll(self) -> Answer | None:
        """What it came to; None = it still runs."""

    def stop(self) -> None:
        """End it, with all that it started."""


class Site(Protocol):
    """Where commands run, and the time there."""

    def launch(self, command: str) -> Launched:
        """Begin a command."""

    def ask(self, command: str, limit_s: float) -> Answer:
        """Run a command to its end; one that takes too long has failed."""

    def now(self) -> float:
        """Seconds."""

    def pause(self, seconds: float) -> None:
        """Wait."""


@dataclass(frozen=True, slots=True)
class Commands:
    """What the site gives: off and on begin to switch; up and down exit with 0 when the node is; power prints watts."""

    off: str
    on: str
    up: str
    down: str | None = None
    power: str | None = None


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds: at most for a node to go or to come, to let it settle, and between two looks."""

    limit_s: float = 900.0
    settle_s: float = 10.0
    every_s: float = 1.0


@dataclass(frozen=True, slots=True)
class Way:
    """There or back: how long, the mean power, W, and the time between the look that found it done and the last one."""

    seconds: Figure
    watts: Figure | None
    step_s: float


@dataclass(frozen=True, slots=True)
class Switching:
    """What was found: powers in W, None = unknown; trace: (s since the beginning, W, what the node was doing)."""

    date: str
    node: str
    idle: Figure | None
    off: Figure | None
    switch_off: Way
    switch_on: Way
    trace: tuple[tuple[float, float, str], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values for JSON."""
        return {"schema": "pilotfish/switching/v1", **asdict(self)}

    def power(self) -> Power | None:
        """Return the `power` of a node type, that of a node at rest; None where no power is known."""
        ways = self.switch_off, self.switch_on
        if self.idle is None or self.off is None or any(way.watts is None for way in ways):
            return None
        off, on = (Transition(rounded(way.watts.value), rounded(way.seconds.value)) for way in ways if way.watts)
        return Power(rounded(self.idle.value), off=rounded(self.off.value), switch_off=off, switch_on=on)


def measure(
    node: str, commands: Commands, site: Site, patience: Patience, repeat: int = 1, tell: Tell = lambda text: None
) -> Switching:
    """Switch a node off and on again.

    Args:
        repeat: how often, >= 1.
        tell: called with a line before each step.

    Raises:
        SwitchingError: it was not up to begin with, does not go, or does not come back; its power cannot be read.
    """
    return _Bench(node, commands, site, patience, tell).run(repeat)


class _Bench:
    def __init__(self, node: str, commands: Commands, site: Site, patience: Patience, tell: Tell) -> None:
        self._node, self._commands, self._site, self._patience, self._tell = node, commands, site, patience, tell
        self._begin = site.now()
        self._trace: list[tuple[float, float, str]] = []

    def run(self, repeat: int) -> Switching:
        date = datetime.now(UTC).isoformat(timespec="seconds")
        self._check()
        idle, off, gone, back = list[float](), list[float](), list[_Passage](), list[_Passage]()
        for turn in range(1, repeat + 1):
            self._tell(f"{self._node}: at rest ({turn} of {repeat})")
            idle += self._watch("idle")
            try:
                self._tell(f"{self._node}: going off, {self._patience.limit_s:g} s at most")
                gone.append(self._pass(self._commands.off, self._down, "off"))
                off += self._watch("off")
            except BaseException as error:
                self._bring_back(wait=not isinstance(error, SwitchingError))
                raise
            self._tell(f"{self._node}: coming back, {self._patience.limit_s:g} s at most")
            back.append(self._come_back())
        self._tell(f"{self._node}: at rest")
        idle += self._watch("idle")
        return Switching(
            date, self._node, figure(idle) if idle else None, figure(off) if off else None, _way(gone), _way(back),
            tuple(self._trace),
        )  # fmt: skip

    def _check(self) -> None:
        if not self._up():
            raise SwitchingError(f"{self._node} is not up (`{self._commands.up}` says so): nothing was done")
        if self._commands.down is not None and self._down():
            raise SwitchingError(
                f"{self._node} is up and off at once (`{self._commands.down}` says the latter): nothing was done"
            )
        if self._commands.power is not None and self._watts() is None:
            said = self._site.ask(self._commands.power, ASK_S).said.strip()[:80]
            raise SwitchingError(f"`{self._commands.power}` must print watts, and printed {said!r}: nothing was done")

    def _come_back(self) -> _Passage:
        try:
            return self._pass(self._commands.on, self._up, "on")
        except SwitchingError as error:
            raise SwitchingError(f"{self._node} DID NOT COME BACK, switch it on by hand: {error}") from None
        except BaseException:
            self._bring_back(wait=False)
            raise

    def _bring_back(self, *, wait: bool) -> None:
        """Whatever happened: see to it that the node comes back, without waiting for that.

        Args:
            wait: it may still be going off, which is waited for.
        """
        site, begin = self._site, self._site.now()
        if wait:
            self._tell(f"{self._node}: broken off; once it is off it is switched on (interrupt again to leave it so)")
        while wait and not self._down() and site.now() - begin < self._patience.limit_s:
            site.pause(self._patience.every_s)
        if self._up():
            return
        self._tell(f"{self._node}: `{self._commands.on}` is run")
        answer = self._site.ask(self._commands.on, self._patience.limit_s)
        if answer.code:
            self._tell(f"{self._node} IS OFF, switch it on by hand: the command failed ({_tail(answer)})")

    def _pass(self, command: str, there: Callable[[], bool], what: str) -> _Passage:
        """Run a command and look until the node is there; one that switches on is run again where it fails."""
        site, patience = self._site, self._patience
        begin = missed = site.now()
        seen: list[tuple[float, float]] = []
        job, at, times = site.launch(command), None, 0
        self._sample(f"switch_{what}", seen)
        try:
            while times < _BELIEVED:
                site.pause(patience.every_s)
                self._sample(f"switch_{what}", seen)
                if there():
                    at, times = at or site.now(), times + 1
                    continue
                at, times, missed = None, 0, site.now()
                if missed - begin > patience.limit_s:
                    raise SwitchingError(f"after {patience.limit_s:g} s of `{command}` the node is not {what}")
                answer = job.poll()
                if answer is not None and answer.code:
                    if what == "off":
                        raise SwitchingError(f"`{command}` failed ({_tail(answer)})")
                    self._tell(f"{self._node}: `{command}` failed ({_tail(answer)}); once more")
                    site.pause(_RETRY_S)
                    job = site.launch(command)
        except BaseException:
            job.stop()
            raise
        if what == "off":  # one that still runs would do harm; one that switched on may be what keeps the node up
            job.stop()
        assert at is not None
        between = [each for each in seen if each[0] <= missed]  # at the end it may have been there for a while
        return _Passage(at - begin, _mean(between if len(between) > 1 else seen), at - missed)

    def _up(self) -> bool:
        return self._site.ask(self._commands.up, ASK_S).code == 0

    def _down(self) -> bool:
        down = self._commands.down
        return not self._up() if down is None else self._site.ask(down, ASK_S).code == 0

    def _watch(self, state: str) -> list[float]:
        """Let the node settle, then watch its power for as long."""
        patience, seen = self._patience, list[tuple[float, float]]()
        self._site.pause(patience.settle_s)
        end = self._site.now() + patience.settle_s
        while self._commands.power is not None and self._site.now() < end:
            self._sample(state, seen)
            self._site.pause(patience.every_s)
        return [watts for _, watts in seen]

    def _sample(self, state: str, seen: list[tuple[float, float]]) -> None:
        watts, now = self._watts(), self._site.now()
        if watts is not None:
            seen.append((now, watts))
            self._trace.append((now - self._begin, watts, state))

    def _watts(self) -> float | None:
        if self._commands.power is None:
            return None
        answer = self._site.ask(self._commands.power, ASK_S)
        match = _POWER.fullmatch(answer.said) if answer.code == 0 else None
        return float(match[1]) if match and float(match[1]) <= MOST_W else None


@dataclass(frozen=True, slots=True)
class _Passage:
    """One way, once."""

    seconds: float
    watts: float | None
    step_s: float


def _way(passages: list[_Passage]) -> Way:
    watts = [passage.watts for passage in passages if passage.watts is not None]
    return Way(
        figure([passage.seconds for passage in passages]),
        figure(watts) if watts else None,
        max(passage.step_s for passage in passages),
    )


def _mean(seen: list[tuple[float, float]]) -> float | None:
    """Over time, the power taken as straight between two readings."""
    if len(seen) < 2 or seen[-1][0] <= seen[0][0]:
        return None
    energy = sum((then - now) * (a + b) / 2 for (now, a), (then, b) in pairwise(seen))
    return energy / (seen[-1][0] - seen[0][0])


def _tail(answer: Answer) -> str:
    said = " ".join(answer.said.split())[-200:]
    return f"exit {answer.code}: {said}" if said else f"exit {answer.code}"
