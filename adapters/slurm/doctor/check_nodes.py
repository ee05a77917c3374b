"""Check the separation of jobs on their nodes, power saving, and that the cluster file agrees with Slurm.

Rule: pure.
Source: slurm.conf(5): SelectTypeParameters, TaskPlugin, JobAcctGatherParams, SuspendProgram; cgroup.conf(5), which
`scontrol show config` repeats if a cgroup plugin is in use.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ....formats.hostlist import fold
from ....formats.text import count
from ....simulate.model.cluster import Cluster
from ...findings import NOTE, OK, PROBLEM, WARNING, Finding, ServiceState
from ..records import SlurmNode
from .questions import Answers

#: Share by which the memory of a cluster file may differ from Slurm's.
NEAR = 0.1


def findings(answers: Answers, cluster: Cluster | None, service: ServiceState) -> Iterator[Finding]:
    """Yield memory, power, and the cluster file."""
    yield _memory(answers)
    yield from _power(answers, service)
    if cluster is not None:
        yield from _cluster(answers.nodes, cluster)


def _memory(answers: Answers) -> Finding:
    chosen = answers.config["SelectTypeParameters"]
    if "MEMORY" not in chosen.upper():
        return Finding(NOTE, "memory", f"SelectTypeParameters={chosen or '(none)'}: Slurm does not count memory; "
                       "pilotfish counts what jobs ask for")  # fmt: skip
    if "OverMemoryKill" in answers.config.words("JobAcctGatherParams"):
        return Finding(OK, "memory", "it is counted, and a job that takes more is ended (OverMemoryKill)")
    if "task/cgroup" not in answers.config.words("TaskPlugin"):
        return Finding(NOTE, "memory", "it is counted, but not enforced (TaskPlugin has no task/cgroup): a job may "
                       "take its neighbours' memory")  # fmt: skip
    enforced = constrains(answers)
    if enforced is None:
        message = "it is counted; whether it is enforced (ConstrainRAMSpace in cgroup.conf) cannot be seen from here"
        return Finding(NOTE, "memory", message)
    if not enforced:
        return Finding(NOTE, "memory", "it is counted, but not enforced: a job may take its neighbours' memory",
                       ("ConstrainRAMSpace=yes   # in cgroup.conf",))  # fmt: skip
    return Finding(OK, "memory", "it is counted, and enforced by cgroups (ConstrainRAMSpace)")


def constrains(answers: Answers) -> bool | None:
    """Return whether cgroups keep jobs to their memory; None: unknown."""
    value = answers.config["ConstrainRAMSpace"]
    if not value:
        text = answers.files.get("cgroup.conf")
        if text is None:
            return False if answers.at_controller and "cgroup.conf" not in answers.unread else None
        values = re.findall(r"^\s*ConstrainRAMSpace\s*=\s*(\w+)", text, re.MULTILINE | re.IGNORECASE)
        value = values[-1] if values else "no"
    return value.lower() in ("yes", "true", "1", "on")


def _power(answers: Answers, service: ServiceState) -> Iterator[Finding]:
    sleeps = answers.config["SuspendProgram"] and answers.config["ResumeProgram"]
    if sleeps and not service.power_save:
        message = "Slurm can power nodes down and wake them for a job; power.save would use that, as an administrator"
        yield Finding(NOTE, "power", message)
    elif sleeps:
        yield Finding(OK, "power", "power.save: Slurm can power nodes down and wake them for a job")
    elif service.power_save:
        message = "power.save is set, but Slurm has no SuspendProgram and ResumeProgram: no node would ever wake again"
        yield Finding(PROBLEM, "power", message, ("power: {save: false}   # in pilotfish.yaml",))


def _cluster(nodes: Iterable[SlurmNode], cluster: Cluster) -> Iterator[Finding]:
    by_name = {node.name: node for node in nodes}
    source = cluster.source or "the cluster file"
    absent = [node.name for node in cluster.nodes if node.name not in by_name]
    if absent:
        level = PROBLEM if len(absent) == len(cluster.nodes) else WARNING
        yield Finding(level, "cluster", f"{source}: Slurm has no {fold(absent)}; they count as down",
                      ("pilotfish cluster --adapter slurm > cluster.yaml",))  # fmt: skip
    pairs = [(node, by_name[node.name]) for node in cluster.nodes if node.name in by_name]
    cores = [node.name for node, slurm_node in pairs if node.type.cores != slurm_node.cpus]
    if cores:
        yield Finding(WARNING, "cluster", f"{source}: {fold(cores)} have another number of CPUs in Slurm; jobs are "
                      "planned with the file's")  # fmt: skip
    memory = [node.name for node, slurm_node in pairs if node.type.memory > slurm_node.memory * (1 + NEAR)]
    if memory:
        yield Finding(WARNING, "cluster", f"{source}: {fold(memory)} have less memory in Slurm")
    unlisted = [name for name in by_name if name not in cluster.index]
    if unlisted:
        yield Finding(NOTE, "cluster", f"{source} leaves out {fold(unlisted)}: pilotfish places nothing there")
    if not (absent or cores or memory):
        yield Finding(OK, "cluster", f"{source} agrees with Slurm about {count(len(pairs), 'node')}")
