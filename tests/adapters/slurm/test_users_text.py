"""Whatever a user writes on a job: nothing ends, blinds, slows or steers us, over squeue and over slurmrestd.

The users' texts are in fields of `squeue` and of slurmrestd's answers; all that reads them is the product's own.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.slurm.adapter import SlurmAdapter
from pilotfish.adapters.slurm.marks import Pin, PinRecord, read_key
from pilotfish.adapters.slurm.overdue import Reaper
from pilotfish.adapters.slurm.ownership import Selection
from pilotfish.adapters.slurm.rest import forms
from pilotfish.adapters.slurm.rest.errors import read
from pilotfish.adapters.slurm.transport import squeue
from pilotfish.adapters.slurm.transport.command_transport import CommandTransport
from pilotfish.daemon.apply import Live
from pilotfish.daemon.assembly import assemble
from pilotfish.daemon.planning.guard import Guard
from pilotfish.daemon.planning.problem import Options
from pilotfish.daemon.reaper import lapsed, overdue
from pilotfish.daemon.report.metrics import Metrics
from pilotfish.daemon.state.journal import Journal
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.plan import Release, Start
from pilotfish.simulate.model.snapshot import JobState
from tests.adapters.slurm.rest.test_forms import NEWEST, documented
from tests.adapters.slurm.transport.test_squeue import PRINTED

CLUSTER = Cluster("c", tuple(Node(f"n{i}", NodeType("t", 4, 4 * 2.0**30, 1e10)) for i in range(1, 4)))
SITE = {
    "partition": "PartitionName=main State=UP MaxNodes=UNLIMITED Nodes=n[1-3] OverSubscribe=NO\n"
    "PartitionName=other State=UP MaxNodes=UNLIMITED Nodes=n[1-3] OverSubscribe=NO\n",
    "reservation": "No reservations in the system\n",
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
#: Fields that are not Slurm's alone. What a user submits is in all others, as Slurm prints it.
SLURMS_OWN = frozenset(("JobID", "UserID", "Partition", "QOS", "Account", "State", "PriorityLong"))
FIELDS = sorted(set(squeue.FIELDS) - SLURMS_OWN)
NASTY = (
    "10240-08-12T09:21:02", "cpu1,gpu1,cpu1", "n[0-199999]", "n[1-3],n[1-3]", "n[1-1000][1-1000]", "n[", "9" * 400, "9" * 5000,
    f"pilotfish:pin={'9' * 400}:job=66:uid=666:was=", "pilotfish:pin=9999999999:job=66:uid=666:was=",
    "pilotfish:pin=1:job=66:uid=666:was=n[0-199999]", "pilotfish:pin=1000:AAAAAAAAAAAAAAAA", "pilotfish:let-go=1:x",
    "pilotfish:hold=9999999999", "pilotfish:profile=%00%ff%1b", "pilotfish:key=a/b;key=%2f", "afterok:" + "9" * 5000,
    "\x1b[2J\x07", "a\nb\r\nc", "(null)", "N/A", "UNLIMITED", "-1", "1e400", "nan", "\udcff\udcfe", "66_[1-9]", "66+0", "[a|b]*3",
    "a" * 5000, "\u2028", "²",
)  # fmt: skip
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
            mark = form.removeprefix("--format=%A").partition("%x")[0]
            return "".join(f"{row['JobID']}{mark}{self.excluded}{mark}\n" for row in self.rows)
        fields, mark = [word.partition(":0")[0] for word in form[9:].split(",")], form.split(":0")[1].split(",")[0]
        if argv[0] == "sinfo":
            values = {"NodeList": "", "StateComplete": "idle", "CPUs": "4", "Memory": "4096", "CPUsState": "0/4/0/4"}
            rows: Sequence[Mapping[str, str]] = [values | {"NodeList": f"n{i}", "PartitionName": name}
                                                 for i in (1, 2, 3) for name in ("main", "other")]  # fmt: skip
        else:
            asked = next((word[7:].split(",") for word in argv if word.startswith("--jobs=")), None)
            rows = [row for row in self.rows if asked is None or row["JobID"] in asked]
        return "".join("".join(row.get(field, "") + mark for field in fields) + "\n" for row in rows)


@contextmanager
def state() -> Iterator[Path]:
    """A state directory in which the pin of job 7 is on record."""
    with tempfile.TemporaryDirectory() as name:
        read_key(Path(name), make=True)
        PinRecord(Path(name)).add(7, Pin(5, ("n3",), NOW - 600))
        yield Path(name)


SELECTION = Selection(partitions=frozenset({"main"}), comment=False)


def observed(slurm: Slurm, folder: Path, asked: Sequence[str]) -> list[tuple[str, tuple[str, ...]]]:
    """Let a daemon look, release what is overdue and try to place every job; return what was written."""
    transport = CommandTransport(slurm, wall=lambda: NOW)
    adapter = SlurmAdapter(CLUSTER, transport, SELECTION, clock=lambda: 0.0)
    adapter.keep_state(folder, read_only=True)
    snapshot = adapter.snapshot()
    views = {view.key: view for view in snapshot.jobs}
    assert {"slurm/7", "slurm/8", "slurm/9"} <= views.keys()
    releases = overdue(snapshot, 30.0) + lapsed(snapshot)
    starts = [Start(key, views[key].job, ("n1",)) for key in asked if key in views]
    for action in [*releases, *(Release(key) for key in views), *starts]:
        with suppress(AdapterError):
            adapter.apply(action)
    return slurm.updates


@settings(deadline=None, max_examples=150)
@given(st.lists(ROWS, min_size=1, max_size=3), LISTS, st.sampled_from(("PENDING", "RUNNING", "COMPLETED", "odd")))
@example([{"EligibleTime": NASTY[0]}, {"ReqNodes": NASTY[1]}, {"Comment": NASTY[8]}], "cpu1,gpu1,cpu1", "PENDING")
@example([{"ReqNodes": "n3", "Comment": NASTY[9]}, {"ReqNodes": "n1", "Comment": NASTY[10]}], "(null)", "PENDING")
def test_a_users_text_over_squeue(texts: list[dict[str, str]], excluded: str, said: str) -> None:
    foreign = [FOREIGN | {"JobID": str(66 + i), "State": said, "NodeList": ""} | row for i, row in enumerate(texts)]
    alone, crowded = Slurm(*OURS), Slurm(*foreign, *OURS, *foreign, excluded=excluded)
    with state() as folder:
        before = time.process_time()
        wrote = observed(crowded, folder, ["slurm/66", "slurm/8"])
        assert time.process_time() - before < 1.0
        assert {job for job, _ in wrote} <= {"7", "8", "9"}, "a job that was not handed over was changed"
        by_alone = observed(alone, folder, ["slurm/66", "slurm/8"])
        assert [each for each in wrote if each[0] in "79"] == [each for each in by_alone if each[0] in "79"]
        for slurm in (alone, crowded):
            slurm.updates.clear()
            lines: list[str] = []
            assert Reaper(slurm, SELECTION, folder, 3600.0).reap(30.0, lines.append, dry=True) == 0
            assert lines == ["release slurm/7", "release slurm/9"] and slurm.updates == []
    read_alone, read_crowded = (CommandTransport(slurm).jobs() for slurm in (alone, crowded))
    assert [job for job in read_crowded if job.id in (7, 8, 9)] == read_alone


@settings(deadline=None, max_examples=60)
@given(st.lists(ROWS, min_size=1, max_size=3), LISTS)
@example([{"Comment": text, "Name": text, "Dependency": text, "Feature": text} for text in NASTY], "(null)")
def test_a_users_text_on_jobs_that_are_handed_over(texts: list[dict[str, str]], excluded: str) -> None:
    """Whole cycles of the daemon: what is overdue of others is released, whatever jobs of the same partition say."""
    theirs = [FOREIGN | {"JobID": str(66 + i), "Partition": "main"} | row for i, row in enumerate(texts)]
    slurm = Slurm(*theirs, *OURS, excluded=excluded)
    now = [0.0]
    transport = CommandTransport(slurm, wall=lambda: NOW + now[0])
    adapter = SlurmAdapter(CLUSTER, transport, SELECTION, clock=lambda: now[0])
    with state() as folder:
        adapter.keep_state(folder, read_only=False)
        journal = Journal(folder / "journal.sqlite")
        journal.keep_handed_over("slurm", NOW)
        guard = Guard(bound=0.5, window=3, fallback="slf", errors=[])
        cycle = assemble(adapter, Live(adapter), journal, Metrics(), guard, Options(policy="mom"), lambda: now[0])
        for _ in range(2):
            report = cycle.run()
            assert not any(applied.error for applied in report.applied if applied.action.key in ("slurm/7", "slurm/9"))
            now[0] += 1.0
        journal.close()
    assert ("7", ("ReqNodeList=",)) in slurm.updates
    assert any("StartTime=now" in fields for job, fields in slurm.updates if job == "9"), "placed or let go"


KEYS = sorted(set(documented(40)) - {"job_id", "user_id", "partition", "qos", "account", "job_state", "priority"})
VALUES = TEXTS | st.none() | st.integers() | st.floats() | st.lists(TEXTS, max_size=3) | st.booleans()


@settings(deadline=None, max_examples=150)
@given(st.lists(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=5), min_size=1, max_size=4))
def test_a_users_text_over_rest(texts: list[dict[str, Any]]) -> None:
    ours = [documented(40), documented(40) | {"job_id": 8}]
    foreign = [documented(40) | {"job_id": 66 + i} | row for i, row in enumerate(texts)]
    body = json.dumps({"jobs": [*foreign, *ours, *foreign]}, ensure_ascii=False).encode(errors="surrogateescape")
    before = time.process_time()
    found = forms.jobs(read("jobs", 200, body))
    assert time.process_time() - before < 1.0
    assert found[len(foreign) : -len(foreign)] == forms.jobs({"jobs": ours})
    for job, (_, row) in zip(found, enumerate(texts), strict=False):
        assert job.state is not JobState.UNKNOWN or (job.comment, job.wanted) == ("", ()), row


def test_bytes_of_a_comment_come_back_over_rest() -> None:
    raw = json.dumps(
        {"jobs": [NEWEST["jobs"][0] | {"comment": "caf\udce9 \t x", "name": "caf\udce9"}]}, ensure_ascii=False
    )
    (job,) = forms.jobs(read("jobs", 200, raw.encode(errors="surrogateescape")))
    assert (job.comment, job.name) == ("caf\udce9 \t x", "caf?")


def test_many_long_node_lists_are_quick(record_property: pytest.FixtureRequest) -> None:
    texts = [
        "n[0-65000]",
        "n1," * 2000 + "n1",
        f"n[{','.join(map(str, range(3000)))}]",
        "n[1-3]," * 20000,
        "[1-9]" * 300,
    ]
    rows = [FOREIGN | {"JobID": str(100 + i), "ReqNodes": f"x{i},{texts[i % len(texts)]}"} for i in range(200)]
    with state() as folder:
        slurm, before = Slurm(*rows, *OURS, excluded="n[0-65000]"), time.process_time()
        observed(slurm, folder, ["slurm/8"])
        Reaper(slurm, SELECTION, folder, 3600.0).reap(30.0, lambda line: None, dry=True)
        seconds = time.process_time() - before
    record_property("measured", f"200 jobs with long node lists: {seconds:.2f} s")  # type: ignore[operator]
    assert seconds < 1.0
