"""The first use compiles the simulator, says how far it is, and can be stopped meanwhile; a home that cannot be used costs time only."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from real_world import COMMAND, PATIENCE_S, eventually, process

pytestmark = pytest.mark.xdist_group("machine")

CLUSTER = """\
schema: pilotfish/cluster/v1
name: lab
node_types: {t: {cores: 2, memory: 1GiB, memory_bandwidth: 10GB/s}}
nodes: [{names: "n[1-2]", type: t}]
"""
WORKFLOW = """\
schema: pilotfish/workflow/v1
name: dag
jobs:
  a: {profile: {service_demand: 10}}
  b: {after: [a], profile: {service_demand: 5, bandwidth: 2GB/s}}
"""
TRACE = "; MaxProcs: 8\n1 0 0 10 2 -1 -1 2 20 -1 1 1 1 1 1 1 -1 -1\n2 1 0 10 8 -1 -1 8 20 -1 1 1 1 1 1 1 -1 -1\n"
NOBODY = 65534


def test_compiling_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "t.swf").write_text(TRACE)
    argv, cache = ("convert", "t.swf", "t.json"), {"PILOTFISH_CACHE": str(tmp_path / "cache")}
    first = process(*argv, **cache)
    written = (tmp_path / "t.json").read_bytes()
    second = process(*argv, **cache)
    assert first.returncode == second.returncode == 0, first.stderr
    said, *others = first.stderr.splitlines()
    assert said == "pilotfish: compiling the reader of SWF files for this machine"
    others = [line for line in others if not line.startswith(f"{said}: ")]  # on a slow machine, with the time
    assert others == second.stderr.splitlines() and "compiling" not in second.stderr
    assert (tmp_path / "t.json").read_bytes() == written and [*(tmp_path / "cache").rglob("*.o")]


@pytest.mark.parametrize("compiles", [False, True])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_first_plan_says_that_it_compiles_and_ends_at_once(tmp_path: Path, number: int, compiles: bool) -> None:
    """The simulator of workflows takes longest to compile; the processes that compile it end, too."""
    (tmp_path / "c.yaml").write_text(CLUSTER)
    (tmp_path / "w.yaml").write_text(WORKFLOW)
    environment = os.environ | {"PILOTFISH_CACHE": str(tmp_path / "cache")}
    argv = [*COMMAND, "plan", "w.yaml", "--cluster", "c.yaml"]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env=environment, cwd=tmp_path) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "pilotfish: compiling the simulator of workflows for this machine\n"
        (worker,) = children = eventually(lambda: children_of(process.pid), "a process that imports the compiler")
        if compiles:
            children += eventually(lambda: children_of(worker), "a process that compiles")
        process.send_signal(number)
        assert process.wait(PATIENCE_S) in (-number, 128 + number) and not [*tmp_path.glob("cache/**/*.o")]
    for child in children:
        eventually(lambda child=child: not alive(child), "the end of the processes that compile")


def alive(pid: int) -> bool:
    """Return whether a process exists and is not merely waited for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children_of(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_service_that_compiles_shows_how_far_it_is_and_stops_at_once(tmp_path: Path) -> None:
    """To its clients, to systemd and to whoever looks at /readyz; the socket that makes jobs wait does not open."""
    one = CLUSTER.replace("cores: 2", "cores: 1").replace("n[1-2]", "n1")
    (tmp_path / "cluster.yaml").write_text(one.replace("t}]", f"t, cpus: '{min(os.sched_getaffinity(0))}'}}]"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (tmp_path / "pilotfish.yaml").write_text(
        "schema: pilotfish/daemon/v1\ncluster: cluster.yaml\nstate_dir: state\naccess: {root: true}\n"
        f"profiles: profiles.sqlite\nsocket: {{path: '{tmp_path}/s'}}\nmetrics: {{port: {port}}}\n"
        "adapter: {name: local, options: {cgroups: false}}\n"
    )
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(PATIENCE_S)
        more = {"PILOTFISH_CACHE": str(tmp_path / "cache"), "NOTIFY_SOCKET": str(tmp_path / "notify")}
        argv = [*COMMAND, "daemon", "--config", "pilotfish.yaml"]
        with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env=os.environ | more, cwd=tmp_path) as daemon:
            try:
                assert systemd.recv(999).startswith(b"FDSTORE=1"), "the count of failed starts"
                status, extended = systemd.recv(999).decode().splitlines()
                assert status == "STATUS=compiling the simulator of workflows for this machine"
                assert extended.startswith("EXTEND_TIMEOUT_USEC="), "or systemd would end a slow first start"
                asked = process("status", "--socket", str(tmp_path / "s"))
                ready = requests.get(f"http://127.0.0.1:{port}/readyz", timeout=PATIENCE_S)
                assert (tmp_path / "s.starting").is_socket() and not (tmp_path / "s").exists()
                daemon.send_signal(signal.SIGTERM)
                assert daemon.wait(PATIENCE_S) == 0 and daemon.stderr is not None
                assert daemon.stderr.read().splitlines()[-1].endswith("stopped; jobs go on")
            finally:
                daemon.kill()  # if it still runs, leaving this block would wait for its end
    assert asked.returncode == 1 and "is starting: compiling the simulator of workflows" in asked.stderr
    assert ready.status_code == 503 and ready.text.startswith("starting: compiling the simulator of workflows")
    assert not [*tmp_path.glob("s"), *tmp_path.glob("s.*")] and not [*tmp_path.glob("cache/**/*.o")]


def as_nobody(*argv: str | Path, home: str | None) -> subprocess.CompletedProcess[str]:
    """Run a command as an ordinary user with this home directory; None: HOME is not set."""
    dropped = ("HOME", "PILOTFISH_CACHE", "PILOTFISH_STATE", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME")
    environment = {name: value for name, value in os.environ.items() if name not in dropped}
    environment |= {} if home is None else {"HOME": home}
    prefix = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    return subprocess.run(
        [*prefix, *COMMAND, *map(str, argv)], capture_output=True, text=True, timeout=PATIENCE_S, env=environment
    )


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everyone may enter; pytest closes its own to others."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.skipif(os.geteuid() != 0, reason="not root, so no other user can run a command")
def test_a_home_that_cannot_be_used_is_no_error(open_folder: Path) -> None:
    """Another user's home, a file, a read-only one, and none: results are whole, and one line names the directory."""
    for name, text in (("t.swf", TRACE), ("file", "")):
        (open_folder / name).write_text(text)
        (open_folder / name).chmod(0o644)
    for name, mode in (("denied", 0o700), ("readonly", 0o555)):
        (open_folder / name).mkdir()
        (open_folder / name).chmod(mode)
    denied = str(open_folder / "denied")
    if as_nobody("--version", home=denied).returncode:
        pytest.skip("this installation cannot be read by an ordinary user")
    for home in (denied, str(open_folder / "readonly"), str(open_folder / "file"), None):
        listed = as_nobody("profile", "list", home=home)
        assert (listed.returncode, "Traceback" in listed.stderr) == (0, False), listed.stderr
        assert "bt.C" in listed.stdout and listed.stderr.count("\n") == (home == denied)
        asked = as_nobody("status", home=home)
        assert asked.returncode == 1 and asked.stderr.count("\n") == 1 and "client.yaml" not in asked.stderr
    (open_folder / "out").mkdir()
    (open_folder / "out").chmod(0o777)
    for home in (denied, str(open_folder / "file")):
        converted = as_nobody("convert", open_folder / "t.swf", open_folder / "out" / "t.json", home=home)
        assert (converted.returncode, "Traceback" in converted.stderr) == (0, False), converted.stderr
        assert converted.stderr.count("kernels cannot be kept in") == 1 and "2 jobs" in converted.stderr
