"""A site from now on: what its scheduler does with the jobs that run and wait, and with those that come.

Rule: the state now is what the site shows: running jobs on their nodes since they started, waiting ones with their
priorities and ages. Priorities are calculated again at the next PriorityCalcPeriod. Jobs that come are drawn,
or none comes, see `arrivals`. The phases of the clocks, and how long jobs run, are not known; each question names them.
Complexity: O(jobs) for the state, and the passes.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

import numpy as np

from ..arrays import Array
from ..kernels.object_cache import load
from ..kernels.slurm.tables import PENDING, RUNNING, SUBMIT, Slurm
from .arrivals import Arrivals
from .job_columns import SiteJobs
from .site import JobRecord, Site, SiteJob
from .site_tables import Phases, completed, set_clocks, set_power, site_block, with_rules
from .twin import ADVANCE, REPEAT, advanced

#: Where jobs come, the site goes on in steps of so many seconds until all that wait now have started.
STEP_S = 3600.0
#: SchedulerParameters that only passes read, which a present has not had yet.
_OF_PASSES = ("sched_", "bf_", "batch_sched_delay", "default_queue_depth", "partition_job_depth")
#: A job of the past that was held is released so much later, seconds.
_HELD_S = 1e8
#: Seconds after its limit at which a job is killed, in the mean: limits are looked at every 30 s.
_KILLED_AFTER_S = 15.0


@dataclass(frozen=True, slots=True, eq=False)
class SiteOutlook:
    """Starts and ends of each job from now on, by row of `Present.site.jobs`.

    Args:
        start: its next start, of a job that runs the one that it had; epoch seconds, NaN: none in the time asked.
        finish: the end of that run; epoch seconds, also beyond the time asked.
        piece0, pieces: its rows in `piece_nodes`.
        piece_nodes: rows of `Site.nodes`.
    """

    start: Array
    finish: Array
    piece0: Array
    pieces: Array
    piece_nodes: Array

    def uses(self, nodes: Array) -> Array:
        """Return whether each job runs on one of the nodes, given as a flag for each node of the site."""
        sums = np.cumsum([0, *nodes[self.piece_nodes]])
        return np.asarray(sums[self.piece0 + self.pieces] > sums[self.piece0])


def present_site(site: Site) -> Site:
    """Return the site with the jobs that run and wait; all others have ended. O(jobs)."""
    jobs = (job for job in site.jobs if job.runs and job.runs[-1].end is None)
    return replace(site, jobs=SiteJobs.of(jobs))


def site_at(site: Site, jobs: Iterable[SiteJob], moment: float) -> tuple[Site, list[SiteJob]]:
    """Return the site with the jobs that ran and waited at a moment of the past, and those that had ended. O(jobs).

    Jobs are as they were known then: one that ran has no end, and one that was held is not released. Nodes,
    reservations and usage are those of the site.

    Args:
        site: the site.
        jobs: with their runs.
        moment: epoch seconds.
    """
    present, ended = list[SiteJob](), list[SiteJob]()
    for job in jobs:
        if job.submit > moment or not job.runs:
            continue
        past = tuple(run for run in job.runs if run.end is not None and run.end <= moment)
        if len(past) == len(job.runs):
            ended.append(job)
            continue
        run = job.runs[len(past)]
        if run.start is not None and run.start <= moment:
            present.append(replace(job, runs=(replace(run, state="RUNNING", end=None),)))
            continue
        is_held = job.released is not None and job.released > moment
        eligible = run.eligible if run.eligible is not None and run.eligible <= moment else None
        released = moment + _HELD_S if is_held else None
        present.append(replace(job, runs=(JobRecord("PENDING", eligible),), released=released))
    return replace(site, jobs=SiteJobs.of(present)), ended


class Present:
    """The state of a site now.

    Args:
        site: with the jobs that run and wait, see `present_site`. The last run of each has no end; one that runs has a
            start and nodes, one that waits may have the time since when it is eligible, and its priority.
        now: epoch seconds.
        arrivals: jobs that come; their rows are the last of `site.jobs`. None: none.

    Raises:
        ConfigError: a job has a time that is infinite, or not a number.
    """

    def __init__(self, site: Site, now: float, arrivals: Arrivals | None = None) -> None:
        self._arrivals, self._given, old = arrivals, site, len(site.jobs)
        if arrivals is not None and arrivals.jobs:
            site = replace(site, jobs=SiteJobs.of((*site.jobs, *arrivals.jobs)))
        self.site, self.now = completed(site), now
        columns = SiteJobs.of(self.site.jobs)
        runs, last = columns.runs, columns.last_run
        block = site_block(self.site, Phases(0.0, 0.0, 0.0, 0, 0.0), repeats=True, begin=now)
        eligible = np.nan_to_num(runs.eligible[last], nan=0.0)
        block.jobs["begin"] = block.jobs["accrue"] = np.where(eligible <= now, eligible, 0.0)
        block.jobs["successful"] = 1  # none has failed yet
        call = load("slurm.site_requests")
        for row in np.argsort(block.history["start"], kind="stable").tolist():
            call(block.address, ADVANCE, float(block.history["start"][row]))
            call(block.address, REPEAT, float(row))
        call(block.address, ADVANCE, now)
        set_power(block, self.site, int(now))
        block.count["history"], block.count["wanted"], block.count["stale"] = 0, 1, 1
        block.rules["epilog_least"], block.rules["epilog_most"] = self.site.rules.epilog_s
        jobs = block.jobs
        priority = np.repeat(runs.priority[last], jobs["parts"])
        waits = np.repeat(jobs["state"] == PENDING, jobs["parts"]) & (priority > 0)
        block.part_priority[: len(waits)][waits] = priority[waits]
        self.runs: Array = jobs["state"] == RUNNING  #: of each job, whether it runs now
        self.waits: Array = ~self.runs & (np.arange(len(jobs)) < old)  #: of each job, whether it waits now
        self._first_new, self._agenda = old, block.agenda.copy()
        #: Since when each job runs, epoch seconds; NaN for those that wait.
        self.start = np.where(self.runs, jobs["start"], np.nan)
        self.limit_s = jobs["limit"] * 60.0  #: time limits, seconds
        self._is_over = np.array([state == "COMPLETING" for state in runs.state.values], bool)[runs.state.codes[last]]
        self._block: Slurm = block

    def changed(self, site: Site) -> Present:
        """Return the state of a changed site now; if only what passes read has changed, the tables of this one serve.

        Args:
            site: the site, with the same jobs.
        """
        if not _differ_in_passes(self._given, site):
            return Present(site, self.now, self._arrivals)
        twin = copy.copy(self)
        twin._given, twin.site = site, replace(self.site, rules=site.rules, unknown=site.unknown)
        twin._block = with_rules(self._block, twin.site)
        return twin

    def outlook(self, run_s: Array, horizon_s: float, seed: int = 0) -> SiteOutlook:
        """Let the site go on. O(the passes).

        Args:
            run_s: how long each job runs in all if nothing stops it, seconds, [jobs]; a running job that has run longer
                ends at once. All are killed at their limits.
            horizon_s: how far, seconds.
            seed: of the phases of the clocks.
        """
        block = self._block.copy()
        set_clocks(block, self.site, Phases.drawn(self.site, seed), self.now, seed)
        jobs, running = block.jobs, np.flatnonzero(self.runs)
        jobs["run"] = run_s
        over = block.partitions["over_time"][jobs["part"][running]]
        killed = np.where(over >= 0, jobs["until"][running] + 60 * over + _KILLED_AFTER_S, np.inf)
        finish = np.minimum(jobs["start"][running] + run_s[running], np.maximum(killed, self.now + _KILLED_AFTER_S))
        finish = np.maximum(np.where(self._is_over[running], self.now, finish), self.now + 1.0)
        jobs["finish"][running] = finish
        order = np.argsort(finish, kind="stable")  # ascending times are a heap
        block.ends_at[: len(running)], block.ends_job[: len(running)] = finish[order], running[order]
        block.ends_place[block.ends_job[: len(running)]] = np.arange(len(running))
        first = int(block.count["starts"])
        if self._arrivals is None:
            block = advanced(block, self.now + horizon_s)
        else:
            self._submit(block, self._arrivals.drawn(seed))
            for until in np.arange(self.now, self.now + horizon_s, STEP_S) + STEP_S:
                block = advanced(block, min(float(until), self.now + horizon_s))
                if not ((block.jobs["state"] == PENDING) & self.waits).any():
                    break
        jobs = block.jobs
        result = SiteOutlook(
            self.start.copy(), np.full(len(jobs), np.nan), jobs["piece0"].copy(), jobs["pieces"].copy(),
            block.pieces["node"][: int(block.count["pieces"])].copy(),
        )  # fmt: skip
        starts = block.starts[: int(block.count["starts"])]
        ends = np.where(starts["end"] >= 0, starts["end"], jobs["finish"][starts["job"]])
        for part in (slice(0, first), slice(first, None)):  # of several starts of a job from now on the first counts
            rows, places = np.unique(starts["job"][part], return_index=True)
            new = ~self.runs[rows] if part.start else np.full(len(rows), True)
            rows, entries = rows[new], starts[part][places[new]]
            result.start[rows], result.finish[rows] = entries["start"], ends[part][places[new]]
            result.piece0[rows], result.pieces[rows] = entries["piece0"], entries["pieces"]
        return result

    def _submit(self, block: Slurm, submit: Array) -> None:
        """Set when the jobs that come are submitted; the agenda is one for all copies of the state."""
        agenda, new = self._agenda.copy(), np.flatnonzero(
            (self._agenda["kind"] == SUBMIT) & (self._agenda["what"] >= self._first_new)
        )  # fmt: skip
        agenda["time"][new] = submit[agenda["what"][new] - self._first_new]
        block.jobs["submit"][self._first_new :] = submit
        later = agenda[int(block.count["next_event"]) :]
        later[:] = later[np.lexsort((later["what"], later["kind"], later["time"]))]
        block.agenda[:] = agenda


def _differ_in_passes(site: Site, other: Site) -> bool:
    """Return whether two sites with the same jobs differ at most in what passes read."""
    names = [field.name for field in fields(site.rules.scheduler) if field.name.startswith(_OF_PASSES)]
    scheduler = replace(other.rules.scheduler, **{name: getattr(site.rules.scheduler, name) for name in names})
    if site.jobs is not other.jobs or site.rules != replace(other.rules, scheduler=scheduler):
        return False
    others = (field.name for field in fields(Site) if field.name not in ("jobs", "rules", "unknown"))
    return all(getattr(site, name) == getattr(other, name) for name in others)
