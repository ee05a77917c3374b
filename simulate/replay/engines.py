"""The engines of a replay: which code replays a workload under a policy.

Rule: this table alone chooses. A fast path is a row that replays one family of policies and says what it supports; the
general path, the parts in `simulate.world`, supports everything. The first row that supports a replay has it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from ..errors import ConfigError
from ..model.workload import Workload
from ..queue_policies.order_ranks import dynamic_order
from ..queue_policies.policy_facts import spec_of
from ..queue_policies.policy_specs import text_of
from ..world.known_run_times import PREDICTED
from .replay_case import ReplayCase


class Feature(Enum):
    """A property of a replay that an engine must support; the value says it in words."""

    SHARED = "jobs share nodes"
    NETWORKED = "jobs communicate"
    DEPENDS = "jobs wait for other jobs"
    PREDICTED = "run times are predicted"
    TAKES_TIME = "decisions take time"
    SAVES = "the policy has energy-saving parts"
    ENDLESS = "its limit of power or energy has no end"
    CHANGING = "the order of its queue changes, or follows from when jobs are submitted after others"
    STATES = "the policy sees the states of machines"
    OPEN_ENDED = "the policy may submit jobs"
    PARTS = "the world has further parts"
    LEARNED = "the order of its queue is learned"
    SOFT = "Slurm takes TimeMin for a soft limit"


SHARED, NETWORKED, DEPENDS, PREDICTED_TIMES = Feature.SHARED, Feature.NETWORKED, Feature.DEPENDS, Feature.PREDICTED
TAKES_TIME, SAVES, ENDLESS, CHANGING = Feature.TAKES_TIME, Feature.SAVES, Feature.ENDLESS, Feature.CHANGING
LEARNED = Feature.LEARNED
ALL = frozenset(Feature)
#: Families of policies that have a form in Python.
IN_PYTHON = frozenset({"python", "easy", "conservative", "contending", "mapping"})


@dataclass(frozen=True, slots=True)
class Engine:
    """A row of the table.

    Args:
        name: for people.
        module: what replays, next to this file; its function is `run`.
        kernels: compiled kernels that it loads.
        families: families of policies, see `PolicySpec.family`.
        supports: what it can replay.
        requires: what a replay must have, so that it is not slower than it need be.
        compiled: the policy decides in compiled code.
    """

    name: str
    module: str
    kernels: tuple[str, ...]
    families: frozenset[str]
    supports: frozenset[Feature]
    requires: frozenset[Feature] = frozenset()
    compiled: bool = True

    def replays(self, family: str, features: frozenset[Feature]) -> bool:
        """Return whether it replays a family of policies where a replay has these features."""
        return family in self.families and self.requires <= features <= self.supports


def _fast(
    name: str, module: str, kernel: str, families: str, supports: Iterable[Feature], requires: Iterable[Feature] = ()
) -> Engine:
    needed = frozenset(requires)
    return Engine(name, module, (kernel,), frozenset(families.split()), needed | frozenset(supports), needed)


def _general(name: str, module: str, kernels: tuple[str, ...], requires: Iterable[Feature]) -> Engine:
    return Engine(name, module, kernels, IN_PYTHON, ALL, frozenset(requires), compiled=False)


_QUEUE, _MAPPING = "compiled_replay", "worlds.shared_nodes"
ENGINES = (
    _fast("easy", _QUEUE, "queue.easy", "easy", {CHANGING}),
    _fast("easy, rich", _QUEUE, "queue.easy_rich", "easy", {CHANGING, DEPENDS, TAKES_TIME, LEARNED}),
    _fast("easy, rich", _QUEUE, "queue.easy_rich", "easy", {CHANGING, DEPENDS, PREDICTED_TIMES, LEARNED}),
    _fast("easy, networked", _QUEUE, "queue.easy_networked", "easy", {CHANGING, DEPENDS, TAKES_TIME}, {NETWORKED}),
    _fast("power", _QUEUE, "queue.power.easy_power", "easy", {CHANGING, DEPENDS, Feature.STATES}, {SAVES}),
    _fast("power, networked", _QUEUE, "queue.power_networked", "easy", {CHANGING, DEPENDS, Feature.STATES},
          {SAVES, NETWORKED}),
    _fast("conservative", _QUEUE, "queue.conservative", "conservative", {CHANGING, DEPENDS, SAVES, ENDLESS}),
    _fast("conservative, networked", _QUEUE, "queue.conservative_networked", "conservative",
          {CHANGING, DEPENDS, SAVES, ENDLESS}, {NETWORKED}),
    _fast("contention", "worlds.contended", "mapping.entry", "contending",
          ALL - {NETWORKED, Feature.PARTS}, {SHARED}),
    _fast("rule choice", "worlds.chosen_rules", "mapping.rule_choice", "rule-choice", (), {SHARED}),
    _fast("mapping", _MAPPING, "mapping.entry", "mapping", ALL - {NETWORKED, Feature.PARTS}, {SHARED}),
    _fast("mapping, networked", _MAPPING, "mapping.networked", "mapping", ALL - {Feature.PARTS}, {SHARED, NETWORKED}),
    _fast("easy on shared nodes", _MAPPING, "mapping.entry", "easy", (), {SHARED}),
    _fast("easy on shared nodes, networked", _MAPPING, "mapping.networked", "easy", (), {SHARED, NETWORKED}),
    _fast("slurm", "worlds.slurm_site", "slurm.site_requests", "slurm", {DEPENDS, Feature.SOFT}),
    _fast("slurm, predictions", "worlds.slurm_site", "slurm.site_requests", "slurm", {DEPENDS},
          {PREDICTED_TIMES, Feature.SOFT}),
    Engine("stepwise", "worlds.stepwise_jobs", ("queue.stepwise",), frozenset({"python", "easy", "conservative"}),
           frozenset({CHANGING, DEPENDS, TAKES_TIME, SAVES, ENDLESS}), compiled=False),
    _general("parts on shared nodes, networked", "worlds.python_policies", ("mapping.networked",), {SHARED, NETWORKED}),
    _general("parts on shared nodes", "worlds.python_policies", ("mapping.entry",), {SHARED}),
    _general("parts, networked", "worlds.python_policies", ("queue.network.steps",), {NETWORKED}),
    _general("parts", "worlds.python_policies", (), ()),
)  # fmt: skip


def engine_for(policy: object, features: Iterable[Feature]) -> Engine:
    """Return the engine that replays a policy.

    Args:
        policy: a built-in policy, or an object that is called.
        features: those of the jobs and of the world; those of the policy are added.
    """
    family, features = spec_of(policy).plain.family, frozenset(features) | policy_features(policy)
    for engine in ENGINES:
        if engine.replays(family, features):
            return engine
    rows = [engine for engine in ENGINES if family in engine.families and engine.requires <= features]
    nearest = min(rows, key=lambda engine: len(features - engine.supports))
    because = " and ".join(sorted(feature.value for feature in features - nearest.supports))
    problem = f"no engine replays {text_of(spec_of(policy))} where {because}"
    raise ConfigError("policy", "", problem, "a queue policy such as easy, or none of these")


def policy_features(policy: object) -> frozenset[Feature]:
    """Return the features that follow from a policy alone."""
    spec = spec_of(policy)
    facts = {
        LEARNED: not isinstance(getattr(spec.plain, "order", ""), str),
        SHARED: spec.needs_nodes,
        SAVES: spec.saves,
        Feature.STATES: (spec.plain.family == "easy" and spec.sees_states) or bool(getattr(policy, "powered", False)),
        Feature.SOFT: spec.has_soft_limits,
        Feature.OPEN_ENDED: bool(getattr(policy, "open_ended", False)),
    }
    return frozenset(feature for feature, holds in facts.items() if holds)


def job_features(jobs: Workload, run_times: str) -> frozenset[Feature]:
    """Return the features that follow from the jobs, and from what is known of their run times."""
    facts = {
        NETWORKED: jobs.programs is not None,
        DEPENDS: jobs.dependencies is not None,
        PREDICTED_TIMES: run_times == PREDICTED,
    }
    return frozenset(feature for feature, holds in facts.items() if holds)


def features_of(case: ReplayCase) -> frozenset[Feature]:
    """Return all features of a replay. Raises ConfigError if the limit of its policy needs an end that is not known."""
    spec, options, jobs = spec_of(case.policy), case.options, case.jobs
    window = spec.limit.window(jobs) if spec.limit else None
    places_work = bool(getattr(case.policy, "places_work", False)) and case.machine.network is not None
    order = getattr(spec.plain, "order", None)
    facts = {
        SHARED: options.contention,
        NETWORKED: places_work and not case.shared,
        TAKES_TIME: options.decision_time != 0.0,
        ENDLESS: window is not None and math.isinf(window[1]),
        CHANGING: order is not None and case.shared and bool(dynamic_order(jobs, order)),
        Feature.PARTS: bool(options.parts),
    }
    features = frozenset(feature for feature, holds in facts.items() if holds)
    return features | policy_features(case.policy) | job_features(jobs, options.knows)


def explain(case: ReplayCase) -> str:
    """Return in one or two sentences which engine replays a case, and why not a faster one. Raises ConfigError."""
    features, family = features_of(case), spec_of(case.policy).plain.family
    engine = engine_for(case.policy, features)
    loads = f"the compiled kernel {engine.kernels[0]}" if engine.kernels else "no compiled kernel"
    how = "decides in compiled code" if engine.compiled else "is called in Python"
    sentence = f"The engine is {engine.name}, with {loads}; the policy {how}."
    faster = [row for row in ENGINES[: ENGINES.index(engine)] if family in row.families and row.compiled]
    near = [row for row in faster if row.requires <= features and not features <= row.supports]
    if engine.compiled or not near:
        return sentence
    nearest = min(near, key=lambda row: (len(features - row.supports), -len(row.requires)))
    because = " and ".join(sorted(feature.value for feature in features - nearest.supports))
    return f"{sentence} It is not a compiled one because {because}."
