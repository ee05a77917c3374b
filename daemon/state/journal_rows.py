"""A job as a row of the journal's table `jobs`.

Rule: a row that was written comes back as the same entry. Of a job that was handed over, the resource manager has the
request; its row keeps what users are shown of it after its end.
"""

from __future__ import annotations

import json
from dataclasses import astuple, fields
from operator import attrgetter
from typing import Any

from ...simulate.model.job import DEFAULT_PROFILE, Job
from ...simulate.model.snapshot import JobState
from .forecasts import JobForecast, ProfileLabel
from .queue import Entry

#: Columns that hold an attribute of an entry as it is: how the job ran, and how far it has come.
_RAN = ("start_time", "finish_time", "exit_code", "signal", "reason")
_PROGRESS = ("promised", "expected", "handed", "cancel_wanted", "attempts", "not_before", "since", "plain_end")
_ran_of, _progress_of = attrgetter(*_RAN), attrgetter(*_PROGRESS)
_forecast_of = attrgetter("start_time", "finish_time", "isolated_run_time", "contention_slowdown")
_FIELDS = [each.name for each in fields(ProfileLabel)]
#: The columns of a row, and the statement that writes one.
JOB_COLUMNS = (
    f"workflow, job, position, state, nodes, {', '.join(_RAN)},"
    f" forecast_start, forecast_finish, isolated_run_time, contention_slowdown, {', '.join(_PROGRESS)},"
    " forecast_earliest, forecast_latest, owner, about"
)
SAVE = f"INSERT OR REPLACE INTO jobs ({JOB_COLUMNS}) VALUES ({', '.join('?' * 26)})"


def row_of(entry: Entry) -> tuple[Any, ...]:
    """Return the values of JOB_COLUMNS of a job."""
    nodes = json.dumps(entry.nodes) if entry.nodes else "[]"
    given = (entry.workflow, entry.job.id, entry.position, str(entry.state), nodes)
    forecast = _forecast_of(entry.forecast) if entry.forecast else (None,) * 4
    within = (entry.forecast and entry.forecast.within) or (None, None)
    return *given, *_ran_of(entry), *forecast, *_progress_of(entry), *within, entry.job.owner, _about(entry)


def _about(entry: Entry) -> str | None:
    """Return as JSON what `explain` shows of a job and its definition, if there is one, does not have."""
    about: dict[str, Any] = {"traits": dict(entry.job.traits)} if entry.offered else {}
    about |= {name: value for name in ("let_go", "released") if (value := getattr(entry, name))}
    if entry.label:
        about["label"] = astuple(entry.label)
    return json.dumps(about) if about else None


def _about_in(row: tuple[Any, ...]) -> dict[str, Any]:
    """Return what `_about` wrote. Raises ValueError: it is something else."""
    about = json.loads(row[25] or "{}")
    kinds = {"traits": dict, "let_go": str, "released": str, "label": list}
    if not isinstance(about, dict) or not all(
        isinstance(about.get(name, kind()), kind) for name, kind in kinds.items()
    ):
        raise ValueError(f"the record of {row[0]}/{row[1]} cannot be read")
    if len(about.get("label", _FIELDS)) != len(_FIELDS):
        raise ValueError(f"the profile of {row[0]}/{row[1]} cannot be read")
    return about


def handed_over_entry(row: tuple[Any, ...]) -> Entry:
    """Return a job whose request is in the resource manager's queue."""
    traits = _about_in(row).get("traits", {})
    job = Job(row[1], DEFAULT_PROFILE, traits=tuple(traits.items()), owner=row[24])
    return Entry(row[0], job, row[2], offered=True)


def restore(entry: Entry, row: tuple[Any, ...]) -> None:
    """Set how far a job has come.

    Args:
        entry: the job, as it was submitted.
        row: the values of JOB_COLUMNS.
    """
    entry.state, entry.nodes = JobState(row[3]), tuple(json.loads(row[4]))
    for name, value in zip(_RAN + _PROGRESS, row[5:10] + row[14:22], strict=True):
        setattr(entry, name, value)
    entry.handed, entry.cancel_wanted = bool(entry.handed), bool(entry.cancel_wanted)
    about = _about_in(row)
    entry.let_go, entry.released = about.get("let_go", ""), about.get("released", "")
    entry.label = ProfileLabel(*about["label"]) if "label" in about else None
    forecast = (*row[10:14], row[22:24] if row[22] is not None else None)
    entry.forecast = JobForecast(*forecast) if row[10] is not None else None
