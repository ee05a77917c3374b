"""How long the jobs of a Batsim workload run, or what they do where only a replay can tell that.

Rule: what waits, or computes on resources of one speed, has a run time; what sends, or computes on resources that
differ, is laid out, and needs a network for what it sends. All else is refused, with what the job needs.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from ..phases import (
    MOST_PHASES,
    Even,
    Laying,
    Matrix,
    Part,
    Phase,
    Steps,
    Wait,
    flops_of,
    phases_of,
    sends,
    storages_of,
)
from .batsim_profiles import Done, Profile
from .shape import shown
from .units import bad

#: Most sequences within each other.
DEEPEST = 64
JOINED = "a SimGrid platform, or `network` in the cluster file; or profiles that wait or compute"


class Run(NamedTuple):
    """What a job's run is like.

    Args:
        seconds: how long it takes; nan: that depends on where it runs.
        computes: whether its resources draw what they draw when they compute; else they idle.
        status: what it returns; 0 = success.
        program: what it does, where `seconds` is nan; else -1.
    """

    seconds: float
    computes: bool = True
    status: int = 0
    program: int = -1


class Runs:
    """The runs of profiles, each on each size found once.

    Args:
        folder: where the workload's other files are.
        speeds: flop/s of the machine's resources, all that there are; () = not known.
        storages: names of the storages in the machine's network; None = it has no network.
    """

    def __init__(
        self, profiles: Mapping[str, Profile], folder: Path, speeds: Collection[float] = (),
        storages: Collection[str] | None = None,
    ) -> None:  # fmt: skip
        self.laying = Laying()
        self._profiles, self._folder, self._speeds, self._storages = profiles, folder, set(speeds), storages
        self._done: dict[tuple[str, int], Done] = {}
        self._runs: dict[tuple[str, int], Run] = {}
        self._open: list[str] = []

    def run(self, profile: str, size: int) -> Run:
        """The run of a profile. Raises ConfigError."""
        if (profile, size) not in self._runs:
            self._runs[profile, size] = self._run(*self.done(profile, size), size)
        return self._runs[profile, size]

    def done(self, profile: str, size: int) -> Done:
        """See `Site`."""
        if (profile, size) not in self._done:
            self._done[profile, size] = self._look_up(profile, size)
        return self._done[profile, size]

    def file(self, path: str) -> Path:
        """See `Site`."""
        return self._folder / path

    def _look_up(self, profile: str, size: int) -> Done:
        if profile in self._open or len(self._open) >= DEEPEST:
            chain = " -> ".join(map(shown, [*self._open[:3], profile]))
            raise bad(f"a sequence within itself, or more than {DEEPEST} of them: {chain}", "a sequence that ends")
        given = self._profiles.get(profile)
        if given is None:
            raise bad(f"its part {shown(profile)!r} is no profile of this file", "its profiles")
        self._open.append(profile)
        try:
            part, status = given.work.on(size, self)
        finally:
            self._open.pop()
        return Done(part, status or given.returns)

    def _run(self, part: Part, status: int, size: int) -> Run:
        phases = list(phases_of(part))
        computes = any(isinstance(phase, Even | Matrix) for phase in phases)
        flops = max(map(flops_of, phases))
        if flops > 0 and not self._speeds:
            raise bad("it computes, and nobody says how fast the machine is", "--cluster with a speed, in flop/s")
        sending = [phase for phase in phases if sends(phase, size)]
        self._check(sending)
        if sending or (flops > 0 and len(self._speeds) > 1):
            program = self.laying.add(part, size)
            if program is None:
                raise bad("its sequences are too long", f"{MOST_PHASES:,} phases")
            return Run(math.nan, computes, status, program)
        seconds = self._seconds(part)
        if not math.isfinite(seconds):
            raise bad(f"{seconds:g} seconds", "a finite time")
        return Run(seconds, computes, status)

    def _check(self, sending: list[Phase]) -> None:
        """Raises ConfigError: there is nothing to send over, or not where."""
        if sending and self._storages is None:
            raise bad("it sends bytes, and nobody says what joins the machine's resources", JOINED)
        for name in (name for phase in sending for name in storages_of(phase)):
            known = self._storages or ()
            if name not in known and len(known) != 1:
                allowed = ", ".join(sorted(known)) or "hosts with the role storage"
                raise bad(f"no host of the platform is the storage {shown(name)!r}", allowed)

    def _seconds(self, part: Part) -> float:
        """How long it takes where nothing is sent, on resources of one speed."""
        if isinstance(part, Steps):
            return part.repeat * sum(map(self._seconds, part.parts))
        if isinstance(part, Wait):
            return part.seconds
        flops = flops_of(part)
        return flops / next(iter(self._speeds)) if flops > 0 else 0.0
