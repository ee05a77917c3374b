"""OAR read by its own commands, `oarstat` and `oarnodes`, where its database cannot be read.

Rule: any user may run them. They show no state logs, no clock and no queues: a job counts as begun when OAR decided to
start it, 2 to 3 s before its process begins, and the clock is this machine's. Only numbers, names of users and names
of jobs of our own are put into a condition.
Their texts are as users wrote them, not as the database holds them.
Source: oarstat(1), oarnodes(1) and OAR::Stat of OAR 2.5.9.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from ...base import ParseError
from ..commands import OarCommands
from .requests import ORDINARY
from .world import COMMAND, ENDED, LONGEST_CHAIN, RECENT, Form, OarJob, OarState, Resource, literal, state_with

#: What the daemon says at its start.
LOSES = (
    "OAR is read by its commands, because no database is configured: its state logs are not seen, so a job counts as "
    "begun when OAR decides to start it, and a cycle takes longer"
)
#: Seconds for which what `oarnodes` said holds.
NODES_S = 10.0
#: A request with one group of resources, as `oarstat` writes it.
_GROUP = re.compile(r'-l "(?:\{(?P<where>[^{}"]*)\})?(?P<levels>(?:/\w+=(?:\d{1,9}|ALL|BEST))+),walltime=[\d:]+" ')
_LEVEL = re.compile(r"/(\w+)=(\w+)")
#: A request that is not read, so that the job is left to OAR.
_UNREAD = (("a request that oarstat does not show plainly", ()),)


def resource_properties(printed: str) -> frozenset[str]:
    """Return the names of the properties that resources have, from what `oarnodes -J` printed. Raises ParseError."""
    try:
        return frozenset(name for resource in json.loads(printed).values() for name in resource)
    except (ValueError, AttributeError, TypeError) as error:
        raise ParseError(f"the answer of oarnodes cannot be read: {error}", argv=["oarnodes"]) from None


class Oarstat:
    """OAR as its commands show it to any user.

    Args:
        commands: Runs them.
        wall: This machine's clock, epoch seconds.
        clock: Monotonic clock, seconds.
    """

    def __init__(
        self,
        commands: OarCommands,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._commands, self._wall, self._clock = commands, wall, clock
        self._resources: tuple[Resource, ...] = ()
        self._read_at = float("-inf")

    def world(self) -> OarState:
        """Return all that has not ended, and what ended lately; two commands."""
        return self._world(RECENT.format(now=int(self._wall())))

    def find(self, ids: Collection[int] = (), names: Mapping[str, str] = {}) -> OarState:
        """Return jobs with these ids and the resubmissions of them, and those with these names of these users.

        Args:
            ids: Ids of jobs.
            names: Name of a job -> name of its user.
        """
        conditions = [f"job_name = {literal(name)} and job_user = {literal(user)}" for name, user in names.items()]
        if ids:
            conditions.append(f"job_id in ({', '.join(map(str, sorted(ids)))})")
        state = self._world(" or ".join(conditions) or "job_id = 0")
        visited: set[int] = set()
        for _ in range(LONGEST_CHAIN):  # those as which OAR has submitted them again
            last = {job.id for job in state.jobs if job.state == "Error"} - visited
            successors = jobs_in(self._ask(f"resubmit_job_id in ({', '.join(map(str, sorted(last)))})")) if last else ()
            if not successors:
                return state
            visited |= last
            state = replace(state, jobs=_with_first([*state.jobs, *successors]))
        return state

    def of_user(self, user: str, since: float) -> OarState:
        """Return the jobs of a user that have not ended, or were submitted or ended since then; epoch seconds."""
        return self._world(f"job_user = {literal(user)} and (state not in ('Terminated', 'Error')"
                           f" or greatest(stop_time, submission_time) > {int(since)})")  # fmt: skip

    def _world(self, condition: str) -> OarState:
        if self._clock() - self._read_at > NODES_S:
            self._resources = resources_in(self._commands.oar("nodes", ["oarnodes", "-J"]))
            self._read_at = self._clock()
        answer = self._ask(condition)
        return OarState(self._wall(), 0.0, {}, self._resources, _with_first(jobs_in(answer)), planned_in(answer))

    def _ask(self, condition: str) -> str:
        return self._commands.oar("jobs", ["oarstat", "-J", "-f", "--sql", f"({condition})"])


def resources_in(answer: str) -> tuple[Resource, ...]:
    """Return the resources in an answer of `oarnodes -J`. Raises ParseError."""
    try:
        forms = json.loads(answer) if answer.strip() else {}
        return tuple(
            Resource(
                int(number), str(form["network_address"]), str(form["state"]), form.get("drain") == "YES",
                float(form.get("available_upto") or 0), str(form.get("core", number)),
            )
            for number, form in sorted(forms.items(), key=lambda item: int(item[0]))
            if form.get("type", "default") == "default"
        )  # fmt: skip
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ParseError(f"the output of oarnodes cannot be read: {error}", argv=["oarnodes", "-J"]) from None


def jobs_in(answer: str) -> list[OarJob]:
    """Return the jobs in an answer of `oarstat -J -f`, by id. Raises ParseError.

    Of what a job waits for only the jobs in the same answer are known, and of resubmissions only the job before.
    """
    try:
        forms = json.loads(answer) if answer.strip() else {}
        alive = {int(number) for number, form in forms.items() if form["state"] not in ENDED}
        return sorted((_job(form, alive) for form in forms.values()), key=lambda job: job.id)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ParseError(
            f"the output of oarstat cannot be read: {type(error).__name__}: {error}", argv=["oarstat"]
        ) from None


def planned_in(answer: str) -> dict[int, tuple[float, tuple[int, ...]]]:
    """Return when OAR plans to start the jobs that wait, in an answer that `jobs_in` can read. Raises ParseError."""
    try:
        forms = json.loads(answer) if answer.strip() else {}
        waiting = {number: form for number, form in forms.items() if form["state"] in ("Waiting", "toAckReservation")}
        starts = {int(number): float(form.get("scheduledStart") or 0.0) for number, form in waiting.items()}
        return {number: (start, ()) for number, start in starts.items() if start}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ParseError(f"the output of oarstat cannot be read: {error}", argv=["oarstat"]) from None


def _job(form: Mapping[str, Any], alive: Collection[int]) -> OarJob:
    number, events = int(form["Job_Id"]), form["events"]
    holds = any(entry["type"] == "HOLD_WAITING_JOB" and entry.get("to_check") == "YES" for entry in events)
    state = state_with(str(form["state"]), held=holds)
    decided, stop = float(form["startTime"] or 0), float(form["stopTime"] or 0)
    begun = state not in ("Waiting", "Hold", "toLaunch", "Launching", "toAckReservation")
    if state == "Error":  # only a job whose process began has an exit code, or was ended by a user
        begun = form.get("exit_code") is not None or bool(form["assigned_resources"])
    before = int(form["resubmit_job_id"] or 0)
    if before and int(form["array_index"]) == 1:
        before = int(form["array_id"])  # the same for all of its resubmissions
    return OarJob(
        id=number, state=state, name=str(form["name"] or ""), user=str(form["owner"]), project=str(form["project"]),
        queue=str(form["queue"]), command=str(form["command"] or "")[:COMMAND],
        properties=str(form["properties"] or ""), kind=str(form["jobType"]), reservation=str(form["reservation"]),
        submitted=float(form["submissionTime"]), decided=None, freed=None, began=decided if begun and decided else None,
        ended=(stop or float(form["submissionTime"])) if state in ENDED else None,
        status=None if form.get("exit_code") is None else int(form["exit_code"]), message=str(form["message"] or ""),
        first=before or number, types=tuple(sorted(map(str, form["types"]))),
        events=tuple((str(entry["type"]), str(entry["description"] or "")) for entry in events),
        after=tuple(sorted({int(entry) for entry in form["dependencies"]} & set(alive))),
        resources=tuple(sorted(map(int, form["assigned_resources"]))),
        forms=forms_in(str(form["wanted_resources"] or ""), form["walltime"]),
    )  # fmt: skip


def forms_in(text: str, walltime: object) -> tuple[Form, ...]:
    """Return the forms of a request; one that is not plain has a group that leaves the job to OAR."""
    limit = int(str(walltime)) if str(walltime).isdecimal() else 0
    request = _GROUP.fullmatch(text)
    if not request or (request["where"] or "") not in ORDINARY:
        times = re.findall(r",walltime=(\d+):(\d+):(\d+)\"", text)
        hours, minutes, seconds = map(int, times[0]) if times else (0, 0, limit)
        return (Form(limit or 3600 * hours + 60 * minutes + seconds, _UNREAD),)
    hours, minutes, seconds = map(int, re.findall(r"\d+", request[0].rpartition("walltime=")[2]))
    levels = tuple(
        (level, {"ALL": -1, "BEST": -2}.get(value) or int(value)) for level, value in _LEVEL.findall(request["levels"])
    )
    return (Form(3600 * hours + 60 * minutes + seconds, ((request["where"] or "", levels),)),)


def _with_first(jobs: Collection[OarJob]) -> tuple[OarJob, ...]:
    """Return jobs with the id under which each was first submitted."""
    first: dict[int, int] = {}
    for job in sorted(jobs, key=lambda job: job.id):  # a resubmission has a higher id
        first[job.id] = first.get(job.first, job.first)
    return tuple(replace(job, first=first[job.id]) for job in sorted(jobs, key=lambda job: job.id))
