"""Jobs of a site from the records of sacct and the options of their commands.

Rule: what an option says counts; what no option says comes from the record, which also shows what stood in a script;
then Slurm's defaults. A value that cannot be read leaves the job out, and is counted by reason.
Source: sbatch(1) and sacct(1) of Slurm 22.05.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...simulate.arrays import Array
from ...simulate.errors import ConfigError
from ...simulate.slurm.job_columns import Coded, SiteJobs, constant, distinct
from ...simulate.slurm.site import SiteJob
from .. import slurm_values
from .accounting_table import JobGroups, JobRow, SiteAccounting
from .bar_table import Record
from .job_request import (
    MEMORY_OPTIONS,
    WHOLE_NODES,
    SiteMachine,
    has_all_cpus,
    job_request,
    named_nodes,
    recorded_cpus,
)  # fmt: skip
from .site_rules import licence_counts
from .submit_line import SubmitOptions, submit_options

_LATER = re.compile(r"now(?:\+(\d{1,9})\s*(seconds?|minutes?|hours?|days?|weeks?|)s?)?", re.ASCII | re.IGNORECASE)
_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
#: Time limits in records that are not minutes; the numbers are what Slurm keeps for none and for no limit.
_NO_LIMITS = frozenset(("", "unlimited", "partition_limit", "4294967294", "4294967295"))
#: The limit of a job without any, as backfilling counts it: 365 days.
_NO_LIMIT_MIN = 525_600
#: States of jobs that would have run on: something stopped them, or they did not end.
_GOES_ON = frozenset((
    "TIMEOUT", "NODE_FAIL", "PREEMPTED", "DEADLINE", "RUNNING", "PENDING", "SUSPENDED", "COMPLETING", "REQUEUED",
    "RESIZING",
))  # fmt: skip
REQUEUE_OPTIONS = ("requeue", "no-requeue")
#: Most time between the submission of a job and that of most others, seconds.
_LONGEST_S = 10 * 366 * 86_400.0
#: Times of runs that the dump reaches to.
_TIMES = ("submit", "start", "end")
_NO_JOB = SiteJob("", "", "", "", "", (), 0.0)
#: Options that a replay does not follow, and that change where or when a job starts.
UNFOLLOWED = frozenset((
    "batch", "bb", "bbf", "cluster-constraint", "core-spec", "cores-per-socket", "extra-node-info",
    "gpus-per-socket", "hint", "kill-on-invalid-dep", "nodefile", "ntasks-per-core", "ntasks-per-gpu",
    "ntasks-per-socket", "overcommit", "oversubscribe", "prefer", "segment", "sockets-per-node", "spread-job",
    "switches", "thread-spec", "threads-per-core", "tmp", "tres-per-task", "use-min-nodes",
))  # fmt: skip


#: Kinds of dependencies that are followed.
_DEPENDENCIES = frozenset(("after", "afterany", "afterok", "afternotok", "aftercorr", "singleton"))


def _unfollowed_dependency(text: str) -> str:
    """Return what in a dependency a replay does not follow, "" for nothing."""
    if "?" in text:
        return "?"
    kinds = (term.partition(":")[0].strip().lower() for term in text.split(",") if term)
    return next((kind for kind in kinds if kind not in _DEPENDENCIES), "")


#: Options that say nothing about a request, or that each job has for itself.
_OWN_OPTIONS = frozenset((
    "account", "begin", "chdir", "comment", "deadline", "dependency", "error", "input", "job-name", "mail-type",
    "mail-user", "output", "wckey", "wrap",
))  # fmt: skip
#: Columns of the first record of a job, and of its last one, that a request is read from.
_OF_FIRST = ("qos", "partition", "timelimitraw", "constraints", "reservation", "licenses")
_OF_LAST = ("reqnodes", "reqcpus", "reqtres", "reqmem")


@dataclass(frozen=True, slots=True)
class _Command:
    """Options that a job has for itself; `request`: number of those that it shares with other commands."""

    request: int
    account: str
    dependency: str
    begin: str | None
    deadline: str
    is_held: bool


class JobReader:
    """Makes jobs; `left_out` and `unfollowed` count what is not read and what is not followed.

    Rule: a command is read once for all jobs that have it, and a request once for all jobs that share its options and
    the columns that it is read from.

    Args:
        machine: what the records refer to.
        accounting: the records.
        scripts: the options of scripts by JobID or JobIDRaw.
        later_s: seconds after the last time in the records at which jobs that are held now are released.
    """

    def __init__(
        self, machine: SiteMachine, accounting: SiteAccounting, scripts: Mapping[str, SubmitOptions], later_s: float
    ) -> None:
        self.machine, self.accounting, self.scripts, self.later_s = machine, accounting, scripts, later_s
        self.left_out: Counter[str] = Counter()
        self.unfollowed: Counter[str] = Counter()
        self.unknown_options: Counter[str] = Counter()
        self.hidden = self.differing = 0
        self._requests: dict[Hashable, int] = {}
        self._options = list[SubmitOptions]()

    def jobs(self) -> SiteJobs:
        """Return the jobs by submission, then id. O(jobs log jobs + commands + requests)."""
        groups, rows = self._with_plausible_times(self.accounting.groups()), self.accounting.rows
        first, last = groups.runs[groups.begin[:-1]], groups.runs[groups.begin[1:] - 1]
        commands, command = self._commands(first)
        for number, one in zip(np.bincount(command, minlength=len(commands)).tolist(), commands, strict=True):
            if unknown := _unfollowed_dependency(one.dependency):
                self.unfollowed[f"dependency with {unknown}"] += number
        request_of = np.array([one.request for one in commands], np.int64)[command]
        keys = (
            request_of, rows["array_limit"][first], *(self.accounting.codes(name, first) for name in _OF_FIRST),
            *(self.accounting.codes(name, last) for name in _OF_LAST), rows["partition"][last],
            self._have_whole_nodes(last),
        )  # fmt: skip
        examples, pattern = distinct(*keys)
        patterns = [
            self._job(int(first[job]), int(last[job]), int(number), request)
            for job, number, request in zip(examples, np.bincount(pattern), request_of[examples].tolist(), strict=True)
        ]
        is_read = np.array([one is not None for one in patterns], bool)[pattern]
        period_end = max(float(np.nanmax(rows[name][groups.runs], initial=0.0)) for name in _TIMES) + self.later_s
        return self._columns(groups.select(is_read), patterns, pattern[is_read], commands, command[is_read], period_end)

    def _with_plausible_times(self, groups: JobGroups) -> JobGroups:
        """Leave out jobs that were submitted far from most others, as by a clock that stood at 1970. O(jobs)."""
        submit = self.accounting.rows["submit"][groups.runs[groups.begin[:-1]]]
        middle = (len(submit) - 1) // 2
        is_far = np.abs(submit - np.partition(submit, middle)[middle]) > _LONGEST_S if len(submit) else submit > 0
        if not 0 < 2 * is_far.sum() < len(submit):
            return groups
        self.left_out["jobs submitted more than 10 years before or after most others"] += int(is_far.sum())
        return groups.select(~is_far)

    def _columns(
        self, groups: JobGroups, patterns: Sequence[SiteJob | None], pattern: Array, commands: Sequence[_Command],
        command: Array, period_end: float,
    ) -> SiteJobs:  # fmt: skip
        """Return the jobs of groups: their patterns, and what they have for themselves."""
        accounting, rows = self.accounting, self.accounting.rows
        first, last = groups.runs[groups.begin[:-1]], groups.runs[groups.begin[1:] - 1]
        have_times = np.array([one.begin is not None or one.deadline != "" or one.is_held for one in commands], bool)
        jobs_with_times = np.flatnonzero(have_times[command]).tolist()
        begin, released, deadline = (constant(np.nan, np.float64, len(first)) for _ in range(3))
        if jobs_with_times:
            begin, released, deadline = begin.copy(), released.copy(), deadline.copy()
        for job in jobs_with_times:
            one, row = commands[command[job]], first[job]
            submit, eligible, end = (float(rows[name][row]) for name in ("submit", "eligible", "end"))
            if one.begin is not None:
                moment = self._moment(one.begin, submit)
                # sbatch reads its clock before Slurm notes the submission, so the job may be eligible a little sooner.
                begin[job] = eligible if moment is None or submit < eligible < moment else moment
            if (moment := self._moment(one.deadline, submit)) is not None:
                deadline[job] = moment
            if one.is_held:  # after its end, or the end of the dump, if it was never released
                released[job] = (period_end if math.isnan(end) else end) + 1 if math.isnan(eligible) else eligible
        goes_on = np.array([state in _GOES_ON for state in accounting.states()], bool)
        elapsed = rows["elapsed"][last]
        arrays, array = distinct(np.where(rows["task"][first] >= 0, rows["job"][first], -1))
        dependencies = Coded.of(one.dependency for one in commands)
        return SiteJobs(
            patterns=[one if one is not None else _NO_JOB for one in patterns],
            pattern=pattern,
            ids=accounting.ids(first),
            names=self.accounting.texts("jobname", first),
            users=self.accounting.texts("user", first),
            accounts=self._accounts(first, commands, command),
            arrays=Coded([self._array(first[job]) for job in arrays.tolist()], array),
            dependencies=Coded(dependencies.values, dependencies.codes[command]),
            submit=rows["submit"][first],
            begin=begin,
            released=released,
            deadline=deadline,
            run_s=np.where(np.isnan(elapsed) | goes_on[rows["state"][last]], np.inf, elapsed),
            task=rows["task"][first],
            first_run=groups.begin,
            runs=accounting.runs(groups.runs),
        )

    def _array(self, row: int) -> str:
        return str(self.accounting.rows["job"][row]) if self.accounting.rows["task"][row] >= 0 else ""

    def _accounts(self, rows: Array, commands: Sequence[_Command], command: Array) -> Coded[str]:
        """Return the accounts: of the records, else of the commands."""
        column = self.accounting.texts("account", rows)
        lacks = np.flatnonzero(np.array([name == "" for name in column.values], bool)[column.codes])
        if not len(lacks):
            return column
        names = Coded.of(one.account for one in commands)
        codes = column.codes.copy()
        codes[lacks] = len(column.values) + names.codes[command[lacks]]
        return Coded([*column.values, *names.values], codes)

    # --- commands ---
    def _commands(self, rows: Array) -> tuple[list[_Command], Array]:
        """Return the different commands of jobs, and the one of each job; only a name with blanks changes a reading."""
        names = self.accounting.texts("jobname", rows)
        has_blanks = self.accounting.has_blanks("jobname", rows)
        component, script = self.accounting.rows["component"][rows], self._script_rows(rows)
        lines = self.accounting.codes("submitline", rows)
        first, command = distinct(lines, np.where(has_blanks, names.codes, -1), component, script)
        scripts, texts = list(self.scripts.values()), self.accounting.texts("submitline", rows)
        commands = list[_Command]()
        for job in first.tolist():
            number = int(self.accounting.components()[component[job]] or 0)
            options = submit_options(texts[job], names[job], number)
            if script[job] >= 0 and not options.is_whole:
                options = options.over(scripts[script[job]])
            commands.append(self._command(options))
        return commands, command

    def _script_rows(self, rows: Array) -> Array:
        """Return the row of the script of each job, -1 without any."""
        if not self.scripts:
            return np.full(len(rows), -1)
        place_of = {job: row for row, job in enumerate(self.scripts)}
        raw_ids, numbers = self.accounting.texts("jobidraw", rows), self.accounting.rows["job"][rows].tolist()
        return np.array(
            [
                next((place_of[job] for job in jobs if job in place_of), -1)
                for jobs in zip(self.accounting.ids(rows), raw_ids, map(str, numbers), strict=True)
            ],
            np.int64,
        )

    def _command(self, options: SubmitOptions) -> _Command:
        values = options.values
        shared = tuple(sorted((name, value) for name, value in values.items() if name not in _OWN_OPTIONS))
        orders = tuple(options.last_of(*names) for names in (MEMORY_OPTIONS, REQUEUE_OPTIONS))
        request = self._requests.setdefault((shared, orders, options.unknown, options.is_whole), len(self._options))
        if request == len(self._options):
            self._options.append(options)
        dependency = values.get("dependency", "")
        return _Command(
            request=request,
            account=values.get("account", ""),
            dependency="" if dependency in ("(null)", "none") else dependency,
            begin=values.get("begin"),
            deadline=values.get("deadline", ""),
            is_held="hold" in values or values.get("priority") == "0",
        )

    # --- requests ---
    def _have_whole_nodes(self, rows: Array) -> Array:
        """Return which jobs got all CPUs of their nodes, and more than they requested."""
        accounting = self.accounting
        cpus, nodes = accounting.rows["cpus"][rows], accounting.rows["nodelist"][rows]
        first, pair = distinct(self.accounting.codes("reqcpus", rows), self.accounting.codes("reqtres", rows))
        records = (accounting.record(row, "reqcpus", "reqtres") for row in rows[first].tolist())
        requested = np.array([_requested(record) for record in records], np.int64)[pair]
        result = np.zeros(len(rows), bool)
        candidates = np.flatnonzero((requested > 0) & (cpus > requested))
        first, request = distinct(nodes[candidates], cpus[candidates], requested[candidates])
        names = accounting.runs(rows[candidates[first]]).nodes
        answers = [
            has_all_cpus(names[place], int(cpus[job]), int(requested[job]), self.machine)
            for place, job in enumerate(candidates[first].tolist())
        ]
        result[candidates] = np.array(answers, bool)[request]
        return result

    def _job(self, first: int, last: int, jobs: int, request: int) -> SiteJob | None:
        """Return the pattern of so many jobs; None, and they are counted, if a value cannot be read.

        Args:
            first: the row of the first run of one of them.
            last: the row of its last run.
            jobs: how many they are.
            request: the row of their options.
        """
        first_row = last_row = self.accounting.row(first)
        if last != first:
            last_row = self.accounting.row(last)
        try:
            return self._pattern(first_row, last_row, jobs, self._options[request])
        except (ValueError, OverflowError, ConfigError):
            self.left_out["jobs with an option or a request that cannot be read"] += jobs
            return None

    def _pattern(self, first: JobRow, last: JobRow, jobs: int, options: SubmitOptions) -> SiteJob:
        record, values = first.record, options.values
        for name in options.unknown:
            self.unknown_options[name] += jobs
        for name in UNFOLLOWED & values.keys():
            self.unfollowed[name] += jobs
        if "cpus-per-gpu" in values and ("ntasks" in values or "ntasks-per-node" in values):
            self.unfollowed["cpus-per-gpu"] += jobs
        for name in sorted(_unfollowed_gres(values)):
            self.unfollowed[name] += jobs
        if values.get("priority", "0") != "0":
            self.unfollowed["priority"] += jobs
        if re.search(r"[*\[]", values.get("constraint", "")):
            self.unfollowed["constraint with [] or *"] += jobs
        for name in ("qos", "reservation"):
            if "," in values.get(name, ""):
                self.unfollowed[f"{name} with more than one"] += jobs
        if (kind := values.get("exclusive", "")) not in WHOLE_NODES:
            self.unfollowed[f"exclusive={kind}"] += jobs
        self.hidden += jobs * (not options.is_whole)
        request = job_request(options, last, self.machine)
        recorded = recorded_cpus(last.record)
        self.differing += jobs * (recorded not in (0, request.cpus) and not request.is_exclusive)
        return replace(
            _NO_JOB,
            qos=record.text("qos"),
            partitions=self._partitions(options, first),
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
            reservation=self._reservation(record.text("reservation"), values.get("reservation", "")),
            licences=licence_counts(values.get("licenses", "") or record.text("licenses").replace("(null)", "")),
            nice=slurm_values.whole(values.get("nice", "0") or "100"),
            array_limit=first.array_limit or _array_limit(values.get("array", "")),
            is_requeued=options.last_of(*REQUEUE_OPTIONS) != "no-requeue"
            and (self.machine.rules.requeues or "requeue" in values),
        )

    def _reservation(self, recorded: str, requested: str) -> str:
        """Return the reservation of a job: the one it ran in, unless that is one that it used unasked."""
        return "" if recorded in self.machine.magnetic and not requested else recorded or requested

    def _partitions(self, options: SubmitOptions, row: JobRow) -> tuple[str, ...]:
        """Return the partitions of a job: of its command, else of its first record."""
        text = options.values.get("partition", "") or row.record.text("partition")
        names = tuple(dict.fromkeys(word for word in text.split(",") if word and word != "(null)"))
        return names or self.machine.default_partition()

    def _limit(self, options: SubmitOptions, row: JobRow) -> int | None:
        """Return the time limit in minutes; with --time-min a pass may have lowered the one in the record."""
        text, limit = row.record.text("timelimitraw"), options.values.get("time", "")
        if text.isdigit() and len(text) < 10 and not (limit and "time-min" in options.values):
            return int(text)
        if limit not in ("", "0", "-1") and (minutes := slurm_values.minutes(limit)) is not None:
            return minutes
        if text.lower() not in _NO_LIMITS:
            raise ValueError(f"{text[:40]!r} is not a time limit")
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


def _unfollowed_gres(values: Mapping[str, str]) -> set[str]:
    """Return what of the generic resources in options is not followed: those that are no GPUs, and types of GPUs."""
    names = set[str]()
    for word in filter(None, values.get("gres", "").removeprefix("gres/").split(",")):
        name, *parts = re.split(r"[:=]", word.removeprefix("gres/"))
        if name not in ("gpu", "none", "(null)"):
            names.add(f"gres={name}")
        elif parts and not parts[0].isdigit():
            names.add("gres with a type of GPU")
    for option in ("gpus", "gpus-per-node", "gpus-per-task"):
        if not re.fullmatch(r"\d*", values.get(option, ""), re.ASCII):
            names.add(f"{option} with a type of GPU")
    return names


def _array_limit(text: str) -> int | None:
    limit = text.partition("%")[2]
    return int(limit) if limit.isdigit() and 0 < len(limit) < 10 and int(limit) else None


def _requested(record: Record) -> int:
    """Return the CPUs that a job requested; 0 if that is not known, or cannot be read."""
    try:
        return recorded_cpus(record)
    except (ValueError, OverflowError):
        return 0
