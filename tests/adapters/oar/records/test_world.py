"""Answers of OAR's database: read in full, or an error; requests as nodes and cores, or why not; states and ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.adapters.base import AdapterError, ParseError
from pilotfish.adapters.oar.job_views import OarSelection, Ours, node_states, state_of, views
from pilotfish.adapters.oar.placement_file import Placement
from pilotfish.adapters.oar.records.properties import LATE, AllowedNodes
from pilotfish.adapters.oar.records.requests import OarResources, left_to_oar, request_of
from pilotfish.adapters.oar.records.world import COMMAND, Database, psql, world_in
from pilotfish.adapters.oar.submission import command, key_in, name_of
from pilotfish.profiles.identity import signature
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Job
from pilotfish.simulate.model.snapshot import JobState, JobView, NodeState
from tests.support.oar_records import NOW, ORDINARY, answer, job, world

CLUSTER = Cluster("pilot", tuple(Node(f"node{n}", NodeType("t", 2, 1e9, 1e9)) for n in range(1, 5)))
PILOT = OarSelection(frozenset({"pilot"}))


def test_an_answer_that_is_cut_short_anywhere_is_an_error() -> None:
    complete = answer(job(types=["besteffort"], events=[["WALLTIME", "x"]], on=[1, 2]))
    assert len(world_in(complete).jobs) == 1
    for length in range(len(complete)):
        with pytest.raises(ParseError):
            world_in(complete[:length])


@pytest.mark.parametrize(
    "damage", [{"forms": [[60]]}, {"id": "x"}, {"events": [["a"]]}, {"forms": None}, {"on": ["a"]}]
)
def test_a_job_that_cannot_be_read_is_an_error_and_not_left_out(damage: dict[str, Any]) -> None:
    with pytest.raises(ParseError, match="cannot be read"):
        world(job(1), job(2, **damage))


@pytest.mark.parametrize("planned", [{"x": [1, None]}, {"5": [None, None]}, {"5": 1}, {"5": [1, ["a"]]}, []])
def test_a_plan_of_oars_that_cannot_be_read_is_an_error(planned: Any) -> None:
    assert world(job(), planned={"5": [7, [1, 2]]}).planned == {5: (7.0, (1, 2))}
    with pytest.raises(ParseError, match="cannot be read"):
        world(job(), planned=planned or [1])


def test_a_users_text_comes_back_as_it_was_written() -> None:
    (parsed,) = world(job(name="Ã© x", properties="a = '中'")).jobs
    assert (parsed.name, parsed.properties) == ("é x", "a = '中'")


def test_a_name_that_is_none_of_ours_is_never_part_of_a_statement() -> None:
    reader = Database(lambda argv, environment: answer(), "dbname=oar", None, 5.0)
    with pytest.raises(AdapterError, match="name of a job of ours"):
        reader.find(names={"a\nb": "u"})
    statements: list[str] = []
    reader = Database(lambda argv, environment: statements.append(argv[-1]) or answer(), "dbname=oar", None, 5.0)
    reader.find(names={"a'b": "u"})
    assert "j.job_name = 'a''b' and j.job_user = 'u'" in statements[0]


def test_the_newest_psql_is_run_without_the_script_that_looks_for_it(tmp_path: Path) -> None:
    assert psql(tmp_path) == "psql"
    for version in ("9.6", "15", "14"):
        (tmp_path / version / "bin").mkdir(parents=True)
        (tmp_path / version / "bin" / "psql").touch()
    (tmp_path / "common").mkdir()
    assert psql(tmp_path) == str(tmp_path / "15" / "bin" / "psql")


def form(*levels: tuple[str, int], where: str = ORDINARY) -> list[Any]:
    return [[60, [[where, [list(level) for level in levels]]]]]


@pytest.mark.parametrize(
    ("forms", "nodes", "cores"),
    [
        (form(("core", 1)), 1, 1),
        (form(("core", 2)), 1, 2),
        (form(("resource_id", 1)), 1, 1),
        (form(("network_address", 2), ("core", 2)), 2, 2),
        (form(("network_address", 3)), 3, 2),
        (form(("host", 1), ("cpu", 2), ("core", 1)), 1, 2),
    ],
)
def test_an_exact_request_is_placed(forms: list[Any], nodes: int, cores: int) -> None:
    state = world(job(forms=forms))
    assert request_of(state.jobs[0], OarResources(state.resources)) == (nodes, cores, "")


@pytest.mark.parametrize(
    ("forms", "why"),
    [
        (form(("core", 4)), "more than a node has"),
        (form(("switch", 1), ("core", 1)), "asks for switch"),
        (form(("cpu", 1), ("network_address", 1)), "nodes within something else"),
        (form(("cpu", 1)), "depends on the nodes"),
        (form(("core", -1)), "all or the best"),
        (form(("core", 1), where=f"(mem > 3) AND {ORDINARY}"), "properties of a group"),
        ([*form(("core", 1)), *form(("core", 2))], "moldable"),
        ([[60, [[ORDINARY, [["core", 1]]], [ORDINARY, [["core", 1]]]]]], "several groups"),
        ([], "moldable"),
    ],
)
def test_any_other_request_is_left_to_oar_with_a_reason(forms: list[Any], why: str) -> None:
    state = world(job(forms=forms))
    assert why in request_of(state.jobs[0], OarResources(state.resources))[2]


@pytest.mark.parametrize(
    ("job_", "why"),
    [
        (job(kind="INTERACTIVE"), "interactive"),
        (job(reservation="toSchedule"), "reservation"),
        (job(types=["idempotent", "container"]), "type container"),
        (job(types=["timesharing=*,*"]), "type timesharing"),
        (job(types=["inner=12"]), "type inner"),
        (job(types=["something new"]), "type something new"),
        (job(types=["besteffort"]), "besteffort"),
        (job(types=["idempotent", "expire=2027-01-01 00:00:00"]), ""),
    ],
)
def test_special_jobs_are_left_to_oar(job_: dict[str, Any], why: str) -> None:
    reason = left_to_oar(world(job_).jobs[0])
    assert why in reason if why else not reason


@pytest.mark.parametrize(
    ("said", "state", "words"),
    [
        ({"state": "Terminated", "exit": 0}, JobState.COMPLETED, ""),
        ({"state": "Terminated", "exit": 768}, JobState.FAILED, ""),
        ({"state": "Terminated", "exit": 9}, JobState.FAILED, ""),
        ({"state": "Error", "events": [["FRAG_JOB_REQUEST", ""], ["WALLTIME", ""]]}, JobState.TIMEOUT, ""),
        (
            {"state": "Error", "events": [["FRAG_JOB_REQUEST", ""], ["BESTEFFORT_KILL", ""]]},
            JobState.CANCELLED,
            "another",
        ),
        ({"state": "Error", "events": [["FRAG_JOB_REQUEST", "x"]]}, JobState.CANCELLED, ""),
        ({"state": "Error", "events": [["WORKING_DIRECTORY", "no /x"]]}, JobState.FAILED, "WORKING_DIRECTORY: no /x"),
        ({"state": "Error", "message": "Job will never run"}, JobState.FAILED, "never run"),
        ({"state": "Error", "events": [["RESUBMIT_JOB_AUTOMATICALLY", ""]]}, JobState.UNKNOWN, "again"),
        ({"state": "Waiting", "holding": True}, JobState.PENDING, ""),
        ({"state": "toLaunch"}, JobState.CONFIGURING, ""),
        ({"state": "Finishing"}, JobState.RUNNING, ""),
        ({"state": "Suspended"}, JobState.SUSPENDED, ""),
        ({"state": "toError"}, JobState.UNKNOWN, "toError"),
        ({"state": "Levitating"}, JobState.UNKNOWN, "Levitating"),
    ],
)
def test_states_and_ends(said: dict[str, Any], state: JobState, words: str) -> None:
    job_state, reason = state_of(world(job(**said)).jobs[0])
    assert job_state is state
    assert words in reason if words else not reason


EVERYWHERE = AllowedNodes(frozenset(CLUSTER.index), frozenset(CLUSTER.index))


def seen(
    *jobs: dict[str, Any], freed: frozenset[int] = frozenset(), placed: dict[int, Placement] | None = None
) -> list[JobView]:
    """The views of jobs, the user of the daemon being `pilot`."""
    if placed is None:
        placed = {}
    own_jobs = Ours("pilot", {}, placed, freed, 600.0, 0.0, lambda properties: EVERYWHERE, lambda user: 7)
    state = world(*jobs)
    return list(views(state, OarResources(state.resources), PILOT, own_jobs))


CHANGES = st.sampled_from([
    {}, {"state": "Running", "on": [1], "began": 1795471950}, {"state": "Terminated", "exit": 0}, {"holding": True},
    {"queue": "default"}, {"properties": "x = 1"}, {"properties": "not asked"}, {"after": [2]}, {"message": "Kept"},
])  # fmt: skip


@given(st.lists(st.tuples(st.lists(CHANGES, min_size=3, max_size=3), st.booleans(), st.booleans()), max_size=6))
def test_views_that_are_kept_are_those_that_would_be_made(steps: list[tuple[list[dict[str, Any]], bool, bool]]) -> None:
    answers, last_views = [""], {}
    reader = Database(lambda argv, environment: answers[0], "dbname=oar", None, 5.0)
    machine = OarResources(world().resources)
    for number, (changes, free, place) in enumerate(steps):
        answers[0] = answer(*(job(position + 1, **change) for position, change in enumerate(changes)))
        placed = {1: Placement(("node3",), NOW, NOW + 60)} if place else {}
        one_node = frozenset({f"node{number % 2}"})
        allows = {"not asked": None, "x = 1": AllowedNodes(one_node, one_node, LATE if number % 3 == 0 else "")}
        own_jobs = Ours(
            "pilot", {}, placed, frozenset({3} if free else ()), 600.0, 0.0,
            lambda properties, allows=allows: allows.get(properties, EVERYWHERE), lambda user: 7,
        )  # fmt: skip
        first_views = views(reader.world(), machine, PILOT, own_jobs, last_views)
        assert first_views == views(world_in(answers[0]), machine, PILOT, own_jobs)
        second_views = views(reader.world(), machine, PILOT, own_jobs, last_views)
        assert all(first is second for first, second in zip(first_views, second_views, strict=True))
        reader.find([1])


def test_a_chain_is_one_job_under_its_first_id() -> None:
    resubmission = [["RESUBMIT_JOB_AUTOMATICALLY", ""]]
    old = job(5, state="Error", events=resubmission)
    (view,) = seen(old, job(6, first=5, state="Running", began=1795471950, on=[3]))
    assert (view.key, view.state, view.nodes) == ("oar/5", JobState.RUNNING, ("node2",))
    (view,) = seen(old, job(6, first=5))
    assert (view.state, view.offered, view.restartable) == (JobState.PENDING, False, False)
    assert "again" in view.due_why


def test_what_may_be_placed_is_offered_until_its_hold_ends() -> None:
    (view,) = seen(job())
    assert (view.offered, view.restartable, view.waits, view.due) == (True, True, "", 1795471944 + 600)
    assert (view.job.nodes, view.job.profile.threads, view.job.walltime, view.job.owner) == (1, 1, 60.0, 7)
    for changes in ({"queue": "default"}, {"types": ["deploy"]}, {"state": "Running", "on": [1]}):
        assert not seen(job(**changes))[0].offered
    assert not seen(job(), freed=frozenset({5}))[0].offered
    assert seen(job(after=[3]))[0].waits == "it depends on 3"
    assert seen(job(holding=True))[0].waits == "its user holds it"


def test_a_placed_job_is_pinned_until_it_starts() -> None:
    placed = {5: Placement(("node3",), NOW - 3, NOW + 60)}
    (view,) = seen(job(), placed=placed)
    assert (view.nodes, view.pinned_since, view.offered, view.restartable) == (("node3",), NOW - 3, True, False)
    (view,) = seen(job(state="Launching", on=[1]), placed=placed)
    assert (view.nodes, view.pinned_since) == (("node1",), None)


def test_jobs_of_others_that_have_ended_are_not_shown() -> None:
    assert not seen(job(queue="default", state="Terminated", exit=0))
    assert seen(job(state="Terminated", exit=0, began=1795471950, stop=1795471960))[0].finish_time == 1795471960


@pytest.mark.parametrize("key", ["flow/a", "..", "a b\n\"c'; rm -rf /", "é/ß%2F", "x" * 300, "-rf *", ";"])
def test_any_key_comes_back_and_only_from_our_own_user(key: str) -> None:
    argv = command(key, Job("a", DEFAULT_PROFILE, command=("true",)), [], None, [], None)
    name = name_of(key)
    assert len(name) <= 100 and name.isascii() and name.isprintable() and not set("'\"\\ ") & set(name)
    assert key_in(argv[-1], name) == key
    assert [view.key for view in seen(job(command=argv[-1], name=name, user="pilot"))] == [key]
    assert [view.key for view in seen(job(command=argv[-1], name=name))] == ["oar/5"]
    assert [view.key for view in seen(job(command=argv[-1], name="other", user="pilot"))] == ["oar/5"]


def test_jobs_without_a_name_are_known_by_their_command() -> None:
    """Most jobs of OAR have no name."""

    def kind(**changes: object) -> str | None:
        (view,) = seen(job(**changes))
        return signature(view.job)

    first, second = kind(name="", command="/home/ada/run.sh 100"), kind(name="", command="/home/ada/run.sh 200")
    assert (
        first and first.startswith("job: run.sh #") and first == kind(name="", command="/home/ada/run.sh 100") != second
    )
    kinds = kind(name="align", command="./x"), kind(name="align", command="./y"), kind(name="align", command="")
    assert all(kind_name and kind_name.startswith("job: align") for kind_name in kinds) and len(set(kinds)) == 3
    assert kind(name="", command="") is None, "an interactive job"
    assert kind(name="", command="x" * COMMAND) is None, "OAR's answer was cut"
    own_command = command("w.a1b2c3/align", Job("a", DEFAULT_PROFILE, command=("true",)), [], None, [], None)[-1]
    assert "#" not in (kind(name=name_of("w.a1b2c3/align"), command=own_command) or "#"), "its key is another each time"


AHEAD = command("flow/b", Job("b", DEFAULT_PROFILE, command=("true",)), ["-a", "4"], None, [Path("/x/.a.done")], None)


def test_a_job_of_ours_waits_for_us_while_the_shim_keeps_it() -> None:
    fields = {"command": AHEAD[-1], "name": "flow/b", "user": "pilot"}
    (view,) = seen(job(**fields, after=[4]))
    assert (view.key, view.state, view.restartable, view.ahead, view.nodes) == (
        "flow/b",
        JobState.PENDING,
        True,
        True,
        (),
    )
    placed = {5: Placement(("node3",), NOW - 3, NOW + 60)}
    (view,) = seen(job(**fields), placed=placed)
    assert (view.nodes, view.restartable, view.ahead) == (("node3",), False, False)
    for changes in ({"submitted": NOW - 601}, {"queue": "default"}, {"first": 3}, {"state": "toLaunch"}):
        (view,) = seen(job(**fields | changes))
        assert not view.restartable and not view.ahead
    assert not seen(job(**fields), freed=frozenset({5}))[0].ahead


def test_a_job_that_found_no_completed_predecessor_has_not_run() -> None:
    ended = {"state": "Terminated", "began": NOW - 9, "stop": NOW - 8, "on": [1], "name": "flow/b", "user": "pilot"}
    (view,) = seen(job(command=AHEAD[-1], exit=121 << 8, **ended))
    assert (view.state, view.restartable, view.ahead, view.nodes, view.start_time) == (
        JobState.PENDING, True, False, (), None,
    )  # fmt: skip
    assert "had not completed" in view.reason
    (view,) = seen(job(command=AHEAD[-1], exit=120 << 8, **ended))
    assert (view.state, view.exit_code) == (JobState.FAILED, 120)
    plain = command("flow/b", Job("b", DEFAULT_PROFILE, command=("true",)), [], None, [], None)
    (view,) = seen(job(command=plain[-1], exit=121 << 8, **ended))
    assert (view.state, view.exit_code) == (JobState.FAILED, 121)


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        (["-q", "pilot"], True), (["-qpilot"], True), (["--queue=pilot"], True), (["--project", "grid"], True),
        ([], False), (["-q", "default"], False),
    ],
)  # fmt: skip
def test_whether_jobs_of_ours_are_kept(options: list[str], kept: bool) -> None:
    assert OarSelection(frozenset({"pilot"}), frozenset({"grid"})).keeps(options) is kept


def test_a_node_is_as_bad_as_its_worst_resource() -> None:
    far, near = 2147483647, NOW + 60
    rows = [
        [1, "node1", "Alive", "NO", far, "1"], [2, "node1", "Suspected", "NO", far, "2"],
        [3, "node2", "Alive", "YES", far, "3"], [4, "node3", "Absent", "NO", near, "4"],
    ]  # fmt: skip
    states = node_states(CLUSTER, OarResources(world(resources=rows).resources), NOW)
    assert states == (NodeState.UNKNOWN, NodeState.DRAINED, NodeState.ASLEEP, NodeState.DOWN)
