"""Checks of a job by the local adapter, made before it touches anything.

Rule: only what no operating system could start is refused. What a shell would refuse (no such command, no such
directory) is the job's own failure, with a shell's exit code.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from ...formats.documents.quantities import format_size
from ...formats.text import count
from ...machine_share import SLOWING, Limits, affinity
from ...simulate.errors import ConfigError
from ...simulate.model.cluster import Cluster
from ...simulate.model.plan import Submit
from ..base import AdapterError

SOURCE = "local adapter"


def check_options(paths: dict[str, object], grace_s: object, **switches: object) -> None:
    """Raise ConfigError for an option of the wrong type; options come from a configuration file."""
    for option, path in paths.items():
        if not isinstance(path, str | os.PathLike) and not (option == "output_dir" and path is None):
            raise ConfigError(SOURCE, option, f"found {path!r}", "a directory")
    if not isinstance(grace_s, int | float) or isinstance(grace_s, bool) or not 0 <= grace_s < float("inf"):
        raise ConfigError(SOURCE, "grace_s", f"found {grace_s!r}", "seconds, >= 0")
    for option, value in switches.items():
        if not isinstance(value, bool):
            raise ConfigError(SOURCE, option, f"found {value!r}", "true, false")


def check_cluster(cluster: Cluster) -> None:
    """Raise ConfigError if a node has no CPUs, or CPUs that this process may not use."""
    usable = set(affinity())
    for node in cluster.nodes:
        source, key = cluster.source or cluster.name, f"nodes.{node.name}.cpus"
        if not node.cpus:
            raise ConfigError(source, key, "missing", 'such as "0-3"')
        if missing := sorted(set(node.cpus) - usable):
            allowed = ", ".join(map(str, sorted(usable)))
            raise ConfigError(source, key, f"this process may not use CPU {missing[0]}", allowed)


def beyond_limits(cluster: Cluster, limits: Limits) -> Iterator[str]:
    """Yield a sentence for each limit of our control groups that is less than what the nodes have together.

    Args:
        cluster: the nodes.
        limits: of the control groups, which jobs share with us.
    """
    cpus = {cpu for node in cluster.nodes for cpu in node.cpus}
    if limits.cpus < len(cpus):
        yield (
            f"the nodes have {count(len(cpus), 'CPU')}, and CPU time is limited to that of {limits.cpus:.3g}"
            f" ({limits.cpus_file}): jobs that compute at once are throttled, and forecasts do not model it"
        )
    memory = sum(node.type.memory for node in cluster.nodes)
    if limits.memory < memory * (1 - 1e-6):
        beyond = "slows" if limits.memory_file.endswith(SLOWING) else "kills"
        yield (
            f"the nodes have {format_size(memory)} of memory, and all jobs together are limited to"
            f" {format_size(limits.memory)} ({limits.memory_file}): the kernel {beyond} jobs that take more"
        )


def shared_cpus(cluster: Cluster) -> tuple[str, ...]:
    """Return a sentence if nodes share a CPU: allowed, for trials on a small machine, but rarely intended."""
    owner: dict[int, str] = {}
    for node in cluster.nodes:
        for cpu in node.cpus:
            if (first := owner.setdefault(cpu, node.name)) != node.name:
                shared = f"nodes {first!r} and {node.name!r} share CPU {cpu}"
                return (f"{shared}: jobs on them slow each other down, and forecasts do not model it",)
    return ()


def check_start(start: Submit, cluster: Cluster) -> None:
    """Raise AdapterError (refused) for what could never be started on this cluster."""
    job = start.job
    problem = ""
    if unknown := [node for node in start.nodes if node not in cluster.index]:
        problem = f"node {unknown[0]!r} is not in cluster {cluster.name!r}"
    elif not start.nodes or len(set(start.nodes)) != len(start.nodes):
        problem = "it needs one or more different nodes"
    elif not start.key or not job.command:
        problem = "it has no command" if start.key else "its key is empty"
    elif any("=" in name or not name for name, _ in job.environment):
        problem = "a variable of its environment has no name, or '=' in it"
    else:
        variables = (text for pair in job.environment for text in pair)
        for text in (start.key, job.id, job.directory or "", *job.command, *variables):
            try:
                if b"\0" in os.fsencode(text):
                    problem = f"{text!r:.60} holds a NUL"
            except UnicodeEncodeError:
                problem = f"{text!r:.60} cannot be encoded"
    if problem:
        raise AdapterError(f"job {start.key!r} cannot be started: {problem}", kind="refused", argv=job.command or ())
