"""Running programs next to a real streamer, a small and quick one."""

import json
import os
import subprocess
import sys
import time
from contextlib import closing

import pytest

from pilotfish.cli.__main__ import main
from pilotfish.profiles.interference import score_runs
from pilotfish.profiles.interference.score_runs import CoRunError, Streamer, buffer_size, co_run
from pilotfish.profiles.probes.process_tree import children
from pilotfish.profiles.store import ProfileStore

CPUS = sorted(os.sched_getaffinity(0))
pytestmark = pytest.mark.skipif(len(CPUS) < 2, reason="one CPU: a streamer has none for itself")
BURN = (sys.executable, "-IS", "-c", "import time\nwhile time.thread_time() < 0.15: pass")
SIZE = 4 << 20


@pytest.fixture(autouse=True)
def small_and_quick(monkeypatch, tmp_path):
    monkeypatch.setenv("PILOTFISH_STATE", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(score_runs, "ALONE_S", 0.05)
    monkeypatch.setattr(score_runs, "buffer_size", lambda: SIZE)


def on_core(pid):
    """Seconds that a process of one thread has been on a core."""
    with open(f"/proc/{pid}/schedstat") as file:
        return int(file.read().split()[0]) * 1e-9


@pytest.mark.real
def test_a_streamer_moves_and_keeps_its_pressure():
    with Streamer(CPUS[-1], 0.25, SIZE) as streamer:
        assert streamer.rate_over(0.1) > 1e6
        pid = streamer._process.pid
        assert os.sched_getaffinity(pid) == {CPUS[-1]}
        began, before = time.monotonic(), on_core(pid)
        time.sleep(0.5)
        assert 0 < on_core(pid) - before < 0.8 * (time.monotonic() - began)
    assert pid not in children(os.getpid())


@pytest.mark.real
def test_a_streamer_ends_with_its_parent():
    code = (
        "import os\nfrom pilotfish.profiles.interference.score_runs import Streamer\n"
        f"s = Streamer({CPUS[-1]}, 1.0, {SIZE})\ns.rate()\nprint(s._process.pid, flush=True)\nos._exit(0)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    deadline = time.monotonic() + 60
    while os.path.exists(f"/proc/{int(said.stdout)}") and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not os.path.exists(f"/proc/{int(said.stdout)}")


@pytest.mark.real
def test_an_ended_streamer_is_one_error():
    with Streamer(CPUS[-1], 1.0, SIZE) as streamer:
        streamer._process.kill()
        streamer._process.wait()
        with pytest.raises(CoRunError, match="does not answer"):
            streamer.rate()


def test_buffers_are_larger_than_a_cache_and_much_smaller_than_memory(monkeypatch):
    monkeypatch.undo()
    assert 1 << 20 <= buffer_size() <= score_runs.LARGEST


@pytest.mark.real
def test_scores_of_a_program_that_only_computes():
    scores = co_run("burn", BURN, rounds=2)
    assert [level.pressure for level in scores.levels] == list(score_runs.PRESSURES)
    assert scores.rounds == 2
    assert scores.sensitivity == pytest.approx(1.0, abs=0.15)  # it ends by its own core time
    assert all(level.rate > 0 and level.slowed > 0 for level in scores.levels)


@pytest.mark.real
def test_a_program_that_fails_or_is_too_short_has_no_scores():
    with pytest.raises(CoRunError, match="exit code 3") as caught:
        co_run("x", ["/bin/sh", "-c", "exit 3"], rounds=1)
    assert caught.value.exit_code == 3
    with pytest.raises(CoRunError, match="too short"):
        co_run("x", ["/bin/true"], rounds=1)


@pytest.mark.real
def test_the_command_prints_node_type_keys_and_stores_the_scores(capfd, tmp_path):
    assert main(["profile", "corun", "--name", "burn", "--rounds", "1", "--node-type", "here", "--", *BURN]) == 0
    said = capfd.readouterr()
    assert "relative score" in said.out and "\nco_run_inflation:\n  burn: {streamer: 1" in said.out
    assert all(len(line) <= 80 for line in said.out.splitlines())
    assert "round 1 of 1" in said.err
    with closing(ProfileStore(tmp_path / "profiles.sqlite")) as store:
        (kept,) = store.scores("burn")
    assert (kept.rounds, kept.node_type) == (1, "here") and kept.date.startswith("20")


@pytest.mark.real
def test_the_command_in_json_leaves_stdout_alone(capfd):
    loud = ["/bin/sh", "-c", f"echo loud; exec {sys.executable} -IS -c 'sum(range(20000000))'"]
    assert main(["profile", "corun", "--rounds", "1", "--json", "--", *loud]) == 0
    said = capfd.readouterr()
    found = json.loads(said.out)
    assert found["schema"] == "pilotfish/corun/v1" and found["source"] == "relative score"
    assert "loud" in said.err


@pytest.mark.real
@pytest.mark.parametrize(
    ("argv", "code", "word"),
    [
        (["true"], 1, "too short"),
        (["no-such-command-here"], 127, "not found"),
        (["/bin/sh", "-c", "exit 7"], 7, "exit code 7"),
        ([], 64, "COMMAND"),
        (["--rounds", "0", "true"], 64, "rounds"),
        (["--cpus", "x", "true"], 64, "cpus"),
        (["--cpus", ",".join(map(str, CPUS)), "true"], 64, "no CPU for the streamer"),
        (["--name", "", "true"], 64, "name"),
        (["--node-type", "", "true"], 64, "node-type"),
    ],
)
def test_errors_are_reported(capfd, argv, code, word):
    assert main(["profile", "corun", *argv]) == code
    said = capfd.readouterr()
    assert word in said.err and "Traceback" not in said.err
    assert said.out == ""
