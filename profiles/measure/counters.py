"""Hardware counters of one run: IPC, instructions, memory traffic, power.

Rule: each number names its source. Whole-node counts are the job's only if the job had the node to itself. A number
that several probes know is taken from the best of them, never mixed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ...formats.text import percent
from ..measurement import Measurement
from ..probes.external_counter import ExternalCounterProbe
from ..probes.imc import MemoryControllers
from ..probes.likwid import Likwid
from ..probes.node_load import OtherLoad, cpu_times
from ..probes.perf import Perf
from ..probes.power import Hwmon, Powercap
from ..probes.probe import ROOT, Probe
from ..probes.process_tree import ProcessTree
from ..probes.resctrl import Resctrl
from ..probes.thread_history import ThreadHistory

#: OtherLoad may have had so much CPU time, as a share of the job's, for it still to count as alone.
ALONE = 0.05
#: Instructions are complete if at least this share of the job's CPU time was counted.
COMPLETE = 0.95
#: Probes by the names that `pilotfish probes` shows, the best first.
KINDS: Mapping[str, Callable[[Path], Probe]] = {
    "resctrl": Resctrl,
    "perf": Perf,
    "perf-imc": MemoryControllers,
    "likwid": Likwid,
    "hwmon": Hwmon,
    "powercap": Powercap,
}
#: Commands that count the whole node.
NODE_WIDE = frozenset(("perf-imc", "likwid"))
#: Sources of bytes to and from memory, the best first.
_TRAFFIC = {
    "resctrl": "resctrl",
    "perf-imc": "perf, all memory controllers",
    "likwid": "LIKWID, all memory controllers",
}


@dataclass(frozen=True, slots=True)
class HardwareCounts:
    """Counts of one run; None = unknown.

    Args:
        bandwidth: bytes/s that a thread moved while on a core, the same for all threads.
        power_watts: of the node, including its idle power.
        sources: field -> what counted it; notes: why something is unknown.
    """

    instructions: float | None = None
    ipc: float | None = None
    bandwidth: float | None = None
    power_watts: float | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def apply_to(self, measured: Measurement) -> Measurement:
        """Return the measurement with these counts."""
        return replace(measured, **asdict(self) | {"sources": measured.sources | dict(self.sources)})


def available_counters(root: Path = ROOT, among: Iterable[str] = KINDS) -> tuple[list[str], dict[str, str]]:
    """Return which counters can be read here, best first, and why the others cannot.

    Args:
        root: directory that holds /proc and /sys.
        among: names of the counters to check.
    """
    missing = {name: why for name in among if (why := KINDS[name](root).available())}
    names = [name for name in KINDS if name in set(among) and name not in missing]
    if "perf" in names and "likwid" in names:
        names.remove("likwid")
        missing["likwid"] = "not used with perf: both need the same counters"
    return names, missing


class Counters:
    """The available hardware probes on one job; create it before the job begins, because it probes the machine.

    Args:
        root: directory that holds /proc and /sys.
        names: counters to use, all available; None = every available one.
    """

    def __init__(self, root: Path = ROOT, names: Iterable[str] | None = None) -> None:
        names = available_counters(root)[0] if names is None else names
        self._probes = {name: KINDS[name](root) for name in names}
        self._commands = [probe for probe in self._probes.values() if isinstance(probe, ExternalCounterProbe)]
        #: Number of commands that count.
        self.commands = len(self._commands)
        self._cpus = cpu_times().keys()
        self._others = OtherLoad(self._cpus)
        #: Bytes that the job had moved at its readings; None if no probe shows them before the end.
        self.traffic: ThreadHistory | None = None

    def start(self, tree: ProcessTree, now: float) -> None:
        """Begin on `tree`."""
        self._others = OtherLoad(self._cpus)
        for probe in self._probes.values():
            probe.start(tree, now)
        self._sample_traffic(now)

    def sample(self, now: float, *, last: bool = False) -> None:
        """Read each probe once."""
        for probe in self._probes.values():
            probe.sample(now, last=last)
        self._sample_traffic(now)

    def _sample_traffic(self, now: float) -> None:
        probe = self._probes.get("resctrl")
        moved = probe.moved_bytes if isinstance(probe, Resctrl) else None
        if moved is not None:
            self.traffic = self.traffic or ThreadHistory()
            self.traffic.add(now, moved, 0.0)

    def request_stop(self) -> None:
        """Ask the commands to stop, without waiting."""
        for command in self._commands:
            command.request_stop()

    @property
    def ready(self) -> bool:
        """True if `stop` returns at once."""
        return all(command.ready for command in self._commands)

    @property
    def cost_s(self) -> float:
        """CPU seconds of the commands that have ended."""
        return sum(command.cost_s for command in self._commands)

    def stop(self, cpu_s: float, wall_s: float, whole_s: float | None = None) -> HardwareCounts:
        """Return the counts.

        Args:
            cpu_s: CPU seconds of the job while it was counted.
            wall_s: seconds for which it was counted, > 0.
            whole_s: CPU seconds of the whole job; None = it was counted from its beginning.
        """
        others_s = self._others.share(cpu_s) * len(self._cpus) * wall_s
        readings = {name: probe.stop() for name, probe in self._probes.items()}
        return conclude(readings, cpu_s, wall_s, alone=others_s <= ALONE * cpu_s, whole_s=whole_s)

    def give_up(self) -> None:
        """Stop all probes and discard their counts: no command or monitoring group stays."""
        for command in self._commands:
            command.kill()
        for probe in self._probes.values():
            probe.stop()


def conclude(
    readings: Mapping[str, Any], cpu_s: float, wall_s: float, *, alone: bool, whole_s: float | None = None
) -> HardwareCounts:
    """Combine the readings of all probes.

    Args:
        readings: by the names of `KINDS`; any may be missing.
        cpu_s: CPU seconds of the job while it was counted.
        wall_s: elapsed seconds while it was counted.
        alone: whether the node was otherwise idle.
        whole_s: CPU seconds of the whole job; None = it was counted from its beginning.
    """
    whole_s = cpu_s if whole_s is None else whole_s
    perf, likwid = readings.get("perf"), readings.get("likwid") if alone else None
    values: dict[str, tuple[float, str]] = {}

    def add(name: str, value: float | None, source: str) -> None:
        if value is not None and name not in values:
            values[name] = value, source

    def add_rate(moved: float | None, counted_s: float | None, source: str) -> None:
        if moved is not None and counted_s:
            add("bandwidth", moved / counted_s, source)

    notes = [f"{name}: {problem}" for name, got in readings.items() if (problem := getattr(got, "problem", ""))]
    if perf is not None:
        source = "perf, outside the kernel" if perf.user_only else "perf"
        add("ipc", perf.ipc, source)
        if perf.cpu_s is not None and perf.cpu_s >= COMPLETE * whole_s:
            add("instructions", perf.instructions, source)
        elif perf.instructions is not None:
            counted_share = (perf.cpu_s or 0.0) / whole_s if whole_s > 0 else 0.0
            notes.append(f"perf: counted {percent(counted_share)} of the CPU time, too little for instructions")
    if likwid is not None:
        add("ipc", likwid.ipc, "LIKWID, of the whole node")
    for name, source in _TRAFFIC.items():
        if name in readings and (alone or name not in NODE_WIDE):
            add_rate(readings[name].moved_bytes, cpu_s, source)
    if perf is not None:
        add_rate(perf.miss_bytes, perf.cpu_s, "perf, last-level cache misses, a lower bound")
    if alone:
        energy = readings.get("powercap")
        add("power_watts", readings.get("hwmon"), "the node's meter, including idle power")
        add("power_watts", sum(energy.values()) / wall_s if energy else None, "RAPL, packages and memory")
    elif {*NODE_WIDE, "hwmon", "powercap"} & readings.keys():
        notes.append("other processes ran too: counts of the whole node are not this job's")
    return HardwareCounts(
        **{name: value for name, (value, _) in values.items()},
        sources={name: source for name, (_, source) in values.items()},
        notes=tuple(notes),
    )
