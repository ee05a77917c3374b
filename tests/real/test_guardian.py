"""A test run that is interrupted leaves nothing running: not its daemons, not those in sessions of their own."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import guardian
import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"
#: Starts a daemon as daemons start: two forks, a session of its own, no parent left; then it waits itself.
RUN = """
import subprocess, time

DAEMON = "setsid sh -c 'trap : TERM; while :; do sleep 0.2; done; echo {folder}' >/dev/null 2>&1 </dev/null & echo $!"

def test_it_waits():
    subprocess.run(["sh", "-c", "(" + DAEMON + ")"], check=True, stdout=subprocess.DEVNULL)
    open("started", "w").close()
    time.sleep(600)
"""
PATIENCE_S = 60.0
#: pytest starts in half the time without plugins; a run within this one needs none but xdist.
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "xdist", "-p", "no:cacheprovider"]
FEW_PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "conftest.py").write_text(
        f"import sys\nsys.path.insert(0, {str(CONFTEST.parent)!r})\nimport guardian\n\n"
        "def pytest_configure(config):\n    if not hasattr(config, 'workerinput'):\n"
        "        guardian.start(*guardian.outer())\n"
    )
    yield tmp_path
    for pid in running(tmp_path):  # where the guardian failed
        os.kill(pid, signal.SIGKILL)


def running(folder: Path) -> list[int]:
    """Return the processes of the inner run that have its folder in their command line."""
    word, found = os.fsencode(folder), []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if int(name) != os.getpid() and word in Path(f"/proc/{name}/cmdline").read_bytes():
                found.append(int(name))
        except OSError:
            continue
    return found


def until(wanted: Callable[[], object]) -> bool:
    """Return whether it became true in time."""
    deadline = time.monotonic() + PATIENCE_S
    while not wanted():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_a_run_that_ends_takes_its_daemons_with_it(folder: Path, number: signal.Signals, workers: tuple[str]) -> None:
    (folder / "test_it.py").write_text(RUN.format(folder=folder))
    nowhere = subprocess.DEVNULL
    run = subprocess.Popen(
        [*PYTEST, *workers, str(folder)],
        cwd=folder,
        start_new_session=True,
        env=os.environ | FEW_PLUGINS,
        stdout=nowhere,
        stderr=nowhere,
    )
    assert until((folder / "started").exists), "the inner run did not start"
    assert len(running(folder)) >= 2
    run.send_signal(number)
    run.wait(PATIENCE_S)
    assert until(lambda: not running(folder)), running(folder)


@pytest.mark.parametrize("rule", ["", "test:\n\t@$(MAKE) -s run\n"], ids=["alone", "within another"])
def test_the_end_of_make_ends_the_run(folder: Path, rule: str) -> None:
    (folder / "test_it.py").write_text(RUN.format(folder=folder))
    pytest_line = shlex.join([*PYTEST, str(folder)])
    (folder / "Makefile").write_text(f"{rule}{'run' if rule else 'test'}:\n\t@exec {pytest_line} >/dev/null 2>&1\n")
    run = subprocess.Popen(["make", "-s", "test"], cwd=folder, start_new_session=True, env=os.environ | FEW_PLUGINS)
    assert until((folder / "started").exists), "the inner run did not start"
    run.kill()
    run.wait(PATIENCE_S)
    assert until(lambda: not running(folder)), running(folder)


def test_a_command_under_guard_takes_its_children_with_it(folder: Path) -> None:
    line = f"sleep 600 & touch {folder}/started; sleep 600; echo {folder}"
    run = subprocess.Popen([sys.executable, guardian.__file__, "sh", "-c", line], start_new_session=True)
    assert until((folder / "started").exists)
    mark = next(
        word.rpartition(b":")[2].rpartition(b"=")[2].decode()
        for word in Path(f"/proc/{run.pid}/environ").read_bytes().split(b"\0")
        if word.startswith(guardian.MARK.encode())
    )
    assert len(guardian.marked(mark)) >= 2
    run.kill()
    run.wait(PATIENCE_S)
    assert until(lambda: not guardian.marked(mark))


def test_the_folders_of_a_run_and_of_a_run_within_it_are_removed_with_what_is_mounted_there(folder: Path) -> None:
    mount = "mkdir $F/state && { mount -t tmpfs tmpfs $F/state || :; } 2>/dev/null"
    inner = (
        f"F=${guardian.FOLDER}; {mount}; echo $F > {folder}/inner.new; mv {folder}/inner.new {folder}/inner; sleep 600"
    )
    guarded = [sys.executable, guardian.__file__, "sh", "-c"]
    outer = f"echo ${guardian.FOLDER} > {folder}/outer; {shlex.join([*guarded, inner])}; sleep 1"
    run = subprocess.Popen([*guarded, outer], start_new_session=True)
    assert until((folder / "inner").exists)
    made = [Path((folder / name).read_text().strip()) for name in ("outer", "inner")]
    assert made[0] != made[1] and all(place.is_dir() for place in made)
    run.kill()
    run.wait(PATIENCE_S)
    assert until(lambda: not any(place.exists() for place in made)), made


def test_a_held_daemon_that_overwrites_its_environment_is_found(folder: Path) -> None:
    daemon = f"setsid env -i sh -c 'while :; do sleep 0.2; done; echo {folder}' >/dev/null 2>&1 </dev/null &"
    inner = f"{shlex.join((*guardian.HOLD, 'sh', '-c', daemon))} && touch {folder}/started; sleep 600"
    run = subprocess.Popen([sys.executable, guardian.__file__, "sh", "-c", inner], start_new_session=True)
    assert until((folder / "started").exists) and until(lambda: running(folder))
    run.kill()
    run.wait(PATIENCE_S)
    assert until(lambda: not running(folder)), running(folder)


@pytest.mark.parametrize("code", [0, 3])
def test_the_holder_ends_with_its_commands_exit_status(code: int) -> None:
    assert subprocess.run([*guardian.HOLD, "sh", "-c", f"exit {code}"]).returncode == code


def test_other_processes_are_left_alone() -> None:
    with subprocess.Popen(["sleep", "600"]) as other:
        guardian.end("0" * 32)
        assert other.poll() is None
        other.kill()
