"""Reference of EASY with energy-saving parts, in plain Python, by definition.

Rule: one state per machine and a list of running jobs; only the queue is kept between passes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from pilotfish.simulate.model.machine import Powers
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies.energy.power_policies import (
    EnergyBudget,
    Inertial,
    PowerCap,
    Proportional,
    ReducePC,
)
from pilotfish.simulate.queue_policies.policy_specs import Saving
from tests.reference.plain_dependents import Upcoming
from tests.reference.plain_replay import rank

#: Share of a budget up to which deficits count as rounding errors.
TIE = 1e-12
#: Relative increase of a mean up to which it counts as a rounding error.
ROSE = 1e-9


@dataclass
class Row:
    """A running job, or machines being switched; `until`: the end by walltime."""

    kind: str
    places: list[int]
    start: float
    finish: float
    until: float
    size: int
    job: int = -1


@dataclass
class Machine:
    """Replay of one workload; `run` returns starts, finishes, resources, and changes as (kind, time, machines)."""

    jobs: Workload
    machine: int
    policy: Saving
    powers: Powers
    drawn: list[int] = field(default_factory=list)

    def run(self) -> tuple[list[float], list[float], list[list[int]], list[tuple[str, float, list[int]]]]:
        count = len(self.jobs)
        self.upcoming = Upcoming(self.jobs)
        self.submit, self.wall = self.jobs.submit_time.tolist(), self.jobs.walltime.tolist()
        self.size = self.jobs.size.tolist()
        self.run_time = np.minimum(self.jobs.run_time, self.jobs.walltime).tolist()
        self.start, self.finish = [math.nan] * count, [math.nan] * count
        self.places: list[list[int]] = [[] for _ in range(count)]
        self.changes: list[tuple[str, float, list[int]]] = []
        self.state, self.since = ["idle"] * self.machine, [self.submit[0]] * self.machine if count else []
        self.rows: list[Row] = []
        self.booting: list[tuple[float, int]] = []
        self.queue: list[int] = []
        self.cap, self.started = 0, False
        self.credit = self.energy = 0.0
        self.seen = self.measured = self.submit[0] if count else 0.0
        self.kind, self.due, self.switched, self.mean, self.summed = "off", 0, 0, 0.0, 0.0
        self.horizon, self.period = 0.0, 1 if isinstance(self.policy.keeper, Inertial) else 0
        self.limit = self._window()
        self.stage, self.begun, self.stale = 0, False, True
        while self.upcoming or self.queue or any(row.kind == "job" for row in self.rows):
            self._instant(self._next())
        return self.start, self.finish, self.places, self.changes

    def _window(self) -> PowerCap | EnergyBudget | None:
        limit = self.policy.limit
        if limit is None or not len(self.jobs):
            return None
        self.begin, self.end = max(limit.begin, self.submit[0]), limit.end
        if self.jobs.dependencies is None:
            self.end = min(limit.end, self.submit[-1])
        full = self.machine * self.powers.budget_computing
        self.base = self.machine * self.powers.budget_idle
        self.extra = self.powers.budget_computing - self.powers.budget_idle
        if isinstance(limit, EnergyBudget) and self.end > self.begin:
            budget = limit.budget.absolute(full * (self.end - self.begin))
            self.rate, self.tie = budget / (self.end - self.begin), TIE * budget
        return limit if self.end > self.begin else None

    def _stage(self, number: int) -> float:
        assert isinstance(self.limit, EnergyBudget)
        return min(self.begin + number * self.limit.stage, self.end)

    def _limited(self, now: float) -> bool:
        return isinstance(self.limit, EnergyBudget) and self.begin <= now < self.end

    def _next(self) -> float:
        times = [row.finish for row in self.rows]
        times.append(self.upcoming.time)
        if isinstance(self.limit, EnergyBudget) and not (self.stage and self._stage(self.stage - 1) >= self.end):
            times.append(self._stage(self.stage))
        if isinstance(self.limit, PowerCap) and not self.begun:
            times.append(self.begin)
        if self.policy.keeper:
            times.append(self.submit[0] + self.period * self.policy.keeper.period)
        if self.policy.shutdown:
            wait = self.policy.shutdown.t_idle
            tired = [s + wait for s, state in zip(self.since, self.state, strict=True) if state == "idle"]
            times += [time for time in tired if time > self.seen or not self.started]
        return min(times)

    # -- state ----------------------------------------------------------------------------------------------------
    def _all(self, state: str) -> list[int]:
        return [i for i, each in enumerate(self.state) if each == state]

    def _kept(self) -> int:
        return len(self._all("kept")) + sum(row.size for row in self.rows if row.kind == "to kept")

    def _wide(self, size: int) -> bool:
        return size > self.machine - self._kept()

    def _free(self, size: int) -> int:
        free = len(self._all("idle")) + len(self._all("off")) - self.cap
        return free + len(self._all("kept")) if self._wide(size) else free

    def _boot(self, size: int) -> float:
        return self.powers.on_s if size > len(self._all("idle")) else 0.0

    def _then(self, time: float, size: int) -> int:
        rows = [row for row in self.rows if row.until <= time and (row.kind != "to kept" or self._wide(size))]
        return self._free(size) + sum(row.size for row in rows)

    # -- events ---------------------------------------------------------------------------------------------------
    def _instant(self, now: float) -> None:
        passes = self._account(now)
        self.started = True
        if isinstance(self.limit, PowerCap) and not self.begun and now == self.begin:
            self._cap(now)
            passes = self.begun = True
        for row in [row for row in self.rows if row.finish == now]:
            self.rows.remove(row)
            passes = True
            if row.job >= 0:
                self.upcoming.ended(row.job, self.jobs.run_time[row.job] <= self.wall[row.job])
            becomes = {"to off": "off", "to kept": "kept"}.get(row.kind, "idle")
            for place in row.places:
                self.state[place], self.since[place] = becomes, now
            if row.kind == "cap":
                self.cap = 0
        keeper = self.policy.keeper
        decides = keeper is not None and self.submit[0] + self.period * keeper.period <= now
        passes = passes or (decides and keeper is not None and keeper.passes == "period")
        submitted = [i for i in self.upcoming.now(now) if self.size[i] <= self.machine]
        self.queue += submitted
        if passes or submitted:
            self._pass(now)
        self._decide(decides)
        if self.policy.shutdown:
            wait = self.policy.shutdown.t_idle
            tired = [i for i in self._all("idle") if self.since[i] + wait <= now]
            self._switch("to off", tired[len(tired) - self._spared(len(tired), now + self.powers.off_s) :], now)
        if isinstance(self.policy.keeper, Inertial):
            self.horizon = self._llh(now)

    def _cap(self, now: float) -> None:
        assert isinstance(self.limit, PowerCap)
        most = self.limit.cap.absolute(self.machine * self.powers.budget_computing)
        allowed = max((n for n in range(self.machine + 1) if self.base + self.extra * n <= most), default=0)
        self.cap = self.machine - allowed
        if self.cap:
            self.rows.append(Row("cap", [], now, self.end, self.end, self.cap))

    def _switch(self, kind: str, places: list[int], now: float) -> None:
        if not places:
            return
        lasts = self.powers.on_s if kind == "to idle" else self.powers.off_s
        for place in places:
            self.state[place] = kind
        self.rows.append(Row(kind, places, now, now + lasts, now + lasts, len(places)))
        self.changes.append((kind, now, sorted(places)))

    def _begin(self, i: int, now: float) -> None:
        order = {"idle": 0, "off": 1, "kept": 2}
        usable = [place for place in range(self.machine) if self.state[place] in order]
        chosen = sorted(usable, key=lambda place: (order[self.state[place]], place))[: self.size[i]]
        self.start[i] = now + (self.powers.on_s if any(self.state[place] != "idle" for place in chosen) else 0.0)
        self.booting.append((self.start[i], sum(self.state[place] != "idle" for place in chosen)))
        for place in chosen:
            self.state[place] = "job"
        self.finish[i], self.places[i] = self.start[i] + self.run_time[i], sorted(chosen)
        until = self.start[i] + self.wall[i]
        self.rows.append(Row("job", chosen, self.start[i], self.finish[i], until, self.size[i], i))

    def _pass(self, now: float) -> None:
        self.queue.sort(key=lambda i: rank(self.policy.base.order, self.jobs, i, now, self.drawn, self.upcoming))
        limited, left, reservation, spare = self._limited(now), list[int](), math.inf, 0
        head: tuple[int, float, float] | None = None
        for i in self.queue:
            size, wall = self.size[i], self.wall[i]
            fits = size <= (self._free(size) if not left else self._free(0))
            late = now + self._boot(size) + wall > reservation
            if left and fits:
                fits = self.policy.base.backfills and (not late or size <= spare)
            if fits and limited:
                fits = self._may_begin(now, size, now + self._boot(size) + wall, head)
            if fits:
                self._begin(i, now)
                spare -= size if left and late else 0
                continue
            if not left:
                reservation, spare = self._reserve(now, size, wall, limited)
                head = size, reservation, reservation + wall
            left.append(i)
        self.queue, self.reservation, self.spare, self.stale = left, reservation, spare, False

    def _reserve(self, now: float, size: int, wall: float, limited: bool) -> tuple[float, int]:
        time = min(t for t in (now, *(row.until for row in self.rows)) if t >= now and self._then(t, size) >= size)
        if self._free(size) >= size:
            time = now
        if limited and time < self.end and not self._affords(now, [(size, time, time + wall)], time):
            assert isinstance(self.limit, EnergyBudget)
            low = int((time - self.begin) / self.limit.stage) + 1
            high = int((self.end - self.begin) / self.limit.stage) + 1
            while low < high:
                middle = (low + high) // 2
                at = self._stage(middle)
                if self._affords(now, [(size, at, at + wall)], at):
                    high = middle
                else:
                    low = middle + 1
            time = self._stage(low)
        return time, self._then(time, size) - size

    # -- energy --------------------------------------------------------------------------------------------------
    def _may_begin(self, now: float, size: int, ends: float, head: tuple[int, float, float] | None) -> bool:
        if head is None:
            return self._affords(now, [(size, now, ends)], now)
        if not isinstance(self.limit, ReducePC):
            return self._affords(now, [(size, now, ends), head], now)
        held = self.extra * head[0] * max(0.0, min(head[2], self.end) - head[1])
        less = held / (head[1] - now) if head[1] > now else 0.0
        return self._affords(now, [(size, now, ends)], now, less, head[1])

    def _affords(
        self, now: float, asked: list[tuple[int, float, float]], since: float, less: float = 0.0, until: float = 0.0
    ) -> bool:
        running = [(row.size, now, row.until) for row in self.rows if row.kind == "job"]
        users = running + asked
        end = min(self.end, max(e for _, _, e in users))
        times = sorted({now, end, *(t for _, b, e in users for t in (b, e)), until})
        times = [t for t in times if now <= t <= end]
        balance = self.credit
        for time, then in zip(times, [*times[1:], times[-1]], strict=True):
            if time >= since and balance < -self.tie:
                return False
            rise = self.rate - (self.base + self.extra * sum(s for s, b, e in users if b <= time < e))
            balance += (rise - (less if time < until else 0.0)) * (then - time)
        return True

    def _watts(self, time: float) -> float:
        p = self.powers
        on = sum(row.size for row in self.rows if row.kind == "to idle")
        ending = sum(row.size for row in self.rows if row.kind in ("to off", "to kept"))
        computing = sum(row.size for row in self.rows if row.kind == "job" and row.start <= time)
        on += sum(booted for start, booted in self.booting if start > time)
        off = len(self._all("off")) + len(self._all("kept"))
        idle = self.machine - on - ending - computing - off
        return p.computing * computing + p.on_w * on + p.off_w * ending + (p.off or 0.0) * off + p.idle * idle

    def _account(self, now: float) -> bool:
        """Update energy, credit and the mean horizon to now."""
        if isinstance(self.policy.keeper, Inertial) and now > self.seen:
            self.summed += (self.horizon + self._llh(now)) * 0.5 * (now - self.seen)
        stage = False
        if isinstance(self.limit, EnergyBudget):
            low, high = max(self.seen, self.begin), min(now, self.end)
            if high > low:
                boots = sorted({s for s, _ in self.booting if low < s < high})
                for a, b in zip([low, *boots], [*boots, high], strict=True):
                    self.energy += self._watts(a) * (b - a)
                used = sum(row.size for row in self.rows if row.kind == "job")
                self.credit += (self.rate - (self.base + self.extra * used)) * (high - low)
            if now == self._stage(self.stage) and not (self.stage and self._stage(self.stage - 1) >= self.end):
                self.credit = self.rate * (now - self.begin) - self.energy
                self.stage += 1
                stage = True
        self.seen = now
        return stage

    # -- machines that are kept off ------------------------------------------------------------------------------
    def _llh(self, now: float) -> float:
        left = sum(self.size[i] * self.wall[i] for i in self.queue)
        if left <= 0:
            return 0.0
        free, time = max(len(self._all("idle")) + len(self._all("off")) - self.cap, 0), now
        for row in sorted(self.rows, key=lambda row: row.until):
            if row.kind in ("to kept", "cap"):
                continue
            if free * (row.until - time) >= left:
                break
            left -= free * (row.until - time)
            time, free = row.until, free + row.size
        return time + left / free - now if free else math.inf

    def _spared(self, number: int, until: float) -> int:
        """Return how many machines can be removed without delaying the first waiting job."""
        if not self.queue:
            return number
        if self.stale:
            return 0
        if until <= self.reservation:
            return number
        number = min(number, self.spare)
        self.spare -= number
        return number

    def _decide(self, decides: bool) -> None:
        keeper, now = self.policy.keeper, self.seen
        if keeper is None:
            return
        if decides:
            self.period += 1
            if isinstance(keeper, Proportional):
                self.due = max(self.machine - math.floor(keeper.rho * self.machine) - self._kept(), 0)
            else:
                self._turn(keeper)
        if self.due and self.kind == "off":
            number = min(self.due, len(self._all("off")) + len(self._all("idle")))
            number = self._spared(number, math.inf)
            stolen = self._all("off")[::-1][:number]
            for place in stolen:
                self.state[place] = "kept"
            chosen = self._all("idle")[::-1][: number - len(stolen)]
            self._switch("to kept", chosen, now)
            self._switched(len(stolen) + len(chosen))
        elif self.due:
            chosen = self._all("kept")[: self.due]
            self._switch("to idle", chosen, now)
            self._switched(len(chosen))
            self.stale = self.stale or bool(chosen)
        if keeper.switches == "now":
            self.due = 0

    def _switched(self, number: int) -> None:
        self.due, self.switched = self.due - number, self.switched + number

    def _turn(self, keeper: Inertial) -> None:
        mean, before = self.summed / keeper.period, self.mean
        if mean >= keeper.v_ub * (1 - ROSE):
            if self.kind == "off":
                self.kind, self.switched = "on", 0
            before = 0.0
        self.mean, self.summed = mean, 0.0
        rose = mean > before * (1 + ROSE)
        if (self.kind == "on" and rose) or (self.kind == "off" and not rose):
            wanted = self.switched * 2 if keeper.growth == "double" else self.switched + 1
            if keeper.switches == "now":
                most = len(self._all("kept")) if self.kind == "on" else len(self._all("off")) + len(self._all("idle"))
            else:
                most = self._kept() if self.kind == "on" else self.machine - self._kept()
            self.due = min(max(wanted, 1), most)
        else:
            self.kind, self.due = "on" if self.kind == "off" else "off", 0
        self.switched = 0
