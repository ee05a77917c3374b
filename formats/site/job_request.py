"""Resources that a job requests, from the options of its command and from its record.

Rule: what an option says counts; what no option says comes from the record, which also shows what stood in a script;
then Slurm's defaults. What the job got is used only to see whether it had its nodes for itself.
Source: sbatch(1) and sacct(1) of Slurm 22.05.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo

from ...simulate.slurm.site import SiteNode, SitePartition, SiteRules
from .. import slurm_values
from ..hostlist import expand
from .accounting_table import JobRow, number_of, requested_tres
from .bar_table import Record
from .submit_line import SubmitOptions

_RANGE = re.compile(r"(\d{1,9})([kKmM]?)(?:-(\d{1,9})([kKmM]?))?", re.ASCII)
#: Values of --exclusive for whole nodes.
WHOLE_NODES = ("", "exclusive")
MEMORY_OPTIONS = ("mem", "mem-per-cpu", "mem-per-gpu")


@dataclass(frozen=True, slots=True)
class SiteMachine:
    """Site data that the records of jobs refer to."""

    rules: SiteRules
    nodes: Mapping[str, SiteNode]
    partitions: Sequence[SitePartition]
    zone: tzinfo
    magnetic: frozenset[str] = frozenset()  # names of the reservations that jobs use unasked

    def default_partition(self) -> tuple[str, ...]:
        """Return the partition of jobs that name none."""
        return tuple(partition.name for partition in self.partitions if partition.is_default)[:1]


@dataclass(frozen=True, slots=True)
class JobRequest:
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


def job_request(options: SubmitOptions, row: JobRow, machine: SiteMachine) -> JobRequest:
    """Return how much a job requests."""
    values, record = options.values, row.record
    least, most = _node_range(values.get("nodes", ""))
    cpus_per_task = _count(values.get("cpus-per-task", ""))
    per_node = _count(values.get("ntasks-per-node", ""))
    recorded = recorded_cpus(record)
    nodes = least or number_of(record, "reqnodes") or 1
    required = len(named_nodes(values.get("nodelist", "")))
    tasks = _count(values.get("ntasks", ""))
    if least and tasks and tasks < least:
        nodes = tasks  # sbatch lowers the number of nodes
    nodes = max(nodes, required if not least and not tasks else 1)
    is_exclusive = values.get("exclusive") in WHOLE_NODES
    is_exclusive = is_exclusive or ("exclusive" not in values and _had_whole_nodes(row, recorded, machine))
    if tasks is None and per_node is not None:
        tasks = nodes * per_node
    if tasks is None and recorded and not is_exclusive:
        tasks = max(1, recorded // (cpus_per_task or 1))
    tasks = tasks or nodes
    cpus = max(tasks * (cpus_per_task or 1), nodes, _count(values.get("mincpus", "")) or 0)
    per_node_mib, per_cpu_mib = _memory(options, row, cpus, nodes, machine)
    return JobRequest(
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


def named_nodes(text: str) -> tuple[str, ...]:
    """Return the nodes that an option lists; () for a file with names, which is not there. Raises ConfigError."""
    return expand(text) if text and "/" not in text else ()


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


def recorded_cpus(record: Record) -> int:
    """Return the CPUs that a job requested: Slurm raises ReqCPUS of an exclusive job when it starts; 0: not known."""
    numbers = (number_of(record, "reqcpus"), int(requested_tres(record).get("cpu", 0)))
    return min((number for number in numbers if number), default=0)


def _had_whole_nodes(row: JobRow, requested: int, machine: SiteMachine) -> bool:
    """Return whether a job got all CPUs of its nodes without requesting them, where that is not the partition's way."""
    if not 0 < requested < row.cpus or machine.rules.selects == "nodes":
        return False
    if any(partition.is_exclusive for partition in machine.partitions if partition.name == row.partition):
        return False
    return has_all_cpus(row.nodes, row.cpus, requested, machine)


def has_all_cpus(names: Sequence[str], cpus: int, requested: int, machine: SiteMachine) -> bool:
    """Return whether a job got all CPUs of its nodes, and more than it requested, rounded up to cores.

    Args:
        names: of its nodes.
        cpus: that it got.
        requested: CPUs.
        machine: what has the nodes.
    """
    nodes = [machine.nodes.get(name) for name in names]
    total = sum(node.cpus if node else 0 for node in nodes)
    rounding = sum(node.threads for node in nodes if node)
    return bool(nodes) and None not in nodes and cpus == total > requested + rounding


def _memory(
    options: SubmitOptions, row: JobRow, cpus: int, nodes: int, machine: SiteMachine
) -> tuple[int | None, int | None]:
    """Return the memory for each node and for each CPU, MiB; None: not requested. --mem=0 is all memory of a node."""
    last = options.last_of(*MEMORY_OPTIONS)
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
    name = row.partition.partition(",")[0]
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
