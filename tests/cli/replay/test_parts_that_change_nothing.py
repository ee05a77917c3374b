"""Laws over all cells of "What goes together", such as: a part of a world that cannot act changes no schedule."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.model.machine import TAURUS_POWERS, Machine
from pilotfish.simulate.model.network import unlimited
from pilotfish.simulate.queue_policies.policy_specs import parse
from pilotfish.simulate.replay.replay import replay
from pilotfish.simulate.world.replay_result import Replayed
from tests.cli.replay.test_what_goes_together import MINE, PAGE, WORLDS, World, jobs_of, obeys, replayed
from tests.simulate.replay.test_replay import places

#: The cells that run: SPEC and world.
CELLS = [
    (row.split("|")[1].strip(" `"), world)
    for row in PAGE.read_text().partition("## Plans")[0].splitlines()
    for world, cell in zip(WORLDS, row.split("|")[2:], strict=False)
    if row.startswith("| `") and cell.strip() == "yes"
]
SEEDS = st.integers(0, 2**31)


def cells(**wanted: Any) -> st.SearchStrategy[tuple[str, World]]:
    """Draw a cell whose world has these fields; plans by `lookahead` take too long for many examples."""
    choices = [
        cell for cell in CELLS if cell[0] != "lookahead" and all(getattr(cell[1], k) == wanted[k] for k in wanted)
    ]
    assert choices
    return st.sampled_from(choices)


def same(one: Replayed, other: Replayed, cores: int = 1) -> None:
    """Assert that two schedules are the same, also in resources, or in nodes of so many cores."""
    for column in ("submit_time", "start_time", "finish_time", "overran", "rejected", "stranded"):
        np.testing.assert_allclose(getattr(one, column), getattr(other, column), rtol=0, atol=1e-9, err_msg=column)
    ran = np.flatnonzero(~one.rejected).tolist()
    nodes = [[{place // cores for place in places(replay, row)} for row in ran] for replay in (one, other)]
    assert nodes[0] == nodes[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with what `replayed` reads."""
    path = tmp_path_factory.mktemp("cells")
    (path / "mine.py").write_text(MINE)
    (path / "lab.yaml").write_text("schema: pilotfish/cluster/v1\n")
    return path


@given(cell=cells(), seed=SEEDS)
@settings(max_examples=15, deadline=None)
def test_each_job_runs_once_and_at_its_speed_in_the_same_way_each_time(
    folder: Path, cell: tuple[str, World], seed: int
) -> None:
    policy, world = cell
    replay, parts = replayed(policy, world, folder, seed)
    obeys(replay, parts, world, policy)
    again, _ = replayed(policy, world, folder, seed)
    for column in ("start_time", "finish_time", "pieces"):
        assert getattr(again, column).tobytes() == getattr(replay, column).tobytes(), column


@given(cell=cells(), seed=SEEDS, row=st.integers(1, 15), other=SEEDS)
@settings(max_examples=15, deadline=None)
def test_what_is_to_come_decides_nothing(
    folder: Path, cell: tuple[str, World], seed: int, row: int, other: int
) -> None:
    """Jobs from a row on ask for something else and run for another time; all that started before is the same."""
    policy, world = cell
    once, _ = replayed(policy, world, folder, seed)
    twice, _ = replayed(policy, world, folder, seed, (row, other))
    before = float(once.workload.submit_time[row])
    starts = [np.where(replay.start_time < before, replay.start_time, np.nan) for replay in (once, twice)]
    np.testing.assert_array_equal(*starts)


@given(cell=cells(options={}), seed=SEEDS)
@settings(max_examples=75, deadline=None)
def test_decisions_that_take_no_time(folder: Path, cell: tuple[str, World], seed: int) -> None:
    """Too little time to move the clock; most policies are then carried out by another loop."""
    policy, world = cell
    once, _ = replayed(policy, world, folder, seed)
    timed, _ = replayed(policy, replace(world, options={"deciding": "1e-300"}), folder, seed)
    same(once, timed, 4 if world.cluster else 1)


@given(cell=cells(network=True, cluster=False, options={}), seed=SEEDS)
@settings(max_examples=50, deadline=None)
def test_a_network_without_limits(cell: tuple[str, World], seed: int) -> None:
    policy, world = cell
    if policy.startswith("./"):
        policy = "easy"
    sent, parts = jobs_of(world, seed)
    work = np.array([part.flops for part in parts])
    assert work.min() > 0.0
    rigid = replace(sent, run_time=work / 10.0, programs=None, more={**sent.more, "program": np.full(len(sent), -1)})
    fast = Machine(12, powers=TAURUS_POWERS, network=lambda: unlimited([10.0] * 12))
    replays = [
        replay(sent, fast, parse(policy)),
        replay(rigid, Machine(12, powers=TAURUS_POWERS), parse(policy)),
    ]
    same(*replays)


@given(
    world=st.sampled_from([each for each in WORLDS if not (each.options or each.dependencies)]),
    base=st.sampled_from(("easy", "easy:order=wfp3", "strict")),
    limit=st.sampled_from(("powercap:cap=1e12", "energybud:budget=1e18")),
    seed=SEEDS,
)
@settings(max_examples=50, deadline=None)
def test_a_budget_without_limits(folder: Path, world: World, base: str, limit: str, seed: int) -> None:
    free, limited = (replayed(policy, world, folder, seed)[0] for policy in (base, f"{base}+{limit}"))
    same(free, limited, 4 if world.cluster else 1)
