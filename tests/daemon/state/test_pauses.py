"""Pauses: which job each stops, when it ends, and what a restart knows of it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.daemon.state.pauses import KEPT, Pause, Pauses
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Job

NAMES = ("", "gpu", "main", "long")
TIMES = st.integers(0, 1000).map(float)
PAUSES = st.lists(
    st.builds(
        Pause, st.sampled_from(NAMES), TIMES, st.none() | TIMES, st.text(max_size=5), st.text(max_size=5), st.booleans()
    ),
    max_size=6,
)


def job(partitions: str) -> Job:
    return Job("1", DEFAULT_PROFILE, traits=(("queue", partitions),) if partitions else ())


def pauses_of(each: list[Pause]) -> Pauses:
    pauses = Pauses()
    for pause in each:
        pauses.begin(pause)
    return pauses


@given(PAUSES, TIMES, st.lists(st.sampled_from(NAMES), max_size=2))
def test_what_is_kept_stops_the_same_jobs_after_a_restart(each: list[Pause], now: float, partitions: list[str]) -> None:
    pauses = pauses_of(each)
    again = Pauses(json.loads(json.dumps(pauses.state())))
    one = job(",".join(partitions))
    assert [*again] == [*pauses] and again.of(one) == pauses.of(one) and bool(again) == bool(each)
    last = {pause.partition: pause for pause in each}
    stopping = [last[name] for name in ("", *partitions) if name in last]
    assert pauses.of(one) == (stopping[0] if stopping and ("" in last or partitions) else None)
    over = again.expire(now)
    assert {pause.partition for pause in over} == {
        name for name, pause in last.items() if pause.until is not None and pause.until <= now
    }
    assert again.next_end > now and len([*again]) + len(over) == len(last)


def test_one_of_several_partitions_is_enough_and_an_end_ends_one_or_all() -> None:
    pauses = pauses_of([Pause("gpu", why="fans"), Pause("long")])
    assert (
        pauses.of(job("main,gpu")) == Pause("gpu", why="fans") and pauses.of(job("main")) is pauses.of(job("")) is None
    )
    assert Pause("gpu", why="fans").reason == "pilotfish is paused in partition gpu: fans"
    assert pauses.end("main") == [] and pauses.end("gpu") == [Pause("gpu", why="fans")]
    pauses.begin(Pause())
    assert pauses.of(job("main")) == pauses.of_all == Pause() and Pause().reason == "pilotfish is paused"
    assert {pause.partition for pause in pauses.end(None)} == {"", "long"} and not pauses
    assert pauses.next_end == math.inf


@pytest.mark.parametrize(
    "kept",
    [7, [7], [{"partition": 7}], [{"nobody": "x"}], [{"until": "soon"}], [{"partition": "gpu"}, {"keeps_held": "yes"}]],
)
def test_a_damaged_record_stops_everything(kept: Any) -> None:
    pauses = Pauses({KEPT: kept})
    assert pauses.of_all is not None and "cannot be read" in pauses.of_all.reason
    assert pauses.end(None) and not pauses


def test_a_later_pause_of_the_same_partition_replaces_the_one_before() -> None:
    first = Pause("gpu", 1.0, 9.0, "a")
    pauses = pauses_of([first, replace(first, until=None)])
    assert pauses.expire(100.0) == [] and len([*pauses]) == 1
