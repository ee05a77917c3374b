"""Queue policies and their text form SPEC, such as `easy:order=sjf` or `easy+energybud:budget=60%`.

Rule: a policy is a frozen dataclass whose fields are its options; listing, parsing and printing use these fields only.
Energy-saving parts are added with `+`, at most one of each kind. A SPEC with a dot or a slash before its first colon,
or a capital letter after it, names a Python policy: `./file.py:Class:option=value,...` or `package.module:Class`.

Contention policies (pairs, nodes) have a rule for the next job and a rule for its placement. They consider only that
job and wait for it if it does not fit. Ties go to the first job by submission, the first processor or node in the file.
Source: thesis of Poquet (2017); contention policies: IRMaSim (Herrera et al., CCGrid 2021), table II, and Fomperosa's
thesis (2021), table 5.1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from ..errors import ConfigError, did_you_mean
from ..kernels.mapping import layout
from .energy.power_policies import EnergyBudget, Inertial, Opportunistic, PowerCap, Proportional, ReducePC
from .learned_order import LearnedOrder, OrderFile
from .loaded_policies import LEARNED, SITE, is_python_policy, parse_python_policy
from .order_ranks import CHANGING, ORDERS
from .policy_facts import PolicySpec
from .policy_options import Sharing, choice, format_options, order_option, parse_options, sharing

#: Queue policies that decide for plans, in words.
PLANNED = (
    "easy, strict, conservative, pairs, nodes, easy+powercap:cap=..., learned:FILE, ./my.py:Class, package.module:Class"
)
#: What the name of a decision component of Batsim 4, and of Batsim 5, begins with; its endpoint follows.
COMPONENT = "batsim:", "batsim5:"
#: Between two parts; not before the zone of a date.
_PLUS = re.compile(r"\+(?=\D|$)")


JOBS = {
    "random": "a random waiting job",
    "first": "the job submitted first",
    "shortest": "the job with the least requested time",
    "smallest": "the job with the fewest cores",
    "low_mem": "the job with the least memory",
    "low_mem_bw": "the job with the least memory bandwidth",
}
RESOURCES = {
    "random": "a random free core",
    "high_gflops": "a core of the processor with the fastest cores, given the tasks that run there",
    "high_core": "a core of the processor with the most free cores",
    "high_mem": "a core of the node with the most free memory",
    "high_mem_bw": "a core of the processor with the most unused memory bandwidth",
    "low_power": "a core of the processor that draws the least power now",
}
RULES = {
    "random": "a random node on which the job fits",
    "biggest": "the node with the most cores on which the job fits",
    "fastest": "the node with the fastest cores on which the job fits",
}


@dataclass(frozen=True, slots=True)
class Pairs(PolicySpec):
    """Pick one job at a time, then one core at a time for each of its tasks; tasks contend for memory."""

    on_one_node: ClassVar[bool] = False
    source: ClassVar = "Herrera et al. 2021, table II"
    family: ClassVar[str] = "contending"
    compares_nodes: ClassVar[bool] = True
    needs_nodes: ClassVar[bool] = True
    job: str = choice("first", JOBS, "the job to start next")
    resource: str = choice("high_gflops", RESOURCES, "the core for its next task")

    @property
    def placement(self) -> str:
        """Return the rule of the placement."""
        return self.resource

    @property
    def needs_power(self) -> bool:
        """Return whether it compares nodes by their power."""
        return self.resource == "low_power"


@dataclass(frozen=True, slots=True)
class Nodes(PolicySpec):
    """Pick one job at a time, and place it on the cores of one node; tasks contend for memory."""

    on_one_node: ClassVar[bool] = True
    source: ClassVar = "Fomperosa 2021, table 5.1"
    family: ClassVar[str] = "contending"
    compares_nodes: ClassVar[bool] = True
    needs_nodes: ClassVar[bool] = True
    job: str = choice("first", JOBS, "the job to start next")
    rule: str = choice("fastest", RULES, "the node of the job")

    @property
    def placement(self) -> str:
        """Return the rule of the placement."""
        return self.rule


Contending = Pairs | Nodes


class Ordered(PolicySpec):
    """The facts about EASY and strict order, which start jobs in an order of the queue."""

    __slots__ = ()
    family: ClassVar[str] = "easy"
    queueing: ClassVar[bool] = True
    order: Any

    @property
    def needing_walltimes(self) -> str:
        """Return a description of the policy if it needs finite walltimes, else ""."""
        return "a learned order" if isinstance(self.order, LearnedOrder) else ""


@dataclass(frozen=True, slots=True)
class Strict(Ordered):
    """Start jobs in the order of the queue; the first job that does not fit blocks all jobs behind it."""

    source: ClassVar = "Poquet 2017, 2.2"
    backfills: ClassVar = False
    order: str | OrderFile | LearnedOrder = order_option(ORDERS)  # noqa: RUF009


@dataclass(frozen=True, slots=True)
class Easy(Ordered):
    """EASY backfilling: the first job that does not fit has a reservation; jobs that do not delay it run before it."""

    source: ClassVar = "Lifka 1995; Poquet 2017, 2.2"
    backfills: ClassVar = True
    order: str | OrderFile | LearnedOrder = order_option(ORDERS)  # noqa: RUF009
    share: Sharing = sharing("by how much jobs on one node may slow each other down")  # noqa: RUF009


ALLOCATIONS = {
    "basic": "the lowest free numbers when the job starts",
    "best-effort-contiguous": "the lowest contiguous resources; as basic if there is no such place",
    "contiguous": "the lowest contiguous resources; gaps without enough of them are skipped",
    "best-effort-local": "the lowest resources of one cluster; as basic if none has enough",
    "local": "the lowest resources of one cluster; gaps without enough of them are skipped",
}


@dataclass(frozen=True, slots=True)
class Conservative(PolicySpec):
    """Conservative backfilling: every waiting job has a reservation, which only ever moves to an earlier time."""

    source: ClassVar = "Mu'alem and Feitelson 2001; Poquet 2017, 2.2 and 5"
    family: ClassVar[str] = "conservative"
    queueing: ClassVar[bool] = True
    needing_walltimes: ClassVar[str] = "conservative backfilling"
    order: str = choice("fcfs", {name: ORDERS[name] for name in ORDERS if name not in CHANGING}, "order of the queue")
    allocation: str = choice("basic", ALLOCATIONS, "resources that a job gets")
    share: Sharing = sharing("by how much jobs on one node may slow each other down")  # noqa: RUF009

    @property
    def local(self) -> bool:
        """Return whether the allocation depends on the clusters of the machine."""
        return self.allocation.endswith("local")

    @property
    def compares_nodes(self) -> bool:
        """Return whether it depends on all nodes where it places jobs."""
        return self.allocation != "basic"


@dataclass(frozen=True, slots=True)
class Saving(PolicySpec):
    """A policy with energy-saving parts."""

    base: Easy | Strict | Conservative | Contending | OnNodes  # decides which jobs start
    shutdown: Opportunistic | None = None  # switches idle machines off
    limit: PowerCap | EnergyBudget | None = None  # limits power or energy
    keeper: Proportional | Inertial | None = None  # keeps a number of machines off
    family: ClassVar[str] = "saving"
    compares_nodes: ClassVar[bool] = True  # a limit is that of all nodes

    @property
    def plain(self) -> Any:
        """Return the policy without its energy-saving parts."""
        return self.base

    @property
    def parts(self) -> tuple[Any, ...]:
        """Return the policy and its energy-saving parts."""
        return tuple(part for part in (self.base, self.shutdown, self.limit, self.keeper) if part is not None)

    @property
    def needs_nodes(self) -> bool:
        """Return whether the policy without the parts needs nodes."""
        return self.base.needs_nodes

    @property
    def needing_walltimes(self) -> str:
        """Return a description of the policy if it needs finite walltimes, else ""."""
        needs = (self.limit or self.keeper) and self.base.queueing  # the others promise nothing
        return self.base.needing_walltimes or ("a policy that limits power or keeps machines off" if needs else "")


@dataclass(frozen=True, slots=True)
class OnNodes(PolicySpec):
    """A mapping policy: start every waiting job that fits, on the nodes with the best score; jobs on a node contend."""

    source: ClassVar = "DESiDE, Chahal et al. 2019, 4.2"
    family: ClassVar[str] = "mapping"
    needs_nodes: ClassVar[bool] = True
    #: The kernels' code.
    code: ClassVar[int]


@dataclass(frozen=True, slots=True)
class LoadAverage(OnNodes):
    """Start each job on the nodes with the lowest UNIX load average for their cores."""

    code: ClassVar[int] = int(layout.LOADAVG)


@dataclass(frozen=True, slots=True)
class FewestThreads(OnNodes):
    """Start each job on the nodes with the fewest unfinished threads for their cores."""

    code: ClassVar[int] = int(layout.SLF)


@dataclass(frozen=True, slots=True)
class EarliestEnd(OnNodes):
    """Start each job on the nodes on which it ends first."""

    code: ClassVar[int] = int(layout.LET)
    looks_ahead: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class EarliestLastEnd(OnNodes):
    """Start each job on the nodes whose last job then ends first."""

    code: ClassVar[int] = int(layout.MOM)
    looks_ahead: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Planned(PolicySpec):
    """The service with its defaults and a mapping policy, which plans the whole queue at a time; for sweeps."""

    needs_nodes: ClassVar[bool] = True
    options: ClassVar[tuple[tuple[str, str], ...]] = ()
    name: str

    def __str__(self) -> str:
        return self.name


#: Names of built-in mapping policies that only plan.
PLANNING = ("lookahead",)
#: Policies that decide by the queue alone, also for a Batsim.
Queueing = Strict | Easy | Conservative
Policy = Queueing | Saving
#: Policies that place jobs on the nodes of a cluster.
Placing = Pairs | Nodes | OnNodes
POLICIES: dict[str, type[Any]] = {
    "easy": Easy,
    "conservative": Conservative,
    "strict": Strict,
    "pairs": Pairs,
    "nodes": Nodes,
}
#: Mapping policies that also replay traces.
ON_NODES: dict[str, type[Any]] = {
    "mom": EarliestLastEnd,
    "let": EarliestEnd,
    "slf": FewestThreads,
    "loadavg": LoadAverage,
}
PARTS: dict[str, type[Any]] = {
    "opportunistic": Opportunistic,
    "powercap": PowerCap,
    "energybud": EnergyBudget,
    "reducepc": ReducePC,
    "proportional": Proportional,
    "inertial": Inertial,
}
_NAMES = {kind: name for name, kind in (POLICIES | ON_NODES | PARTS).items()}
#: Why a part does not go with a policy that promises each waiting job a start.
_UNPROMISED = {
    EnergyBudget: "what a budget allows at that time is not known in advance",
    ReducePC: "what a budget allows at that time is not known in advance",
    Opportunistic: "machines that are off would break that promise",
    Proportional: "how many machines are off at that time is decided later",
    Inertial: "how many machines are off at that time is decided later",
}
_ROLES = {Opportunistic: "shutdown", PowerCap: "limit", EnergyBudget: "limit", ReducePC: "limit"}


def parse(text: str) -> Policy | Placing:
    """Parse the SPEC of a built-in policy. Raises ConfigError."""
    first, *others = _PLUS.split(text)
    if others and first in PLANNING:
        why = "it searches for the best plan, and has no limit of power or energy"
        problem = f"{first!r} does not go with {others[0]!r}: {why}"
        raise ConfigError("policy", "", problem, "mom+powercap, easy+...")
    base: Strict | Easy | Conservative | Contending | OnNodes = _part(first, POLICIES | ON_NODES)
    if base.family == "conservative" and base.compares_nodes and base.needs_nodes:
        why = "a job that shares gets any nodes on which no job is slowed down beyond the bound"
        raise ConfigError("policy", "", f"{first!r}: allocation and share do not go together: {why}", "one of them")
    if not others:
        return base
    roles: dict[str, Any] = {}
    for other in others:
        part = _part(other, PARTS)
        if why := _why_not(base, part):
            problem = f"{first!r} does not go with {other!r}: {why}"
            raise ConfigError("policy", "", problem, f"{_NAMES[type(base)]}+powercap, easy+..., strict+...")
        place = _ROLES.get(type(part), "keeper")
        if place in roles:
            problem = f"{_NAMES[type(roles[place])]!r} and {_NAMES[type(part)]!r} do not go together"
            raise ConfigError("policy", "", problem, "one of them")
        if place == "limit" and part.begin >= part.end:
            where = f"{_NAMES[type(part)]}:end"
            raise ConfigError("policy", where, f"'{part.end:g}'", f"more than begin={part.begin:g}")
        roles[place] = part
    return Saving(base, **roles)


def _why_not(base: PolicySpec, part: object) -> str:
    """Return why a policy does not go with an energy-saving part, "" if it does."""
    broken = _UNPROMISED.get(type(part))
    if broken is None or base.family == "easy":
        return ""
    if base.family == "conservative":
        return f"it promises each waiting job a start, and {broken}"
    if _ROLES.get(type(part)) == "limit":
        return "it reserves nothing for the first waiting job, but a budget saves energy for that job"
    return "it does not consider whether the nodes that it chooses are on"


def goes_with(part: str) -> tuple[str, ...]:
    """Return the names of the policies to which an energy-saving part, a key of PARTS, can be added."""
    kinds = (POLICIES | ON_NODES).items()
    return tuple(name for name, kind in kinds if not _why_not(kind(), PARTS[part]()))


def _part(text: str, kinds: Mapping[str, type[Any]]) -> Any:
    name, _, rest = text.partition(":")
    if text.startswith(COMPONENT):
        allowed = "batsim --endpoint ENDPOINT; or policy: in the configuration of the daemon"
        raise ConfigError("policy", "", f"{text!r} is a decision component of Batsim", allowed)
    if text.startswith(SITE):
        problem = f"{text!r} is the rules of a whole site, and decides for replays of traces alone"
        raise ConfigError("policy", "", problem, "it alone, for simulate or sweep; in Python, api.read_slurm_policy")
    if text.startswith(LEARNED):
        raise ConfigError(
            "policy", "", f"{text!r} is the file of a model", "it alone; in Python, api.read_learned_policy"
        )
    if name not in kinds:
        names = [*kinds] if kinds is PARTS or name in PLANNING else [*kinds, *PLANNING]
        raise ConfigError("policy", "", f"{name!r} is unknown{did_you_mean(name, names, str)}", ", ".join(names))
    return parse_options(kinds[name], name, rest)


def is_queue_policy(text: str) -> bool:
    """Return whether a text is meant as the SPEC of a queue policy, or of a mapping policy with parts."""
    name, plus, _ = text.partition("+")
    names = {*POLICIES, *PARTS, *((*ON_NODES, *PLANNING) if plus else ())}
    return text.startswith((*COMPONENT, SITE)) or is_python_policy(text) or name.partition(":")[0] in names


def parse_planned(text: str, *, service: bool = False) -> PolicySpec:
    """Parse the SPEC of a queue policy that decides for plans. Raises ConfigError, also where it cannot.

    Args:
        text: the SPEC.
        service: the plans are those of the service, which can switch nodes off and on.
    """
    if text.startswith(COMPONENT):
        problem = f"{text!r} is a decision component, which decides about real jobs; only the daemon has that"
        raise ConfigError("policy", "", problem, PLANNED)
    if is_python_policy(text):
        return parse_python_policy(text)
    policy = parse(text)
    assert policy.family != "mapping", "the planner has it"
    if policy.switches and not service:
        problem = f"{text!r} switches nodes off and on: only the daemon can do that, not a plan of one workflow"
        raise ConfigError("policy", "", problem, PLANNED)
    if isinstance(getattr(policy.plain, "order", None), OrderFile):
        problem = f"{text!r}: an order without guards decides in replays alone"
        raise ConfigError("policy", "", problem, f"{LEARNED}{policy.plain.order}")
    limit = policy.limit
    if limit is not None and limit.is_budget and math.isinf(limit.end):
        problem = f"{text!r} needs an end, because the last submission is not known in advance"
        raise ConfigError("policy", "", problem, "end=2026-12-31T00:00Z, or end=SECONDS")
    if limit is not None and limit.is_set() and not policy.plain.queueing:
        problem = f"{text!r} begins or ends at some time, and the policy decides only when jobs are submitted or end"
        raise ConfigError("policy", "", problem, "a cap without begin and end; easy, strict or conservative")
    return policy


@lru_cache(8)
def parts_of(text: str) -> PolicySpec:
    """Return the policy of a SPEC if it has energy-saving parts, else one that has none. Raises ConfigError."""
    others = is_python_policy(text) or text.startswith(COMPONENT)
    return parse(text) if "+" in text and not others else PolicySpec()


def text_of(policy: PolicySpec) -> str:
    """Return the SPEC of a policy, without options at their defaults."""
    parts = (":".join(filter(None, (_NAMES[type(part)], format_options(part)))) for part in policy.parts)
    return "+".join(parts) or str(policy)
