"""Run times of the jobs of a Batsim workload, or programs for the replay where run times depend on the machine.

Rule: work that waits, or computes on resources of one speed, has a run time. Work that sends, or computes on resources
of different speeds, becomes a program; sending needs a network. Everything else is refused, with what the job needs.
Source: Batsim's documentation, "Workload".
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ...simulate.model import programs
from ...simulate.model.programs import Part, Phase
from ...simulate.model.workload import LONGEST
from ..documents.document_errors import bad, shown
from .profiles import BatsimProfile, Done

NETWORK_NEEDED = "a SimGrid platform, or `network` in the cluster file; or profiles that wait or compute"


class MappedLater(tuple[str, ...]):
    """Names of storages to which labels are mapped when jobs start: it contains every label."""

    def __contains__(self, label: object) -> bool:
        return True


class BatsimRun(NamedTuple):
    """A job's run.

    Args:
        seconds: run time; nan: it depends on the resources.
        computes: whether its resources draw their computing power; otherwise they draw idle power.
        status: its exit status; 0 = success.
        program: number of its program if `seconds` is nan; else -1.
        waits: it waits at its end, so it does not end well at its walltime.
        work: what it does if its resources are not all busy all the time, or idle all the time; else None.
        moved: bytes of memory that each resource moves, if `seconds` is not nan.
    """

    seconds: float
    computes: bool = True
    status: int = 0
    program: int = -1
    waits: bool = False
    work: programs.Work | None = None
    moved: float = 0.0


def is_late(run: BatsimRun, walltime: float | None) -> bool:
    """Return whether a job is killed although it needs no more than its walltime.

    Args:
        run: its run.
        walltime: seconds; None = none.
    """
    return run.waits and run.seconds == walltime


class Runs:
    """The runs of profiles, each computed once for each size.

    Args:
        profiles: the profiles of the workload by name.
        folder: folder of the workload's other files.
        speeds: flop/s of all resources of the machine; () = unknown.
        storages: names of the storages in the machine's network; None = the machine has no network.
    """

    def __init__(
        self, profiles: Mapping[str, BatsimProfile], folder: Path, speeds: Collection[float] = (),
        storages: Collection[str] | None = None,
    ) -> None:  # fmt: skip
        self.builder, self.folder = programs.ProgramBuilder(), folder
        self._profiles, self._speeds, self._storages = profiles, set(speeds), storages
        self._done: dict[tuple[str, int], Done] = {}
        self._runs: dict[tuple[str, int], BatsimRun] = {}
        self._waits: dict[str, BatsimRun] = {}  # of profiles that only wait, on any number of resources

    def run(self, profile: str, size: int) -> BatsimRun:
        """Return the run of a profile on `size` resources. Raises ConfigError."""
        if (waiting_run := self._waits.get(profile)) is not None:
            return waiting_run
        parsed = self._profiles.get(profile)
        if parsed is not None and parsed.waits is not None:
            self._waits[profile] = BatsimRun(parsed.waits, False, parsed.returns, waits=parsed.waits > 0)
            return self._waits[profile]
        if (profile, size) not in self._runs:
            self._runs[profile, size] = self._run(*self.done(profile, size), size)
        return self._runs[profile, size]

    def done(self, profile: str, size: int) -> Done:
        """See `ProfileOrigin`."""
        path = {} if (profile, size) in self._done else {profile: self._unknown_parts(profile, size)}
        while path:
            name, parts = next(reversed(path.items()))
            part = next(parts, None)
            if part is None:
                self._done[name, size] = self._look_up(name, size)
                del path[name]
            elif part in path:
                chain = [*path][[*path].index(part) :]
                shortened = [*chain[:2], "...", chain[-1]] if len(chain) > 4 else chain
                raise bad(f"a sequence contains itself: {' -> '.join(map(shown, [*shortened, part]))}", "no cycles")
            else:
                path[part] = self._unknown_parts(part, size)
        return self._done[profile, size]

    def _unknown_parts(self, profile: str, size: int) -> Iterator[str]:
        """Yield the parts of a sequence to look up before it, up to the first that fails."""
        parsed = self._profiles.get(profile)
        for part in parsed.sequence if parsed else ():
            if (part, size) not in self._done:
                yield part
            if self._done[part, size].status:
                return

    def _look_up(self, profile: str, size: int) -> Done:
        parsed = self._profiles.get(profile)
        if parsed is None:
            raise bad(f"its part {shown(profile)!r} is not a profile of this file", "its profiles")
        part, status = parsed.work(size, self)
        return Done(part, status or parsed.returns)

    def _run(self, part: Part, status: int, size: int) -> BatsimRun:
        phases = programs.phases_of(part)
        flops = max(map(programs.flops_of, phases))
        computes = flops > 0 or all(isinstance(phase, programs.Even | programs.Matrix) for phase in phases)
        if flops > 0 and not self._speeds:
            raise bad("it computes, but the speed of the machine is unknown", "--cluster with a speed, in flop/s")
        has_network = self._storages is not None
        sending = [phase for phase in phases if programs.sends(phase, size, to_itself=has_network)]
        self._check(sending)
        if sending or (flops > 0 and len(self._speeds) > 1):
            number = self.builder.add(part, size)
            if number is None:
                raise bad(
                    "its sequences are too long",
                    f"at most {programs.MOST_PHASES:,} phases, each at most {programs.MOST_TIMES:g} times",
                )
            return BatsimRun(math.nan, computes, status, number)
        seconds = self._seconds(part)
        if seconds > LONGEST:
            raise bad(f"{seconds:g} seconds", f"at most {LONGEST:g}")
        steady = not flops or programs.is_steady(part, size)
        work = None if steady else programs.Work(part, size, next(iter(self._speeds)))
        moved = programs.fold_part(part, programs.moved_by, lambda steps, inner: steps.repeat * sum(inner))
        return BatsimRun(seconds, computes, status, waits=programs.ends_waiting(part), work=work, moved=moved)

    def _check(self, sending: list[Phase]) -> None:
        """Raise ConfigError if the network or a storage that is needed is missing."""
        if sending and self._storages is None:
            raise bad("it sends bytes, but the network of the machine is unknown", NETWORK_NEEDED)
        for name in (name for phase in sending for name in programs.storages_of(phase)):
            storages = self._storages or ()
            if name not in storages and len(storages) != 1:
                allowed = ", ".join(sorted(storages)) or "hosts with the role storage"
                raise bad(f"the platform has no storage {shown(name)!r}", allowed)

    def _seconds(self, part: Part) -> float:
        """Return the run time of work that sends nothing, on resources of one speed."""
        return programs.fold_part(part, self._phase_seconds, lambda steps, inner: steps.repeat * sum(inner))

    def _phase_seconds(self, phase: Phase) -> float:
        if isinstance(phase, programs.Wait):
            return phase.seconds
        flops = programs.flops_of(phase)
        return flops / next(iter(self._speeds)) if flops > 0 else 0.0
