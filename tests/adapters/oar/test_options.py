"""Options of the adapter: one line that names the key and what is allowed; previews; what an away OAR is."""

from __future__ import annotations

import re
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from pilotfish.adapters import registry
from pilotfish.adapters.base import AdapterError, BreakerState
from pilotfish.adapters.oar.adapter import OarAdapter
from pilotfish.adapters.oar.commands import QUESTION_S, OarCommands, poke, readable
from pilotfish.adapters.oar.job_views import UNEVALUATED, OarSelection
from pilotfish.adapters.oar.placement_file import PlacementFile
from pilotfish.adapters.oar.records.oarstat import LOSES
from pilotfish.adapters.oar.records.properties import NOWHERE, WRONG
from pilotfish.adapters.oar.records.world import Database
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Job
from pilotfish.simulate.model.plan import Place, Release, Submit
from tests.support.oar_records import PROPERTIES, answer, job

CLUSTER = Cluster("pilot", tuple(Node(f"node{n}", NodeType("t", 2, 1e9, 1e9)) for n in range(1, 5)))
GOOD = {"database": "dbname=oar", "queues": ["pilot"], "placement_file": "placements"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"database": 7}, "database: found 7"),
        ({"database": "oar"}, "database: found 'oar' (allowed: such as host="),
        ({"queues": "pilot"}, "queues: found 'pilot' (allowed: a list of texts"),
        ({"queues": ["a b"]}, "queues: found 'a b' (allowed: letters, digits"),
        ({"projects": ["x'; drop"]}, "projects: found"),
        ({"queues": []}, "placement_file: no jobs are handed over (allowed: with queues or projects)"),
        ({"max_defer_s": 0}, "max_defer_s: found 0"),
        ({"max_defer_s": float("nan")}, "max_defer_s: found nan"),
        ({"max_defer_s": 1e9}, "max_defer_s: found 1000000000.0"),
        ({"server": "localhost"}, "server: found 'localhost' (allowed: HOST:PORT)"),
        ({"server": "a:99999"}, "server: found 'a:99999'"),
        ({"timeout_s": True}, "timeout_s: found True"),
        ({"placement_fil": "x"}, "placement_fil: unknown option; did you mean 'placement_file'"),
    ],
)
def test_a_wrong_option_is_one_line_that_names_the_key(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        registry.create("oar", CLUSTER, **{**GOOD, **options})
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_without_a_database_oar_is_read_by_its_commands_and_that_is_said() -> None:
    assert [registry.create("oar", CLUSTER).notes, registry.create("oar", CLUSTER, **GOOD).notes] == [(LOSES,), ()]


@pytest.mark.real
def test_a_server_that_is_away_is_no_traceback_and_not_waited_for() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        assert not poke(free.getsockname()[:2])


@pytest.mark.real
@pytest.mark.parametrize(
    ("argv", "kind", "transient"),
    [
        (["/bin/sh", "-c", "echo 'could not connect to server' >&2; exit 2"], "unreachable", True),
        (["/bin/sh", "-c", "echo 'FATAL: password authentication failed for user' >&2; exit 2"], "refused", False),
        (["/bin/sh", "-c", "echo 'canceling statement due to statement timeout' >&2; exit 1"], "unreachable", True),
        (["/nowhere/psql"], "missing", False),
        (["/bin/sleep", "60"], "timeout", True),
    ],
)
def test_a_database_that_is_away_is_not_one_that_refuses(argv: list[str], kind: str, transient: bool) -> None:
    with pytest.raises(AdapterError) as caught:
        OarCommands(1.0).psql(argv, {})
    assert (caught.value.kind, caught.value.transient) == (kind, transient)


def test_a_trace_of_perl_is_not_what_a_user_reads() -> None:
    output = "[ADMISSION RULE] x\nDBD::Pg::st execute failed: ERROR at IO.pm line 7\n/!\\ queue y does not exist\nOAR_JOB_ID=-8\n"
    assert readable(output) == "/!\\ queue y does not exist"
    output = """OAR_JOB_ID=
DBD::Pg::db do failed: ERROR:  value too long for type character varying(255) at /usr/share/perl5/OAR/IO.pm line 1679.
DBD::Pg::db do failed: ERROR:  syntax error at end of input
LINE 5:
        ^ at /usr/share/perl5/OAR/IO.pm line 1778.
[ERROR] Oarsub failed, please verify your request syntax.
"""
    message = "Oarsub failed, please verify your request syntax."
    assert readable(output) == f"{message}; value too long for type character varying(255)"


#: How `oarnodes` ends on PostgreSQL with properties that take too long, and with wrong ones: exit code 0, no nodes.
FAILED = "DBD::Pg::st execute failed: ERROR:  {} at /usr/share/perl5/OAR/IO.pm line 5759."


@pytest.mark.real
@pytest.mark.parametrize(
    ("script", "kind", "transient"),
    [
        (f"echo '{{}}'; echo '{FAILED.format('canceling statement due to statement timeout')}' >&2", "timeout", False),
        (f"echo '{{}}'; echo '{FAILED.format('syntax error at end of input')}' >&2", "refused", False),
        ("echo 'could not connect to server' >&2; exit 1", "unreachable", True),
        ("echo 'FATAL:  terminating connection due to administrator command' >&2", "unreachable", True),
        ("kill -9 $$", "unreachable", True),
        ("exit 3", "refused", False),
        ("echo > ready; exec sleep 60", "timeout", False),
        ("echo 'connection to server on socket failed' >&2; echo > ready; exec sleep 60", "unreachable", True),
    ],
)
def test_an_answer_about_properties_is_one_about_a_job_or_about_oar(
    script: str, kind: str, transient: bool, tmp_path: Path
) -> None:
    at, commands = [0.0], OarCommands(5.0, ("/bin/sh", "-c", f"cd {tmp_path}; {script}"))
    question = commands.ask_for_nodes("x = 1", lambda: at[0])
    assert question is not None
    with pytest.raises(AdapterError) as caught:
        while question.poll() is None:
            time.sleep(0.02)
            at[0] = QUESTION_S + 1 if (tmp_path / "ready").exists() else 0.0
    assert (caught.value.kind, caught.value.transient) == (kind, transient)
    load = commands.load()
    assert load.requests == {("properties", kind): 1} and set(load.breakers.values()) == {BreakerState.CLOSED}


@pytest.mark.real
def test_a_question_about_properties_limits_the_statement_and_is_not_sent_to_an_oar_that_is_away() -> None:
    commands = OarCommands(5.0, ("/bin/sh", "-c", 'echo "$PGOPTIONS"'))
    question = commands.ask_for_nodes("x", time.monotonic)
    assert question is not None
    while (text := question.poll()) is None:
        time.sleep(0.02)
    assert text.split() == ["-c", "statement_timeout=1000", "-c", "default_transaction_read_only=on"]
    away = OarCommands(5.0, ("/bin/sh", "-c", "exit 9"))
    for _ in range(3):
        with pytest.raises(AdapterError):
            away.oar("nodes", ["oarnodes"])
    assert away.ask_for_nodes("x", time.monotonic) is None


@pytest.fixture
def adapter(tmp_path: Path) -> OarAdapter:
    """The adapter on a recorded answer, with no OAR behind it; its commands print the nodes of a property."""
    nodes = '{"1": {"network_address": "node2"}}'
    commands = OarCommands(5.0, ("/bin/sh", "-c", f"echo '{nodes}'"))
    reader = Database(lambda argv, environment: answer(job(5), job(6, properties="x = 1")), "dbname=oar", None, 5.0)
    file = PlacementFile(tmp_path / "placements", ["queue pilot"], 600.0)
    return OarAdapter(
        CLUSTER, reader, commands, OarSelection(frozenset({"pilot"})), file, server=("127.0.0.1", 9), user="pilot"
    )


@pytest.mark.real
def test_a_preview_says_what_would_be_done_and_does_nothing(adapter: OarAdapter, tmp_path: Path) -> None:
    assert adapter.snapshot().jobs.by_key["oar/5"].waits == UNEVALUATED
    adapter.settle(20.0)
    views = adapter.snapshot().jobs.by_key
    users_job = views["oar/5"].job
    assert users_job.allowed == {"node2"}
    assert adapter.preview(Place("oar/5", users_job, ("node2",))) == [f"# {tmp_path}/placements: place 5 node2"]
    assert adapter.preview(Release("oar/5", "x")) == [f"# {tmp_path}/placements: free 5"]
    assert adapter.preview(Place("oar/5", users_job, ("node9",))) == ["# not done: oar/5: there is no node 'node9'"]
    (line,) = adapter.preview(
        Submit("flow/a", users_job.__class__("a", users_job.profile, command=("true",)), ("node1",))
    )
    assert line.startswith("oarsub --name=flow/a -l /nodes=1/core=1")
    assert re.search(r" --stdout=OAR\.flow_a-\w+\.%jobid%\.stdout ", line)  # a name with a slash is no name of a file
    assert not (tmp_path / "placements").exists()


@pytest.mark.real
def test_looking_writes_no_file_and_holding_does(adapter: OarAdapter, tmp_path: Path) -> None:
    adapter.snapshot()
    adapter.refresh(["oar/5"])
    adapter.recall({"oar/5": 0.0})
    assert not (tmp_path / "placements").exists()
    adapter.keep_holding(adapter.snapshot().time + 30)
    assert "keep queue pilot 600\n" in (tmp_path / "placements").read_text()


@pytest.mark.real
def test_jobs_that_are_oars_to_place_are_not_kept(tmp_path: Path) -> None:
    special = [job(7, types=["container"]), job(8, forms=[]), job(9, properties=PROPERTIES)]
    reader = Database(lambda argv, environment: answer(*special), "dbname=oar", None, 5.0)
    pilot = OarSelection(frozenset({"pilot"}))
    nowhere = OarCommands(5.0, ("/bin/sh", "-c", "exit 0"))
    fails = OarCommands(5.0, ("/bin/sh", "-c", "exit 3"))
    for commands, freed, reason in ((fails, {7, 8, 9}, WRONG), (nowhere, {7, 8, 9}, NOWHERE)):
        file = PlacementFile(tmp_path / reason, ["queue pilot"], 1e9)
        adapter = OarAdapter(CLUSTER, reader, commands, pilot, file, server=("127.0.0.1", 9), user="pilot")
        adapter.settle(20.0)
        adapter.keep_holding(adapter.snapshot().time + 30)
        assert set(file.freed) == freed
        (why,) = {view.due_why for view in adapter.snapshot().jobs if view.key == "oar/9"}
        assert why == f"{reason}, so it is left to OAR"
        adapter.close()


@pytest.mark.real
def test_a_job_of_ours_leaves_the_clock_as_it_is(tmp_path: Path) -> None:
    reads: list[str] = []
    reader = Database(lambda argv, environment: reads.append("") or answer(job(5)), "dbname=oar", None, 5.0)
    file = PlacementFile(tmp_path / "placements", ["queue pilot"], 600.0)
    commands, pilot = OarCommands(5.0, ("/bin/sh", "-c", "echo OAR_JOB_ID=9")), OarSelection(frozenset({"pilot"}))
    server, at = ("127.0.0.1", 9), [100.0]
    adapter = OarAdapter(CLUSTER, reader, commands, pilot, file, server=server, user="pilot", clock=lambda: at[0])
    now = adapter.snapshot().time
    adapter.refresh(["flow/a"])
    assert len(reads) == 1  # of just now
    at[0] += 0.5  # time enough for a user to change a job
    adapter.refresh(["flow/a"])
    assert len(reads) == 2
    adapter.apply(Submit("flow/a", Job("a", DEFAULT_PROFILE, command=("true",)), ("node1",)))
    adapter.keep_holding(now + 30)
    assert re.search(r"^place 9 \d+ node1$", file.path.read_text(), re.M)  # though the last read does not show it
    assert 0.0 < adapter.timer_s() < 2.0
    before = len(reads)
    adapter.refresh(["flow/a"])
    assert len(reads) == before + 1  # it was submitted since
