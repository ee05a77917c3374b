"""A learned order in the daemon: trusted only as far as it has proved itself, and caught if it lies."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pilotfish.adapters.simulated import SimulatedAdapter
from pilotfish.daemon.config import load_config, load_policy_of
from pilotfish.daemon.learning.guard_rail import Guard
from pilotfish.daemon.planning.guarded_planner import simulate_plan
from pilotfish.daemon.planning.live_component import use_policy
from pilotfish.daemon.planning.problem import WINDOW, Options
from pilotfish.daemon.state.audit import AuditQuestion
from pilotfish.daemon.trace_run import DaemonReplay, TraceJobs, TraceRun
from pilotfish.formats.user_policy import queue_mapping
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.learned.kept_model import KeptModel, OrderedJob
from pilotfish.simulate.learned.learned_mapping import LearnedMapping
from pilotfish.simulate.model.cluster import Cluster, Contention, Node, NodeType
from pilotfish.simulate.model.snapshot import JobState, JobView, JobViews, Snapshot
from pilotfish.simulate.model.workload import Workload
from tests.formats.test_model_file import BROKEN
from tests.support.learned_models import BEATS, LIAR, SJF, model_file, weights_of

#: The newest first: each job that comes makes those before it wait longer, which no forecast at its first plan shows.
NEWEST = weights_of(f3=5.0)
HEAD = "schema: pilotfish/daemon/v1\ncluster: lab.yaml\n"
CORES = 16


@pytest.fixture(scope="module")
def jobs() -> Workload:
    """Jobs that fill four nodes of four cores for a while."""
    random, count = np.random.default_rng(1), 120
    submit = np.sort(random.uniform(0, 4800, count))
    run = random.lognormal(5.3, 1.2, count).clip(5, 5000)
    limit, size = run * random.uniform(1.05, 3, count) + 1, random.choice([1, 2, 4, 8], count)
    return Workload("trace", np.arange(count), submit, run, limit, size.astype(int))


def played(
    jobs: Workload, policy: str, enabled: bool = True, progress: Callable[[float], None] = lambda now: None
) -> DaemonReplay:  # fmt: skip
    """Let the daemon decide about all jobs, on the simulated adapter."""
    kind = NodeType("t", 4, 8e9, 1e10, contention=Contention.NONE)
    cluster = Cluster("lab", tuple(Node(f"n{place}", kind) for place in range(4)))
    use_policy(policy)
    trace = TraceJobs(jobs, cluster, "walltime")
    guard = Guard(bound=0.5, window=20, fallback="slf", enabled=enabled)
    options = Options(policy=policy, objective="turnaround", window=WINDOW)
    run = TraceRun(trace, SimulatedAdapter(cluster, truth=trace.truth), options, guard)
    return run.run(progress=progress, clock=lambda: 0.0)


def waits_of(run: DaemonReplay) -> np.ndarray:
    """Return the waits, after a check that no job was lost and nothing failed."""
    replayed = run.replayed
    assert not run.failures and not run.counts()["rejections"] and not np.isnan(replayed.finish_time).any()
    return replayed.start_time - replayed.workload.submit_time


@pytest.fixture(scope="module")
def baseline(jobs: Workload) -> DaemonReplay:
    """Return what the order decides that a model is compared with."""
    return played(jobs, "easy:order=sjf")


def test_a_model_that_equals_the_baseline_gives_its_schedule_and_is_not_overruled(
    jobs: Workload, baseline: DaemonReplay, tmp_path: Path
) -> None:
    policy = f"learned:{model_file(tmp_path, SJF)}"
    learned = played(jobs, policy)
    assert np.array_equal(learned.replayed.start_time, baseline.replayed.start_time)
    assert [*learned.counts()["plans"]] == [policy]


@pytest.mark.long
@pytest.mark.parametrize("weights", [LIAR, NEWEST], ids=["worst", "newest"])
def test_a_model_that_lies_is_caught_and_no_job_is_lost(
    jobs: Workload, baseline: DaemonReplay, tmp_path: Path, weights: tuple[float, ...], caplog: pytest.LogCaptureFixture
) -> None:
    policy, waits = f"learned:{model_file(tmp_path, weights)}", dict[str, float]()
    with caplog.at_level(logging.ERROR):
        caught = played(jobs, policy)
    assert [record.getMessage() for record in caplog.records if "decides in place of" in record.getMessage()]
    waits["guarded"] = float(waits_of(caught).mean())
    waits["baseline"] = float(waits_of(baseline).mean())
    waits["free"] = float(waits_of(played(jobs, policy, enabled=False)).mean())
    plans = caught.counts()["plans"]
    assert plans["easy:order=sjf"] > plans[policy]
    assert waits["guarded"] - waits["baseline"] < 0.5 * (waits["free"] - waits["baseline"])


def test_a_file_that_vanishes_during_service_changes_nothing(jobs: Workload, tmp_path: Path) -> None:
    """The service goes on with the model that it has read; only a reload needs the file."""
    path = model_file(tmp_path, NEWEST)
    expected = played(jobs, f"learned:{path}").replayed.start_time
    times = list[float]()

    def vanish(now: float) -> None:
        times.append(now)
        if len(times) == 3:
            path.unlink()

    starts = played(jobs, f"learned:{path}", progress=vanish).replayed.start_time
    assert not path.exists() and len(times) > 3 and np.array_equal(starts, expected)
    with pytest.raises(ConfigError, match=r"m\.pfmodel\.json"):
        queue_mapping(f"learned:{path}")


def kept_of(path: Path) -> KeptModel:
    mapping = queue_mapping(f"learned:{path}")
    assert isinstance(mapping, LearnedMapping) and mapping.keep is not None
    state = mapping.keep()
    assert isinstance(state, KeptModel)
    return state


def test_a_restart_remembers_and_another_model_begins_again(tmp_path: Path) -> None:
    liar, other = model_file(tmp_path, LIAR), model_file(tmp_path, SJF, "other")
    state = kept_of(liar).state() | {"why": "it lied", "lately": [["ada", 5.0, 7.0]]}
    state["ended"] = [["ada", 0.0, 2, 9.0, 1.0, 3.0, 1.0]] * 3
    text = json.loads(json.dumps(state))  # as the journal has it
    again, fresh = kept_of(liar), kept_of(other)
    again.restore(text)
    fresh.restore(text)
    assert again.overruled() == ("easy:order=sjf", "it lied") and again.state() == text
    assert fresh.overruled() is None and fresh.state()["ended"] == [] and fresh.state()["lately"] == text["lately"]
    damaged = kept_of(liar)
    damaged.restore({"lately": 5})
    assert damaged.overruled() is None


def test_jobs_are_counted_from_their_first_plan_to_their_end(tmp_path: Path, kit: Any) -> None:
    guarded, order = kept_of(model_file(tmp_path, LIAR)), OrderedJob("ada", 0.0, 1, 60.0)
    job, moments, no_nodes = kit.job("x"), iter(range(10, 100, 10)), Cluster("lab", ())

    def rows_after(
        state: JobState | None, start: float | None = None, end: float | None = None
    ) -> tuple[list[Any], list[Any]]:
        """Return the rows of jobs that have ended and of the others after one more look."""
        views = () if state is None else (JobView("x", job, state, ("n1",), start_time=start, finish_time=end),)
        guarded.observe(Snapshot(float(next(moments)), 1, no_nodes, (), JobViews(views)))
        rows = guarded.state()
        return rows["ended"], rows["present"]

    waiting, begun = ["x", "ada", 0.0, 1, 60.0, None, None, 1.0], ["x", "ada", 0.0, 1, 60.0, 15.0, None, 1.0]
    guarded.note_waiting({"x": order})
    guarded.note_waiting({}, ["x"])  # it was handed over, and another plan is made before it is seen to run
    assert rows_after(JobState.PENDING) == ([], [waiting])
    for state, start in ((JobState.RUNNING, 15.0), (JobState.SUSPENDED, 15.0), (JobState.UNKNOWN, None)):
        assert rows_after(state, start) == ([], [begun]), state
    assert rows_after(JobState.PENDING) == ([], [waiting])  # it was put back
    assert rows_after(JobState.RUNNING, 65.0)[0] == []
    guarded.note_waiting({})
    assert rows_after(None) == ([["ada", 0.0, 1, 60.0, 65.0, 70.0, 1.0]], [])
    guarded.note_waiting({"x": order})
    assert rows_after(JobState.COMPLETED, 71.0, 72.0)[0][1:] == [
        ["ada", 0.0, 1, 60.0, 71.0, 72.0, 1.0]
    ]  # between looks
    guarded.note_waiting({"y": order})
    guarded.note_waiting({})  # its user has taken it back
    assert guarded.state()["present"] == []


def test_the_mode_the_audit_and_explain_say_what_decided(bench: Any, kit: Any, tmp_path: Path) -> None:
    path = model_file(tmp_path, LIAR, processors=4)
    policy = f"learned:{path}"
    use_policy(policy)
    planner = bench.cycle.planner
    planner.make_plan = simulate_plan
    planner.use(Options(policy=policy, objective="turnaround", window=WINDOW))
    flow = bench.submit(
        *(
            kit.job(f"j{i}", seconds=20.0 + 100.0 * (i % 2), threads=2, walltime=30.0 + 100.0 * (i % 2))
            for i in range(60)
        )
    )
    bench.run(1)
    assert kit.requests(bench)("status")["model"] == {"doubt": "", "overruled": ""}
    waiting = [entry for entry in bench.cycle.tracker.queue.active() if entry.outlook is not None]
    scored = waiting[-1].outlook.to_dict()["scored"]
    assert scored["baseline"] == "easy:order=sjf" and len(scored["features"]) == 3 and not scored["doubt"]
    chosen = [record for record in bench.journal.records(f"{flow}/j1") if record["kind"] == "chosen"]
    assert "place 1 in the model's order, score " in chosen[0]["text"] and "limit " in chosen[0]["text"]
    bench.run(1500, step_s=2.0)
    assert set(bench.states(flow).values()) == {"completed"}
    assert bench.value("mode", mode="fallback") == 1.0
    assert "under its order" in kit.requests(bench)("status")["model"]["overruled"]
    assert bench.value("plans_total", policy="easy:order=sjf", outcome="planned") > 0.0
    lines = bench.journal.audited(AuditQuestion())
    assert any("under its order" in (line["why"] or "") for line in lines if line["kind"] == "mode")
    assert any(line["by"] == "guard rail: policy easy:order=sjf" for line in lines)


@pytest.mark.parametrize(
    ("more", "acts", "refused"),
    [
        ("", True, True),
        ("", False, False),  # shadow and dry run
        ("allow_unproven: true\n", True, False),
        ("allow_unproven: false\n", True, True),
    ],
)
def test_an_unproven_model_acts_only_if_that_is_allowed(tmp_path: Path, more: str, acts: bool, refused: bool) -> None:
    path = tmp_path / "pilotfish.yaml"
    path.write_text(f"{HEAD}policy: learned:m.pfmodel.json\n{more}")
    model_file(tmp_path, SJF)
    config = load_config(path)
    assert config.policy == f"learned:{tmp_path}/m.pfmodel.json"
    if refused:
        with pytest.raises(ConfigError, match="allow_unproven: true"):
            load_policy_of(config, path, acts=acts)
        model_file(tmp_path, SJF, evaluated=(BEATS,))
    load_policy_of(config, path, acts=acts)


@pytest.mark.parametrize(
    "verdict", [{"beats": False}, {"copies": 4}, {"chosen": "best in hindsight"}, {"number": "wait"}, {"beats": 1}]
)
def test_other_verdicts_prove_nothing(tmp_path: Path, verdict: dict[str, object]) -> None:
    path = tmp_path / "pilotfish.yaml"
    path.write_text(f"{HEAD}policy: learned:m.pfmodel.json\n")
    model_file(tmp_path, SJF, evaluated=(BEATS | verdict,))
    with pytest.raises(ConfigError, match="no verdict in its file"):
        load_policy_of(load_config(path), path, acts=True)


@pytest.mark.parametrize("place", range(len(BROKEN)))
def test_a_hostile_model_is_one_error_of_the_configuration(tmp_path: Path, place: int) -> None:
    break_it, _ = BROKEN[place]
    path, file = tmp_path / "pilotfish.yaml", model_file(tmp_path, SJF, max_wait=3600.0)
    path.write_text(f"{HEAD}policy: learned:m.pfmodel.json\n")
    file.write_bytes(break_it(json.loads(file.read_text())))
    with pytest.raises(ConfigError) as raised:
        load_policy_of(load_config(path), path)
    assert str(raised.value).startswith(f"{path}: policy: ") and str(file) in str(raised.value)
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 700


def test_a_model_that_others_can_change_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pilotfish.yaml"
    path.write_text(f"{HEAD}policy: learned:m.pfmodel.json\n")
    model_file(tmp_path, SJF).chmod(0o666)
    with pytest.raises(ConfigError, match="not trusted"):
        load_policy_of(load_config(path), path)
    with pytest.raises(ConfigError, match=r"pfmodel\.json"):
        path.write_text(f"{HEAD}policy: learned:m.json\n")
        load_config(path)
