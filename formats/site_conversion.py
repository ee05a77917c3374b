"""The accounting of a site as a trace of rigid jobs, in SWF or for Batsim, with what these formats cannot express.

Rule: a resource is a CPU. A job is its last run, submitted when the job was; its processors are those that it
requested, or those that it got where it had whole nodes. Jobs that never started or never ended are left out, and
counted. Users, accounts, QOS (queues), partitions and names (executables) are numbered from 1 in the order of the jobs;
the header names QOS and partitions. What is lost is counted in jobs.
Source: Feitelson, "The Standard Workload Format" (version 2.2); sacct(1) of Slurm 22.05.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from ..simulate.model.workload import Dependencies, Workload
from ..simulate.slurm.site import SiteJob
from .convert import Converted, some, swf_to_batsim
from .replays.swf import dump_swf
from .text import count

_ENDED = re.compile(r"after(any|ok|notok|corr):([\d:_+*]+)", re.ASCII)
#: Values of SWF's status: 1 completed, 0 failed, 5 cancelled.
_STATUS = {"COMPLETED": 1, "CANCELLED": 5}
_NEVER_STARTED, _NEVER_ENDED = "jobs that never started", "jobs that had not ended"


class AccountingTrace:
    """A site's jobs as a workload.

    Args:
        jobs: the jobs by submission.
        name: of the workload.
        machine: CPUs of the site; None: not known.
        left_out: why records are not among the jobs -> how many.
    """

    def __init__(
        self, jobs: Iterable[SiteJob], name: str, machine: int | None, left_out: Mapping[str, int] | None = None
    ) -> None:
        self.lost, self.left_out = Counter[str](), Counter[str](left_out or {})
        self._numbers: dict[str, dict[str, int]] = {
            kind: {} for kind in ("user", "group", "executable", "queue", "partition")
        }
        self._ids: dict[str, int] = {}
        self._pairs = list[tuple[int, int, bool]]()
        rows = [row for job in jobs if (row := self._row(job))]
        columns = {key: np.array([row[key] for row in rows], np.float64) for key in (rows[0] if rows else ())}
        epoch = float(columns["submit_time"].min()) if rows else 0.0
        more = {
            key: column for key, column in columns.items() if key not in ("submit_time", "run_time", "walltime", "size")
        }
        before, after, any_end = (
            (list(values) for values in zip(*self._pairs, strict=True)) if self._pairs else ([], [], [])
        )
        pairs = Dependencies(np.array(before), np.array(after), None, np.array(any_end, bool)) if before else None
        empty = np.zeros(0)
        self.workload = Workload(
            name, np.arange(1, len(rows) + 1), columns.get("submit_time", empty) - epoch,
            columns.get("run_time", empty), columns.get("walltime", empty),
            columns.get("size", empty).astype(np.int64), more=more, machine=machine, left_out=dict(self.left_out),
            dependencies=pairs, epoch=epoch,
        )  # fmt: skip

    def swf(self, note: str) -> Converted:
        """Return it as SWF. Raises ConfigError."""
        header = [f"UnixStartTime: {self.workload.epoch:.0f}"] if len(self.workload) else []
        for title, kind in (("Queue", "queue"), ("Partition", "partition")):
            header += [f"{title}: {number} {' '.join(name.split())}" for name, number in self._numbers[kind].items()]
        return self._converted(dump_swf(self.workload, [note], header), Counter())

    def batsim(self, note: str) -> Converted:
        """Return it as a workload of Batsim; see `swf_to_batsim`."""
        converted = swf_to_batsim(self.workload, note)
        lost = Counter(converted.lost)
        lost["users, accounts, QOS, partitions, waiting times, memory"] = len(self.workload)
        return self._converted(converted.text, lost)

    def _converted(self, text: str, lost: Counter[str]) -> Converted:
        machine = self.workload.machine
        content = count(len(self.workload), "job") + (f" for {count(machine, 'CPU')}" if machine else "")
        return Converted(text, content, some(self.lost + lost), some(self.left_out))

    def _row(self, job: SiteJob) -> dict[str, float] | None:
        """Return the columns of a job; None, and it is counted, if it cannot be replayed."""
        run = job.runs[-1] if job.runs else None
        if run is None or run.start is None:
            self.left_out[_NEVER_STARTED] += 1
            return None
        if run.end is None:
            self.left_out[_NEVER_ENDED] += 1
            return None
        allocated = run.cpus or -1
        size = max(job.min_cpus, allocated) if job.is_exclusive else job.min_cpus
        run_time = run.end - run.start
        limit = job.limit_min * 60 if job.limit_min else 0
        row, self._ids[job.id] = len(self._ids), len(self._ids)
        preceding = self._preceding(job, row)
        self._lose(job, limit)
        return {
            "submit_time": job.submit,
            "wait_time": max(run.start - job.submit, 0.0),
            "run_time": run_time,
            "walltime": limit or run_time,
            "size": size,
            "allocated": allocated,
            "requested": size,
            "requested_memory": _memory_kib(job),
            "status": _STATUS.get(run.state, 0),
            **{kind: self._number(kind, name) for kind, name in _names(job, run.partition).items()},
            "preceding": preceding + 1 if preceding is not None else -1,
            "think_time": 0 if preceding is not None else -1,
        }

    def _number(self, kind: str, name: str) -> int:
        return self._numbers[kind].setdefault(name, len(self._numbers[kind]) + 1) if name else -1

    def _preceding(self, job: SiteJob, row: int) -> int | None:
        """Return the row of the last earlier job whose end a job waits for; other dependencies are counted."""
        rows = list[tuple[int, bool]]()
        for kind, ids in _ENDED.findall(job.dependency):
            for name in ids.split(":"):
                if (before := self._ids.get(name.partition("+")[0], row)) < row:
                    rows.append((before, kind == "any"))
        if not rows:
            self.lost["dependencies that are not on the end of an earlier job"] += bool(job.dependency)
            return None
        self._pairs.append((max(rows)[0], row, max(rows)[1]))
        self.lost["dependencies other than the one on the last earlier job"] += len(rows) > 1
        return max(rows)[0]

    def _lose(self, job: SiteJob, limit: int) -> None:
        lost = {
            "earlier runs of requeued jobs": len(job.runs) > 1,
            "ids that are not numbers: now numbered from 1": not job.id.isdigit(),
            "jobs without a time limit: now their run time": not limit,
            "numbers of nodes and tasks of a node: only CPUs are left": job.min_nodes > 1 or job.tasks_per_node,
            "whole nodes: now their CPUs": job.is_exclusive,
            "GPUs": job.gpus_per_node,
            "licences": job.licences,
            "features and named nodes": job.constraint or job.required_nodes or job.excluded_nodes,
            "reservations": job.reservation,
            "lists of partitions: now the one that the job ran in": len(job.partitions) > 1,
            "begin times, holds and deadlines": job.begin is not None or job.released is not None or job.deadline,
            "limits of arrays": job.array_limit,
            "least time limits and nice values": job.time_min_min or job.nice,
        }
        self.lost.update({name: 1 for name, value in lost.items() if value})


def _names(job: SiteJob, partition: str) -> dict[str, str]:
    return {
        "user": job.user,
        "group": job.account,
        "executable": job.name,
        "queue": job.qos,
        "partition": partition or next(iter(job.partitions), ""),
    }


def _memory_kib(job: SiteJob) -> float:
    """Return the requested memory in KiB for each processor, -1 if none is requested."""
    if job.memory_per_cpu_mib is not None:
        return job.memory_per_cpu_mib * 1024
    if job.memory_per_node_mib is None:
        return -1
    return job.memory_per_node_mib * 1024 * job.min_nodes // max(job.min_cpus, 1)


def trace_of(path: Path, machine: int | None = None) -> AccountingTrace:
    """Return the trace of the site in a folder, or of a dump of sacct alone, with times in UTC.

    Args:
        path: the folder or the dump.
        machine: CPUs; None: those of the nodes, which a dump alone does not have.

    Raises:
        ConfigError: the site cannot be read.
    """
    from .site.site_folder import read_accounting, read_site

    if not path.is_dir():
        jobs, left_out = read_accounting(path)
        return AccountingTrace(jobs, path.name, machine, left_out)
    site = read_site(path)
    return AccountingTrace(site.jobs, path.resolve().name, machine or sum(node.cpus for node in site.nodes))
