"""OAR's nodes and jobs as frozen values, read by one SQL statement through `psql`.

Rule: one statement sees one moment, in a read-only session with a time limit. `psql` is used because OAR recommends
its package, it needs no further Python package, and a hung one can be killed; it costs 0.02 s a read. An answer that
cannot be read is an error, and a job in a state that is not known is not left out.
Source: the tables of OAR 2.5.9 on PostgreSQL. OAR stores text as UTF-8 that was read as Latin-1.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ....formats.text import count
from ...base import AdapterError, ParseError

#: Jobs that ended so long ago are not read, seconds; and so many of the newest ids are looked through for ended jobs.
ENDED_S, NEWEST = 900, 20000
#: States of jobs that have ended.
ENDED = frozenset(("Terminated", "Error"))
#: Characters of a command that are read: a key is at its beginning. And of properties, which may be four times as long
#: as they are stored; OAR alone evaluates longer ones.
COMMAND = PROPERTIES = 4096
#: Resubmissions of a job that are followed.
LONGEST_CHAIN = 50

#: Jobs that have not ended. The states are three ranges, so that the index on them serves, and none is left out.
ALIVE = "state < 'Error' or state > 'Error' and state < 'Terminated' or state > 'Terminated'"
#: The jobs of a snapshot, at a time in epoch seconds.
RECENT = f"""({ALIVE} or job_id > (select coalesce(max(job_id), 0) - {NEWEST} from jobs)
 and greatest(stop_time, submission_time) > {{now}} - {ENDED_S})"""

#: These jobs, and those as which OAR has resubmitted them.
CHAINS = """j.job_id in (with recursive chain as (select job_id from jobs where job_id in ({ids})
 union select n.job_id from jobs n join chain c on n.resubmit_job_id = c.job_id) select job_id from chain)"""

STATEMENT = """
with recursive shown as (select * from jobs j where {which}),
chain as (select job_id, resubmit_job_id as before, 1 as length from shown where resubmit_job_id > 0
 union all select c.job_id, p.resubmit_job_id, c.length + 1 from chain c join jobs p on p.job_id = c.before
 where p.resubmit_job_id > 0 and c.length < {chain})
select said from (
select -1 as place, json_build_object('now', extract(epoch from clock_timestamp()),
  'jobs', (select count(*) from shown),
  'passed', (select max(start_time) from gantt_jobs_predictions where moldable_job_id = 0),
  'queues', (select coalesce(json_object_agg(queue_name, json_build_array(state, scheduler_policy, priority)), '{{}}')
  from queues),
  'planned', (select coalesce(json_object_agg(w.job_id, json_build_array(p.start_time, case when w.reservation <> 'None'
    then (select json_agg(resource_id order by resource_id) from gantt_jobs_resources_visu g
    where g.moldable_job_id = p.moldable_job_id) end)), '{{}}')
  from jobs w join moldable_job_descriptions m on m.moldable_job_id = w.job_id
    join gantt_jobs_predictions_visu p on p.moldable_job_id = m.moldable_id
  where w.state in ('Waiting', 'toAckReservation')))::text as said
union all select 0, (select coalesce(json_agg(json_build_array(resource_id, network_address, state, drain,
  available_upto, coalesce(to_jsonb(r)->>'core', resource_id::text)) order by resource_id), '[]')
  from resources r where type = 'default')::text
union all select j.job_id, json_build_object('id', j.job_id, 'state', j.state, 'name', coalesce(j.job_name, ''),
  'user', j.job_user, 'project', j.project, 'queue', j.queue_name, 'command', left(coalesce(j.command, ''), {command}),
  'properties', left(coalesce(j.properties, ''), {properties}), 'kind', j.job_type, 'reservation', j.reservation,
  'submitted', j.submission_time, 'decided', j.start_time, 'stop', j.stop_time, 'exit', j.exit_code,
  'message', j.message,
  'first', coalesce((select min(before) from chain c where c.job_id = j.job_id), j.job_id),
  'types', (select coalesce(json_agg(type order by type), '[]') from job_types t where t.job_id = j.job_id),
  'events', (select coalesce(json_agg(json_build_array(type, description) order by event_id), '[]')
    from event_logs e where e.job_id = j.job_id),
  'holding', exists (select 1 from event_logs e where e.job_id = j.job_id and e.type = 'HOLD_WAITING_JOB'
    and e.to_check = 'YES'),
  'began', (select min(date_start) from job_state_logs l where l.job_id = j.job_id and l.job_state = 'Running'),
  'ended', (select max(date_start) from job_state_logs l where l.job_id = j.job_id
    and l.job_state in ('Terminated', 'Error')),
  'after', (select coalesce(json_agg(job_id_required order by job_id_required), '[]') from job_dependencies d
    join jobs p on p.job_id = job_id_required
    where d.job_id = j.job_id and p.state not in ('Terminated', 'Error')),
  'on', (select coalesce(json_agg(resource_id order by resource_id), '[]') from assigned_resources a
    where a.moldable_job_id = j.assigned_moldable_job),
  'forms', (select coalesce(json_agg(json_build_array(m.moldable_walltime, (
    select coalesce(json_agg(json_build_array(left(coalesce(g.res_group_property, ''), {properties}), (
      select coalesce(json_agg(json_build_array(res_job_resource_type, res_job_value) order by res_job_order), '[]')
      from job_resource_descriptions d where d.res_job_group_id = g.res_group_id)) order by g.res_group_id), '[]')
    from job_resource_groups g where g.res_group_moldable_id = m.moldable_id)) order by m.moldable_id), '[]')
    from moldable_job_descriptions m where m.moldable_job_id = j.job_id))::text
from shown j) as every order by place
"""
#: What `psql` ends each row with.
ROW_END = "\0"


@dataclass(frozen=True, slots=True)
class Form:
    """One form in which a job may run: its limit in seconds, and what it asks for in each group of resources.

    A group is a property, in SQL, and levels such as `("network_address", 2), ("core", 4)`.
    """

    walltime: int
    groups: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]


@dataclass(frozen=True, slots=True)
class OarJob:
    """A job; times are epoch seconds, and None where it has not come to that."""

    id: int
    state: str
    name: str
    user: str
    project: str
    queue: str
    command: str  #: its first `COMMAND` characters
    properties: str
    kind: str  #: PASSIVE or INTERACTIVE
    reservation: str  #: None, or its state
    submitted: float
    decided: float | None  #: when OAR decided to start it
    began: float | None  #: when its process began
    ended: float | None  #: when its process ended
    freed: float | None  #: when its cores were free again
    status: int | None  #: raw wait status
    message: str
    first: int  #: the job that its user submitted: OAR resubmits under new ids
    types: tuple[str, ...]
    events: tuple[tuple[str, str], ...]  #: type and description
    after: tuple[int, ...]  #: jobs that have not ended and that it waits for
    resources: tuple[int, ...]  #: those that it has or had
    forms: tuple[Form, ...]

    @property
    def has_ended(self) -> bool:
        """True if it has ended, in whatever way."""
        return self.state in ENDED


@dataclass(frozen=True, slots=True)
class Resource:
    """The unit that OAR assigns: mostly a core of a node."""

    id: int
    node: str
    state: str
    drained: bool
    available_until: float
    core: str


@dataclass(frozen=True, slots=True)
class OarQueue:
    """A queue; jobs of one with a higher priority are considered first."""

    state: str
    program: str
    priority: int


@dataclass(frozen=True, slots=True)
class OarState:
    """OAR at one moment."""

    now: float
    passed: float  #: when the last scheduling pass began
    queues: Mapping[str, OarQueue]
    resources: tuple[Resource, ...]
    jobs: tuple[OarJob, ...]
    #: By the id of a waiting job: when OAR plans to start it, epoch seconds, and an advance reservation's resources.
    planned: Mapping[int, tuple[float, tuple[int, ...]]] = field(default_factory=dict)


#: What the rows of an answer say: of all resources, or of a job.
_Rows = dict[str, Any]


class Reader(Protocol):
    """Reads OAR. Every call raises AdapterError."""

    def world(self) -> OarState:
        """Return all that has not ended, and what ended lately."""
        ...

    def find(self, ids: Collection[int] = (), names: Mapping[str, str] = ...) -> OarState:
        """Return jobs with these ids, and what they became; and those with these names of these users."""
        ...


class Database:
    """OAR's PostgreSQL, as its read-only account.

    Args:
        run: Runs a command with additions to its environment, and returns what it printed.
        connection: Connection string of libpq.
        password_file: File in the form of libpq; None: libpq's own ways.
        timeout_s: Time limit of a statement, seconds.
        password: The password itself; "": it is in the file.
    """

    def __init__(
        self,
        run: Callable[[Sequence[str], Mapping[str, str]], str],
        connection: str,
        password_file: Path | None,
        timeout_s: float,
        password: str = "",
    ) -> None:
        self._run, self._connection = run, connection
        self._rows: _Rows = {}
        # Compiling the statement would take 1.8 s at 5,000 jobs, and running it takes 0.3 s.
        options = f"-c default_transaction_read_only=on -c jit=off -c statement_timeout={max(1, int(timeout_s * 1000))}"
        self._environment = {"PGOPTIONS": options, "PGCLIENTENCODING": "UTF8", "PGAPPNAME": "pilotfish"}
        self._environment["PGCONNECT_TIMEOUT"] = str(max(2, int(timeout_s)))
        if password:
            self._environment["PGPASSWORD"] = password
        if password_file is not None:
            self._environment["PGPASSFILE"] = str(password_file)

    def world(self) -> OarState:
        """Return all that has not ended, and what ended lately; one statement."""
        return self._ask(RECENT.format(now="extract(epoch from now())"), whole=True)

    def find(self, ids: Collection[int] = (), names: Mapping[str, str] = {}) -> OarState:
        """Return jobs with these ids and the resubmissions of them, and those with these names; one statement.

        Args:
            ids: Ids of jobs.
            names: Name of a job -> name of its user.
        """
        listed = ", ".join(map(str, sorted(ids))) or "0"
        conditions = [CHAINS.format(ids=listed)]
        conditions += [f"j.job_name = {literal(name)} and j.job_user = {literal(user)}" for name, user in names.items()]
        return self._ask(f"({' or '.join(conditions)})")

    def _ask(self, condition: str, *, whole: bool = False) -> OarState:
        statement = STATEMENT.format(
            which=condition, chain=LONGEST_CHAIN, command=COMMAND, properties=4 * PROPERTIES + 4
        )
        argv = [psql(), "-wXAtq0", "-v", "ON_ERROR_STOP=1", "-d", self._connection, "-c", statement]
        world, rows = _read(self._run(argv, self._environment), self._rows)
        if whole:
            self._rows = rows
        return world


def psql(folder: Path = Path("/usr/lib/postgresql")) -> str:
    """Return the newest `psql` below Debian's folder; that on the PATH is a script that takes 0.04 s to find it."""
    programs = folder.glob("[0-9]*/bin/psql")
    return str(max(programs, key=lambda path: float(path.parts[-3]), default="psql"))


def world_in(answer: str) -> OarState:
    """Return the world in an answer to STATEMENT. Raises ParseError."""
    return _read(answer, {})[0]


def _read(answer: str, before: _Rows) -> tuple[OarState, _Rows]:
    """Return the world in an answer, and its rows; a row with the same text as before is not parsed again."""
    try:
        head, resources, *jobs = answer.split(ROW_END)[:-1]
        header = json.loads(head)
        queues = {str(name): OarQueue(str(a), str(b), int(c)) for name, (a, b, c) in header["queues"].items()}
        planned = {int(job): (float(at), tuple(map(int, on or ()))) for job, (at, on) in header["planned"].items()}
        rows: _Rows = {row: before.get(row) or _job(json.loads(row)) for row in jobs}
        parsed_resources = before.get(resources) or _resources(json.loads(resources))
        if len(rows) != header["jobs"]:
            raise ValueError(f"found {len(rows)} of {count(header['jobs'], 'job')}")
        world = OarState(
            float(header["now"]), float(header["passed"] or 0), queues, parsed_resources, tuple(rows.values()), planned
        )
        return world, {resources: parsed_resources, **rows}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ParseError(f"the answer of OAR's database cannot be read: {type(error).__name__}: {error}") from None


def _resources(rows: Iterable[Any]) -> tuple[Resource, ...]:
    return tuple(
        Resource(int(number), str(node), str(state), drain == "YES", float(until), str(core))
        for number, node, state, drain, until, core in rows
    )


def _job(form: Mapping[str, Any]) -> OarJob:
    state = state_with(str(form["state"]), held=form["holding"])
    ended = state in ENDED
    forms = tuple(
        Form(int(limit), tuple((text(where), tuple((str(k), int(v)) for k, v in levels)) for where, levels in groups))
        for limit, groups in form["forms"]
    )
    return OarJob(
        id=int(form["id"]), state=state, name=text(form["name"]), user=text(form["user"]),
        project=text(form["project"]), queue=text(form["queue"]), command=text(form["command"]),
        properties=text(form["properties"]), kind=str(form["kind"]), reservation=str(form["reservation"]),
        submitted=float(form["submitted"]), decided=float(form["decided"]) or None,
        began=None if form["began"] is None else float(form["began"]),
        ended=float(form["stop"] or form["ended"] or form["submitted"]) if ended else None,
        freed=None if form["ended"] is None else float(form["ended"]),
        status=None if form["exit"] is None else int(form["exit"]), message=text(form["message"] or ""),
        first=int(form["first"]),
        types=tuple(map(text, form["types"])), events=tuple((str(kind), text(note)) for kind, note in form["events"]),
        after=tuple(map(int, form["after"])), resources=tuple(map(int, form["on"])), forms=forms,
    )  # fmt: skip


def state_with(state: str, *, held: bool) -> str:
    """Return the state of a job; `oarhold` (`held`) takes effect with OAR's next pass."""
    return "Hold" if held and state == "Waiting" else state


def text(stored: str) -> str:
    """Return a text as its user wrote it."""
    try:
        return stored.encode("latin-1").decode(errors="surrogateescape")
    except UnicodeEncodeError:  # it was stored in another way
        return stored


def literal(text: str) -> str:
    """Return a text as a literal of SQL. Raises AdapterError for one that OAR cannot have stored."""
    if not text.isascii() or not text.isprintable() or "\\" in text:
        raise AdapterError(f"{text!r} cannot be the name of a job of ours", kind="refused")
    return "'" + text.replace("'", "''") + "'"
