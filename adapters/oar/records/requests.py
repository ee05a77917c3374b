"""Requests of OAR jobs that nodes and cores describe completely; of other jobs, the reason why OAR places them.

Rule: pure. Only requests that nodes and cores describe exactly are placed. A job is placed by nodes; which cores of a
node it gets is OAR's choice.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import PurePath

from ....formats.text import count
from ....simulate.model.job import Job, Profile, Provenance, ThreadGroup
from ...keys import checksum
from ..submission import key_in
from .world import COMMAND, PROPERTIES, OarJob, Resource

#: Properties that name a node. OAR calls the first one `nodes` in a request.
NODE = frozenset(("network_address", "nodes", "host"))
#: Types of jobs that change nothing about where they may run; others are left to OAR.
HARMLESS = ("idempotent", "expire=", "besteffort")
#: What OAR itself asks of resources in every job.
ORDINARY = frozenset(("", "type = 'default'"))
#: Escaped quotes: whether they end a text depends on the database. Then what counts in SQL: texts, brackets, and signs
#: that are neither.
_ESCAPED = re.compile(r"""\\['"]""")
_TOKENS = re.compile(r"""'[^']*'|"[^"]*"|(?P<odd>--|/\*|[$#;`\\'"\0])|[()]""")


@dataclass(frozen=True)
class OarResources:
    """OAR's resources of the type `default`."""

    resources: tuple[Resource, ...]

    @cached_property
    def core_of(self) -> Mapping[int, tuple[str, str]]:
        """The node and the core of each resource."""
        return {resource.id: (resource.node, resource.core) for resource in self.resources}

    @cached_property
    def sizes(self) -> frozenset[int]:
        """The numbers of cores that nodes have."""
        return frozenset(self.cores.values())

    @cached_property
    def cores(self) -> Mapping[str, int]:
        """The number of cores of each node, in the order of their resources."""
        return Counter(node for node, _ in dict.fromkeys((resource.node, resource.core) for resource in self.resources))

    @cached_property
    def kinds(self) -> Mapping[str, frozenset[tuple[str, bool, float]]]:
        """The states of the resources of each node, whether they are drained, and until when they are available."""
        by_node: dict[str, set[tuple[str, bool, float]]] = {}
        for resource in self.resources:
            by_node.setdefault(resource.node, set()).add((resource.state, resource.drained, resource.available_until))
        return {node: frozenset(kinds) for node, kinds in by_node.items()}

    @cached_property
    def plain(self) -> bool:
        """True if each resource is one core."""
        return len({(resource.node, resource.core) for resource in self.resources}) == len(self.resources)

    def assigned(self, resources: Iterable[int]) -> Mapping[str, int]:
        """Return the nodes of these resources, and how many cores of each these are."""
        core_of = self.core_of
        return Counter(node for node, _ in sorted({core_of[number] for number in resources if number in core_of}))


@lru_cache(4096)
def contained(sql: str) -> bool:
    """Return whether SQL stays within brackets that are put around it, by a plain look.

    Its own brackets are balanced, and it has nothing in which brackets would count otherwise: comments, dollar quotes,
    escaped quotes. It has at most PROPERTIES characters. The shim decides in the same way.
    """
    if len(sql) > PROPERTIES or _ESCAPED.search(sql):
        return False
    depth = 0
    for token in _TOKENS.finditer(sql):
        if token["odd"] is not None:
            return False
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        if depth < 0:
            return False
    return depth == 0


def left_to_oar(job: OarJob) -> str:
    """Return why a job is not ours to place whatever it asks for, or ""."""
    if not contained(job.properties):
        return f"its properties have brackets that do not match, comments, or more than {PROPERTIES} characters"
    if job.kind != "PASSIVE":
        return "it is interactive"
    if job.reservation != "None":
        return "it is an advance reservation"
    odd = [kind for kind in job.types if not kind.startswith(HARMLESS)]
    if odd:
        return f"it is of type {odd[0].partition('=')[0]}"
    if "besteffort" in job.types:
        return "it is a besteffort job, which OAR kills for any other job"
    return ""


def request_of(job: OarJob, machine: OarResources) -> tuple[int, int, str]:
    """Return the number of nodes that a job asks for, of cores on each, and why this is not all, or ""."""
    if len(job.forms) != 1:
        return 1, 1, "it is moldable"
    (form,) = job.forms
    if len(form.groups) != 1:
        return 1, 1, "it asks for several groups of resources"
    ((where, levels),) = form.groups
    if where not in ORDINARY:
        return 1, 1, "it asks for properties of a group of resources"
    amounts = dict(levels)
    nodes = [name for name in amounts if name in NODE]
    if odd := [name for name in amounts if name not in NODE and name not in ("cpu", "core", "resource_id")]:
        return 1, 1, f"it asks for {odd[0]}"
    if nodes and levels[0][0] not in NODE:
        return 1, 1, "it asks for nodes within something else"
    if "resource_id" in amounts and not machine.plain:
        return 1, 1, "it asks for resources that are not cores"
    if any(value < 1 for value in amounts.values()):
        return 1, 1, "it asks for all or the best of something"
    sizes = machine.sizes
    if "core" in amounts or "resource_id" in amounts:
        cores = amounts.get("cpu", 1) * amounts.get("core", 1) * amounts.get("resource_id", 1)
    elif "cpu" in amounts or len(sizes) != 1:
        return 1, 1, "how many cores it asks for depends on the nodes"
    else:
        cores = max(sizes)
    if cores > max(sizes, default=0):
        return 1, 1, f"{count(cores, 'core is', 'cores are')} more than a node has"
    return amounts[nodes[0]] if nodes else 1, cores, ""


def name_of(job: OarJob) -> str:
    """Return the name of a job, else that of the program that it runs: most jobs of OAR have no name."""
    return job.name or _program(job)


def _program(job: OarJob) -> str:
    """Return the program of a user's job; "" of a job of ours, and of a command that was not read in full."""
    is_complete = len(job.command) < COMMAND and key_in(job.command, job.name) is None
    return PurePath((job.command.split() or [""])[0]).name if is_complete else ""


def job_of(job: OarJob, nodes: int, cores: int, owner: int | None) -> Job:
    """Return a job as the simulation sees it: its cores busy until its limit.

    Args:
        job: The job.
        nodes: Number of its nodes.
        cores: Number of cores on each.
        owner: User id of its user; None: not known.
    """
    limit = float(job.forms[0].walltime) if job.forms else 3600.0
    script, name = checksum(job.command) if _program(job) else "", name_of(job)
    kind = f"{name}{script and f' #{script}'} of {job.project}/{job.user}" if name else ""
    values = {"user": job.user, "group": job.project, "executable": name, "queue": job.queue, "script": script}
    traits = tuple((name, value) for name, value in values.items() if value)
    profile = _assumed(cores, limit)
    return Job(str(job.first), profile, nodes=nodes, walltime=limit, known_as=kind, traits=traits, owner=owner)


@lru_cache(4096)
def _assumed(cores: int, limit: float) -> Profile:
    """Return one profile for all equal jobs: the simulation distinguishes profiles by identity."""
    note = f"from OAR: {count(cores, 'core')} busy for the time limit"
    return Profile((ThreadGroup(cores, max(limit, 1.0)),), provenance=Provenance("default", note=note))
