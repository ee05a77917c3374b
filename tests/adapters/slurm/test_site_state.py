"""The site's slowly changing state: one kind is read at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.slurm.site_state import AGES, NEW_S, PATIENCE, SiteReader, SiteState
from tests.support.slurm_jobs import JOB


class Answers:
    """A Slurm that is asked for one kind at a time; `asked` in order."""

    def __init__(self, **refused: AdapterError) -> None:
        self.asked, self.refused = list[str](), refused

    def __getattr__(self, kind: str) -> Any:
        def answer() -> Any:
            self.asked.append(kind)
            if kind in self.refused:
                raise self.refused[kind]
            return getattr(SiteState(), kind)

        return answer


def test_one_kind_is_read_at_a_time_in_turn() -> None:
    now, slurm = [100.0], Answers()
    rarely = SiteReader(lambda: now[0])
    rarely.refresh(slurm, [], [])
    assert slurm.asked == []  # no job is handed over: nothing needs to be known
    rarely.refresh(slurm, [], [7])
    kinds = ["partitions", "reservations", "excluded", "settings"]
    assert slurm.asked == kinds, "for forecasts of jobs that wait"
    for _ in range(9):
        now[0] += NEW_S / 8
        rarely.refresh(slurm, [], [7, 8])
    assert slurm.asked == [*kinds, "excluded"], "for a job that is new"
    slurm.asked.clear()
    rarely.refresh(slurm, [JOB], [7])
    assert (
        sorted(slurm.asked) == sorted(AGES.keys() - set(kinds))
        and not rarely.site.missing
        and rarely.site.covered == {7, 8}
    )
    for _ in range(1200):
        rarely.refresh(slurm, [JOB], [7])
        now[0] += 0.5
    for kind, age in AGES.items():
        assert 600 / age * 0.8 - 1 <= slurm.asked.count(kind) - 1 <= 600 / age + 1


def test_new_jobs_advance_their_kinds_and_starve_none() -> None:
    now, slurm = [100.0], Answers()
    rarely = SiteReader(lambda: now[0])
    for number in range(1200):
        rarely.refresh(slurm, [replace(JOB, id=number)], [number])
        now[0] += 0.5
    assert all(slurm.asked.count(kind) >= 600 / age * 0.4 - 1 for kind, age in AGES.items())


def test_a_refused_kind_is_done_without(caplog: pytest.LogCaptureFixture) -> None:
    now, slurm = [0.0], Answers(limits=AdapterError("Access denied", kind="refused"))
    rarely = SiteReader(lambda: now[0])
    for _ in range(400):
        rarely.refresh(slurm, [JOB], [7])
        now[0] += 0.5
    assert not rarely.site.missing and slurm.asked.count("limits") <= 200 / (AGES["limits"] * PATIENCE) + 1
    assert caplog.text.count("does not show its limits") == 1
    with pytest.raises(AdapterError):
        SiteReader(lambda: 0.0).refresh(Answers(partitions=AdapterError("away", transient=True)), [JOB], [7])
