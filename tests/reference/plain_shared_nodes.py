"""A replay on nodes that jobs share, in plain Python on the oracle of workflows: slow, and independent of the engine."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from pilotfish.simulate.model.cluster import Cluster
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.workload import Workload
from tests.reference.fluid_oracle import INSTANT, Oracle

SHORTEST = 1e-6
Places = Mapping[int, tuple[int, ...]]


class Plain(Oracle):
    """A trace under a mapping policy, or with the starts that another schedule has.

    `shapes`: nodes and threads of each job, None if it fits nowhere; `told`: expected work over true work.
    """

    def __init__(self, workload: Workload, cluster: Cluster, shapes: list[tuple[int, int] | None], *, actual: bool):
        slowest = min(cluster.types, key=lambda kind: kind.relative_speed)
        volume = workload.more.get("volume", np.zeros(len(workload)))
        memory = workload.more.get("memory", np.zeros(len(workload)))
        jobs = []
        for row, shape in enumerate(shapes):
            nodes, threads = shape or (1, 1)
            run = float(workload.run_time[row])
            rate = float(volume[row]) / run if run > 0 else 0.0
            group = ThreadGroup(threads, max(run, SHORTEST), bandwidth=rate)
            profile = Profile((group,), measured_on=slowest.name)
            jobs.append(Job(f"j{row}", profile, nodes=nodes, memory=float(memory[row]) * threads))
        super().__init__(Workflow("w", tuple(jobs)), cluster)
        self.workload, self.killed, self.learned = workload, set[int](), set[int]()
        self.waiting = {row for row, shape in enumerate(shapes) if shape is not None}
        self.told = [
            1.0 if actual else max(float(wall), SHORTEST) / max(float(run), SHORTEST)
            for wall, run in zip(workload.walltime, workload.run_time, strict=True)
        ]

    def replay(
        self, policy: str, theirs: Places, takes: float = 0.0, predictor: Any = None,
        cap: tuple[float, float, int] = (0.0, 0.0, 0),
    ) -> None:  # fmt: skip
        """Run to the end, preferring the nodes `theirs` where scores are equal but for rounding.

        `takes`: seconds from a decision until its jobs start; `predictor`: of run times, as the engine has it; `cap`:
        begin and end of a power cap, and the most threads that may then run.
        """
        self.cap = cap
        ready: dict[int, float] = {}
        decided, due, news = dict[int, tuple[int, ...]](), math.inf, False
        self.state.t = min((float(self.workload.submit_time[row]) for row in self.waiting), default=0.0)
        while True:
            now, new = self.state.t, self.waiting - ready.keys()
            new = {row for row in new if self.workload.submit_time[row] <= now}
            if predictor and new:
                self._predict(predictor, min(new))
            ready |= dict.fromkeys(new, now)
            news |= bool(new) or now in self.state.finish.values() or now in cap[:2]
            applies = due <= now + INSTANT
            if applies:
                for row, nodes in decided.items():
                    self.state.place(row, nodes)
                due = math.inf
            if due == math.inf and (news or not applies):
                decided, news = self._decide(policy, ready, theirs), False
                for row in decided:
                    del ready[row]
                    self.waiting.discard(row)
                if takes:
                    due = now + takes
                else:
                    for row, nodes in decided.items():
                        self.state.place(row, nodes)
            others = [self.workload.submit_time[row] for row in self.waiting - ready.keys()]
            changes = [time for time in cap[:2] if time > now and ready]
            if not self._go_on(min([*others, due, *changes])):
                return

    def _decide(self, policy: str, ready: dict[int, float], theirs: Places) -> dict[int, tuple[int, ...]]:
        """Return the nodes of the jobs that start now, in order; each choice knows of those before it."""
        really, found = self.state, dict[int, tuple[int, ...]]()
        self.state = replace(
            really, strands=[replace(s) for s in really.strands], threads=dict(really.threads),
            memory=dict(really.memory), where=dict(really.where), start=dict(really.start),
        )  # fmt: skip
        for row in sorted(ready, key=lambda row: (ready[row], row)):
            begin, end, most = self.cap
            threads = sum(self.state.threads.values()) + self.jobs[row].profile.threads * self.jobs[row].nodes
            if begin <= self.state.t < end and threads > most:
                continue
            nodes = self.choose(row, policy)
            if nodes is not None and nodes != theirs[row]:
                nodes = self._other(row, nodes, theirs[row], 1e-7)
            if nodes is not None:
                self.state.place(row, nodes)
                found[row] = nodes
        self.state = really
        return found

    def _predict(self, predictor: Any, row: int) -> None:
        """Predict the jobs that are submitted with this one, from those that ended before."""
        times = self.workload.submit_time
        finish = self.state.finish
        for ended in sorted(finish, key=lambda row: (finish[row], row)):
            if finish[ended] < times[row] and ended not in self.learned:
                self.learned.add(ended)
                predictor.ended(ended)
        for each in range(row, len(times)):
            if times[each] != times[row]:
                break
            wall = float(self.workload.walltime[each])
            seconds = min(predictor.expected(each) or 0.0, wall)
            self.told[each] = max(seconds, SHORTEST) / max(float(self.workload.run_time[each]), SHORTEST)

    def follow(self, starts: Mapping[int, float], theirs: Places) -> None:
        """Start jobs when and where another schedule does, so that only their progress is compared."""
        left = dict(starts)
        while True:
            for row in [row for row, start in left.items() if start <= self.state.t + INSTANT]:
                del left[row]
                self._start(row, theirs[row], {row: 0.0})
            if not self._go_on(min(left.values(), default=math.inf)):
                return

    def _start(self, row: int, nodes: tuple[int, ...], ready: dict[int, float]) -> None:
        self.state.place(row, nodes)
        del ready[row]
        self.waiting.discard(row)

    def _go_on(self, other: float) -> bool:
        """Go to the next end, walltime or other event; return False if there is none."""
        state = self.state
        speeds = self.state.rates()[0] if state.strands else []
        ends = [state.t + s.left / v for s, v in zip(state.strands, speeds, strict=True)]
        kills = [state.start[s.job] + float(self.workload.walltime[s.job]) for s in state.strands]
        now = min([*ends, *kills, other])
        if math.isinf(now):
            return False
        span, going, horizon = now - state.t, [], now + INSTANT + 1e-15 * now
        before = {s.job for s in state.strands}
        _, cores = state.rates() if state.strands else ([], [])
        state._charge(span, cores)
        state.t = now
        dead = {s.job for s, end, kill in zip(state.strands, ends, kills, strict=True) if end > horizon >= kill}
        self.killed |= dead
        for s, v, end in zip(state.strands, speeds, ends, strict=True):
            s.left = max(s.left - v * span, 0.0)
            if end > horizon and s.job not in dead:
                going.append(s)
        state.strands = going
        for row in before - {s.job for s in going}:
            state.finish[row] = now
            for n in state.where[row]:
                state.threads[n] -= self.jobs[row].profile.threads
                state.memory[n] -= self.jobs[row].memory
        return True

    def score(self, job: int, nodes: tuple[int, ...], policy: str) -> float:
        """Seconds from now, or load; with the run times that are told."""
        if policy in ("slf", "loadavg"):
            return super().score(job, nodes, policy)
        component = self.component(nodes)
        ahead = self.state.fork([j for j in component if j != job])
        ahead.t = 0.0
        for s in ahead.strands:
            if self.told[s.job] != 1.0:
                work = ahead.phases(s, s.places[0][0])[0][0]
                s.left = max(s.left + self.told[s.job] - 1.0, 1.0 / work)
        ahead.place(job, nodes)
        for s in ahead.strands:
            if s.job == job:
                s.left *= self.told[job]
        awaited = {job} if policy == "let" else component | {job}
        while awaited & {s.job for s in ahead.strands}:
            ahead.step()
        return ahead.t
