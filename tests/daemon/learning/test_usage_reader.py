"""Usage of ended jobs is read from the accounting: rarely, for many jobs at once, until it is known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pilotfish.adapters.base import AdapterError
from pilotfish.daemon.learning.node_speeds import at_speeds
from pilotfish.daemon.learning.profile_learning import LearnedProfiles
from pilotfish.daemon.learning.usage_reader import GIVE_UP_S, LATER_S, LONGEST_S, MOST, UsageReader
from pilotfish.daemon.state.pending_usage import PendingUsage
from pilotfish.daemon.state.unsaved import Unsaved
from pilotfish.profiles.store import ProfileStore
from pilotfish.simulate.model.accounting_record import AccountingRecord
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Job

DELAY_S, EVERY_S = 30.0, 60.0
AWAY = AdapterError("sacct: Connection refused", transient=True, kind="unreachable")
SLOW = AdapterError("sacct did not answer within 5 s", transient=True, kind="timeout")
GARBLED = AdapterError("sacct: job 3: 'x' is not a count", kind="parse")


class Accounting:
    """A bench whose manager has accounting.

    `kept`: records by key, None = no accounting; `problem`: raised by requests, or only by those with the key `poison`.
    """

    def __init__(self, bench, tmp_path) -> None:
        self.bench, self.kept, self.problem, self.poison = bench, {}, None, ""
        self.asked: list[tuple[float, list[str]]] = []
        self.store = ProfileStore(tmp_path / "profiles.sqlite")
        bench.manager.usage = self.usage
        bench.observers = self.observers
        bench.restart()

    def usage(self, since):
        self.asked.append((self.bench.manager.time, sorted(since)))
        if self.problem and (not self.poison or self.poison in since):
            raise self.problem
        return None if self.kept is None else {key: self.kept[key] for key in since if key in self.kept}

    def observers(self, tracker) -> list[UsageReader]:
        bench, profiles = self.bench, LearnedProfiles(self.store.path)
        return [
            UsageReader(
                bench.manager, bench.journal, profiles, bench.metrics, tracker.queue, tracker.unsaved,
                lambda: bench.manager.time, delay_s=DELAY_S, every_s=EVERY_S,
            )
        ]  # fmt: skip

    def end(self, *names: str, cpu_s: float | None = 8.0, traits: tuple[tuple[str, str], ...] = ()) -> list[str]:
        """Let jobs run to their ends, with records in the accounting; return their keys."""
        jobs = [Job(name, DEFAULT_PROFILE, command=(name, "x"), traits=traits) for name in names]
        self.bench.manager.takes |= dict.fromkeys(names, 3.0)
        flow = self.bench.submit(*jobs)
        keys = [f"{flow}/{name}" for name in names]
        self.kept |= {
            key: AccountingRecord("", True, "2026-11-22T05:15:08Z", 10.0, cpu_s=cpu_s, placed=("n1",)) for key in keys
        }
        views = self.bench.manager.views
        while not all(key in views and views[key].state.ended for key in keys):
            self.bench.run()
        self.bench.run()
        return keys

    def learned(self, name: str) -> int:
        """Return the number of stored runs of a program."""
        return len(self.store.history(f"cmd: {name} x"))

    def waiting(self) -> int:
        """Return the number of jobs that are still pending."""
        return len(self.bench.journal.usage_due(1e18, 10**6))


@pytest.fixture
def accounting(bench, tmp_path) -> Accounting:
    return Accounting(bench, tmp_path)


def test_usage_is_learned_some_time_after_a_jobs_end(accounting) -> None:
    (key,) = accounting.end("a")
    assert accounting.asked == [] and accounting.waiting() == 1
    ended = accounting.bench.manager.time
    accounting.bench.run(200)
    ((asked, keys),) = accounting.asked
    assert keys == [key] and asked - ended >= DELAY_S - 5.0
    profile = accounting.store.get("cmd: a x")
    assert (profile.groups[0].count, profile.groups[0].demand, profile.groups[0].utilisation) == (1, 8.0, 0.8)
    assert profile.measured_on == "small" and profile.provenance.note.startswith("measured by memory accounting")
    assert accounting.waiting() == 0 and accounting.bench.value("accounting_jobs_total", outcome="learned") == 1.0


def test_a_run_on_nodes_of_other_speeds_than_usual_is_one_on_their_type(accounting) -> None:
    manager = accounting.bench.manager
    manager.cluster = at_speeds(manager.cluster, [0.8333, 1.1])
    (key,) = accounting.end("a")
    accounting.kept[key] = replace(accounting.kept[key], placed=tuple(node.name for node in manager.cluster.nodes))
    accounting.bench.run(200)
    assert len(manager.cluster.types) == 2 and accounting.store.get("cmd: a x").measured_on == "small"


def test_what_identifies_a_job_is_kept_with_its_run(accounting) -> None:
    accounting.end("a", traits=(("user", "5"), ("queue", "batch")))
    accounting.end("b")
    accounting.bench.run(200)
    (kept,), (other,) = (accounting.store.history(f"cmd: {name} x") for name in "ab")
    assert kept.traits.pop("submit_time") > 0.0 and other.traits == {}
    assert kept.traits == {"user": "5", "queue": "batch", "size": 1, "walltime": None}


def test_requests_are_rare_and_for_many_jobs(accounting) -> None:
    for name in "abc":
        accounting.end(name)
    accounting.bench.run(300)
    assert sum(len(keys) for _, keys in accounting.asked) == 3 and len(accounting.asked) <= 2
    accounting.bench.run(600)
    assert len(accounting.asked) <= 2, "no request without pending jobs"


def test_failed_and_unmeasured_jobs_teach_nothing(accounting, caplog) -> None:
    accounting.bench.manager.exits["bad"] = 1
    accounting.end("bad")
    assert accounting.waiting() == 0, "a failed job is never pending"
    accounting.end("a", cpu_s=None)
    accounting.end("b", cpu_s=None)
    accounting.bench.run(300)
    assert not accounting.learned("a") and accounting.waiting() == 0
    assert caplog.text.count("has no CPU time of some jobs") == 1
    assert accounting.bench.value("accounting_jobs_total", outcome="not measured") == 2.0


def test_impossible_numbers_teach_nothing(accounting, caplog) -> None:
    accounting.end("a", cpu_s=500.0)
    (other,) = accounting.end("b")
    accounting.kept[other] = replace(accounting.kept[other], memory_bytes=1e12)
    accounting.bench.run(300)
    assert not accounting.learned("a") and accounting.bench.value("accounting_jobs_total", outcome="impossible") == 1.0
    assert accounting.learned("b") == 1
    assert accounting.store.get("cmd: b x").memory == 0.0, "more than the node has"
    assert "has no CPU time" not in caplog.text and accounting.waiting() == 0


def test_runs_whose_cpu_time_filled_another_number_of_threads_are_of_one_program(accounting) -> None:
    for cpu_s in (30.0, 32.0):
        (key,) = accounting.end("a", cpu_s=cpu_s)
        accounting.kept[key] = replace(accounting.kept[key], cores=4)
        accounting.bench.run(200)
    profile = accounting.store.get("cmd: a x")
    assert profile.provenance.runs == 2
    assert (profile.groups[0].count, profile.groups[0].demand) == (4, 7.75)


def test_an_outage_is_logged_once_and_no_job_is_forgotten(accounting, caplog) -> None:
    accounting.problem = AWAY
    accounting.end("a")
    accounting.bench.run(4000)
    times = [time for time, _ in accounting.asked]
    assert len(times) <= 10 and LONGEST_S - 1 <= times[-1] - times[-2] <= LONGEST_S + 1
    assert caplog.text.count("cannot be read from the accounting: sacct: Connection refused; 1 job or more waits") == 1
    accounting.bench.restart()
    accounting.problem = None
    accounting.bench.run(100)
    assert accounting.learned("a") == 1 and accounting.waiting() == 0


def test_the_end_of_an_outage_is_logged(accounting, caplog) -> None:
    accounting.problem = AWAY
    accounting.end("a")
    accounting.bench.run(200)
    accounting.problem = None
    accounting.bench.run(400)
    assert caplog.text.count("the accounting of memory can be read again") == 1 and accounting.learned("a") == 1


def test_a_missing_record_is_asked_for_with_growing_gaps_until_given_up(accounting) -> None:
    (key,) = accounting.end("a")
    entry = accounting.kept.pop(key)
    accounting.bench.run(50, step_s=100.0)
    times = [time for time, _ in accounting.asked]
    assert 4 <= len(times) <= 9
    accounting.kept[key] = entry
    accounting.bench.run(80, step_s=100.0)
    assert accounting.learned("a") == 1
    (key,) = accounting.end("b")
    del accounting.kept[key]
    accounting.bench.run(int(GIVE_UP_S / LATER_S) * 2, step_s=LATER_S)
    assert accounting.waiting() == 0 and accounting.bench.value("accounting_jobs_total", outcome="not found") == 1.0


@pytest.mark.parametrize("problem", [SLOW, GARBLED])
def test_one_unreadable_record_does_not_block_the_others(accounting, problem: AdapterError) -> None:
    keys = [key for name in "abcde" for key in accounting.end(name)]
    accounting.problem, accounting.poison = problem, keys[1]
    accounting.bench.run(200, step_s=100.0)
    assert [accounting.learned(name) for name in "abcde"] == [1, 0, 1, 1, 1]
    accounting.problem = None
    accounting.bench.run(100, step_s=100.0)
    assert accounting.learned("b") == 1 and accounting.waiting() == 0


def test_without_accounting_no_job_stays_pending(accounting) -> None:
    accounting.end("a")
    accounting.kept = None
    accounting.bench.run(200)
    assert accounting.waiting() == 0 and accounting.bench.value("accounting_jobs_total", outcome="not kept") == 1.0


def test_a_read_only_journal_makes_no_job_teach_twice(accounting) -> None:
    accounting.end("a")
    accounting.bench.journal._db.execute("PRAGMA query_only=1")
    accounting.bench.run(400)
    assert accounting.learned("a") == 1 and len(accounting.asked) > 1
    accounting.bench.journal._db.execute("PRAGMA query_only=0")
    accounting.bench.run(200)
    assert accounting.learned("a") == 1 and accounting.waiting() == 0


def test_an_unreadable_journal_stops_no_cycle(accounting, caplog):
    accounting.end("a")
    database = accounting.bench.journal._db
    database.execute("ALTER TABLE accounting RENAME TO away")
    accounting.bench.run(90)
    assert "cannot be read" in caplog.text and not accounting.asked
    database.execute("ALTER TABLE away RENAME TO accounting")
    accounting.bench.run(600)
    assert accounting.learned("a") == 1 and accounting.waiting() == 0


def test_an_unusable_profile_store_loses_no_usage(accounting) -> None:
    accounting.store.path.write_bytes(b"no store at all" * 100)
    accounting.end("a")
    accounting.bench.run(400)
    assert accounting.waiting() == 1
    accounting.store.path.unlink()
    accounting.bench.run(4000)
    assert accounting.learned("a") == 1 and accounting.waiting() == 0


def test_one_request_is_bounded(accounting) -> None:
    keys = [f"memory/{number}" for number in range(MOST + 10)]
    accounting.bench.journal.save(
        [], unsaved=Unsaved(pending=[PendingUsage(key, "cmd: a x", 0.0, 900.0, 900.0) for key in keys])
    )
    accounting.kept |= dict.fromkeys(keys, AccountingRecord("", True, "", 10.0, cpu_s=8.0))
    accounting.bench.run(200)
    assert [len(found) for _, found in accounting.asked] == [MOST, 10]
    assert accounting.bench.value("accounting_jobs_total", outcome="learned") == len(keys) and accounting.waiting() == 0
