"""A pure test that does something real fails, and is tried once; a real test may do it, and may be tried again."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import os, signal, socket, subprocess, threading, time
import pytest

def listen():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))

DEEDS = {
    "a-process": lambda: subprocess.run(["true"], check=True),
    "a-fork": lambda: os.waitpid(os.fork() or os._exit(0), 0),
    "a-thread": lambda: threading.Thread(target=int).start(),
    "a-socket": listen,
    "a-sleep": lambda: time.sleep(0.001),
    "a-signal": lambda: os.kill(os.getpid(), signal.SIGCONT),
}

@pytest.fixture(params=DEEDS.values(), ids=DEEDS)
def unmarked(request):
    request.param()

@pytest.fixture
def marked(real):
    DEEDS["a-process"]()

@pytest.mark.parametrize("deed", DEEDS.values(), ids=DEEDS)
def test_pure(deed):
    try:
        deed()
    except Exception:
        pass

def test_pure_by_its_fixture(unmarked): pass

@pytest.mark.real
@pytest.mark.parametrize("deed", DEEDS.values(), ids=DEEDS)
def test_real(deed): deed()

def test_real_by_its_fixture(marked): DEEDS["a-signal"]()

def test_what_does_nothing_is_pure():
    os.kill(os.getpid(), 0)
    time.sleep(0)

tries = {"pure": 0, "real": 0}

def count(kind):
    tries[kind] += 1
    assert tries[kind] > 1

def test_pure_fails_first(): count("pure")

@pytest.mark.real
def test_real_fails_first(): count("real")
"""
DEEDS = ("a-process", "a-fork", "a-thread", "a-socket", "a-sleep", "a-signal")


def run_in(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the tests of a folder with the marks."""
    argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "marks", *arguments]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    return subprocess.run(
        argv, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )


@pytest.mark.real
def test_deeds_need_a_mark_and_real_tests_alone_are_repeated(tmp_path: Path) -> None:
    (tmp_path / "test_deeds.py").write_text(TESTS)
    run = run_in(tmp_path, "-rAR", "test_deeds.py")
    outcomes = set(re.findall(r"^(PASSED|FAILED|ERROR|RERUN) test_deeds\.py::test_(\S+)", run.stdout, re.M))
    assert outcomes == {
        *(("FAILED", f"pure[{deed}]") for deed in DEEDS),
        *(("ERROR", f"pure_by_its_fixture[{deed}]") for deed in DEEDS),
        *(("PASSED", f"real[{deed}]") for deed in DEEDS),
        ("PASSED", "real_by_its_fixture"),
        ("PASSED", "what_does_nothing_is_pure"),
        ("FAILED", "pure_fails_first"),
        ("RERUN", "real_fails_first"),
        ("PASSED", "real_fails_first"),
    }
    assert run.stdout.count("mark it, or the fixture that does this, as real") >= 2 * len(DEEDS)


@pytest.mark.real
def test_a_pure_test_among_real_ones_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    place = tmp_path / "tests" / "real" / "test_here.py"
    place.parent.mkdir(parents=True)
    place.write_text("import pytest\n\n@pytest.mark.real\ndef test_real(): pass\n")
    assert run_in(tmp_path).returncode == 0
    place.write_text("def test_pure(): pass\n")
    run = run_in(tmp_path)
    assert run.returncode == 4
    assert "test_here.py::test_pure: a pure test in tests/real" in run.stdout
