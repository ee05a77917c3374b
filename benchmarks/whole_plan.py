"""Time of whole plans of the paper's DAGs, compared with plain Python and with published times.

Rule: the time is that of the first plan of newly parsed objects: `Simulation(workflow, cluster)` and the run, or all
that `plan` does.
"""

from __future__ import annotations

import dataclasses
import functools
import statistics
from collections.abc import Callable

from pilotfish.benchmarks import plain_python
from pilotfish.benchmarks.paper_servers import servers
from pilotfish.benchmarks.show import heading, ms, number, table, timed
from pilotfish.simulate.generate.workflows import SHAPES, stream
from pilotfish.simulate.model.cluster import Cluster
from pilotfish.simulate.model.job import Workflow
from pilotfish.simulate.planning.planner import plan
from pilotfish.simulate.planning.simulation import Simulation

#: Published seconds for LET and MOM on 2, 3, 4, 5 servers (Chahal et al., ICPE 2019, table 1).
PUBLISHED = {50: (40, 56, 73, 92), 100: (89, 100, 156, 190)}


def plan_seconds(workflow: Workflow, cluster: Cluster, policy: str, repeats: int) -> list[float]:
    """Return the seconds of whole plans; nothing derived from workflow or cluster is reused between them."""
    return _seconds(lambda fresh, machine: Simulation(fresh, machine).run(policy), workflow, cluster, repeats)


def _seconds(
    call: Callable[[Workflow, Cluster], object], workflow: Workflow, cluster: Cluster, repeats: int
) -> list[float]:
    fresh: list[tuple[Workflow, Cluster]] = []

    def forget() -> None:
        fresh[:] = [(dataclasses.replace(workflow), dataclasses.replace(cluster))]

    timed(lambda: call(*fresh[0]), 3, forget)
    return timed(lambda: call(*fresh[0]), repeats, forget)


def measure(quick: bool) -> None:
    """Print the tables."""
    heading("Whole plans of STREAM DAGs (56 cores, 80 GB/s, equal-share, all, per-thread, unlimited); target 0.7 ms")
    rows = []
    for jobs in (50, 100):
        for name in SHAPES:
            workflow = stream(jobs, shape=name, seed=1)
            for count in (2, 5) if quick else (2, 3, 4, 5):
                cluster = servers(count, paper=True)
                for policy in ("let", "mom"):
                    rows.append(_row(workflow, cluster, name, policy, PUBLISHED[jobs][count - 2], quick))
    table(
        ("DAG", "jobs", "servers", "policy", "ours ms", "least ms", "plain Python ms", "ratio", "same plan",
         "published s", "ratio"),
        rows,
    )  # fmt: skip
    print("ours: median of whole plans, including conversion from parsed objects; least: the fastest of them.")
    print("plain Python: one run.")
    rows = [_all(stream(jobs, seed=1), servers(5, paper=True), 5 if quick else 30) for jobs in (20, 100)]
    table(("jobs of a layered DAG, 5 servers", "plan ms", "and intervals", "lookahead", "and intervals"), rows)


def _all(workflow: Workflow, cluster: Cluster, repeats: int) -> list[object]:
    row: list[object] = [len(workflow.jobs)]
    for policy in ("mom", "lookahead"):
        for explain in (False, True):
            call = functools.partial(plan, policy=policy, explain=explain)
            row.append(ms(statistics.median(_seconds(call, workflow, cluster, repeats))))
    return row


def _row(workflow: Workflow, cluster: Cluster, name: str, policy: str, published: float, quick: bool) -> list[object]:
    seconds = plan_seconds(workflow, cluster, policy, 50 if quick else 200)
    median = statistics.median(seconds)
    simulation = Simulation(workflow, cluster)
    outcome = simulation.run(policy)
    schedules: list[tuple[float, list[int]]] = []
    plain = timed(lambda: schedules.append(plain_python.simulate(workflow, cluster, policy)), 1)
    same = [cluster.index[simulation.nodes_of(i)[0]] for i in range(len(workflow.jobs))] == schedules[0][1]
    same = same and abs(schedules[0][0] / outcome.makespan - 1.0) < 1e-9
    return [
        name, len(workflow.jobs), len(cluster.nodes), policy, ms(median), ms(min(seconds)), ms(plain[0]),
        number(plain[0] / median), "yes" if same else "no", published, number(published / median),
    ]  # fmt: skip
