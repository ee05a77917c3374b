"""Convert platforms, workflows and workloads from one format to another, and count what is lost.

Rule: a replay on what is written equals a replay on what was read, start by start; the tasks of a workflow keep run
times, cores and dependencies. Everything else that is lost is counted. A job of SWF has one preceding job, and one of a
Batsim workload none; submit times stand for the other dependencies. Of the losses, only dependencies and walltimes that
SWF cannot leave out can change a replay, and only delays can change its power.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ..simulate.errors import ConfigError
from ..simulate.model.cluster import Cluster, Contention
from ..simulate.model.job import Workflow
from ..simulate.model.machine import powers_of
from ..simulate.model.workload import Workload
from .batsim.workload import KEPT, BatsimWorkload
from .batsim.write import SHORTEST_S, batsim_of, batsim_text
from .cluster import dump_cluster
from .replays.swf import dump_swf
from .replays.workloads import jobs_of
from .simgrid.cluster import PROPERTIES, cluster_of
from .simgrid.platform import Host, SimGridPlatform
from .simgrid.write import platform_text
from .text import count
from .workflows.dax import dump_dax
from .workflows.wfcommons import dump_wfcommons
from .workflows.workflow import dump_workflow
from .workflows.workflow_tasks import Tasks, earliest, topological


@dataclass(frozen=True, slots=True)
class Converted:
    """The text of a converted file.

    Args:
        text: the content of the file.
        what: what the file holds, in words.
        lost: what the format cannot express -> how many.
        left_out: why something was not read -> how many.
    """

    text: str
    what: str
    lost: Mapping[str, int]
    left_out: Mapping[str, int] = field(default_factory=dict)


def some(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the counts above zero."""
    return {name: count for name, count in counts.items() if count}


def simgrid_to_cluster(platform: SimGridPlatform, notes: tuple[str, ...] = ()) -> Converted:
    """Return the cluster file (YAML) of a platform. O(hosts). Raises ConfigError: see `cluster_of`.

    Args:
        platform: the platform.
        notes: comments at the top.
    """
    import yaml

    cluster = cluster_of(platform)
    hosts = [host for host in platform.hosts if host.name in cluster.index]
    counts = {
        "hosts that do not compute (master, storage)": len(platform.hosts) - len(hosts),
        "cores beyond the first, of hosts": sum(host.cores > 1 for host in hosts),
        "watts of a host that is neither idle nor fully busy": sum(map(_has_epsilon, hosts)),
        "other properties of hosts": sum(not host.properties.keys() <= {*PROPERTIES, "role"} for host in hosts),
        "networks of clusters": len(platform.clusters),
        "links": len(platform.links),
        "routes": len(platform.routes),
    }
    comments = "".join(f"# {note}\n" for note in (*notes, "memory and its bandwidth are unknown: taken as unlimited"))
    text = comments + yaml.safe_dump(dump_cluster(cluster), sort_keys=False)
    return Converted(text, f"{count(len(hosts), 'node')} of a core", some(counts))


def _has_epsilon(host: Host) -> bool:
    """Return whether a state has a middle number that differs from the first."""
    text = next((host.properties[key] for key in PROPERTIES[:2] if key in host.properties), "")
    watts = [part.split(":") for part in text.split(",")]
    return any(len(numbers) == 3 and float(numbers[1]) != float(numbers[0]) for numbers in watts)


def cluster_to_simgrid(cluster: Cluster) -> Converted:
    """Return the platform file (XML) of a cluster. O(cores). Raises ConfigError: see `platform_text`."""
    kinds = [node.type for node in cluster.nodes]
    powers = [(kind.power, kind) for kind in kinds if kind.power is not None]
    counts = {
        "unknown speeds: now one flop a cycle": sum(kind.speed is None for kind in kinds),
        "memory and its bandwidth": len(kinds),
        "contention for memory": sum(kind.contention is not Contention.NONE for kind in kinds),
        "memory domains, numbers of CPUs": sum(bool(node.memory_domain or node.cpus) for node in cluster.nodes),
        "nodes of several cores: now hosts of one": sum(kind.cores > 1 for kind in kinds),
        "power of these nodes in other states": sum(
            kind.cores > 1 and bool(power.states or power.off is not None) for power, kind in powers
        ),
        "power that cores do not share evenly": sum(powers_of(kind, kind.cores) is None for _, kind in powers),
        "estimates of power for budgets": sum(
            power.budget_idle is not None or power.budget_computing is not None for power, _ in powers
        ),
        "clusters of nodes": len(cluster.groups),
        "networks": int(cluster.wiring is not None),
    }
    hosts = count(sum(kind.cores for kind in kinds), "host")
    return Converted(platform_text(cluster), f"{hosts} and a master", some(counts))


def to_wfcommons(given: Tasks, note: str) -> Converted:
    """Return a WfFormat instance of the tasks, with `note` as its description. O(tasks + dependencies)."""
    return Converted(dump_wfcommons(given, note), _tasks(given), _lost(given, "CPU use", "memory"))


def to_dax(given: Tasks, note: str) -> Converted:
    """Return a DAX document of the tasks, with `note` as a comment. O(tasks + dependencies)."""
    return Converted(dump_dax(given, note), _tasks(given), _lost(given, "memory"))


def to_workflow(given: Tasks, workflow: Workflow, note: str) -> Converted:
    """Return a workflow file of the tasks. O(tasks + dependencies).

    Args:
        given: the tasks as recorded, to count what is lost.
        workflow: the same tasks as a workflow.
        note: a comment at the top.
    """
    none = {
        "run times of 0: now the shortest possible": sum(task.time == 0 for task in given.tasks),
        "unknown run times: now the default": sum(task.time is None for task in given.tasks),
    }
    losses = _lost(given, "CPU use", "memory")
    return Converted(dump_workflow(workflow, (note,)), _tasks(given), losses | some(none))


def to_swf(given: Tasks, machine: int | None, note: str, *, skip_invalid: bool) -> Converted:
    """Return the SWF trace of a workflow. O(tasks log tasks + dependencies).

    A job is submitted when its predecessors would have ended on an unlimited machine; its preceding job is the last of
    them to end.

    Args:
        given: the tasks.
        machine: resources; None = not stated.
        note: a note in the header.
        skip_invalid: leave out, and count, tasks without a run time.

    Raises:
        ConfigError: a task has no run time.
    """
    jobs = jobs_of(given, skip_invalid=skip_invalid)
    pairs = 0 if jobs.dependencies is None else len(jobs.dependencies)
    written = _submitted(replace(jobs, machine=machine), given)
    first = int((written.more["preceding"] > 0).sum())
    counts = {
        "dependencies other than the last to end: now submit times, as on an unlimited machine": pairs - first,
        "ids that are not numbers: now numbered from 1": len(jobs),
    }
    lost = some(counts) | _lost(given, "walltimes")
    return Converted(dump_swf(written, [note]), _jobs(written), lost, jobs.left_out)


def _submitted(jobs: Workload, given: Tasks) -> Workload:
    """Replace dependencies by submit times and preceding jobs; jobs are numbered from 1 in that order."""
    ids = set(jobs.more["name"].tolist())
    tasks = [replace(task, after=tuple(before for before in task.after if before in ids))
             for task in given.tasks if task.id in ids]  # fmt: skip
    times = earliest(tasks)
    submit = np.array([start for start, _ in times], np.float64)
    row = {task.id: i for i, task in enumerate(tasks)}
    turn, place = np.empty(len(tasks), np.int64), np.empty(len(tasks), np.int64)
    turn[[row[name] for name in topological(tasks)]] = np.arange(len(tasks))
    place[np.lexsort((turn, submit))] = np.arange(1, len(tasks) + 1)  # a preceding job comes first, also at one time
    last = [max((row[before] for before in task.after), key=lambda i: times[i][1], default=-1) for task in tasks]
    waits = np.array(last, np.int64) >= 0
    more = {"preceding": np.where(waits, place[last], -1), "think_time": np.where(waits, 0, -1)}
    written = replace(jobs, id=place, submit_time=submit, more=more, dependencies=None)
    return written.take(np.argsort(place))


def _tasks(tasks: Tasks) -> str:
    return f"{count(len(tasks.tasks), 'task')}, {sum(len(set(task.after)) for task in tasks.tasks):,} dependencies"


def _lost(tasks: Tasks, *exceptions: str) -> dict[str, int]:
    counts = {
        **tasks.extras,
        "CPU use": sum(task.busy is not None for task in tasks.tasks),
        "memory": sum(task.memory > 0 for task in tasks.tasks),
        "walltimes": sum(task.walltime is not None for task in tasks.tasks),
    }
    return some({loss: count for loss, count in counts.items() if loss not in exceptions})


def swf_to_batsim(jobs: Workload, description: str) -> Converted:
    """Return the Batsim JSON of a trace: a `delay` profile for each run time. O(jobs)."""
    at_end = (jobs.run_time == jobs.walltime) & (jobs.run_time > 0)
    counts = {
        "computing: a delay draws the power of idle resources": int((jobs.run_time > 0).sum()),
        "walltimes below 1e-6 s: now 1e-6 s, the shortest possible": int((jobs.walltime < SHORTEST_S).sum()),
        "success: Batsim kills jobs whose delay is their walltime": int(at_end.sum()),
        "preceding jobs and think times": 0 if jobs.dependencies is None else len(jobs.dependencies),
    }
    text = batsim_text(batsim_of(jobs, {"description": description}))
    return Converted(text, _jobs(jobs), some(counts), jobs.left_out)


def batsim_to_swf(given: BatsimWorkload, jobs: Workload, note: str) -> Converted:
    """Return the SWF of a Batsim workload. O(jobs).

    Args:
        given: the workload as read.
        jobs: those of its jobs that can be replayed.
        note: a note in the header.

    Raises:
        ConfigError: run times depend on the resources, or see `dump_swf`.
    """
    if jobs.programs is not None:
        where = "run times depend on the resources, whose speeds differ"
        raise ConfigError(jobs.name, "", where, "a --cluster whose resources have one speed")
    endless, more = np.isinf(jobs.walltime), jobs.more
    counts = {
        "names of profiles": len(jobs),
        "flops: now run times": int((more["computes"] & (jobs.run_time > 0)).sum()),
        "delays: jobs of SWF compute": int((~more["computes"]).sum()),
        "ids that are not numbers: now numbered from 1": len(jobs) * ("name" in more),
        "jobs without a walltime: now their run time": int(endless.sum()),
        "fields added by users": sum(not job.more.keys() <= more.keys() for job in given.jobs),
    }
    columns = {name: more[name] for name in KEPT if name in more}
    if "returns" in more:
        columns["status"] = np.where(more["returns"] != 0, 0, 1)
    written = replace(jobs, walltime=np.where(endless, jobs.run_time, jobs.walltime), more=columns)
    return Converted(dump_swf(written, [note]), _jobs(jobs), some(counts), jobs.left_out)


def _jobs(jobs: Workload) -> str:
    return f"{count(len(jobs), 'job')}" + (
        f" for {count(jobs.machine, 'resource')}" if jobs.machine is not None else ""
    )
