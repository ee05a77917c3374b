"""Old workflows go once a day, a part after each cycle; what cannot be dropped is tried again the next day."""

from __future__ import annotations

from collections.abc import Iterator

from pilotfish.daemon.state.journal import JournalError
from pilotfish.daemon.timing.pruning import EVERY_S, Pruning

DAY = 86_400.0


class Journal:
    """Notes the times of questions, and drops three parts."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.steps, self.fails = 0, False

    def prune_steps(self, before: float) -> Iterator[list[str]]:
        self.times.append(before)
        for number in range(3):
            if self.fails:
                raise JournalError("the disk is full")
            self.steps += 1
            yield [f"w.{number}/a"]


class Adapter:
    def __init__(self) -> None:
        self.forgotten: list[str] = []

    def forget(self, key: str) -> None:
        self.forgotten.append(key)


def test_a_part_goes_after_each_cycle_once_a_day() -> None:
    journal, adapter = Journal(), Adapter()
    pruning = Pruning(journal, adapter, lambda: 30.0)
    start = pruning._due_at
    pruning.prune(100 * DAY, start - 1.0)
    assert journal.times == []
    for number in range(6):
        pruning.prune(100 * DAY + number, start + number)
        assert journal.steps == min(number + 1, 3)
    assert adapter.forgotten == ["w.0/a", "w.1/a", "w.2/a"] and journal.times == [70 * DAY]
    pruning.prune(101 * DAY, start + EVERY_S)
    assert journal.times == [70 * DAY, 71 * DAY]


def test_without_a_clock_nothing_is_old() -> None:
    journal = Journal()
    pruning = Pruning(journal, Adapter(), lambda: 30.0)
    pruning.prune(0.0, pruning._due_at + 1.0)
    assert journal.times == []


def test_what_cannot_be_dropped_is_tried_again_the_next_day() -> None:
    journal = Journal()
    pruning = Pruning(journal, Adapter(), lambda: 30.0)
    start, journal.fails = pruning._due_at, True
    for number in range(3):
        pruning.prune(100 * DAY, start + number)
    assert journal.times == [70 * DAY]
    journal.fails = False
    pruning.prune(101 * DAY, start + EVERY_S)
    assert journal.steps == 1
