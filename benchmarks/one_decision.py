"""Time of one mapping decision among thousands of busy nodes: without cache, between alike nodes, and after one change.

Rule: ten STREAM jobs run on every node, each after a random share of its work; a decision maps one more job. The
baseline is the same decision in plain Python on a few nodes, scaled up.
"""

from __future__ import annotations

import functools
import math
import random
import statistics

from pilotfish.benchmarks import plain_python
from pilotfish.benchmarks.paper_servers import MODELS, servers
from pilotfish.benchmarks.show import heading, ms, number, table, timed
from pilotfish.simulate.generate.workflows import stream_profiles
from pilotfish.simulate.model.job import Job, Workflow
from pilotfish.simulate.model.plan import RunningJob
from pilotfish.simulate.planning.simulation import Simulation

BASELINE_NODES = 50
LATER = 20


def busy(nodes: int, residents: int, paper: bool, alike: bool) -> Simulation:
    """Return a simulation with running jobs on every node, and waiting jobs w0 (any kind) and same0 (one kind), ...

    Args:
        nodes: number of nodes.
        residents: running jobs per node.
        paper: use the paper's model, not ours.
        alike: all nodes run the same jobs.
    """
    draw, profiles = random.Random(1), stream_profiles()
    jobs, underway, stream = list[Job](), list[RunningJob](), random.Random(2)
    for n in range(nodes):
        source = random.Random(3) if alike else stream
        for k in range(residents):
            name = f"r{n}-{k}"
            jobs.append(Job(name, source.choice(profiles)))
            underway.append(RunningJob(name, (f"s{n}",), source.random() * 0.95))
    jobs += [Job(f"w{i}", draw.choice(profiles)) for i in range(LATER + 1)]
    jobs += [Job(f"same{i}", profiles[0]) for i in range(LATER + 1)]
    cluster = servers(nodes, paper, oversubscription=math.inf)
    simulation = Simulation(Workflow("busy", tuple(jobs)), cluster, underway=underway)
    simulation.settle()
    return simulation


def first_decisions(simulation: Simulation, policy: str, count: int) -> list[float]:
    """Return the seconds of decisions without cache, each on a copy."""
    seconds = list[float]()
    for i in range(count):
        twin = simulation.copy()
        seconds += timed(functools.partial(twin.decide, f"w{i}", policy), 1)
    return seconds


def later_decisions(simulation: Simulation, policy: str, kind: str) -> list[float]:
    """Return the seconds of decisions, each after the job of the previous one was started."""
    twin, seconds = simulation.copy(), list[float]()
    for i in range(LATER + 1):
        job, chosen = f"{kind}{i}", list[tuple[str, ...] | None]()

        def decide(job: str = job, chosen: list[tuple[str, ...] | None] = chosen) -> None:
            chosen.append(twin.decide(job, policy))

        seconds += timed(decide, 1)
        if chosen[0] is not None:
            twin.start(job, chosen[0])
    return seconds[1:]


def plain_seconds(simulation: Simulation, policy: str) -> float:
    """Return the seconds of the same decision in plain Python, scaled from a few nodes to all."""
    cluster, jobs = simulation.cluster, {job.id: job for job in simulation.workflow.jobs}
    progress = dict(zip(simulation.workflow.index, simulation.world.jobs["progress"].tolist(), strict=True))
    count = min(BASELINE_NODES, len(cluster.nodes))
    residents = [[name for name in jobs if name.startswith(f"r{n}-")] for n in range(count)]
    running = [[_strand(i, jobs[name], progress[name]) for i, name in enumerate(names)] for names in residents]
    new = [_strand(-1, jobs["w0"], 0.0)]
    kind = cluster.nodes[0].type
    seconds = timed(
        lambda: [plain_python.what_if(r, new, kind.cores, kind.memory_bandwidth, policy) for r in running], 1
    )
    return seconds[0] * len(cluster.nodes) / count


def _strand(number: int, job: Job, progress: float) -> plain_python.Strand:
    (group,) = job.profile.groups
    remaining = group.isolated_time * (1.0 - progress)
    return plain_python.Strand(number, group.count, group.utilisation, group.bandwidth, remaining)


def measure(quick: bool) -> None:
    """Print the tables."""
    nodes = 2000 if quick else 10_000
    heading(f"One decision among {nodes:,} nodes with 10 running jobs each; targets 5, 15 (alike nodes) and 0.2 ms")
    rows = []
    for paper in (True, False):
        for alike in (False, True):
            simulation = busy(nodes, 10, paper, alike)
            for policy in ("mom", "let"):
                first = first_decisions(simulation, policy, 5)
                same, mixed = (later_decisions(simulation, policy, kind) for kind in ("same", "w"))
                median = statistics.median(first)
                plain = plain_seconds(simulation, policy) if paper else math.nan
                rows.append([
                    "paper's" if paper else "ours", "alike" if alike else "different", policy, ms(median),
                    ms(min(first)), ms(statistics.median(same)), ms(max(same)), ms(statistics.median(mixed)),
                    ms(max(mixed)),
                    ms(plain) if paper else "-", number(plain / median) if paper else "-",
                ])  # fmt: skip
    table(
        ("model", "nodes", "policy", "first ms", "least ms", "next alike ms", "most ms", "next other ms", "most ms",
         "plain Python ms", "ratio"),
        rows,
    )  # fmt: skip
    print(f"paper's: {MODELS[True]}; ours: {MODELS[False].replace('1.0', 'unlimited')}.")
    print("first: nothing cached, median of 5;")
    print("next: one job has been started since; median of 20 in a row, for jobs of one kind, or of any of 36;")
    print(f"plain Python: {BASELINE_NODES} nodes, scaled up.")
    heading("Growth of one decision (mom, nothing cached): linear in nodes, at most quadratic in jobs per node")
    _growth(quick)


def _growth(quick: bool) -> None:
    sizes = [(n, 10) for n in (625, 1250, 2500, 5000, 10_000)] + [(500, r) for r in (5, 10, 20, 40)]
    for paper in (True, False):
        rows: list[list[object]] = []
        before: tuple[int, float] | None = None
        for nodes, residents in sizes[1:3] + sizes[5:] if quick else sizes:
            simulation = busy(nodes, residents, paper, alike=False)
            seconds = min(first_decisions(simulation, "mom", 12))
            grown = len(rows) > 0 and (nodes, residents) != (500, 5) and before is not None
            rows.append([
                nodes, residents, ms(seconds), number(seconds / nodes * 1e6),
                f"x{seconds / before[1]:.2f} for x{nodes * residents / before[0]:.0f}" if grown and before else "-",
            ])  # fmt: skip
            before = nodes * residents, seconds
        print("paper's model" if paper else "our model")
        table(("nodes", "jobs a node", "least ms", "us a node", "growth"), rows)
