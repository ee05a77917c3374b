"""The keeper imports only the standard library and itself; processes are identified by more than an id."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import pilotfish.adapters.local as local
from pilotfish.adapters.local import processes
from pilotfish.adapters.local.job_process import outcome
from pilotfish.adapters.local.sampler import Pace, Sampler


@pytest.mark.real
def test_the_keeper_loads_only_what_it_needs() -> None:
    code = "import sys; sys.path.append(sys.argv[1]); import local.keeper; print(*sys.modules)"
    rooms = str(Path(local.__file__).parent.parent)
    command = [sys.executable, "-I", "-S", "-E", "-c", code, rooms]
    loaded = set(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split())
    parts = ("cgroups", "job_files", "job_process", "keeper", "processes", "sampler")
    assert {name for name in loaded if name.startswith("local")} == {
        "local",
        *(f"local.{part}" for part in parts),
    }
    assert loaded.isdisjoint({"pilotfish", "typing", "subprocess", "dataclasses", "asyncio", "psutil", "numpy"})


def test_a_process_is_identified_by_id_start_and_boot() -> None:
    me = os.getpid()
    ticks, boot = processes.start_ticks(me), processes.boot_id()
    assert ticks is not None
    assert processes.is_alive(me, ticks, boot)
    assert not processes.is_alive(me, ticks + 1, boot)
    assert not processes.is_alive(me, ticks, "another boot")
    assert not processes.is_alive(0, 0, boot)


@pytest.mark.real
def test_a_zombie_is_not_alive_and_is_still_a_child() -> None:
    child = subprocess.Popen(["/bin/true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert processes.start_ticks(child.pid) is None
    child.wait()
    assert processes.start_ticks(child.pid) is None


@pytest.mark.real
def test_descendants_are_found_with_and_without_the_kernels_list() -> None:
    line = "sleep 60 & sleep 60 & echo up; wait"
    with subprocess.Popen(["/bin/sh", "-c", line], stdout=subprocess.PIPE, start_new_session=True) as shell:
        try:
            assert shell.stdout and shell.stdout.readline() == b"up\n"
            pids = processes.descendants(shell.pid)
            assert len(pids) == 2
            assert processes._below(shell.pid) == pids
            assert {shell.pid, *pids} <= processes.descendants(os.getpid())
        finally:
            os.killpg(shell.pid, 9)


@pytest.mark.real
def test_marked_processes_are_those_of_that_directory_alone(tmp_path: Path) -> None:
    env = {processes.MARK: str(tmp_path / "j")}
    with subprocess.Popen(["/bin/sleep", "60"], env=env) as process:
        try:
            while Path(f"/proc/{process.pid}/comm").read_text() != "sleep\n":
                time.sleep(0.01)
            assert processes.marked(str(tmp_path / "j")) == {process.pid}
            assert processes.marked(str(tmp_path)) == set()
            assert processes.marked(str(tmp_path / "j2")) == set()
        finally:
            process.kill()


@pytest.mark.real
def test_sums_of_tasks_that_ended_between_samples_are_kept(tmp_path: Path) -> None:
    sampler = Sampler(Pace(str(tmp_path / "pace")))
    sampler.start()
    burn = "import time\nwhile time.process_time() < 0.2: pass\nprint('x', flush=True)\ninput()"
    for _ in range(2):
        with subprocess.Popen([sys.executable, "-c", burn], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            assert child.stdout and child.stdout.readline()
            sampler.sample([child.pid])
            sampler.sample([child.pid])
            child.communicate(b"\n")
    sampler.sample([])
    assert 0.4 <= sampler.usage()["on_core_seconds"] < 2.0
    assert sampler.usage()["tasks"] == 1


def test_a_sampler_without_samples_reports_nothing(tmp_path: Path) -> None:
    sampler = Sampler(Pace(str(tmp_path / "pace")))
    assert not sampler.started
    sampler.sample([2**22 + 1])
    assert sampler.usage() == {}


def test_every_exit_code_is_itself() -> None:
    ends = [outcome(code << 8, None, "", False) for code in range(256)]
    assert [end["exit_code"] for end in ends] == list(range(256))
    assert [end["state"] for end in ends] == ["completed"] + ["failed"] * 255


@pytest.mark.parametrize(
    "status, stop, said, over, expected",
    [
        (
            9,
            None,
            "",
            True,
            ("failed", 137, 9, "ended by SIGKILL; a process was killed: over the job's memory limit"),
        ),
        (11, None, "", False, ("failed", 139, 11, "ended by SIGSEGV")),
        (3 << 8, None, "", False, ("failed", 3, None, "")),
        (3 << 8, None, "", True, ("failed", 3, None, "a process was killed: over the job's memory limit")),
        (40, None, "", False, ("failed", 168, 40, "ended by signal 40")),
        (0, ("timeout", "late"), "", False, ("timeout", 0, None, "late")),
        (15, ("cancelled", "cancelled"), "", True, ("cancelled", 143, 15, "cancelled")),
        (127 << 8, None, "cannot run x", False, ("failed", 127, None, "cannot run x")),
    ],
)
def test_outcomes(status: int, stop, said: str, over: bool, expected: tuple[object, ...]) -> None:
    end = outcome(status, stop, said, over)
    assert tuple(end[name] for name in ("state", "exit_code", "signal", "reason")) == expected
