"""A process that forecasts a Slurm's queue by Slurm's own rules, so that the daemon's loop never waits.

Rule: it dies with its parent, takes what others leave of the CPUs, and has one question at a time. A thread hands the
question over and takes the answer; the loop does not wait for it. Questions and answers are lines of JSON.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict, replace
from threading import Thread

from ...simulate.errors import PilotfishError
from ..compilation import die_with
from .twin_messages import TwinAnswer, TwinQuestion

#: Niceness of the process.
NICE = 10


class TwinProcess:
    """Starts the process for the first question, and again after it has failed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._answer: Future[TwinAnswer] | None = None

    @property
    def is_busy(self) -> bool:
        """True from a question until its answer was taken."""
        return self._answer is not None

    def ask(self, question: TwinQuestion) -> None:
        """Hand a question over; the process must not be busy."""
        answer = self._answer = Future[TwinAnswer]()
        try:
            process = self._process = self._process or _start()
        except OSError as error:
            answer.set_exception(PilotfishError(f"no process can be started: {error.strerror}"))
            return
        Thread(target=_exchange, args=(process, question, answer), name="twin", daemon=True).start()

    def take(self) -> TwinAnswer | None:
        """Return the answer, once; None: it has not come. Raises PilotfishError: the process failed."""
        if self._answer is None or not self._answer.done():
            return None
        answer, self._answer = self._answer, None
        try:
            return answer.result()
        except PilotfishError:
            self.close()
            raise

    def close(self) -> None:
        """End the process, whatever it does."""
        process, self._process, self._answer = self._process, None, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


def _start() -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-P", "-m", __name__, str(os.getpid())]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)


def _exchange(process: subprocess.Popen[bytes], question: TwinQuestion, answer: Future[TwinAnswer]) -> None:
    """Hand a question over, and wait for the answer."""
    try:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(asdict(question)).encode() + b"\n")
        process.stdin.flush()
        fields = json.loads(process.stdout.readline() or b"null")
        if fields is None:
            raise PilotfishError("its process ended; the log of the service has what it wrote")
        jobs = {number: tuple(times) for number, times in fields["jobs"].items()}
        answer.set_result(TwinAnswer(**{**fields, "jobs": jobs, "unfollowed": tuple(fields["unfollowed"])}))
    except (OSError, ValueError) as error:  # it was killed
        answer.set_exception(PilotfishError(f"its process was lost: {error}"))
    except PilotfishError as error:
        answer.set_exception(error)


def _work(parent: int) -> None:
    """Answer the questions on the standard input, until it closes."""
    from .twin_forecasts import forecast_site  # it loads the compiled rules, which the daemon does not need

    die_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    with suppress(OSError):
        os.nice(NICE)
    for line in sys.stdin.buffer:
        began, fields = time.process_time(), json.loads(line)
        answer = forecast_site(TwinQuestion(**{**fields, "runs": {k: tuple(v) for k, v in fields["runs"].items()}}))
        answer = replace(answer, cpu_s=time.process_time() - began)
        sys.stdout.write(json.dumps(asdict(answer)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _work(int(sys.argv[1]))
