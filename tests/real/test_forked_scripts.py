"""A script in a fork does and shows what it does and shows in a process of its own, see tests/workers.py."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
import workers

SCRIPT = """
import json, os, signal, sys
from pathlib import Path

mine = {name: Path(f"/proc/self/{name}").read_bytes().decode().split("\\0") for name in ("cmdline", "environ")}
umask = os.umask(0)
caught = [signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler) for number in (2, 15)]
mine |= {"argv": sys.argv, "env": dict(os.environ), "cwd": os.getcwd(), "umask": umask, "caught": caught}
mine |= {"user": [os.getresuid(), os.getresgid(), os.getgroups()], "name": __name__, "path": sys.path}
mine |= {"files": sorted(os.listdir("/proc/self/fd")), "encodings": [sys.stdout.encoding, sys.stderr.errors]}
print(json.dumps(mine, sort_keys=True))
print("an error", file=sys.stderr)
"""
ENDS = ("sys.exit(3)", "sys.exit('a text')", "1 / 0", "sys.exit()", "", "os.kill(os.getpid(), 9)", "os._exit(300)")

Process = workers.Forked | subprocess.Popen[bytes]


@pytest.fixture
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a function that starts a script in a fork and in a process, and returns both with their output's files."""
    if not workers._path().exists():
        pytest.skip("SKIPPED, without workers nothing is forked: run with -n")
    if os.readlink("/proc/self/ns/mnt") != workers.MOUNTS:
        pytest.skip("SKIPPED, this worker has other mounts, because it ran OAR: nothing is forked from it")

    def start(text: str, *arguments: str, user: str = "") -> list[tuple[Process, list[Path]]]:
        script, found = tmp_path / "script.py", []
        script.write_text(text)
        for number in (0, 1):
            files = [tmp_path / f"{number}-{name}" for name in ("out", "err")]
            streams = [file.open("w") for file in files]
            env = os.environ | {"MINE": "é"}
            found.append((workers.start([script, *arguments], env, *streams, user=user), files))
            assert isinstance(found[-1][0], (workers.Forked, subprocess.Popen)[number])
            for stream in streams:
                stream.close()
            monkeypatch.setattr(workers, "MOUNTS", "others")
        return found

    return start


def test_it_has_the_same_surroundings(both) -> None:
    said = [(process.wait(60), *(file.read_text() for file in files)) for process, files in both(SCRIPT, "a", "b c")]
    assert said[0] == said[1] and "MINE=\\u00e9" in said[0][1] and said[0][2] == "an error\n"


@pytest.mark.parametrize("end", ENDS)
def test_it_ends_the_same_way(both, end: str) -> None:
    (fork, files), (process, others) = both(f"import os, sys\nprint('begun')\n{end}\n")
    assert fork.wait(60) == process.wait(60) and files[0].read_text() == others[0].read_text()
    last = [file.read_text().splitlines()[-1:] for file in (files[1], others[1])]

    assert last[0] == last[1]


def test_signals_reach_it_and_only_while_it_runs(both) -> None:
    for process, files in both("import time\nprint('begun', flush=True)\ntime.sleep(600)\n"):
        while not files[0].read_text():
            assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        process.terminate()
        assert process.wait(60) == process.poll() == -signal.SIGTERM
        process.kill()


def test_a_variable_that_only_a_start_obeys_is_obeyed(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('mine')")
    (tmp_path / "empty.py").write_text("")
    with (tmp_path / "out").open("w") as out:
        process = workers.start([tmp_path / "empty.py"], os.environ | {"PYTHONPATH": str(tmp_path)}, out, out)
    assert process.wait(60) == 0 and (tmp_path / "out").read_text() == "mine\n"
