"""Values worked out by hand from the papers' formulas and from measurements on a real machine."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pilotfish.simulate.model.cluster import Cluster, ContendingThreads, Contention, CpuSharing, Node, NodeType, Power
from pilotfish.simulate.model.job import Job, PeerWait, Profile, ThreadGroup, Workflow
from pilotfish.simulate.planning.simulation import Simulation
from tests.support.instances import PIECEWISE, flow, make_cluster, make_job

ALL, PER_JOB = ContendingThreads.ALL, CpuSharing.PER_JOB


def finishes(cluster: Cluster, *jobs: Job) -> list[float]:
    """Return when each job ends under `slf`."""
    return Simulation(flow(*jobs), cluster).run("slf").finish.tolist()


def dilation_with_a_hog(job: Job, hog: Job, **fields: Any) -> float:
    """Return how many times longer `job` takes on one core that it shares with a much longer job."""
    alone = finishes(make_cluster(**fields), job)[0]
    return finishes(make_cluster(**fields), hog, job)[1] / alone


@pytest.mark.parametrize("k", [1, 2, 3, 4, 7])
def test_k_jobs_on_one_core_take_k_times_as_long(k: int) -> None:
    for sharing in CpuSharing:
        jobs = [make_job(f"j{i}") for i in range(k)]
        assert finishes(make_cluster(cpu_sharing=sharing), *jobs) == pytest.approx([10.0 * k] * k, rel=1e-12)


def test_ends_one_after_the_other() -> None:
    # Three jobs of 1, 2 and 3 core-seconds on one core: 3 s; then two share for 2 s; the last has 1 s left.
    jobs = [make_job(f"j{d}", float(d)) for d in (1, 2, 3)]
    assert finishes(make_cluster(), *jobs) == pytest.approx([3.0, 5.0, 6.0], rel=1e-12)


def test_one_thread_against_three_on_one_core() -> None:
    one, three = make_job("one"), make_job("three", threads=3)
    assert finishes(make_cluster(cpu_sharing=PER_JOB), one, three) == pytest.approx([20.0, 40.0], rel=1e-9)
    assert finishes(make_cluster(), one, three) == pytest.approx([40.0, 40.0], rel=1e-9)


def test_a_sleeper_with_a_cpu_bound_job() -> None:
    sleeper, hog = make_job("sleeper", u=0.5), make_job("hog", 1000.0)
    golden = (1 + math.sqrt(5)) / 2  # 1/s + 1/(s+1) = 1
    assert dilation_with_a_hog(sleeper, hog) == pytest.approx(0.5 + 0.5 * golden, rel=1e-9)
    assert dilation_with_a_hog(sleeper, hog, cpu_sharing=PER_JOB) == pytest.approx(1.29, abs=0.005)
    assert dilation_with_a_hog(sleeper, hog, cpu_sharing=PER_JOB, queueing=0.0) == pytest.approx(1.0, rel=1e-9)


def test_two_sleepers_on_one_core() -> None:
    sleeper, other = make_job("sleeper", u=0.5), make_job("other", 1000.0, u=0.5)
    assert dilation_with_a_hog(sleeper, other, cpu_sharing=PER_JOB) == pytest.approx(1.07, abs=0.005)
    assert dilation_with_a_hog(sleeper, other) == pytest.approx(1.0, rel=1e-9)


def test_no_thread_queues_while_each_has_a_core() -> None:
    jobs = [make_job(f"j{i}", u=0.5) for i in range(2)]
    assert finishes(make_cluster(cores=2, cpu_sharing=PER_JOB), *jobs) == pytest.approx([20.0, 20.0], rel=1e-12)


def test_equal_share_over_all_threads_as_in_the_paper() -> None:
    server = make_cluster(cores=56, memory_bandwidth=80e9, contention=Contention.EQUAL_SHARE, contending_threads=ALL)
    stream, idle = make_job("stream", 100.0, 4, b=10.5e9), make_job("idle", 1000.0, 4)
    # 80/4 = 20 GB/s each, enough; with four more threads, though they move nothing, 10 GB/s: 10.5/10.
    assert finishes(server, stream)[0] == pytest.approx(100.0, rel=1e-12)
    assert finishes(server, stream, idle)[0] == pytest.approx(105.0, rel=1e-12)


def test_remote_memory_costs_a_quarter_of_the_threads() -> None:
    server = make_cluster(
        cores=56, memory_bandwidth=80e9, contention=Contention.EQUAL_SHARE, contending_threads=ALL,
        remote_access_penalty=3.0,
    )  # fmt: skip
    # sigma = 1 for 16 threads of 10 GB/s; m = 1 + 1 * (0.75 + 0.25 * 3) = 2.5
    assert finishes(server, make_job("stream", 100.0, 16, b=10e9))[0] == pytest.approx(250.0, rel=1e-12)


def test_a_sleeping_thread_is_dilated_only_while_it_runs() -> None:
    server = make_cluster(cores=8, memory_bandwidth=10e9, contention=Contention.EQUAL_SHARE, contending_threads=ALL)
    # u = 0.5, m = 2 * 20/10 = 4: wall factor 0.5 * 4 + 0.5
    assert finishes(server, make_job("j", 10.0, 2, u=0.5, b=20e9))[0] == pytest.approx(20.0 * 2.5, rel=1e-12)


def test_max_min_satisfies_small_demands() -> None:
    server = make_cluster(cores=4, memory_bandwidth=10e9, contention=Contention.MAX_MIN)
    jobs = [make_job("a", 100.0, b=2e9), make_job("b", 100.0, b=4e9), make_job("c", 40.0, b=10e9)]
    # 10 GB/s among 2, 4, 10: 2, 4, 4. c is dilated 2.5 times: 40 s become 100 s.
    assert finishes(server, *jobs) == pytest.approx([100.0, 100.0, 100.0], rel=1e-9)


def test_threads_that_wait_for_a_core_do_not_contend_for_memory() -> None:
    fields = {"cores": 1, "memory_bandwidth": 10e9, "contention": Contention.MAX_MIN}
    jobs = [make_job("a", b=10e9), make_job("b", b=10e9)]
    assert finishes(make_cluster(**fields), *jobs) == pytest.approx([20.0, 20.0], rel=1e-9)
    # If all count, each gets half the bandwidth and half of the core: sharing and contention multiply.
    assert finishes(make_cluster(**fields, contending_threads=ALL), *jobs) == pytest.approx([40.0, 40.0], rel=1e-9)


I5 = {"cores": 4, "memory_bandwidth": 38.4e9, "contention": Contention.PIECEWISE_LINEAR, "piecewise": PIECEWISE}


@pytest.mark.parametrize(
    "rate, tasks, speed",
    [
        (7000, 4, 1.0),  # 28,000 MB/s < c
        (10000, 4, 0.852),  # 1 + b * 8,000
        (20000, 2, 0.852),
        (15000, 4, 0.5714976),  # x = 0.538194, S = 0.428663, d = (3 S + 1) / 4
        (15000, 1, 1.0),
        (45269, 1, 1.0),  # n = 0: d = 1
    ],
)
def test_piecewise_linear_on_the_i5_7500(rate: float, tasks: int, speed: float) -> None:
    jobs = [make_job(f"j{i}", 100.0, b=rate * 1e6) for i in range(tasks)]
    assert finishes(make_cluster(**I5), *jobs) == pytest.approx([100.0 / speed] * tasks, rel=1e-6)


def test_piecewise_linear_clamps_the_number_of_others() -> None:
    # Five tasks on four cores: d is that of n = 3, and each has 4/5 of a core.
    jobs = [make_job(f"j{i}", 100.0, b=15e9) for i in range(5)]
    assert finishes(make_cluster(**I5), *jobs) == pytest.approx([100.0 / 0.5714976 * 5 / 4] * 5, rel=1e-6)


def test_piecewise_linear_works_by_processor() -> None:
    # Two tasks of 20 GB/s share a processor (0.852), or have one each (1.0).
    jobs = [make_job(f"j{i}", 100.0, b=20e9) for i in range(2)]
    assert finishes(make_cluster(**I5, sockets=2), *jobs) == pytest.approx([100.0, 100.0], rel=1e-9)


# --- several nodes ---
def test_a_job_on_two_nodes_runs_at_the_speed_of_the_slower() -> None:
    cluster = make_cluster(nodes=2)
    hog, wide = make_job("hog", 100.0), make_job("wide", 10.0, nodes=2)
    simulation = Simulation(flow(hog, wide), cluster)
    simulation.run("slf")
    # On n0 half a core; on n1 it waits the other half of the time.
    assert simulation.world.jobs["finish"][1] == pytest.approx(20.0, rel=1e-8)


@pytest.mark.parametrize("wait, finish", [(PeerWait.YIELD, 10.0 / 0.75), (PeerWait.SPIN, 20.0)])
def test_waiting_parts_release_their_core_unless_they_spin(wait: PeerWait, finish: float) -> None:
    cluster = make_cluster(nodes=2)
    # n0: three hogs and `wide`, a quarter each; n1: `wide` and `other`, which gets three quarters of that core.
    jobs = [make_job(f"hog{i}", 1000.0) for i in range(3)] + [make_job("wide", 1000.0, nodes=2, wait=wait)]
    simulation = Simulation(flow(*jobs, make_job("other", 10.0)), cluster)
    simulation.follow(np.array([0, 0, 0, 0, 1, 1]), np.arange(5.0), np.full(5, -1), np.full(2, math.inf))
    assert simulation.world.jobs["finish"][4] == pytest.approx(finish, rel=1e-8)


def test_bulk_synchronous_over_sockets_too() -> None:
    # `wide` has a thread on socket 1 of n0 (socket 0 is taken) and one on socket 0 of n1: still one job, one pace.
    kind = NodeType("p", 2, 100.0, 10e9, sockets=2, contention=Contention.PIECEWISE_LINEAR, piecewise=PIECEWISE)
    slow = NodeType("s", 1, 100.0, 10e9, contention=Contention.NONE)
    cluster = Cluster("lab", (Node("n0", kind), Node("n1", slow)), math.inf)
    jobs = [make_job("first", 1000.0), make_job("wide", 10.0, nodes=2), make_job("hog", 1000.0)]
    simulation = Simulation(Workflow("w", tuple(jobs)), cluster)
    simulation.follow(np.array([0, 0, 1, 1]), np.arange(3.0), np.full(3, -1), np.full(2, math.inf))
    assert simulation.world.jobs["finish"][1] == pytest.approx(20.0, rel=1e-8)


@pytest.mark.parametrize("penalty", [1.0, 1.8, 3.0])
@pytest.mark.parametrize("contention", [Contention.EQUAL_SHARE, Contention.MAX_MIN])
def test_alone_on_alike_nodes_a_wide_job_takes_its_isolated_time(contention: Contention, penalty: float) -> None:
    cluster = make_cluster(nodes=3, memory_bandwidth=5e9, contention=contention, remote_access_penalty=penalty)
    simulation = Simulation(flow(make_job("wide", 10.0, b=10e9, nodes=3)), cluster)
    outcome = simulation.run("mom")
    assert simulation.isolated[0, 0] > 15.0
    assert outcome.makespan == pytest.approx(simulation.isolated[0, 0], rel=1e-8)


def test_a_wide_job_of_two_groups_holds_its_cores_while_memory_is_slow() -> None:
    """Two equal nodes: 2 cores each are held all the time, whichever part waits for the other."""
    power = Power(idle=95.0, computing=190.74)
    fields = {"contention": Contention.EQUAL_SHARE, "cpu_sharing": PER_JOB, "memory_bandwidth": 5e9, "power": power}
    wide = Job("wide", Profile((ThreadGroup(2, 1.0, bandwidth=10e9), ThreadGroup(3, 1.0, bandwidth=10e9))), nodes=2)
    outcome = Simulation(flow(wide), make_cluster(2, cores=2, **fields)).run("slf")
    # Two threads run, 2.5 GB/s each: dilated four times, and each of five has 2/5 of a core.
    assert outcome.makespan == pytest.approx(10.0, rel=1e-7)
    assert outcome.energy_j == pytest.approx(2 * 10 * 190.74, rel=1e-7)


def test_what_a_waiting_group_leaves_goes_to_its_job_s_other_group() -> None:
    """One thread that computes and two that wait for memory, on a fast node (5 GB/s) and on one of half its speed."""
    fields = {"contending_threads": ContendingThreads.RUNNING, "cpu_sharing": PER_JOB, "queueing": 0.0}
    fast = NodeType("fast", 2, 100.0, 5e9, frequency=2e9, contention=Contention.EQUAL_SHARE, **fields)
    slow = NodeType("slow", 2, 100.0, 5e9, frequency=1e9, contention=Contention.NONE, **fields)
    wide = Job("wide", Profile((ThreadGroup(1, 1.0), ThreadGroup(2, 1.0, bandwidth=10e9))), nodes=2)
    outcome = Simulation(flow(wide), Cluster("lab", (Node("n0", fast), Node("n1", slow)), math.inf)).run("slf")
    # The slow node holds the first to 0.5: on the fast one 1.5 cores are left for two threads dilated 4 times, 0.1875.
    # After 2 s the first has ended; then 2.5 GB/s each, 0.25, for the other 5/8 of the work.
    assert outcome.makespan == pytest.approx(2.0 + 0.625 / 0.25, rel=1e-8)


# --- loads ---
def test_load_average_of_one_minute() -> None:
    """Three threads for 30 s, then one of them for 60 s more; the other node stays empty."""
    first = Job("first", Profile((ThreadGroup(2, 30.0), ThreadGroup(1, 90.0))))
    simulation = Simulation(flow(first), make_cluster(2, cores=4))
    simulation.run("loadavg")
    load = 3 * (1 - math.exp(-0.5))
    load = load * math.exp(-1) + 1 * (1 - math.exp(-1))
    assert simulation.world.nodes["load"].tolist() == pytest.approx([load, 0.0], rel=1e-12)


def test_loadavg_places_simultaneous_jobs_on_one_node() -> None:
    late = make_job("late", 1.0, 1, "a")
    simulation = Simulation(flow(make_job("a", 1.0), make_job("b", 100.0), late), make_cluster(2, cores=4))
    simulation.run("loadavg")
    assert [simulation.nodes_of(i) for i in range(3)] == [("n0",), ("n0",), ("n1",)]


# --- power ---
@pytest.mark.parametrize("cores, joules", [(0, 5.59), (1, 11.73), (2, 17.87), (4, 30.15)])
def test_power_of_the_i5_7500(cores: int, joules: float) -> None:
    power = Power(idle=0.0, per_core=6.14, per_socket=5.59)
    cluster = make_cluster(2, cores=4, power=power)
    simulation = Simulation(flow(make_job("j", 1.0, max(cores, 1))), cluster)
    simulation.run("slf")
    at = 1 if cores == 0 else 0
    assert simulation.world.nodes["energy"][at] == pytest.approx(joules, rel=1e-12)


def test_an_idle_uncore_may_draw_less() -> None:
    power = Power(idle=10.0, per_core=6.14, per_socket=5.59, idle_uncore=0.05)
    simulation = Simulation(flow(make_job("j", 1.0)), make_cluster(2, cores=4, power=power))
    simulation.run("slf")
    assert simulation.world.nodes["energy"].tolist() == pytest.approx([21.73, 10.2795], rel=1e-12)


def test_power_of_taurus_by_state() -> None:
    taurus = make_cluster(2, cores=12, power=Power(idle=95.0, computing=190.74))
    outcome = Simulation(flow(make_job("j", 10.0, 12)), taurus).run("slf")
    assert outcome.energy_j == pytest.approx(10 * (190.74 + 95.0), rel=1e-12)
    half = Simulation(flow(make_job("j", 10.0, 6)), taurus).run("slf")
    assert half.energy_j == pytest.approx(10 * (142.87 + 95.0), rel=1e-12)


def test_job_energy_shares_the_base_by_cores_held() -> None:
    power = Power(idle=20.0, per_core=5.0, per_socket=10.0)
    simulation = Simulation(flow(make_job("a", 10.0, 1), make_job("b", 10.0, 2)), make_cluster(cores=4, power=power))
    simulation.run("slf")
    # Three cores for 10 s: 30 W of base in thirds, and 5 W a core.
    assert simulation.world.jobs["energy"].tolist() == pytest.approx([150.0, 300.0], rel=1e-12)
