"""Jobs of a site from the records of sacct and the options of their commands.

Rule: what an option says counts; what no option says comes from the record, which also shows what stood in a script;
then Slurm's defaults. A value that cannot be read leaves the job out, and is counted by reason.
Source: sbatch(1) and sacct(1) of Slurm 22.05.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence

from ...simulate.errors import ConfigError
from ...simulate.slurm.site import SiteJob
from .. import slurm_values
from .accounting_table import JobRow
from .job_request import WHOLE_NODES, SiteMachine, job_request, named_nodes, recorded_cpus
from .site_rules import licence_counts
from .submit_line import SubmitOptions, submit_options

_LATER = re.compile(r"now(?:\+(\d{1,9})\s*(seconds?|minutes?|hours?|days?|weeks?|)s?)?", re.ASCII | re.IGNORECASE)
_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
#: The limit of a job without any, as backfilling counts it: 365 days.
_NO_LIMIT_MIN = 525_600
_UNFINISHED = ("RUNNING", "PENDING", "SUSPENDED", "COMPLETING", "REQUEUED", "RESIZING")
#: Options that a replay does not follow, and that change where or when a job starts.
UNFOLLOWED = frozenset((
    "batch", "bb", "bbf", "cluster-constraint", "core-spec", "cores-per-socket", "extra-node-info",
    "gpus-per-socket", "hint", "nodefile", "ntasks-per-core", "ntasks-per-socket", "overcommit",
    "oversubscribe", "prefer", "segment", "sockets-per-node", "spread-job", "switches", "thread-spec",
    "threads-per-core", "tmp", "use-min-nodes",
))  # fmt: skip


class JobReader:
    """Makes jobs; `left_out` and `unfollowed` count what is not read and what is not followed.

    Args:
        machine: what the records refer to.
        end: the last time in the dump, epoch seconds.
        scripts: the options of scripts by JobID or JobIDRaw.
    """

    def __init__(self, machine: SiteMachine, end: float, scripts: Mapping[str, SubmitOptions]) -> None:
        self.machine, self.end, self.scripts = machine, end, scripts
        self.left_out: Counter[str] = Counter()
        self.unfollowed: Counter[str] = Counter()
        self.unknown_options: Counter[str] = Counter()
        self.hidden = self.differing = 0
        self._options: dict[tuple[str, str, int], SubmitOptions] = {}

    def job(self, group: Sequence[JobRow]) -> SiteJob | None:
        """Return the job of its records; None, and it is counted, if a value cannot be read."""
        try:
            return self._job(group)
        except (ValueError, OverflowError, ConfigError):
            self.left_out["jobs with an option or a request that cannot be read"] += 1
            return None

    def options(self, row: JobRow) -> SubmitOptions:
        """Return the options of a job's command; tasks of an array share theirs."""
        key = (row.record.text("submitline"), row.record.text("jobname"), int(row.component or 0))
        if key not in self._options:
            if len(self._options) > 10_000:
                self._options.clear()
            self._options[key] = submit_options(*key)
        options = self._options[key]
        if self.scripts and not options.is_whole:
            for job in (row.id, row.record.text("jobidraw"), str(row.job)):
                if job in self.scripts:
                    return options.over(self.scripts[job])
        return options

    def _job(self, group: Sequence[JobRow]) -> SiteJob:
        first, last = group[0], group[-1]
        record = first.record
        options = self.options(first)
        values = options.values
        for name in options.unknown:
            self.unknown_options[name] += 1
        for name in UNFOLLOWED & values.keys():
            self.unfollowed[name] += 1
        if (kind := values.get("exclusive", "")) not in WHOLE_NODES:
            self.unfollowed[f"exclusive={kind}"] += 1
        self.hidden += not options.is_whole
        request = job_request(options, last, self.machine)
        recorded = recorded_cpus(last)
        self.differing += recorded not in (0, request.cpus) and not request.is_exclusive
        submit = first.submit
        begins = self._moment(values.get("begin", ""), submit)
        if begins is None and "begin" in values:
            begins = first.run.eligible
        return SiteJob(
            id=first.id,
            name=record.text("jobname"),
            user=record.text("user"),
            account=values.get("account", "") if not record.text("account") else record.text("account"),
            qos=record.text("qos"),
            partitions=self._partitions(options, first),
            submit=submit,
            runs=tuple(row.run for row in group),
            limit_min=self._limit(options, first),
            time_min_min=slurm_values.minutes(values.get("time-min", "")),
            min_nodes=request.nodes,
            max_nodes=request.most_nodes,
            tasks=request.tasks,
            cpus_per_task=request.cpus_per_task,
            tasks_per_node=request.tasks_per_node,
            min_cpus=request.cpus,
            memory_per_node_mib=request.memory_per_node,
            memory_per_cpu_mib=request.memory_per_cpu,
            gpus_per_node=request.gpus,
            is_exclusive=request.is_exclusive,
            is_contiguous="contiguous" in values,
            constraint=values.get("constraint", "") or record.text("constraints").replace("(null)", ""),
            required_nodes=named_nodes(values.get("nodelist", "")),
            excluded_nodes=named_nodes(values.get("exclude", "")),
            reservation=record.text("reservation") or values.get("reservation", ""),
            licences=licence_counts(values.get("licenses", "") or record.text("licenses").replace("(null)", "")),
            nice=slurm_values.whole(values.get("nice", "0") or "100"),
            begin=begins,
            released=self._released(first) if "hold" in values or values.get("priority") == "0" else None,
            deadline=self._moment(values.get("deadline", ""), submit),
            array=str(first.job) if first.task >= 0 else "",
            task=first.task,
            array_limit=first.array_limit or _array_limit(values.get("array", "")),
            dependency="" if values.get("dependency", "") in ("(null)", "none") else values.get("dependency", ""),
            is_requeued=options.last_of("requeue", "no-requeue") != "no-requeue"
            and (self.machine.rules.requeues or "requeue" in values),
            run_s=_run_seconds(last),
        )

    def _partitions(self, options: SubmitOptions, row: JobRow) -> tuple[str, ...]:
        """Return the partitions of a job: of its command, else of its first record."""
        text = options.values.get("partition", "") or row.record.text("partition")
        names = tuple(dict.fromkeys(word for word in text.split(",") if word and word != "(null)"))
        return names or self.machine.default_partition()

    def _released(self, row: JobRow) -> float:
        """Return when a held job was released; after its end, or the end of the dump, if it never was."""
        run = row.run
        return run.eligible if run.eligible is not None else (self.end if run.end is None else run.end) + 1

    def _limit(self, options: SubmitOptions, row: JobRow) -> int | None:
        """Return the time limit in minutes; with --time-min a pass may have lowered the one in the record."""
        text, limit = row.record.text("timelimitraw"), options.values.get("time", "")
        if text.isdigit() and len(text) < 10 and not (limit and "time-min" in options.values):
            return int(text)
        if limit not in ("", "0", "-1") and (minutes := slurm_values.minutes(limit)) is not None:
            return minutes
        if not limit and text.lower() not in ("unlimited", "partition_limit"):
            return None
        names = self._partitions(options, row)
        limits = [partition.max_time_min for partition in self.machine.partitions if partition.name in names]
        return max((limit for limit in limits if limit is not None), default=_NO_LIMIT_MIN)

    def _moment(self, text: str, submit: float) -> float | None:
        """Return the time of --begin or --deadline; None if it needs the calendar of the machine."""
        match = _LATER.fullmatch(text)
        if match:
            return submit + int(match[1] or 0) * _UNITS.get((match[2] or "second").lower().removesuffix("s"), 1)
        if re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
            text += "T00:00:00"
        elif re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d", text, re.ASCII):
            text += ":00"
        try:
            return slurm_values.moment(text, self.machine.zone)
        except ValueError:
            return None


def _array_limit(text: str) -> int | None:
    limit = text.partition("%")[2]
    return int(limit) if limit.isdigit() and 0 < len(limit) < 10 and int(limit) else None


def _run_seconds(row: JobRow) -> float:
    """Return how long a job runs if nothing stops it: infinite if it was killed at its limit, or did not end."""
    state = row.run.state
    if row.elapsed is None or state in ("TIMEOUT", "PREEMPTED", "DEADLINE", *_UNFINISHED):
        return math.inf
    return row.elapsed
