"""What counters of the hardware say of one run: IPC, instructions, memory traffic, power.

Rule: each number names what counted it. What a probe counts of the whole node is the job's only if the job had the
node to itself; what several probes know is taken from the one that knows it best, never mixed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .course import Course
from .measurement import Measurement
from .probes.attached import Attaching
from .probes.base import ROOT, Probe
from .probes.hwmon import Hwmon
from .probes.imc import MemoryControllers
from .probes.likwid import Likwid
from .probes.others import Others
from .probes.perf import Perf
from .probes.powercap import Powercap
from .probes.resctrl import Resctrl
from .probes.steal import cpu_times
from .probes.tree import ProcessTree

#: Others may have had so much CPU time, as a share of the job's, for it still to count as alone.
ALONE = 0.05
#: So much of the job's CPU time must have been counted for the instructions to be all.
ALL = 0.95


@dataclass(frozen=True, slots=True)
class Counted:
    """What was counted of one run; None = not known.

    Args:
        instructions: of all threads; ipc: for each cycle on a core.
        bandwidth: bytes/s that a thread moved while it was on a core, the same for all threads.
        power_watts: of the node, its idling included.
        sources: field -> what counted it; notes: why something is not known.
    """

    instructions: float | None = None
    ipc: float | None = None
    bandwidth: float | None = None
    power_watts: float | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def onto(self, measured: Measurement) -> Measurement:
        """Return the measurement with what was counted put down in it."""
        return replace(
            measured,
            instructions=self.instructions,
            ipc=self.ipc,
            bandwidth=self.bandwidth,
            power_watts=self.power_watts,
            sources=measured.sources | dict(self.sources),
            notes=self.notes,
        )


#: All of them by the names that `pilotfish probes` shows, the one that knows best first.
KINDS: Mapping[str, Callable[[Path], Probe[Any]]] = {
    "resctrl": Resctrl,
    "perf": Perf,
    "perf-imc": MemoryControllers,
    "likwid": Likwid,
    "hwmon": Hwmon,
    "powercap": Powercap,
}
#: Commands that count the whole node, whoever runs there.
NODE_WIDE = frozenset(("perf-imc", "likwid"))


def there(root: Path = ROOT, among: Iterable[str] = KINDS) -> tuple[list[str], dict[str, str]]:
    """Return which counters can be read here, and why the others cannot.

    Args:
        root: where /proc and /sys are.
        among: their names; the others are not looked for.
    """
    missing = {name: why for name in among if (why := KINDS[name](root).available())}
    found = [name for name in KINDS if name in set(among) and name not in missing]
    if "perf" in found and "likwid" in found:
        found.remove("likwid")
        missing["likwid"] = "not beside perf: both would want the same counters"
    return found, missing


class Counters:
    """The probes of hardware that are there, on one job; make it before the job begins, as it takes a look around.

    Args:
        root: where /proc and /sys are.
        names: which, of those that are there (see `there`); None = all.
    """

    def __init__(self, root: Path = ROOT, names: Iterable[str] | None = None) -> None:
        names = there(root)[0] if names is None else names
        self._probes = {name: KINDS[name](root) for name in names}
        self._commands = [probe for probe in self._probes.values() if isinstance(probe, Attaching)]
        self._cpus = cpu_times().keys()
        self._others = Others(self._cpus)
        #: What the job had moved from and to memory, at its readings; None where nothing tells before the end.
        self.traffic: Course | None = None

    def start(self, tree: ProcessTree, now: float) -> None:
        """Begin on `tree`."""
        self._others = Others(self._cpus)
        for probe in self._probes.values():
            probe.start(tree, now)
        self._look_at_traffic(now)

    def sample(self, now: float, *, last: bool = False) -> None:
        """Look once with each probe."""
        for probe in self._probes.values():
            probe.sample(now, last=last)
        self._look_at_traffic(now)

    def _look_at_traffic(self, now: float) -> None:
        probe = self._probes.get("resctrl")
        moved = probe.moved_bytes if isinstance(probe, Resctrl) else None
        if moved is not None:
            self.traffic = self.traffic or Course()
            self.traffic.add(now, moved, 0.0)

    def ask(self) -> None:
        """Tell the commands to stop, without waiting for them."""
        for command in self._commands:
            command.ask()

    @property
    def settled(self) -> bool:
        """Whether `stop` would not have to wait."""
        return all(command.settled for command in self._commands)

    @property
    def commands(self) -> int:
        """How many commands count."""
        return len(self._commands)

    @property
    def cost_s(self) -> float:
        """CPU seconds that the commands took, those that have ended."""
        return sum(command.cost_s for command in self._commands)

    def stop(self, cpu_s: float, wall_s: float, whole_s: float | None = None) -> Counted:
        """Return what was counted.

        Args:
            cpu_s: CPU seconds of the job while it was counted; wall_s: for how long it was, > 0.
            whole_s: CPU seconds of the whole job, where it was counted for a part of it.
        """
        others_s = self._others.share(cpu_s) * len(self._cpus) * wall_s
        readings = {name: probe.stop() for name, probe in self._probes.items()}
        return conclude(readings, cpu_s, wall_s, alone=others_s <= ALONE * cpu_s, whole_s=whole_s)

    def give_up(self) -> None:
        """End what was begun, whatever it said: no command goes on counting, no group stays."""
        for command in self._commands:
            command.kill()
        for probe in self._probes.values():
            probe.stop()


def conclude(
    readings: Mapping[str, Any], cpu_s: float, wall_s: float, *, alone: bool, whole_s: float | None = None
) -> Counted:
    """Return what the readings of probes say together.

    Args:
        readings: by the names of `KINDS`; any may be missing.
        cpu_s, wall_s: seconds of the job while it was counted.
        alone: whether the node did nothing else to speak of.
        whole_s: CPU seconds of the whole job; None = it was counted from its beginning.
    """
    whole_s = cpu_s if whole_s is None else whole_s
    perf, likwid = readings.get("perf"), readings.get("likwid") if alone else None
    found: dict[str, tuple[float, str]] = {}

    def tell(name: str, value: float | None, source: str) -> None:
        if value is not None and name not in found:
            found[name] = value, source

    notes = [f"{name}: {problem}" for name, got in readings.items() if (problem := getattr(got, "problem", ""))]
    if perf is not None:
        source = "perf, outside the kernel" if perf.user_only else "perf"
        tell("ipc", perf.ipc, source)
        if perf.cpu_s is not None and perf.cpu_s >= ALL * whole_s:
            tell("instructions", perf.instructions, source)
        elif perf.instructions is not None:
            seen = (perf.cpu_s or 0.0) / whole_s if whole_s > 0 else 0.0
            notes.append(f"perf: saw {seen:.0%} of the CPU time, too little for instructions")
    if likwid is not None:
        tell("ipc", likwid.ipc, "LIKWID, of the whole node")
    for rate, source in _rates(readings, cpu_s, alone):
        tell("bandwidth", rate, source)
    if alone:
        energy = readings.get("powercap")
        tell("power_watts", readings.get("hwmon"), "the node's meter, its idling included")
        tell("power_watts", sum(energy.values()) / wall_s if energy else None, "RAPL, packages and memory")
    elif {*NODE_WIDE, "hwmon", "powercap"} & readings.keys():
        notes.append("others ran too: what counts the whole node says nothing of this job")
    return Counted(
        **{name: value for name, (value, _) in found.items()},
        sources={name: source for name, (_, source) in found.items()},
        notes=tuple(notes),
    )


def _rates(readings: Mapping[str, Any], cpu_s: float, alone: bool) -> list[tuple[float | None, str]]:
    """Bytes for each CPU second and what counted them, the best first."""
    names = {
        "resctrl": "resctrl",
        "perf-imc": "perf, all memory controllers",
        "likwid": "LIKWID, all memory controllers",
    }
    rates = []
    for name, source in names.items():
        moved = readings[name].moved_bytes if name in readings and (alone or name == "resctrl") else None
        rates.append((moved / cpu_s if moved is not None and cpu_s > 0 else None, source))
    perf = readings.get("perf")
    if perf is not None and perf.miss_bytes is not None and perf.cpu_s:
        rates.append((perf.miss_bytes / perf.cpu_s, "perf, misses of the last cache, at least"))
    return rates
