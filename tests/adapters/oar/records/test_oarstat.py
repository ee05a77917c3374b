"""Answers of OAR's commands: read in full, or an error; requests that are not plain are left to OAR."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from pilotfish.adapters.base import AdapterError, ParseError
from pilotfish.adapters.oar.commands import OarCommands
from pilotfish.adapters.oar.records.oarstat import Oarstat, forms_in, jobs_in, planned_in, resources_in
from pilotfish.adapters.oar.records.requests import OarResources, request_of

NODES = json.dumps({
    str(number): {
        "resource_id": number, "network_address": f"node{(number + 1) // 2}", "state": "Alive", "drain": "NO",
        "available_upto": 2147483647, "core": number, "type": "default",
    } for number in range(1, 9)
} | {"9": {"network_address": "", "state": "Alive", "type": "licence"}})  # fmt: skip


def shown(number: int = 1, **other: Any) -> dict[str, Any]:
    """A job as `oarstat -J -f` of OAR 2.5.9 shows it."""
    recorded = {
        "types": [], "message": "R=1,W=0:1:0,J=B,N=é x (Karma=0.000,quota_ok)", "name": "é x", "project": "default",
        "exit_code": 768, "job_user": "games", "resubmit_job_id": 0, "assigned_network_address": ["node1"],
        "events": [{"to_check": "NO", "date": 1795485252, "event_id": 2, "job_id": 1, "description": "[bipbip 1] Ask",
                    "type": "SWITCH_INTO_TERMINATE_STATE"}],
        "reservation": "None", "assigned_resources": [1], "jobType": "PASSIVE", "startTime": 1795485251,
        "command": "exit 3", "owner": "games", "array_id": number, "submissionTime": 1795485250, "stopTime": 1795485252,
        "properties": "(desktop_computing = 'NO') AND drain='NO'", "walltime": 60, "state": "Terminated",
        "queue": "default", "dependencies": [], "array_index": 1, "Job_Id": number,
        "wanted_resources": "-l \"{type = 'default'}/core=1,walltime=0:1:0\" ",
    }  # fmt: skip
    return recorded | other


def answer(*jobs: dict[str, Any]) -> str:
    return json.dumps({str(job["Job_Id"]): job for job in jobs})


def test_an_answer_that_is_cut_short_or_damaged_is_an_error() -> None:
    complete = answer(shown(), shown(2))
    assert len(jobs_in(complete)) == 2 and len(resources_in(NODES)) == 8 and jobs_in("") == []
    for length in range(1, len(complete), 7):
        for read in (jobs_in, planned_in):
            with pytest.raises(ParseError):
                read(complete[:length])
    with pytest.raises(ParseError, match="oarstat"):
        planned_in(answer(shown(state="Waiting", scheduledStart="soon")))
    for damage in ({"events": None}, {"Job_Id": "x"}, {"dependencies": ["a"]}, {"exit_code": "no"}):
        with pytest.raises(ParseError, match="oarstat"):
            jobs_in(answer(shown() | damage, shown(2)) if "Job_Id" not in damage else '{"1": {"state": "x"}}')
    for text in ("[]", '{"1": {}}', '{"a": {"type": "default", "network_address": "n", "state": "Alive"}}'):
        with pytest.raises(ParseError, match="oarnodes"):
            resources_in(text)


@pytest.mark.parametrize(
    ("wanted", "limit", "asks"),
    [
        ("-l \"{type = 'default'}/core=1,walltime=0:1:0\" ", 60, (1, 1, "")),
        ("-l \"{type = 'default'}/network_address=2/core=2,walltime=1:0:5\" ", 3605, (2, 2, "")),
        ("-l \"{type = 'default'}/network_address=ALL,walltime=2:0:0\" ", 7200, (1, 1, "all or the best")),
        ("-l \"{type = 'default'}/core=1,walltime=2:0:0\" -l \"{type = 'default'}/core=2,walltime=2:0:0\" ", 7200, (1, 1, "propert")),
        ("-l \"{(host <> 'x/core=1') AND type = 'default'}/core=1,walltime=1:0:0\" ", 3600, (1, 1, "propert")),
        ("-l \"{type = 'default'}/core=1+{type = 'default'}/core=2,walltime=1:0:0\" ", 3600, (1, 1, "propert")),
        ("-l \"{x}/core=1,walltime=0:1:0\" -l \"{type = 'default'}/core=1,walltime=0:1:0\" ", 60, (1, 1, "propert")),
        ("garbage", 9, (1, 1, "propert")),
    ],
)  # fmt: skip
def test_only_a_plain_request_is_read(wanted: str, limit: int, asks: tuple[int, int, str]) -> None:
    (job,) = jobs_in(answer(shown(wanted_resources=wanted, walltime=None if limit != 9 else 9)))
    (form,) = forms_in(wanted, None if limit != 9 else 9)
    assert (form.walltime, job.forms) == (limit, (form,))
    request = request_of(job, OarResources(resources_in(NODES)))
    assert request[:2] == asks[:2] and asks[2] in request[2] and bool(request[2]) == bool(asks[2])


def test_the_plan_of_oar_is_that_of_the_jobs_that_wait() -> None:
    waits = shown(2, state="Waiting", scheduledStart=1795472000)
    never, runs = shown(3, state="Waiting", scheduledStart=None), shown(4, state="Running", scheduledStart=1795471000)
    assert planned_in(answer(waits, never, runs)) == {2: (1795472000.0, ())} and planned_in("") == {}


class Said(OarCommands):
    """OAR's commands, which answer from `jobs`; `asked` are the conditions."""

    def __init__(self, *jobs: dict[str, Any]) -> None:
        super().__init__(5.0)
        self.known, self.asked = jobs, list[str]()

    def oar(self, call: str, argv: Sequence[str], *, accepted: Sequence[int] = (0,)) -> str:
        if argv[0] == "oarnodes":
            return NODES
        self.asked.append(argv[-1])
        if "resubmit_job_id in (" in argv[-1]:
            before = argv[-1].partition("in (")[2].rstrip(")").split(", ")
            return answer(*(job for job in self.known if str(job["resubmit_job_id"]) in before))
        return answer(*(job for job in self.known if not job["resubmit_job_id"] or "state <" in argv[-1]))


def test_a_job_that_oar_submitted_again_is_one_job_under_its_first_id() -> None:
    failed = {"state": "Error", "exit_code": None}
    jobs = (
        shown(5, **failed),
        shown(7, **failed, resubmit_job_id=5, array_id=5),
        shown(9, state="Waiting", resubmit_job_id=7, array_id=5),
        shown(11, array_id=10, array_index=2, **failed),
        shown(12, array_id=10, array_index=2, resubmit_job_id=11, state="Waiting"),
    )
    commands = Said(*jobs)
    for world in (Oarstat(commands).find([5, 11]), Oarstat(commands).world()):
        assert [(job.id, job.first) for job in world.jobs] == [(5, 5), (7, 5), (9, 5), (11, 11), (12, 11)]


def test_a_text_of_a_user_is_never_part_of_a_condition() -> None:
    commands = Said()
    Oarstat(commands).find(names={"a'b": "u"})
    assert commands.asked == ["(job_name = 'a''b' and job_user = 'u')"]
    for name in ("a\nb", "é", "a\\"):
        with pytest.raises(AdapterError, match="name of a job of ours"):
            Oarstat(commands).find(names={name: "u"})


def test_a_dependency_that_has_ended_is_none() -> None:
    jobs = shown(1), shown(2, state="Running"), shown(3, state="Waiting", dependencies=[1, 2, 99])
    assert [job.after for job in jobs_in(answer(*jobs))] == [(), (), (2,)]
    holds = [{"type": "HOLD_WAITING_JOB", "to_check": "YES", "description": ""}]
    (job,) = jobs_in(answer(shown(state="Waiting", events=holds)))
    assert job.state == "Hold" and job.began is None
