"""The part of the daemon, or the person, that decided each action: for the audit.

Rule: whatever makes an action names itself; what is not named is the policy's. A name is kept for one cycle, but that
of a user who cancelled a job until the job is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..simulate.model.plan import Action
from ..simulate.model.snapshot import Snapshot
from .learning.forecast_errors import owner_of
from .state.audit import Decision, decide
from .state.pauses import Pause
from .state.queue import Queue

#: The names of what decides without a policy.
DEADLINE, CONFIGURATION, POWER_SAVING, CANARY = "deadline", "configuration", "power saving", "canary"
#: A request of the account that the service runs as: systemd sends those of `systemctl reload` with it.
SERVICE_ACCOUNT = "the service's own account"


def administrator(name: str) -> str:
    """Return how the audit names an administrator; `name` as `Peer` writes it."""
    return f"administrator {name}" if name else CONFIGURATION


def decided_by_policy(policy: str, *, is_fallback: bool) -> str:
    """Return how the audit names the policy of a plan, which the guard may have put in place of the configured one."""
    return f"guard rail: policy {policy}" if is_fallback else f"policy {policy}"


class Deciders:
    """Names what decided each action of a cycle; `queue` has the jobs."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._policy = ""
        self._of: dict[str, str] = {}
        self._cancelled_by: dict[str, str] = {}

    def note_policy(self, policy: str, *, is_fallback: bool) -> None:
        """Note the policy of the last plan."""
        self._policy = decided_by_policy(policy, is_fallback=is_fallback)

    def note_cancel(self, keys: Iterable[str], by: str) -> None:
        """Note the user who cancelled jobs."""
        self._cancelled_by = {key: who for key, who in self._cancelled_by.items() if self._queue.find(key)}
        self._cancelled_by |= dict.fromkeys(keys, by)

    def note_cycle(
        self, *, cancelled: Iterable[Action], given_back: Iterable[tuple[Action, Pause | None]], due: Iterable[Action]
    ) -> None:
        """Note what decided the actions of a cycle that are not the policy's.

        Args:
            cancelled: by users.
            given_back: because of a pause.
            due: because their time was over.
        """
        self._of = {action.key: self._cancelled_by.get(action.key, "its user") for action in cancelled}
        self._of |= {action.key: administrator(pause.by if pause else "") for action, pause in given_back}
        self._of |= {action.key: DEADLINE for action in due}

    def decisions(self, actions: Sequence[Action], snapshot: Snapshot) -> list[Decision]:
        """Return the actions with what decided them and their jobs as the snapshot shows them."""
        decisions = list[Decision]()
        for action in actions:
            view, entry = snapshot.jobs.by_key.get(action.key), self._queue.find(action.key)
            owner = view.job.owner if view is not None else None
            if entry is not None:
                owner = owner_of(entry, self._queue.submissions[entry.workflow])
            by = self._of.get(action.key) or self._policy or "policy"
            if by == DEADLINE and view is not None and view.due is not None and not view.offered:
                by = CANARY  # it is left to the resource manager
            decisions.append(decide(action, by, view, owner, snapshot.time))
        return decisions
