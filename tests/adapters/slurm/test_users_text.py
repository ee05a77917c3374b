"""Whatever a user writes on a job: nothing ends, blinds, slows or steers us, over squeue and over slurmrestd.

The users' texts are in fields of `squeue` and of slurmrestd's answers; all that reads them is the product's own.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pilotfish.adapters.base import AdapterError, Reaped
from pilotfish.adapters.slurm.adapter import SlurmAdapter
from pilotfish.adapters.slurm.doctor import findings_of
from pilotfish.adapters.slurm.doctor.check_clocks import login_nodes
from pilotfish.adapters.slurm.handed_over.overdue import Reaper
from pilotfish.adapters.slurm.handed_over.ownership import SlurmSelection
from pilotfish.adapters.slurm.handed_over.pin_record import Pin, PinRecord
from pilotfish.adapters.slurm.rest import forms as rest_forms
from pilotfish.adapters.slurm.rest.client import Client
from pilotfish.adapters.slurm.rest.errors import read
from pilotfish.adapters.slurm.rest.failover import FailoverTransport
from pilotfish.adapters.slurm.rest.forms import SINCE_23_02
from pilotfish.adapters.slurm.rest.transport import RestTransport
from pilotfish.adapters.slurm.transport import squeue
from pilotfish.adapters.slurm.transport.command_transport import CommandTransport, Transport
from pilotfish.adapters.slurm.transport.parsing import SEPARATOR, moment
from pilotfish.daemon.apply import Live
from pilotfish.daemon.assembly import Deciding, assemble
from pilotfish.daemon.due_releases import lapsed, overdue
from pilotfish.daemon.learning.guard_rail import Guard
from pilotfish.daemon.planning.problem import Options
from pilotfish.daemon.report.metrics import Metrics
from pilotfish.daemon.state.journal import Journal
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.plan import Place, Release
from pilotfish.simulate.model.snapshot import JobState
from tests.adapters.slurm.rest.test_forms import NEWEST, documented, number
from tests.adapters.slurm.transport.test_squeue import PRINTED
from tests.support.slurm_answers import GOOD, asked_of

CLUSTER = Cluster("c", tuple(Node(f"n{i}", NodeType("t", 4, 4 * 2.0**30, 1e10)) for i in range(1, 4)))
SITE = {
    "partition": "PartitionName=main State=UP MaxNodes=UNLIMITED Nodes=n[1-3] OverSubscribe=NO\n"
    "PartitionName=other State=UP MaxNodes=UNLIMITED Nodes=n[1-3] OverSubscribe=NO\n",
    "reservation": "No reservations in the system\n",
    "node": "",
    "config": "SchedulerType = sched/backfill\n",
    "flags=assoc,qos": "Current Association Manager state\n",
}
#: Jobs that were handed over: a pin that is overdue, one that is held, one that was held too long.
PINNED = PRINTED | {
    "JobID": "7", "JobArrayID": "7", "Partition": "main", "ReqNodes": "n3", "Reason": "Resources", "Comment": "a job",
    "EligibleTime": "2026-11-21T03:33:30", "StartTime": "N/A",
}  # fmt: skip
HELD = PRINTED | {
    "JobID": "8", "JobArrayID": "8", "Partition": "main", "ReqNodes": "(null)", "Comment": "pilotfish:hold=600",
    "SubmitTime": "2026-11-21T07:20:00", "EligibleTime": "2026-11-21T07:30:00", "StartTime": "N/A",
}  # fmt: skip
LATE = HELD | {
    "JobID": "9", "JobArrayID": "9", "Comment": "pilotfish:hold=9000", "SubmitTime": "2026-11-21T06:00:00",
    "EligibleTime": "2026-11-21T08:30:00",
}  # fmt: skip
OURS = (PINNED, HELD, LATE)
NOW = 1_795_245_609
#: The job of a user who hands nothing over.
FOREIGN = PRINTED | {"JobID": "66", "JobArrayID": "66", "UserID": "666", "Partition": "other", "PriorityLong": "1"}
#: What no user can write; Slurm prints all else from what a user submits or updates.
SLURMS_OWN = frozenset(("JobID", "UserID", "State", "PriorityLong"))
FIELDS = sorted({*squeue.FIELDS, "AllocNodes"} - SLURMS_OWN)
NASTY = (
    "10240-08-12T09:21:02", "cpu1,gpu1,cpu1", "n[0-199999]", "n[1-3],n[1-3]", "n[1-1000][1-1000]", "n[", "9" * 400, "9" * 5000,
    f"pilotfish:pin={'9' * 400}:job=66:uid=666:was=", "pilotfish:pin=9999999999:job=66:uid=666:was=",
    "pilotfish:pin=1:job=66:uid=666:was=n[0-199999]", "pilotfish:pin=1000:AAAAAAAAAAAAAAAA", "pilotfish:let-go=1:x",
    "pilotfish:hold=9999999999", "pilotfish:profile=%00%ff%1b", "pilotfish:key=a/b;key=%2f", "afterok:" + "9" * 5000,
    "\x1b[2J\x07", "a\nb\r\nc", "(null)", "N/A", "UNLIMITED", "-1", "1e400", "nan", "\udcff\udcfe", "66_[1-9]", "66+0", "[a|b]*3",
    "a" * 5000, "\u2028", "²", "\x1f", "a\x1f1\x1fb",
    "9223372036854775807", "2147483647", "4G", "99999999-00:00:00", "main,other", "other,main,main", "cpu=1,mem=9P,node=2G",
)  # fmt: skip
#: Texts that claim a pin of long ago.
FORGED = tuple(text for text in NASTY if ":pin=1" in text)
TEXTS = st.sampled_from(NASTY) | st.binary(max_size=80).map(lambda raw: os.fsdecode(raw.replace(b"\0", b"")))
ROWS = st.dictionaries(st.sampled_from(FIELDS), TEXTS, max_size=6)
LISTS = st.sampled_from(("(null)", "n1", "cpu1,gpu1,cpu1", "n[1-9999999]"))


class Slurm:
    """Slurm's commands, with these rows in the queue; `updates` are the changes that it was asked for, by job."""

    def __init__(self, *rows: Mapping[str, str], excluded: str = "(null)") -> None:
        self.rows, self.excluded = rows, excluded
        self.updates: list[tuple[str, tuple[str, ...]]] = []

    def __call__(self, argv: Sequence[str]) -> str:
        if argv[0] == "sdiag":
            return f"sdiag output at Sat Nov 21 07:20:09 2026 ({NOW})\n"
        if argv[:2] == ["scontrol", "update"]:
            self.updates.append((argv[2].removeprefix("JobId="), tuple(argv[3:])))
            return ""
        if argv[0] == "scontrol":
            return SITE[argv[-1]]
        form = next(word for word in argv if word.lower().startswith("--format="))
        if form.startswith("--format="):
            mark = form.partition("%x")[2]
            return "".join(f"{row['JobID']}{SEPARATOR}{self.excluded}{mark}\n" for row in self.rows)
        cells = [word.partition(":0")[::2] for word in form[9:].split(",")]
        if argv[0] == "sinfo":
            values = {"NodeList": "", "StateComplete": "idle", "CPUs": "4", "Memory": "4096", "CPUsState": "0/4/0/4"}
            rows: Sequence[Mapping[str, str]] = [values | {"NodeList": f"n{i}", "PartitionName": name}
                                                 for i in (1, 2, 3) for name in ("main", "other")]  # fmt: skip
        else:
            ids = next((word[7:].split(",") for word in argv if word.startswith("--jobs=")), None)
            rows = [row for row in self.rows if ids is None or row["JobID"] in ids]
        return "".join("".join(row.get(field, "") + end for field, end in cells) + "\n" for row in rows)


class Rest(Client):
    """slurmrestd before a `Slurm`: the jobs as forms, of 23.02 or, without `shows_all`, like those of 22.05."""

    def __init__(self, slurm: Slurm, forms: Sequence[Mapping[str, Any]], *, shows_all: bool) -> None:
        super().__init__("http://127.0.0.1:1", "backup", lambda: None)
        hidden = () if shows_all else SINCE_23_02
        self.slurm, self.forms = slurm, [{key: form[key] for key in form.keys() - hidden} for form in forms]

    def get(self, path: str, request: str, **query: str | int) -> dict[str, Any]:
        name = path.removeprefix(V)
        answer: dict[str, Any] = {"jobs": self.forms}
        if name.startswith("job/"):
            answer = {"jobs": [form for form in self.forms if str(form["job_id"]) == name.removeprefix("job/")]}
        elif name == "nodes":
            answer = {"nodes": [NODE | {"name": f"n{i}"} for i in (1, 2, 3)]}
        elif name == "diag":
            answer = {"statistics": {"req_time": NOW}}
        elif name.startswith("/openapi"):
            answer = DOCUMENT
        return read(request, 200, json.dumps(answer, ensure_ascii=False).encode(errors="surrogateescape"))

    def post(self, path: str, request: str, body: Mapping[str, object]) -> dict[str, Any]:
        fields = tuple(sorted(f"{REST_FIELDS[key]}={value}" for key, value in body.items()))
        self.slurm.updates.append((path.rpartition("/")[2], fields))
        return {}


V = "/slurm/v0.0.40/"
REST_FIELDS = {"begin_time": "StartTime", "comment": "Comment"}
DOCUMENT: dict[str, Any] = {"paths": {f"{V}{name}": {} for name in ("jobs", "nodes", "diag")}}
PROPERTIES = {"properties": {key: {} for key in (*REST_FIELDS, "required_nodes")}}
DOCUMENT["paths"][f"{V}job/{{job_id}}"] = {
    "post": {"requestBody": {"content": {"application/json": {"schema": PROPERTIES}}}}
}
NODE = {
    "state": ["IDLE"], "cpus": 4, "real_memory": 4096, "active_features": [], "partitions": ["main", "other"],
    "reason": "", "alloc_cpus": 0, "alloc_memory": 0, "sockets": 1, "cores": 4,
}  # fmt: skip
REST_FIELDS["required_nodes"] = "ReqNodeList"
#: Keys of a form -> field of the row that says the same.
SAME = {
    "partition": "Partition", "required_nodes": "ReqNodes", "state_reason": "Reason", "comment": "Comment",
    "submit_time": "SubmitTime", "eligible_time": "EligibleTime",
}  # fmt: skip


def form_of(row: Mapping[str, str]) -> dict[str, Any]:
    """One of our own rows as slurmrestd shows it."""
    values: dict[str, Any] = {key: row[field].replace("(null)", "") for key, field in SAME.items()}
    for key in ("submit_time", "eligible_time"):
        values[key] = number(moment(values[key]))
    return documented(40, job_id=int(row["JobID"]), **values | {"excluded_nodes": "", "start_time": number(0)})


@contextmanager
def state(*, lost: bool = False) -> Iterator[Path]:
    """A state directory in which the pin of job 7 is on record, unless that was lost."""
    with tempfile.TemporaryDirectory() as name:
        if not lost:
            PinRecord(Path(name)).add(7, Pin(5, ("n3",), NOW - 600))
        yield Path(name)


SELECTION = SlurmSelection(partitions=frozenset({"main"}), comment=False)


@contextmanager
def counted() -> Iterator[list[int]]:
    """Count the calls of functions: work, whatever the machine."""
    calls = [0]

    def count(_frame: object, _event: str, _what: object) -> None:
        calls[0] += 1

    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(None)


#: Most calls for each row of a user's, about a hundredth of a second, and for all that is done without any.
CALLS, CALLS_ALONE = 20_000, 200_000
WAYS = ("squeue", "rest", "rest of 22.05")


def transport_of(
    way: str,
    slurm: Slurm,
    forms: Sequence[Mapping[str, Any]],
    now: list[float],
    ours: Sequence[Mapping[str, str]] = OURS,
) -> Transport:
    commands = CommandTransport(slurm, clock=lambda: now[0], wall=lambda: NOW + now[0])
    if way == "squeue":
        return commands
    client = Rest(slurm, [*forms, *map(form_of, ours), *forms], shows_all=way == "rest")
    return FailoverTransport(RestTransport(client, lambda: now[0]), commands, lambda: now[0])


def observed(
    transport: Transport, slurm: Slurm, folder: Path, asked: Sequence[str]
) -> list[tuple[str, tuple[str, ...]]]:
    """Let a daemon look, release what is overdue and try to place every job; return what was written."""
    adapter = SlurmAdapter(CLUSTER, transport, SELECTION, clock=lambda: 0.0)
    adapter.keep_state(folder, read_only=True)
    snapshot = adapter.snapshot()
    views = {view.key: view for view in snapshot.jobs}
    assert {"slurm/7", "slurm/8", "slurm/9"} <= views.keys()
    releases = overdue(snapshot, 30.0) + lapsed(snapshot)
    starts = [Place(key, views[key].job, ("n1",)) for key in asked if key in views]
    for action in [*releases, *(Release(key) for key in views), *starts]:
        with suppress(AdapterError):
            adapter.apply(action)
    return slurm.updates


KEYS = sorted(set(documented(40)) - {"job_id", "user_id", "job_state", "priority"})
VALUES = TEXTS | st.none() | st.integers() | st.floats() | st.lists(TEXTS, max_size=3) | st.booleans()
FORMS = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=5)
USERS = st.lists(st.tuples(ROWS, FORMS), min_size=1, max_size=3)
ALL_AT_ONCE = [({name: text for name in FIELDS if name != "Partition"}, dict.fromkeys(KEYS, text)) for text in NASTY]


def foreign(texts: list[tuple[dict[str, str], dict[str, Any]]], **changed: str) -> tuple[list[Any], list[Any]]:
    """The jobs of a user with these texts: rows of squeue, and forms of slurmrestd."""
    base, first = FOREIGN | {"NodeList": ""} | changed, {"user_id": 666, "priority": number(1), "excluded_nodes": ""}
    rows = [base | {"JobID": str(66 + i)} | row for i, (row, _) in enumerate(texts)]
    first |= {"partition": base["Partition"], "job_state": [base["State"]]}
    return rows, [documented(40) | first | {"job_id": 66 + i} | form for i, (_, form) in enumerate(texts)]


@pytest.mark.parametrize("way", WAYS)
@settings(deadline=None, max_examples=15)
@given(USERS, LISTS, st.sampled_from(("PENDING", "RUNNING", "COMPLETED", "odd")))
@example([({"EligibleTime": NASTY[0]}, {}), ({"ReqNodes": NASTY[1]}, {})], "cpu1,gpu1,cpu1", "PENDING")
@example([({"ReqNodes": "n3", "Comment": NASTY[9]}, {}), ({"ReqNodes": "n1", "Comment": NASTY[10]}, {})], "(null)",
         "PENDING")  # fmt: skip
@example(ALL_AT_ONCE, "(null)", "PENDING")
@example(ALL_AT_ONCE, "n[1-9999999]", "RUNNING")
def test_a_users_text(way: str, texts: list[tuple[dict[str, str], dict[str, Any]]], excluded: str, said: str) -> None:
    """From the snapshot to what is written, by the daemon and by the reaper."""
    rows, forms = foreign(texts, State=said)
    own_only, crowded = Slurm(*OURS), Slurm(*rows, *OURS, *rows, excluded=excluded)
    with state() as folder:
        with counted() as calls:
            wrote = observed(transport_of(way, crowded, forms, [0.0]), crowded, folder, ["slurm/66", "slurm/8"])
        assert calls[0] < CALLS_ALONE + 2 * len(texts) * CALLS
        assert {job for job, _ in wrote} <= {"7", "8", "9"}, "a job that was not handed over was changed"
        by_alone = observed(transport_of(way, own_only, [], [0.0]), own_only, folder, ["slurm/66", "slurm/8"])
        assert [update for update in wrote if update[0] in "79"] == [update for update in by_alone if update[0] in "79"]
        assert {job for job, _ in by_alone} == {"7", "8", "9"}
        for slurm in (own_only, crowded):
            slurm.updates.clear()
            released: list[Reaped] = []
            with counted() as calls:
                assert Reaper(slurm, SELECTION, folder, 3600.0).reap(30.0, released.append, dry=True) == 0
            assert calls[0] < CALLS_ALONE + 2 * len(texts) * CALLS
            assert [one.line for one in released] == ["release slurm/7", "release slurm/9"] and slurm.updates == []
    read_alone, read_crowded = (
        transport_of(way, *update, [0.0]).jobs() for update in ((own_only, []), (crowded, forms))
    )
    assert [job for job in read_crowded if job.id in (7, 8, 9)] == read_alone
    answers = asked_of(jobs=read_crowded, login_nodes=login_nodes(crowded))
    for finding in findings_of(answers, SELECTION, CLUSTER, GOOD):
        assert not any("\n" in line or "\x1b" in line for line in finding.mend), "a command to be copied"
    for job in read_crowded:
        assert (
            said == "odd" or job.id < 10 or job.state is not JobState.UNKNOWN or (job.comment, job.wanted) == ("", ())
        )


@pytest.mark.parametrize("way", WAYS)
@settings(deadline=None, max_examples=15)
@given(USERS, LISTS, st.booleans())
@example(ALL_AT_ONCE, "(null)", False)
@example([({"ReqNodes": "n2", "Comment": text}, {"required_nodes": "n2", "comment": text}) for text in FORGED], "(null)",
         True)  # fmt: skip
def test_a_users_text_on_jobs_that_are_handed_over(
    way: str, texts: list[tuple[dict[str, str], dict[str, Any]]], excluded: str, lost: bool
) -> None:
    """Whole cycles of the daemon: what is overdue of others is released, whatever jobs of the same partition say.

    If the record of pins was lost, no job counts as pinned.
    """
    rows, forms = foreign(texts, Partition="main")
    with state(lost=lost) as folder:
        own_rows = [PINNED, HELD, LATE]
        slurm, now = Slurm(*rows, *own_rows, excluded=excluded), [0.0]
        adapter = SlurmAdapter(CLUSTER, transport_of(way, slurm, forms, now, own_rows), SELECTION, clock=lambda: now[0])
        adapter.keep_state(folder, read_only=False)
        journal = Journal(folder / "journal.sqlite")
        journal.keep_handed_over("slurm", NOW)
        guard = Guard(bound=0.5, window=3, fallback="slf", errors=[])
        cycle = assemble(
            adapter, Live(adapter), journal, Metrics(), Deciding(guard, Options(policy="mom")), lambda: now[0]
        )
        for _ in range(2):
            with counted() as calls:
                report = cycle.run()
            assert calls[0] < CALLS_ALONE + 2 * len(texts) * CALLS
            assert not any(applied.error for applied in report.applied if applied.action.key in ("slurm/7", "slurm/9"))
            now[0] += 1.0
        journal.close()
    released = {job for job, fields in slurm.updates if "ReqNodeList=" in fields}
    assert released == (set() if lost else {"7"}), "no other job was ever pinned"
    assert any(any("StartTime=" in field for field in fields) for job, fields in slurm.updates if job == "9")


def test_many_jobs_of_one_user_that_are_let_go_keep_nobody_waiting() -> None:
    """2,000 jobs of a user, which only Slurm understands and which come first in the queue; one of another user."""
    fields = HELD | {"tres-per-node": "gpu:1", "UserID": "666", "PriorityLong": "999999"}
    rows = [fields | {"JobID": str(1_000_000 + i), "JobArrayID": "1"} for i in range(2_000)]
    slurm, now = Slurm(*rows, PINNED, HELD, LATE), [0.0]
    with state() as folder:
        adapter = SlurmAdapter(CLUSTER, transport_of("squeue", slurm, [], now), SELECTION, clock=lambda: now[0])
        adapter.keep_state(folder, read_only=False)
        journal = Journal(folder / "journal.sqlite")
        journal.keep_handed_over("slurm", NOW)
        guard = Guard(bound=0.5, window=3, fallback="slf", errors=[])
        cycle = assemble(
            adapter, Live(adapter), journal, Metrics(), Deciding(guard, Options(policy="mom")), lambda: now[0]
        )
        cycle.run()
        journal.close()
        updated = {job for job, _ in slurm.updates}
        assert {"7", "9"} < updated and 20 < len(slurm.updates) < 40


@pytest.mark.parametrize(("left", "written"), [(15, []), (25, ["8"])])
def test_a_job_that_may_begin_is_not_let_go(left: int, written: list[str]) -> None:
    """A command that is on its way for longer would reach a job that has begun."""
    slurm = Slurm(HELD | {"EligibleTime": f"2026-11-21T07:20:{9 + left:02}", "SubmitTime": "2026-11-21T07:10:30"})
    adapter = SlurmAdapter(CLUSTER, transport_of("squeue", slurm, [], [0.0]), SELECTION, clock=lambda: 0.0)
    adapter.snapshot()
    adapter.apply(Release("slurm/8", "there is nothing to choose"))
    assert [job for job, _ in slurm.updates] == written


def test_a_pin_whose_answer_was_lost_is_not_refused_the_second_time() -> None:
    """Its begin time, "now" in the seconds of Slurm, may still be ahead of the clock that we estimate."""
    slurm = Slurm(PINNED | {"EligibleTime": "2026-11-21T07:20:11"})
    adapter = SlurmAdapter(CLUSTER, transport_of("squeue", slurm, [], [0.0]), SELECTION, clock=lambda: 0.0)
    with state() as folder:
        adapter.keep_state(folder, read_only=True)
        (view,) = (view for view in adapter.snapshot().jobs if view.key == "slurm/7")
        adapter.apply(Place("slurm/7", view.job, ("n3",)))
    assert view.pinned_since is not None and slurm.updates == []


def test_no_list_of_jobs_is_too_long_for_a_command() -> None:
    longest = 0

    def run(argv: Sequence[str]) -> str:
        nonlocal longest
        longest = max(longest, *map(len, argv))
        return slurm(argv)

    slurm = Slurm(*OURS)
    adapter = SlurmAdapter(CLUSTER, CommandTransport(run, clock=lambda: 0.0), SELECTION, clock=lambda: 0.0)
    adapter.refresh([f"slurm/{number}" for number in range(10_000_000, 10_020_000)])
    assert longest < 2**17, "Linux accepts no longer one"


def test_bytes_of_a_comment_come_back_over_rest() -> None:
    raw = json.dumps(
        {"jobs": [NEWEST["jobs"][0] | {"comment": "caf\udce9 \t x", "name": "caf\udce9"}]}, ensure_ascii=False
    )
    (job,) = rest_forms.jobs(read("jobs", 200, raw.encode(errors="surrogateescape")))
    assert (job.comment, job.name) == ("caf\udce9 \t x", "caf?")


def test_many_long_node_lists_are_quick() -> None:
    texts = [
        "n[0-65000]",
        "n1," * 2000 + "n1",
        f"n[{','.join(map(str, range(3000)))}]",
        "n[1-3]," * 20000,
        "[1-9]" * 300,
    ]
    rows = [FOREIGN | {"JobID": str(100 + i), "ReqNodes": f"x{i},{texts[i % len(texts)]}"} for i in range(200)]
    with state() as folder, counted() as calls:
        slurm = Slurm(*rows, *OURS, excluded="n[0-65000]")
        observed(transport_of("squeue", slurm, [], [0.0]), slurm, folder, ["slurm/8"])
        Reaper(slurm, SELECTION, folder, 3600.0).reap(30.0, lambda line: None, dry=True)
    assert calls[0] < CALLS_ALONE + 200 * CALLS
