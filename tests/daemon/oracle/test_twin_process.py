"""A process that forecasts: it answers, is ended, and is started again after it was lost."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from pilotfish.daemon.oracle.twin_forecasts import forecast_site
from pilotfish.daemon.oracle.twin_messages import TwinAnswer, TwinQuestion
from pilotfish.daemon.oracle.twin_process import TwinProcess
from pilotfish.simulate.errors import PilotfishError
from tests.support.slurm_queue_lines import RUNNING, SUBMIT, WAITING, line, present_texts

pytestmark = pytest.mark.real
QUESTION = TwinQuestion(
    present_texts(line(1, RUNNING), line(2, WAITING)), {}, SUBMIT + 4200.0, {"2": (50.0, 60.0, 70.0, 0)}, {"2": SUBMIT}
)


def answered(process: TwinProcess) -> TwinAnswer:
    deadline = time.monotonic() + 120.0
    while (answer := process.take()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return answer


def test_it_answers_as_this_process_would_and_nobody_waits() -> None:
    process = TwinProcess()
    began = time.monotonic()
    process.ask(QUESTION)
    assert time.monotonic() - began < 0.5 and process.is_busy
    answer, expected = answered(process), forecast_site(QUESTION)
    assert answer.jobs == expected.jobs and answer.unfollowed == expected.unfollowed and answer.cpu_s > 0.0
    assert not process.is_busy and process.take() is None
    process.ask(QUESTION)
    assert answered(process).jobs == expected.jobs
    process.close()


def test_a_process_that_is_lost_is_started_again() -> None:
    process = TwinProcess()
    process.ask(QUESTION)
    child = process._process
    assert child is not None
    child.kill()
    with pytest.raises(PilotfishError):
        answered(process)
    assert child.poll() is not None
    process.ask(QUESTION)
    assert answered(process).jobs
    last = process._process
    process.close()
    assert last is not None and last.poll() is not None


def test_the_daemon_itself_loads_nothing_of_the_compiled_rules() -> None:
    code = "import sys, pilotfish.daemon.service, pilotfish.adapters.slurm.adapter; print('numba' in sys.modules)"
    result = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
