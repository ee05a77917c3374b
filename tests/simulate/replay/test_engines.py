"""The table of engines: which one replays a case, and that each fast path gives the schedule of another path."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from pilotfish.simulate.kernels.object_cache import KERNELS
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType, Power
from pilotfish.simulate.model.machine import TAURUS_POWERS, Machine, machine_of
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies.policy_specs import parse
from pilotfish.simulate.queue_policies.uncompiled import uncompiled
from pilotfish.simulate.replay.engines import ENGINES, Engine, Feature, engine_for, explain, features_of
from pilotfish.simulate.replay.replay import replay
from pilotfish.simulate.replay.replay_case import ReplayCase, ReplayOptions
from pilotfish.simulate.world.world_parts import Part
from tests.simulate.queue_policies.test_uncompiled import TIGHT, depending
from tests.simulate.replay.test_networked import chained
from tests.simulate.replay.test_replay import workload
from tests.simulate.replay.worlds.test_networked_nodes import Wired, workloads
from tests.simulate.replay.worlds.test_networked_nodes import clusters as wired_clusters
from tests.simulate.replay.worlds.test_networked_nodes import networks as node_networks
from tests.simulate.replay.worlds.test_shared_nodes import CLUSTERS, CROWD
from tests.simulate.replay.worlds.test_shared_nodes import workload as with_memory
from tests.simulate.world.test_user_part import Halves

F = Feature
CASES = [
    ("easy", (), "easy"),
    ("strict:order=wfp3", (), "easy"),
    ("easy", (F.DEPENDS,), "easy, rich"),
    ("easy:order=m.pfmodel.json", (), "easy, rich"),
    ("strict:order=m.pfmodel.json", (F.PREDICTED,), "easy, rich"),
    ("easy:order=m.pfmodel.json", (F.NETWORKED,), "parts, networked"),
    ("easy:order=m.pfmodel.json", (F.SHARED,), "parts on shared nodes"),
    ("easy", (F.TAKES_TIME,), "easy, rich"),
    ("easy", (F.PREDICTED,), "easy, rich"),
    ("easy", (F.PREDICTED, F.TAKES_TIME), "parts"),
    ("easy", (F.NETWORKED, F.TAKES_TIME), "easy, networked"),
    ("easy", (F.NETWORKED, F.PREDICTED), "parts, networked"),
    ("easy", (F.PARTS,), "parts"),
    ("easy", (F.SHARED,), "easy on shared nodes"),
    ("easy", (F.SHARED, F.CHANGING), "parts on shared nodes"),
    ("easy:share=1.1", (F.NETWORKED,), "easy on shared nodes, networked"),
    ("easy:share=1.1", (F.TAKES_TIME,), "parts on shared nodes"),
    ("conservative", (F.DEPENDS,), "conservative"),
    ("conservative", (F.TAKES_TIME,), "stepwise"),
    ("conservative", (F.PREDICTED,), "parts"),
    ("conservative", (F.NETWORKED,), "conservative, networked"),
    ("conservative+powercap:cap=50%", (F.ENDLESS,), "conservative"),
    ("easy+powercap:cap=50%", (), "power"),
    ("easy+powercap:cap=50%", (F.ENDLESS,), "stepwise"),
    ("easy+opportunistic", (F.TAKES_TIME,), "parts"),
    ("easy+opportunistic", (F.NETWORKED,), "power, networked"),
    ("easy+opportunistic", (F.SHARED,), "parts on shared nodes"),
    ("mom", (F.TAKES_TIME,), "mapping"),
    ("mom+powercap:cap=50%", (F.NETWORKED,), "mapping, networked"),
    ("mom+powercap:cap=50%", (F.PARTS,), "parts on shared nodes"),
    ("pairs", (F.NETWORKED,), "parts on shared nodes, networked"),
]


@pytest.mark.parametrize(("spec", "features", "name"), CASES)
def test_the_table_chooses(spec: str, features: tuple[Feature, ...], name: str) -> None:
    assert engine_for(parse(spec), features).name == name


class Decides:
    """A policy in Python with facts of its own."""

    def __init__(self, **facts: bool) -> None:
        vars(self).update(facts)


@pytest.mark.parametrize(
    ("facts", "features", "name"),
    [
        ({}, (F.TAKES_TIME,), "stepwise"), ({}, (F.PREDICTED,), "parts"), ({}, (F.NETWORKED,), "parts, networked"),
        ({"powered": True}, (), "parts"), ({"open_ended": True}, (), "parts"), ({}, (F.SHARED,), "parts on shared nodes"),
    ],
)  # fmt: skip
def test_the_table_chooses_for_a_policy_in_python(facts: Any, features: tuple[Feature, ...], name: str) -> None:
    assert engine_for(Decides(**facts), features).name == name


def test_each_kernel_of_the_table_exists_and_each_row_can_be_chosen() -> None:
    assert {kernel for engine in ENGINES for kernel in engine.kernels} <= set(KERNELS)
    reached = {name for *_, name in CASES} | {"contention", "rule choice", "stepwise", "slurm", "slurm, predictions"}
    assert reached == {engine.name for engine in ENGINES}


@pytest.mark.parametrize(
    ("spec", "options", "because"),
    [
        ("easy", {}, "The engine is easy, with the compiled kernel queue.easy; the policy decides in compiled code."),
        ("easy", {"parts": (Part(),)}, "It is not a compiled one because the world has further parts."),
        ("conservative", {"decision_time": 1.0}, "It is not a compiled one because decisions take time."),
        ("easy+opportunistic", {"decision_time": 1.0}, "It is not a compiled one because decisions take time."),
    ],
)
def test_the_choice_is_explained(spec: str, options: Any, because: str) -> None:
    case = ReplayCase(workload([(0.0, 1.0, 2.0, 1)]), Machine(2), parse(spec), ReplayOptions(**options))
    assert explain(case).endswith(because)


# --- a fast path is never a second definition ---
#: Policies of each family, without energy-saving parts and with them.
SPECS = {
    "easy": ("easy", "strict", "easy:order=sjf", "easy:order=f1"),
    "conservative": (
        "conservative",
        "conservative:order=sjf",
        "conservative:order=f1",
        "conservative:allocation=contiguous",
    ),
    "mapping": ("mom", "let", "slf", "loadavg"),
    "contending": ("pairs", "nodes"),
}
CAP = "+powercap:begin=1,end=30,cap=70%"
SAVING = {
    "easy": (
        "easy+opportunistic:t_idle=2", "strict+opportunistic:t_idle=0", f"easy{CAP}", "easy+energybud:end=40,budget=70%",
    ),
    "conservative": (f"conservative{CAP}",),
}  # fmt: skip
#: Families whose forms in Python give the schedules of their fast paths; the others are compared step by step.
COMPARED = ("easy", "conservative", "mapping", "python")
#: Families that are compared elsewhere: the twin of a Slurm site with tests/reference/slurm_passes.py, and choices of
#: rules with the environment of their training, in worlds/test_chosen_rules.py.
ELSEWHERE = {"slurm", "rule-choice"}
FAST = [
    engine for engine in ENGINES if engine.name == "stepwise" or (engine.compiled and not engine.families & ELSEWHERE)
]


class Walltimes:
    """Predicts nothing, so that the walltimes count."""

    def expected(self, row: int) -> None:
        return None

    def ended(self, row: int, ran: float | None = None) -> None:
        return None


class ForEach:
    """A policy in Python that begins again with each replay."""

    def __init__(self, spec: str) -> None:
        self._spec = parse(spec)

    def start(self) -> Any:
        """Return the policy of one replay."""
        return uncompiled(self._spec, 0)


def fresh(policy: Any) -> Any:
    return policy.start() if isinstance(policy, ForEach) else policy


@st.composite
def worlds(draw: st.DrawFn, engine: Engine) -> tuple[Workload, Machine]:
    """Draw jobs and a machine that an engine can replay."""
    if F.SHARED in engine.requires:
        if F.NETWORKED not in engine.requires:
            cluster = replace(draw(CLUSTERS), oversubscription=1.0)
            return with_memory(draw(CROWD)), machine_of(cluster)
        jobs, cluster = draw(workloads())[0], draw(wired_clusters())
        network = draw(node_networks(cluster))
        return jobs, replace(machine_of(replace(cluster, wiring=Wired(network))), network=lambda: network)
    if F.NETWORKED in engine.requires:
        jobs, network = draw(chained())
        jobs = replace(jobs, walltime=np.minimum(jobs.walltime, 1e5))
        return jobs, Machine(len(network.speeds), powers=TAURUS_POWERS, network=lambda: network)
    jobs = workload(draw(st.lists(TIGHT, min_size=2, max_size=20)))
    pairs = st.lists(st.tuples(st.integers(0, 19), st.integers(0, 19)), min_size=1, max_size=6)
    if F.DEPENDS in engine.supports and draw(st.booleans()):
        jobs = depending(jobs, draw(pairs))
    return jobs, Machine(draw(st.integers(6, 12)), powers=TAURUS_POWERS)  # jobs have up to 8 resources


@st.composite
def cases(draw: st.DrawFn, engine: Engine) -> ReplayCase:
    """Draw a case that an engine replays."""
    jobs, machine = draw(worlds(engine))
    family = draw(st.sampled_from(sorted(engine.families)))
    if family == "python":
        policy: Any = ForEach(draw(st.sampled_from(SPECS["easy"])))
    else:
        specs = SAVING[family] if F.SAVES in engine.requires else SPECS[family]
        specs += SAVING.get(family, ()) if F.SAVES in engine.supports and F.SHARED not in engine.requires else ()
        policy = parse(draw(st.sampled_from(specs)))
    timed = family in COMPARED and family != "mapping"  # whose form in Python decides for one job at a time
    takes = draw(st.sampled_from((0.0, 0.5))) if F.TAKES_TIME in engine.supports and timed else 0.0
    predicted = F.PREDICTED in engine.supports and family in COMPARED and draw(st.booleans())
    options = ReplayOptions(
        decision_time=takes, contention=F.SHARED in engine.requires, run_times=Halves(jobs) if predicted else "walltime"
    )
    case = ReplayCase(jobs, machine, policy, options)
    assume(engine_for(policy, features_of(case)) is engine)
    return case


@pytest.mark.parametrize("engine", FAST, ids=[f"{i}: {engine.name}" for i, engine in enumerate(FAST)])
@given(st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
def test_a_fast_path_gives_the_schedule_of_another_path(engine: Engine, data: Any) -> None:
    case = data.draw(cases(engine))
    general = bool(engine.families & set(COMPARED))
    fast = replay(case.jobs, case.machine, fresh(case.policy), case.options)
    changed = replace(case.options, parts=(Part(),)) if general else replace(case.options, run_times=Walltimes())
    if isinstance(changed.run_times, Halves):
        changed = replace(changed, run_times=Halves(case.jobs))
    other = replay(case.jobs, case.machine, fresh(case.policy), changed)
    for name in ("start_time", "finish_time", "rejected", "overran"):
        assert np.array_equal(getattr(fast, name), getattr(other, name), equal_nan=name.endswith("time")), name


@pytest.mark.parametrize("limit", ["energybud", "reducepc"])
@pytest.mark.parametrize(("size", "pairs"), [(1, [(0, 1)]), (2, [])], ids=["is held", "can never run"])
@pytest.mark.parametrize("parts", [(), (Part(),)], ids=["compiled", "parts"])
def test_under_a_budget_no_job_starts_because_of_one_that_does_not_join_the_queue(
    limit: str, size: int, pairs: list[tuple[int, int]], parts: tuple[Part, ...]
) -> None:
    rows = [(0.0, 1.0, 1.0, 1), (2.0, 1.0, 1.0, size), (38.0, 1.0, 1.0, 1)]
    jobs, policy = depending(workload(rows), pairs), parse(f"easy+{limit}:end=40,budget=70%")
    replayed = replay(jobs, Machine(1, powers=TAURUS_POWERS), policy, ReplayOptions(parts=parts))
    assert replayed.start_time[0] == 40.0  # there is enough energy from 1.5 s on, but nothing happens until the end


def test_the_order_f1_counts_from_the_first_submission_even_if_that_job_can_never_run() -> None:
    rows = [(0.0, 1.0, 1.0, 6), (1.0, 1.0, 2.0, 2), (0.0, 1.0, 1.0, 4), (1.0, 1.0, 1.0, 1), *3 * [(0.0, 1.0, 1.0, 1)]]
    compiled, parts = (
        replay(workload(rows), 5, parse("easy:order=f1"), ReplayOptions(parts=parts)) for parts in ((), (Part(),))
    )
    assert np.array_equal(compiled.start_time, parts.start_time, equal_nan=True)


@pytest.mark.parametrize("spec", ["pairs", "nodes", "easy", "conservative", "mom"])
def test_the_end_of_a_power_cap_starts_jobs_though_nothing_else_happens(spec: str) -> None:
    rows = [(0.0, 50.0, 60.0, 2, 0, 0), (0.0, 50.0, 60.0, 4, 0, 0), (100.0, 1.0, 2.0, 1, 0, 0)]
    node, policy = NodeType("a", 4, 8e9, 2e10, power=Power(40.0, 5.0)), f"{spec}+powercap:cap=80%,begin=0,end=20"
    cluster = Cluster("c", (Node("n0", node), Node("n1", node)))
    for parts in ((), (Part(),)):
        replayed = replay(with_memory(rows), machine_of(cluster), parse(policy), contention=True, parts=parts)
        assert replayed.start_time.tolist() == [0.0, 20.0, 100.0], parts
