"""Slurm's main and backfill pass in plain Python, with sets of nodes and lists of slots.

Rule: a pass is asked for at one second. It starts jobs, and the backfill pass says when each of the others may start.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from pilotfish.simulate.slurm.site import SitePartition
from tests.reference.slurm_choice import choose, wanted_nodes
from tests.reference.slurm_limits import blocks_after, blocks_before
from tests.reference.slurm_machine import Job, Machine, Share
from tests.reference.slurm_reservations import has_begun, nodes_of, reservation_of, room_of

#: The first window of the search for a later start, seconds.
WINDOW_S = 30


class Record(NamedTuple):
    """A place in the queue: a job, or the waiting tasks of an array by their index, in one partition."""

    tasks: list[Job]
    part: SitePartition


class Start(NamedTuple):
    """A start: the number of the job, its partition and nodes, and the second."""

    job: int
    part: str
    nodes: tuple[str, ...]
    time: int
    by: str


@dataclass
class Slot:
    """A time of the plan of a backfill pass and the nodes not yet promised in it."""

    begin: int
    end: int
    nodes: set[int]


def queue(machine: Machine) -> list[Record]:
    """Return the queue in order, and note since when its jobs are eligible."""
    arrays = dict[tuple[int, int], list[Job]]()
    for job in machine.jobs:
        if is_eligible(machine, job):
            job.begin = machine.now if job.begin is None else job.begin
            key = (job.key[0], -1) if job.asked.array else job.key
            arrays.setdefault(key, []).append(job)
    records = [
        Record(sorted(tasks, key=lambda job: job.key), part)
        for tasks in arrays.values()
        for part in tasks[0].parts
        if keeps_partition(tasks[0], part)
    ]
    records.sort(
        key=lambda record: (
            reservation_of(machine, record.tasks[0]) is None, -record.part.tier,
            -record.tasks[0].priority[record.part.name], record.tasks[0].asked.submit,
            record.tasks[0].key,
        ),
    )  # fmt: skip
    held = [record for record in records if is_ordered(machine, record)]
    for part in machine.site.partitions:
        places = [place for place, record in enumerate(held) if record.part is part]
        ordered = sorted((held[place] for place in places), key=lambda record: order_key(machine, record))
        for place, record in zip(places, ordered, strict=True):
            held[place] = record
    return [*(record for record in records if not is_ordered(machine, record)), *held]


def release_passed(machine: Machine) -> None:
    """Release the held jobs of partitions in which a job waits for nodes alone that is not held."""
    waiting = [record for record in queue(machine) if any(job.state == "pending" for job in record.tasks)]
    passing = {
        record.part.name
        for record in waiting
        if not is_ordered(machine, record)
        if any(
            not job.is_limited and reservation_of(machine, job) is None
            for job in record.tasks
            if job.state == "pending"
        )
    }
    for record in waiting:
        if record.part.name in passing and is_ordered(machine, record):
            machine.released.add(record.tasks[0].number)


def is_ordered(machine: Machine, record: Record) -> bool:
    """Return whether something else than Slurm orders the job of a record now."""
    job = record.tasks[0]
    is_held = job.number in machine.order_keys and job.number not in machine.released
    return is_held and machine.now < job.asked.submit + machine.hold_s


def order_key(machine: Machine, record: Record) -> tuple[float, float, int]:
    """Return the key of a record in that order."""
    job = record.tasks[0]
    return machine.order_keys[job.number], job.asked.submit, job.number


def is_eligible(machine: Machine, job: Job) -> bool:
    """Return whether a job waits for nothing but nodes: its dependencies, --begin and what precedes its reservation."""
    if job.state != "pending" or (job.asked.begin or 0) > machine.now or not has_begun(machine, job):
        return False
    for term in job.asked.dependency.split(",") if job.asked.dependency else ():
        for name in term.split(":")[1:]:
            others = [other for other in machine.jobs if name in (other.asked.id, other.asked.array)]
            if any(other.state != "ended" for other in others):
                return False
    return True


def keeps_partition(job: Job, part: SitePartition) -> bool:
    """Return whether a partition takes a job at all."""
    least, _, most = wanted_nodes(job, part)
    return (
        part.state in ("UP", "DRAIN")
        and (part.max_time_min is None or job.limit <= part.max_time_min)
        and (part.max_nodes is None or job.asked.min_nodes <= part.max_nodes)
        and least <= most
    )


def main_pass(machine: Machine, *, full: bool) -> list[Start]:
    """Carry out a main pass and return its starts."""
    rules = machine.site.rules.scheduler
    available = set(machine.nodes) - machine.drained
    closed, tested, depth, starts = set[str](), Counter[str](), 0, list[Start]()
    closed_reservations = set[str]()
    for tasks, part in queue(machine):
        for job in tasks:
            if job.state != "pending":
                continue
            reservation = reservation_of(machine, job)
            if rules.sched_max_job_start and len(starts) >= rules.sched_max_job_start:
                return starts
            if _at_array_limit(machine, job):
                break
            if reservation is not None:
                inside = machine.part_nodes(part) & nodes_of(machine, reservation)
                if len(inside) < job.asked.min_nodes:
                    break
            tested[part.name] += 1
            if rules.partition_job_depth and tested[part.name] > rules.partition_job_depth:
                break
            if depth * machine.site.rules.record_s >= rules.max_sched_time:
                return starts
            depth += 1
            if not full and depth > rules.default_queue_depth + 1:
                return starts
            is_closed = part.name in closed if reservation is None else reservation.name in closed_reservations
            if is_closed or (job.is_limited and blocks_before(machine, job, part)):
                break
            nodes = available & machine.part_nodes(part)
            fails = len(nodes) < wanted_nodes(job, part)[0]
            if not fails:
                answer = select(machine, job, part, nodes)
                job.is_limited = answer == "limited"
                if isinstance(answer, dict):
                    starts.append(start(machine, job, part, answer, "main"))
                    continue
                if answer == "limited" and not rules.goes_past_limits:
                    answer = "busy"
                if answer == "busy" and len(machine.named_nodes(job)) >= job.asked.min_nodes:
                    available -= machine.named_nodes(job)
                    break
                age = machine.now - (job.begin or 0)
                is_high = job.priority[part.name] >= rules.bf_min_prio_reserve
                fails = answer == "busy" and age >= rules.bf_min_age_reserve and is_high
                if answer == "reserved" and reservation is not None:
                    available -= nodes_of(machine, reservation)
                if answer == "busy" and reservation is not None:
                    closed_reservations.add(reservation.name)
                    fails = False
            if fails:
                closed.add(part.name)
                available -= machine.part_nodes(part)
            break
    return starts


def select(machine: Machine, job: Job, part: SitePartition, nodes: set[int]) -> dict[int, Share] | str:
    """Return what a job gets now on some of these nodes, or why it gets nothing.

    It is busy, limited, reserved or unavailable.
    """
    if blocks_before(machine, job, part):
        return "limited"
    nodes = nodes & machine.allowed_nodes(job)
    room = room_of(machine, job, part, nodes, machine.now, 60 * job.limit)
    if room is None or room.start > machine.now:
        return "reserved"
    nodes = room.nodes
    shares = choose(machine, job, part, nodes - machine.completing_nodes(), machine.running())
    if shares is not None:
        return "limited" if blocks_after(machine, job, part, shares) else shares
    wish = choose(machine, job, part, nodes, [])
    if wish is None and any(is_in_use(machine, job, part, node) for node in nodes):
        wish = choose(machine, job, part, machine.part_nodes(part) & machine.allowed_nodes(job), [])
    if wish is None:
        return "unavailable"
    return "limited" if blocks_after(machine, job, part, wish) else "busy"


def is_in_use(machine: Machine, job: Job, part: SitePartition, node: int) -> bool:
    """Return whether a node is one that a job waits for: another has it whole, or has a part and this job wants all."""
    others = [other for other in machine.running() if node in other.shares]
    parts = {part.name: part for part in machine.site.partitions}
    return any(machine.is_whole(job, part) or machine.is_whole(other, parts[other.part]) for other in others)


def start(machine: Machine, job: Job, part: SitePartition, shares: dict[int, Share], by: str) -> Start:
    """Start a job."""
    job.state, job.start, job.part, job.shares = "running", machine.now, part.name, shares
    return Start(
        job.number, part.name, tuple(machine.site.nodes[node].name for node in sorted(shares)), machine.now, by
    )


def backfill_pass(machine: Machine) -> list[Start]:
    """Carry out a backfill pass, return its starts, and note the expected start of the other jobs that it tests."""
    return _Backfill(machine).starts


class _Backfill:
    """A backfill pass."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.rules, self.starts = machine, machine.site.rules.scheduler, list[Start]()
        self.now, self.tests = machine.now, 0
        self.elapsed_s, self.worked_s = 0.0, 0.0  # since the pass began, and since it slept
        self.records = Counter[tuple[str, ...]]()
        self.reserves = Counter[str]()
        window = int(self.rules.bf_window_min * 60)
        self.horizon = self.now + window
        self.up = set(machine.nodes) - machine.drained
        self.slots = [Slot(self._floor(self.now), self._floor(self.horizon), set(self.up))]
        for job in machine.jobs:
            job.expected = None
        for tasks, part in queue(machine):
            self._look_at(tasks, part)

    def _floor(self, time: int) -> int:
        return time // self.rules.bf_resolution * self.rules.bf_resolution

    def _look_at(self, tasks: list[Job], part: SitePartition) -> None:
        """Test the tasks of a record, which counts once, until one neither starts nor gets a reservation."""
        reserved, is_counted = 0, False
        for job in tasks:
            if job.state != "pending":
                continue
            if self._is_over() or _at_array_limit(self.machine, job):
                return
            if self.rules.goes_past_limits and blocks_before(self.machine, job, part):
                return
            if not is_counted and self._counts_too_many(job, part):
                return
            is_counted = True
            outcome = self._plan(job, part)
            if outcome == "reserved":
                reserved += 1
                self.reserves[part.name] += 1
                if reserved >= self.rules.bf_max_job_array_resv:
                    return
            elif outcome != "started":
                return

    def _is_over(self) -> bool:
        most = self.rules.bf_max_job_start
        if self.tests >= self.rules.bf_max_job_test or (0 < most <= len(self.starts)):
            return True
        if self.elapsed_s >= self.rules.bf_max_time:
            return True
        if self.worked_s >= self.rules.bf_yield_interval:
            self.elapsed_s, self.worked_s = self.elapsed_s + self.rules.bf_yield_sleep, 0.0
        return False

    def _take_time(self) -> None:
        """Count a test of a job, and the time that it takes."""
        self.tests += 1
        self.elapsed_s += self.machine.site.rules.test_s
        self.worked_s += self.machine.site.rules.test_s

    def _counts_too_many(self, job: Job, part: SitePartition) -> bool:
        """Count a record of a user and partition; return whether it is one too many."""
        user, is_over = job.asked.user, False
        owner = (("assoc", job.asked.account, user), self.rules.bf_max_job_assoc)
        for key, most in (
            owner if self.rules.bf_max_job_assoc else (("user", user), self.rules.bf_max_job_user),
            (("part", part.name), self.rules.bf_max_job_part),
            (("both", user, part.name), self.rules.bf_max_job_user_part),
        ):
            self.records[key] += 1
            is_over |= 0 < most < self.records[key]
        return is_over

    def _is_now_only(self, job: Job, part: SitePartition) -> bool:
        """Return whether a job starts now or not at all in this pass."""
        rules = self.rules
        assert job.begin is not None
        return (
            job.priority[part.name] < rules.bf_min_prio_reserve
            or self.now - job.begin < rules.bf_min_age_reserve
            or (rules.bf_one_resv_per_job and job.expected is not None)
            or (0 < rules.bf_job_part_count_reserve <= self.reserves[part.name])
        )

    def _plan(self, job: Job, part: SitePartition) -> str:
        """Start a job or plan its start: started, reserved or nothing."""
        machine, now = self.machine, self.now
        seconds = 60 * min(job.limit, part.max_time_min or job.limit)
        now_only = self._is_now_only(job, part)
        later, least = now, wanted_nodes(job, part)[0]
        while True:
            usable = machine.part_nodes(part) & self.up & machine.allowed_nodes(job)
            room = room_of(machine, job, part, usable, later, seconds)
            if room is None:
                return "nothing"
            earliest = room.start
            end = max(earliest, now) + seconds
            nodes, later = self._free_nodes(room.nodes, earliest, end)
            freed = -self._floor(-room.freed)
            if freed and (not later or freed + 1 < later):
                later = freed + 1
            answer = None
            if len(nodes) >= least:
                self._take_time()
                answer = will_run(machine, job, part, nodes)
            if answer is None:
                if later and not now_only:
                    continue
                return "nothing"
            time, shares = answer
            time = max(time, earliest)
            if time <= now and machine.completing_nodes() & set(shares):
                time, later = now + 1, 0
            if time <= now:
                picked = select(machine, job, part, nodes)
                if isinstance(picked, dict):
                    self.starts.append(start(machine, job, part, picked, "backfill"))
                    return "started"
                if picked in ("limited", "reserved"):
                    return "nothing"
            if time > now and now_only:
                job.expected = time
                return "nothing"
            if later and time > later:
                continue
            if time > self.horizon:
                job.expected = time
                return "nothing"
            if self._overlaps(self._floor(time), self._floor(time + seconds), set(shares)):
                later = time
                continue
            if job.expected is None or time < job.expected:
                job.expected = time  # also of a job that a limit stops, which the rules leave open
            if blocks_after(machine, job, part, shares):
                return "nothing"
            begin = self._floor(time)
            self._reserve(begin, max(self._floor(time + seconds), begin + self.rules.bf_resolution), set(shares))
            return "reserved"

    def _free_nodes(self, whole: set[int], earliest: int, end: int) -> tuple[set[int], int]:
        """Return the nodes free of reservations in a time, and the next moment at which others become free, or 0."""
        nodes, later = set(whole), 0
        for slot, after in zip(self.slots, [*self.slots[1:], None], strict=True):
            if slot.end <= earliest:
                continue
            if not later and after and not after.nodes & whole <= slot.nodes & nodes:
                later = slot.end
            if slot.begin > end:
                break
            nodes &= slot.nodes
        return nodes, later

    def _overlaps(self, begin: int, end: int, nodes: set[int]) -> bool:
        return any(slot.begin < end and slot.end > begin and not nodes <= slot.nodes for slot in self.slots)

    def _reserve(self, begin: int, end: int, nodes: set[int]) -> None:
        """Promise whole nodes to a job."""
        slots = list[Slot]()
        for slot in self.slots:
            cuts = sorted({slot.begin, slot.end, *(time for time in (begin, end) if slot.begin < time < slot.end)})
            for first, last in pairwise(cuts):
                is_inside = begin <= first and last <= end
                slots.append(Slot(first, last, slot.nodes - nodes if is_inside else set(slot.nodes)))
        for index in range(len(slots) - 1):
            if slots[index].nodes == slots[index + 1].nodes:
                slots[index : index + 2] = [Slot(slots[index].begin, slots[index + 1].end, slots[index].nodes)]
                break
        self.slots = slots


def will_run(machine: Machine, job: Job, part: SitePartition, nodes: set[int]) -> tuple[int, dict[int, Share]] | None:
    """Return when a job could run on some of these nodes and what it would get, None if never."""
    now, rules = machine.now, machine.site.rules.scheduler
    present = sorted(machine.running(), key=lambda other: other.until)
    shares = choose(machine, job, part, nodes, present)
    if shares is not None:
        return now, shares
    rest, window, base = list(present), WINDOW_S, 0
    while True:
        last = None
        while rest:
            other = rest.pop(0)
            if not set(other.shares) & nodes:
                continue
            base = base or (other.until // WINDOW_S + 1) * WINDOW_S
            present.remove(other)
            last = other
            if rest and rest[0].until > base + window:
                break
        if last is None:
            return None
        window += int(rules.bf_window_linear) or window
        while rest and rest[0].until > base + window:
            window += int(rules.bf_window_linear) or window
        shares = choose(machine, job, part, nodes, present, later=True)
        if shares is not None:
            return (last.until if last.until > now else _late_end(machine, last)), shares


def _late_end(machine: Machine, job: Job) -> int:
    """Return when a job that is over its limit is expected to end."""
    rules = machine.site.rules
    if rules.over_time_limit_min is None:
        return machine.now + 60 * job.limit
    return max(machine.now + 1, job.until + int(rules.kill_wait_s) + 60 * rules.over_time_limit_min)


def _at_array_limit(machine: Machine, job: Job) -> bool:
    """Return whether as many tasks of its array run as may."""
    if not job.asked.array_limit:
        return False
    tasks = [other for other in machine.running() if other.asked.array == job.asked.array]
    return len(tasks) >= job.asked.array_limit
