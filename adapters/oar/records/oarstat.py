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
        return frozenset(name for each in json.loads(printed).values() for name in each)
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
        which = [f"job_name = {literal(name)} and job_user = {literal(user)}" for name, user in names.items()]
        if ids:
            which.append(f"job_id in ({', '.join(map(str, sorted(ids)))})")
        found = self._world(" or ".join(which) or "job_id = 0")
        asked: set[int] = set()
        for _ in range(LONGEST_CHAIN):  # those as which OAR has submitted them again
            last = {job.id for job in found.jobs if job.state == "Error"} - asked
            more = jobs_in(self._ask(f"resubmit_job_id in ({', '.join(map(str, sorted(last)))})")) if last else ()
            if not more:
                return found
            asked |= last
            found = replace(found, jobs=_with_first([*found.jobs, *more]))
        return found

    def of_user(self, user: str, since: float) -> OarState:
        """Return the jobs of a user that have not ended, or were submitted or ended since then; epoch seconds."""
        return self._world(f"job_user = {literal(user)} and (state not in ('Terminated', 'Error')"
                           f" or greatest(stop_time, submission_time) > {int(since)})")  # fmt: skip

    def _world(self, which: str) -> OarState:
        if self._clock() - self._read_at > NODES_S:
            self._resources = resources_in(self._commands.oar("nodes", ["oarnodes", "-J"]))
            self._read_at = self._clock()
        said = self._ask(which)
        return OarState(self._wall(), 0.0, {}, self._resources, _with_first(jobs_in(said)), planned_in(said))

    def _ask(self, which: str) -> str:
        return self._commands.oar("jobs", ["oarstat", "-J", "-f", "--sql", f"({which})"])


def resources_in(said: str) -> tuple[Resource, ...]:
    """Return the resources in an answer of `oarnodes -J`. Raises ParseError."""
    try:
        shown = json.loads(said) if said.strip() else {}
        return tuple(
            Resource(
                int(number), str(each["network_address"]), str(each["state"]), each.get("drain") == "YES",
                float(each.get("available_upto") or 0), str(each.get("core", number)),
            )
            for number, each in sorted(shown.items(), key=lambda item: int(item[0]))
            if each.get("type", "default") == "default"
        )  # fmt: skip
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ParseError(f"the output of oarnodes cannot be read: {error}", argv=["oarnodes", "-J"]) from None


def jobs_in(said: str) -> list[OarJob]:
    """Return the jobs in an answer of `oarstat -J -f`, by id. Raises ParseError.

    Of what a job waits for only the jobs in the same answer are known, and of resubmissions only the job before.
    """
    try:
        shown = json.loads(said) if said.strip() else {}
        alive = {int(number) for number, each in shown.items() if each["state"] not in ENDED}
        return sorted((_job(each, alive) for each in shown.values()), key=lambda job: job.id)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ParseError(
            f"the output of oarstat cannot be read: {type(error).__name__}: {error}", argv=["oarstat"]
        ) from None


def planned_in(said: str) -> dict[int, tuple[float, tuple[int, ...]]]:
    """Return when OAR plans to start the jobs that wait, in an answer that `jobs_in` can read. Raises ParseError."""
    try:
        shown = json.loads(said) if said.strip() else {}
        waiting = {number: each for number, each in shown.items() if each["state"] in ("Waiting", "toAckReservation")}
        starts = {int(number): float(each.get("scheduledStart") or 0.0) for number, each in waiting.items()}
        return {number: (start, ()) for number, start in starts.items() if start}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ParseError(f"the output of oarstat cannot be read: {error}", argv=["oarstat"]) from None


def _job(said: Mapping[str, Any], alive: Collection[int]) -> OarJob:
    number, events = int(said["Job_Id"]), said["events"]
    holds = any(each["type"] == "HOLD_WAITING_JOB" and each.get("to_check") == "YES" for each in events)
    state = state_with(str(said["state"]), held=holds)
    decided, stop = float(said["startTime"] or 0), float(said["stopTime"] or 0)
    ran = state not in ("Waiting", "Hold", "toLaunch", "Launching", "toAckReservation")
    if state == "Error":  # only a job whose process began has an exit code, or was ended by a user
        ran = said.get("exit_code") is not None or bool(said["assigned_resources"])
    before = int(said["resubmit_job_id"] or 0)
    if before and int(said["array_index"]) == 1:
        before = int(said["array_id"])  # the same for all of its resubmissions
    return OarJob(
        id=number, state=state, name=str(said["name"] or ""), user=str(said["owner"]), project=str(said["project"]),
        queue=str(said["queue"]), command=str(said["command"] or "")[:COMMAND],
        properties=str(said["properties"] or ""), kind=str(said["jobType"]), reservation=str(said["reservation"]),
        submitted=float(said["submissionTime"]), decided=None, freed=None, began=decided if ran and decided else None,
        ended=(stop or float(said["submissionTime"])) if state in ENDED else None,
        status=None if said.get("exit_code") is None else int(said["exit_code"]), message=str(said["message"] or ""),
        first=before or number, types=tuple(sorted(map(str, said["types"]))),
        events=tuple((str(each["type"]), str(each["description"] or "")) for each in events),
        after=tuple(sorted({int(each) for each in said["dependencies"]} & set(alive))),
        resources=tuple(sorted(map(int, said["assigned_resources"]))),
        forms=forms_in(str(said["wanted_resources"] or ""), said["walltime"]),
    )  # fmt: skip


def forms_in(wanted: str, walltime: object) -> tuple[Form, ...]:
    """Return the forms of a request; one that is not plain has a group that leaves the job to OAR."""
    limit = int(str(walltime)) if str(walltime).isdecimal() else 0
    found = _GROUP.fullmatch(wanted)
    if not found or (found["where"] or "") not in ORDINARY:
        times = re.findall(r",walltime=(\d+):(\d+):(\d+)\"", wanted)
        hours, minutes, seconds = map(int, times[0]) if times else (0, 0, limit)
        return (Form(limit or 3600 * hours + 60 * minutes + seconds, _UNREAD),)
    hours, minutes, seconds = map(int, re.findall(r"\d+", found[0].rpartition("walltime=")[2]))
    levels = tuple(
        (level, {"ALL": -1, "BEST": -2}.get(value) or int(value)) for level, value in _LEVEL.findall(found["levels"])
    )
    return (Form(3600 * hours + 60 * minutes + seconds, ((found["where"] or "", levels),)),)


def _with_first(jobs: Collection[OarJob]) -> tuple[OarJob, ...]:
    """Return jobs with the id under which each was first submitted."""
    first: dict[int, int] = {}
    for job in sorted(jobs, key=lambda job: job.id):  # a resubmission has a higher id
        first[job.id] = first.get(job.first, job.first)
    return tuple(replace(job, first=first[job.id]) for job in sorted(jobs, key=lambda job: job.id))
