"""The brake: what a paused daemon starts, gives back and leaves held, and that the pause survives what may happen."""

from __future__ import annotations

import pytest

from pilotfish.daemon.apply import Recording
from pilotfish.daemon.config_sections import AccessConfig
from pilotfish.daemon.state.journal import JournalError
from pilotfish.simulate.model.plan import Start
from pilotfish.simulate.model.snapshot import JobState, JobView
from tests.daemon.conftest import first_fit, make_job

ADA, EVE = 70001, 70003


def offer(bench, name: str, partition: str, *, threads: int = 1, due: float | None = 600.0) -> str:
    job = make_job(name, traits=(("queue", partition),), threads=threads)
    bench.manager.offer(job, due=None if due is None else bench.manager.time + due)
    return f"rjms/{name}"


def views(bench):
    return {key.partition("/")[2]: view for key, view in bench.manager.views.items()}


def full(bench) -> None:
    """Let both nodes be busy, so that jobs stay held."""
    for node in ("n1", "n2"):
        job = make_job(node, threads=2, seconds=1e5)
        bench.manager.views[node] = JobView(node, job, JobState.RUNNING, (node,), start_time=bench.manager.time)


def test_a_partition_is_given_back_and_not_placed_and_the_others_are(offering, kit):
    ask = kit.requests(offering)
    offer(offering, "a", "gpu,main"), offer(offering, "b", "main")
    reply = ask("pause", partition="gpu", why="fans")
    assert reply["ok"] and (reply["warning"], reply["held"]) == ("", 0)
    offering.run(2)
    jobs = views(offering)
    assert (jobs["a"].offered, jobs["a"].start_time) == (False, None) and jobs["b"].start_time is not None
    assert ask("status")["mode"] == "live" and ask("status")["pauses"][0]["partition"] == "gpu"
    assert offering.value("paused", partition="gpu") == 1.0
    (record,) = [one for one in ask("explain", job="rjms/a")["story"] if "paused" in one["text"]]
    assert "pilotfish is paused in partition gpu: fans" in record["text"]
    offer(offering, "c", "gpu")
    offering.run(2)
    assert views(offering)["c"].offered is False and offering.manager.runs["rjms/c"] == 0
    assert ask("resume", partition="gpu")["ended"][0]["why"] == "fans"
    offer(offering, "d", "gpu")
    offering.run(2)
    assert views(offering)["d"].start_time is not None and offering.value("paused", partition="gpu") == 0.0


def test_held_jobs_stay_until_their_deadlines_if_that_is_asked(offering, kit):
    full(offering)
    ask = kit.requests(offering)
    offer(offering, "a", "main", due=30.0), offer(offering, "b", "main", due=600.0)
    offering.run()
    reply = ask("pause", held="keep")
    assert reply["held"] == 2 and ask("status")["mode"] == "paused"
    offering.run(5)
    assert views(offering)["a"].offered and views(offering)["b"].offered
    offering.manager.advance(30.0)
    offering.run(2)
    assert not views(offering)["a"].offered and views(offering)["b"].offered
    assert ask("pause")["held"] == 1  # now without: at once
    offering.run()
    assert not views(offering)["b"].offered


def test_a_pinned_job_is_released(offering, kit):
    offering.manager.stuck = True
    offer(offering, "a", "main")
    offering.run()
    assert views(offering)["a"].pinned_since is not None
    assert kit.requests(offering)("pause", partition="main")["held"] == 1
    offering.run()
    assert not views(offering)["a"].offered


def test_workflows_wait_for_the_end_which_comes_by_itself(bench, kit):
    ask = kit.requests(bench)
    bench.run()
    begun = bench.manager.time
    assert ask("pause", for_s="20.0")["pause"]["until"] == pytest.approx(begun + 20.0, abs=2.0)
    workflow = bench.submit(kit.job("a"))
    bench.run(10)
    assert bench.states(workflow) == {"a": "pending"} and bench.value("mode", mode="paused") == 1.0
    assert bench.value("paused", partition="") == 1.0
    bench.run(15)
    assert bench.states(workflow) == {"a": "running"} and ask("status")["pauses"] == []
    bench.restart()
    assert not bench.cycle.tracker.pauses


def test_a_restart_knows_it_also_without_a_cycle_in_between(bench, kit):
    bench.run()
    assert kit.requests(bench)("pause", partition="gpu", why="fans")["ok"]
    kit.requests(bench)("pause")
    workflow = bench.submit(kit.job("a"))
    bench.restart()
    bench.run(3)
    assert [one.partition for one in bench.cycle.tracker.pauses] == ["", "gpu"]
    assert bench.states(workflow) == {"a": "pending"}
    assert kit.requests(bench)("resume", partition="gpu")["warning"] == "all jobs are still paused"
    assert len(kit.requests(bench)("resume")["ended"]) == 1
    bench.restart()
    bench.run(2)
    assert bench.states(workflow) == {"a": "running"}
    rows = bench.journal._db.execute("SELECT kind, target FROM changes WHERE kind IN ('pause', 'resume')").fetchall()
    assert rows == [("pause", "gpu"), ("pause", ""), ("resume", "gpu"), ("resume", "")]


def test_only_administrators_pause_and_resume(bench, kit):
    ask = kit.requests(bench, AccessConfig(admins=[EVE]))
    bench.run()
    for do in ("pause", "resume"):
        refused = ask(do, ADA)
        assert not refused["ok"] and refused["code"] == 403
    assert not bench.cycle.tracker.pauses
    assert ask("pause", EVE)["pause"]["by"] == f"uid {EVE}" and ask("status", ADA)["pauses"][0]["by"] == f"uid {EVE}"
    assert ask("resume", EVE)["ok"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"for_s": "0"}, "for_s: found 0 "),
        ({"for_s": "1e9"}, "for_s: found 1e9 "),
        ({"for_s": "2h"}, "for_s: found 2h "),
        ({"for_s": "nan"}, "for_s: found nan "),
        ({"for_s": 20.0}, "for_s: found float"),
        ({"held": "drop"}, "held: found drop (allowed: release, keep)"),
        ({"partition": "x" * 300}, "partition: too long"),
        ({"partition": 7}, "partition: found int"),
        ({"why": "a\nb"}, "why: too long, or not printable"),
    ],
)
def test_a_wrong_request_changes_nothing(bench, kit, arguments, words):
    bench.run()
    reply = kit.requests(bench)("pause", **arguments)
    assert not reply["ok"] and words in reply["error"] and not bench.cycle.tracker.pauses


def test_a_name_that_nothing_has_is_pointed_out(offering, kit):
    ask = kit.requests(offering)
    assert "has not been read yet" in ask("pause", for_s="9")["error"]
    offer(offering, "a", "main")
    offering.run()
    assert ask("pause", partition="mian")["warning"] == "no job of mian is in the queue; did you mean 'main'?"
    assert ask("resume", partition="main")["error"] == "partition main is not paused; did you mean 'mian'?"
    assert ask("pause", partition="main")["warning"] == ""


def test_it_holds_even_if_the_journal_cannot_be_written(bench, kit, monkeypatch):
    bench.run()
    ask, workflow = kit.requests(bench), bench.submit(kit.job("a"))

    def full_disk(*_, **__):
        raise JournalError("no space left")

    with monkeypatch.context() as broken:
        broken.setattr(bench.journal, "save", full_disk)
        assert "a restart would not know it" in ask("pause")["warning"]
    bench.run(5)
    assert ask("status")["mode"] == "paused" and bench.states(workflow) == {"a": "pending"}
    bench.restart()
    assert bench.cycle.tracker.pauses.of_all is not None  # written as soon as the journal could be


@pytest.mark.parametrize("partition", [None, "main"])
def test_a_pause_in_the_middle_of_a_plan_stops_what_the_plan_starts(offering, kit, partition):
    ask, replies = kit.requests(offering), []

    def pausing(problem, cluster, options):
        replies.append(ask("pause", **({} if partition is None else {"partition": partition})))
        return first_fit(problem, cluster, options)

    offer(offering, "a", "main")
    offering.cycle.planner.make_plan = pausing
    (report,) = offering.run()
    assert replies and replies[0]["ok"] and not [one for one in report.applied if isinstance(one.action, Start)]
    assert offering.manager.runs["rjms/a"] == 0


def test_a_configured_pause_outlasts_a_resume(bench, kit):
    bench.run()
    bench.cycle.tracker.paused = True
    ask = kit.requests(bench)
    assert "paused by its configuration" in ask("resume")["warning"] and ask("status")["mode"] == "paused"
    bench.run()
    assert bench.value("paused", partition="") == 1.0


def test_a_dry_run_has_nothing_to_pause(bench, kit):
    bench.cycle.applier = Recording(lambda line: None)
    assert "nothing to pause" in kit.requests(bench)("pause")["error"]
