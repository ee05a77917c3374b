"""A user who attacks the daemon with requests at the quotas, and a user who is answered meanwhile.

What an answer cost, in CPU time of the daemon from the question on, is reported and not judged. The quotas are a part
of the default ones; `PILOTFISH_ATTACK_PART=1` attacks at the default ones, which takes minutes.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml
from real_world import Served

pytestmark = pytest.mark.xdist_group("machine")
PART = int(os.environ.get("PILOTFISH_ATTACK_PART", "20"))
JOBS, ALL_JOBS, EDGES = 10_000 // PART, 100_000 // PART, 300_000 // PART
#: Uids with a name on every machine, and a group for the socket.
ATTACKER, VICTIM, GROUP = 2, 1, 1
#: Seconds of each attack, connections of the attacker, and seconds for an answer.
ATTACK_S, CONNECTIONS, PATIENCE_S = 2.0, 32, 120.0
PROFILE = {"groups": [{"count": 1, "service_demand": 50.0}]}


class Attacked(Served):
    """The daemon on one node of one CPU, with a socket for two users."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        kind = {"cores": 1, "memory": "1GiB", "memory_bandwidth": "10GB/s"}
        nodes = [{"names": "a", "type": "cpu", "cpus": "0"}]
        cluster = {"schema": "pilotfish/cluster/v1", "name": "here", "node_types": {"cpu": kind}, "nodes": nodes}
        config = {
            "schema": "pilotfish/daemon/v1", "cluster": "cluster.yaml", "state_dir": "journal", "policy": "mom",
            "access": {"root": True}, "profiles": str(folder / "profiles.sqlite"), "metrics": {"enabled": False},
            "socket": {"path": str(self.socket), "mode": "0660", "group": "daemon"},
            "quotas": {"jobs": ALL_JOBS, "workflow_jobs": JOBS, "dependencies": EDGES},
            "adapter": {"name": "local", "options": {"cgroups": False}},
        }  # fmt: skip
        (folder / "cluster.yaml").write_text(yaml.safe_dump(cluster))
        self.config.write_text(yaml.safe_dump(config))

    def connect(self) -> socket.socket:
        """Return a connection of the user that this process is now."""
        channel = socket.socket(socket.AF_UNIX)
        channel.settimeout(PATIENCE_S)
        while True:
            try:
                channel.connect(str(self.socket))
            except BlockingIOError:  # the backlog is full
                time.sleep(0.01)
            else:
                return channel

    def request(self, do: str, body: bytes = b"", **arguments: Any) -> dict[str, Any]:
        """Return the answer to a request of the user that this process is now."""
        head = f"POST /v1/{do}?{urlencode(arguments)} HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n"
        with self.connect() as channel:
            with suppress(BrokenPipeError):  # refused before it was read
                channel.sendall(head.encode() + body)
            parts = list(iter(lambda: channel.recv(2**16), b""))
        return dict(json.loads(b"".join(parts).partition(b"\r\n\r\n")[2]))

    def cpu_s(self) -> float:
        """Return the CPU time of the daemon's loop so far, seconds."""
        assert self.process is not None
        return int(Path(f"/proc/{self.process.pid}/schedstat").read_text().split()[0]) / 1e9


def flow(name: str, make: Callable[[int], dict[str, Any]] = lambda n: {}) -> bytes:
    """Return a workflow with as many jobs as it may have; `make` returns what is special about each."""
    plain = {"profile": PROFILE, "command": ["sleep", "600"]}
    jobs = [{"id": str(number), **plain, **make(number)} for number in range(JOBS)]
    return json.dumps({"name": name, "jobs": jobs}).encode()


def fill(daemon: Attacked, end: float) -> None:
    """Submit as many jobs and dependencies as one may have."""
    chained = flow("edges", lambda n: {"after": [str(m) for m in range(max(0, n - EDGES // JOBS), n)]})
    for body in (chained, *[flow("long", lambda n: {"directory": f"{'d' * 200}/{n}"})] * (ALL_JOBS // JOBS)):
        daemon.request("submit", body, directory="/x")


def repeated(do: str, body: bytes = b"", **arguments: Any) -> Callable[[Attacked, float], None]:
    """Return an attack that repeats a request over all connections."""

    def attack(daemon: Attacked, end: float) -> None:
        while time.monotonic() < end:
            with suppress(OSError, ValueError):  # the attacker's own request came to its deadline
                daemon.request(do, body, **arguments)

    return over_all_connections(attack)


def over_all_connections(attack: Callable[[Attacked, float], None]) -> Callable[[Attacked, float], None]:
    def attacks(daemon: Attacked, end: float) -> None:
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            list(pool.map(lambda _: attack(daemon, end), range(CONNECTIONS)))

    return attacks


def half_a_request(daemon: Attacked, end: float) -> None:
    with daemon.connect() as channel, suppress(OSError):
        channel.sendall(b"POST /v1/submit?directory=/x HTTP/1.1\r\nContent-Length: 200000\r\n\r\n")
        while time.monotonic() < end:
            channel.sendall(b"[" * 100)
            time.sleep(0.02)


def unread_answer(daemon: Attacked, end: float) -> None:
    with daemon.connect() as channel:
        channel.sendall(b"GET /v1/status HTTP/1.1\r\n\r\n")
        while time.monotonic() < end and channel.recv(10):
            time.sleep(0.02)


def cancel_everything(daemon: Attacked, end: float) -> None:
    flows = [each["id"] for each in daemon.request("status")["workflows"] if each["exit_code"] is None]
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        list(pool.map(lambda id: daemon.request("cancel", target=id), flows))


ATTACKS: dict[str, Callable[[Attacked, float], None]] = {
    "fill the quotas": fill,
    "submit beyond them": repeated("submit", flow("more"), directory="/x"),
    "half requests": over_all_connections(half_a_request),
    "unread answers": over_all_connections(unread_answer),
    "ask for all": repeated("status"),
    "choose by a long pattern": repeated("status", of_name="*a" * 127 + "b"),
    "explain unknown jobs": repeated("explain", job="ab" * 100),
    "ask for forecasts": repeated("accuracy"),
    "cancel everything": cancel_everything,
}


@pytest.fixture
def daemon() -> Iterator[Attacked]:
    if os.geteuid() != 0:
        pytest.skip("attacks of another user were NOT tried: only root can become one")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o711)
        with closing(Attacked(folder)) as served:
            served.start()
            yield served


def run_attack(daemon: Attacked, attack: Callable[[Attacked, float], None]) -> list[float]:
    """Attack in a process of its own, ask as the other user meanwhile; return the daemon's CPU time of each answer."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setegid(GROUP)
            os.seteuid(ATTACKER)
            attack(daemon, time.monotonic() + ATTACK_S)
        except BaseException:
            os._exit(1)
        os._exit(0)
    answers, ended = list[float](), 0
    while not ended:
        begun = daemon.cpu_s()
        os.setegid(GROUP)
        os.seteuid(VICTIM)
        try:
            reply = daemon.request("status")
        finally:
            os.seteuid(0)
            os.setegid(0)
        answers.append(daemon.cpu_s() - begun)
        assert reply["ok"], reply
        ended, status = os.waitpid(pid, os.WNOHANG)
        time.sleep(0.02)
    assert status == 0, "the attack itself failed"
    return answers


def test_a_user_is_answered_while_another_attacks(
    daemon: Attacked, record_property: Callable[[str, object], None]
) -> None:
    worst = {}
    for name, attack in ATTACKS.items():
        worst[name] = max(run_attack(daemon, attack))
        count = sum(len(each["jobs"]) for each in (daemon.ask("status") or {}).get("workflows", ()))
        assert name != "fill the quotas" or count > 0
    assert all(
        each["exit_code"] is not None or each["state"] == "running" for each in daemon.ask("status")["workflows"]
    )
    assert "failed, please report" not in daemon.log.read_text()
    costs = ", ".join(f"{name} {cost * 1e3:.0f} ms" for name, cost in worst.items())
    record_property(
        "measured",
        f"CPU time of the daemon for the worst answer to another user (load {os.getloadavg()[0]:.0f}): {costs}",
    )
