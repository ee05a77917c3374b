"""Requests to slurmrestd: their token, their number, and what is certain after a failure."""

from __future__ import annotations

import gzip
import json
import os
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pilotfish.adapters.base import AdapterError, ParseError
from pilotfish.adapters.run_command import STOP
from pilotfish.adapters.slurm import create
from pilotfish.adapters.slurm.doctor import check_rest
from pilotfish.adapters.slurm.records import SlurmJob
from pilotfish.adapters.slurm.rest import client, errors
from pilotfish.adapters.slurm.rest.client import Client
from pilotfish.adapters.slurm.rest.errors import NotDone, Unauthorised
from pilotfish.adapters.slurm.rest.token import Token, parse
from pilotfish.adapters.slurm.rest.transport import WHOLE_EVERY_S, RestTransport, rest_transport
from pilotfish.simulate.errors import ConfigError, InvariantError
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.snapshot import JobState
from tests.support.clock import Clock
from tests.support.slurm_rest_fake import FakeRest, token

RECORDED = json.loads((Path(__file__).parent / "recorded.json").read_text())["v0.0.38"]
V = "/slurm/v0.0.38"
DOCUMENT = {"paths": {f"{V}/{name}": {} for name in ("jobs", "nodes", "diag", "job/{job_id}")}}
NOW = 1795244457


class Always:
    """Return a token without an end."""

    renewed = 0

    def get(self) -> Token:
        return parse(token())

    def renew(self) -> bool:
        self.renewed += 1
        return self.renewed < 2


def body(**parts: Any) -> tuple[int, bytes]:
    return 200, json.dumps({"errors": [], **parts}).encode()


def wrong(number: int, status: int = 500) -> tuple[int, bytes]:
    return status, json.dumps({"errors": [{"error": "no", "error_number": number}], "jobs": []}).encode()


@pytest.fixture(params=["tcp", "unix"])
def fake(real: None, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FakeRest]:
    server = FakeRest(tmp_path / "s" if request.param == "unix" else None)
    server.answers |= {
        "/openapi/v3": (200, json.dumps(DOCUMENT).encode()),
        f"{V}/diag": body(statistics={"req_time": NOW}),
        f"{V}/jobs": body(jobs=RECORDED["jobs"]),
        f"{V}/nodes": body(nodes=RECORDED["nodes"]),
    }
    yield server
    server.close()


def rest(fake: FakeRest, clock: Callable[[], float] = time.monotonic, timeout_s: float = 5.0) -> RestTransport:
    return RestTransport(Client(fake.url, "backup", Always(), timeout_s), clock)


# The queue


def test_both_headers_are_sent_and_the_version_is_detected_once(fake: FakeRest) -> None:
    transport = rest(fake)
    assert len(transport.jobs()) == len(RECORDED["jobs"]) and [node.name for node in transport.nodes()] == [
        "n1",
        "n7",
        "n8",
    ]
    assert transport.time() == NOW and transport.excluded() == {20: ("n1", "n2")}
    assert fake.paths().count("/openapi/v3") == 1 and f"{V}/nodes" in fake.paths()
    for _, _, headers, _ in fake.asked:
        assert headers["X-SLURM-USER-NAME"] == "backup" and headers["X-SLURM-USER-TOKEN"] == token()
    transport.close()


def test_an_unchanged_queue_costs_one_small_request_and_keeps_its_jobs(fake: FakeRest) -> None:
    clock = Clock(1000.0)
    transport = rest(fake, clock)
    jobs = transport.jobs()
    fake.answers[f"{V}/jobs"] = (304, b"")
    fake.asked.clear()
    clock.now += 5
    assert transport.jobs() == jobs and transport.excluded() == {20: ("n1", "n2")}
    assert fake.paths() == [f"{V}/jobs?update_time={NOW - 1}"]  # surely not later than what was read
    fake.answers[f"{V}/jobs"] = body(jobs=[])
    fake.asked.clear()
    assert transport.jobs() == []
    assert fake.paths() == [f"{V}/jobs?update_time={NOW - 1}", f"{V}/jobs"]  # an empty answer is asked for again


def test_only_changes_are_requested_except_for_a_regular_full_read(fake: FakeRest) -> None:
    clock = Clock(1000.0)
    transport = rest(fake, clock)
    transport.jobs()
    clock.now += 10
    transport.jobs()
    transport.jobs()
    assert fake.paths()[-2:] == [f"{V}/jobs?update_time={NOW - 1}", f"{V}/jobs?update_time={NOW + 9}"]
    clock.now += WHOLE_EVERY_S
    transport.jobs()
    assert fake.paths()[-2:] == [f"{V}/diag", f"{V}/jobs"]


def test_an_empty_list_with_the_unchanged_warning_is_no_empty_queue(fake: FakeRest) -> None:
    """As since 23.02: status 200, no errors, no jobs, and a warning."""
    transport = rest(fake)
    jobs = transport.jobs()
    warning = {"description": "No job changes since update_time=1795244456", "source": "_op_handler_jobs"}
    fake.answers[f"{V}/jobs"] = body(jobs=[], warnings=[warning])
    assert transport.jobs() == jobs


def test_an_unchanged_answer_to_a_full_read_is_an_error(fake: FakeRest) -> None:
    fake.answers[f"{V}/jobs"] = (304, b"")
    with pytest.raises(ParseError, match="reports no changes"):
        rest(fake).jobs()


def test_jobs_by_id(fake: FakeRest) -> None:
    fake.answers |= {
        f"{V}/job/17": body(jobs=[job for job in RECORDED["jobs"] if job["job_id"] == 17]),
        f"{V}/job/99": wrong(2017),
        f"{V}/job/13": body(jobs=[]),
        f"{V}/job/20": wrong(-1),
    }
    transport = rest(fake)
    assert [job.id for job in transport.jobs([17, 99])] == [17]
    with pytest.raises(ParseError, match="neither a job nor a reason"):
        transport.jobs([13])
    with pytest.raises(AdapterError) as caught:
        transport.jobs([20])
    assert caught.value.transient
    assert [job.id for job in transport.jobs([17, 4, *range(100, 200)])] == [4, 17]  # many: one look at the queue


@pytest.mark.parametrize(
    "answer", [wrong(-1), wrong(1800, 200), (200, b"<html>"), (200, b""), (200, b'{"errors": [], "jobs": [{}]}'),
               (200, json.dumps({"errors": [], "jobs": RECORDED["jobs"]}).encode()[:-9]), (301, b""), (204, b"")]
)  # fmt: skip
def test_an_incomplete_answer_never_counts_as_fewer_jobs(fake: FakeRest, answer: tuple[int, bytes]) -> None:
    transport = rest(fake)
    jobs = transport.jobs()
    fake.answers[f"{V}/jobs"] = answer
    with pytest.raises(AdapterError):
        transport.jobs()
    fake.answers[f"{V}/jobs"] = (304, b"")
    assert transport.jobs() == jobs


def test_the_version_is_detected_again_after_an_upgrade(fake: FakeRest) -> None:
    transport = rest(fake)
    transport.jobs()
    old_answer = fake.answers.pop(f"{V}/jobs")
    fake.answers["/openapi/v3"] = (200, json.dumps(DOCUMENT).replace("v0.0.38", "v0.0.37").encode())
    for name in ("jobs", "diag"):
        fake.answers[f"/slurm/v0.0.37/{name}"] = old_answer if name == "jobs" else fake.answers[f"{V}/diag"]
    with pytest.raises(NotDone) as caught:
        transport.jobs()
    assert caught.value.kind == "absent"
    assert len(transport.jobs()) == len(RECORDED["jobs"])


def test_a_slurmrestd_without_a_readable_version_is_an_error_that_lists_its_versions(fake: FakeRest) -> None:
    del fake.answers["/openapi/v3"]
    fake.answers["/openapi"] = (200, json.dumps(DOCUMENT).replace("v0.0.38", "v0.0.99").encode())
    with pytest.raises(NotDone, match=r"none of the versions that it offers \(v0\.0\.99\) can be read here"):
        rest(fake).nodes()


# Writing


def test_a_field_that_cannot_be_written_sends_nothing(fake: FakeRest) -> None:
    transport = rest(fake)
    transport.time()
    fake.asked.clear()
    with pytest.raises(NotDone, match="cannot write begin_time") as caught:
        transport.update(20, {"ReqNodeList": "n3", "StartTime": "now"})
    assert caught.value.kind == "unsupported"
    with pytest.raises(InvariantError):
        transport.update(20, {"Priority": "9"})
    assert fake.asked == [] or fake.paths() == ["/openapi/v3"]


def test_an_update_is_one_request_that_is_not_repeated(fake: FakeRest) -> None:
    fake.answers["/openapi/v3"] = (200, json.dumps(_that_takes("begin_time")).encode())
    fake.answers[f"{V}/job/20"] = body()
    transport = rest(fake)
    transport.update(20, {"ReqNodeList": "n3", "StartTime": "now"})
    method, path, _, sent = fake.asked[-1]
    assert (method, path, json.loads(sent)) == ("POST", f"{V}/job/20", {"nodelist": "n3", "begin_time": "now"})
    fake.answers[f"{V}/job/20"] = wrong(-1)
    fake.asked.clear()
    with pytest.raises(AdapterError) as caught:
        transport.update(20, {"ReqNodeList": "n3", "StartTime": "now"})
    assert caught.value.transient and not isinstance(caught.value, NotDone)  # it is unknown whether it was done
    assert fake.paths() == [f"{V}/job/20"]


def _that_takes(*keys: str) -> dict[str, Any]:
    content = {"application/json": {"schema": {"properties": dict.fromkeys(keys)}}}
    return {"paths": {**DOCUMENT["paths"], f"{V}/job/{{job_id}}": {"post": {"requestBody": {"content": content}}}}}


def test_nothing_is_submitted_over_rest() -> None:
    """Observed on 22.05: a held submission answers 200, the error 2042 and a job id, and is done; one with an empty
    environment is refused. A misread submission would run twice, so all use sbatch."""
    assert not {"submit", "cancel", "switch"} & set(dir(RestTransport))


# The connection


@pytest.mark.real
def test_a_refused_connection_is_certain_and_a_closed_one_is_not(tmp_path: Path) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        closed = f"http://127.0.0.1:{bound.getsockname()[1]}"
        for url in (closed, f"unix:{tmp_path}/none", f"unix:{tmp_path}"):
            with pytest.raises(NotDone, match="no server listens") as caught:
                Client(url, "backup", Always()).post("/x", "update", {})
            assert (caught.value.kind, caught.value.transient) == ("unreachable", True)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(5)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(AdapterError, match="did not answer in time") as late:
            Client(url, "backup", Always(), timeout_s=0.2).get("/x", "jobs")
        assert late.value.transient and not isinstance(late.value, NotDone)


def test_a_slow_answer_is_given_up(fake: FakeRest) -> None:
    transport = rest(fake, timeout_s=2.0)
    transport.nodes()
    fake.slow_s = 0.4
    with pytest.raises(AdapterError, match=r"took longer than 2 s"):
        transport.jobs()


@pytest.mark.parametrize("begun", [False, True])
def test_a_read_is_given_up_when_the_process_is_to_stop_and_a_change_is_not(
    fake: FakeRest, monkeypatch: pytest.MonkeyPatch, begun: bool
) -> None:
    """Args: begun: whether a part of the answer has arrived."""
    fake.answers["/openapi/v3"] = (200, json.dumps(_that_takes("begin_time")).encode())
    fake.answers[f"{V}/job/20"] = body()
    transport, end = rest(fake, timeout_s=600.0), threading.Event()

    def slow(query: str) -> tuple[int, bytes]:
        monkeypatch.setattr(STOP, "wanted", True)
        if begun:
            fake.slow_s = 60.0
        else:
            end.wait(60.0)
        return body(jobs=RECORDED["jobs"])

    transport.nodes()
    fake.answers[f"{V}/jobs"] = slow
    with pytest.raises(AdapterError) as caught:
        transport.jobs()
    assert (caught.value.kind, caught.value.transient) == ("stopped", True)
    end.set()
    fake.slow_s = 0.0
    transport.update(20, {"StartTime": "now"})
    assert fake.asked[-1][:2] == ("POST", f"{V}/job/20")


def test_a_stale_connection_is_replaced(fake: FakeRest) -> None:
    """As after a restart of slurmrestd: the read is sent once more, over a new connection."""
    transport = rest(fake)
    transport.jobs()
    fake.hang_up()
    assert len(transport.jobs()) == len(RECORDED["jobs"])


@pytest.mark.parametrize(
    "url",
    [
        "",
        "slurm",
        "ftp://x",
        "unix:relative",
        "unix:",
        "http://",
        "http://u:p@host",
        "http://[::1",
        "http://h:x",
        "http://h:99999",
    ],
)
def test_invalid_urls(url: str) -> None:
    with pytest.raises(ConfigError, match=r"rest_url: found .* \(allowed: http://HOST:PORT, "):
        Client(url, "backup", Always())


def test_a_token_over_plain_http_is_noted(tmp_path: Path) -> None:
    for url, count in (("http://head:6820", 1), ("http://127.0.0.1:1", 0), ("https://head", 0), ("unix:/x", 0)):
        assert len(RestTransport(Client(url, "backup", Always())).notes) == count


# Refused tokens


def test_a_token_that_was_not_accepted_is_renewed_once(fake: FakeRest) -> None:
    refused = [wrong(-1), body(jobs=RECORDED["jobs"])]
    fake.answers[f"{V}/jobs"] = lambda query: refused.pop(0)
    assert len(rest(fake).jobs()) == len(RECORDED["jobs"]) and not refused
    fake.answers[f"{V}/jobs"] = (401, b"<html>no</html>")
    fake.asked.clear()
    transport = rest(fake)
    with pytest.raises(Unauthorised) as caught:
        transport.jobs()
    assert fake.paths().count(f"{V}/jobs") == 2 and token() not in str(caught.value)


SIGNATURE = token().rpartition(".")[2]


@pytest.mark.parametrize(
    "answer",
    [
        (200, b"{" + token().encode()),
        (500, b"<html>" + token().encode() + b"</html>"),
        (500, b"x" * 190 + token().encode()),
        (500, token().encode() + b"x" * 190),
        (400, body(errors=[{"error": f"X-SLURM-USER-TOKEN: {token()} is no good"}])[1]),
        (400, body(errors=[{"error": "y" * 280 + token()}])[1]),
        (200, body(errors=[token()])[1]),
        (200, body(errors=token())[1]),
        (200, body(jobs=[{"job_id": token()}])[1]),
        (200, body(jobs=token())[1]),
        (200, body(**{token(): 1})[1]),
        (400, body(errors=[{"error": f"the signature {SIGNATURE} is no good"}])[1]),
        (400, body(errors=[{"error": f"...{SIGNATURE[:14]}"}])[1]),
    ],
)
def test_a_token_that_the_server_repeats_is_never_shown(
    fake: FakeRest, answer: tuple[int, bytes], caplog: pytest.LogCaptureFixture
) -> None:
    fake.answers[f"{V}/jobs"] = answer
    caplog.set_level("DEBUG")
    with pytest.raises(AdapterError) as caught:
        rest(fake).jobs()
    error = caught.value
    text = f"{error} {error!r} {error.stderr_tail} {error.argv} {''.join(traceback.format_exception(error))}"
    assert SIGNATURE[:12] not in text + caplog.text


def test_a_packed_answer_is_refused_and_none_is_asked_for(fake: FakeRest) -> None:
    transport = rest(fake)
    transport.jobs()
    assert all(headers["Accept-Encoding"] == "identity" for _, _, headers, _ in fake.asked)
    fake.headers["Content-Encoding"] = "gzip"
    fake.answers[f"{V}/jobs"] = (200, gzip.compress(b" " * 1_000_000))
    with pytest.raises(AdapterError, match=r"answer is packed \(gzip\), which was not asked for"):
        rest(fake).jobs()


def test_an_answer_without_end_is_given_up(fake: FakeRest, monkeypatch: pytest.MonkeyPatch) -> None:
    transport = rest(fake)
    assert transport.jobs()
    monkeypatch.setattr(client, "LARGEST", 2**20)
    fake.answers[f"{V}/jobs"] = (200, b" " * 3_000_000)
    with pytest.raises(AdapterError, match="answer is larger than 1 MiB"):
        transport.jobs()


def test_an_answer_of_many_values_is_not_parsed(fake: FakeRest, monkeypatch: pytest.MonkeyPatch) -> None:
    transport = rest(fake)
    assert transport.jobs()
    monkeypatch.setattr(errors, "MOST_VALUES", 1000)
    fake.answers[f"{V}/jobs"] = (200, b"[" + b"{}," * 1000 + b"{}]")
    with pytest.raises(AdapterError, match="more than 1,000 values"):
        transport.jobs()


@pytest.mark.parametrize(("takes_s", "renewed"), [(0.1, 1), (9.5, 0)])
def test_a_slow_refusal_is_a_dead_controller_not_an_expired_token(fake: FakeRest, takes_s: float, renewed: int) -> None:
    """Both are 500 with -1: the first comes at once, the other after 9 to 10 s."""
    clock, tokens = Clock(1000.0), Always()

    def answer(query: str) -> tuple[int, bytes]:
        clock.now += takes_s
        return wrong(-1)

    fake.answers[f"{V}/nodes"] = answer
    transport = RestTransport(Client(fake.url, "backup", tokens, 15.0, clock), clock)
    with pytest.raises(AdapterError) as caught:
        transport.nodes()
    assert caught.value.transient and tokens.renewed == renewed
    assert fake.paths().count(f"{V}/nodes") == 1 + renewed


# Options

CLUSTER = Cluster("c", (Node("n1", NodeType("t", 4, 4e9, 1e10)),))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rest_url": 5}, "rest_url: found 5"),
        ({"rest_url": "unix:/x", "rest_token_command": ["y"]}, r"rest_token_command: found \['y'\] \(allowed: text"),
        ({"rest_url": "here"}, "rest_url: found 'here'"),
        (
            {"rest_url": "unix:/x", "rest_token_file": "/x", "rest_token_command": "y"},
            "rest_token_command is set, too",
        ),
        ({"rest_url": "unix:/x", "rest_token_file": "/none/token"}, "/none/token: rest_token_file: unreadable"),
        ({"rest_url": "unix:/x", "rest_token_lifespan_s": 0}, "rest_token_lifespan_s: found 0"),
        ({"rest_url": "unix:/x", "rest_token_command": "'"}, "rest_token_command: No closing quotation"),
        ({"rest_url": "unix:/x", "rest_user": "a\nb"}, "rest_user: found"),
        ({"rest_url": "unix:/x", "rest_user": "名"}, "rest_user: found"),
        ({"rest_user": "backup"}, "rest_user: there is no rest_url"),
    ],
)
def test_invalid_options_are_one_line(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        create(CLUSTER, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.real
def test_without_a_source_scontrol_creates_the_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "scontrol"
    script.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/runs\necho SLURM_JWT={token()}\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for user in ("", "somebody"):
        with pytest.raises(NotDone):
            rest_transport(f"unix:{tmp_path}/none", user, token_lifespan_s=90.0).time()
    assert (tmp_path / "runs").read_text() == "token lifespan=90\ntoken lifespan=90 username=somebody\n"


# The doctor's check


def looked(way: Callable[[], RestTransport], ids: Sequence[int]) -> list[tuple[str, str]]:
    class Told:
        def jobs(self) -> list[SlurmJob]:
            return [SlurmJob(id, JobState.PENDING) for id in ids]

    return [(str(finding.level), finding.says) for finding in check_rest.request_findings(way, Told())]


def test_the_doctor_reports_what_rest_shows_hides_and_cannot_write(fake: FakeRest) -> None:
    ids = [job["job_id"] for job in RECORDED["jobs"]]
    (level, message), (note, cannot) = looked(lambda: rest(fake), ids)
    assert (level, note) == ("ok", "note") and message.startswith("slurmrestd v0.0.38 shows 6 jobs in ")
    assert cannot == "slurmrestd v0.0.38 cannot write StartTime; scontrol does"
    _, (level, message), _ = looked(lambda: rest(fake), [*ids, 1, 2])
    assert level == "warning" and message.startswith("slurmrestd hides 2 of 8 jobs from the token's user")
    fake.answers[f"{V}/jobs"] = wrong(-1)
    ((level, message),) = looked(lambda: rest(fake), ids)
    assert level == "warning" and message.endswith("; commands are used instead")
    ((level, message),) = looked(lambda: rest_transport("nowhere"), ids)
    assert level == "warning" and "rest_url: found 'nowhere'" in message
