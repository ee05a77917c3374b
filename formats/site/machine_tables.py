"""Nodes and partitions of a site from lines of slurm.conf, or from records of scontrol that read alike.

Rule: nodes stand in the order of the lines, which is their index in Slurm. Cores and memory that are reserved for the
system are not there. The state of a node is the configured one; how it changed is in the events.
Source: slurm.conf(5) of Slurm 22.05.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from ...simulate.errors import ConfigError
from ...simulate.slurm.site import SiteNode, SitePartition
from .. import slurm_values
from ..documents.document_errors import found
from ..hostlist import MOST_NODES, expand, parse_cpus
from ..text import count
from .site_rules import is_yes, memory_limit, memory_per_cpu, over_time
from .slurm_conf import ConfLine, SlurmConf

T = TypeVar("T")
#: Minutes over the limit that count as UNLIMITED.
_FOR_EVER_MIN = 65_534
_NO_JOBS = ("DOWN", "DRAIN", "FAIL", "FUTURE", "MAINT")


def _value(line: ConfLine, names: Sequence[str], convert: Callable[[str], T], default: T, allowed: str) -> T:
    """Return the value of the first of these keys that the line has; `default` without. Raises ConfigError."""
    for name in names:
        text = line.values.get(name, "")
        if text:
            try:
                return convert(text)
            except (ValueError, OverflowError):
                raise line.error(found(text), allowed, name) from None
    return default


def _hosts(line: ConfLine, text: str, key: str) -> tuple[str, ...]:
    try:
        return expand(text)
    except ConfigError as error:
        raise line.error(error.problem, error.allowed, key) from None


def _positive(text: str) -> int:
    number = slurm_values.whole(text)
    if not 0 < number < 2**31:
        raise ValueError
    return number


def _natural(text: str) -> int:
    number = slurm_values.whole(text)
    if not 0 <= number < 2**32:
        raise ValueError
    return number


def site_nodes(lines: Sequence[ConfLine], down: Sequence[ConfLine], unknown: list[str]) -> dict[str, SiteNode]:
    """Return the nodes by name, in order.

    Args:
        lines: those of `NodeName`.
        down: those of `DownNodes`.
        unknown: receives what is not followed.

    Raises:
        ConfigError: a value cannot be read.
    """
    nodes: dict[str, SiteNode] = {}
    twice = 0
    for line in lines:
        pattern = _node(line)
        for name in _hosts(line, line.values["nodename"], "NodeName"):
            twice += name in nodes
            nodes[name] = replace(pattern, name=name)
        if len(nodes) > MOST_NODES:
            raise line.error(f"more than {MOST_NODES} nodes")
    if twice:
        unknown.append(f"{count(twice, 'node name')} in two lines: the last line counts")
    for line in down:
        if line.values.get("state", "DOWN").upper().startswith(_NO_JOBS):
            for name in _hosts(line, line.values["downnodes"], "DownNodes"):
                if name in nodes:
                    nodes[name] = replace(nodes[name], works=False)
    return nodes


def awake_nodes(conf: SlurmConf, nodes: Mapping[str, SiteNode], parts: Sequence[SitePartition]) -> dict[str, SiteNode]:
    """Return the nodes; those of SuspendExcNodes and SuspendExcParts never sleep. Raises ConfigError.

    Args:
        conf: the settings.
        nodes: by name.
        parts: the partitions.
    """
    names = set[str]()
    for key in ("suspendexcnodes", "suspendexcparts"):
        text = re.sub(r":\d+", "", conf.text(key))
        if not text or text.lower() in slurm_values.UNKNOWN:
            continue
        if key == "suspendexcnodes":
            names |= set(_hosts(conf.settings[key], text, "SuspendExcNodes"))
        else:
            names |= {name for part in parts if part.name in text.split(",") for name in part.nodes}
    return {name: replace(node, stays_on=name in names) for name, node in nodes.items()} if names else dict(nodes)


def _node(line: ConfLine) -> SiteNode:
    """Return the node that a line describes, without its name."""

    def number(*names: str, default: int = 0) -> int:
        return _value(line, names, _positive, default, "a whole number above 0")

    def amount(*names: str) -> int:
        return _value(line, names, _natural, 0, "a whole number")

    threads, per_socket = number("threadspercore", default=1), number("corespersocket", default=1)
    boards, cpus = number("boards", default=1), number("cpus", "procs")
    sockets = number("sockets", default=boards * number("socketsperboard"))
    sockets = sockets or max(1, (cpus or threads * per_socket) // (threads * per_socket))
    cores = sockets * per_socket
    if cpus and cpus < cores * threads:
        threads = max(1, cpus // cores)  # a CPU is a core, or a part of the machine
        cores = max(1, cpus // threads)
    reserved = amount("corespeccount") * threads
    reserved = reserved or _value(line, ("cpuspeclist",), _listed_cpus, 0, "CPU numbers such as 0-1")
    cpus = max(1, min(cpus or cores * threads, cores * threads) - reserved)
    memory = _value(line, ("realmemory",), slurm_values.mebibytes, None, "MiB") or 1
    features = line.values.get("features", "") or line.values.get("feature", "")
    return SiteNode(
        name="",
        cpus=cpus,
        cores=max(1, cpus // threads),
        threads=threads,
        sockets=sockets,
        memory_mib=max(1, memory - amount("memspeclimit")),
        weight=_value(line, ("weight",), _natural, 1, "a whole number"),
        features=tuple(word.strip() for word in features.split(",") if word.strip()),
        gpus=_value(line, ("gres",), lambda text: slurm_values.gpus(text.split(",")), 0, "gpu:COUNT"),
        is_asleep=_is_asleep(line.values.get("state", "").upper()),
        works=not line.values.get("state", "UNKNOWN").upper().startswith(_NO_JOBS),
    )


def _is_asleep(state: str) -> bool:
    """Return whether a node sleeps: one of a cloud that slurm.conf describes, or one that scontrol shows to sleep."""
    return state.startswith("CLOUD") or "POWERED_DOWN" in state


def _listed_cpus(text: str) -> int:
    """Return how many CPUs a list has. Raises ValueError."""
    try:
        return len(parse_cpus(text))
    except ConfigError as error:
        raise ValueError(error.problem) from None


def site_partitions(
    lines: Sequence[ConfLine], sets: Sequence[ConfLine], nodes: Mapping[str, SiteNode], unknown: list[str]
) -> tuple[SitePartition, ...]:
    """Return the partitions in order; a later line of a name replaces an earlier one.

    Args:
        lines: those of `PartitionName`.
        sets: those of `NodeSet`.
        nodes: the nodes by name.
        unknown: receives what is not followed.

    Raises:
        ConfigError: a value cannot be read, or a node is not there.
    """
    groups = {line.values["nodeset"]: line for line in sets}
    partitions: dict[str, SitePartition] = {}
    unfollowed: Counter[str] = Counter()
    for line in lines:
        if not line.values["partitionname"]:
            raise line.error("a partition without a name", "PartitionName=NAME")
        partition = _partition(line, _members(line, groups, nodes))
        partitions[partition.name] = partition
        unfollowed.update(_unfollowed(line))
    unknown += [f"{reason} ({count(number, 'partition')})" for reason, number in sorted(unfollowed.items())]
    return tuple(partitions.values())


def _members(line: ConfLine, groups: Mapping[str, ConfLine], nodes: Mapping[str, SiteNode]) -> tuple[str, ...]:
    """Return the nodes of a partition, in the order of the site."""
    names = set[str]()
    text = line.values.get("nodes", "")
    parts = [] if text.lower() in slurm_values.UNKNOWN else text.split(",")
    if text.upper() == "ALL":
        return tuple(nodes)
    if any(part in groups for part in parts):
        for part in [part for part in parts if part in groups]:
            names |= _group(groups[part], nodes)
        text = ",".join(part for part in parts if part not in groups)
    if text and parts:
        members = _hosts(line, text, "Nodes")
        if strangers := [name for name in members if name not in nodes]:
            raise line.error(f"found {strangers[0]!r}, which no NodeName line describes", "names of nodes", "Nodes")
        names.update(members)
    return tuple(name for name in nodes if name in names)


def _group(line: ConfLine, nodes: Mapping[str, SiteNode]) -> set[str]:
    """Return the nodes of a node set: those that it names, and those with its feature."""
    feature = line.values.get("feature", "") or line.values.get("features", "")
    names = {name for name, node in nodes.items() if feature and feature in node.features}
    text = line.values.get("nodes", "")
    if text.upper() == "ALL":
        return set(nodes)
    return names | (set(_hosts(line, text, "Nodes")) & nodes.keys() if text else set())


def _partition(line: ConfLine, nodes: tuple[str, ...]) -> SitePartition:
    def value(name: str, convert: Callable[[str], T], default: T, allowed: str) -> T:
        return _value(line, (name,), convert, default, allowed)

    both = value("priority", _natural, 1, "a whole number")
    sharing = line.values.get("oversubscribe", "") or line.values.get("shared", "")
    mode, qos = line.values.get("preemptmode", ""), line.values.get("qos", "")
    deny_accounts, deny_qos = (
        slurm_values.names(line.values.get(name, "")) or frozenset() for name in ("denyaccounts", "denyqos")
    )
    over = line.values.get("overtimelimit", "NONE").upper()
    return SitePartition(
        name=line.values["partitionname"],
        nodes=nodes,
        is_default=value("default", is_yes, False, "YES or NO"),
        tier=value("prioritytier", _natural, both, "a whole number"),
        job_factor=value("priorityjobfactor", _natural, both, "a whole number"),
        max_time_min=value("maxtime", _minutes, None, "minutes, h:m:s, d-h:m:s, or UNLIMITED"),
        default_time_min=value("defaulttime", _minutes, None, "minutes, h:m:s or d-h:m:s"),
        min_nodes=value("minnodes", slurm_values.limit, None, "a whole number") or 0,
        max_nodes=value("maxnodes", slurm_values.limit, None, "a whole number, or UNLIMITED"),
        max_cpus_per_node=value("maxcpuspernode", slurm_values.limit, None, "a whole number, or UNLIMITED"),
        default_memory_per_cpu_mib=value("defmempercpu", memory_per_cpu, None, "MiB"),
        default_memory_per_node_mib=value("defmempernode", memory_limit, None, "MiB"),
        max_memory_per_cpu_mib=value("maxmempercpu", memory_limit, None, "MiB"),
        is_exclusive=sharing.upper().startswith("EXCLUSIVE") or line.values.get("exclusive", "").upper() == "NODE",
        is_least_loaded=value("lln", is_yes, False, "YES or NO"),
        requires_reservation=value("reqresv", is_yes, False, "YES or NO"),
        state=line.values.get("state", "UP").upper(),
        qos="" if qos.upper() == "N/A" else qos,
        preempt_mode=mode.upper(),
        grace_time_s=int(value("gracetime", _grace, 0.0, "seconds")),
        over_time_limit_min=None if over == "NONE" else value("overtimelimit", _over_time, 0, "minutes, or UNLIMITED"),
        allow_accounts=slurm_values.names(line.values.get("allowaccounts", "")),
        deny_accounts=deny_accounts,
        allow_qos=slurm_values.names(line.values.get("allowqos", "")),
        deny_qos=deny_qos,
        billing_weights=value("tresbillingweights", slurm_values.weights, None, "NAME=WEIGHT, divided by commas"),
    )


def _minutes(text: str) -> int | None:
    return None if text == "-1" else slurm_values.minutes(text)


def _over_time(text: str) -> int:
    limit = over_time(text)
    return _FOR_EVER_MIN if limit is None else limit


def _grace(text: str) -> float:
    """Return seconds: a number of them, or h:m:s."""
    return slurm_values.span(text) or 0.0 if ":" in text else float(_natural(text))


def _unfollowed(line: ConfLine) -> Iterator[str]:
    """Yield what a partition asks for that a replay does not follow."""
    values = {key: value.upper() for key, value in line.values.items()}
    sharing = values.get("oversubscribe", "") or values.get("shared", "NO")
    if sharing.startswith(("FORCE", "YES")) and not sharing.endswith(":1"):
        yield "OverSubscribe=YES or FORCE: cores are not shared"
    if values.get("exclusiveuser", "NO") == "YES" or values.get("exclusive", "") in ("USER", "TOPO"):
        yield "ExclusiveUser: jobs of several users may share a node"
    if values.get("selecttypeparameters", "NONE") not in ("NONE", ""):
        yield "SelectTypeParameters of a partition: those of the cluster hold"
    if values.get("jobdefaults", "(NULL)") not in ("(NULL)", "NONE", ""):
        yield "JobDefaults: not followed; jobs may have other CPUs or memory"
    if values.get("maxcpuspersocket", "UNLIMITED") not in ("UNLIMITED", "0"):
        yield "MaxCPUsPerSocket: not followed; jobs may have more CPUs of a socket"
    if values.get("maxmempernode", "UNLIMITED") not in ("UNLIMITED", "0"):
        yield "MaxMemPerNode of a partition: not followed"
