"""Hardware counts from a fake perf to the profile, whatever that perf does."""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest
import workers

from pilotfish.cli.__main__ import main
from pilotfish.daemon.learning.node_counters import NodeCounters
from pilotfish.daemon.learning.profile_learning import LearnedProfiles
from pilotfish.daemon.socket.ipc import DaemonError, ask
from pilotfish.daemon.state.codec import encode
from pilotfish.daemon.state.queue import Queue
from pilotfish.profiles.identity import signature
from pilotfish.profiles.measure.neighbour_counters import NeighbourCounters
from pilotfish.profiles.store import ProfileStore
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Job, Workflow
from pilotfish.simulate.model.snapshot import JobState, JobView, NodeState, Snapshot

#: Counters refuse to run next to another process called perf: one such test at a time.
pytestmark = pytest.mark.xdist_group("counters")

COUNTS = r"1500.00,msec,task-clock,1,100.00,,\n900,,instructions,1,100.00,,\n600,,cycles,1,100.00,,\n"
COUNTS += r"1000000,,LLC-load-misses,1,100.00,,\n500000,,LLC-store-misses,1,100.00,,\n"
#: The job waits until the file {go} exists, and then computes for a while in a process of its own.
LAST = "import time\nwhile time.process_time() < 0.5: pass"
BURN = f"while [ ! -e {{go}} ]; do sleep 0.05; done; '{sys.executable}' -ISc '{LAST}'"
PATIENCE_S = 60.0


def eventually(check, what):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if found := check():
            return found
        time.sleep(0.05)
    raise AssertionError(f"{what} did not happen within {PATIENCE_S} s")


class World:
    """A daemon, and a fake perf that notes each start and then runs the shell commands in `line`."""

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
            "access: {root: true}\n"
            f"profiles: profiles.sqlite\nsocket: {{path: '{folder}/s'}}\nmetrics: {{enabled: false}}\n"
            "counters: [perf, likwid]\nadapter: {name: local, options: {cgroups: false}}\n"
        )
        self.job = Job("j", DEFAULT_PROFILE, command=("/bin/sh", "-c", BURN.format(go=self.go)))

    def start(self) -> None:
        """Start a daemon, and wait until it answers."""
        words = [Path(__file__).parents[1] / "serve_with_counters.py", self.folder / "pilotfish.yaml", self.folder]
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        with (self.folder / "log").open("a") as log:
            self.process = workers.start(words, os.environ | {"PATH": path}, log, log)
        eventually(self._serves, "a daemon that serves")

    def _serves(self) -> bool:
        assert self.process.poll() is None, self.log
        with suppress(DaemonError):
            return bool(ask(self.endpoint, "status", timeout_s=1.0))
        return False

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def submit(self) -> None:
        text = encode(Workflow("w", (self.job,)))
        ask(self.endpoint, "submit", workflow=text, directory=str(self.folder))

    def counted(self) -> list[str]:
        """Return a line for each start of perf."""
        return self.began.read_text().splitlines() if self.began.exists() else []

    def run(self):
        """Let the job end once perf has started, and return the learned run."""
        eventually(self.counted, "a perf for the job")
        self.go.touch()
        return eventually(lambda: self.store.history(signature(self.job)), "a run that was learned")[0]

    def close(self) -> None:
        self.go.touch()
        self.process.terminate()
        self.process.wait(PATIENCE_S)
        self.store.close()


@pytest.fixture
def world(real, tmp_path):
    made = []

    def make(line):
        made.append(World(tmp_path, line))
        made[0].start()
        return made[0]

    yield make
    made[0].close()


def test_hardware_counts_of_a_job_are_in_its_profile(world):
    world = world(f"cat\nprintf '{COUNTS}' >&2")
    world.submit()
    run = world.run()
    assert (run.ipc, run.sources["ipc"]) == (1.5, "perf") and run.date and run.cpu_model
    assert run.bandwidth == pytest.approx(1.5e6 * 64 / 1.5)
    profile = world.store.get(signature(world.job))
    assert profile.ipc == 1.5 and "IPC by perf" in profile.provenance.note
    assert " -p " in world.counted()[0] and len(world.counted()) == 1
    assert "hardware counters of jobs: perf" in world.log and "counters: likwid is not available: " in world.log


def test_a_counter_that_hangs_is_ended_and_delays_no_job(world):
    world = world("trap '' TERM\nsleep 1000")
    world.submit()
    run = world.run()
    assert run.ipc is None and run.notes == ("perf: it did not end within 5 s",)
    assert not alive(int(world.counted()[0].split()[0]))
    assert world.process.poll() is None


def test_a_killed_daemon_leaves_no_counter_behind(world):
    world = world("cat\nexit 1")
    world.submit()
    eventually(world.counted, "a perf for the job")
    world.process.send_signal(signal.SIGKILL)
    world.process.wait()
    first = int(world.counted()[0].split()[0])
    eventually(lambda: not alive(first), "the end of a perf whose daemon was killed")
    world.start()
    eventually(lambda: len(world.counted()) == 2, "a perf of the next daemon")
    assert world.run().notes == ("perf: it did not count: it printed nothing",)


def test_an_unexpected_fault_of_a_counter_costs_only_the_counts(tmp_path, caplog):
    class Broken(NeighbourCounters):
        def update(self, running, alone):
            raise RuntimeError("we were wrong")

    job = Job("j", DEFAULT_PROFILE, command=("true",))
    view = JobView("w/j", job, JobState.RUNNING, ("a",), start_time=1.0, pid=os.getpid())
    node = Node("a", NodeType("t", 1, 1e9, 1e10))
    snapshot = Snapshot(1.0, 1, Cluster("here", (node,)), (NodeState.UP,), (view,))
    profiles = LearnedProfiles(tmp_path / "profiles.sqlite")
    counters = NodeCounters(Broken((), tmp_path), profiles, Queue())
    for _ in range(2):
        counters.on_snapshot(snapshot)
    assert [record.message for record in caplog.records] == [
        "counters of jobs are given up: RuntimeError: we were wrong"
    ]
    usage = (("cpu_seconds", 2.0),)
    counters.learn([dataclasses.replace(view, state=JobState.COMPLETED, finish_time=4.0, usage=usage, pid=None)])
    with closing(ProfileStore(tmp_path / "profiles.sqlite")) as store:
        assert store.history(signature(job))[0].cpu_s == 2.0


def test_named_counters_are_refused_if_no_job_runs_on_this_node(tmp_path, capsys):
    world = World(tmp_path, "cat")
    config = tmp_path / "pilotfish.yaml"
    config.write_text(config.read_text().partition("adapter:")[0] + "adapter: {name: simulated}\n")
    assert main(["daemon", "--config", str(config)]) == 1
    said = capsys.readouterr().err
    assert (
        f"{config}: counters: found perf, likwid, but jobs of the adapter 'simulated' do not run on this node" in said
    )
    assert "(allowed: auto, none)" in said and said.count("\n") == 1
    assert world.counted() == []


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
