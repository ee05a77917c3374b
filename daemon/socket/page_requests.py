"""The request `board`, for pages that show the whole cluster, and questions that a page asks for one of its users.

Rule: what a user sees on a page is what `access.see` lets them see elsewhere.
"""

from __future__ import annotations

import pwd
from collections.abc import Callable
from typing import Any

from ...simulate.errors import InvalidJobError
from ..loop import Cycle
from ..report.board import Board
from ..report.score_card import ScoreCard
from ..report.selection import Chosen
from ..report.status_documents import VisibleJobs
from ..state.users import Peer
from .access import Access, ForbiddenError
from .intake import Answer, text_of
from .log_requests import uid_named

#: Requests that change nothing, and that a page makes for a user whom its proxy names.
QUESTIONS = ("status", "nodes", "explain", "accuracy", "rights", "board", "card")
#: What a page shows of a card; the rest names users.
SHOWN_OF_CARD = ("judged", "days", "verdict", "handed", "measures", "utilisation", "energy_j")


class PageRequests:
    """Answers them; `overall` returns what is to be known of the whole service."""

    def __init__(self, cycle: Cycle, access: Access, overall: Callable[[], dict[str, Any]]) -> None:
        self._cycle, self._access, self._overall = cycle, access, overall

    def board(self, request: dict[str, Any], peer: Peer) -> Answer:
        """Return the board, in steps; only its `mark` if the request has that mark as `unless`.

        `for_everybody` says whether each user may see what this one sees.
        """
        tracker, forecasts = self._cycle.tracker, self._cycle.queue_forecasts
        mark = f"{self._cycle.number}-{forecasts.time:.0f}"
        if tracker.snapshot is None or request.get("unless") == mark:
            return {"mark": mark}
        shown = VisibleJobs(Chosen(), self._access.view_of(peer))
        board = Board(tracker.queue, forecasts, tracker.snapshot, shown, [tracker.limited, tracker.left])
        document = yield from board.document()
        about = self._overall() | {"cycle": self._cycle.number, "forecast_time": forecasts.time}
        return {"mark": mark, "for_everybody": self._access.everybody_sees, **about, **document}

    def card(self, request: dict[str, Any], peer: Peer) -> dict[str, Any]:
        """Return the newest card and when it was made, epoch seconds, or why it has none."""
        if not self._access.sees(peer, None):
            raise ForbiddenError("only an administrator may see the card here, which is of all users (access.see: own)")
        maker = next((one for one in self._cycle.observers if isinstance(one, ScoreCard)), None)
        if maker is None or maker.newest is None:
            why_not = "this service makes none (score.enabled; Slurm, or a record)" if maker is None else maker.why_not
            return {"card": None, "why_not": why_not}
        document, card_time = maker.newest
        return {"card": {name: document[name] for name in SHOWN_OF_CARD}, "time": card_time, "why_not": maker.why_not}

    def seen_as(self, request: dict[str, Any], peer: Peer) -> Peer:
        """Return as whom a question is answered: one who may see everything may name another user, or "" for any.

        Raises:
            ForbiddenError: a user who may not see everything names another one.
            InvalidJobError: it is no question, or there is no such user.
        """
        if request.get("as_user") is None:
            return peer
        if not self._access.views_all(peer):
            raise ForbiddenError("only administrators and access.viewers may ask as another user (as_user)")
        if request["do"] not in QUESTIONS:
            raise InvalidJobError(f"as_user: {request['do']} is for oneself alone (with: {', '.join(QUESTIONS)})")
        if not (name := str(request["as_user"])):
            return Peer(-1, -1, 0)
        uid = uid_named(text_of(request, "as_user", longest=256))
        try:
            account = pwd.getpwuid(uid)
        except (KeyError, OverflowError):
            raise InvalidJobError(f"as_user: no user {name!r} exists (allowed: names or uids of users)") from None
        return Peer(account.pw_uid, account.pw_gid, 0)
