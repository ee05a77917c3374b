"""Traffic of the node's memory controllers, counted by the perf command.

Rule: only counters with a published size per count are used; the traffic is the whole node's.

Sources: Intel: Documentation/ABI/testing/sysfs-bus-event_source-devices-events of Linux. AMD:
tools/perf/pmu-events/arch/x86/amdzen4/memory-controller.json (umc_cas_cmd: 64 bytes each, Linux 6.9) and
amdzen1/data-fabric.json (dram_channel_data_controller: requests with 64 bytes of data). NVIDIA Grace: the kernel's
nvidia-tegra241-pmu.rst, NVIDIA's Grace Performance Tuning Guide (cmem_rd_data: 32 bytes; cmem_wr_total_bytes: bytes).
"""

from __future__ import annotations

import shutil
from pathlib import Path

from .external_counter import EventCounts, ExternalCounterProbe, first_message
from .perf import WHOLE, PerfCount, parse, refused
from .probe import ROOT, read_text
from .process_tree import ProcessTree

#: Names over the generations: servers count column accesses, clients have free-running counters. The kernel gives the
#: unit (MiB), and perf multiplies.
INTEL = (("cas_count_read", "data_reads", "data_read"), ("cas_count_write", "data_writes", "data_write"))
#: Bytes per count of the other processors' events.
BYTES = {"umc_cas_cmd.rd": 64.0, "umc_cas_cmd.wr": 64.0, "cmem_rd_data": 32.0, "cmem_wr_total_bytes": 1.0}
READS = {*INTEL[0], "umc_cas_cmd.rd", "cmem_rd_data"}
WRITES = {*INTEL[1], "umc_cas_cmd.wr", "cmem_wr_total_bytes"}
#: Servers with Zen 1 to 3: reads and writes of eight channels; the fabric has four counters for them.
FABRIC = tuple(f"dram_channel_data_controller_{i}" for i in range(8))
FABRIC_SHARE, LINE = 0.4, 64.0


class MemoryControllers(ExternalCounterProbe):
    """Traffic of all memory controllers (Intel IMC, AMD UMC or data fabric, Grace SCF) from start to stop."""

    def available(self) -> str | None:
        """Return why the controllers cannot be counted here, or None."""
        if shutil.which("perf") is None:
            return "there is no perf command (Debian: linux-perf)"
        if not events(self._root):
            return "this machine has no memory controller counters (uncore_imc, amd_umc, amd_df, nvidia_scf_pmu)"
        return refused(0, self._root)

    def start(self, tree: ProcessTree, now: float) -> None:
        """Begin to count the whole node, whatever the tree."""
        self._start_command(["perf", "stat", "-x,", "-a", "-e", ",".join(events(self._root))], tree)

    def _conclude(self, printed: str) -> EventCounts:
        return conclude(printed)


def events(root: Path = ROOT) -> list[str]:
    """Return the events that together count all reads and writes, as perf names them."""
    devices = root / "sys/bus/event_source/devices"
    return _intel(devices) or _amd(devices, root) or _grace(devices)


def _intel(devices: Path) -> list[str]:
    named_events = []
    for device in sorted(devices.glob("uncore_imc*")):
        groups = [[name for name in names if read_text(device / f"events/{name}.unit") == "MiB"] for names in INTEL]
        if all(groups):
            named_events += [f"{device.name}/{names[0]}/" for names in groups]
    return named_events


def _amd(devices: Path, root: Path) -> list[str]:
    """Return perf's own names, as the kernel names none; the data fabric of desktop processors is not published."""
    controllers = sorted(devices.glob("amd_umc_*"))
    if controllers:
        return [f"{device.name}/umc_cas_cmd.{way}/" for device in controllers for way in ("rd", "wr")]
    processor = (read_text(root / "proc/cpuinfo") or "").partition("model name")[2].partition("\n")[0]
    has_fabric = (devices / "amd_df").is_dir() and "EPYC 7" in processor  # Zen 1 to 3
    return [f"amd_df/{name}/" for name in FABRIC] if has_fabric else []


def _grace(devices: Path) -> list[str]:
    named_events = []
    for device in sorted(devices.glob("nvidia_scf_pmu_*")):
        names = ("cmem_rd_data", "cmem_wr_total_bytes")
        if all((device / "events" / name).exists() for name in names):
            named_events += [f"{device.name}/{name}/" for name in names]
    return named_events


def conclude(printed: str) -> EventCounts:
    """Return the traffic in perf's output; unknown if an event is missing or was counted part of the time."""
    counted = parse(printed)
    if fabric := {name: count for name, count in counted.items() if name in FABRIC}:
        return _traffic(fabric, dict.fromkeys(FABRIC, LINE), FABRIC_SHARE, whole=len(fabric) == len(FABRIC))
    counts = {name: count for name, count in counted.items() if name in READS | WRITES}
    if not counts:
        return EventCounts(problem=f"it did not count: {first_message(printed)}")
    return _traffic(counts, BYTES, WHOLE, whole=bool(counts.keys() & READS and counts.keys() & WRITES))


def _traffic(
    counts: dict[str, PerfCount], bytes_per_count: dict[str, float], least: float, *, whole: bool
) -> EventCounts:
    unknown = [f"{name} is {count.problem}" for name, count in counts.items() if count.value is None]
    shared = [name for name, count in counts.items() if count.share is not None and count.share < least]
    if unknown:
        return EventCounts(problem="; ".join(unknown))
    if not whole:
        return EventCounts(problem=f"it counted only {', '.join(sorted(counts))}")
    if shared:
        return EventCounts(problem="stepped back: another process uses the memory controllers' counters")
    moved = sum((count.value or 0.0) * bytes_per_count.get(name, 1.0) for name, count in counts.items())
    return EventCounts(moved_bytes=moved)
