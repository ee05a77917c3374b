"""Threads side by side: they do real work, on their CPUs."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace

import pytest

from pilotfish.profiles.calibration import cpu_sharing, load_generators
from pilotfish.profiles.calibration import session as measuring
from pilotfish.profiles.calibration.bandwidth import fit_curve
from pilotfish.profiles.calibration.cpu_sharing import OTHERS, shares
from pilotfish.profiles.calibration.load_generators import EXTRAS, RATES_OF_OTHERS, measure_mixes, mixes
from pilotfish.profiles.calibration.node_hardware import read_hardware
from pilotfish.profiles.calibration.session import MOST_POINTS, counts

CPUS = sorted(os.sched_getaffinity(0))


def test_the_triad_is_computed() -> None:
    arrays = load_generators.touched(1000)
    moved = load_generators.streaming(1000, arrays=arrays)()
    assert moved == 24 * 1000 and (arrays[0] == 2.0 + 3.0 * 3.0).all()


@pytest.mark.real
def test_computing_between_blocks_lowers_bandwidth() -> None:
    def rate(extra: int) -> float:
        (run,) = load_generators.side_by_side(CPUS[:1], lambda _: load_generators.streaming(1 << 16, extra), 0.01, 1)
        return run.rates[0]

    load_generators.warm_up()
    assert rate(20_000) < 0.5 * rate(0)


@pytest.mark.real
def test_each_thread_is_pinned_and_ours_is_not() -> None:
    seen: dict[int, set[int]] = {}

    def prepare(number: int) -> load_generators.Chunk:
        seen[number] = set(os.sched_getaffinity(0))
        return lambda: 1.0

    runs = load_generators.side_by_side(CPUS, prepare, 0.002, 2)
    assert seen == {i: {cpu} for i, cpu in enumerate(CPUS)}
    assert sorted(os.sched_getaffinity(0)) == CPUS
    assert len(runs) == 2 and all(len(run.rates) == len(CPUS) and min(run.rates) > 0 for run in runs)


@pytest.mark.real
def test_a_failed_thread_does_not_block_the_others() -> None:
    def prepare(number: int) -> load_generators.Chunk:
        if number == 0:
            raise MemoryError("no room")
        return lambda: 1.0

    with pytest.raises((MemoryError, threading.BrokenBarrierError)):
        load_generators.side_by_side([CPUS[0], CPUS[-1]], prepare, 0.001, 1)


@pytest.mark.real
def test_an_interrupt_does_not_wait_for_the_end() -> None:
    threads = threading.active_count()
    timer = threading.Timer(0.2, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        load_generators.side_by_side(CPUS[:1], lambda _: lambda: time.sleep(0.01) or 1.0, 1000.0, 5)
    timer.join()
    assert threading.active_count() == threads


def test_disturbed_runs_do_not_count_if_enough_others_exist() -> None:
    good, bad = load_generators.LoadRun((1.0,), 0.99), load_generators.LoadRun((0.5,), 0.6)
    assert load_generators.undisturbed([good, bad, good, good, bad]) == [good] * 3
    assert load_generators.undisturbed([good, bad, bad]) == [good, bad, bad]
    assert load_generators.undisturbed([bad, good, load_generators.LoadRun((0.1,), 0.2), bad]) == [bad, good, bad]
    assert load_generators.undisturbed([good]) == [good]


@pytest.mark.parametrize("cpus", [1, 2, 3, 7, 16, 96, 1000])
def test_a_curve_has_few_points_with_one_thread_and_all(cpus: int) -> None:
    points = counts(cpus)
    assert points[0] == 1 and points[-1] == cpus and points == sorted(set(points)) and len(points) <= MOST_POINTS


@pytest.mark.real
def test_jobs_on_one_core_share_it_and_are_killed_afterwards() -> None:
    found = shares(CPUS[-1], 0.05, 2)
    assert len(found) == 2 and all(0.0 < share < 1.0 for share in found)
    assert OTHERS == 3


@pytest.mark.parametrize(("cpus", "count"), [(2, 24 + 1), (3, 48 + 1), (4, 72 + 1), (8, 72 + 8 + 1)])
def test_mixes_are_of_few_tasks_all_cores_and_twice_the_cores(cpus: int, count: int) -> None:
    plans = list(mixes(cpus))
    assert len(plans) == count and len(plans[-1]) == 2 * cpus
    assert all(len(tasks) in {2, 3, 4, cpus, 2 * cpus} and set(tasks) <= set(EXTRAS) for tasks in plans)


@pytest.mark.real
def test_measured_mixes_have_rates_and_speeds() -> None:
    found = measure_mixes(CPUS[:2], 0.0, lambda tasks: 4096) if len(CPUS) > 1 else []
    assert len(found) == (len(EXTRAS) * len(RATES_OF_OTHERS) + 1 if len(CPUS) > 1 else 0)
    assert all(len(mix.rates) == len(mix.speeds) and min(mix.rates) > 0 and min(mix.speeds) > 0 for mix in found)
    assert all(mix.share == (0.5 if len(mix.rates) == 4 else 1.0) for mix in found)


@pytest.mark.real
def test_every_fourth_unbound_thread_streams_remote_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    homes: list[int] = []
    touched_from = load_generators.touched_from
    monkeypatch.setattr(load_generators, "touched_from", lambda cpu, size: homes.append(cpu) or touched_from(cpu, size))
    first, last = CPUS[0], CPUS[-1]
    node = replace(read_hardware(), cpus=(first,) * 8, memory_nodes=((first,), (last,)), cache=2**16)
    bound = [(1, 1e9), (2, 1.5e9), (4, 1.5e9), (8, 1.5e9)]
    bench = measuring._Bench(node, 0.1, lambda text: None)
    found = measuring._unbound(bench, fit_curve([n for n, _ in bound], [rate for _, rate in bound]), bound)
    assert found is not None and 1.0 <= found.penalty.value <= 50.0
    assert set(homes) == {last} and len(homes) == 1 + 1 + 2  # of 4, of 6 and of 8 threads
    alone = replace(node, memory_nodes=((first, last),))
    assert measuring._unbound(replace(bench, node=alone), fit_curve([1, 2], [1e9, 1e9]), bound) is None


@pytest.mark.real
def test_waits_of_sleeping_jobs_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_sharing, "JOB_MIXES", cpu_sharing.JOB_MIXES[3:6])
    monkeypatch.setattr(cpu_sharing, "ALONE", 1e9)
    waits = cpu_sharing.measure_waits(CPUS[-1], 0.0)
    assert len(waits) == cpu_sharing.RUNS * len(cpu_sharing.JOB_MIXES)
    assert all(wait.slowdown > 0 for wait in waits)
    monkeypatch.setattr(cpu_sharing, "ALONE", 0.0)
    assert cpu_sharing.measure_waits(CPUS[-1], 0.0) == []  # others were there
