"""The socket: every well-formed message is answered, and no message harms the server."""

from __future__ import annotations

import json
import os
import socket
import stat
import threading
import time
from contextlib import ExitStack, contextmanager, suppress

import pytest
import zmq
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.daemon.ipc import DaemonError, NoDaemonError, Server, ask, socket_path
from pilotfish.simulate.errors import ConfigError


@contextmanager
def serving(path, handler=lambda request: {"ok": True, "echo": request}, **options):
    """Serve in a thread of its own, in the way of the daemon's loop."""
    server = Server(f"ipc://{path}", handler, **options)
    stop = threading.Event()
    reader, writer = os.pipe()

    def loop():
        while not stop.is_set():
            server.wait(0.05, reader)
            server.serve()

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield f"ipc://{path}"
    finally:
        stop.set()
        os.write(writer, b"x")
        thread.join()
        server.close()
        os.close(reader)
        os.close(writer)


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("wire") / "s.sock") as found:
        yield found


@contextmanager
def raw(endpoint, kind=zmq.DEALER):
    with zmq.Context() as context, context.socket(kind) as channel:
        channel.setsockopt(zmq.LINGER, 0)
        channel.connect(endpoint)
        yield channel


def test_a_request_is_answered(endpoint):
    reply = ask(endpoint, "status", workflow="ü")
    assert reply["echo"] == {"v": 1, "do": "status", "workflow": "ü"}


def test_a_refusal_is_an_error_with_the_daemons_text(tmp_path):
    answer = {"ok": False, "error": "not today"}
    with (
        serving(tmp_path / "s", lambda request: answer) as endpoint,
        pytest.raises(DaemonError, match=r"^not today$"),
    ):
        ask(endpoint, "status")


@given(body=st.binary(max_size=60) | st.text().map(lambda t: json.dumps({"v": t}).encode()))
@settings(max_examples=50, deadline=None)
def test_malformed_bodies_are_answered_with_an_error(endpoint, body):
    with raw(endpoint, zmq.REQ) as channel:
        channel.send(body)
        assert channel.poll(5000)
        reply = json.loads(channel.recv())
    assert reply["ok"] is False and reply["error"]


@given(frames=st.lists(st.binary(max_size=20), min_size=1, max_size=5))
@settings(max_examples=50, deadline=None)
def test_malformed_frames_do_no_harm(endpoint, frames):
    with raw(endpoint) as channel:
        channel.send_multipart(frames)
        assert channel.poll(5000)
        assert json.loads(channel.recv_multipart()[-1])["ok"] is False
    assert ask(endpoint, "status")["ok"]


def test_deep_nesting_is_refused(endpoint):
    with raw(endpoint, zmq.REQ) as channel:
        channel.send(b"[" * 200_000)
        assert channel.poll(5000)
        assert "not a JSON object" in json.loads(channel.recv())["error"]


def test_a_client_that_leaves_before_its_answer_does_no_harm(endpoint):
    for _ in range(5):
        with raw(endpoint, zmq.REQ) as channel:
            channel.send(b'{"v": 1, "do": "status"}')
    assert ask(endpoint, "status")["ok"]


def test_too_large_a_request_is_not_sent(endpoint, monkeypatch):
    monkeypatch.setattr("pilotfish.daemon.ipc.LARGEST_MESSAGE", 1000)
    with pytest.raises(DaemonError, match="bytes"):
        ask(endpoint, "submit", workflow="x" * 2000)


def test_only_the_owner_may_connect_and_the_file_is_removed_at_the_end(tmp_path):
    path = tmp_path / "folder" / "s.sock"
    with serving(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not path.exists()
    with serving(path, mode=0o660):
        assert stat.S_IMODE(path.stat().st_mode) == 0o660


def test_no_daemon_is_one_clear_line(tmp_path):
    with pytest.raises(DaemonError, match=r"no pilotfish daemon listens at .*nothing\.sock") as caught:
        ask(f"ipc://{tmp_path}/nothing.sock", "status")
    assert "\n" not in str(caught.value)


def test_a_stale_socket_file_is_replaced(tmp_path):
    path = tmp_path / "s.sock"
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(path))
    stale.close()
    with pytest.raises(DaemonError, match="no pilotfish daemon"):
        ask(f"ipc://{path}", "status")
    with serving(path) as endpoint:
        assert ask(endpoint, "status")["ok"]


def test_a_daemon_that_does_not_answer_is_an_error_after_the_timeout(tmp_path):
    server = Server(f"ipc://{tmp_path}/s", lambda request: {"ok": True})
    with pytest.raises(DaemonError, match=r"did not answer within 0\.1 s"):
        ask(f"ipc://{tmp_path}/s", "status", timeout_s=0.1)
    server.close()


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
            ask(f"ipc://{path}", "status", timeout_s=0.1)
        with pytest.raises(ConfigError, match="another daemon listens"):
            Server(f"ipc://{path}", lambda request: {})


def test_unread_replies_do_not_fill_the_memory(tmp_path):
    answered = []

    def large(request):
        answered.append(request)
        return {"ok": True, "text": "x" * 2**20}

    with serving(tmp_path / "s", large) as endpoint, zmq.Context() as context, context.socket(zmq.DEALER) as deaf:
        deaf.setsockopt(zmq.LINGER, 0)
        deaf.setsockopt(zmq.RCVHWM, 1)
        deaf.connect(endpoint)
        for _ in range(200):
            deaf.send_multipart([b"", b'{"v": 1, "do": "status"}'])
        assert ask(endpoint, "status")["ok"]
        until = time.monotonic() + 60
        while len(answered) < 201 and time.monotonic() < until:
            time.sleep(0.05)
        heard = 0
        while deaf.poll(500):
            heard += len(deaf.recv_multipart()) == 2
        assert 1 <= heard < 200  # how many are dropped depends on timing


def test_slow_answers_to_a_flood_leave_time_for_other_work(tmp_path):
    def slow(request):
        time.sleep(0.06)
        return {"ok": True}

    server = Server(f"ipc://{tmp_path}/s", slow)
    with zmq.Context() as context, context.socket(zmq.DEALER) as client:
        client.setsockopt(zmq.LINGER, 0)
        client.connect(f"ipc://{tmp_path}/s")
        for _ in range(10):
            client.send_multipart([b"", b'{"v": 1, "do": "status"}'])
        server.wait(5.0)
        time.sleep(0.2)
        answered = [server.serve() for _ in range(10)]
        assert max(answered) <= 2 and sum(answered) == 10
    server.close()


def test_a_second_server_is_refused_and_the_first_goes_on(tmp_path):
    with serving(tmp_path / "s") as endpoint:
        with pytest.raises(ConfigError, match="another daemon listens"):
            Server(endpoint, lambda request: {})
        assert ask(endpoint, "status")["ok"]


@pytest.mark.parametrize(
    ("endpoint", "says"),
    [
        ("tcp://127.0.0.1:1", "absolute path"),
        ("ipc://relative", "absolute path"),
        ("ipc:///" + "x" * 120, "too long"),
    ],
)
def test_invalid_endpoints(endpoint, says):
    with pytest.raises(ConfigError, match=says):
        socket_path(endpoint)


def test_an_unknown_group_or_folder_is_a_config_error(tmp_path):
    with pytest.raises(ConfigError, match="no group 'no-such-group'"):
        Server(f"ipc://{tmp_path}/s", lambda request: {}, group="no-such-group")
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot listen"):
        Server(f"ipc://{tmp_path}/file/s", lambda request: {})


@pytest.mark.skipif(os.geteuid() != 0, reason="not root, so nothing can be given to another user")
@pytest.mark.parametrize("what", ["socket", "folder"])
def test_nothing_is_sent_to_another_users_socket(tmp_path, what):
    """They took the folder, or put a socket of theirs in its place, while the daemon ran."""
    heard, folder = [], tmp_path / "run"
    with serving(folder / "s", lambda request: heard.append(request) or {"ok": True}) as found:
        ask(found, "status")
        os.chown(folder / "s" if what == "socket" else folder, 61001, 61001)
        folder.chmod(0o777 if what == "folder" else 0o755)
        with pytest.raises(DaemonError, match=r"nothing was sent: .*belongs to user 61001"):
            ask(found, "submit", password="hunter2")
    assert [request["do"] for request in heard] == ["status"]
