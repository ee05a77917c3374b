"""Rows of the journal's tables, and what they mean.

Rule: a row of a job that was written comes back as the same entry; a damaged row is an error, see `damage`. Of a job
that was handed over, the resource manager has the request; its row keeps what users are shown of it after its end.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import astuple, fields
from operator import attrgetter
from typing import Any

from ...simulate.model.job import DEFAULT_PROFILE, Job
from ...simulate.model.snapshot import JobState
from .damage import REAL, TEXT, WHOLE, checked, json_object, optional
from .forecasts import JobForecast
from .job_stages import STAGE_OF, JobStage
from .members import Member
from .pending_usage import PendingUsage
from .profile_labels import ProfileLabel
from .queue import Submission
from .queue_entry import Entry
from .recorded_outcome import QueueRecord
from .users import user_name

#: Columns that hold an attribute of an entry as it is: how the job ran, and how far it has come.
_RAN = ("start_time", "finish_time", "exit_code", "signal", "reason")
_PROGRESS = ("promised", "expected", "taken", "cancel_wanted", "attempts", "not_before", "since", "plain_end")
_ran_of, _progress_of = attrgetter(*_RAN), attrgetter(*_PROGRESS)
_forecast_of = attrgetter("start_time", "finish_time", "isolated_run_time", "contention_slowdown")
_FIELDS = [each.name for each in fields(ProfileLabel)]
#: The columns of a row, and the statement that writes one.
JOB_COLUMNS = (
    f"workflow, job, position, state, nodes, {', '.join(_RAN)},"
    " forecast_start, forecast_finish, isolated_run_time, contention_slowdown,"
    " promised, expected, handed, cancel_wanted, attempts, not_before, since, plain_end,"
    " forecast_earliest, forecast_latest, owner, about"
)
_KINDS = (
    *(TEXT, TEXT, optional(WHOLE), TEXT, TEXT),
    *(optional(REAL), optional(REAL), optional(WHOLE), optional(WHOLE), TEXT),
    *(optional(REAL),) * 4,
    *(optional(REAL), optional(REAL), WHOLE, WHOLE, WHOLE, REAL, optional(REAL), optional(REAL)),
    *(optional(REAL), optional(REAL), optional(WHOLE), optional(TEXT)),
)
SAVE = f"INSERT OR REPLACE INTO jobs ({JOB_COLUMNS}) VALUES ({', '.join('?' * 26)})"


def row_of(entry: Entry) -> tuple[Any, ...]:
    """Return the values of JOB_COLUMNS of a job."""
    nodes = json.dumps(entry.nodes) if entry.nodes else "[]"
    identity = (entry.workflow, entry.job.id, entry.position, str(entry.state), nodes)
    forecast = _forecast_of(entry.forecast) if entry.forecast else (None,) * 4
    within = (entry.forecast and entry.forecast.within) or (None, None)
    return *identity, *_ran_of(entry), *forecast, *_progress_of(entry), *within, entry.job.owner, _about(entry)


def _about(entry: Entry) -> str | None:
    """Return as JSON what `explain` shows of a job and its definition, if there is one, does not have."""
    about: dict[str, Any] = {"traits": dict(entry.job.traits)} if entry.offered else {}
    about |= {name: value for name in ("let_go", "released") if (value := getattr(entry, name))}
    if entry.label:
        about["label"] = astuple(entry.label)
    return json.dumps(about) if about else None


def _about_in(row: tuple[Any, ...]) -> dict[str, Any]:
    """Return what `_about` wrote. Raises ValueError: it is something else."""
    about = json_object(row[25])
    kinds = {"traits": dict, "let_go": str, "released": str, "label": list}
    if not all(isinstance(about.get(name, kind()), kind) for name, kind in kinds.items()):
        raise ValueError(f"the record of {row[0]}/{row[1]} cannot be read")
    if len(about.get("label", _FIELDS)) != len(_FIELDS):
        raise ValueError(f"the profile of {row[0]}/{row[1]} cannot be read")
    return about


def handed_over_entry(row: tuple[Any, ...]) -> Entry:
    """Return a job whose request is in the resource manager's queue. Raises one of `damage.UNREADABLE`."""
    checked(row, _KINDS)
    traits = _about_in(row).get("traits", {})
    job = Job(row[1], DEFAULT_PROFILE, traits=tuple(traits.items()), owner=row[24])
    return Entry(row[0], job, row[2], offered=True)


def restore(entry: Entry, row: tuple[Any, ...]) -> None:
    """Set how far a job has come.

    Args:
        entry: the job, as it was submitted.
        row: the values of JOB_COLUMNS.

    Raises:
        one of `damage.UNREADABLE`: the row is damaged.
    """
    checked(row, _KINDS)
    nodes = json.loads(row[4])
    if not (isinstance(nodes, list) and all(isinstance(name, str) for name in nodes)):
        raise ValueError("its nodes are not a list of names")
    if (row[10] is not None and None in row[11:14]) or (row[22] is None) is not (row[23] is None):
        raise ValueError("its forecast is not complete")
    columns = dict(zip(_RAN + _PROGRESS, row[5:10] + row[14:22], strict=True))
    handed, columns["cancel_wanted"] = columns.pop("taken"), bool(columns["cancel_wanted"])
    for name, value in columns.items():
        setattr(entry, name, value)
    about = _about_in(row)
    entry.let_go, entry.released = about.get("let_go", ""), about.get("released", "")
    entry.state, entry.nodes = JobState(row[3]), tuple(nodes)
    if entry.let_go:
        entry.stage = JobStage.LET_GO
    elif handed or entry.state is not JobState.PENDING:
        entry.stage = STAGE_OF[entry.state]
    else:
        entry.stage = JobStage.WAITING
    entry.label = ProfileLabel(*about["label"]) if "label" in about else None
    forecast = (*row[10:14], row[22:24] if row[22] is not None else None)
    entry.forecast = JobForecast(*forecast) if row[10] is not None else None


#: What a job takes in the file next to its definition, about.
JOB_BYTES = 500


def insert(
    run: Callable[..., sqlite3.Cursor], submission: Submission, definition: str, idempotency_key: str | None = None
) -> None:
    """Write the row of a new workflow.

    Args:
        run: runs a statement.
        submission: the workflow.
        definition: its text.
        idempotency_key: chosen by the user; None = none.
    """
    name, state = submission.workflow.name, str(submission.state)
    if idempotency_key is not None and submission.owner is not None:
        idempotency_key = owned(idempotency_key, submission.owner)
    run(
        "INSERT INTO workflows (id, number, name, idempotency_key, definition, submit_time, state, owner,"
        " size) VALUES (?, (SELECT coalesce(max(number), 0) + 1 FROM workflows), ?, ?, ?, ?, ?, ?, ?)",
        (
            *(submission.id, name, idempotency_key, definition, submission.submit_time, state, submission.owner),
            len(definition) + JOB_BYTES * len(submission.entries),
        ),
    )


def owned(idempotency_key: str, owner: int) -> str:
    """Return a key as it is stored, so that no user takes the keys of another."""
    return f"{owner} {idempotency_key}"


STORY_COLUMNS = "id, time, cycle, kind, text, data"
_STORY_KINDS = (WHOLE, REAL, optional(WHOLE), TEXT, TEXT, optional(TEXT))
SUMMARY_COLUMNS = "id, name, owner, state, submit_time, finish_time"
_SUMMARY_KINDS = (TEXT, TEXT, optional(WHOLE), TEXT, REAL, optional(REAL))
#: The last workflows, in which a job is found by its id alone.
NAMED = 1000
#: The last workflows of all, and of a user.
RECENT = (
    "SELECT id, owner FROM workflows WHERE number IN ("
    "SELECT number FROM (SELECT number FROM workflows ORDER BY number DESC LIMIT ?) UNION "
    "SELECT number FROM (SELECT number FROM workflows WHERE owner = ? ORDER BY number DESC LIMIT ?)"
    ") ORDER BY number DESC"
)
#: Workflows with a job, of those that have not ended and the last ones.
WITH_JOB = (
    "WITH here AS (SELECT id FROM (SELECT id FROM workflows ORDER BY number DESC LIMIT ?)"
    " UNION SELECT id FROM workflows WHERE finish_time IS NULL)"
    " SELECT workflows.id, coalesce(jobs.owner, workflows.owner) FROM here CROSS JOIN jobs CROSS JOIN workflows"
    " ON jobs.workflow = here.id AND workflows.id = here.id WHERE job = ? ORDER BY number DESC"
)
#: With the records of each job's last choice, and of what others took from it.
FORECASTS = (
    "SELECT workflow || '/' || job, finish_time, forecast_finish - forecast_start, finish_time - start_time, since,"
    " forecast_start,"
    " (SELECT data FROM story WHERE key = workflow || '/' || job AND kind = 'chosen' ORDER BY story.id DESC LIMIT 1),"
    " isolated_run_time,"
    " (SELECT data FROM story WHERE key = workflow || '/' || job AND kind = 'external' ORDER BY story.id DESC LIMIT 1)"
    " FROM jobs WHERE state = ? AND forecast_start IS NOT NULL AND start_time IS NOT NULL AND finish_time >= start_time"
    " ORDER BY finish_time DESC LIMIT ?"
)


def story_record(row: tuple[Any, ...]) -> dict[str, Any]:
    """Return the record of a job in a row of STORY_COLUMNS. Raises ValueError: it is damaged."""
    _, time, cycle, kind, text, data = checked(row, _STORY_KINDS)
    return {"time": time, "cycle": cycle, "kind": kind, "text": text, "data": json_object(data) or None}


def workflow_summary(row: tuple[Any, ...]) -> dict[str, Any]:
    """Return what a row of SUMMARY_COLUMNS says of a workflow. Raises ValueError: it is damaged."""
    id, name, owner, state, submitted, finished = checked(row, _SUMMARY_KINDS)
    return {
        "id": id,
        "name": name,
        "owner": None if owner is None else user_name(owner),
        "state": state,
        "submit_time": submitted,
        "finish_time": finished,
        "exit_code": int(state != JobState.COMPLETED) if JobState(state).ended else None,
    }


def put(run: Callable[..., sqlite3.Cursor], table: str, record: PendingUsage | QueueRecord | Member) -> None:
    """Write a record whose fields are the columns of a table.

    Args:
        run: runs a statement.
        table: its name.
        record: the values.
    """
    values = astuple(record)
    columns = ", ".join(member.name for member in fields(record))
    run(f"INSERT OR REPLACE INTO {table} ({columns}) VALUES ({', '.join('?' * len(values))})", values)
