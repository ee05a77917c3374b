"""A handler of the log that one test leaves writes nothing into the streams of the next."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LEAVES = """
import logging
import pytest
from pilotfish.daemon.systemd import set_up_logging

@pytest.fixture(scope="module")
def logged_module():
    set_up_logging("info", "plain")
    logging.getLogger("pilotfish").propagate = True

def leave(capsys):
    logging.basicConfig(level=logging.INFO)
    logging.getLogger().addHandler(logging.StreamHandler())
    logging.getLogger("pilotfish.web").addHandler(logging.StreamHandler())
"""
FIRST = (
    LEAVES
    + """
def test_leaves_a_handler(capsys):
    leave(capsys)

def test_logs_to_a_stream_that_is_open(capsys):
    logging.getLogger("pilotfish.web").warning("the service answers")
    assert capsys.readouterr().err == ""

def test_leaves_the_handler_of_its_module(capsys, logged_module):
    leave(capsys)
"""
)
SECOND = """
import logging

def test_logs_to_a_stream_that_is_open(capsys):
    logging.getLogger("pilotfish.web").warning("the service answers")
    assert capsys.readouterr().err == "" and logging.getLogger("pilotfish").level == logging.NOTSET
"""


@pytest.mark.real
def test_handlers_are_forgotten_with_the_test_and_with_the_module(tmp_path: Path) -> None:
    (tmp_path / "test_first.py").write_text(FIRST)
    (tmp_path / "test_second.py").write_text(SECOND)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    for plugins, passed in ((["-p", "log_handlers"], "4 passed"), ([], "2 failed, 2 passed")):
        argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugins]
        run = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert passed in run.stdout, run.stdout + run.stderr
