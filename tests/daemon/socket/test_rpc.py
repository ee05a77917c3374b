"""Requests of clients: submit, status, cancel, explain; an invalid request gets one sentence."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.daemon.config_sections import AccessConfig
from pilotfish.daemon.state.codec import encode
from pilotfish.daemon.state.users import user_name
from pilotfish.simulate.model.job import Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.observed_queue import ObservedJob, ObservedQueue
from pilotfish.simulate.model.snapshot import JobState, NodeState

#: A user who is neither root nor the tests' own.
OTHER = 4242


@pytest.fixture
def asked(bench, kit):
    return bench, kit.requests(bench)


def submit(ask, *jobs, name="dag 1", environment=None, **more):
    text = encode(Workflow(name, jobs, base_environment=environment))
    return ask("submit", workflow=text, directory="/home/me", **more)


def test_submit_run_and_status(asked, kit):
    bench, ask = asked
    reply = submit(ask, kit.job("a"), kit.job("b", "a", directory="sub"))
    assert reply["ok"] and reply["jobs"] == 2 and reply["id"].startswith("dag-1.")
    bench.run(3)
    (workflow,) = ask("status")["workflows"]
    assert workflow["state"] == "running" and workflow["exit_code"] is None
    first, second = workflow["jobs"]
    assert (first["state"], second["state"]) == ("running", "pending")
    assert first["plan"] is None
    plan, now = second["plan"], ask("status")["time"]
    assert plan["start_time"] > now, "as the plan of the bench has it"
    assert plan["finish_time"] == pytest.approx(plan["start_time"] + plan["run_time"]) and len(plan["nodes"]) == 1
    assert ask("explain", job="b")["job"]["plan"] == plan
    assert first["forecast_run_time"] == pytest.approx(10.0)
    assert (first["profile"], first["class"]) == ("cmd: true (given)", None)
    assert "bandwidth is not known" in first["class_why"]
    views = bench.manager.views
    assert views[first["key"]].job.directory == "/home/me"
    bench.run(25)
    assert views[second["key"]].job.directory == "/home/me/sub"
    (workflow,) = ask("status", workflow=reply["id"])["workflows"]
    assert (workflow["state"], workflow["exit_code"]) == ("completed", 0)
    assert workflow["finish_time"] == max(job["finish_time"] for job in workflow["jobs"])


def test_jobs_have_the_environment_of_their_submitter_also_after_a_restart(bench, kit, caplog):
    bench.manager.capabilities = dataclasses.replace(bench.manager.capabilities, here=True)
    ask = kit.requests(bench)
    reply = submit(ask, kit.job("a"), kit.job("b", "a"), environment=(("A", "1"), ("TOKEN", "s3cret")))
    assert reply["exported"]
    bench.run(2)
    bench.restart()
    bench.run(20)
    started = [view.job.base_environment for view in bench.manager.views.values()]
    assert started == [(("A", "1"), ("TOKEN", "s3cret"))] * 2 and "s3cret" not in caplog.text
    assert "s3cret" not in str(kit.requests(bench)("status")) + str(kit.requests(bench)("explain", job="a"))


def test_jobs_have_the_umask_of_their_submitter_also_after_a_restart(bench, kit):
    bench.manager.capabilities = dataclasses.replace(bench.manager.capabilities, here=True)
    flow = Workflow("w", (kit.job("a"), kit.job("b", "a")), umask=0o027)
    assert kit.requests(bench)("submit", workflow=encode(flow), directory="/home/me")["ok"]
    bench.run(2)
    bench.restart()
    bench.run(20)
    assert [view.job.umask for view in bench.manager.views.values()] == [0o027] * 2
    for wrong in (Workflow("w", (kit.job("a"),), umask=0o1000), Workflow("w", (replace(kit.job("a"), umask=0),))):
        reply = kit.requests(bench)("submit", workflow=encode(wrong), directory="/home/me")
        assert not reply["ok"] and "umask" in reply["error"]


def test_a_resource_manager_of_its_own_sets_the_environment(asked, kit):
    bench, ask = asked
    assert not submit(ask, kit.job("a"), environment=(("A", "1"),))["exported"]
    bench.run(2)
    assert [view.job.base_environment for view in bench.manager.views.values()] == [None]


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ((("A=B", "s3cret"),), "'A=B' is not a variable"),
        ((("A", "s3cret\0"),), "'A' is not a variable"),
        ((("A", "s3cret" * 30_000),), "'A' has 180,002 bytes"),
        (tuple((f"A{i}", "s3cret" * 10_000) for i in range(5)), "(allowed: 262,144)"),
    ],
)
def test_a_wrong_environment_is_refused_without_its_values(asked, kit, environment, says):
    reply = submit(asked[1], kit.job("a"), environment=environment)
    assert not reply["ok"] and says in reply["error"] and "s3cret" not in reply["error"]


def test_the_same_key_is_accepted_once(asked, kit):
    bench, ask = asked
    first = submit(ask, kit.job("a"), key="nightly")
    again = submit(ask, kit.job("a"), key="nightly")
    other = submit(ask, kit.job("z"), key="nightly")
    assert again["id"] == first["id"] and again["again"] and not first["again"]
    assert not other["ok"] and "another workflow" in other["error"]
    assert len(bench.cycle.tracker.queue.submissions) == 1


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"nodes": 3}, "can never run here: it needs 3 nodes"),
        ({"memory": 2e9}, "over its memory"),
        ({"command": None}, "has no command"),
        ({"after": ("zzz",)}, "'zzz'"),
    ],
)
def test_one_bad_job_refuses_the_whole_workflow(asked, kit, changes, says):
    bench, ask = asked
    reply = submit(ask, kit.job("fine"), dataclasses.replace(kit.job("bad"), **changes))
    assert not reply["ok"] and says in reply["error"]
    assert not bench.cycle.tracker.queue.submissions and not bench.journal.recent(5)


def test_cancel_ends_a_job_or_a_workflow(asked, kit):
    bench, ask = asked
    workflow = submit(ask, kit.job("a", seconds=900), kit.job("b", "a"), kit.job("c", "a"))["id"]
    bench.run(1)
    assert ask("cancel", target=f"{workflow}/b")["cancelled"] == 1
    reply = ask("cancel", target=workflow)
    assert (reply["cancelled"], reply["ending"]) == (1, 1)
    bench.run(3)
    assert set(bench.states(workflow).values()) == {"cancelled"}
    assert "ended already" in ask("cancel", target=workflow)["error"]
    assert f"did you mean '{workflow}'" in ask("cancel", target=workflow[:-1])["error"]
    name = workflow.rpartition(".")[0]
    assert f"did you mean '{name}'" in ask("cancel", target=f"{name}x")["error"]
    assert "did you mean 'a'" in ask("cancel", target=f"{workflow}/aa")["error"]


def test_explain_finds_a_job_by_its_name(asked, kit):
    bench, ask = asked
    workflow = submit(ask, kit.job("align"), kit.job("late", "align"))["id"]
    bench.run(3)
    reply = ask("explain", job="align")
    assert reply["job"]["key"] == f"{workflow}/align"
    assert [record["kind"] for record in reply["story"]] == ["chosen", "applied"]
    assert ask("explain", job=f"{workflow}/late")["after"] == ["align"]
    assert "no workflow has a job 'missing' (name it as WORKFLOW/JOB)" in ask("explain", job="missing")["error"]
    assert "no workflow has a job 'alin'; did you mean 'align'?" in ask("explain", job="alin")["error"]


def test_a_journal_that_cannot_be_written_refuses_submissions(asked, kit):
    bench, ask = asked
    database = bench.journal._db
    pages = database.execute("PRAGMA page_count").fetchone()[0]
    database.execute(f"PRAGMA max_page_count={pages}")
    reply = submit(ask, *(kit.job(f"j{i}") for i in range(200)))
    assert not reply["ok"] and "cannot be written" in reply["error"]
    assert not bench.cycle.tracker.queue.submissions
    database.execute("PRAGMA max_page_count=100000")
    assert submit(ask, kit.job("a"))["ok"]


@pytest.mark.parametrize("table", ["changes", "workflows", "jobs"])
def test_what_is_refused_does_not_run_after_a_restart(asked, kit, table):
    """Wherever in a submission the disk becomes full; its user submits it again, and it would run twice."""
    bench, ask = asked
    full = f"CREATE TEMP TRIGGER full BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'disk full'); END"
    bench.journal._db.execute(full)
    reply = submit(ask, kit.job("a"))
    assert not reply["ok"] and "disk full" in reply["error"]
    assert not bench.cycle.tracker.queue.submissions and not bench.journal.load().submissions


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
fields = st.sampled_from(["workflow", "directory", "key", "target", "job"])


@given(st.sampled_from(["submit", "status", "cancel", "explain", "nothing"]), st.dictionaries(fields, values))
@settings(max_examples=80, deadline=None)
def test_an_invalid_request_gets_one_sentence_and_changes_nothing(asked, do, arguments):
    bench, ask = asked
    reply = ask(do, **arguments)
    harmless = do == "status" and arguments.get("workflow") is None
    assert reply["ok"] is harmless
    assert harmless or (reply["error"] and "the daemon failed" not in reply["error"])
    assert not bench.cycle.tracker.queue.submissions


def test_surrogates_in_text_are_refused(asked):
    _, ask = asked
    for do, name in (("status", "workflow"), ("cancel", "target"), ("explain", "job")):
        assert "not printable" in ask(do, **{name: "\ud800"})["error"]
    assert not ask("submit", workflow="\ud800", directory="/")["ok"]


def test_status_of_a_large_workflow_is_bounded_and_counts_everything(asked, kit, caplog):
    bench, ask = asked
    jobs = [kit.job(f"j{i}") for i in range(2500)]
    large = submit(ask, *jobs)["id"]
    bench.run(2)
    for reply in (ask("status"), ask("status", workflow=large)):
        (shown,) = reply["workflows"]
        assert sum(shown["job_counts"].values()) == 2500 and len(shown["jobs"]) == 1000
        assert sum(job["state"] == "running" for job in shown["jobs"]) == shown["job_counts"]["running"] > 0
    caplog.clear()
    assert ask("cancel", target=large)["cancelled"] > 2400
    bench.run(3)
    lines = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert len(lines) < 10 and sum("jobs cancelled" in line for line in lines) >= 1
    (shown,) = ask("status")["workflows"]
    assert (shown["jobs"], shown["state"], shown["exit_code"]) == ([], "cancelled", 1)
    assert shown["job_counts"] == {"cancelled": 2500}
    (shown,) = ask("status", workflow=large)["workflows"]
    assert len(shown["jobs"]) == 1000 and shown["job_counts"] == {"cancelled": 2500}


def test_status_shows_what_is_chosen(asked, kit):
    bench, ask = asked
    mine = submit(ask, kit.job("a"), kit.job("b", "a"), name="mine")["id"]
    other = submit(ask, kit.job("c"), uid=OTHER, name="other")["id"]
    bench.run(2)

    def shown(**chosen):
        return {each["id"]: [job["id"] for job in each["jobs"]] for each in ask("status", **chosen)["workflows"]}

    assert shown(of_user=user_name(OTHER)) == {other: ["c"]}
    assert shown(of_workflow="mine") == shown(of_workflow=mine) == {mine: ["a", "b"]}
    assert shown(of_state="pending") == shown(workflow=mine, of_state="pending") == {mine: ["b"]}
    assert shown(of_state="running") == {mine: ["a"], other: ["c"]}
    assert shown(of_user="nobody here") == shown(of_state="failed") == {}
    bench.run(40)
    assert shown(of_state="completed", of_workflow=mine) == {mine: ["a", "b"]} and shown(of_state="pending") == {}


def test_every_answer_says_how_old_it_is(asked, kit):
    bench, ask = asked
    submit(ask, kit.job("a"))
    bench.run(2)
    seen = bench.cycle.tracker.now
    for _ in range(7000):  # milliseconds
        bench.clock()
    for do, arguments in (("status", {}), ("explain", {"job": "a"}), ("nodes", {}), ("accuracy", {})):
        reply = ask(do, **arguments)
        assert (reply["seen"], reply["time"] - reply["seen"]) == (seen, pytest.approx(7.0, abs=0.2)), do


def test_nodes_have_their_state_load_and_jobs(asked, kit):
    bench, ask = asked
    assert "not read the nodes yet" in ask("nodes")["error"]
    flow = submit(ask, kit.job("a", threads=2), name="mine")["id"]
    streams = Profile((ThreadGroup(1, 10.0, utilisation=0.5, bandwidth=4e9),))
    submit(ask, dataclasses.replace(kit.job("s"), profile=streams), uid=OTHER, name="other")
    bench.manager.states[1] = NodeState.DRAINED
    bench.run(1)
    bench.manager.states[1] = NodeState.UP
    bench.run(2)
    bench.manager.states[1] = NodeState.DRAINED
    bench.run(1)
    first, second = ask("nodes")["nodes"]
    assert (first["name"], first["state"], first["load"], first["jobs"]) == ("n1", "up", 1.0, 1)
    assert first["bandwidth"] is None and first["power_watts"] == 20.0, "the bandwidth of the job is not known"
    assert (second["state"], second["threads"], second["bandwidth"]) == ("drained", 1, 2e9)
    assert [node["job_names"] for node in (first, second)] == [[f"{flow}/a"], second["job_names"]]
    assert [node["name"] for node in ask("nodes", of_state="drained")["nodes"]] == ["n2"]
    assert [node["name"] for node in ask("nodes", of_user=user_name(OTHER))["nodes"]] == ["n2"]
    assert [node["name"] for node in ask("nodes", of_workflow="mine")["nodes"]] == ["n1"]


def test_nodes_name_no_job_that_a_user_may_not_see(bench, kit):
    ask = kit.requests(bench, AccessConfig(see="own"))
    submit(ask, kit.job("a"), name="mine")
    bench.run(2)
    (busy,) = [node for node in ask("nodes", uid=4242)["nodes"] if node["jobs"]]
    assert busy["threads"] == 1 and busy["job_names"] == []
    assert ask("nodes", uid=4242, of_workflow="mine")["nodes"] == []


def test_many_workflows_are_bounded_in_one_reply(asked, kit):
    _, ask = asked
    for i in range(510):
        submit(ask, kit.job("a"), name=f"w{i}")
    reply = ask("status")
    assert (len(reply["workflows"]), reply["workflows_left_out"]) == (500, 10)


def test_jobs_that_are_not_handed_over_show_when_they_start_to_those_who_may_see_them(bench, kit):
    here = frozenset({"n1"})
    runs = ObservedJob("memory/1", JobState.RUNNING, walltime=100.0, start_time=990.0, where=here)
    mine = ObservedJob("memory/2", JobState.PENDING, "mine", OTHER, walltime=10.0, where=here, manager_start=1200.0)
    held = replace(mine, key="memory/3", name="held", owner=OTHER + 1, unknown="it is held", manager_start=None)
    bench.manager.observed = ObservedQueue(1000.0, (runs, mine, held), {"n1": (1, 2.0**30)})
    bench.run(1)
    first, second = kit.requests(bench)("status")["queue"]
    assert first["plan"]["start_time"] == 1090.0 and first["plan"]["finish_time"] == 1100.0
    assert (first["id"], first["name"], first["manager_start_time"], first["unknown"]) == ("2", "mine", 1200.0, "")
    assert (second["plan"], second["unknown"]) == (None, "it is held")
    own = kit.requests(bench, AccessConfig(see="own"))
    assert [job["name"] for job in own("status", uid=OTHER)["queue"]] == ["mine"]
    assert kit.requests(bench)("status", of_user=user_name(OTHER))["queue"] == [first]
    assert kit.requests(bench)("status", of_state="running")["queue"] == []
    told = kit.requests(bench)("explain", job="2")
    assert told["job"]["plan"] == first["plan"] and told["story"] == [] and "not handed over" in told["waits"]
    assert not own("explain", job="3", uid=OTHER)["ok"]
    runs_there = kit.requests(bench)("explain", job="1")
    assert (runs_there["job"]["state"], runs_there["job"]["start_time"]) == ("running", 990.0)
    assert (runs_there["job"]["nodes"], runs_there["job"]["plan"], runs_there["waits"]) == (["n1"], None, "")
    bench.run(1)
    reply = kit.requests(bench)("accuracy")
    assert [row[0] for row in reply["starts"]] == ["memory/1"]
