"""A site replayed pass by pass in plain Python: submissions, ends, and the passes that are asked for.

Rule: between two passes jobs come and end; what a pass decides is in `slurm_passes`. A job that runs longer than its
limit ends at the first look at the limits after it, every 30 seconds; its nodes are free when their epilog is over.
"""

from __future__ import annotations

from tests.reference.slurm_limits import blocks_before
from tests.reference.slurm_machine import Job, Machine
from tests.reference.slurm_passes import Start, backfill_pass, main_pass, release_passed
from tests.reference.slurm_reservations import reservation_of

#: Seconds between two looks at the time limits.
LIMIT_CHECK_S = 30
#: Passes that are asked for: when, and main, full (main) or backfill.
Passes = list[tuple[int, str]]


class PlainReplay:
    """A replay of a machine; `epilog`: seconds from the end of a job until its nodes are free."""

    def __init__(self, machine: Machine, *, epilog: int, limit_phase: int) -> None:
        self.machine, self.epilog, self.limit_phase = machine, epilog, limit_phase

    def run(self, passes: Passes) -> tuple[list[Start], list[dict[int, int]]]:
        """Carry out passes, by time; return all starts, and the planned starts of waiting jobs after each pass."""
        starts, plans, machine = list[Start](), list[dict[int, int]](), self.machine
        for time, kind in passes:
            self.advance(time)
            starts += backfill_pass(machine) if kind == "backfill" else main_pass(machine, full=kind == "full")
            release_passed(machine)
            waiting = (job for job in machine.jobs if job.state == "pending" and job.expected)
            plans.append({job.number: job.expected or 0 for job in waiting})
        return starts, plans

    def advance(self, time: int) -> None:
        """Let jobs come and end until a time."""
        jobs = self.machine.jobs
        moments = {int(job.asked.submit) for job in jobs if job.state == "future"} | {time}
        for moment in sorted(moments):
            if moment > time:
                break
            self.machine.now = moment
            for job in jobs:
                if job.state == "running" and self._end(job) <= moment:
                    job.state, job.ended = "completing", self._end(job)
                if job.state == "completing" and job.ended + self.epilog <= moment:
                    job.state = "ended"
            for job in jobs:
                if job.state == "future" and job.asked.submit <= moment:
                    self._submit(job)

    def _submit(self, job: Job) -> None:
        """Give a job its priorities; it is eligible from its submission if it waits for nothing."""
        job.state = "pending"
        for part in job.parts:
            job.priority[part.name] = _priority(self.machine, job, part.job_factor)
        job.is_limited = blocks_before(self.machine, job, job.parts[0])
        reservation = reservation_of(self.machine, job)
        has_to_wait = (
            reservation is not None and reservation.start > job.asked.submit and "FLEX" not in reservation.flags
        )
        if not (job.asked.array or job.asked.dependency or has_to_wait) and (job.asked.begin or 0) <= job.asked.submit:
            job.begin = int(job.asked.submit)

    def _end(self, job: Job) -> int:
        """Return when a running job ends: by itself, or at the first look after its limit or its reservation is over."""
        rules, reservation = self.machine.site.rules, reservation_of(self.machine, job)
        ends = [job.start + int(job.asked.run_s)]
        if rules.over_time_limit_min is not None:
            ends.append(self._next_check(job.until + 60 * rules.over_time_limit_min))
        if reservation is not None and "FLEX" not in reservation.flags and rules.resv_over_run_min is not None:
            ends.append(self._next_check(int(reservation.end) + 60 * rules.resv_over_run_min + 1))
        return min(ends)

    def _next_check(self, time: int) -> int:
        return time + (self.limit_phase - time) % LIMIT_CHECK_S


def _priority(machine: Machine, job: Job, job_factor: int) -> int:
    """Return the priority at submission, when age counts nothing."""
    site, rules = machine.site, machine.site.rules.priority
    largest = max((qos.priority for qos in site.qos), default=0)
    factor = next((qos.priority for qos in site.qos if qos.name == job.asked.qos), 0)
    value = rules.partition * job_factor / max(part.job_factor for part in site.partitions)
    value += rules.qos * factor / largest if largest else 0
    return int(max(value - job.asked.nice, 1))
