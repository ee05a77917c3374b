"""No request costs more than a bounded amount of work, whatever a user submits and asks: counted, not timed.

The measure is the number of calls of Python and C functions in one step of a request or in one cycle. About a million of
them take 0.2 s. Loops inside of C functions are bounded by the bytes of a request (see `ipc.LARGEST_BODY`).
"""

import json
import math
import sqlite3
import sys
from contextlib import closing
from dataclasses import fields, replace

import pytest

from pilotfish.daemon.config_sections import QuotaConfig
from pilotfish.daemon.learning.profile_learning import LearnedProfiles
from pilotfish.daemon.planning.guarded_planner import simulate_plan
from pilotfish.daemon.planning.problem import WINDOW, build_problem
from pilotfish.daemon.report.accuracy import LATEST
from pilotfish.daemon.report.status_documents import MOST_JOBS
from pilotfish.daemon.socket.ipc import LARGEST_BODY
from pilotfish.daemon.state import journal_rows
from pilotfish.daemon.state.forecasts import JobForecast
from pilotfish.daemon.state.queue_entry import Entry
from pilotfish.daemon.state.recorded_outcome import ForecastOutcome, QueueRecord
from pilotfish.daemon.state.users import Peer
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Job
from pilotfish.simulate.model.snapshot import JobState
from tests.support import effort

#: Calls in one step of a request, and in a cycle, at the quotas below, which are a twentieth of the default ones.
MOST_CALLS, MOST_OF_A_CYCLE = 300_000, 300_000
JOBS, ALL_JOBS, EDGES = 500, 5000, 15_000
QUOTAS = QuotaConfig(jobs=ALL_JOBS, workflow_jobs=JOBS, dependencies=EDGES, workflows=100)
PROFILE = {"groups": [{"count": 1, "service_demand": 50.0}]}
GUESS = {
    "groups": [{"count": 1, "service_demand": 60.0}], "name": "default",
    "provenance": {"source": "default", "note": DEFAULT_PROFILE.provenance.note},
}  # fmt: skip


class Calls:
    """Counts calls of functions."""

    def __init__(self):
        self.number = 0

    def __enter__(self):
        self.before = sys.getprofile()
        sys.setprofile(self.count)
        return self

    def count(self, frame, event, argument):
        self.number += event in ("call", "c_call")

    def __exit__(self, *problem):
        sys.setprofile(self.before)


class World:
    def __init__(self, bench, kit, tmp_path, quotas=QUOTAS):
        bench.profiles = LearnedProfiles(tmp_path / "profiles.sqlite")
        bench.restart()
        bench.cycle.planner.options = replace(bench.cycle.planner.options, window=WINDOW)
        self.bench, self.requests = bench, kit.requests_with(bench, bench.profiles, quotas)

    def ask(self, do, **arguments):
        """Return the reply, and the calls of the step that made most of them."""
        steps, most = self.requests.steps({"do": do, **arguments}, Peer(33, 33, 1)), 0
        while True:
            with Calls() as calls:
                try:
                    next(steps)
                    reply = None
                except StopIteration as end:
                    reply = end.value
            most = max(most, calls.number)
            if reply is not None:
                return reply, most

    def submit(self, *jobs, name="w", key=None, **more):
        text = json.dumps({"name": name, "jobs": jobs, **more})
        assert len(text) <= LARGEST_BODY
        return self.ask("submit", workflow=text, directory="/home/x", key=key)

    def cycle(self):
        with Calls() as calls:
            self.bench.run(1)
        return calls.number


@pytest.fixture
def world(bench, kit, tmp_path):
    return World(bench, kit, tmp_path)


def job(name, **changes):
    return {"id": str(name), "profile": PROFILE, "command": ["true"], **changes}


def each(**changes):
    """Return as many jobs as a workflow may have."""
    return [job(number, **changes) for number in range(JOBS)]


WORST = {
    "many jobs": each(),
    "too many jobs": [job(number) for number in range(20 * JOBS)],
    "names of two letters": [job(f"{number:0200b}".replace("0", "a").replace("1", "b")) for number in range(JOBS)],
    "an unknown predecessor": each(after=["zz" * 100]),
    "a chain": [job(number, after=[str(number - 1)] if number else []) for number in range(JOBS)],
    "a cycle": [job(number, after=[str((number + 1) % JOBS)]) for number in range(JOBS)],
    "one predecessor often": [job(0), job(1, after=["0"] * 300_000)],
    "many predecessors": [job(n, after=[str(m) for m in range(max(0, n - 30), n)]) for n in range(JOBS)],
    "a long word": [job(0, command=["x", "/a1b-" * 100_000])],
    "many words": [job(0, command=["x", *(f"a/{number}" for number in range(250_000))])],
    "a long script": [job(0, command=["sh", "-c", "A=1 x; " * 100_000])],
    "long commands": each(command=["sh", "-c", "A=1 'x';" * 100, *["env"] * 400]),
    "unknown programs": [job(n, profile=GUESS, command=[f"p{n}", "-x", str(n), "x.txt"]) for n in range(JOBS)],
    "many variables": [job(0, environment=[[f"A{number}", "1,2:3"] for number in range(30_000)])],
    "long variables": each(environment=[[f"A{number}", "1,2:3" * 20] for number in range(10)]),
    "many groups": [job(0, profile={"groups": [{"count": 1, "service_demand": 1.0}] * 3000})],
    "groups of many jobs": each(profile={"groups": [{"count": 1, "service_demand": 1.0}] * 3}),
    "many values": [
        job(0, profile={"groups": [{"count": 1, "service_demand": {"dist": "empirical", "values": [1.0] * 10**5}}]})
    ],
    "many inputs": [job(0, inputs=[[str(number), 1.0] for number in range(50_000)])],
    "many traits": [job(0, traits=[[f"t{number}", "x"] for number in range(50_000)])],
    "other shapes": [job(number, memory=float(number)) for number in range(JOBS)],
    "other profiles": [
        job(n, profile={"groups": [{"count": 1, "service_demand": 1.0 + n}]}) for n in range(JOBS)
    ],
    "other folders": [job(number, directory=f"{'d' * 100}/{number}") for number in range(JOBS)],
    "long folders": [job(0, directory="d" * 10**6)],
    "no jobs of the right kind": [{"id": number} for number in range(JOBS)],
}  # fmt: skip


@pytest.mark.parametrize("case", effort.some(WORST))
def test_a_submission_of_the_worst_kind_costs_little_in_each_step_and_cycle(world, case):
    _, most = world.submit(*WORST[case])
    assert most <= MOST_CALLS
    assert max(world.cycle() for _ in range(2)) <= MOST_OF_A_CYCLE
    name = next(iter(world.bench.cycle.tracker.queue.submissions), "w.aaaaaa")
    for do, arguments in (
        ("status", {}), ("status", {"workflow": name}), ("explain", {"job": "ab" * 100}), ("nodes", {}), ("board", {}),
        ("explain", {"job": f"{name}/{'ab' * 100}"}), ("cancel", {"target": f"{name}/{'ab' * 100}"}),
        ("cancel", {"target": "wwww" * 50}), ("accuracy", {}), ("cancel", {"target": name}),
    ):  # fmt: skip
        assert world.ask(do, **arguments)[1] <= MOST_CALLS, do
    assert max(world.cycle() for _ in range(2)) <= MOST_OF_A_CYCLE


@pytest.mark.long
def test_at_the_quotas_requests_and_cycles_cost_no_more(world):
    for number in range(ALL_JOBS // JOBS):
        reply, most = world.submit(*each(), name=f"flow{number}")
        assert reply["ok"] and most <= MOST_CALLS
    assert "jobs that have not ended" in world.submit(job(0))[0]["error"]
    assert max(world.cycle() for _ in range(2)) <= MOST_OF_A_CYCLE
    workflows = list(world.bench.cycle.tracker.queue.submissions)
    asked = [
        ("status", {}),
        ("status", {"of_state": "failed"}),
        ("status", {"of_user": "x"}),
        ("explain", {"job": "x1"}),
    ]
    asked += [("explain", {"job": "7"}), ("nodes", {}), ("board", {}), ("accuracy", {})]
    asked += [("cancel", {"target": workflow}) for workflow in workflows]
    for do, arguments in asked:
        assert world.ask(do, **arguments)[1] <= MOST_CALLS, (do, arguments)
    assert max(world.cycle() for _ in range(2)) <= MOST_OF_A_CYCLE
    assert world.submit(job(0))[0]["ok"]


@pytest.mark.long
def test_the_forecasts_of_many_jobs_are_answered_in_steps(world, kit):
    """As many as an answer has of jobs that have ended, and of jobs of the queue."""
    world.bench.run(1)
    world.bench.journal.keep_handed_over("rjms", 900.0)
    world.bench.kill()
    with closing(sqlite3.connect(world.bench.journal.path)) as journal, journal:
        choice = json.dumps({"nodes": ["n0"], "profile": "cmd: align.sh x", "run_within": [50.0, 90.0], "user": 34})
        for number in range(LATEST):
            entry = Entry("rjms", Job(str(number), DEFAULT_PROFILE, owner=34), number, offered=True)
            entry.state, entry.start_time, entry.finish_time = JobState.COMPLETED, 1000.0 + number, 1060.0 + number
            entry.since = 900.0 + number
            entry.forecast = JobForecast(1000.0 + number, 1070.0 + number, 60.0, 1.0)
            journal.execute(journal_rows.SAVE, journal_rows.row_of(entry))
            story = "INSERT INTO story (key, time, kind, text, data) VALUES (?, 1.0, 'chosen', 'x', ?)"
            journal.execute(story, (entry.key, choice))
            record = QueueRecord(entry.key, "x", 34, walltime=100.0, submit_time=entry.since)
            record.start_time, record.finish_time = entry.start_time, entry.finish_time
            journal_rows.put(journal.execute, "queued", record)
    world.bench.restart()
    world.requests = kit.requests_with(world.bench, world.bench.profiles, QUOTAS)
    reply, most = world.ask("accuracy")
    assert len(reply["jobs"]) == len(reply["starts"]) == LATEST
    assert most <= MOST_CALLS
    profile = [member.name for member in fields(ForecastOutcome)].index("profile")
    assert {job[profile] for job in reply["jobs"]} == {"cmd: align.sh"}  # the other words are its user's


def test_in_the_one_step_that_reads_a_long_queue_a_job_costs_few_calls(world):
    for number in range(ALL_JOBS // JOBS):
        world.submit(*each(), name=f"flow{number}")
    world.bench.run(1)
    tracker = world.bench.cycle.tracker
    with Calls() as calls:
        build_problem(tracker.queue, tracker.snapshot, window=WINDOW)
    assert calls.number <= 12 * ALL_JOBS


LARGE = 6000


@pytest.mark.long
def test_a_large_workflow_costs_no_more_in_a_step_than_a_part_of_it(bench, kit, tmp_path):
    world = World(bench, kit, tmp_path, QuotaConfig())
    jobs = [job(number, directory=f"d{number}", command=["x", f"a{number}"]) for number in range(LARGE)]
    costs = {}
    reply, costs["submit"] = world.submit(*jobs, key="k")
    workflow = reply["id"]
    again, costs["submit again"] = world.submit(*jobs, key="k")
    assert again["again"] and again["id"] == workflow
    for name, changes in {"fewer": {}, "another": {"command": ["y"]}}.items():
        others = [*jobs[:-1], jobs[-1] | changes] if changes else jobs[:-1]
        refused, costs[f"submit {name}"] = world.submit(*others, key="k")
        assert "was used for another workflow" in refused["error"]
    for do, arguments in (("status", {"of_name": "*a*a*a*b"}), ("cancel", {"target": workflow})):
        reply, costs[do] = world.ask(do, **arguments)
        assert reply["ok"]
    assert reply["cancelled"] == LARGE
    for do, arguments in (
        ("status", {"workflow": workflow}), ("explain", {"job": f"{workflow}/7"}), ("cancel", {"target": workflow}),
    ):  # fmt: skip
        requests = kit.requests_with(bench, bench.profiles, QuotaConfig())  # it has kept nothing in memory
        world.requests = requests
        costs[f"{do} of the past"] = world.ask(do, **arguments)[1]
    assert {name: cost for name, cost in costs.items() if cost > MOST_CALLS} == {}


def test_ended_workflows_of_others_are_not_read_for_an_answer(world, kit):
    for number in range(12):
        text = json.dumps({"name": f"other{number}", "jobs": each()})
        end = world.requests.handle({"do": "submit", "workflow": text, "directory": "/x"}, Peer(34, 34, 1))
        world.requests.handle({"do": "cancel", "target": end["id"]}, Peer(34, 34, 1))
        if number == 5:
            mine = world.submit(*each(), name="mine")[0]["id"]
            world.ask("cancel", target=mine)
    world.requests = kit.requests_with(world.bench, world.bench.profiles, QUOTAS)
    reads, find_steps = [], world.bench.journal.find_steps
    world.bench.journal.find_steps = lambda workflow: reads.append(workflow) or find_steps(workflow)
    reply = world.ask("status")[0]
    shown = {flow["id"]: len(flow["jobs"]) for flow in reply["workflows"]}
    assert reads[0] == mine and len(reads) == MOST_JOBS // JOBS and shown[mine] == JOBS
    assert len(shown) == 13 and all(flow["job_counts"] == {"cancelled": JOBS} for flow in reply["workflows"])
    assert [flow["name"] for flow in reply["workflows"]][:2] == ["other0", "other1"]


def test_text_with_too_many_values_is_not_read(world):
    text = json.dumps({"name": "w", "jobs": [job(0, inputs=[["a", 1]] * 300_000)]})
    reply, _ = world.ask("submit", workflow=text, directory="/x")
    most = 64 * JOBS + EDGES
    assert f"(allowed: {most:,}, 64 for each job of quotas.workflow_jobs and one for each of" in reply["error"]


def test_text_that_is_not_read_costs_nothing(world):
    world.ask("submit", workflow="[", directory="/x")  # what the first error imports is not counted
    for text in ("[" * LARGEST_BODY, "{" * LARGEST_BODY, '"' + "\\u0041" * 10**6, "1" * LARGEST_BODY, "\x00" * 10**6):
        reply, most = world.ask("submit", workflow=text, directory="/x")
        assert not reply["ok"] and len(reply["error"]) < 2000 and most <= 10_000
    for name in ("directory", "key"):
        arguments = {"workflow": "{}", "directory": "/x", name: "/" * 10**6}
        assert world.ask("submit", **arguments)[1] <= 10_000
    for do, name in (("explain", "job"), ("cancel", "target"), ("status", "workflow"), ("status", "of_user")):
        assert world.ask(do, **{name: "x" * 30_000})[1] <= 10_000


class Breaths:
    """Counts the calls between two moments of a plan at which clients can be answered; `at` does more at one of them."""

    def __init__(self):
        self.number, self.most, self.at, self.before = 0, 0, {}, 0

    def watch(self, world):
        world.bench.cycle.planner.make_plan, world.bench.cycle.planner.breathe = simulate_plan, self
        with Calls() as self.calls:
            (report,) = world.bench.run(1)
            self()  # the rest of the cycle
        return report

    def __call__(self):
        self.most, self.before = max(self.most, self.calls.number - self.before), self.calls.number
        self.number += 1
        self.at.pop(self.number, lambda: None)()


@pytest.mark.parametrize("policy", ["lookahead", "mom", "easy", "conservative"])
def test_clients_can_be_answered_between_two_runs_of_a_plan(world, policy):
    world.submit(*each(walltime=100.0))
    planner, breaths = world.bench.cycle.planner, Breaths()
    planner.options = replace(planner.options, policy=policy, objective="turnaround")
    report = breaths.watch(world)
    assert breaths.number > report.plan.evaluations or policy == "easy"  # one loop of machine code
    assert breaths.most <= MOST_CALLS
    assert report.plan.evaluations > 100 or policy != "lookahead"


def test_what_clients_change_during_a_plan_holds_and_changes_no_plan(world):
    planner, breaths = world.bench.cycle.planner, Breaths()
    planner.options = replace(planner.options, policy="lookahead", objective="turnaround")
    world.submit(*[job(n) for n in range(30)], name="first")
    world.submit(job("only"), name="second")
    problem = {}
    queue = world.bench.cycle.tracker.queue.submissions
    first, second = queue

    def keep(given, cluster, options):
        problem.update(problem=given, cluster=cluster, options=replace(options, should_stop=None, breathe=None))
        return simulate_plan(given, cluster, options)

    def change():
        assert world.ask("cancel", target=f"{first}/0")[0]["cancelled"] == 1
        assert world.ask("cancel", target=second)[0]["cancelled"] == 1
        assert world.ask("submit", workflow=json.dumps({"name": "third", "jobs": [job("x")]}), directory="/x")[0]["ok"]
        assert world.ask("status")[0]["ok"] and world.ask("explain", job=f"{first}/1")[0]["ok"]

    breaths.at[50] = change
    breaths.calls = Calls()
    planner.make_plan, planner.breathe = keep, breaths
    (report,) = world.bench.run(1)
    assert not breaths.at
    started = {applied.action.key for applied in report.applied}
    assert started and f"{first}/0" not in started and f"{second}/only" not in started
    assert second not in queue
    plain = simulate_plan(problem["problem"], problem["cluster"], problem["options"])
    assert replace(report.plan, simulated_in=0.0) == replace(plain, simulated_in=0.0)
    third = next(name for name in queue if name.startswith("third"))
    assert world.bench.cycle.trigger.changed  # the next cycle plans with the submission
    (report,) = world.bench.run(1)
    assert any(planned.id == f"{third}/x" for planned in report.plan.jobs)
    for _ in range(100):
        world.bench.run(1, step_s=50.0)
    assert not queue and set(world.bench.manager.runs.values()) == {1}
    assert len(world.bench.manager.runs) == 30 and not math.isinf(world.bench.cycle.tracker.now)


def test_workflows_of_others_displace_none_and_old_ones_cost_nothing(world, monkeypatch):
    monkeypatch.setattr("pilotfish.daemon.state.journal.NAMED", 30)
    mine = world.submit(job("mine"), name="mine")[0]["id"]
    world.bench.run(60, step_s=10.0)
    for number in range(25):
        text = json.dumps({"name": f"other{number}", "jobs": [job("theirs")]})
        end = world.requests.handle({"do": "submit", "workflow": text, "directory": "/x"}, Peer(34, 34, 1))
        assert end["ok"]
        world.requests.handle({"do": "cancel", "target": end["id"]}, Peer(34, 34, 1))
    reply = world.ask("status")[0]
    assert mine in {each["id"] for each in reply["workflows"]}
    assert world.ask("explain", job="mine")[0]["ok"] and world.ask("status", workflow="mine")[0]["ok"]
    assert list(world.bench.journal.recent(20)) == [each for each in world.bench.journal.recent(20, 33) if each != mine]
    monkeypatch.setattr("pilotfish.daemon.state.journal.NAMED", 5)
    assert "no workflow has a job" in world.ask("explain", job="mine")[0]["error"]
