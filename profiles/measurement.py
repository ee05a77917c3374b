"""One run of a program as a value, and the effect of other processes on it.

Rule: a measurement holds readings, not conclusions from several runs (see `store`); an unreadable value is None, never
0. Waiting for a core is measured and removed. Inflated core time cannot be separated from work without counters; only
its bound is known, so it widens the interval and does not move the value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from statistics import median
from typing import Any

from ..formats.text import percent
from ..simulate.model.job import Phase, Profile, Provenance, ThreadGroup

#: A run counts as undisturbed if others kept a smaller share of the remaining cores busy.
ALONE = 0.10
#: Highest core time inflation: two programs that stream from memory at once (models, section 8).
MOST_INFLATION = 1.45
#: Largest relative error of one measurement of service demand.
ERROR = 0.01
#: Standard deviation of a normal distribution / its median absolute deviation.
MAD_TO_SIGMA = 1.4826


def load_of_others(others: float, cpus: int, own_cores: float) -> float:
    """Return the share of the cores left free by a run that others kept busy, [0, 1].

    Args:
        others: share of all CPUs' time that others used, [0, 1].
        cpus: CPUs of the machine, >= 1.
        own_cores: mean number of cores that the run kept busy, >= 0.
    """
    return min(1.0, max(0.0, others) * cpus / max(1.0, cpus - own_cores))


def inflation(share: float | None) -> float:
    """Return the bound of core time inflation for such a share of busy cores, >= 1; the highest if it is unknown."""
    share = 1.0 if share is None else share
    return 1.0 if share < ALONE else 1.0 + (MOST_INFLATION - 1.0) * share


def median_spread(values: Sequence[float]) -> tuple[float, float]:
    """Return the median of values, at least one, and their robust standard deviation about it (1.4826 x MAD)."""
    centre = median(values)
    return centre, MAD_TO_SIGMA * median(abs(value - centre) for value in values)


def deviation(values: Sequence[float]) -> float:
    """Return the robust standard deviation of values about their median, at least one, as a share of it."""
    centre, spread = median_spread(values)
    return spread / max(centre, 1e-6)


def interval(demands: Sequence[float], shares: Sequence[float | None]) -> tuple[float, float]:
    """Return the interval of isolated service demand, relative to its median: (low <= 1, high >= 1).

    Twice the deviation of the median over the runs, or the error of one measurement if that is larger; the lower bound
    also includes inflation by other processes.

    Args:
        demands: CPU seconds of each run, at least one, >= 0.
        shares: share of busy other cores of each run; None = unknown.
    """
    half = max(ERROR, 2.0 * deviation(demands) / len(demands) ** 0.5)
    return max(0.0, 1.0 - half) / median(inflation(share) for share in shares), 1.0 + half


@dataclass(frozen=True, slots=True)
class Measurement:
    """One run.

    Args:
        groups: thread groups with measured service demand, utilisation and its deviation; with phases, utilisation is
            the mean over them.
        wall_s: duration.
        isolated_s: duration without waiting for cores.
        cpu_s: CPU seconds of the whole tree, from the kernel or, if larger, from its threads.
        waiting: share of time that its threads waited for a core, [0, 1]; None = unknown.
        exit_code: as a shell reports it (128 + signal); None = unknown.
        date: start, ISO 8601.
        cpu_model: processor.
        interval_s: time between readings, over which the deviation of utilisation was taken.
        memory_bytes: peak of the tree; read_bytes, written_bytes: from and to storage.
        node_type: the cluster file's name for this type of node, if given.
        company: share of the cores left free that others kept busy, [0, 1]; None = unknown.
        method: source of the thread times: schedstat (ns), psutil (10 ms), or given.
        bandwidth: bytes/s of a thread, given or counted.
        instructions, ipc, power_watts: counted (see `counters`).
        sources: field -> what counted it; a bandwidth without a source was given by the user.
        notes: why counters gave no more.
        strain: stall facts of its control group, or of a node that it had to itself (see `stall_facts`).
        aged: date from which it no longer counts because forecasts began to miss, ISO 8601; "" = it counts.
        inputs: bytes of the files that its command named, by the place of the word, before it began; below 0 for one
            that it wrote.
        words: which files these were, as `identity.words_checksum` has it; "" = unknown.
        command: name of the measured command, as `identity.signature` has it; "" = unknown.
        traits: of a job that was submitted to the resource manager, see `similar_jobs.traits_of`.
        request: nodes x cores that it had, such as 2x16, if its threads were not counted but derived from its CPU time;
            "" = they were counted.
        owner: uid of the user who submitted the job to the service; None = not known, or see `traits`.
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
    inputs: dict[str, float] = field(default_factory=dict)
    words: str = ""
    command: str = ""
    traits: dict[str, Any] = field(default_factory=dict)
    request: str = ""
    owner: int | None = None

    @property
    def threads(self) -> int:
        """Most threads that computed at the same time."""
        return sum(group.count for group in self.groups)

    @property
    def io_bytes(self) -> float | None:
        """Bytes from and to storage together."""
        return None if self.read_bytes is None else self.read_bytes + (self.written_bytes or 0.0)

    @property
    def utilisation(self) -> float:
        """Mean utilisation of the threads."""
        return sum(group.count * group.mean_utilisation for group in self.groups) / self.threads

    def to_profile(self, name: str = "") -> Profile:
        """Return the profile of this run alone; an unknown bandwidth stays 0."""
        note = f"measured by {self.method}"
        if self.waiting and self.waiting >= 0.01:
            note += f" next to other load: {percent(self.waiting)} of the time was waiting for a core, and is removed"
        if self.company is not None and (inflated := inflation(self.company) - 1):
            note += (
                f"; others kept {percent(self.company)} of the other cores busy: core time may be inflated by up to"
                f" {percent(inflated)}"
            )
        groups = tuple(with_bandwidth(group, self.bandwidth or 0.0) for group in self.groups)
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
                "measured",
                self.date,
                1,
                self.cpu_model or None,
                note,
                within,
                strain=tuple(self.strain.items()),
                inputs=tuple(self.inputs.items()),
            ),  # fmt: skip
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self) | {"threads": self.threads}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Measurement:
        """Return the measurement that `to_dict` wrote; unknown keys of later versions are ignored."""
        field_names = {field.name for field in fields(cls)}
        groups = tuple(
            ThreadGroup(**group | {"phases": tuple(Phase(**phase) for phase in group.get("phases", ()))})
            for group in data["groups"]
        )
        values = {key: value for key, value in data.items() if key in field_names}
        return cls(**values | {"groups": groups, "notes": tuple(data.get("notes", ()))})


def relative_rates(phases: Sequence[Phase]) -> list[float]:
    """Return the traffic of each phase on a core relative to the run's mean; 1 if it was not measured."""
    on = [phase.share * phase.utilisation for phase in phases]
    mean = sum(time * phase.bandwidth for time, phase in zip(on, phases, strict=True)) / sum(on)
    return [phase.bandwidth / mean if mean > 0 else 1.0 for phase in phases]


def with_bandwidth(group: ThreadGroup, bandwidth: float) -> ThreadGroup:
    """Return a measured group as a profile has it: with phases, utilisation and bandwidth belong to them alone.

    Args:
        group: with or without phases.
        bandwidth: mean bytes/s of a thread on a core; the phases keep their measured ratios.
    """
    if not group.phases:
        return replace(group, bandwidth=bandwidth)
    parts = zip(group.phases, relative_rates(group.phases), strict=True)
    phases = tuple(replace(phase, bandwidth=bandwidth * times) for phase, times in parts)
    return replace(group, utilisation=1.0, bandwidth=0.0, phases=phases)
