"""Carry actions out: live through the adapter, or only noted (shadow) or printed (dry run).

Rule: a failed action is a value with the reason. The next snapshot shows whether it happened after all. A resource
manager that is slow to answer makes a cycle do less, not last longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from ..adapters.base import NOT_SENT, Adapter, AdapterError
from ..simulate.model.plan import Action, Release, Start
from .run_modes import RunMode
from .state.applied import Applied, describe

#: Seconds after which a cycle makes no further start, and as many after which it makes no other action.
LONGEST_S = 5.0
#: Most releases in a cycle, so that the jobs of one user do not keep those of all others waiting.
MOST_RELEASES = 32
#: Jobs whose last decision is remembered while nothing is carried out.
MOST_SHOWN = 10_000


@dataclass(slots=True)
class Live:
    """Carries actions out through the resource manager."""

    adapter: Adapter
    mode: RunMode = RunMode.LIVE

    def new(self, actions: Sequence[Action]) -> list[Action]:
        """Return the actions to carry out: all but the releases beyond MOST_RELEASES, which are due again."""
        releases = [action for action in actions if isinstance(action, Release)]
        later = {id(action) for action in releases[MOST_RELEASES:]}
        return [action for action in actions if id(action) not in later]

    def apply(self, action: Action) -> None:
        """Hand the action to the adapter. Raises AdapterError."""
        self.adapter.apply(action)


@dataclass(slots=True)
class Recording:
    """Carries nothing out, and shows every action as one line: the applier of shadow and of a dry run.

    As nothing is done, every cycle makes the same decision. It is one decision, until it changes. Of many thousand
    jobs, those that were shown long ago may be shown again.

    Args:
        show: called with each line.
        preview: returns the commands of an action, which are printed after it.
        about: returns what follows the action in its line.
        shown: the last line of each job.
    """

    show: Callable[[str], None]
    preview: Callable[[Action], Iterable[str]] = lambda action: ()
    about: Callable[[Action], str] = lambda action: ""
    mode: RunMode = RunMode.DRY_RUN
    shown: dict[str, str] = field(default_factory=dict)

    def new(self, actions: Sequence[Action]) -> list[Action]:
        """Return the actions that are not the last one printed for their jobs."""
        return [action for action in actions if self.shown.get(action.key) != describe(action)]

    def apply(self, action: Action) -> None:
        """Print the action, unless it is the last one printed for its job."""
        if self.new([action]):
            self.shown.pop(action.key, None)
            self.shown[action.key] = describe(action)
            if len(self.shown) > MOST_SHOWN:
                del self.shown[next(iter(self.shown))]
            self.show(describe(action) + self.about(action))
            for command in self.preview(action):
                self.show(f"  {command}")


Applier = Live | Recording


def carry_out(actions: Iterable[Action], applier: Applier, clock: Callable[[], float]) -> list[Applied]:
    """Apply each action in turn, also after one that failed; return the outcomes.

    Those for which there is no time in this cycle are not sent; starts and other actions do not delay each other.

    Args:
        actions: to carry out.
        applier: carries them out.
        clock: seconds, monotonic.
    """
    results, spent = [], {True: 0.0, False: 0.0}
    for action in actions:
        is_start = isinstance(action, Start)
        if spent[is_start] > LONGEST_S:
            why = f"the resource manager is slow: it waits for the next cycle, {LONGEST_S:g} s of this one have passed"
            results.append(Applied(action, why, transient=True, sent=False))
            continue
        began = clock()
        try:
            applier.apply(action)
            outcome = Applied(action)
        except AdapterError as error:
            outcome = Applied(action, str(error) or error.kind, error.transient, error.kind not in NOT_SENT)
        ended = clock()
        results.append(replace(outcome, began=began, ended=ended))
        spent[is_start] += ended - began
    return results
