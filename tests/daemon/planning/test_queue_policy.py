"""Queue policies in the daemon: they decide what starts, cannot take it down, and come from trusted files only."""

from __future__ import annotations

import dataclasses
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pilotfish.daemon.config import load_config, load_policy_of
from pilotfish.daemon.planning.guarded_planner import simulate_plan
from pilotfish.daemon.run_modes import RunMode
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.job import Profile, ThreadGroup
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.planning.mapping_policies import POLICIES
from pilotfish.simulate.planning.planner import plan
from pilotfish.simulate.planning.queue_mapping import QueueMapping
from pilotfish.simulate.queue_policies.interface import QueuePolicy, QueueView, Reject, Reserve, Start, Wake
from pilotfish.simulate.replay.replay import replay
from tests.support import python_policies
from tests.support.python_policies import Says

HEAD = "schema: pilotfish/daemon/v1\ncluster: lab.yaml\n"
MINE = """
from pilotfish.api import Start

class Shortest:
    def __init__(self, most: int = 9):
        self.most = most

    def decide(self, now):
        return [Start(job) for job in sorted(now.waiting, key=lambda job: job.walltime)[: self.most]]
"""


@pytest.fixture(autouse=True)
def forget_modules() -> Iterator[None]:
    """Forget the modules that a test imports."""
    known = set(sys.modules)
    yield
    for name in set(sys.modules) - known:
        if name.endswith(".py"):
            del sys.modules[name]


@pytest.fixture
def queue(bench: Any) -> Any:
    """A function that lets a queue policy decide in the bench, on one node of two cores."""

    def use(policy: QueuePolicy | str, nodes: int = 1) -> Any:
        name = policy if isinstance(policy, str) else "./mine.py:Mine"
        if not isinstance(policy, str):
            POLICIES[name] = QueueMapping(name, lambda seed: policy)
        planner = bench.cycle.planner
        planner.make_plan = simulate_plan
        planner.options = dataclasses.replace(planner.options, policy=name)
        bench.manager.cluster = dataclasses.replace(bench.manager.cluster, nodes=bench.manager.cluster.nodes[:nodes])
        bench.manager.states = bench.manager.states[:nodes]
        return bench

    return use


def order_of(bench: Any) -> list[str]:
    """Return the jobs in the order in which they started."""
    views = sorted(bench.manager.views.values(), key=lambda view: view.start_time)
    return [view.key.partition("/")[2] for view in views]


def test_the_shortest_starts_first_and_nothing_is_oversubscribed(queue: Any, kit: Any) -> None:
    bench = queue("easy:order=sjf")
    flow = bench.submit(
        *(kit.job(f"j{wall}", seconds=wall - 0.5, threads=2, walltime=float(wall)) for wall in (9, 3, 6, 1))
    )
    bench.run(25)
    assert order_of(bench) == ["j1", "j3", "j6", "j9"]
    assert set(bench.states(flow).values()) == {"completed"}
    assert bench.value("plans_total", policy="easy:order=sjf", outcome="failed") == 0.0


@pytest.mark.parametrize(("share", "order"), [("any", ["a", "b", "c"]), ("1.1", ["a", "c", "b"])])
def test_jobs_that_would_hurt_each_other_are_kept_apart(queue: Any, kit: Any, share: str, order: list[str]) -> None:
    """Two jobs that both need the whole bandwidth of the only node, and one that needs none; two cores."""
    bench = queue(f"easy:share={share}")
    rates = {"a": 1e10, "b": 1e10, "c": 0.0}
    bench.submit(
        *(
            dataclasses.replace(
                kit.job(name, seconds=4.0, walltime=20.0), profile=Profile((ThreadGroup(1, 4.0, bandwidth=rate),))
            )
            for name, rate in rates.items()
        )
    )
    bench.run(40)
    assert order_of(bench) == order
    assert bench.value("plans_total", policy=bench.cycle.planner.options.policy, outcome="failed") == 0.0


@pytest.mark.parametrize(
    ("policy", "nodes"),
    [("nodes:rule=biggest", ["n2", "n2", "n2", "n1"]), ("pairs:resource=high_core", ["n2", "n1", "n2"])],
)
def test_a_rule_picks_the_nodes_of_the_next_job(queue: Any, kit: Any, policy: str, nodes: list[str]) -> None:
    """The second node has one core more; jobs of one core each."""
    bench = queue(policy, nodes=2)
    small, big = bench.manager.cluster.nodes
    big = dataclasses.replace(big, type=dataclasses.replace(big.type, name="big", cores=small.type.cores + 1))
    bench.manager.cluster = dataclasses.replace(bench.manager.cluster, nodes=(small, big))
    bench.submit(*(kit.job(f"j{i}", seconds=9.0 + i, walltime=20.0) for i in range(len(nodes))))
    bench.run(3)
    found = {view.key.partition("/")[2]: view.nodes[0] for view in bench.manager.views.values()}
    assert [found[f"j{i}"] for i in range(len(nodes))] == nodes
    assert bench.value("plans_total", policy=policy, outcome="failed") == 0.0


def test_a_policy_is_called_when_it_wants_to_though_nothing_happens(queue: Any, kit: Any) -> None:
    bench = queue(python_policies.Patient(5.0))
    bench.submit(kit.job("a", seconds=50.0, walltime=60.0))
    bench.run(12, step_s=0.5)
    bench.submit(kit.job("b", seconds=50.0, walltime=60.0))
    bench.run(20, step_s=0.5)
    starts = {view.key.partition("/")[2]: view.start_time for view in bench.manager.views.values()}
    assert starts == {"a": 1005.0, "b": 1011.0}


def test_a_policy_cannot_keep_the_daemon_busy(queue: Any, kit: Any) -> None:
    class Restless:
        """Wants to be called every hundredth of a second."""

        def __init__(self) -> None:
            self.plans = 0

        def decide(self, now: QueueView) -> Iterator[Start | Wake]:
            if now.time <= 0.0:
                self.plans += 1
                yield Wake(0.01)
            if now.time <= 0.0 or not now.running:
                yield from (Start(job) for job in [*now.waiting][: now.free])

    policy = Restless()
    bench = queue(policy)
    bench.submit(*(kit.job(name, seconds=90.0, walltime=99.0, threads=2) for name in "ab"))
    bench.run(200, step_s=0.05)
    assert 9 <= policy.plans <= 13


def test_the_same_policy_starts_the_same_jobs_in_a_replay_in_a_plan_and_live(queue: Any, kit: Any) -> None:
    walls, runs, sizes = [9.0, 4.0, 7.0, 3.0, 5.0, 2.0], [6.0, 4.0, 5.0, 3.0, 2.0, 1.0], [1, 2, 1, 2, 1, 1]
    times = np.zeros(6), np.array(runs), np.array(walls)
    trace = Workload("w", np.arange(6), *times, size=np.array(sizes))
    replayed = replay(trace, 2, python_policies.Easy()).start_time
    bench = queue(python_policies.Easy())
    jobs = [
        kit.job(f"j{i}", seconds=run, threads=size, walltime=wall)
        for i, (run, wall, size) in enumerate(zip(runs, walls, sizes, strict=True))
    ]
    flow = bench.submit(*jobs)
    submitted = bench.cycle.tracker.queue.submissions[flow].workflow
    made = plan(submitted, bench.manager.cluster, policy="./mine.py:Mine")
    assert [job.start_time for job in made.jobs] == replayed.tolist()
    bench.run(30)
    began = {view.key.partition("/")[2]: view.start_time - 1000.0 for view in bench.manager.views.values()}
    assert [began[f"j{i}"] for i in range(6)] == replayed.tolist()


def test_a_policy_that_fails_falls_back_and_is_logged_once(queue: Any, kit: Any, caplog: Any) -> None:
    def decide(now: QueueView) -> Any:
        return [Start(job, nodes=(7,)) for job in now.waiting]

    bench = queue(Says(decide))
    flow = bench.submit(*(kit.job(f"j{i}", seconds=2.0, threads=2) for i in range(4)))
    with caplog.at_level(logging.ERROR, "pilotfish.cycle"):
        bench.run(12)
    assert set(bench.states(flow).values()) == {"completed"}
    said = [record.getMessage() for record in caplog.records]
    why = "policy ./mine.py:Mine failed: PolicyError: policy ./mine.py:Mine: job w.1/j0, at 0.0 s: its nodes are (7,)"
    assert said[0].partition(": ")[2].startswith(why) and len(said) == len(
        {re.sub(r"cycle \\d+", "", text) for text in said}
    )
    assert bench.value("plans_total", policy="./mine.py:Mine", outcome="failed") > 0
    assert all(record.exc_info in (None, False) for record in caplog.records)


def test_a_rejected_job_is_not_planned_and_its_explanation_says_so(queue: Any, kit: Any, caplog: Any) -> None:
    def decide(now: QueueView) -> Any:
        return [Reject(job) if job.size > 1 else Start(job) for job in now.waiting]

    bench = queue(Says(decide))
    flow = bench.submit(kit.job("wide", threads=2), kit.job("thin", seconds=2.0), kit.job("next", "wide", seconds=1.0))
    with caplog.at_level(logging.WARNING, "pilotfish.cycle"):
        bench.run(3)
        other = bench.submit(kit.job("another", seconds=1.0))
        bench.run(4)
    assert bench.states(flow) == {"wide": "pending", "thin": "completed", "next": "pending"}
    assert bench.states(other) == {"another": "completed"}
    explained = kit.requests(bench)("explain", job=f"{flow}/wide")
    assert explained["waits"] == "policy ./mine.py:Mine rejects it"
    assert kit.requests(bench)("explain", job=f"{flow}/next")["waits"] == "it waits for a job that is never started"
    assert sum("rejects it" in record.getMessage() for record in caplog.records) == 1


def test_the_start_that_a_policy_promises_is_explained_and_kept(queue: Any, kit: Any) -> None:
    """The first job takes both cores and may run for 9 s; the second is promised its start when it must have ended."""
    bench = queue("easy")
    flow = bench.submit(
        kit.job("a", seconds=4.0, threads=2, walltime=9.0), kit.job("b", seconds=1.0, threads=2, walltime=9.0)
    )
    bench.run(1)
    began = bench.manager.time - 1.0
    promised = kit.requests(bench)("explain", job=f"{flow}/b")["job"]["plan"]["reserved"]
    assert promised == {"nodes": ["n1"], "start_time": pytest.approx(began + 9.0, abs=1.0)}
    bench.run(12)
    assert bench.manager.views[f"{flow}/b"].start_time <= promised["start_time"]


def test_a_policy_that_breaks_its_own_promise_falls_back(queue: Any, kit: Any) -> None:
    def decide(now: QueueView) -> Any:
        first, *others = now.waiting
        return [Start(first), *(Reserve(job, now.time + 1.0) for job in others)]

    bench = queue(Says(decide))
    flow = bench.submit(*(kit.job(f"j{i}", seconds=2.0, threads=2, walltime=9.0) for i in range(3)))
    bench.run(12)
    assert set(bench.states(flow).values()) == {"completed"}
    assert bench.value("plans_total", policy="./mine.py:Mine", outcome="failed") > 0


def test_forecasts_that_miss_do_not_overrule_a_queue_policy(queue: Any, kit: Any) -> None:
    bench = queue("strict")
    bench.manager.takes = {f"j{i}": 30.0 for i in range(6)}
    bench.submit(*(kit.job(f"j{i}", seconds=2.0, threads=1, walltime=50.0) for i in range(6)))
    bench.run(100)
    assert bench.cycle.planner.forecasts.guard.tripped
    assert bench.cycle.planner.mode(bench.cycle.tracker.queue, RunMode.LIVE) == "live"
    bench.submit(kit.job("last", seconds=2.0))
    assert bench.run(1)[0].policy == "strict"


def test_users_and_waits_are_seen(queue: Any, kit: Any) -> None:
    policy = Says(python_policies.Strict().decide)
    seen = list[Any]()
    policy.does = lambda now: seen.append([(job.id, job.user, job.submit_time) for job in now.waiting]) or ()
    bench = queue(policy)
    bench.manager.time += 5.0
    bench.cycle.tracker.queue.add(dataclasses.replace(submission(kit, bench.manager.time - 5.0), owner=77))
    bench.run(1)
    assert seen[0] == [("w.9/a", 77, -5.0)]


def submission(kit: Any, time: float) -> Any:
    from pilotfish.daemon.state.queue import Submission
    from pilotfish.simulate.model.job import Workflow

    return Submission("w.9", Workflow("w", (kit.job("a"),)), time)


# --- the configuration ---
def write(folder: Path, policy: str) -> Path:
    path = folder / "pilotfish.yaml"
    path.write_text(f"{HEAD}policy: {policy}\n")
    return path


def test_a_users_file_is_relative_to_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "mine.py").chmod(0o600)
    path = write(tmp_path, "./mine.py:Shortest:most=3")
    config = load_config(path)
    assert config.policy == f"{tmp_path}/mine.py:Shortest:most=3"
    load_policy_of(config, path)
    assert isinstance(POLICIES[config.policy], QueueMapping)
    for text in (
        "conservative:order=sjf,allocation=contiguous",
        "easy+powercap:cap=60%",
        "easy+powercap:cap=60%,begin=2026-12-01T08:00+01:00,end=2026-12-01T18:00+01:00",
        "strict+reducepc:budget=1e12,end=2026-12-31T00:00Z",
        "easy+proportional:rho=0.5+opportunistic",
        "easy+inertial",
        "pairs",
        "nodes:rule=biggest",
    ):
        assert load_config(write(tmp_path, text)).policy == text


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ("easy:oder=sjf", "easy: 'oder=sjf'; did you mean order=...? (allowed: order=..., share=...)"),
        ("conservative:order=wfp3", "conservative:order: 'wfp3'"),
        ("easy+energybud", "'easy+energybud' needs an end, because the last submission is not known in advance"),
        ("./mine.py", "'./mine.py' (allowed: ./file.py:Class or package.module:Class"),
        ("essy", "found 'essy' (allowed: 'lookahead', "),
    ],
)
def test_a_wrong_policy_is_one_line_with_the_key(tmp_path: Path, policy: str, says: str) -> None:
    path = write(tmp_path, policy)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert str(caught.value).startswith(f"{path}: policy: ") and says in str(caught.value)
    assert "\\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "mode", "says"),
    [
        (None, 0o600, "cannot be read: No such file or directory"),
        (MINE, 0o666, "is not trusted: it belongs to"),
        ("x = (", 0o600, "as it was loaded: SyntaxError: '(' was never closed"),
        ("class Longest: pass", 0o600, "Shortest: there is no such class"),
        (MINE.replace("most: int = 9", "least: int"), 0o600, "Shortest: missing: least (allowed: :least=...)"),
        (MINE.replace("self.most = most", "1 / 0"), 0o600, "as it was made: ZeroDivisionError: division by zero"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_one_line_with_the_key(
    tmp_path: Path, text: str | None, mode: int, says: str
) -> None:
    path, file = write(tmp_path, "mine.py:Shortest"), tmp_path / "mine.py"
    if text is not None:
        file.write_text(text)
        file.chmod(mode)
    with pytest.raises(ConfigError) as caught:
        load_policy_of(load_config(path), path)
    assert str(caught.value).startswith(f"{path}: policy: ") and says in str(caught.value)


def test_the_fallback_is_a_mapping_policy(tmp_path: Path) -> None:
    path = tmp_path / "pilotfish.yaml"
    path.write_text(HEAD + "guard: {policy: easy}\n")
    with pytest.raises(ConfigError, match=r"guard\.policy: found 'easy' \(allowed: 'lookahead'"):
        load_config(path)
