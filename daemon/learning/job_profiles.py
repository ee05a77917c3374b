"""Jobs that came without a profile: what earlier runs of their command showed replaces the default, and what
this run shows is kept.

Rule: a profile that a user gave is never replaced. A job that failed teaches nothing.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from ..profiles.measurement import Measurement
from ..profiles.strain import strain
from ..simulate.formats.workflow import default_warning
from ..simulate.job import Job, Profile, ThreadGroup, Workflow
from ..simulate.snapshot import JobState, JobView

if TYPE_CHECKING:
    from ..profiles.counters import Counted

NOTHING: Mapping[str, Counted] = {}
_LEAST_S = 1e-4
#: Threads' worth of core time by which a measurement may exceed a whole number of threads.
_SLACK = 0.15
#: Jobs of one name, and the scatter of their CPU time (robust deviation over median), from which to expect the next.
ALIKE_RUNS, MOST_SCATTER = 2, 0.25


def rests_on_default(job: Job) -> bool:
    """Whether nothing is known of what the job needs."""
    return job.profile.provenance.source == "default"


def learnable(job: Job) -> bool:
    """Whether what is known of a job was measured, so that later runs may replace it."""
    return job.profile.provenance.source == "measured"


def alike(job: Job, profile: Profile | None) -> Profile | None:
    """What earlier jobs of the same name and owner showed, where they were so much alike that this one is expected to
    be; None where they were not, or the user allows less. Nobody promised that the same program runs under a name.
    """
    if profile is None or profile.provenance.interval is None:
        return None
    runs = profile.provenance.runs
    scatter = (profile.provenance.interval[1] - 1.0) * math.sqrt(runs) / 2  # see `profiles.company.interval`
    if runs < ALIKE_RUNS or scatter > MOST_SCATTER or profile.isolated_time > (job.walltime or math.inf):
        return None
    return dataclasses.replace(profile, memory=min(profile.memory, job.memory)) if job.memory else profile


def widened(profile: Profile, cores: int) -> Profile:
    """The profile of a program that is given `cores` cores and uses some of them: threads that end as they begin take
    the others.
    """
    spare = cores - profile.threads
    idle = (ThreadGroup(spare, _LEAST_S),) if spare > 0 else ()
    return dataclasses.replace(profile, groups=(*profile.groups, *idle))


def with_learned(workflow: Workflow, known: Callable[[Job], Profile | None]) -> Workflow:
    """Replace the default by what `known` says of jobs without a profile, and mend the warnings. O(jobs)."""
    before = [job.id for job in workflow.jobs if rests_on_default(job)]
    if not before:
        return workflow
    asked = set(before)
    jobs = tuple(
        dataclasses.replace(job, profile=known(job) or job.profile) if rests_on_default(job) else job
        for job in workflow.jobs
    )
    after = [job.id for job in jobs if rests_on_default(job)]
    foretold = [job.id for job in jobs if job.id in asked and job.profile.provenance.source == "predicted"]
    others = tuple(text for text in workflow.warnings if text not in default_warning(before))
    told = (*(_predicted_warning(foretold) if foretold else ()), *(default_warning(after) if after else ()))
    return dataclasses.replace(workflow, jobs=jobs, warnings=(*others, *told))


def _predicted_warning(jobs: list[str]) -> tuple[str, ...]:
    """Say which jobs rest on runs of other commands."""
    some = ", ".join(jobs[:5]) + (", ..." if len(jobs) > 5 else "")
    return (f"{len(jobs)} of the jobs never ran and are predicted from other runs of their programs: {some}",)


def taught(
    views: Iterable[JobView], cpu_model: str = "", counted: Mapping[str, Counted] = NOTHING
) -> list[tuple[Job, Measurement]]:
    """What completed jobs that have a command used, as the resource manager measured it.

    Args:
        counted: by key, what counters said of some.
    """
    found = ((view.job, measured(view, cpu_model, counted)) for view in views if view.state is JobState.COMPLETED)
    return [(job, run) for job, run in found if run is not None and job.command]


def measured(view: JobView, cpu_model: str, counted: Mapping[str, Counted] = NOTHING) -> Measurement | None:
    """What a job's usage says of it on each of its nodes, and counters, where they did."""
    found = measurement_of(view, cpu_model)
    return counted[view.key].onto(found) if found and view.key in counted else found


def measurement_of(view: JobView, cpu_model: str = "") -> Measurement | None:
    """What a job's usage says of it on each of its nodes, over which it is taken as spread evenly.

    Usage (see the adapter) is of the whole job: cpu_seconds and waiting_seconds are sums over threads,
    `threads` the most that ran between two looks. None where times or CPU seconds are unknown. Time spent
    waiting for a core is taken out of the isolated time.
    """
    if view.start_time is None or view.finish_time is None:
        return None
    nodes = max(1, len(view.nodes))
    usage = {name: value / nodes for name, value in view.usage}
    if "cpu_seconds" not in usage:
        return None
    wall_s = max(view.finish_time - view.start_time, _LEAST_S)
    held_up = strain(dict(view.usage), wall_s)
    threads = _threads(usage, wall_s)
    busy_s = max(usage["cpu_seconds"] / threads, _LEAST_S)
    waited_s = min(usage.get("waiting_seconds", 0.0) / threads, wall_s)
    isolated_s = max(wall_s - waited_s, busy_s)
    return Measurement(
        groups=(ThreadGroup(threads, busy_s, min(1.0, busy_s / isolated_s)),),
        wall_s=wall_s,
        isolated_s=isolated_s,
        cpu_s=usage["cpu_seconds"],
        waiting=waited_s / wall_s if "waiting_seconds" in usage else None,
        exit_code=view.exit_code,
        date=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(view.start_time)),
        cpu_model=cpu_model,
        memory_bytes=usage.get("memory_bytes"),
        read_bytes=usage.get("read_bytes"),
        written_bytes=usage.get("written_bytes"),
        method="schedstat" if "waiting_seconds" in usage else "rusage",
        strain=held_up,
        sources={"strain": "its control group"} if held_up else {},
    )


def _threads(usage: dict[str, float], wall_s: float) -> int:
    """Threads on a node: those seen, but no more than there was core time and waiting for.

    The bound is needed because programs that run one after another (a shell and what it calls, the stages of
    a script) all ran between the same two looks.
    """
    seen = max(1, round(usage.get("threads", 1.0)))
    if "waiting_seconds" not in usage:
        return seen
    wanted = (usage["cpu_seconds"] + usage["waiting_seconds"]) / wall_s
    return min(seen, max(1, math.ceil(wanted - _SLACK)))
