"""The doctor's findings about clocks of login nodes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.adapters.findings import NOTE, WARNING, Finding
from pilotfish.adapters.slurm.doctor import check_clocks
from pilotfish.adapters.slurm.handed_over.ownership import is_held
from pilotfish.adapters.slurm.records import SlurmJob
from pilotfish.simulate.model.snapshot import JobState
from tests.support.slurm_answers import NOW, about, asked_of

HOLD = 600.0


def job(number: int, by: float, uid: int = 1000, **settings: object) -> SlurmJob:
    """A held job that begins `by` seconds later than its hold says."""
    fields = {"submit": NOW - 100, "begin": NOW - 100 + HOLD + by, "comment": "pilotfish:hold=600", "uid": uid}
    return SlurmJob(number, JobState.PENDING, **(fields | settings))


def found(jobs: list[SlurmJob], hosts: dict[int, str] | None = None) -> list[Finding]:
    return list(check_clocks.findings(jobs, hosts or dict.fromkeys(range(100), "login1"), NOW))


def test_jobs_of_a_login_node_show_its_clock() -> None:
    hosts = {number: "login1" if number < 10 else "login2" for number in range(20)}
    jobs = [job(n, 40.0 + n / 10, 1000 + n % 3) for n in range(5)] + [job(10 + n, 1.0) for n in range(5)]
    (only,) = found(jobs, hosts)
    assert only.level is WARNING and only.mend == ("timedatectl set-ntp true   # on login1",)
    assert "5 jobs of 3 users from login1 begin 40 s later" in only.says
    (behind,) = found([job(n, -30.0) for n in range(3)])
    assert behind.level is WARNING and "3 jobs of one user from login1 begin 30 s earlier" in behind.says
    (moved,) = found([job(1, 500.0)])
    assert moved.level is NOTE and "moved" in moved.says and not moved.mend
    (nameless,) = check_clocks.findings([job(n, 60.0) for n in range(3)], {}, NOW)
    assert "an unknown machine" in nameless.says


@pytest.mark.parametrize(
    "settings",
    [
        {"begin": NOW - 1},
        {"restarts": 1},
        {"dependency": "afterok:3"},
        {"comment": "mine"},
        {"begin": None},
        {"pinned": NOW - 5},
        {"unsettled": True},
        {"submit": None},
    ],
)
def test_other_begin_times_show_nothing(settings: dict[str, object]) -> None:
    assert found([job(n, 60.0, **settings) for n in range(5)]) == []


@given(st.floats(-499.0, 5000.0))
def test_what_is_found_is_what_is_not_placed(by: float) -> None:
    """The doctor and the hand-over go by one rule."""
    jobs = [job(n, by) for n in range(3)]
    assert bool(found(jobs)) is not is_held(jobs[0], NOW)


@given(st.lists(st.tuples(st.floats(-400.0, 1e5), st.integers(0, 3)), max_size=20), st.integers(-4, 4))
def test_one_user_hides_no_clock_and_invents_none(moved: list[tuple[float, int]], by: int) -> None:
    """Each user has one voice, however many jobs: the others' jobs decide."""
    plain_jobs = [job(100 + n, float(by), uid=2000 + n) for n in range(3)]
    moved_jobs = [job(n, shift, uid=666) for n, (shift, _) in enumerate(moved)]
    assert found(moved_jobs + plain_jobs, dict.fromkeys(range(200), "login1")) == []


@pytest.mark.parametrize(
    ("ahead", "words"),
    [(0.4, "agree"), (-3.4, "pilotfish uses"), (-6.0, "not placed"), (13.0, "pilotfish uses"), (15.0, "not placed")],
)
def test_the_clock_of_this_machine(ahead: float, words: str) -> None:
    ((_, message),) = about("clock", asked_of(ahead_s=ahead))
    assert words in message
