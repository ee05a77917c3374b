"""What one run of a program showed, as a value.

Rule: a measurement holds what was read, not what was concluded from several runs (see `store`); what could
not be read is None, never 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from ..simulate.job import Phase, Profile, Provenance, ThreadGroup
from .company import inflation, interval


@dataclass(frozen=True, slots=True)
class Measurement:
    """One run.

    Args:
        groups: thread groups; their service demand, utilisation and its deviation as measured; where they have
            phases, utilisation is the mean over them.
        wall_s: how long it lasted.
        isolated_s: how long it would have lasted without waiting for cores: wall time less waiting time.
        cpu_s: CPU seconds of the whole tree, as the kernel counted them, or as its threads showed if that is more.
        waiting: share of the time that its threads waited for a core, [0, 1]; None = not known.
        exit_code: as a shell would have it (128 + signal where one ended it); None = not known.
        date: when it began, ISO 8601.
        cpu_model: the processor it ran on.
        interval_s: time between readings, over which the deviation of utilisation was taken.
        memory_bytes: peak of the tree; read_bytes, written_bytes: from and to storage.
        node_type: the cluster file's name for this kind of node, where somebody told it.
        company: share of the cores that it left free which others kept busy, [0, 1]; None = not known.
        method: what read the threads: schedstat (ns), psutil (10 ms), or given where nobody did.
        bandwidth: bytes/s of one thread, where the user gave it or counters were there.
        instructions, ipc, power_watts: by counters (see `counters`).
        sources: field -> what counted it; a bandwidth without one was given by the user.
        notes: why counters that are there did not say more.
        strain: what its control group, or a node that it had to itself, says held it up (see `strain`).
        aged: when it ceased to count, because forecasts that rest on it had come to miss, ISO 8601; "" = it counts.
    """

    groups: tuple[ThreadGroup, ...]
    wall_s: float
    isolated_s: float
    cpu_s: float
    waiting: float | None = None
    exit_code: int | None = 0
    date: str = ""
    cpu_model: str = ""
    interval_s: float = 0.1
    memory_bytes: float | None = None
    read_bytes: float | None = None
    written_bytes: float | None = None
    node_type: str | None = None
    company: float | None = None
    method: str = "given"
    bandwidth: float | None = None
    instructions: float | None = None
    ipc: float | None = None
    power_watts: float | None = None
    sources: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    strain: dict[str, float] = field(default_factory=dict)
    aged: str = ""

    @property
    def threads(self) -> int:
        """Threads that computed at the same time at the most."""
        return sum(group.count for group in self.groups)

    @property
    def io_bytes(self) -> float | None:
        """Bytes from and to storage together."""
        return None if self.read_bytes is None else self.read_bytes + (self.written_bytes or 0.0)

    @property
    def utilisation(self) -> float:
        """Mean utilisation of the threads."""
        return sum(group.count * group.mean_utilisation for group in self.groups) / self.threads

    def to_profile(self, name: str = "", runs: int = 1) -> Profile:
        """Return the profile that this run alone would make; bandwidth stays 0 where it is not known."""
        note = f"measured by {self.method}"
        if self.waiting and self.waiting >= 0.01:
            note += (
                f" in company: {self.waiting:.0%} of the time was spent waiting for a core, and is taken out"
            )
        inflated = inflation(self.company) - 1 if self.company is not None else 0.0
        if inflated:
            note += (
                f"; others kept {self.company:.0%} of the other cores busy: time on a core may hold up to"
                f" {inflated:.0%} that is theirs"
            )
        groups = tuple(as_known(group, self.bandwidth or 0.0) for group in self.groups)
        if self.bandwidth is not None:
            note += "; bandwidth given by the user" * ("bandwidth" not in self.sources)
        words = {"ipc": "IPC", "power_watts": "power", "strain": "stalls"}
        note += "".join(f"; {words.get(name, name)} by {source}" for name, source in sorted(self.sources.items()))
        within = interval([self.cpu_s], [self.company])
        return Profile(
            groups,
            name=name,
            measured_on=self.node_type,
            memory=self.memory_bytes or 0.0,
            instructions=self.instructions,
            ipc=self.ipc,
            io_bytes=self.io_bytes,
            power_watts=self.power_watts,
            provenance=Provenance(
                "measured", self.date, runs, self.cpu_model or None, note, within, strain=tuple(self.strain.items())
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values for JSON."""
        return asdict(self) | {"threads": self.threads}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Measurement:
        """Return the measurement that `to_dict` wrote; keys that a later version added are left out."""
        known = {field.name for field in fields(cls)}
        groups = tuple(_group(group) for group in data["groups"])
        values = {key: value for key, value in data.items() if key in known}
        return cls(**values | {"groups": groups, "notes": tuple(data.get("notes", ()))})


def rates(phases: Sequence[Phase]) -> list[float]:
    """What each phase moves on a core, by the mean over the run; 1 where it was not seen."""
    on = [phase.share * phase.utilisation for phase in phases]
    mean = sum(time * phase.bandwidth for time, phase in zip(on, phases, strict=True)) / sum(on)
    return [phase.bandwidth / mean if mean > 0 else 1.0 for phase in phases]


def as_known(group: ThreadGroup, bandwidth: float) -> ThreadGroup:
    """Return a measured group as a profile has it: with phases, utilisation and bandwidth are theirs alone.

    Args:
        bandwidth: bytes/s of a thread on a core, over the whole run; phases have it in the mean, and differ from it as
            they were seen to.
    """
    if not group.phases:
        return replace(group, bandwidth=bandwidth)
    parts = zip(group.phases, rates(group.phases), strict=True)
    phases = tuple(replace(phase, bandwidth=bandwidth * times) for phase, times in parts)
    return replace(group, utilisation=1.0, bandwidth=0.0, phases=phases)


def _group(data: dict[str, Any]) -> ThreadGroup:
    """The thread group that `asdict` wrote."""
    phases = tuple(Phase(**phase) for phase in data.get("phases", ()))
    return ThreadGroup(**{**data, "phases": phases})
