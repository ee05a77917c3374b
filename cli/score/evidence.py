"""The traces of a service: its forecasts in the journal, and the requests that it sent.

Rule: nothing is changed, and what is not kept is None. A journal is copied before it is read.
"""

from __future__ import annotations

import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..service.accuracy import read_journal, records_of

if TYPE_CHECKING:
    from ...daemon.config import DaemonConfig
    from ...daemon.report.accuracy import Accuracy
    from ...daemon.report.start_accuracy import StartAccuracy

#: How long the metrics of a running service are waited for, seconds.
_PATIENCE_S = 2.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """The traces of a service.

    Args:
        begin: the first submission or forecast in the journal, epoch seconds; None: it has none.
        starts: the errors of forecasts of starts, pilotfish's and Slurm's own.
        run_times: the errors of forecasts of run times; None: no job with one has completed.
        requests: to the resource manager since the service began; None: not known.
    """

    begin: float | None
    starts: Sequence[StartAccuracy]
    run_times: Accuracy | None
    requests: int | None


def evidence_of(config: DaemonConfig, since: float | None) -> Evidence | None:
    """Return what a service has left behind; None if it has no journal. Raises ConfigError, OSError.

    Args:
        config: of the service.
        since: forecasts of jobs that ended or started before are not counted, epoch seconds; None: all are.
    """
    from ...daemon.report.accuracy import accuracy, known
    from ...daemon.report.start_accuracy import start_accuracy

    if not config.journal.is_file():
        return None
    jobs, starts = records_of(read_journal(config.journal))
    times = [time for one in starts for time in (one.submit_time, one.said_time) if time is not None]
    first = since or float("-inf")
    recent = known(job for job in jobs if job.time >= first)
    return Evidence(
        begin=min([*times, *(job.time for job in jobs)], default=None),
        starts=start_accuracy(one for one in starts if (one.start_time or 0.0) >= first),
        run_times=accuracy("all", recent) if recent else None,
        requests=_requests(config),
    )


def _requests(config: DaemonConfig) -> int | None:
    """Return the requests that a running service counts in its metrics; None if none answers."""
    if not config.metrics.enabled or config.metrics.port == 0:
        return None
    address = config.metrics.address
    url = f"http://{f'[{address}]' if ':' in address else address}:{config.metrics.port}/metrics"
    try:
        with urllib.request.urlopen(url, timeout=_PATIENCE_S) as answer:
            text = answer.read().decode()
    except (OSError, ValueError):
        return None
    return sent_requests(text)


def sent_requests(text: str) -> int | None:
    """Return the sum of the requests that were sent, from the text of metrics; None: it has no such metric."""
    numbers = [
        float(line.rsplit(" ", 1)[1])
        for line in text.splitlines()
        if line.startswith("pilotfish_adapter_requests_total{")
        and not any(f'result="{word}"' in line for word in ("open", "budget"))
    ]
    return int(sum(numbers)) if numbers else None
