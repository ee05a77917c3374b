"""The card of the service, made once a day in a process of its own.

Rule: `pilotfish score` makes it, so that its numbers are those that a person sees. The process takes what others leave
of the CPUs, MOST_CPU_S of them at most, and ends with the service, also if that is killed. The loop only starts it and
looks whether it has ended. A card that fails leaves the one before, and the log says why, once for each reason. The
newest card outlasts the service, in a file; one that cannot be read counts as missing.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...formats.documents.atomic_write import write_whole
from ...formats.text import clean
from ...simulate.model.snapshot import Snapshot
from ...trust import open_file
from .cycle_report import CycleReport, Observer
from .score_metrics import ScoreMetrics

log = logging.getLogger("pilotfish.service")
#: Seconds from the start of the service to the first card; niceness, and most CPU time of the process, seconds.
FIRST_S, NICE, MOST_CPU_S = 3600.0, 10, 1800
#: Longest text of an error that is logged, characters.
_LONGEST = 300
SCHEMA = "pilotfish/kept-card/v1"
#: Most bytes of the file that are read.
LARGEST = 2**26


def score_command(config: Path) -> list[str]:
    """Return the command by which this process lets the card of a service be printed as a document.

    Args:
        config: file of the service.
    """
    program = [sys.executable, "-P", "-m", "pilotfish.daemon.report.score_process", str(os.getpid())]
    return [*program, "score", "--config", str(config.absolute()), "--workers", "1", "--json"]


class ScoreCard(Observer):
    """Makes the card.

    Args:
        command: prints it.
        metrics: show it.
        clock: seconds, monotonic.
        every_s: from the begin of a card to the begin of the next, seconds.
        file: has the newest card; None: it is not kept.

    Attributes:
        requests: to the resource manager that the cards have sent, without those of cards that failed.
        newest: the document of the newest card and when it was made, epoch seconds; None: none was made yet.
        why_not: why the last card failed, or was not made yet; "".
    """

    def __init__(
        self,
        command: Sequence[str],
        metrics: ScoreMetrics,
        clock: Callable[[], float],
        every_s: float,
        file: Path | None = None,
    ) -> None:
        self._command, self._metrics, self._clock, self._every_s = command, metrics, clock, every_s
        self._file = file
        self._due = clock() + min(FIRST_S, every_s)
        self._process: subprocess.Popen[bytes] | None = None
        self.newest: tuple[dict[str, Any], float] | None = None
        self.why_not = "the first one is made an hour after the start of the service"
        self.requests = 0
        if file is not None:
            self._show_kept(file)

    @property
    def is_busy(self) -> bool:
        """Return whether a card is being made."""
        return self._process is not None

    def on_cycle(self, report: CycleReport, snapshot: Snapshot) -> None:
        """Begin a card if one is due, or show the one that is ready."""
        if self._process is not None:
            self._take(self._process)
        elif (now := self._clock()) >= self._due:
            self._due = now + self._every_s
            self._begin()

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._end()

    def _begin(self) -> None:
        self._answer, self._errors = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
        try:
            self._process = process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=self._answer, stderr=self._errors,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            )  # fmt: skip
        except OSError as error:
            self._fail(f"no process can be started: {error.strerror}")
            return
        with suppress(OSError):  # it has ended already
            os.setpriority(os.PRIO_PROCESS, process.pid, NICE)
            resource.prlimit(process.pid, resource.RLIMIT_CPU, (MOST_CPU_S, MOST_CPU_S))

    def _take(self, process: subprocess.Popen[bytes]) -> None:
        """Show the card if its process has ended."""
        if process.poll() is None:
            return
        self._answer.seek(0)
        self._errors.seek(0)
        answer, errors = self._answer.read(), self._errors.read().decode(errors="replace").strip()
        self._end()
        if process.returncode:
            last = clean(errors.rpartition("\n")[2])[:_LONGEST]
            self._fail(last or f"its process ended with code {process.returncode}")
            return
        try:
            document, now = json.loads(answer), time.time()
            self._show(document, now)
            self.requests += document["own_requests"] or 0
        except (ValueError, KeyError, TypeError) as error:
            self._fail(f"its document cannot be read: {error!r}"[:_LONGEST])
            return
        self.why_not = ""
        log.info("a card was made: `pilotfish score` shows it, and the metrics have its numbers")
        if self._file is not None:
            try:
                write_whole(self._file, json.dumps({"schema": SCHEMA, "time": now, "card": document}) + "\n")
            except OSError as error:
                log.warning("a restart will not know the card: %s", error)

    def _show(self, document: dict[str, Any], made: float) -> None:
        """Show a card that was made then, epoch seconds. Raises KeyError, TypeError: it is no card."""
        self._metrics.show(document, made)
        self.newest = document, made

    def _show_kept(self, file: Path) -> None:
        try:
            with os.fdopen(open_file(file), "rb") as stream:
                document = json.loads(stream.read(LARGEST))
            self._show(document["card"], float(document["time"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return
        self.why_not = ""

    def _end(self) -> None:
        assert self._process is not None, "a process was started"
        self._process.wait()
        self._process = None
        self._answer.close()
        self._errors.close()

    def _fail(self, why_not: str) -> None:
        if why_not != self.why_not:
            log.warning("no card can be made: %s", why_not)
        self.why_not = why_not
