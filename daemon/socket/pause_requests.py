"""The requests `pause` and `resume`: an administrator stops the daemon, or a partition of it, and lets it go on.

Rule: a pause counts at once, also in the middle of a plan, and also if the journal cannot be written; the reply then
says that a restart would forget it. Who asked is in the log and in the journal.
"""

from __future__ import annotations

import logging
import math
from dataclasses import asdict
from typing import Any

from ...simulate.errors import InvalidJobError, PilotfishError, did_you_mean
from ..deciders import administrator
from ..due_releases import handed_back
from ..loop import Cycle
from ..state.pauses import Pause
from ..state.users import Peer
from .access import Access
from .intake import text_of

log = logging.getLogger("pilotfish.requests")
#: Characters of a reason, and of the name of a partition.
LONGEST_TEXT = 256
#: Longest pause that ends by itself, seconds: a year.
LONGEST_S = 366 * 86_400.0
#: What becomes of held jobs: they are given back at once, or stay held until their deadlines.
_HELD = ("release", "keep")


class PauseRequests:
    """Answers them; the arguments are those of `rpc.Requests`."""

    def __init__(self, cycle: Cycle, access: Access) -> None:
        self._cycle, self._tracker, self._access = cycle, cycle.tracker, access

    def pause(self, request: dict[str, Any], peer: Peer) -> dict[str, Any]:
        """Begin a pause, or replace the one of the same partition. Raises ForbiddenError, PilotfishError."""
        self._access.check_administers(peer)
        if not self._cycle.applier.mode.keeps:
            raise PilotfishError("a dry run keeps nothing, so there is nothing to pause")
        since, length_s = self._tracker.present, _seconds(request)
        if not since and length_s is not None:
            raise PilotfishError("the cluster's clock has not been read yet; try again, or pause without an end")
        pause = Pause(
            _text(request, "partition"), since, None if length_s is None else since + length_s, _text(request, "why"),
            str(peer), _keeps_held(request),
        )  # fmt: skip
        self._tracker.pauses.begin(pause)
        log.warning("%s pauses it: %s", peer, pause.reason)
        self._tracker.note_change("pause", administrator(str(peer)), pause.partition, why=pause.why)
        warning = self._keep()
        snapshot = self._tracker.snapshot
        held = (
            handed_back(snapshot, lambda job: pause if self._tracker.pauses.of(job) is pause else None)
            if snapshot
            else ()
        )
        return {"pause": asdict(pause), "held": len(held), "warning": warning or self._unknown(pause.partition)}

    def resume(self, request: dict[str, Any], peer: Peer) -> dict[str, Any]:
        """End the pause of a partition, or every pause. Raises ForbiddenError, PilotfishError."""
        self._access.check_administers(peer)
        partition = _text(request, "partition") or None
        ended = self._tracker.pauses.end(partition)
        names = [pause.partition for pause in self._tracker.pauses if pause.partition]
        if partition is not None and not ended:
            why = did_you_mean(partition, names) or ("; all jobs are" if self._tracker.pauses.of_all else "")
            raise PilotfishError(f"partition {partition} is not paused{why}")
        for pause in ended:
            log.warning("%s ends the pause: %s", peer, pause.reason)
            self._tracker.note_change("resume", administrator(str(peer)), pause.partition)
        warning = self._keep() if ended else ""
        if self._tracker.paused:
            warning = "it stays paused by its configuration: take `paused: true` away, and reload"
        elif partition and self._tracker.pauses.of_all:
            warning = "all jobs are still paused"
        return {"ended": [asdict(pause) for pause in ended], "warning": warning}

    def _keep(self) -> str:
        """Write the pauses to the journal; return a warning if that fails."""
        self._tracker.note_pauses()
        self._tracker.note_input("pauses", self._tracker.pauses.state())
        self._tracker.save()
        if self._tracker.blocked:
            return "it holds, but the journal cannot be written: a restart would not know it"
        return ""

    def _unknown(self, partition: str) -> str:
        """Return a warning if no job of a partition is in the queue, "" otherwise."""
        snapshot = self._tracker.snapshot
        if not partition or snapshot is None:
            return ""
        traits = (dict(view.job.traits).get("queue", "") for view in snapshot.jobs)
        names = {name for text in traits for name in text.split(",") if name}
        return "" if partition in names else f"no job of {partition} is in the queue{did_you_mean(partition, names)}"


def _text(request: dict[str, Any], name: str) -> str:
    """Return a text of a request, or "" if it has none. Raises InvalidJobError."""
    return text_of(request, name, longest=LONGEST_TEXT) if request.get(name) is not None else ""


def _seconds(request: dict[str, Any]) -> float | None:
    """Return how long the pause lasts, None if it has no end. Raises InvalidJobError."""
    text = _text(request, "for_s")
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= LONGEST_S:
        raise InvalidJobError(f"for_s: found {text} (allowed: seconds, more than 0, at most {LONGEST_S:g})")
    return value


def _keeps_held(request: dict[str, Any]) -> bool:
    """Return whether jobs stay held until their deadlines. Raises InvalidJobError."""
    text = _text(request, "held") or _HELD[0]
    if text not in _HELD:
        raise InvalidJobError(f"held: found {text} (allowed: {', '.join(_HELD)})")
    return text == _HELD[1]
