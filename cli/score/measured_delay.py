"""The start delay of a card, from what the service itself measured.

Rule: a service that has placed jobs has measured each part of the delay. One in shadow has measured how long a
submission takes to be seen; the rest is assumed. What is assumed is called so on the card.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...formats.text import count

if TYPE_CHECKING:
    from ...simulate.slurm.start_delay import StartDelay

#: Measurements that a distribution needs; values that stand for it.
FEWEST, VALUES = 10, 1000
#: The delay, and its part after a submission is seen, where nothing was measured, seconds.
ASSUMED_S, PLACING_S = (1.0, 2.0, 3.0), (0.5, 1.0, 1.5)
_PLACING = ("decided", "sent", "started")


def measured_delay(path: Path | None) -> StartDelay:
    """Return how long a held job waits for its placement. A file that cannot be read counts as missing.

    Args:
        path: delays.json of the service, see `daemon.report.delays`; None: there is no service.
    """
    import numpy as np

    from ...daemon.report.delays import Delays, read_delays
    from ...simulate.slurm.start_delay import StartDelay
    from ...trust import as_account, owner_of

    delays = Delays()
    if path is not None and path.is_file():
        with as_account(owner_of(path)):
            delays = read_delays(path)
    submissions, starts = (delays.samples[phase] for phase in ("submitted", "started"))
    if len(submissions) < FEWEST:
        return StartDelay(ASSUMED_S, 0, "assumed: the service has measured nothing yet" if path else "assumed")
    number, source = len(starts), f"measured on {count(len(starts), 'start')}"
    placing: list[Sequence[float]] = [delays.samples[phase] for phase in _PLACING]
    if number < FEWEST:
        number, placing = len(submissions), [PLACING_S]
        source = f"measured on {count(number, 'submission')}; placing is assumed to take {PLACING_S[1]:.0f} s of it"
    draw = np.random.default_rng(0)
    parts = sum(draw.choice(np.array(part), VALUES) for part in (submissions, *placing))
    return StartDelay(tuple(np.maximum(parts, 0.0).tolist()), number, source)
