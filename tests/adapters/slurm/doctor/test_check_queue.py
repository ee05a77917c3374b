"""The doctor's findings about waiting jobs and about job_submit.lua."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pilotfish.adapters.findings import NOTE, OK, PROBLEM, WARNING, Level, ServiceState
from pilotfish.adapters.slurm.records import SlurmJob
from pilotfish.simulate.model.snapshot import JobState
from tests.support.slurm_answers import (
    GOOD,
    NOW,
    about,
    asked_of,
    changed,
    found,
)

SCRIPT = "local HOLD_S = 600\n -- pilotfish:hold=SECONDS\n"
LOOKS: dict[str, object] = {"files": {"job_submit.lua": SCRIPT}, "looked_for": "/run/s"}
PLUGIN: dict[str, tuple[str, dict[str, object], ServiceState, Level | None, str]] = {
    "no plugin": ("(null)", {}, GOOD, None, ""),
    "installed, and not in use": ("(null)", {"files": {"job_submit.lua": SCRIPT}}, GOOD, NOTE, "not in use"),
    "in use": ("lua", {"files": {"job_submit.lua": SCRIPT}}, GOOD, OK, "up to 600 s, and the daemon answers"),
    "no daemon": ("lua,throttle", {"files": {"job_submit.lua": SCRIPT}}, ServiceState(""), PROBLEM, "600 s in vain"),
    "no daemon, and nothing is held": ("lua", LOOKS, ServiceState(""), OK, "no job now"),
    "a heartbeat without a daemon": (
        "lua",
        LOOKS | {"heartbeat_there": True},
        ServiceState("", socket="/run/s"),
        PROBLEM,
        "600 s in vain",
    ),
    "a daemon that hangs": (
        "lua",
        LOOKS | {"heartbeat_there": True},
        ServiceState("", hangs=True, socket="/run/s"),
        PROBLEM,
        "in vain",
    ),
    "no heartbeat": (
        "lua",
        LOOKS,
        ServiceState("live", socket="/run/t"),
        WARNING,
        "the daemon at /run/t does not keep",
    ),
    "shadow without a heartbeat": ("lua", LOOKS, ServiceState("shadow", socket="/run/t"), OK, "no job now"),
    "a pause": ("lua", LOOKS | {"heartbeat_there": True}, ServiceState("paused"), NOTE, "gives them back"),
    "shadow": ("lua", {"files": {"job_submit.lua": SCRIPT}}, ServiceState("shadow"), WARNING, "places none"),
    "no configuration": ("lua", {"files": {"job_submit.lua": SCRIPT}}, ServiceState(), NOTE, "--config shows"),
    "another one": ("lua", {"files": {"job_submit.lua": "return 0"}}, GOOD, OK, "the site's own"),
    "out of sight": ("lua", {}, GOOD, NOTE, "cannot be read from here"),
    "unreadable": ("lua", {"at_controller": True, "unread": frozenset({"job_submit.lua"})}, GOOD, NOTE, "cannot"),
    "gone": ("lua", {"at_controller": True}, GOOD, PROBLEM, "slurmctld will not start again"),
}


@pytest.mark.parametrize(("plugins", "settings", "service", "level", "words"), PLUGIN.values(), ids=PLUGIN)
def test_the_job_submit_plugin(
    plugins: str, settings: dict[str, object], service: ServiceState, level: Level | None, words: str
) -> None:
    findings = about("job_submit", asked_of(changed(JobSubmitPlugins=plugins), **settings), service=service)
    assert (
        (not findings)
        if level is None
        else (len(findings) == 1 and findings[0][0] is level and words in findings[0][1])
    )


def test_the_shipped_script_is_recognised_by_its_content() -> None:
    import pilotfish

    text = (Path(pilotfish.__file__).parent / "docs" / "slurm" / "job_submit.lua").read_text()
    settings = {"files": {"job_submit.lua": text}}
    answers = asked_of(changed(JobSubmitPlugins="lua"), **settings)
    assert about("job_submit", answers)[0][1].count("600 s") == 1


@pytest.mark.parametrize(("hangs", "command"), [(False, "systemctl start"), (True, "systemctl restart")])
def test_the_remedy_helps_in_the_state_that_was_found(hangs: bool, command: str) -> None:
    service = ServiceState("", hangs=hangs, socket="/run/s")
    answers = asked_of(changed(JobSubmitPlugins="lua"), jobs=[job()], heartbeat_there=True, **LOOKS)
    remedies = [finding.mend[0] for finding in found(answers, service) if finding.level in (WARNING, PROBLEM)]
    assert remedies == [f"{command} pilotfishd"] * 2


def test_the_shipped_script_only_tags_jobs_and_never_blocks() -> None:
    """It runs under the controller's locks."""
    import pilotfish

    text = (Path(pilotfish.__file__).parent / "docs" / "slurm" / "job_submit.lua").read_text()
    code = re.sub(r"--.*", "", text)
    assert set(re.findall(r"\bjob\.(\w+) = ", code)) == {"begin_time", "comment"}
    assert set(re.findall(r"\b(?:io|os|socket)\.\w+", code)) == {"io.open", "os.rename", "os.time"}
    assert not re.search(r"\b(?:require|dofile|loadfile|while|repeat)\b", code)


def job(**settings: object) -> SlurmJob:
    fields = {"submit": NOW - 100, "begin": NOW + 500, "comment": "pilotfish:hold=600", "reason": "BeginTime"}
    return SlurmJob(7, JobState.PENDING, **(fields | settings))


def test_waiting_jobs() -> None:
    assert "1 job waits, 1 for pilotfish; 0 pinned" in about("queue", asked_of(jobs=[job()]))[0][1]
    away = about("queue", asked_of(jobs=[job()]), service=ServiceState(""))
    assert away[1][0] is WARNING and "the last in 500 s" in away[1][1]
    late = about("queue", asked_of(jobs=[job(deadline=NOW + 100)]))
    assert late[1][0] is WARNING and "(7)" in late[1][1]
    pinned = about("queue", asked_of(jobs=[job(pinned=NOW - 900)]))
    assert pinned[1][0] is PROBLEM and "the reaper does not run" in pinned[1][1]


def test_a_pin_that_nobody_can_vouch_for_is_an_administrators_to_clear() -> None:
    findings = about("queue", asked_of(jobs=[job(wanted=("n1",), begin=NOW - 9)]))
    assert findings[1][0] is NOTE and "(7)" in findings[1][1] and "state directory" in findings[1][1]
    jobs = [job(begin=NOW - 9), job(wanted=("n1",)), job(wanted=("n1",), begin=NOW - 9, pinned=NOW)]
    jobs.append(job(wanted=("n1",), begin=NOW - 9, comment="mine"))
    assert len(about("queue", asked_of(jobs=jobs))) == 1


def test_pins_that_cannot_be_read_are_unknown() -> None:
    jobs = [job(wanted=("n1",), begin=NOW - 9)]
    findings = about("queue", asked_of(jobs=jobs, pins_unread="/state/slurm/pins: Permission denied"))
    assert [level for level, _ in findings] == [NOTE]
    assert "how many are pinned is unknown (/state/slurm/pins: Permission denied)" in findings[0][1]


def test_jobs_that_are_handed_over_in_vain() -> None:
    cut = job(special="a minimum time limit")
    jobs = [cut, job(part=True), job(part=True), job(comment="", part=True)]
    findings = about("queue", asked_of(jobs=jobs))
    assert [level for level, _ in findings] == [OK, NOTE, NOTE]
    assert "3 jobs handed over in vain" in findings[1][1] and "2 because members of arrays" in findings[1][1]
    assert "1 job with a minimum time limit (--time-min): backfill may cut" in findings[2][1]
    soft = changed(SchedulerParameters="bf_window=60,time_min_as_soft_limit")
    assert len(about("queue", asked_of(soft, jobs=jobs))) == 2
