"""The watch over a canary: no write to the control group, a step back by itself that lasts, and a step up by a person."""

from __future__ import annotations

import dataclasses

import pytest

from pilotfish.adapters.base import AdapterError
from pilotfish.daemon.apply import Recording
from pilotfish.daemon.canary.canary_watch import allowed_mode
from pilotfish.daemon.canary.groups import KEPT
from pilotfish.daemon.config_sections import AccessConfig, HandoverConfig
from pilotfish.daemon.run_modes import RunMode
from pilotfish.daemon.state.audit import AuditQuestion
from pilotfish.daemon.state.journal import JournalError
from pilotfish.simulate.model.plan import Plan, Release
from pilotfish.simulate.model.snapshot import JobState
from tests.daemon.conftest import first_fit, make_job

HALF = HandoverConfig(share=0.5)
EVE = 70003


class Watched:
    """A manager that starts jobs of its own accord after a second, and notes every write."""

    def __init__(self, inner) -> None:
        self._inner, self.written = inner, []

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def apply(self, action) -> None:
        self.written.append(action.key)
        self._inner.apply(action)


def begin(bench, settings=HALF, planner=None, mode=None) -> Watched:
    bench.kill()
    bench.handover, bench.planner = settings, planner or bench.planner
    watched = Watched(bench.manager)
    bench.start(lambda thing: watched if thing is bench.manager else thing,
                applier=None if mode is None else Recording(lambda line: None, mode=mode))  # fmt: skip
    return watched


def sides(bench) -> dict[str, str]:
    return {member.key: member.side for member in bench.journal.members()}


def start_control(bench) -> None:
    """Let the manager itself start the jobs of the control group."""
    control = {key for key, side in sides(bench).items() if side == "control"}
    for key in control:
        view = bench.manager.views[key]
        if view.state is JobState.PENDING:
            bench.manager.views[key] = dataclasses.replace(
                view, state=JobState.RUNNING, offered=False, nodes=("n1",), start_time=bench.manager.time
            )


def never(problem, cluster, options) -> Plan:
    """Start nothing, ever: the policy that harms."""
    plan = first_fit(problem, cluster, options)
    jobs = tuple(dataclasses.replace(job, start_time=5.0, finish_time=5.0 + job.finish_time) for job in plan.jobs)
    return dataclasses.replace(plan, jobs=jobs)


def test_the_control_group_is_never_written_to_and_both_groups_end(offering):
    watched = begin(offering)
    offering.run()
    for name in range(40):
        offering.manager.offer(make_job(str(name), seconds=3.0))
        offering.run()
        start_control(offering)
    for _ in range(60):
        offering.run()
        start_control(offering)
    groups = sides(offering)
    assert len(groups) == 40 and 8 < sum(side == "canary" for side in groups.values()) < 32
    assert set(watched.written) == {key for key, side in groups.items() if side == "canary"}
    assert {view.state for view in offering.manager.views.values()} == {JobState.COMPLETED}
    ended = offering.journal.members()
    assert all(one.state == "completed" and one.finish_time - one.start_time >= 3.0 for one in ended)
    assert not offering.journal.members(open_only=True) and not offering.canary.groups.members
    comparison = offering.canary.compared(offering.manager.time)
    assert sum(comparison.jobs.values()) == 40 and comparison.unknown == comparison.not_drawn == 0
    assert offering.value("handover_jobs_total", group="canary") == sum(side == "canary" for side in groups.values())
    assert offering.value("handover_share") == 0.5


def test_an_action_on_a_control_job_is_refused(offering):
    begin(offering, HandoverConfig(share=0.0))
    offering.manager.offer(make_job("1"))
    offering.run()
    with pytest.raises(AdapterError, match="control group"):
        offering.cycle.adapter.apply(Release("rjms/1", "no"))


def offer_held(bench, name: str, **job) -> None:
    bench.manager.offer(make_job(name, **job))
    key = f"rjms/{name}"
    bench.manager.views[key] = dataclasses.replace(bench.manager.views[key], due=bench.manager.time + 600.0)


def test_a_held_job_of_the_control_group_is_released_at_once_and_only_that(offering):
    watched = begin(offering, HandoverConfig(share=0.0))
    offering.run()
    offer_held(offering, "1", threads=2, seconds=1e4)
    offering.restart(), offering.run()
    offering.run(3)
    assert watched.written in ([], ["rjms/1"])  # the daemon before the restart, or the one after it
    lines = [line for line in offering.journal.audited(AuditQuestion()) if line["kind"] == "write"]
    assert [(line["target"], line["by"]) for line in lines] == [("rjms/1", "canary")]
    assert "control group" in lines[0]["after"]["why"] and lines[0]["action"] == "release"
    (member,) = offering.journal.members()
    assert member.side == "control" and member.compared == 1 and member.held_s is not None
    offering.manager.views["rjms/1"] = dataclasses.replace(offering.manager.views["rjms/1"], due=None)
    with pytest.raises(AdapterError, match="control group"):
        offering.cycle.adapter.apply(Release("rjms/1", "once more"))


def test_a_held_job_of_another_partition_is_released_at_once(offering):
    watched = begin(offering, HandoverConfig(share=1.0, partitions=["main"]))
    offering.run()
    offer_held(offering, "1", traits=(("queue", "other"),))
    offering.run(2)
    assert watched.written == ["rjms/1"] and not sides(offering)


def test_status_explain_and_log_say_the_group_and_why(offering, kit):
    begin(offering, HandoverConfig(share=0.5, partitions=["main"]))
    for name in range(20):
        offering.manager.offer(make_job(str(name), threads=2, seconds=1e4, traits=(("queue", "main"),)))
    offering.run(2)
    ask, groups = kit.requests(offering), sides(offering)
    shown = ask("status")["handover"]
    assert (shown["share"], shown["partitions"], shown["stepped_back"]) == (0.5, ["main"], None)
    assert shown["jobs"] == {side: list(groups.values()).count(side) for side in ("canary", "control")}
    for key, side in groups.items():
        reply = ask("explain", job=key)
        assert (
            reply["group"].startswith("canary, " if side == "canary" else "control group, ")
            and "drawn" in reply["group"]
        )
        assert side == "canary" or "control group" in reply["waits"]
    lines = [line for line in offering.journal.audited(AuditQuestion()) if line["kind"] == "handover"]
    assert {line["target"]: line["after"]["mode"] for line in lines} == groups
    assert all("the share 0.5" in line["why"] for line in lines)


def test_explain_tells_the_story_of_a_control_job_that_ended(offering, kit):
    begin(offering, HandoverConfig(share=0.0))
    offering.manager.offer(make_job("1", seconds=3.0, owner=EVE))
    offering.run()
    start_control(offering)
    offering.run(8)
    (member,) = offering.journal.members(key="rjms/1")
    assert member.state == "completed" and not offering.journal.members(key="rjms/2")
    del offering.manager.views["rjms/1"]
    offering.run(2)
    reply = kit.requests(offering)("explain", job="rjms/1")
    assert reply["group"].startswith("control group, ") and reply["job"]["state"] == "completed"
    assert [line["kind"] for line in reply["story"]] == ["started", "ended"] and not reply["waits"]
    assert reply["job"]["finish_time"] == member.finish_time
    private = kit.requests(offering, AccessConfig(admins=["root"], see="own"))
    assert private("explain", job="rjms/1", uid=EVE)["ok"] and not private("explain", job="rjms/1", uid=EVE + 1)["ok"]


def test_a_kill_at_any_moment_moves_no_job(offering):
    begin(offering)
    groups = dict[str, str]()
    for name in range(20):
        offering.manager.offer(make_job(str(name), threads=2, seconds=1e4))
        offering.run()
        groups |= {key: side for key, side in sides(offering).items() if key not in groups}
        offering.handover = HandoverConfig(share=(name % 3) / 2)
        offering.restart()
    offering.run()
    assert sides(offering) == groups and len(groups) == 20


def test_a_killed_cycle_leaves_no_write_without_a_kept_group(offering):
    """The journal cannot be written in the cycle that draws: nothing is started, and the next daemon draws the same."""
    watched = begin(offering)
    offering.run()
    offering.manager.offer(make_job("1"))
    save, offering.journal.save = offering.journal.save, _fails
    offering.run()
    assert not watched.written
    offering.journal.save = save
    offering.run(3)
    first = sides(offering)
    assert set(watched.written) == {key for key, side in first.items() if side == "canary"}


def _fails(*arguments, **options):
    raise JournalError("the disk is full")


def harm(bench, jobs: int = 150) -> None:
    for name in range(jobs):
        bench.manager.offer(make_job(f"h{name}", seconds=1.0))
        bench.run()
        start_control(bench)


def test_a_policy_that_harms_steps_back_by_itself_for_good(offering, kit):
    begin(offering, planner=never)
    offering.run()
    harm(offering)
    canary = offering.canary
    assert canary.is_stepped_back and offering.opened_again == 1 and offering.value("stepped_back") == 1.0
    assert "longer than in the control group" in canary.state.why and "95 %" in canary.state.why
    (line,) = [
        one for one in offering.journal.audited(AuditQuestion()) if one["kind"] == "mode" and one["by"] == "canary"
    ]
    assert (line["before"]["mode"], line["after"]["mode"]) == ("live", "shadow") and line["why"] == canary.state.why
    assert kit.requests(offering)("status")["handover"]["why"] == canary.state.why
    offering.kill()  # at this moment: the next daemon knows
    begin(offering, mode=RunMode.SHADOW)
    assert allowed_mode(RunMode.LIVE, offering.journal) is RunMode.SHADOW
    assert offering.canary.is_stepped_back and offering.value("stepped_back") == 1.0
    offering.manager.offer(make_job("new"))
    offering.run()
    assert "rjms/new" not in sides(offering)  # in shadow nothing is drawn, and what was drawn goes on
    return_to_live(offering, kit)


def return_to_live(bench, kit) -> None:
    """Only a person steps up; then jobs from before are not compared."""
    denied = kit.requests(bench, AccessConfig(admins=[1]))("step_up", uid=EVE)
    assert not denied["ok"] and bench.canary.is_stepped_back
    reply = kit.requests(bench)("step_up", why="mended")
    assert reply["ok"] and "control group" in reply["why"] and bench.opened_again == 2
    assert not kit.requests(bench)("step_up")["ok"]
    begin(bench)
    assert allowed_mode(RunMode.LIVE, bench.journal) is RunMode.LIVE
    assert not bench.canary.is_stepped_back and bench.canary.compared(bench.manager.time).jobs["canary"] == 0
    last = [one for one in bench.journal.audited(AuditQuestion()) if one["kind"] == "mode"][-1]
    assert last["by"].startswith("administrator ") and last["why"] == "mended" and last["after"]["mode"] == "live"


def test_a_step_back_without_a_journal_is_written_as_soon_as_it_can_be(offering):
    begin(offering, planner=never)
    offering.run()
    save, offering.journal.save = offering.journal.save, _fails
    offering.canary._back(offering.manager.time, "canary", "it does harm")
    assert offering.opened_again == 1 and not offering.journal.kept(KEPT).get("stepped_back")
    offering.journal.save = save
    offering.run()
    assert offering.journal.kept(KEPT)["stepped_back"]


def test_guard_rails_that_trip_step_back_and_a_person_may_step_up_nevertheless(offering, kit):
    begin(offering)
    offering.run()
    guard = offering.cycle.planner.forecasts.guard
    for _ in range(3):
        guard.add(2.0)
    offering.run()
    assert offering.canary.is_stepped_back and "guard rails have tripped" in offering.canary.state.why
    assert kit.requests(offering)("step_up")["ok"]
    offering.run(3)
    assert not offering.canary.is_stepped_back and offering.opened_again == 2
    for _ in range(3):
        guard.add(0.0)
    offering.run()
    for _ in range(3):
        guard.add(2.0)
    offering.run()
    assert offering.canary.is_stepped_back


def test_without_a_section_nothing_is_drawn(offering):
    begin(offering, None)
    for name in range(5):
        offering.manager.offer(make_job(str(name)))
    offering.run(3)
    assert not sides(offering) and offering.value("handover_share") == 1.0 and not offering.journal.kept(KEPT)


def test_a_canary_that_begins_later_keeps_what_was_handed_over(offering):
    begin(offering, None)
    offering.manager.offer(make_job("1", threads=2, seconds=1e4)), offering.manager.offer(make_job("2", threads=2))
    offering.manager.offer(make_job("3", threads=2))
    offering.run()
    offering.canary.use(HandoverConfig(share=0.0))
    offering.manager.offer(make_job("4", threads=2))
    offering.run(2)
    assert sides(offering)["rjms/3"] == "canary" and sides(offering)["rjms/4"] == "control"
    assert offering.canary.compared(offering.manager.time).jobs == {"canary": 0, "control": 1}
