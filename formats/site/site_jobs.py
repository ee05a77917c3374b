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
from dataclasses import dataclass
from datetime import tzinfo

from ...simulate.errors import ConfigError
from ...simulate.slurm.site import SiteJob, SiteNode, SitePartition, SiteRules
from .. import slurm_values
from ..hostlist import expand
from .accounting_table import JobRow, number_of, requested_tres
from .site_rules import licence_counts
from .submit_line import SubmitOptions, submit_options

_LATER = re.compile(r"now(?:\+(\d{1,9})\s*(seconds?|minutes?|hours?|days?|weeks?|)s?)?", re.ASCII | re.IGNORECASE)
_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
_RANGE = re.compile(r"(\d{1,9})([kKmM]?)(?:-(\d{1,9})([kKmM]?))?", re.ASCII)
#: The limit of a job without any, as backfilling counts it: 365 days.
_NO_LIMIT_MIN = 525_600
_UNFINISHED = ("RUNNING", "PENDING", "SUSPENDED", "COMPLETING", "REQUEUED", "RESIZING")
#: Values of --exclusive for whole nodes.
_WHOLE_NODES = ("", "exclusive")
#: Options that a replay does not follow, and that change where or when a job starts.
_UNFOLLOWED = frozenset((
    "batch", "bb", "bbf", "cluster-constraint", "core-spec", "cores-per-socket", "extra-node-info",
    "gpus-per-socket", "hint", "nodefile", "ntasks-per-core", "ntasks-per-socket", "overcommit",
    "oversubscribe", "prefer", "segment", "sockets-per-node", "spread-job", "switches", "thread-spec",
    "threads-per-core", "tmp", "use-min-nodes",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class SiteMachine:
    """Site data that the records of jobs refer to."""

    rules: SiteRules
    nodes: Mapping[str, SiteNode]
    partitions: Sequence[SitePartition]
    zone: tzinfo

    def default_partition(self) -> tuple[str, ...]:
        """Return the partition of jobs that name none."""
        return tuple(partition.name for partition in self.partitions if partition.is_default)[:1]


class JobReader:
    """Makes jobs; `left_out` and `unfollowed` count what is not read and what is not followed.

    Args:
        machine: what the records refer to.
        end: the last time in the dump, epoch seconds.
    """

    def __init__(self, machine: SiteMachine, end: float = 0.0) -> None:
        self.machine, self.end = machine, end
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
        return self._options[key]

    def _job(self, group: Sequence[JobRow]) -> SiteJob:
        first, last = group[0], group[-1]
        record = first.record
        options = self.options(first)
        values = options.values
        for name in options.unknown:
            self.unknown_options[name] += 1
        for name in _UNFOLLOWED & values.keys():
            self.unfollowed[name] += 1
        if (kind := values.get("exclusive", "")) not in _WHOLE_NODES:
            self.unfollowed[f"exclusive={kind}"] += 1
        self.hidden += not options.is_whole
        request = _request(options, last, self.machine)
        recorded = _recorded_cpus(last)
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
            required_nodes=_nodes(values.get("nodelist", "")),
            excluded_nodes=_nodes(values.get("exclude", "")),
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


def _nodes(text: str) -> tuple[str, ...]:
    return expand(text) if text and "/" not in text else ()


def _array_limit(text: str) -> int | None:
    limit = text.partition("%")[2]
    return int(limit) if limit.isdigit() and 0 < len(limit) < 10 and int(limit) else None


def _run_seconds(row: JobRow) -> float:
    """Return how long a job runs if nothing stops it: infinite if it was killed at its limit, or did not end."""
    state = row.run.state
    if row.elapsed is None or state in ("TIMEOUT", "PREEMPTED", "DEADLINE", *_UNFINISHED):
        return math.inf
    return row.elapsed


@dataclass(frozen=True, slots=True)
class _Request:
    """Resources that a job requests; memory in MiB."""

    nodes: int
    most_nodes: int | None
    tasks: int
    cpus_per_task: int
    tasks_per_node: int | None
    cpus: int
    memory_per_node: int | None
    memory_per_cpu: int | None
    gpus: int
    is_exclusive: bool


def _request(options: SubmitOptions, row: JobRow, machine: SiteMachine) -> _Request:
    """Return how much a job requests."""
    values, record = options.values, row.record
    least, most = _node_range(values.get("nodes", ""))
    cpus_per_task = _count(values.get("cpus-per-task", ""))
    per_node = _count(values.get("ntasks-per-node", ""))
    recorded = _recorded_cpus(row)
    nodes = least or number_of(record, "reqnodes") or 1
    required = len(_nodes(values.get("nodelist", "")))
    tasks = _count(values.get("ntasks", ""))
    if least and tasks and tasks < least:
        nodes = tasks  # sbatch lowers the number of nodes
    nodes = max(nodes, required if not least and not tasks else 1)
    is_exclusive = values.get("exclusive") in _WHOLE_NODES
    is_exclusive = is_exclusive or ("exclusive" not in values and _had_whole_nodes(row, recorded, machine))
    if tasks is None and per_node is not None:
        tasks = nodes * per_node
    if tasks is None and recorded and not is_exclusive:
        tasks = max(1, recorded // (cpus_per_task or 1))
    tasks = tasks or nodes
    cpus = max(tasks * (cpus_per_task or 1), nodes, _count(values.get("mincpus", "")) or 0)
    per_node_mib, per_cpu_mib = _memory(options, row, cpus, nodes, machine)
    return _Request(
        nodes=nodes,
        most_nodes=most if least else None,
        tasks=tasks,
        cpus_per_task=cpus_per_task or 1,
        tasks_per_node=per_node,
        cpus=cpus,
        memory_per_node=per_node_mib,
        memory_per_cpu=per_cpu_mib,
        gpus=_gpus(values, tasks, nodes),
        is_exclusive=is_exclusive,
    )


def _count(text: str) -> int | None:
    """Return a whole number above 0; None for an option that is not there. Raises ValueError."""
    if not text:
        return None
    number = slurm_values.count(text) or 0
    if not 0 < number < 2**31:
        raise ValueError(f"{text!r} is not a count")
    return number


def _node_range(text: str) -> tuple[int | None, int | None]:
    """Return the least and the most nodes of -N; both None without it."""
    if not text:
        return None, None
    match = _RANGE.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is not a number of nodes")
    scale = {"": 1, "k": 1024, "m": 1024**2}
    least = int(match[1]) * scale[match[2].lower()]
    most = int(match[3]) * scale[match[4].lower()] if match[3] else least
    return least or 1, max(most, least)


def _recorded_cpus(row: JobRow) -> int:
    """Return the CPUs that a job requested: Slurm raises ReqCPUS of an exclusive job when it starts; 0: not known."""
    numbers = (number_of(row.record, "reqcpus"), int(requested_tres(row.record).get("cpu", 0)))
    return min((number for number in numbers if number), default=0)


def _had_whole_nodes(row: JobRow, requested: int, machine: SiteMachine) -> bool:
    """Return whether a job got all CPUs of its nodes without requesting them, where that is not the partition's way."""
    run = row.run
    if not run.nodes or not requested or machine.rules.selects == "nodes":
        return False
    if any(partition.is_exclusive for partition in machine.partitions if partition.name == run.partition):
        return False
    nodes = [machine.nodes.get(name) for name in run.nodes]
    total = sum(node.cpus if node else 0 for node in nodes)
    rounding = sum(node.threads for node in nodes if node)
    return None not in nodes and run.cpus == total > requested + rounding


def _memory(
    options: SubmitOptions, row: JobRow, cpus: int, nodes: int, machine: SiteMachine
) -> tuple[int | None, int | None]:
    """Return the memory for each node and for each CPU, MiB; None: not requested. --mem=0 is all memory of a node."""
    last = options.last_of("mem", "mem-per-cpu", "mem-per-gpu")
    if last:
        memory = slurm_values.mebibytes(options.values[last]) or 0
        if last == "mem-per-gpu":
            return memory * max(1, _gpus(options.values, 1, nodes)), None
        return (memory, None) if last == "mem" else (None, memory)
    text = row.record.text("reqmem")
    if not machine.rules.counts_memory or text in ("", "0"):
        return None, None
    memory = slurm_values.mebibytes(text.rstrip("nc?")) or 0
    if text.endswith("n"):
        return memory, None
    if text.endswith("c"):
        return None, memory
    if _is_default(row, memory, cpus, nodes, machine):
        return None, None
    return (None, memory // cpus) if memory % cpus == 0 and memory % nodes else (-(-memory // nodes), None)


def _is_default(row: JobRow, memory: int, cpus: int, nodes: int, machine: SiteMachine) -> bool:
    """Return whether the memory of a record is what Slurm fills in where nothing is requested."""
    name = row.run.partition.partition(",")[0]
    partition = next((partition for partition in machine.partitions if partition.name == name), None)
    rules = machine.rules
    per_cpu = (partition and partition.default_memory_per_cpu_mib) or rules.default_memory_per_cpu_mib
    per_node = (partition and partition.default_memory_per_node_mib) or rules.default_memory_per_node_mib
    if per_cpu or per_node:
        return memory in ((per_cpu or 0) * cpus, (per_node or 0) * nodes)
    return memory in {node.memory_mib * nodes for node in machine.nodes.values()}


def _gpus(values: Mapping[str, str], tasks: int, nodes: int) -> int:
    """Return the GPUs of each node; a total is divided among the nodes, rounded up."""
    if number := slurm_values.gpus(filter(None, values.get("gres", "").split(","))):
        return number
    for name, share in (("gpus-per-node", 1), ("gpus", nodes), ("gpus-per-task", nodes)):
        if text := values.get(name, ""):
            number = sum(int(word.rpartition(":")[2]) for word in text.split(",") if word.rpartition(":")[2].isdigit())
            return -(-number * (tasks if name == "gpus-per-task" else 1) // share)
    return 0
