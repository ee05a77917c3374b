"""The request `log`: the audit, for administrators, and for users what concerns their own jobs.

Rule: nothing that one asks for is written anywhere. Who may see the jobs of all users (`access.see`) may not therefore
see who decided about them: a line is shown to the job's user and to administrators.
"""

from __future__ import annotations

import pwd
from collections.abc import Callable, Iterable
from typing import Any

from ...simulate.errors import InvalidJobError
from ..loop import Cycle
from ..state.audit import AuditQuestion
from ..state.journal import Journal
from ..state.users import Peer, user_name
from .access import Access, ForbiddenError
from .intake import text_of

#: Lines of an answer: the newest ones.
MOST_LINES = 1000
#: Longest name of a job or user, and text of a time.
_LONGEST = 256
Reaped = Callable[[AuditQuestion], list[dict[str, Any]]]


def audit_reply(journal: Journal, reaped: Reaped, question: AuditQuestion) -> dict[str, Any]:
    """Return the lines of the audit, the oldest first, and whether there are older ones. Raises JournalError.

    Args:
        journal: has them.
        reaped: returns what the reaper did.
        question: the selection.
    """
    lines = sorted([*journal.audited(question), *reaped(question)], key=lambda line: line["time"])
    shown = lines[-question.most :]
    for line in shown:
        line["user"] = None if line["owner"] is None else user_name(line["owner"])
    return {"lines": shown, "older": len(lines) > len(shown)}


def keys_of(job: str, adapter: str, workflows: Iterable[str]) -> tuple[str, ...]:
    """Return the names under which the audit may have a job.

    Args:
        job: as it is asked for, with or without its workflow.
        adapter: name of the resource manager.
        workflows: ids of workflows that have a job of that name.
    """
    if "/" in job:
        return job, job.partition("/")[0]
    return job, f"{adapter}/{job}", *(f"{workflow}/{job}" for workflow in workflows)


def uid_named(name: str) -> int:
    """Return the uid of a user, given by name or uid. Raises InvalidJobError."""
    if name.isascii() and name.isdecimal() and len(name) < 11:
        return int(name)
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        raise InvalidJobError(f"no user {name!r} exists (allowed: names or uids of users)") from None


class LogRequests:
    """Answers it; the arguments are those of `rpc.Requests`, and `reaped` as in `audit_reply`."""

    def __init__(self, cycle: Cycle, journal: Journal, access: Access, reaped: Reaped = lambda question: []) -> None:
        self._adapter, self._journal, self._access, self._reaped = cycle.adapter, journal, access, reaped

    def log(self, request: dict[str, Any], peer: Peer) -> dict[str, Any]:
        """Return the newest lines that the user may see. Raises ForbiddenError, InvalidJobError."""
        names = {
            name: text_of(request, name, longest=_LONGEST)
            for name in ("job", "user", "since")
            if request.get(name) is not None
        }
        owner = uid_named(names["user"]) if "user" in names else None
        if not self._access.administers(peer):
            if owner not in (None, peer.uid):
                raise ForbiddenError("only an administrator may see what was decided about the jobs of other users")
            owner = peer.uid
        try:
            since = float(names.get("since", 0.0))
        except ValueError:
            raise InvalidJobError(f"since: found {names['since']} (allowed: epoch seconds)") from None
        keys = None
        if job := names.get("job"):
            workflows = () if "/" in job else self._journal.workflows_with(job)
            keys = keys_of(job, self._adapter.name, list(workflows)[:MOST_LINES])
        return audit_reply(self._journal, self._reaped, AuditQuestion(keys, owner, since, MOST_LINES))
