"""The daemon counts beside jobs: the whole way from a perf in perf's place to the profile, whatever that perf does."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from pilotfish.daemon.__main__ import main
from pilotfish.daemon.beside import Beside
from pilotfish.daemon.codec import encode
from pilotfish.daemon.memory import Memory
from pilotfish.daemon.wire import WireError, ask
from pilotfish.profiles.alongside import Alongside
from pilotfish.profiles.signature import signature
from pilotfish.profiles.store import ProfileStore
from pilotfish.simulate.job import DEFAULT_PROFILE, Job, Workflow
from pilotfish.simulate.platform import Cluster, Node, NodeType
from pilotfish.simulate.snapshot import JobState, JobView, NodeState, Snapshot

#: A tool called perf is seen by all who look whether somebody counts: one such test at a time.
pytestmark = pytest.mark.xdist_group("counters")

COUNTS = r"1500.00,msec,task-clock,1,100.00,,\n900,,instructions,1,100.00,,\n600,,cycles,1,100.00,,\n"
COUNTS += r"1000000,,LLC-load-misses,1,100.00,,\n500000,,LLC-store-misses,1,100.00,,\n"
#: It waits until somebody makes the file, and then computes for a while, as a process of its own.
LAST = "import time\nwhile time.process_time() < 0.5: pass"
BURN = f"while [ ! -e {{go}} ]; do sleep 0.05; done; '{sys.executable}' -ISc '{LAST}'"
PATIENCE_S = 60.0


def eventually(check, what):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if found := check():
            return found
        time.sleep(0.05)
    raise AssertionError(f"{what} did not come about within {PATIENCE_S} s")


class World:
    """A daemon, and a program in perf's place that notes when it begins and then does as `line` says."""

    def __init__(self, folder: Path, line: str) -> None:
        self.folder, self.began, self.go = folder, folder / "began", folder / "go"
        self.endpoint = f"ipc://{folder}/s"
        self.store = ProfileStore(folder / "profiles.sqlite")
        (folder / "sys/bus/event_source/devices/cpu").mkdir(parents=True)
        (folder / "proc").symlink_to("/proc")
        (folder / "bin").mkdir()
        tool = folder / "bin/perf"
        tool.write_text(f'#!/bin/sh\necho $$ "$@" >> {self.began}\n{line}\n')
        tool.chmod(0o755)
        cpu = min(os.sched_getaffinity(0))
        (folder / "cluster.yaml").write_text(
            "schema: pilotfish/cluster/v1\nname: here\n"
            "node_types: {t: {cores: 1, memory: 1GiB, memory_bandwidth: 1GB/s}}\n"
            f"nodes: [{{names: 'a', type: t, cpus: '{cpu}'}}]\n"
        )
        (folder / "pilotfish.yaml").write_text(
            "schema: pilotfish/daemon/v1\ncluster: cluster.yaml\nstate_dir: state\ncycle_seconds: 0.2\n"
            f"profiles: profiles.sqlite\nsocket: {{path: '{folder}/s'}}\nmetrics: {{enabled: false}}\n"
            "counters: [perf, likwid]\nadapter: {name: local, options: {cgroups: false}}\n"
        )
        self.job = Job("j", DEFAULT_PROFILE, command=("/bin/sh", "-c", BURN.format(go=self.go)))

    def start(self) -> None:
        """A daemon, once it answers."""
        argv = [sys.executable, Path(__file__).with_name("counting.py"), self.folder / "pilotfish.yaml", self.folder]
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        with (self.folder / "log").open("a") as log:
            self.process = subprocess.Popen(argv, env=os.environ | {"PATH": path}, stderr=log)
        eventually(self._serves, "a daemon that serves")

    def _serves(self) -> bool:
        assert self.process.poll() is None, self.log
        with suppress(WireError):
            return bool(ask(self.endpoint, "status", timeout_s=1.0))
        return False

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def submit(self) -> None:
        text = encode(Workflow("w", (self.job,)))
        ask(self.endpoint, "submit", workflow=text, directory=str(self.folder))

    def counted(self) -> list[str]:
        """A line for each time that perf was begun."""
        return self.began.read_text().splitlines() if self.began.exists() else []

    def run(self):
        """The run that was learned once the job had ended; it may end once perf has been begun."""
        eventually(self.counted, "a perf beside the job")
        self.go.touch()
        return eventually(lambda: self.store.history(signature(self.job)), "a run that was learned")[0]

    def close(self) -> None:
        self.go.touch()
        self.process.terminate()
        self.process.wait(PATIENCE_S)
        self.store.close()


@pytest.fixture
def world(tmp_path):
    made = []

    def make(line):
        made.append(World(tmp_path, line))
        made[0].start()
        return made[0]

    yield make
    made[0].close()


def test_what_was_counted_beside_a_job_is_in_its_profile(world):
    world = world(f"cat\nprintf '{COUNTS}' >&2")
    world.submit()
    run = world.run()
    assert (run.ipc, run.sources["ipc"]) == (1.5, "perf") and run.date and run.cpu_model
    assert run.bandwidth == pytest.approx(1.5e6 * 64 / 1.5)
    profile = world.store.get(signature(world.job))
    assert profile.ipc == 1.5 and "IPC by perf" in profile.provenance.note
    assert " -p " in world.counted()[0] and len(world.counted()) == 1
    assert "counters beside jobs: perf" in world.log and "counters: there is no likwid here: " in world.log


def test_a_counter_that_hangs_holds_nobody_up_and_is_ended(world):
    world = world("trap '' TERM\nsleep 1000")
    world.submit()
    run = world.run()
    assert run.ipc is None and run.notes == ("perf: it did not end within 5 s",)
    assert not alive(int(world.counted()[0].split()[0]))
    assert world.process.poll() is None


def test_killed_it_leaves_no_counter_behind_and_counts_again(world):
    world = world("cat\nexit 1")
    world.submit()
    eventually(world.counted, "a perf beside the job")
    world.process.send_signal(signal.SIGKILL)
    world.process.wait()
    first = int(world.counted()[0].split()[0])
    eventually(lambda: not alive(first), "the end of a perf whose daemon was killed")
    world.start()
    eventually(lambda: len(world.counted()) == 2, "a perf of the next daemon")
    assert world.run().notes == ("perf: it did not count: it printed nothing",)


def test_a_counter_that_surprises_us_costs_the_counts_and_not_the_daemon(tmp_path, caplog):
    class Broken(Alongside):
        def follow(self, running, alone):
            raise RuntimeError("we were wrong")

    job = Job("j", DEFAULT_PROFILE, command=("true",))
    view = JobView("w/j", job, JobState.RUNNING, ("a",), start_time=1.0, pid=os.getpid())
    node = Node("a", NodeType("t", 1, 1e9, 1e10))
    snapshot = Snapshot(1.0, 1, Cluster("here", (node,)), (NodeState.UP,), (view,))
    memory = Memory(tmp_path / "profiles.sqlite")
    beside = Beside(Broken((), tmp_path), memory)
    for _ in range(2):
        beside.look(snapshot)
    assert [record.message for record in caplog.records] == [
        "counters beside jobs are given up: RuntimeError: we were wrong"
    ]
    usage = (("cpu_seconds", 2.0),)
    beside.keep([dataclasses.replace(view, state=JobState.COMPLETED, finish_time=4.0, usage=usage, pid=None)])
    with closing(ProfileStore(tmp_path / "profiles.sqlite")) as store:
        assert store.history(signature(job))[0].cpu_s == 2.0


def test_counters_by_name_where_no_job_runs_on_this_node_are_refused(tmp_path, capsys):
    world = World(tmp_path, "cat")
    config = tmp_path / "pilotfish.yaml"
    config.write_text(config.read_text().partition("adapter:")[0] + "adapter: {name: simulated}\n")
    assert main(["daemon", "--config", str(config)]) == 1
    said = capsys.readouterr().err
    assert f"{config}: counters: found perf, likwid, and jobs of 'simulated' do not run on this node" in said
    assert "(allowed: auto, none)" in said and said.count("\n") == 1
    assert not (tmp_path / "state").exists() and world.counted() == []


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
