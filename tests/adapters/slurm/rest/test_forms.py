"""Answers of slurmrestd in all its versions: read whole, or an error that names the fault; never fewer jobs.

v0.0.36 to v0.0.38 are recorded from Slurm 22.05 (slurm_rest/recorded.json); v0.0.39 to v0.0.44 are written from their
documentation, because no such server was at hand.
"""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.adapters.base import AdapterError, ParseError
from pilotfish.adapters.slurm.rest import errors, forms
from pilotfish.adapters.slurm.rest.errors import NotDone, Unauthorised, Unchanged
from pilotfish.adapters.slurm.rest.versions import READABLE, choose
from pilotfish.adapters.slurm.transport import squeue
from pilotfish.adapters.slurm.transport.parsing import SEPARATOR
from pilotfish.adapters.slurm.transport.rows import Unreadable
from pilotfish.simulate.model.snapshot import JobState, NodeState

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "recorded.json").read_text())
NEWEST = RECORDED["v0.0.38"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
NEEDED = sorted(forms.NEEDED)


def number(value: float | None, *, infinite: bool = False) -> dict[str, Any]:
    """Return a number as written since 23.02."""
    return {"set": value is not None, "infinite": infinite, "number": value or 0}


def documented(version: int, **changed: Any) -> dict[str, Any]:
    """Return a pending job of v0.0.39 or later."""
    when = (lambda value: value) if version == 39 else number
    job: dict[str, Any] = {
        "job_id": 309, "job_state": "PENDING" if version == 39 else ["PENDING"], "state_reason": "BeginTime",
        "state_description": "", "array_job_id": number(0), "het_job_id": number(0), "name": "wrap", "user_id": 5,
        "account": "research", "qos": "normal", "partition": "shared", "node_count": number(1), "cpus": number(2),
        "time_limit": number(10), "submit_time": when(1795232010), "eligible_time": when(1795232310),
        "start_time": when(1795232310), "end_time": when(0), "deadline": when(0), "nodes": "",
        "required_nodes": "n[2-3]", "excluded_nodes": "n1", "dependency": "", "features": "", "resv_name": "",
        "shared": ["oversubscribe"], "priority": number(26187), "restart_cnt": 0,
        "exit_code": {"status": "SUCCESS", "return_code": 0} if version == 39 else
        {"status": ["SUCCESS"], "return_code": number(0), "signal": {"id": number(None), "name": ""}},
        "comment": "pilotfish", "tres_req_str": "cpu=2,mem=512M,node=1,billing=2",
        "tres_alloc_str": "", "memory_per_node": number(None), "memory_per_cpu": number(256), "tasks": number(1),
        "cpus_per_task": number(2), "tasks_per_node": number(0), "minimum_cpus_per_node": number(2), "licenses": "",
        "tres_per_node": "", "tres_per_job": "", "tres_per_socket": "", "tres_per_task": "", "contiguous": False,
        "core_spec": 0, "thread_spec": 32766, "minimum_tmp_disk_per_node": number(0), "tasks_per_socket": number(None),
        "tasks_per_core": number(None), "sockets_per_node": number(None), "cores_per_socket": number(None),
        "threads_per_core": number(None), "cluster_features": "", "scheduled_nodes": "", "required_switches": 0,
        "prefer": "", "max_nodes": number(0), "time_minimum": number(0), "burst_buffer": "",
    }  # fmt: skip
    return job | changed


def test_the_recorded_versions_agree_on_every_job() -> None:
    read = {version: forms.jobs(answer) for version, answer in RECORDED.items()}
    assert read["v0.0.36"] == read["v0.0.37"] == read["v0.0.38"]
    jobs = {job.id: job for job in read["v0.0.38"]}
    assert [jobs[id].part for id in (4, 13, 16, 17, 18, 20)] == [False, True, True, False, False, False]
    running, held_job, cancelled = jobs[17], jobs[20], jobs[4]
    assert (running.state, running.placed, running.features) == (JobState.RUNNING, ("n8",), "virt&virt")
    assert (running.shares, running.qos, running.time_limit, running.memory) == ("USER", "high", 600.0, 128 * 2**20)
    assert (held_job.state, held_job.reason, held_job.unwanted) == (JobState.PENDING, "BeginTime", ("n1", "n2"))
    assert held_job.begin == 1795504555.0 and held_job.submit == 1795245355.0 and held_job.deadline is None
    assert (cancelled.state, cancelled.wanted, cancelled.begin, cancelled.priority) == (
        JobState.CANCELLED,
        ("n1", "n2"),
        None,
        0,
    )
    assert jobs[18].memory == 4 * 2**30 and jobs[18].exit_code == 0 and jobs[18].signal is None


@pytest.mark.parametrize("version", ["v0.0.37", "v0.0.38"])
def test_the_recorded_nodes(version: str) -> None:
    nodes = {node.name: node for node in forms.nodes(RECORDED[version])}
    assert [nodes[name].state for name in ("n1", "n7", "n8")] == [NodeState.UP, NodeState.DOWN, NodeState.DRAINED]
    assert (nodes["n8"].reason, nodes["n1"].reason) == ("maintenance", "")
    assert (nodes["n1"].cpus, nodes["n1"].memory, nodes["n1"].features) == (4, 4 * 2.0**30, {"virt"})
    assert nodes["n1"].partitions == {"main", "half", "shared", "short"}


def test_slurm_22_05_does_not_show_all_of_a_job() -> None:
    assert not forms.shows_all(NEWEST) and forms.shows_all({"jobs": [documented(44)]})
    for key in forms.SINCE_23_02:
        assert not forms.shows_all({"jobs": [documented(44), documented(44) | {"job_id": 1}, _less(key)]})


def test_squeue_shows_the_fields_that_rest_hides() -> None:
    mark = "@00ff@"
    unset = ("0:00", "(null)")
    lines = [
        *(("309", "n[1-2]", "0", "(null)", *unset), ("310", "(null)", "1", "(null)", *unset)),
        *(("311", "", "0", "ssd", *unset), ("312", "", "0", "", "5:00", "(null)"), ("313", "", "0", "", "0:00", "x=1")),
    ]
    text = "".join(f"{SEPARATOR.join(line)}{mark}\n" for line in lines)
    records = {job.id: job for job in squeue.hidden().parse(text, mark)}
    assert (records[309].planned, records[309].special) == (("n1", "n2"), "")
    assert (records[310].planned, records[310].special) == ((), "a number of switches")
    assert (records[312].special, records[313].special) == ("a minimum time limit", "a burst buffer")
    assert records[311].special == "preferred features" and squeue.hidden().parse("", mark) == []
    with pytest.raises(ParseError):
        squeue.hidden().parse(text[:-3], mark)
    assert [job.id for job in squeue.hidden().parse(text.replace("309", "x"), mark)] == [310, 311, 312, 313]
    first, *_ = squeue.hidden().parse(text.replace("n[1-2]", "n[1-"), mark)
    assert (first.id, first.state) == (309, JobState.UNKNOWN)


def _less(key: str) -> dict[str, Any]:
    return {name: value for name, value in documented(44).items() if name != key}


def test_nodes_without_a_drained_flag_are_refused() -> None:
    with pytest.raises(ParseError, match="node n1: it lacks"):
        forms.nodes(RECORDED["v0.0.36"])


@pytest.mark.parametrize("version", range(39, 45))
def test_a_job_as_documented_for(version: int) -> None:
    (job,) = forms.jobs({"jobs": [documented(version)]})
    assert (job.id, job.state, job.reason, job.uid, job.part) == (309, JobState.PENDING, "BeginTime", 5, False)
    assert (job.nodes, job.cpus, job.memory, job.time_limit) == (1, 2, 512 * 2**20, 600.0)
    assert (job.begin, job.submit, job.deadline, job.end) == (1795232310.0, 1795232010.0, None, None)
    assert (job.wanted, job.unwanted, job.placed, job.shares) == (("n2", "n3"), ("n1",), (), "YES")
    assert (job.exit_code, job.signal, job.priority) == (0, None, 26187)


@pytest.mark.parametrize(
    ("changed", "field", "value"),
    [
        ({"job_state": ["RUNNING", "CONFIGURING"]}, "state", JobState.CONFIGURING),
        ({"job_state": ["COMPLETED", "COMPLETING"]}, "state", JobState.RUNNING),
        ({"job_state": ["CANCELLED"]}, "state", JobState.CANCELLED),
        ({"job_state": ["PENDING", "REQUEUED"]}, "state", JobState.PENDING),
        ({"job_state": ["RUNNING", "POWER_UP_NODE"]}, "state", JobState.CONFIGURING),
        ({"job_state": ["NEVER_SEEN"]}, "state", JobState.UNKNOWN),
        ({"job_state": []}, "state", JobState.UNKNOWN),
        ({"time_limit": number(None)}, "time_limit", None),
        ({"time_limit": number(7, infinite=True)}, "time_limit", None),
        ({"time_limit": 4294967295}, "time_limit", None),
        ({"time_limit": None}, "time_limit", None),
        ({"eligible_time": number(0)}, "begin", None),
        ({"priority": number(0)}, "priority", 0),
        ({"priority": number(None)}, "priority", 1),
        ({"array_job_id": number(300)}, "part", True),
        ({"array_job_id": number(300)}, "array", 300),
        ({"array_job_id": number(300), "array_task_string": "0-9%2"}, "tasks", 10),
        ({"array_job_id": number(300), "array_task_string": "1,3,5..."}, "tasks", 0),
        ({"het_job_id": number(300)}, "tasks", 0),
        ({"het_job_id": number(300)}, "part", True),
        ({"nodes": "n[1-2],n5"}, "placed", ("n1", "n2", "n5")),
        ({"required_nodes": ["n2", "n3"]}, "wanted", ("n2", "n3")),
        ({"required_nodes": None}, "wanted", ()),
        ({"tres_req_str": "", "memory_per_node": number(1024)}, "memory", 2.0**30),
        ({"tres_req_str": ""}, "memory", 2 * 256 * 2.0**20),
        ({"tres_alloc_str": "cpu=4,mem=2G", "node_count": number(2)}, "memory", 2.0**30),
        ({"tres_req_str": "cpu=2,mem=512M,node=1"}, "tres", (("cpu", 2.0), ("mem", 512.0), ("node", 1.0))),
        ({"tasks": number(4), "node_count": number(2)}, "threads", 4),
        ({"tasks": number(4), "job_state": ["RUNNING"]}, "threads", 2),
        ({"job_state": ["PENDING"], "scheduled_nodes": "n[1-2]"}, "planned", ("n1", "n2")),
        ({"job_state": ["CANCELLED"], "scheduled_nodes": "n[1-2]"}, "planned", ()),
        ({}, "special", ""),
        ({"licenses": "matlab:1"}, "special", "licenses"),
        ({"tres_per_node": "gres/gpu:2"}, "special", "generic resources"),
        ({"contiguous": True}, "special", "contiguous nodes"),
        ({"thread_spec": 1}, "special", "specialised cores"),
        ({"required_switches": 1}, "special", "a number of switches"),
        ({"threads_per_core": number(2)}, "special", "threads for each core"),
        ({"threads_per_core": number(1)}, "special", ""),
        ({"threads_per_core": number(1)}, "own_core", "cpu"),
        ({"tasks_per_core": number(1)}, "own_core", "task"),
        ({"memory_per_cpu": number(512)}, "memory_per_cpu", 2.0**29),
        ({"prefer": "ssd"}, "special", "preferred features"),
        ({"max_nodes": number(2)}, "special", "a range of nodes"),
        ({"max_nodes": 1}, "special", ""),
        ({"max_nodes": 2, "node_count": 2, "tres_req_str": "cpu=2,node=2"}, "special", ""),
        ({"max_nodes": 3, "node_count": 3, "tres_req_str": "cpu=2,node=2"}, "special", "a range of nodes"),
        ({"tasks": number(2)}, "special", "more tasks than cores"),
        ({"shared": []}, "shares", "OK"),
        ({"shared": ["none"]}, "shares", "NO"),
        ({"state_reason": "None"}, "reason", ""),
        ({"state_description": "no such thing"}, "reason", "no such thing"),
        ({"exit_code": {"return_code": number(3)}}, "exit_code", 3),
        ({"exit_code": {"return_code": 3}}, "exit_code", 3),
        ({"exit_code": {"return_code": number(None), "signal": {"id": number(9)}}}, "signal", 9),
        ({"exit_code": {"return_code": 0, "signal": {"signal_id": 9}}}, "exit_code", None),
        ({"exit_code": 768}, "exit_code", 3),
        ({"exit_code": 15}, "signal", 15),
        ({"comment": "x JobState=RUNNING\n309"}, "comment", "x JobState=RUNNING\n309"),
    ],
)
def test_one_field(changed: dict[str, Any], field: str, value: object) -> None:
    (job,) = forms.jobs({"jobs": [documented(40, **changed)]})
    assert getattr(job, field) == value


@pytest.mark.parametrize(
    "changed",
    [
        {"job_id": "x"}, {"job_id": 0}, {"job_id": None}, {"user_id": None}, {"nodes": "n[1-"}, {"nodes": 7},
        {"time_limit": "soon"}, {"time_limit": True}, {"cpus": {"set": True}}, {"submit_time": "now"},
        {"job_state": [7]}, {"job_state": {"current": "RUNNING"}}, {"node_count": float("nan")},
        {"exit_code": {"return_code": "x"}}, {"exit_code": -(2**70)}, {"required_nodes": {"list": "n1"}},
    ],
)  # fmt: skip
def test_nothing_is_known_of_an_unreadable_job_and_all_of_the_others(changed: dict[str, Any]) -> None:
    report = Unreadable()
    plain = documented(40)
    (first, *unknown, last) = forms.jobs({"jobs": [plain, documented(40, **changed), plain]}, unreadable=report)
    assert first == last == forms.jobs({"jobs": [plain]})[0] and report.now == {"job": 1}
    assert [(job.id, job.state) for job in unknown] == ([] if "job_id" in changed else [(first.id, JobState.UNKNOWN)])
    assert all(job.comment == "" and job.wanted == () for job in unknown)


@pytest.mark.parametrize("key", NEEDED)
@pytest.mark.parametrize("form", [documented(39), documented(44), NEWEST["jobs"][0]], ids=["v39", "v44", "v38"])
def test_a_job_without_a_required_key_is_an_error(form: dict[str, Any], key: str) -> None:
    incomplete = {name: value for name, value in form.items() if name != key}
    with pytest.raises(ParseError, match=f"it lacks '{key}'"):
        forms.jobs({"jobs": [incomplete]})


@pytest.mark.parametrize("version", range(39, 45))
def test_nodes_as_documented_for(version: int) -> None:
    node = {
        "name": "n1", "state": ["IDLE", "DRAIN"], "cpus": 4, "real_memory": 4096, "active_features": ["virt", "ssd"],
        "partitions": ["main"], "reason": "test", "alloc_cpus": 1, "alloc_memory": 1024, "sockets": 1, "cores": 2,
    }  # fmt: skip
    (read,) = forms.nodes({"nodes": [node]})
    assert (read.state, read.features, read.partitions) == (NodeState.DRAINED, {"virt", "ssd"}, {"main"})
    assert (read.idle, read.free, read.core, read.socket) == (0, 3 * 2.0**30, 2, 4)
    assert forms.nodes({"nodes": [node | {"state": ["MIXED"]}]})[0].idle == 3
    for key in node:
        with pytest.raises(ParseError, match=f"it lacks '{key}'"):
            forms.nodes({"nodes": [{name: value for name, value in node.items() if name != key}]})


@pytest.mark.parametrize(
    ("words", "state"),
    [(["IDLE", "CLOUD", "POWERED_DOWN"], NodeState.ASLEEP), (["IDLE", "POWERING_DOWN"], NodeState.DOWN),
     (["ALLOCATED", "POWERING_UP"], NodeState.UP), (["UNKNOWN", "NOT_RESPONDING"], NodeState.UNKNOWN),
     (["DOWN", "NOT_RESPONDING"], NodeState.DOWN), (["MIXED", "INVALID_REG"], NodeState.UNKNOWN)],
)  # fmt: skip
def test_states_of_nodes_as_lists(words: list[str], state: NodeState) -> None:
    node = {
        "name": "n1", "state": words, "cpus": 4, "real_memory": 4096, "active_features": [], "partitions": ["main"],
        "reason": "", "alloc_cpus": 0, "alloc_memory": 0, "sockets": 1, "cores": 4,
    }  # fmt: skip
    assert forms.nodes({"nodes": [node]})[0].state is state


def test_the_time() -> None:
    assert forms.time_of({"statistics": {"req_time": 1795244457}}) == 1795244457
    assert forms.time_of({"statistics": {"req_time": number(1795244457)}}) == 1795244457
    for wrong in ({}, {"statistics": None}, {"statistics": {"req_time": 0}}, {"statistics": {"req_time": [1]}}):
        with pytest.raises(ParseError, match="slurmrestd's answer has no time"):
            forms.time_of(wrong)


def error(**fields: Any) -> bytes:
    return json.dumps({"errors": [fields], "jobs": []}).encode()


@pytest.mark.parametrize(
    ("status", "body", "kind", "transient"),
    [  # as Slurm 22.05 answered, but where another version is named
        (401, b"Authentication failure", "token", True),
        (401, b"<html><title>401 Authorization Required</title></html>", "token", True),
        (500, error(description="slurmctld config is unable to load", error_number=-1), "unreachable", True),
        (500, error(error="Unspecified error", errno=-1), "unreachable", True),
        (200, error(error="Unable to contact slurm controller (connect failure)", errno=1800), "unreachable", True),
        (200, error(error="Protocol authentication error", error_number=1007), "unreachable", True),
        (200, error(error="Unspecified error", error_number=-1, description="Failed while looking for jobs"),
         "unreachable", True),  # so does `squeue --json`, and exits with 0
        (200, error(error="Unable to connect to database", error_number=7000), "unreachable", True),
        (500, error(description="Unable to find JobId=99999", error_number=2017), "gone", False),
        (500, error(error="Invalid node name specified", error_number=2018), "refused", False),
        (500, error(error="Job has already finished", error_code=2084), "refused", False),
        (200, error(description='Unknown key "admin_comment"', source="hsearch_r"), "unsupported", False),
        (200, error(error='Unknown key "admin_comment": No such process', error_code=3), "unsupported", False),
        (200, error(error="Failure during parsing", error_number=9001), "unsupported", False),
        (200, error(error="Unable to read string", error_code=9202), "unsupported", False),
        (404, b"Unable find requested URL. Please view /openapi/v3 for API reference.", "absent", True),
        (502, b"<html>Bad Gateway</html>", "unreachable", True),
        (500, b"", "unreachable", True),
        (500, b'{"errors": []}', "unreachable", True),
        (400, b"Unable to parse query.", "parse", False),
        (200, b"<html>Welcome</html>", "parse", False),
        (200, b"", "parse", False),
        (200, b"[]", "parse", False),
        (200, b'{"errors": {}}', "parse", False),
        (200, b'{"errors": ["no"], "jobs": []}', "refused", False),
        (200, b'{"errors": [], "results": [{"error_code": 2017, "error": "Invalid job id"}]}', "gone", False),  # 23.11
    ],
)  # fmt: skip
def test_errors_in_an_answer(status: int, body: bytes, kind: str, transient: bool) -> None:
    with pytest.raises(AdapterError) as caught:
        errors.read("slurmrestd jobs", status, body)
    assert (caught.value.kind, caught.value.transient) == (kind, transient)
    assert isinstance(caught.value, NotDone) == (kind in ("unsupported", "absent"))
    assert isinstance(caught.value, Unauthorised) == (kind == "token")
    assert len(str(caught.value)) < 400 and "\n" not in str(caught.value)


def test_no_jobs_with_an_error_is_an_error_and_unchanged_is_no_empty_queue() -> None:
    with pytest.raises(AdapterError):
        errors.read("jobs", 200, error(error="Unable to contact slurm controller", errno=1800))
    for status, body in ((304, b""), (200, error(error="Data has not changed", error_number=1900))):
        with pytest.raises(Unchanged):
            errors.read("jobs", status, body)
    assert forms.jobs(errors.read("jobs", 200, b'{"errors": [], "jobs": []}')) == []
    with pytest.raises(ParseError, match="no list of jobs"):
        forms.jobs(errors.read("jobs", 200, b'{"errors": []}'))


@given(
    st.binary() | st.text().map(str.encode) | JSON.map(lambda value: json.dumps(value).encode()), st.integers(200, 599)
)
def test_any_body_is_an_error_or_a_whole_answer(body: bytes, status: int) -> None:
    try:
        answer = errors.read("jobs", status, body)
        read = forms.jobs(answer)
    except (AdapterError, Unchanged):
        return
    assert len(read) == len(json.loads(body)["jobs"])


@given(st.integers(0, len(json.dumps(NEWEST)) - 1))
def test_an_answer_that_was_cut_off_is_an_error(cut: int) -> None:
    with pytest.raises(ParseError):
        errors.read("jobs", 200, json.dumps(NEWEST)[:cut].encode())


@given(st.sampled_from(NEEDED), JSON, st.sampled_from([NEWEST["jobs"][0], documented(39), documented(44)]))
def test_any_value_of_a_key_is_read_or_unknown(key: str, value: object, form: dict[str, Any]) -> None:
    try:
        read = forms.jobs({"jobs": [form, copy.deepcopy(form) | {key: value}, form]})
    except ParseError:
        raise AssertionError("one job hides others") from None
    assert len(read) == 3 or (key == "job_id" and len(read) == 2)


@given(st.sampled_from(["name", "state", "state_flags", "cpus", "real_memory", "active_features", "partitions"]), JSON)
def test_any_value_of_a_nodes_key_is_read_or_unknown(key: str, value: object) -> None:
    read = forms.nodes({"nodes": [NEWEST["nodes"][0] | {key: value}, NEWEST["nodes"][1]]})
    assert read[-1] == forms.nodes({"nodes": [NEWEST["nodes"][1]]})[0]
    assert len(read) == 2 or (key == "name" and len(read) == 1)


def offers(*numbers: int, takes: tuple[str, ...] = (), slash: str = "") -> dict[str, Any]:
    """Return the description of a slurmrestd."""
    paths: dict[str, Any] = {"/openapi/v3": {}, "/slurmdb/v0.0.99/jobs": {}}
    for number in numbers:
        for name in ("jobs", "nodes", "diag", "ping"):
            paths[f"/slurm/v0.0.{number}/{name}{slash}"] = {}
        schema = {"$ref": f"#/components/schemas/v0.0.{number}_job"}
        body = {"requestBody": {"content": {"application/json": {"schema": schema}}}}
        paths[f"/slurm/v0.0.{number}/job/{{job_id}}"] = {"post": body}
    schemas = {f"v0.0.{number}_job": {"properties": dict.fromkeys(takes)} for number in numbers}
    return {"paths": paths, "components": {"schemas": schemas}}


ALL = ("required_nodes", "begin_time", "comment", "time_minimum")


def test_the_newest_readable_version_is_chosen() -> None:
    assert str(choose(offers(36, 37, 38))) == "v0.0.38"
    assert str(choose(offers(41, 43, 42, 45, 50, slash="/"))) == "v0.0.43"
    assert choose(offers(40, slash="/")).paths["jobs"] == "/slurm/v0.0.40/jobs/"
    half = offers(37)
    half["paths"]["/slurm/v0.0.38/jobs"] = {}
    assert str(choose(half)) == "v0.0.37"
    with pytest.raises(
        NotDone,
        match=r"none of the versions that it offers \(v0.0.34, v0.0.77\) can be read here \(v0.0.36 to v0.0.44\)",
    ) as no:
        choose(offers(77, 34))
    assert no.value.kind == "absent"
    with pytest.raises(NotDone, match=r"\(none\)"):
        choose({"paths": {}})
    with pytest.raises(ParseError, match="not an OpenAPI document"):
        choose({"paths": []})


@given(JSON)
def test_any_document_gives_a_version_or_an_error(value: object) -> None:
    for document in ({"paths": value}, {"paths": {"/slurm/v0.0.40/jobs": value}}, {**offers(40), "components": value}):
        with suppress(ParseError, NotDone):
            assert choose(document).number in READABLE


PIN = {"ReqNodeList": "n[5-6]", "StartTime": "now"}


def test_a_pin_is_one_body_or_none() -> None:
    old = choose(offers(38, takes=("begin_time", "required_nodes")))  # 22.05: required_nodes is there, and refused
    assert old.body(PIN, 9.7) == {"nodelist": "n[5-6]", "begin_time": "now"}
    assert old.body({"ReqNodeList": ""}, 9.7) == {"nodelist": ""}
    assert old.body({"StartTime": "uts1030"}, 9.7) == {"begin_time": "uts1030"}
    with pytest.raises(NotDone, match="cannot write begin_time"):
        choose(offers(38, takes=())).body(PIN, 9.7)
    with pytest.raises(NotDone, match="cannot write Comment"):
        old.body({**PIN, "Comment": "mine"}, 9.7)
    new = choose(offers(44, takes=ALL))
    begin = {"set": True, "infinite": False, "number": 9}
    assert new.body(PIN, 9.7) == {"required_nodes": ["n5", "n6"], "begin_time": begin}
    assert new.body({"StartTime": "uts1030"}, 9.7) == {"begin_time": begin | {"number": 1030}}
    soft = {"set": True, "infinite": False, "number": 20}
    assert new.body({"StartTime": "now", "TimeMin": "20"}, 9.7) == {"begin_time": begin, "time_minimum": soft}
    for cannot, words in ((old, "write TimeMin=20"), (choose(offers(44, takes=("begin_time",))), "write time_minimum")):
        with pytest.raises(NotDone, match=f"cannot {words}"):
            cannot.body({"StartTime": "now", "TimeMin": "20"}, 9.7)
    with pytest.raises(NotDone, match="cannot clear ReqNodeList"):
        new.body({"ReqNodeList": "", "StartTime": "now"}, 9.7)
    with pytest.raises(NotDone, match="cannot write StartTime=2026"):
        new.body({"StartTime": "2026-11-21"}, 9.7)
    with pytest.raises(NotDone, match="cannot write"):
        choose(offers(40, takes=("job",))).body(PIN, 9.7)
