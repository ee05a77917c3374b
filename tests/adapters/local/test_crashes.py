"""Kills at any moment: no job is lost, none runs twice, and what cannot be known is reported."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.local import create
from pilotfish.adapters.local.keeper_server import COMMAND
from pilotfish.simulate.model.plan import Cancel, Submit
from pilotfish.simulate.model.snapshot import JobState
from tests.support.local_world import CLUSTER, LocalWorld, gone, python, sh

DRIVER = """
import sys
sys.path[:0] = [sys.argv[1]]
from pathlib import Path
from tests.support.local_world import LocalWorld
world = LocalWorld(Path(sys.argv[2]))
print("ready", flush=True)
for i in range(int(sys.argv[3])):
    world.start(world.job(f"j{i}", 0.05 * (i % 3), exit_code=i), "ab"[i % 2])
    world.adapter.snapshot()
"""


@pytest.mark.real
def test_a_killed_adapter_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """The adapter's process group is killed at ten random moments; each time it starts from the first job."""
    count, dice = 10, random.Random(1)
    command = [sys.executable, "-c", DRIVER, str(Path(__file__).parents[2] / "support"), str(tmp_path), str(count)]
    for moment in [dice.uniform(0.0, 0.15) for _ in range(10)] + [None]:
        with subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE) as driver:
            assert driver.stdout and driver.stdout.readline() == b"ready\n"
            if moment is not None:
                time.sleep(moment)
                os.killpg(driver.pid, signal.SIGKILL)
            assert driver.wait(60) in (0, -signal.SIGKILL)
    with LocalWorld(tmp_path) as world:
        views = world.all_ended()
        assert {view.key: view.exit_code for view in views} == {f"j{i}": i for i in range(count)}
        assert [world.runs(f"j{i}") for i in range(count)] == [1] * count


def test_killed_keepers_never_run_a_job_twice(world: LocalWorld) -> None:
    """Keepers are killed at random moments, many before the job began; jobs are started until they end."""
    dice, keys = random.Random(2), [f"j{i}" for i in range(8)]
    for _ in range(3):
        for key in keys:
            world.start(world.job(key, 0.1), key=key)
        time.sleep(dice.uniform(0.0, 0.06))
        for keeper in dice.sample(keepers := sorted(world.keepers()), len(keepers) // 2):
            with suppress(ProcessLookupError):
                os.kill(keeper, signal.SIGKILL)

    def settled() -> bool:
        for key in keys:
            world.start(world.job(key, 0.1), key=key)
        return all(world.look(key).state.ended for key in keys)

    world.wait_for(settled)
    for key in keys:
        view = world.look(key)
        assert world.runs(key) == 1 or (world.runs(key) == 0 and "kill" in view.reason.lower())
        assert (view.exit_code == 0) is (view.state is JobState.COMPLETED)


def test_a_killed_keeper_leaves_a_job_that_is_watched_to_its_end(world: LocalWorld) -> None:
    world.start(sh("j", f"until [ -e {world.path}/go ]; do sleep 0.05; done; echo done > {world.path}/done; exit 4"))
    world.kill_keeper("j")
    view = world.look("j")
    assert (view.state, view.exit_code) == (JobState.RUNNING, None)
    assert "keeper was killed" in view.reason
    assert world.look("j").state is JobState.RUNNING
    (world.path / "go").touch()
    view = world.wait_for(lambda: (v := world.look("j")).state.ended and v)
    assert (view.state, view.exit_code, view.signal) == (JobState.FAILED, None, None)
    assert "exit code unknown" in view.reason
    assert (world.path / "done").exists()


@pytest.mark.parametrize("step_s", [-36_000.0, 36_000.0])
def test_a_wall_clock_that_was_set_neither_ends_nor_prolongs_an_orphaned_job(world: LocalWorld, step_s: float) -> None:
    """A clock set forward has its job begin long ago, and a clock set back in the future."""
    world.start(sh("short", "sleep 600", walltime=5.0))
    world.start(sh("long", "sleep 600", walltime=600.0), "b")
    for key in ("short", "long"):
        begin = world.begun(key)
        world.kill_keeper(key)
        begin["start_time"] -= step_s
        (world.directory(key) / "begin.json").write_text(json.dumps(begin))
    world.wait_for(lambda: world.look("short").state is JobState.TIMEOUT)
    assert world.look("long").state is JobState.RUNNING


@pytest.mark.parametrize(
    "user", [None, pytest.param(61001, marks=pytest.mark.skipif(os.geteuid() != 0, reason="not root"))]
)
def test_a_process_that_only_looks_like_a_keeper_stops_no_job(world: LocalWorld, user: int | None) -> None:
    world.adapter.close()
    argv = ["/bin/sh", "-c", "sleep 600; :", COMMAND, "/adapters", str(world.directory("j")), "3"]
    with subprocess.Popen(argv, user=user, cwd="/", env={}) as false:
        try:
            world.adapter = create(CLUSTER, world.state, grace_s=0.3)
            assert world.finish(world.job("j", 0.0)).state is JobState.COMPLETED and world.runs("j") == 1
        finally:
            false.kill()


def test_an_orphaned_job_still_has_its_walltime_and_its_whole_tree_goes(world: LocalWorld) -> None:
    away = "import os, time\nif not os.fork():\n os.setsid()\n if os.fork(): os._exit(0)\ntime.sleep(600)"
    world.start(python("j", away, walltime=5.0))
    first = world.begun("j")["pid"]

    def elsewhere() -> list[int]:
        """Processes of other sessions than the first one's; the one between them may be gone by now."""
        pids = []
        for pid in world.members() - {first}:
            with suppress(ProcessLookupError):
                pids += [pid] if os.getsid(pid) != first else []
        return pids

    runaway = world.wait_for(elsewhere)
    world.kill_keeper("j")
    view = world.wait_for(lambda: (v := world.look("j")).state.ended and v)
    assert (view.state, view.exit_code) == (JobState.TIMEOUT, None)
    assert gone(first) and all(map(gone, runaway))


def test_a_job_that_died_with_its_keeper_is_not_running(world: LocalWorld) -> None:
    world.start(sh("j", "sleep 600"))
    begun = world.begun("j")
    world.kill_keeper("j")
    os.kill(begun["pid"], signal.SIGKILL)
    world.wait_for(lambda: gone(begun["pid"]))
    assert world.look("j").state is JobState.UNKNOWN
    view = world.wait_for(lambda: (v := world.look("j")).state.ended and v)
    assert (view.state, view.exit_code) == (JobState.FAILED, None)


def test_an_orphaned_job_can_be_cancelled(world: LocalWorld) -> None:
    world.start(sh("j", "sleep 600"))
    world.kill_keeper("j")
    world.adapter.apply(Cancel("j"))
    view = world.wait_for(lambda: (v := world.look("j")).state.ended and v)
    assert view.state is JobState.CANCELLED
    assert gone(world.begun("j")["pid"])


def test_after_a_restart_of_the_machine_a_process_id_means_nothing(world: LocalWorld) -> None:
    world.start(sh("j", "sleep 600"))
    begun = world.begun("j")
    world.kill_keeper("j")
    os.kill(begun["pid"], signal.SIGKILL)
    record = begun | {"boot_id": "another", "pid": os.getpid(), "start_ticks": begun["start_ticks"]}
    (world.directory("j") / "begin.json").write_text(json.dumps(record))
    view = world.wait_for(lambda: (v := world.look("j")).state.ended and v)
    assert (view.state, view.exit_code) == (JobState.FAILED, None)
    assert "restarted" in view.reason


def unstarted(world: LocalWorld, key: str = "j") -> Path:
    """Return a job as left by a kill between its spec and its keeper."""
    world.finish(world.job(key, 0.0))
    for path in world.directory(key).iterdir():
        if path.name != "spec.json":
            path.unlink()
    (world.path / f"{key}.runs").unlink()
    world.restart()
    return world.directory(key)


def test_a_spec_without_a_keeper_is_pending_and_can_be_started(world: LocalWorld) -> None:
    unstarted(world)
    assert world.look("j").state is JobState.PENDING
    assert world.finish(world.job("j", 0.0), "b").nodes == ("b",)
    assert world.runs("j") == 1


def test_a_cancel_of_a_pending_job_keeps_it_from_ever_starting(world: LocalWorld) -> None:
    unstarted(world)
    world.adapter.apply(Cancel("j"))
    world.start(world.job("j", 0.0))
    view = world.wait_for(lambda: (v := world.look("j")).state.ended and v)
    assert (view.state, view.exit_code) == (JobState.CANCELLED, None)
    assert not (world.path / "j.runs").exists()


def test_an_interrupted_cancel_is_resumed(world: LocalWorld) -> None:
    (unstarted(world) / "cancel").touch()
    assert world.look("j").state is JobState.PENDING
    assert world.wait_for(lambda: world.look("j").state is JobState.CANCELLED)


GARBAGE = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"\xff\xfe",
    b'{"state": 1}',
    b'{"job": 7, "cgroups": 7}',
    b"{}" + b" " * 9 + b"x",
]


@pytest.mark.parametrize("name", ["spec.json", "begin.json", "end.json"])
def test_garbage_in_a_record_is_unknown_never_a_crash(world: LocalWorld, name: str) -> None:
    world.finish(sh("j", "exit 3"))
    intact = world.finish(sh("k", "exit 4"))
    directory = world.directory("j")
    if name == "begin.json":
        (directory / "end.json").unlink()
    for garbage in GARBAGE:
        (directory / name).write_bytes(garbage)
        world.restart()
        view = world.look("j")
        if name == "spec.json":  # how it ended is known all the same
            assert (view.state, view.exit_code, view.nodes) == (JobState.FAILED, 3, ())
        else:
            assert view.state is JobState.UNKNOWN
            assert name in view.reason
        world.start(sh("j", "exit 9"))
        assert world.look("k") == intact
    if name != "spec.json":
        world.adapter.apply(Cancel("j"))
        assert world.wait_for(lambda: world.look("j").state is JobState.CANCELLED)


@pytest.mark.parametrize("name", ["spec.json", "begin.json", "end.json", "lock"])
def test_garbage_while_a_job_runs_leaves_it_running(world: LocalWorld, name: str) -> None:
    world.start(sh("j", "sleep 600", walltime=60.0))
    begun = world.begun("j")
    if name == "lock":
        (world.directory("j") / name).unlink()
    else:
        (world.directory("j") / name).write_bytes(b"{garbage")
    assert world.look("j").state is JobState.RUNNING
    world.start(sh("j", "true"))
    if name in ("spec.json", "begin.json"):
        os.kill(begun["keeper_pid"], signal.SIGKILL)
        world.wait_for(lambda: gone(begun["keeper_pid"]))
        assert world.look("j").state is JobState.RUNNING
    world.adapter.apply(Cancel("j"))
    assert world.wait_for(lambda: world.look("j").state is JobState.CANCELLED)
    assert gone(begun["pid"])


def test_a_garbled_spec_of_a_job_that_never_began_is_replaced(world: LocalWorld) -> None:
    (unstarted(world) / "spec.json").write_bytes(b"")
    assert world.look("j").state is JobState.UNKNOWN
    assert world.finish(world.job("j", 0.0)).state is JobState.COMPLETED


@settings(max_examples=40, deadline=None)
@given(name=st.sampled_from(["spec.json", "begin.json", "end.json"]), data=st.data())
def test_no_cut_or_changed_record_is_an_error(world: LocalWorld, name: str, data: st.DataObject) -> None:
    """A record is cut anywhere, or one byte of it is changed: the job still has a view."""
    if not (world.state / "jobs" / "whole").exists():
        world.finish(sh("whole", "exit 3"))
    shutil.copytree(world.directory("whole"), world.directory("j"), ignore=shutil.ignore_patterns("control"))
    content = (world.directory("j") / name).read_bytes()
    at = data.draw(st.integers(0, len(content) - 1))
    changed = content[:at] + data.draw(
        st.just(b"") | st.binary(min_size=1, max_size=1).map(lambda b: b + content[at + 1 :])
    )
    (world.directory("j") / name).write_bytes(changed)
    try:
        world.restart()
        assert len(world.adapter.snapshot().jobs) == 2
    finally:
        shutil.rmtree(world.directory("j"))


def test_a_stray_file_is_no_job(world: LocalWorld) -> None:
    (world.state / "jobs" / "file").write_text("x")
    (world.state / "jobs" / "empty").mkdir()
    assert world.adapter.snapshot().jobs == ()


def test_a_full_disk_starts_nothing(world: LocalWorld) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, hard))
    try:
        with pytest.raises(AdapterError) as caught:
            world.start(world.job("j", 0.0))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (caught.value.transient, caught.value.kind) == (True, "spawn")
    assert world.adapter.snapshot().jobs == ()
    assert list((world.state / "jobs").iterdir()) == []
    assert world.finish(world.job("j", 0.0)).state is JobState.COMPLETED


def test_a_keeper_without_room_for_the_end_does_not_begin(world: LocalWorld) -> None:
    """The spec fits, the space reserved for end.json does not: the job waits until there is space."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, hard))
    try:
        world.start(world.job("j", 0.0))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    view = world.wait_for(lambda: (v := world.look("j")).state is JobState.PENDING and v)
    assert "could not begin" in view.reason
    assert not (world.path / "j.runs").exists()
    world.restart()  # a new server of keepers, without the limit
    assert world.finish(world.job("j", 0.0)).state is JobState.COMPLETED
    assert world.runs("j") == 1


def test_a_missing_python_starts_nothing(world: LocalWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    with pytest.raises(AdapterError, match="could not be started") as caught:
        world.start(sh("j", "true"))
    assert caught.value.transient
    assert world.adapter.snapshot().jobs == ()


def test_one_adapter_at_a_time(world: LocalWorld) -> None:
    with pytest.raises(AdapterError, match=f"in use by another pilotfish .process {os.getpid()}."):
        create(CLUSTER, world.state)
    world.start(sh("j", "sleep 600"))
    world.restart()  # jobs and keepers do not hold the directory
    assert world.look("j").state is JobState.RUNNING


def test_a_closed_adapter_refuses_every_call(world: LocalWorld) -> None:
    world.adapter.close()
    for call in (
        world.adapter.snapshot,
        lambda: world.adapter.apply(Cancel("j")),
        lambda: world.adapter.wait(0),
    ):
        with pytest.raises(AdapterError, match="closed"):
            call()
    world.adapter = create(CLUSTER, world.state)


def test_an_unreadable_directory_is_an_error_not_an_empty_snapshot(world: LocalWorld) -> None:
    world.start(Submit("j", sh("j", "true"), ("a",)).job)
    (world.state / "jobs").rename(world.state / "elsewhere")
    with pytest.raises(AdapterError, match="cannot be read"):
        world.adapter.snapshot()
    (world.state / "elsewhere").rename(world.state / "jobs")
