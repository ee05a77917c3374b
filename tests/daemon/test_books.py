"""What ended jobs used, asked of the accounting: seldom, of many at once, and until it is known."""

from __future__ import annotations

import pytest

from pilotfish.adapters.base import AdapterError
from pilotfish.daemon.books import GIVE_UP_S, LATER_S, LONGEST_S, MOST, Books
from pilotfish.daemon.memory import Memory
from pilotfish.daemon.wanted import Wanted
from pilotfish.profiles.store import ProfileStore
from pilotfish.simulate.booked import Booked
from pilotfish.simulate.job import DEFAULT_PROFILE, Job

DELAY_S, EVERY_S = 30.0, 60.0
AWAY = AdapterError("sacct: Connection refused", transient=True, kind="unreachable")
SLOW = AdapterError("sacct did not answer within 5 s", transient=True, kind="timeout")
GARBLED = AdapterError("sacct: job 3: 'x' is not a count", kind="parse")


class Accounting:
    """A bench whose manager keeps books: `kept` by key (None: it keeps none), `problem` while they cannot be read,
    `poison` a key for which nothing can be read."""

    def __init__(self, bench, tmp_path) -> None:
        self.bench, self.kept, self.problem, self.poison = bench, {}, None, ""
        self.asked: list[tuple[float, list[str]]] = []
        self.store = ProfileStore(tmp_path / "profiles.sqlite")
        bench.manager.books = self.books
        self.watch()

    def books(self, since):
        self.asked.append((self.bench.manager.time, sorted(since)))
        if self.problem and (not self.poison or self.poison in since):
            raise self.problem
        return None if self.kept is None else {key: self.kept[key] for key in since if key in self.kept}

    def watch(self) -> None:
        bench, clock = self.bench, lambda: self.bench.manager.time
        memory = Memory(self.store.path)
        bench.cycle.books = Books(
            bench.manager, bench.journal, memory, bench.metrics, clock, delay_s=DELAY_S, every_s=EVERY_S
        )

    def restart(self) -> None:
        self.bench.kill()
        self.bench.start()
        self.watch()

    def end(self, *names: str, cpu_s: float | None = 8.0) -> list[str]:
        """Let jobs run to their ends; the books have them. Returns their keys."""
        jobs = [Job(name, DEFAULT_PROFILE, command=(name, "x")) for name in names]
        self.bench.manager.takes |= dict.fromkeys(names, 3.0)
        flow = self.bench.submit(*jobs)
        keys = [f"{flow}/{name}" for name in names]
        self.kept |= {key: Booked("", True, "2026-11-22T05:15:08Z", 10.0, cpu_s=cpu_s, placed=("n1",)) for key in keys}
        views = self.bench.manager.views
        while not all(key in views and views[key].state.ended for key in keys):
            self.bench.run()
        self.bench.run()
        return keys

    def learned(self, name: str) -> int:
        """How many runs are known of a program."""
        return len(self.store.history(f"cmd: {name} x"))

    def waiting(self) -> int:
        """How many jobs are still to be asked for."""
        return len(self.bench.journal.books_due(1e18, 10**6))


@pytest.fixture
def books(bench, tmp_path) -> Accounting:
    return Accounting(bench, tmp_path)


def test_what_a_job_used_is_learned_some_time_after_its_end(books) -> None:
    (key,) = books.end("a")
    assert books.asked == [] and books.waiting() == 1
    ended = books.bench.manager.time
    books.bench.run(200)
    ((asked, keys),) = books.asked
    assert keys == [key] and asked - ended >= DELAY_S - 5.0
    profile = books.store.get("cmd: a x")
    assert (profile.groups[0].count, profile.groups[0].demand, profile.groups[0].utilisation) == (1, 8.0, 0.8)
    assert profile.measured_on == "small" and profile.provenance.note.startswith("measured by memory accounting")
    assert books.waiting() == 0 and books.bench.value("booked_jobs_total", outcome="learned") == 1.0


def test_many_are_asked_for_at_once_and_seldom(books) -> None:
    for name in "abc":
        books.end(name)
    books.bench.run(300)
    assert sum(len(keys) for _, keys in books.asked) == 3 and len(books.asked) <= 2
    books.bench.run(600)
    assert len(books.asked) <= 2, "nothing is asked while nothing is wanted"


def test_what_failed_or_was_not_measured_teaches_nothing(books, caplog) -> None:
    books.bench.manager.exits["bad"] = 1
    books.end("bad")
    assert books.waiting() == 0, "a job that failed is not even asked for"
    books.end("a", cpu_s=None)
    books.end("b", cpu_s=None)
    books.bench.run(300)
    assert not books.learned("a") and books.waiting() == 0
    assert caplog.text.count("has no CPU time of some jobs") == 1
    assert books.bench.value("booked_jobs_total", outcome="not measured") == 2.0


def test_while_it_is_away_pauses_grow_nothing_is_forgotten_and_it_is_said_once(books, caplog) -> None:
    books.problem = AWAY
    books.end("a")
    books.bench.run(4000)
    times = [time for time, _ in books.asked]
    assert len(times) <= 10 and LONGEST_S - 1 <= times[-1] - times[-2] <= LONGEST_S + 1
    assert caplog.text.count("cannot be read from the accounting: sacct: Connection refused; 1 job or more waits") == 1
    books.restart()
    books.problem = None
    books.bench.run(100)
    assert books.learned("a") == 1 and books.waiting() == 0


def test_that_it_is_back_is_said(books, caplog) -> None:
    books.problem = AWAY
    books.end("a")
    books.bench.run(200)
    books.problem = None
    books.bench.run(400)
    assert caplog.text.count("can be read from the accounting of memory again") == 1 and books.learned("a") == 1


def test_who_is_not_in_the_books_yet_is_asked_for_with_growing_gaps_and_at_last_no_more(books) -> None:
    (key,) = books.end("a")
    entry = books.kept.pop(key)
    books.bench.run(50, step_s=100.0)
    times = [time for time, _ in books.asked]
    assert 4 <= len(times) <= 9
    books.kept[key] = entry
    books.bench.run(80, step_s=100.0)
    assert books.learned("a") == 1
    (key,) = books.end("b")
    del books.kept[key]
    books.bench.run(int(GIVE_UP_S / LATER_S) * 2, step_s=LATER_S)
    assert books.waiting() == 0 and books.bench.value("booked_jobs_total", outcome="not found") == 1.0


@pytest.mark.parametrize("problem", [SLOW, GARBLED])
def test_one_job_whose_entry_cannot_be_read_does_not_keep_the_others(books, problem: AdapterError) -> None:
    keys = [key for name in "abcde" for key in books.end(name)]
    books.problem, books.poison = problem, keys[1]
    books.bench.run(200, step_s=100.0)
    assert [books.learned(name) for name in "abcde"] == [1, 0, 1, 1, 1]
    books.problem = None
    books.bench.run(100, step_s=100.0)
    assert books.learned("b") == 1 and books.waiting() == 0


def test_where_no_books_are_kept_nothing_is_kept_either(books) -> None:
    books.end("a")
    books.kept = None
    books.bench.run(200)
    assert books.waiting() == 0 and books.bench.value("booked_jobs_total", outcome="not kept") == 1.0


def test_a_journal_that_takes_nothing_lets_nothing_be_learned_twice(books) -> None:
    books.end("a")
    books.bench.journal._db.execute("PRAGMA query_only=1")
    books.bench.run(400)
    assert books.learned("a") == 1 and len(books.asked) > 1
    books.bench.journal._db.execute("PRAGMA query_only=0")
    books.bench.run(200)
    assert books.learned("a") == 1 and books.waiting() == 0


def test_a_journal_that_cannot_be_read_costs_no_cycle(books, caplog):
    books.end("a")
    database = books.bench.journal._db
    database.execute("ALTER TABLE books RENAME TO away")
    books.bench.run(90)
    assert "cannot be read" in caplog.text and not books.asked
    database.execute("ALTER TABLE away RENAME TO books")
    books.bench.run(600)
    assert books.learned("a") == 1 and books.waiting() == 0


def test_a_store_that_cannot_be_used_loses_nothing(books) -> None:
    books.store.path.write_bytes(b"no store at all" * 100)
    books.end("a")
    books.bench.run(400)
    assert books.waiting() == 1
    books.store.path.unlink()
    books.bench.run(4000)
    assert books.learned("a") == 1 and books.waiting() == 0


def test_one_request_is_bounded(books) -> None:
    keys = [f"memory/{number}" for number in range(MOST + 10)]
    books.bench.journal.save([], wanted=[Wanted(key, "cmd: a x", 0.0, 900.0, 900.0) for key in keys])
    books.kept |= dict.fromkeys(keys, Booked("", True, "", 10.0, cpu_s=8.0))
    books.bench.run(200)
    assert [len(found) for _, found in books.asked] == [MOST, 10]
    assert books.bench.value("booked_jobs_total", outcome="learned") == len(keys) and books.waiting() == 0
