"""What a replay reads: its jobs and its machine.

Rule: what reads the files is compiled before, what will replay them once it is known what they are; that is said.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ....simulate.batch.machine import Machine, machine_of, speeds_of, storages_of
from ....simulate.errors import ConfigError
from ....simulate.formats.workloads import Format, format_of
from ....simulate.platform import Cluster
from ....simulate.workload import Workload, joined
from .. import inputs
from .asked import Asked


@dataclass(frozen=True, slots=True)
class Scene:
    """Jobs, and where they are replayed.

    Args:
        cluster: of which the machine is made; None: it is but a number.
        whose: who says how large the machine is.
    """

    jobs: Workload
    machine: Machine
    cluster: Cluster | None
    whose: str


def read(asked: Asked) -> Scene:
    """Read all files. Raises ConfigError, OSError."""
    kinds = [format_of(path) for path in asked.workloads]
    cluster = None if asked.cluster is None else inputs.read_machine(asked.cluster)
    inputs.load_kernels(*sorted({kernel for kind in kinds for kernel in kind.kernels}))
    how = {
        "speeds": speeds_of(cluster),
        "storages": storages_of(cluster),
        "skip_invalid": asked.skip_invalid,
        "profiles": inputs.Profiles(None),
    }
    every = [kind.read(path, **how) for path, kind in zip(asked.workloads, kinds, strict=True)]
    jobs = asked.select.of(joined(every))
    rich = bool(asked.decision_time) or jobs.dependencies is not None
    inputs.load_replay([asked.chosen.policy], networked=jobs.programs is not None, rich=rich)
    machine, whose = _machine(every, asked, kinds, cluster)
    if not len(jobs):
        raise ConfigError(_names(asked.workloads), "", f"no jobs to replay{_left_out(jobs)}")
    return Scene(jobs, machine, cluster, whose)


def _machine(
    every: list[Workload], asked: Asked, kinds: list[Format], cluster: Cluster | None
) -> tuple[Machine, str]:  # fmt: skip
    """The machine, and who says so."""
    if asked.procs is not None:
        return Machine(asked.procs), "--procs"
    if cluster is not None:
        found = machine_of(cluster, whole_nodes=asked.whole_nodes)
        what = "nodes" if found.processors == len(cluster.nodes) else "cores"
        return found, f"the {what} of {Path(cluster.source).name}"
    rows = list(zip(every, kinds, asked.workloads, strict=True))
    told = [(one.machine, kind.size, path.name) for one, kind, path in rows if one.machine is not None]
    if not told:
        key = next((kind.size for one, kind, _ in rows if one.dependencies is None), "")
        why, allowed = "missing: how large the machine is", "--procs, or --cluster"
        raise ConfigError(_names(asked.workloads), key, why, f"that, or {allowed}" if key else allowed)
    return Machine(max(told)[0]), f"{told[0][1]} of {_names(name for *_, name in told)}"


def _names(paths: Iterable[object]) -> str:
    return ", ".join(map(str, paths))


def _left_out(jobs: Workload) -> str:
    words = ", ".join(f"{count:,} {why}" for why, count in jobs.left_out.items())
    return f"; left out: {words}" if words else ""
