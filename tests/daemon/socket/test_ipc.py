"""The socket: every request is answered or refused, and no client harms the daemon or other clients."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.daemon.socket import ipc, socket_server
from pilotfish.daemon.socket.ipc import DaemonError, NoDaemonError, SilentDaemonError, ask, socket_path
from pilotfish.daemon.socket.socket_server import TURN_S, Server
from pilotfish.daemon.state.users import Peer
from pilotfish.simulate.errors import ConfigError

STATUS = b"GET /v1/status HTTP/1.1\r\n\r\n"


@contextmanager
def serving(path, handler=lambda request, peer: {"ok": True, "echo": request, "uid": peer.uid}, **options):
    """Serve in a thread of its own, in the way of the daemon's loop."""
    server = Server(str(path), handler, **options)
    stop = threading.Event()
    reader, writer = os.pipe()

    def loop():
        while not stop.is_set():
            server.wait(0.05, reader)
            server.serve()

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield str(path)
    finally:
        stop.set()
        os.write(writer, b"x")
        thread.join()
        server.close()
        os.close(reader)
        os.close(writer)


@pytest.fixture(scope="module")
def endpoint(real, tmp_path_factory):
    with serving(tmp_path_factory.mktemp("wire") / "s.sock") as found:
        yield found


@contextmanager
def connected(endpoint, timeout_s=60.0):
    with socket.socket(socket.AF_UNIX) as channel:
        channel.connect(str(endpoint))  # without a timeout, with which it would fail while the queue is full
        channel.settimeout(timeout_s)
        yield channel


def answer_to(endpoint, data, *, end=True):
    """Return the status and the reply to raw bytes; `end`: no more will follow."""
    with connected(endpoint) as channel:
        with suppress(BrokenPipeError, ConnectionResetError):
            channel.sendall(data)
        if end:
            channel.shutdown(socket.SHUT_WR)
        parts = []
        with suppress(ConnectionResetError):
            while part := channel.recv(2**16):
                parts.append(part)
    head, _, body = b"".join(parts).partition(b"\r\n\r\n")
    return (int(head.split()[1]), json.loads(body)) if head else (None, None)


def test_a_request_is_answered(endpoint):
    reply = ask(endpoint, "status", workflow="ü&=%/ x", key=None)
    assert reply["echo"] == {"do": "status", "workflow": "ü&=%/ x"} and reply["uid"] == os.getuid()


def test_the_workflow_of_a_submission_is_its_body(endpoint):
    text = '{"name": "ü"}' * 100_000
    assert ask(endpoint, "submit", workflow=text, directory="/a b")["echo"] == {
        "do": "submit", "directory": "/a b", "workflow": text}  # fmt: skip


def test_curl_and_python_talk_to_it(endpoint):
    import http.client

    class Local(http.client.HTTPConnection):
        def connect(self):
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.connect(endpoint)

    page = Local("localhost")
    page.request("GET", "/v1/explain?job=a%2Fb")
    answer = page.getresponse()
    assert answer.status == 200 and json.load(answer)["echo"] == {"do": "explain", "job": "a/b"}


@pytest.mark.real
def test_a_refusal_is_an_error_with_the_daemons_text(tmp_path):
    with (
        serving(tmp_path / "s", lambda request, peer: ipc.refusal("not today", 403)) as endpoint,
        pytest.raises(DaemonError, match=r"^not today$"),
    ):
        ask(endpoint, "status")


@pytest.mark.parametrize(
    ("request_", "code", "says"),
    [
        (b"HELO\r\n\r\n", 400, "HTTP"),
        (b"DELETE /v1/status HTTP/1.1\r\n\r\n", 405, "DELETE"),
        (b"GET /v1/cancel?target=a HTTP/1.1\r\n\r\n", 405, "GET"),
        (b"GET /v2/status HTTP/1.1\r\n\r\n", 404, "/v2/status"),
        (b"GET /v1/status?a=1&a=2 HTTP/1.1\r\n\r\n", 400, "twice"),
        (b"GET /v1/status?do=submit HTTP/1.1\r\n\r\n", 400, "twice"),
        (b"POST /v1/submit?workflow=x HTTP/1.1\r\n\r\n", 400, "twice"),
        (b"GET /v1/status HTTP/1.1\r\nA: 1\r\na: 2\r\n\r\n", 400, "header"),
        (b"POST /v1/submit HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411, "length"),
        (b"POST /v1/submit HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400, "number"),
        (b"POST /v1/submit HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", 413, "bytes"),
        (b"POST /v1/status HTTP/1.1\r\nContent-Length: 1\r\n\r\n", 413, "bytes"),
        (b"POST /v1/submit HTTP/1.1\r\nContent-Length: 2\r\n\r\n\xff\xff", 400, "UTF-8"),
        (b"GET /v1/status?x HTTP/1.1\r\n\r\n", 400, "query"),
        (b"A" * 2**20, 413, "head"),
    ],
)
def test_what_is_no_request_is_refused_with_a_reason(endpoint, request_, code, says):
    found, reply = answer_to(endpoint, request_)
    assert found == code and not reply["ok"] and says in reply["error"]


pieces = st.sampled_from(
    [b"GET ", b"POST ", b"/v1/", b"/v1/submit", b"/v1/status", b"?", b"&", b"=", b"%", b"%ff", b" HTTP/1.1", b"\r\n",
     b"\r\n\r\n", b"Content-Length: 3", b"Content-Length:", b": ", b"{}", b"\0", b"\xff", b"workflow=a", b"do=cancel"]
) | st.binary(max_size=20)  # fmt: skip


@given(data=st.lists(pieces, max_size=12).map(b"".join))
@settings(max_examples=150, deadline=None)
def test_no_bytes_harm_the_server(endpoint, data):
    code, reply = answer_to(endpoint, data)
    assert code is None or (code == 200) == reply["ok"]
    assert ask(endpoint, "status")["ok"]


def test_a_client_that_leaves_before_its_answer_does_no_harm(endpoint):
    for _ in range(50):
        with connected(endpoint) as channel:
            channel.sendall(STATUS)
    assert ask(endpoint, "status")["ok"]


@pytest.mark.real
def test_two_thousand_connections_leave_the_daemon_as_it_was(tmp_path):
    """More than a process may have file descriptors; the rest of the users are served, and all others afterwards."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    program = (
        "import resource, socket, sys, time\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, int(sys.argv[2])),) * 2)\n"
        "made = []\n"
        "while len(made) < 2000:\n"
        "    channel = socket.socket(socket.AF_UNIX); channel.connect(sys.argv[1])\n"
        "    made.append(channel)\n"
        "print(len(made), flush=True)\n"
        "sys.stdin.read()\n"
    )
    if hard < 2100:
        pytest.skip("2,000 connections were NOT tried: the process may not have as many file descriptors")
    with serving(tmp_path / "s", connections=16) as endpoint:
        before = len(os.listdir("/proc/self/fd"))
        argv = [sys.executable, "-I", "-c", program, endpoint, str(hard)]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as crowd:
            assert crowd.stdout.readline() == b"2000\n"
            code, reply = answer_to(endpoint, STATUS)  # once all others are seen
            assert code == 429 and "more than 16 connections" in reply["error"]
            assert len(os.listdir("/proc/self/fd")) - before < 64
            with pytest.raises(DaemonError, match="more than 16 connections"):
                ask(endpoint, "status", timeout_s=2.0)
            crowd.stdin.close()
        assert ask(endpoint, "status")["ok"]


def test_an_endless_request_is_refused_before_it_is_kept(endpoint):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with connected(endpoint) as channel, suppress(BrokenPipeError, ConnectionResetError, TimeoutError):
        channel.settimeout(5.0)
        for _ in range(1000):
            channel.sendall(b"x" * 2**20)
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown_kib < 20_000 and ask(endpoint, "status")["ok"]


def test_large_bodies_of_one_user_are_bounded_together(endpoint):
    head = f"POST /v1/submit HTTP/1.1\r\nContent-Length: {ipc.LARGEST_BODY}\r\n\r\n".encode()
    with connected(endpoint) as one, connected(endpoint) as two:
        one.sendall(head + b"x")
        two.sendall(head + b"x")
        assert ask(endpoint, "status")["ok"]  # so both have been read
        assert answer_to(endpoint, head, end=False)[0] == 429
        assert ask(endpoint, "status")["ok"]


@pytest.mark.real
def test_a_client_that_drips_has_a_deadline(tmp_path, monkeypatch):
    monkeypatch.setattr(socket_server, "DEADLINE_S", 0.3)
    with serving(tmp_path / "s") as endpoint, connected(endpoint) as slow:
        began = time.monotonic()
        with suppress(BrokenPipeError):
            while time.monotonic() < began + 60:
                slow.sendall(b"G")
                time.sleep(0.05)
        assert time.monotonic() - began < 60
        assert b"408" in slow.recv(2**16)
        assert ask(endpoint, "status")["ok"]


@pytest.mark.real
def test_a_client_that_reads_no_answer_has_a_deadline(tmp_path, monkeypatch):
    monkeypatch.setattr(socket_server, "DEADLINE_S", 0.3)
    long = {"ok": True, "text": "x" * 2**22}
    with serving(tmp_path / "s", lambda *_: dict(long), connections=1) as endpoint, connected(endpoint) as deaf:
        deaf.sendall(STATUS)
        assert len(ask(endpoint, "status", timeout_s=60.0)["text"]) == 2**22  # once the only place is free


@pytest.mark.real
def test_a_busy_daemon_does_not_blame_its_clients(tmp_path, monkeypatch):
    monkeypatch.setattr(socket_server, "DEADLINE_S", 1.0)
    server = Server(f"{tmp_path}/s", lambda *_: {"ok": True})
    with connected(tmp_path / "s") as channel:
        channel.sendall(STATUS[:10])
        server.serve()
        time.sleep(2.5)  # a long search
        channel.sendall(STATUS[10:])
        server.wait(1.0)
        assert server.serve() == 1 and channel.recv(100).startswith(b"HTTP/1.1 200")
    server.close()


def test_too_large_a_request_is_not_sent(endpoint, monkeypatch):
    monkeypatch.setattr("pilotfish.daemon.socket.ipc.LARGEST_BODY", 1000)
    with pytest.raises(DaemonError, match="bytes"):
        ask(endpoint, "submit", workflow="x" * 2000)


@pytest.mark.real
def test_only_the_owner_may_connect_and_the_file_is_removed_at_the_end(tmp_path):
    path = tmp_path / "folder" / "s.sock"
    with serving(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not path.exists()
    with serving(path, mode=0o660):
        assert stat.S_IMODE(path.stat().st_mode) == 0o660


@pytest.mark.real
def test_what_is_at_the_path_at_the_end_stays_if_it_is_not_the_socket(tmp_path):
    server = Server(f"{tmp_path}/s", lambda *_: {})
    (tmp_path / "s").unlink()
    (tmp_path / "s").write_text("precious")
    server.close()
    assert (tmp_path / "s").read_text() == "precious"


@pytest.mark.real
def test_no_daemon_is_one_clear_line(tmp_path):
    with pytest.raises(NoDaemonError, match=r"no pilotfish daemon listens at .*nothing\.sock") as caught:
        ask(f"{tmp_path}/nothing.sock", "status")
    assert "\n" not in str(caught.value)


@pytest.mark.real
def test_a_stale_socket_file_is_replaced(tmp_path):
    path = tmp_path / "s.sock"
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(path))
    stale.close()
    with pytest.raises(DaemonError, match="no pilotfish daemon"):
        ask(str(path), "status")
    with serving(path) as endpoint:
        assert ask(endpoint, "status")["ok"]


@pytest.mark.real
def test_a_daemon_that_does_not_answer_is_an_error_after_the_timeout(tmp_path):
    server = Server(f"{tmp_path}/s", lambda *_: {"ok": True})
    with pytest.raises(NoDaemonError, match=r"did not answer within 0\.1 s"):
        ask(f"{tmp_path}/s", "status", timeout_s=0.1)
    server.close()


LISTENS = (
    "import socket, sys, time; channel = socket.socket(socket.AF_UNIX); channel.bind(sys.argv[1]); channel.listen()\n"
    "print('it listens', flush=True); time.sleep(600)\n"
)


@pytest.mark.real
def test_of_a_daemon_that_does_not_answer_a_client_learns_early_that_it_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(ipc, "STOPPED_S", 0.1)
    argv = [sys.executable, "-I", "-c", LISTENS, f"{tmp_path}/s"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline()
            with pytest.raises(SilentDaemonError, match=r"did not answer within 0\.5 s"):
                ask(f"{tmp_path}/s", "status", timeout_s=0.5)
            process.send_signal(signal.SIGSTOP)
            with pytest.raises(SilentDaemonError, match=f"its process {process.pid} is stopped"):
                ask(f"{tmp_path}/s", "status", timeout_s=600.0)
        finally:
            process.kill()


@pytest.mark.real
@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\n\r\n[]", b"SSH-2.0\r\n\r\nx"])
def test_a_stranger_that_listens_is_one_error(tmp_path, answer):
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.bind(f"{tmp_path}/s")
        stranger.listen()

        def say():
            channel, _ = stranger.accept()
            channel.recv(1000)
            channel.sendall(answer)
            channel.close()

        thread = threading.Thread(target=say)
        thread.start()
        with pytest.raises(DaemonError):
            ask(f"{tmp_path}/s", "status")
        thread.join()


def test_nothing_is_sent_to_a_daemon_of_a_stranger(endpoint):
    heard = []
    with pytest.raises(DaemonError, match=r"listens at .* nothing was sent \(service_user"):
        ask(endpoint, "submit", workflow="secret", trusted=lambda uid: heard.append(uid))
    assert heard == [os.getuid()]


@pytest.mark.real
def test_a_full_backlog_blocks_no_client_for_ever(tmp_path):
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as stopped, ExitStack() as clients:
        stopped.bind(str(path))
        stopped.listen(0)
        with suppress(BlockingIOError):
            while True:
                client = clients.enter_context(socket.socket(socket.AF_UNIX))
                client.setblocking(False)
                client.connect(str(path))
        with pytest.raises(NoDaemonError, match=r"did not answer within 0\.1 s"):
            ask(str(path), "status", timeout_s=0.1)
        with pytest.raises(ConfigError, match="another daemon listens"):
            Server(str(path), lambda *_: {})


@pytest.mark.real
def test_slow_answers_to_a_flood_leave_time_for_other_work(tmp_path):
    def slow(request, peer):
        time.sleep(0.06)
        return {"ok": True}

    server = Server(f"{tmp_path}/s", slow)
    with ExitStack() as clients:
        for _ in range(10):
            clients.enter_context(connected(tmp_path / "s")).sendall(STATUS)
        answered = [server.serve() for _ in range(12)]
        assert max(answered) <= 2 and sum(answered) == 10
    server.close()


@pytest.mark.real
def test_a_request_that_arrives_passes_those_of_a_user_who_has_needed_more_time(tmp_path, monkeypatch):
    uids, order = iter([1] * 10 + [2]), []
    monkeypatch.setattr(socket_server, "peer_of", lambda channel: Peer(next(uids), 1, 1))
    with ExitStack() as clients:

        def send():
            clients.enter_context(connected(tmp_path / "s")).sendall(STATUS)

        def answer(request, peer):
            order.append(peer.uid)
            if len(order) == 3:
                send()
            return {"ok": True}

        server = Server(f"{tmp_path}/s", answer)
        clients.callback(server.close)
        for _ in range(10):
            send()
        server.serve()
    assert order == [1, 1, 1, 2] + [1] * 7


class Played:
    """A server whose users and clock are made up: each step of an answer takes as long as its user's steps do."""

    def __init__(self, tmp_path, monkeypatch, step_s, steps):
        self.now, self.order, self.path, self.step_s, self.steps = 0.0, [], tmp_path / "s", step_s, steps
        self.uids = []
        monkeypatch.setattr(socket_server, "peer_of", lambda channel: Peer(self.uids.pop(0), 1, 1))
        monkeypatch.setattr(socket_server, "time", SimpleNamespace(monotonic=self.clock, thread_time=self.clock))
        self.clients = ExitStack()
        self.server = Server(f"{tmp_path}/s", self.answer, connections=100)
        self.clients.callback(self.server.close)

    def clock(self):
        return self.now

    def send(self, uid):
        self.uids.append(uid)
        self.clients.enter_context(connected(self.path)).sendall(STATUS)

    def answer(self, request, peer):
        for number in range(self.steps[peer.uid]):
            if number:
                yield
            self.order.append(peer.uid)
            self.now += self.step_s[peer.uid]
        return {"ok": True}

    def serve(self, times):
        for _ in range(times):
            self.server.serve()


@pytest.mark.real
def test_a_user_who_comes_later_is_ahead_by_one_turn_at_most(tmp_path, monkeypatch):
    played = Played(tmp_path, monkeypatch, step_s={1: 0.02, 2: 0.02}, steps={1: 1, 2: 1})
    with played.clients:
        for _ in range(40):  # one user alone, who has then needed most of a second
            played.send(1)
            played.serve(1)
        for uid in (*[2] * 30, 1):
            played.send(uid)
        played.serve(100)
    assert played.order[:40] == [1] * 40 and len(played.order) == 71
    assert played.order[40:].index(1) * 0.02 <= 2 * TURN_S


@pytest.mark.real
def test_an_answer_in_steps_goes_on_until_its_turn_ends(tmp_path, monkeypatch):
    played = Played(tmp_path, monkeypatch, step_s={1: 0.002, 2: 0.002, 3: 0.03}, steps={1: 20, 2: 1, 3: 20})
    with played.clients:
        for uid in (2, 1, *[2] * 30):
            played.send(uid)
        played.serve(50)
        first = played.order.index(1)
        assert played.order[first : first + 20] == [1] * 20 and played.order.count(2) == 31
        played.order.clear()
        for uid in (3, *[2] * 10):
            played.send(uid)
        played.serve(50)
    assert 3 in played.order[: played.order.index(2)] and played.order[-10:] == [3] * 10  # its turn ended before


@pytest.mark.real
def test_many_cheap_requests_of_another_put_off_no_answer_until_the_next_cycle(tmp_path, monkeypatch):
    played = Played(tmp_path, monkeypatch, step_s={1: 0.02, 2: 1e-4}, steps={1: 1, 2: 1})
    with played.clients:
        for _ in range(10):
            played.send(1)
            played.serve(1)
        for uid in (*[2] * 90, 1):
            played.send(uid)
        played.serve(1)
    assert played.order == [1] * 10 + [2] * 90 + [1]


@pytest.mark.real
def test_a_question_about_the_cluster_can_wait_for_a_cycle_and_no_other_request_asks_for_one(tmp_path):
    server = Server(f"{tmp_path}/s", lambda *_: {"ok": True})
    with ExitStack() as clients:

        def send(request: bytes) -> bool:
            clients.enter_context(connected(tmp_path / "s")).sendall(request)
            server.receive()  # accepts
            return server.receive()

        assert not server.receive()
        assert not send(STATUS.replace(b"status", b"accuracy")) and not send(STATUS.replace(b"status", b"x"))
        assert send(STATUS) and server.receive()
        assert server.answer() == 3 and not server.receive()
    server.close()


AS_ANOTHER = (
    "import os, socket, sys; os.setgid(54321); os.setuid(54321)\n"
    "channel = socket.socket(socket.AF_UNIX); channel.connect(sys.argv[1])\n"
    "channel.sendall(b'GET /v1/status HTTP/1.1\\r\\n\\r\\n'); print(channel.recv(10000).decode())\n"
)


@pytest.mark.real
def test_another_user_is_known_and_has_connections_of_their_own():
    if os.geteuid() != 0:
        pytest.skip("another user was NOT tried: only root can become one")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o711)
        with serving(Path(folder) / "s", connections=2) as endpoint:
            os.chmod(endpoint, 0o666)
            with connected(endpoint), connected(endpoint):  # root's places are taken
                argv = [sys.executable, "-I", "-c", AS_ANOTHER, endpoint]
                done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
                assert '"uid":54321' in done.stdout, done.stderr


@pytest.mark.real
def test_a_second_server_is_refused_and_the_first_goes_on(tmp_path):
    with serving(tmp_path / "s") as endpoint:
        with pytest.raises(ConfigError, match="another daemon listens"):
            Server(endpoint, lambda *_: {})
        assert ask(endpoint, "status")["ok"]


@pytest.mark.parametrize(
    ("endpoint", "says"),
    [("tcp://127.0.0.1:1", "absolute path"), ("ipc://relative", "absolute path"), ("/" + "x" * 120, "too long")],
)
def test_invalid_endpoints(endpoint, says):
    with pytest.raises(ConfigError, match=says):
        socket_path(endpoint)


@pytest.mark.real
def test_an_unknown_group_or_folder_is_a_config_error(tmp_path):
    with pytest.raises(ConfigError, match="no group 'no-such-group'"):
        Server(f"{tmp_path}/s", lambda *_: {}, group="no-such-group")
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot listen"):
        Server(f"{tmp_path}/file/s", lambda *_: {})


@pytest.mark.real
def test_a_barred_user_is_refused_before_the_request_is_read(tmp_path):
    answered = []
    with serving(tmp_path / "s", lambda request, peer: answered.append(request), bars=lambda peer: "no name") as path:
        for _ in range(200):
            with pytest.raises(DaemonError, match="no name"):
                ask(path, "status")
    assert not answered


@pytest.mark.real
def test_a_request_that_has_to_wait_holds_up_no_other(tmp_path):
    server = Server(f"{tmp_path}/s", lambda request, peer: {"ok": True, "did": request["do"]})
    with ExitStack() as clients:
        first, second = (clients.enter_context(connected(tmp_path / "s")) for _ in range(2))
        first.sendall(b"POST /v1/reload HTTP/1.1\r\n\r\n")
        second.sendall(STATUS)
        assert sum(server.serve(later=("reload",)) for _ in range(3)) == 1
        assert b'"did":"status"' in second.recv(1000)
        assert server.serve() == 1 and b'"did":"reload"' in first.recv(1000)
    server.close()
