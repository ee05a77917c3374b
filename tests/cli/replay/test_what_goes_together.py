"""Each policy in each world: it replays and obeys the laws of that world, or one line says why it does not."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import typer

from pilotfish.adapters.simulated.adapter import SimulatedAdapter
from pilotfish.cli.replay.queue_decider import QueueDecider
from pilotfish.cli.replay.replay_options import JobOptions, MachineOptions, decision_seconds
from pilotfish.cli.replay.replay_request import ReplayInput, ReplayRequest
from pilotfish.cli.replay.service_decider import ServiceDecider
from pilotfish.cli.workflows.plan_request import PlanRequest
from pilotfish.daemon.config import load_config, load_policy_of
from pilotfish.daemon.one_off import WorkflowRun, beginning_with
from pilotfish.daemon.planning.problem import Options
from pilotfish.daemon.report.metrics import Metrics
from pilotfish.profiles.prediction.online_run_times import OnlineRunTimes
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType, Power, Transition
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.machine import TAURUS_POWERS, Machine, machine_of
from pilotfish.simulate.model.network import Link, Network, NetworkPlace, NetworkRoute, Tree
from pilotfish.simulate.model.plan import Plan
from pilotfish.simulate.model.programs import Even, Part, ProgramBuilder
from pilotfish.simulate.model.snapshot import JobState
from pilotfish.simulate.model.workload import Dependencies, Workload
from pilotfish.simulate.planning import lookahead
from pilotfish.simulate.queue_policies.policy_specs import parse
from pilotfish.simulate.world.replay_result import Replayed
from tests.reference.plain_contended import Plain as Contended
from tests.reference.plain_network import plain_network
from tests.reference.plain_networked_nodes import PlainNodes
from tests.reference.plain_shared_nodes import Plain
from tests.simulate.replay.test_replay import places
from tests.simulate.replay.worlds.test_shared_nodes import agree, nodes_of, shapes_of

PAGE = Path(__file__).parents[3] / "docs/reference/what-goes-together.md"
MINE = """
from pilotfish.api import Start

class Mine:
    def decide(self, now):
        free = now.free_nodes()
        for job in now.waiting:
            if (nodes := free.where(job)) is None:
                return
            free.take(job, nodes)
            yield Start(job, nodes=nodes)
"""
POLICIES = (
    "easy", "easy:order=wfp3", "strict", "conservative", "conservative:allocation=contiguous", "easy:share=1.1",
    "conservative:share=1.1",
    "easy+opportunistic", "easy+powercap:cap=95%", "easy+energybud:budget=70%", "easy+proportional", "easy+inertial",
    "easy:share=1.1+opportunistic", "easy:share=1.1+powercap:cap=95%", "easy:share=1.1+energybud:budget=70%",
    "easy:share=1.1+proportional", "easy:share=1.1+inertial", "conservative:share=1.1+powercap:cap=95%",
    "conservative+opportunistic", "conservative+powercap:cap=95%", "conservative+energybud:budget=70%",
    "conservative+proportional", "conservative+inertial",
    "pairs", "pairs+powercap:cap=95%", "nodes", "nodes+powercap:cap=95%", "nodes+energybud:budget=70%",
    "mom", "mom+powercap:cap=95%", "mom+opportunistic", "mom+energybud:budget=70%", "let", "let+powercap:cap=95%",
    "slf", "slf+powercap:cap=95%", "loadavg", "loadavg+powercap:cap=95%", "lookahead", "lookahead+powercap:cap=95%",
    "./mine.py:Mine",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class World:
    """A column: what is replayed, and with which options of `simulate`."""

    title: str
    cluster: bool = False  # jobs run on nodes, next to others
    network: bool = False
    dependencies: bool = False
    options: dict[str, Any] = field(default_factory=dict)


WORLDS = (
    World("processors"),
    World("dependencies", dependencies=True),
    World("decisions take time", options={"deciding": "2"}),
    World("predicted run times", options={"runtimes": "predicted"}),
    World("network", network=True),
    World("network, dependencies", network=True, dependencies=True),
    World("network, decisions take time", network=True, options={"deciding": "2"}),
    World("network, predicted run times", network=True, options={"runtimes": "predicted"}),
    World("shared nodes", cluster=True),
    World("shared nodes, dependencies", cluster=True, dependencies=True),
    World("shared nodes, decisions take time", cluster=True, options={"deciding": "2"}),
    World("shared nodes, predicted run times", cluster=True, options={"runtimes": "predicted"}),
    World("shared nodes, network", cluster=True, network=True),
    World("shared nodes, network, dependencies", cluster=True, network=True, dependencies=True),
    World("shared nodes, network, decisions take time", cluster=True, network=True, options={"deciding": "2"}),
    World("shared nodes, network, predicted run times", cluster=True, network=True, options={"runtimes": "predicted"}),
)
SWITCHED = Power(40.0, 5.0, off=2.0, switch_on=Transition(50.0, 3.0), switch_off=Transition(30.0, 1.0))
KIND = NodeType("small", 4, 8e9, 20e9, speed=10.0, power=SWITCHED)
TREE = Tree(40.0, 60.0, 25.0, 0.25, (10.0,) * 3, (0, 0, 1))
CLUSTER = Cluster("lab", tuple(Node(f"n{i}", KIND) for i in range(3)), source="lab.yaml", wiring=TREE)
NETWORK = Network(
    np.full(12, 10.0), np.repeat(np.arange(2), 6), [NetworkPlace("east", 40.0), NetworkPlace("west", 30.0)],
    [Link("backbone", 25.0)],
    [NetworkRoute(), NetworkRoute((0,), 0.25), NetworkRoute((0,), 0.25), NetworkRoute()],
)  # fmt: skip


def columns_of(seed: int) -> dict[str, Any]:
    """Return what 16 jobs that queue ask for."""
    draw, count = np.random.default_rng(seed), 16
    submit, size = np.sort(draw.integers(0, 30, count)).astype(float), draw.integers(1, 9, count)
    run = draw.integers(2, 25, count).astype(float)
    columns = {"submit": submit, "size": size, "run": run, "volume": run * draw.choice([0.0, 2e9, 9e9], count)}
    return columns | {"user": draw.integers(0, 3, count), "sent": draw.integers(0, 20, count).astype(float)}


def jobs_of(world: World, seed: int = 7, later: tuple[int, int] | None = None) -> tuple[Workload, list[Part]]:
    """Return 16 jobs that queue, and their programs if they communicate.

    Args:
        world: the world.
        seed: of all that is drawn.
        later: a row, and the seed of the jobs from there on, which are submitted at the same times.
    """
    columns, count = columns_of(seed), 16
    if later is not None:
        later_columns = columns_of(later[1])
        for name in columns.keys() - {"submit"}:
            columns[name][later[0] :] = later_columns[name][later[0] :]
    submit, size, run, volume, user, sent = columns.values()
    more: dict[str, Any] = {"volume": volume, "memory": np.full(count, 1e8), "user": user, "asked": run * 3.0}
    before = np.array([0, 2, 5, 5])
    needed = Dependencies(before, before + 4) if world.dependencies else None
    jobs = Workload("w", np.arange(1, count + 1), submit, run, run * 3.0, size, more=more, dependencies=needed)
    if not world.network:
        return jobs, []
    moved = volume.tolist() if world.cluster else [0.0] * count
    laying, parts = ProgramBuilder(), [Even(10.0 * run[i], sent[i], moved[i]) for i in range(count)]
    numbers = [laying.add(part, int(size_of_job)) or 0 for part, size_of_job in zip(parts, size, strict=True)]
    more["program"] = np.array(numbers)
    return replace(
        jobs, run_time=np.full(count, math.nan), walltime=run * 9.0, more=more, programs=laying.programs()
    ), [*parts]


def replayed(
    policy: str, world: World, folder: Path, seed: int = 7, later: tuple[int, int] | None = None
) -> tuple[Replayed, list[Part]]:
    """Replay the jobs as `simulate` does. Raises what it would show as an error."""
    jobs, parts = jobs_of(world, seed, later)
    spec = policy.replace("./", f"{folder}/")
    runtimes, deciding = world.options.get("runtimes", "walltime"), world.options.get("deciding", "ignore")
    predictor = OnlineRunTimes(jobs) if runtimes == "predicted" else None
    if policy == "lookahead":
        if not world.cluster:
            raise typer.BadParameter("chooses among nodes")  # `cli.simulate` says it before there is a request
        service = ServiceDecider.mapping(policy, folder / "lab.yaml", 0, runtimes, decision_seconds(deciding))
        return service.run(jobs, CLUSTER, predictor=predictor).replayed, parts
    decider = QueueDecider(spec, runtimes, deciding, 0, contention=world.cluster)
    options = MachineOptions(folder / "lab.yaml" if world.cluster else None, contention=world.cluster)
    request = ReplayRequest(JobOptions([folder / "trace.swf"]), options, decider)
    machine = machine_of(CLUSTER) if world.cluster else Machine(12, powers=TAURUS_POWERS, network=lambda: NETWORK)
    read = ReplayInput(jobs, machine, "")
    replay, _ = decider.replay(request, read, predictor, lambda now: None, log_power=False)
    return replay, parts


def obeys(done: Replayed, parts: list[Part], world: World, policy: str) -> None:
    """Assert the laws: each job once, no resource twice, in order, and as fast as a naive reference has it."""
    jobs = done.workload
    alone = policy.startswith(("pairs", "nodes")) and not world.network  # their tasks are independent
    large = jobs.size > KIND.cores if alone and policy[0] == "n" else np.zeros(len(jobs), bool)  # fit on no node
    assert (np.isnan(done.finish_time) == large).all() and (done.rejected == large).all(), "each job runs"
    assert not (done.start_time < jobs.submit_time).any()
    if jobs.dependencies is not None:
        assert not (done.start_time[jobs.dependencies.after] < done.finish_time[jobs.dependencies.before]).any()
    busy = sorted((done.start_time[i], done.finish_time[i], one) for i in range(len(jobs)) for one in places(done, i))
    last: dict[int, float] = {}
    for start, finish, one in busy:
        assert last.get(one, 0.0) <= start + 1e-9, f"resource {one} runs two jobs"
        last[one] = finish
    if "+powercap" in policy:
        powers = machine_of(CLUSTER).powers if world.cluster else TAURUS_POWERS
        limit: Any = parse(policy).limit
        within_cap(done, limit.allowed(powers, done.machine), limit.window(jobs))
    if alone:  # and contend by a model of their own
        cap = (*limit.window(jobs), LIVE_CAP) if "+powercap" in policy else (0.0, 0.0, 0)
        model = Contended(jobs, CLUSTER, parse(policy).plain, takes=float(world.options.get("deciding", "0")), cap=cap)
        np.testing.assert_array_equal([done.start_time, done.finish_time], [model.start, model.finish])
    elif world.network and world.cluster:
        shapes = shapes_of(jobs, CLUSTER)
        both = PlainNodes(jobs, parts, CLUSTER, TREE.network(), [shape[1] for shape in shapes if shape])
        both.follow(dict(enumerate(done.start_time.tolist())), nodes_of(done, [4, 4, 4]))
        np.testing.assert_allclose(done.finish_time, [both.finish[i] for i in range(len(jobs))], rtol=1e-6, atol=1e-6)
    elif world.network:
        order = np.argsort(done.start_time, kind="stable")
        began = replace(jobs.take(order), submit_time=done.start_time[order], dependencies=None)
        _, finish, _ = plain_network(began, [parts[i] for i in order], NETWORK, given=[places(done, i) for i in order])
        np.testing.assert_allclose(done.finish_time[order], finish, rtol=1e-6, atol=1e-6)
    elif world.cluster:
        plain = Plain(jobs, CLUSTER, shapes_of(jobs, CLUSTER), actual=True)
        plain.follow(dict(enumerate(done.start_time.tolist())), nodes_of(done, [4, 4, 4]))
        agree(done, plain)
    else:
        ends = done.start_time + np.minimum(jobs.run_time, jobs.walltime)
        np.testing.assert_allclose(done.finish_time, ends, rtol=1e-12)


def within_cap(done: Replayed, allowed: int, window: tuple[float, float]) -> None:
    """Assert that no start in the window of a cap takes more resources than it allows."""
    begin, end = window
    for start in done.start_time[(done.start_time >= begin) & (done.start_time < end)].tolist():
        running = np.flatnonzero((done.start_time <= start) & (done.finish_time > start))
        used = sum(len(places(done, row)) for row in running.tolist())
        assert used <= allowed < done.machine


def cell(policy: str, world: World, folder: Path) -> str:
    """Replay and check one cell; return "" or why there is no such replay."""
    try:
        replay, parts = replayed(policy, world, folder)
    except typer.BadParameter as error:
        why = re.sub(r" \((allowed|needed).*", "", error.message)
        return re.sub(rf"^.*({re.escape(policy.removeprefix('.'))}|does not go with '.*'):? ", "", why, count=1)
    except ConfigError as error:
        return error.problem
    obeys(replay, parts, world, policy)
    return ""


# --- plans and the service ---
#: Without begin and end, a power cap must leave room for each job.
LIVE_POLICIES = (
    *POLICIES,
    "easy+powercap:cap=95%,begin=0,end=4e9", "conservative+powercap:cap=95%,begin=0,end=4e9",
    "pairs+powercap:cap=95%,begin=0", "mom+powercap:cap=95%,begin=0",
    "easy+energybud:budget=70%,end=4e9", "easy+reducepc:budget=70%,end=4e9",
    "easy+energybud:budget=70%,end=4e9+opportunistic",
)  # fmt: skip
#: The world of the jobs that the service gets.
SERVED = World("shared nodes", cluster=True)
#: Cores that may compute under a cap of 95 %: (0.95 x 180 W - 120 W) / 5 W.
LIVE_CAP = 10
#: Jobs of a workflow: seconds, cores on a node, nodes; more than fit on the three nodes of four cores at a time.
WORKFLOW = tuple(
    Job(
        f"j{i}",
        Profile((ThreadGroup(cores, run, bandwidth=2e9 * (i % 3)),)),
        nodes=nodes,
        memory=1e8,
        walltime=5.0 * run,
    )
    for i, (run, cores, nodes) in enumerate(
        ((9.0, 4, 1), (4.0, 3, 2), (7.0, 2, 1), (3.0, 3, 3), (5.0, 1, 1), (2.0, 2, 2))
    )
)


def made_plan(policy: str, folder: Path) -> Plan:
    """Plan the workflow as the command `plan` does. Raises what it would show as an error."""
    request = PlanRequest(policy.replace("./", f"{folder}/"), "makespan", 0, None, None)
    return request.plan(Workflow("w", WORKFLOW), CLUSTER)


def planned(policy: str, folder: Path) -> None:
    plan = made_plan(policy, folder)
    assert {job.id for job in plan.jobs} == {job.id for job in WORKFLOW}
    fits_at_all_times({job.id: (job.start_time, job.finish_time, job.nodes) for job in plan.jobs}, policy)


def run(policy: str, folder: Path) -> None:
    """Run the workflow by its plan, as the command `run` does, on the simulated adapter."""
    adapter = SimulatedAdapter(CLUSTER)
    plan, flow, clock = made_plan(policy, folder), Workflow("w", WORKFLOW), lambda: adapter.time
    planner = beginning_with(plan, "r.1", flow, clock)
    workflow_run = WorkflowRun("r.1", flow, adapter, Metrics(), clock, Options(plan.policy), planner=planner)
    try:
        submission = workflow_run.until_ended(lambda report: None, lambda: False)
    finally:
        workflow_run.close()
    assert submission.state is JobState.COMPLETED
    ran = {entry.job.id: (entry.start_time, entry.finish_time, entry.nodes) for entry in submission.entries.values()}
    fits_at_all_times(ran, policy)


def served(policy: str, folder: Path) -> None:
    """Give the jobs of a trace to the control loop of the service, with its configuration."""
    config = _configuration(policy, folder)
    loaded = load_config(config)
    load_policy_of(loaded, config)
    service, (jobs, _) = ServiceDecider(loaded, config), jobs_of(SERVED)
    outcome = service.run(jobs, CLUSTER)
    assert not outcome.failures, "the policy decided, not the fallback"
    obeys(outcome.replayed, [], SERVED, "service")
    if "+powercap" in service.config.policy:
        within_cap(outcome.replayed, LIVE_CAP, (-math.inf, math.inf))


def replayed_service(policy: str, folder: Path) -> None:
    """Prepare what `replay` does, and compare it with the service in `served`, whose jobs are not run again."""
    config = _configuration(policy, folder)
    service = ServiceDecider.configured(config)
    service.check_machine(machine_of(CLUSTER))
    service.prepare(jobs_of(SERVED)[0], machine_of(CLUSTER))
    assert vars(service) == vars(ServiceDecider(load_config(config), config))


def _configuration(policy: str, folder: Path) -> Path:
    config = folder / "pilotfish.yaml"
    config.write_text(f"schema: pilotfish/daemon/v1\ncluster: lab.yaml\npolicy: {policy}\n")
    return config


def fits_at_all_times(ran: dict[str, tuple[float, float, tuple[str, ...]]], policy: str) -> None:
    """Assert that no node ever runs more threads than it has cores, nor all together more than a power cap allows."""
    cores = {job.id: job.profile.threads for job in WORKFLOW}
    for start, _, nodes in ran.values():
        going = [name for name, (begin, end, _) in ran.items() if begin <= start < end - 1e-9]
        assert "+powercap" not in policy or sum(cores[name] * len(ran[name][2]) for name in going) <= LIVE_CAP
        for node in nodes:
            names = [name for name, (begin, end, on) in ran.items() if node in on and begin <= start < end - 1e-9]
            assert sum(cores[name] for name in names) <= KIND.cores


LIVE: dict[str, Callable[[str, Path], None]] = {
    "`plan`": planned, "`run`": run, "`daemon`": served, "`replay`": replayed_service,
}  # fmt: skip


def live_cell(policy: str, column: str, folder: Path) -> str:
    """Plan, run or serve, and check; return "" or why the command refuses the policy."""
    try:
        LIVE[column](policy, folder)
    except (typer.BadParameter, ConfigError) as error:
        problem = getattr(error, "problem", None) or str(error)
        return re.sub(
            r"^(Value error, )?(policy: )?'[^']*' (does not go with '.*': it )?",
            "it ",
            re.sub(r" \((allowed|needed).*", "", problem),
        ).strip()
    return ""


def page(found: dict[str, list[str]], live: dict[str, list[str]]) -> str:
    """Return the page of the documentation."""
    reasons = list(dict.fromkeys(why for row in (*found.values(), *live.values()) for why in row if why))
    letter = {why: chr(ord("a") + i) for i, why in enumerate(reasons)} | {"": "yes"}
    notes = [f"- **{letter[why]}**: {why.removeprefix('missing: ')}." for why in reasons]

    def table(columns: Iterable[str], rows: dict[str, list[str]]) -> list[str]:
        lines = [("Policy", *columns), *(("---",) * (len(row) + 1) for row in [next(iter(rows.values()))])]
        lines += [(f"`{policy}`", *(letter[why] for why in row)) for policy, row in rows.items()]
        return ["| " + " | ".join(line) + " |" for line in lines]

    replays, plans = table((world.title for world in WORLDS), found), table(LIVE, live)
    return "\n".join([INTRODUCTION, *replays, LIVE_INTRODUCTION, *plans, "", "## Why not", *notes, ""])


INTRODUCTION = """# What goes together
## Replays
Which policy replays in which world (`pilotfish simulate`). `tests/cli/replay/test_what_goes_together.py` replays each
cell, checks that each job runs once, in order and on resources of its own, and compares its run times with those of a
naive reference. A letter is the reason why there is no such replay. A machine of processors has no nodes to choose
among. Nodes whose jobs do not slow each other down are a cluster file with `contention: none`.
"""


LIVE_INTRODUCTION = """
## Plans and the service
Which policy plans a workflow, runs it, and decides in the service. The same test does each: `plan`, `run` on the simulated
adapter, and the control loop of the service with the jobs of a trace, where no plan may fail. The parts that switch nodes
(`opportunistic`, `proportional`, `inertial`) need an adapter that can: Slurm, or the simulated one where the cluster file
has power off and the times of switching. Else the daemon does not start, and says so. The times of a limit are seconds of
the service's clock, or dates.
"""


@pytest.mark.long
def test_every_policy_in_every_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If this fails because the page is out of date: run this file (`python -m tests.cli.replay.test_what_goes_together`)."""
    monkeypatch.setattr(lookahead, "FOR_A_SECOND", 1)  # the laws hold however long it searches
    assert PAGE.read_text() == page(every_cell(tmp_path), every_live_cell(tmp_path))


def every_cell(folder: Path) -> dict[str, list[str]]:
    """Return the row of each policy."""
    (folder / "mine.py").write_text(MINE)
    (folder / "lab.yaml").write_text("schema: pilotfish/cluster/v1\n")
    return {policy: [cell(policy, world, folder) for world in WORLDS] for policy in POLICIES}


def every_live_cell(folder: Path) -> dict[str, list[str]]:
    """Return the row of each policy in the table of plans and the service."""
    (folder / "mine.py").chmod(0o600)  # a service executes trusted files only
    return {policy: [live_cell(policy, column, folder) for column in LIVE] for policy in LIVE_POLICIES}


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        PAGE.write_text(page(every_cell(Path(folder)), every_live_cell(Path(folder))))
