"""A handler of the log that one test leaves writes nothing into the streams of the next."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LEAVES = """
import logging

def test_leaves_a_handler(capsys):
    logging.basicConfig(level=logging.INFO)
    kept = logging.StreamHandler()
    logging.getLogger().addHandler(kept)

def test_logs_to_a_stream_that_is_open(capsys):
    logging.getLogger("pilotfish.web").warning("the service answers")
    assert capsys.readouterr().err == ""
"""


@pytest.mark.real
def test_handlers_are_forgotten_with_the_test(tmp_path: Path) -> None:
    (tmp_path / "test_leaves.py").write_text(LEAVES)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    for plugins, passed in ((["-p", "log_handlers"], "2 passed"), ([], "1 failed, 1 passed")):
        argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugins]
        run = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert passed in run.stdout, run.stdout + run.stderr
