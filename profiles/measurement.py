"""What one run of a program showed, as a value.

Rule: a measurement holds what was read, not what was concluded from several runs (see `store`); what could
not be read is None, never 0.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from ..simulate.job import Profile, Provenance, ThreadGroup


@dataclass(frozen=True, slots=True)
class Measurement:
    """One run.

    Args:
        groups: thread groups; their service demand, utilisation and its deviation as measured.
        wall_s: how long it lasted.
        isolated_s: how long it would have lasted without waiting for cores: wall time less waiting time.
        cpu_s: CPU seconds of the whole tree, as the kernel counted them.
        waiting: share of the time that its threads waited for a core, [0, 1]; None = not known.
        exit_code: as a shell would have it (128 + signal where one ended it); None = not known.
        date: when it began, ISO 8601.
        cpu_model: the processor it ran on.
        interval_s: time between readings, over which the deviation of utilisation was taken.
        memory_bytes: peak of the tree; read_bytes, written_bytes: from and to storage.
        node_type: the cluster file's name for this kind of node, where somebody told it.
        method: what read the threads: schedstat (ns), psutil (10 ms), or given where nobody did.
        bandwidth: bytes/s of one thread, where the user gave it; it is not measured without counters.
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
    method: str = "given"
    bandwidth: float | None = None
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
        return sum(group.count * group.utilisation for group in self.groups) / self.threads

    def to_profile(self, name: str = "", runs: int = 1) -> Profile:
        """Return the profile that this run alone would make; bandwidth stays 0 where it is not known."""
        note = f"measured by {self.method}"
        if self.waiting and self.waiting >= 0.01:
            note += (
                f" in company: {self.waiting:.0%} of the time was spent waiting for a core, and is taken out"
            )
        groups = self.groups
        if self.bandwidth is not None:
            groups = tuple(
                ThreadGroup(g.count, g.service_demand, g.utilisation, g.utilisation_std, self.bandwidth)
                for g in groups
            )
            note += "; bandwidth given by the user"
        return Profile(
            groups,
            name=name,
            measured_on=self.node_type,
            memory=self.memory_bytes or 0.0,
            io_bytes=self.io_bytes,
            provenance=Provenance("measured", self.date, runs, self.cpu_model or None, note),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values for JSON."""
        return asdict(self) | {"threads": self.threads}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Measurement:
        """Return the measurement that `to_dict` wrote; keys that a later version added are left out."""
        known = {field.name for field in fields(cls)}
        groups = tuple(ThreadGroup(**{**group, "phases": ()}) for group in data["groups"])
        return cls(**{key: value for key, value in data.items() if key in known} | {"groups": groups})
