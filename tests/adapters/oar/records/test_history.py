"""Delays and odd ends of OAR's jobs, each counted once; disabled queues; what OAR's own configuration says."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from pilotfish.adapters.oar.adapter import OarAdapter
from pilotfish.adapters.oar.commands import OarCommands
from pilotfish.adapters.oar.job_views import OarSelection
from pilotfish.adapters.oar.records.history import ASSUMED_S, OarHistory
from pilotfish.adapters.oar.records.world import Database, OarQueue, OarState
from pilotfish.adapters.oar.site_config import site_config
from pilotfish.adapters.oar.submission import done_link
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from tests.support.oar_records import NOW, answer, job, world

RAN = {"state": "Terminated", "exit": 0, "decided": 1000, "began": 1003, "stop": 1010, "ended": 1014}


def test_each_delay_is_counted_once_and_the_usual_launch_is_the_median() -> None:
    history = OarHistory()
    for _ in range(2):
        history.note(world(job(1, **RAN), job(2, **RAN | {"began": 1001}), job(3)))
    assert history.delays == {"launch": (2, 4.0), "release": (2, 8.0)} and history.launch_s == ASSUMED_S
    history.note(world(job(4, **RAN | {"began": 1009, "ended": None, "state": "Running"})))
    assert history.delays["launch"] == (3, 13.0) and history.launch_s == 3.0


@pytest.mark.parametrize(
    ("said", "unknown"),
    [
        ({"message": "Job will never run (expire=2027-01-01 00:00:00), setting it to error"}, 0),
        ({"events": [["EXIT_VALUE_OAREXEC", "x"]]}, 0),
        ({"events": [["FRAG_JOB_REQUEST", "x"]]}, 0),
        ({"events": [["SOMETHING_NEW", "x"]]}, 1),
        ({}, 1),
    ],
)
def test_an_end_that_oar_does_not_explain_is_counted_once(said: dict[str, object], unknown: int) -> None:
    history, state = OarHistory(), world(job(5, state="Error", **said))
    odd = [history.note(state), history.note(state)]
    assert odd == [["OAR does not say how job 5 ended"] * unknown, []] and history.unknown_ends == unknown


def test_a_launch_that_failed_is_reported_once() -> None:
    events = [["PING_CHECKER_NODE_SUSPECTED", "node1 is bad"], ["RESUBMIT_JOB_AUTOMATICALLY", "as 6"]]
    history, state = OarHistory(), world(job(5, state="Error", events=events), job(6, first=5))
    why = "OAR could not launch job 5, and submits it again: PING_CHECKER_NODE_SUSPECTED: node1 is bad"
    assert [history.note(state), history.note(state)] == [[why], []] and history.unknown_ends == 0


def test_a_clock_that_is_not_oars_is_reported_when_it_goes_wrong_and_right(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    reader = Database(lambda argv, environment: answer(), "dbname=oar", None, 5.0)
    adapter = OarAdapter(Cluster("pilot", ()), reader, OarCommands(5.0), OarSelection(), None, server=("", 9), user="u")
    for ahead_s in (0, 3600, 3601, -40, 1):
        monkeypatch.setattr("time.time", lambda ahead_s=ahead_s: NOW + ahead_s)
        adapter.snapshot()
    assert [record.getMessage() for record in caplog.records] == [
        "this machine's clock is 3600 s ahead of OAR's: OAR may place jobs without us until they agree",
        "this machine's clock is 40 s behind OAR's: OAR may place jobs without us until they agree",
        "this machine's clock agrees with OAR's again",
    ]


def test_what_is_remembered_of_jobs_is_bounded() -> None:
    history = OarHistory()
    for first in range(0, 6000, 500):
        history.note(world(*(job(number, **RAN) for number in range(first, first + 500))))
    assert max(map(len, history._counted_ids.values())) <= 2 * 500 + 1000 + 500
    assert history.delays["launch"][0] == 6000


def test_a_disabled_queue_of_ours_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    shut = replace(world(), queues=dict.fromkeys(("pilot", "default"), OarQueue("notActive", "x", 5)))
    assert OarSelection(frozenset({"pilot"})).closed(shut) == ("pilot",)
    assert OarSelection(projects=frozenset({"p"})).closed(shut) == ()
    state = replace(world(job(queue="default", project="p")), queues=shut.queues)
    assert OarSelection(projects=frozenset({"p"})).closed(state) == ("default",)
    nodes = Cluster("pilot", tuple(Node(f"node{n}", NodeType("t", 2, 1e9, 1e9)) for n in range(1, 5)))
    reader = Closing(lambda argv, environment: answer(), "dbname=oar", None, 5.0)
    adapter = OarAdapter(
        nodes, reader, OarCommands(5.0), OarSelection(frozenset({"pilot"})), None, server=("127.0.0.1", 9), user="u"
    )
    with caplog.at_level(logging.ERROR, "pilotfish.adapters"):
        for reader.shut in (True, True, False):
            adapter.snapshot()
            assert adapter.load().closed == (("pilot",) if reader.shut else ())
    (message,) = [record.getMessage() for record in caplog.records]
    assert message == "queue pilot is disabled in OAR: none of its jobs starts (oarnotify -e pilot enables it)"


class Closing(Database):
    """OAR with its queue `pilot` disabled or not."""

    shut = True

    def world(self) -> OarState:
        return replace(super().world(), queues={"pilot": OarQueue("notActive" if self.shut else "Active", "x", 5)})


def test_oars_configuration_is_read_without_a_shell(tmp_path: Path) -> None:
    path = tmp_path / "oar.conf"
    path.write_text(
        '# DB_HOSTNAME="no"\nDB_TYPE="Pg"\nDB_HOSTNAME="db.example"\n DB_PORT = 5433 # here\n'
        "DB_BASE_NAME='o a\\'r'\nDB_BASE_PASSWD_RO=\"p $(id) w\"\n"
    )
    config = site_config(path)
    assert config.connection == r"host=db.example port=5433 dbname='o a\\' user=oar_ro"
    assert (config.kind, config.password) == ("Pg", "p $(id) w")
    path.write_text("")
    assert site_config(path).connection == "host=localhost port=5432 dbname=oar user=oar_ro"


def test_the_link_of_a_job_goes_with_it_also_after_a_restart(tmp_path: Path) -> None:
    reader = Database(lambda argv, environment: answer(), "dbname=oar", None, 5.0)
    adapter = OarAdapter(
        Cluster("pilot", ()),
        reader,
        OarCommands(5.0),
        OarSelection(),
        None,
        server=("", 9),
        user="u",
        output_dir=tmp_path,
    )
    for key in ("flow/a", "flow/b"):
        done_link(tmp_path, key).symlink_to("done")
    adapter.forget("flow/a")
    assert [path.name for path in tmp_path.iterdir()] == [done_link(tmp_path, "flow/b").name]
