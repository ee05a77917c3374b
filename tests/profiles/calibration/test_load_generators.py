"""Threads side by side: they do real work, on the CPUs that they are given."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace

import pytest

from pilotfish.profiles.calibration import crew, sleepers
from pilotfish.profiles.calibration import measure as measuring
from pilotfish.profiles.calibration.curve import fit_curve
from pilotfish.profiles.calibration.grid import BESIDE, EXTRAS, company, measure
from pilotfish.profiles.calibration.machine import machine
from pilotfish.profiles.calibration.measure import MOST_POINTS, counts
from pilotfish.profiles.calibration.sharing import OTHERS, shares

CPUS = sorted(os.sched_getaffinity(0))


def test_a_triad_is_one() -> None:
    arrays = crew.touched(1000)
    moved = crew.streaming(1000, arrays=arrays)()
    assert moved == 24 * 1000 and (arrays[0] == 2.0 + 3.0 * 3.0).all()


def test_computing_between_blocks_asks_for_less_bandwidth() -> None:
    def rate(extra: int) -> float:
        (run,) = crew.side_by_side(CPUS[:1], lambda _: crew.streaming(1 << 16, extra), 0.01, 1)
        return run.rates[0]

    crew.warm_up()
    assert rate(20_000) < 0.5 * rate(0)


def test_each_thread_is_kept_to_its_cpu_and_ours_is_not() -> None:
    seen: dict[int, set[int]] = {}

    def prepare(number: int) -> crew.Chunk:
        seen[number] = set(os.sched_getaffinity(0))
        return lambda: 1.0

    runs = crew.side_by_side(CPUS, prepare, 0.002, 2)
    assert seen == {i: {cpu} for i, cpu in enumerate(CPUS)}
    assert sorted(os.sched_getaffinity(0)) == CPUS
    assert len(runs) == 2 and all(len(run.rates) == len(CPUS) and min(run.rates) > 0 for run in runs)


def test_one_that_fails_leaves_nobody_waiting() -> None:
    def prepare(number: int) -> crew.Chunk:
        if number == 0:
            raise MemoryError("no room")
        return lambda: 1.0

    with pytest.raises((MemoryError, threading.BrokenBarrierError)):
        crew.side_by_side([CPUS[0], CPUS[-1]], prepare, 0.001, 1)


def test_an_interrupt_does_not_wait_for_the_end() -> None:
    threads = threading.active_count()
    timer = threading.Timer(0.2, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        crew.side_by_side(CPUS[:1], lambda _: lambda: time.sleep(0.01) or 1.0, 1000.0, 5)
    timer.join()
    assert threading.active_count() == threads


def test_runs_in_company_do_not_count_where_enough_others_do() -> None:
    good, bad = crew.Run((1.0,), 0.99), crew.Run((0.5,), 0.6)
    assert crew.undisturbed([good, bad, good, good, bad]) == [good] * 3
    assert crew.undisturbed([good, bad, bad]) == [good, bad, bad]
    assert crew.undisturbed([bad, good, crew.Run((0.1,), 0.2), bad]) == [bad, good, bad]
    assert crew.undisturbed([good]) == [good]


@pytest.mark.parametrize("cpus", [1, 2, 3, 7, 16, 96, 1000])
def test_a_curve_has_few_points_with_one_thread_and_all(cpus: int) -> None:
    points = counts(cpus)
    assert points[0] == 1 and points[-1] == cpus and points == sorted(set(points)) and len(points) <= MOST_POINTS


def test_jobs_beside_each_other_on_a_core_get_shares_of_it_and_are_gone_afterwards() -> None:
    found = shares(CPUS[-1], 0.05, 2)
    assert len(found) == 2 and all(0.0 < share < 1.0 for share in found)
    assert OTHERS == 3


@pytest.mark.parametrize(("cpus", "mixes"), [(2, 24 + 1), (3, 48 + 1), (4, 72 + 1), (8, 72 + 8 + 1)])
def test_company_is_of_a_few_tasks_of_all_cores_and_of_more_than_those(cpus: int, mixes: int) -> None:
    plans = list(company(cpus))
    assert len(plans) == mixes and len(plans[-1]) == 2 * cpus
    assert all(len(tasks) in {2, 3, 4, cpus, 2 * cpus} and set(tasks) <= set(EXTRAS) for tasks in plans)


def test_a_grid_has_what_each_task_of_each_mix_did() -> None:
    mixes = measure(CPUS[:2], 0.0, lambda tasks: 4096) if len(CPUS) > 1 else []
    assert len(mixes) == (len(EXTRAS) * len(BESIDE) + 1 if len(CPUS) > 1 else 0)
    assert all(len(mix.rates) == len(mix.speeds) and min(mix.rates) > 0 and min(mix.speeds) > 0 for mix in mixes)
    assert all(mix.share == (0.5 if len(mix.rates) == 4 else 1.0) for mix in mixes)


def test_on_several_memory_nodes_every_fourth_thread_streams_anothers_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    homes: list[int] = []
    touched_from = crew.touched_from
    monkeypatch.setattr(crew, "touched_from", lambda cpu, size: homes.append(cpu) or touched_from(cpu, size))
    first, last = CPUS[0], CPUS[-1]
    node = replace(machine(), cpus=(first,) * 8, memory_nodes=((first,), (last,)), cache=2**16)
    bound = [(1, 1e9), (2, 1.5e9), (4, 1.5e9), (8, 1.5e9)]
    bench = measuring._Bench(node, 0.1, lambda text: None)
    found = measuring._unbound(bench, fit_curve([n for n, _ in bound], [rate for _, rate in bound]), bound)
    assert found is not None and 1.0 <= found.penalty.value <= 50.0
    assert set(homes) == {last} and len(homes) == 1 + 1 + 2  # of 4, of 6 and of 8 threads
    alone = replace(node, memory_nodes=((first, last),))
    assert measuring._unbound(replace(bench, node=alone), fit_curve([1, 2], [1e9, 1e9]), bound) is None


def test_jobs_that_sleep_are_timed_beside_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sleepers, "UTILISATIONS", (0.5,))
    monkeypatch.setattr(sleepers, "ALONE", 1e9)
    waits = sleepers.measure(CPUS[-1], 0.0)
    assert len(waits) == sleepers.RUNS * len(sleepers.company())
    assert all(wait.slowdown > 0 for wait in waits)
    monkeypatch.setattr(sleepers, "ALONE", 0.0)
    assert sleepers.measure(CPUS[-1], 0.0) == []  # others were there
