"""Profiles of jobs: replace the default by what earlier runs showed, measure a run, and classify planned jobs.

Rule: a profile that a user gave is never replaced. Nothing is learned from a job that failed. In JSON a job's class is
under `class` and `class_why`; None = unknown.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ...formats.command_words import INPUT
from ...formats.workflows.workflow_tasks import default_warning
from ...profiles.classes import class_fields, classify_on
from ...profiles.identity import words_checksum
from ...profiles.measurement import Measurement
from ...profiles.stall_facts import stall_facts
from ...simulate.model.capacity import EmptyNodes
from ...simulate.model.cluster import Cluster, NodeType
from ...simulate.model.job import Job, Profile, ThreadGroup, Workflow
from ...simulate.model.plan import Plan
from ...simulate.model.snapshot import JobState, JobView
from ..state.profile_labels import has_default_profile, profile_of

if TYPE_CHECKING:
    from ...profiles.measure.counters import HardwareCounts


NOTHING: Mapping[str, HardwareCounts] = {}
_LEAST_S = 1e-4
#: Time for which all tasks of a job that wanted a core waited for one, in its usage.
_STALLED = "stalled_cpu_full_seconds"
#: Threads by which measured core time may exceed a whole number of threads.
_SLACK = 0.15
#: Least runs of one name, and largest scatter of their CPU time (robust deviation over median), to predict the next.
ALIKE_RUNS, MOST_SCATTER = 2, 0.25


class GivenProfiles:
    """Plans with the profiles that jobs came with; `LearnedProfiles` replaces the default ones."""

    def with_profiles(self, workflow: Workflow) -> Workflow:
        """Return the workflow with the best known profiles."""
        return workflow

    def profile_steps(self, workflow: Workflow) -> Generator[None, None, Workflow]:
        """Do the same in steps, between which the service does other work."""
        yield
        return self.with_profiles(workflow)

    def with_profile(self, job: Job) -> Job:
        """Return the job with the best known profile."""
        return job

    def learned_as(self, job: Job) -> str:
        """Return the name under which the errors of a job's profile count, and its runs are learned."""
        return profile_of(job)

    def with_interference(self, cluster: Cluster) -> Cluster:
        """Return the cluster with what is known of how programs slow each other."""
        return cluster


def learnable(job: Job) -> bool:
    """Return whether the job's profile was measured, so that later runs may replace it."""
    return job.profile.provenance.source == "measured"


def if_alike(job: Job, profile: Profile | None) -> Profile | None:
    """Return the profile of earlier jobs of the same name and owner if they were alike, else None.

    A name does not guarantee that the same program runs.

    Args:
        job: whose walltime and memory limit the profile.
        profile: learned from the earlier jobs.
    """
    if profile is None or profile.provenance.interval is None:
        return None
    runs = profile.provenance.runs
    scatter = (profile.provenance.interval[1] - 1.0) * math.sqrt(runs) / 2
    if runs < ALIKE_RUNS or scatter > MOST_SCATTER or profile.isolated_time > (job.walltime or math.inf):
        return None
    return dataclasses.replace(profile, memory=min(profile.memory, job.memory)) if job.memory else profile


def widened(profile: Profile, cores: int) -> Profile:
    """Return the profile of a program that is given `cores` cores: threads without work occupy the ones it leaves."""
    spare = cores - profile.threads
    idle = (ThreadGroup(spare, _LEAST_S),) if spare > 0 else ()
    return dataclasses.replace(profile, groups=(*profile.groups, *idle))


def fitting(job: Job, profile: Profile | None, nodes: EmptyNodes | None) -> Profile | None:
    """Return a learned profile with which a job fits on a cluster; None if the job fits there only without it.

    A program that ran with more threads than a node takes is expected to run them in turns there: the same work is done
    by fewer threads. A job that fits nowhere anyway keeps the profile as it is.

    Args:
        job: as it was submitted.
        profile: learned from its command; None = nothing was learned.
        nodes: of the cluster; None = not known.
    """
    if profile is None or nodes is None or _fits(job, profile, nodes) or nodes.never_fits(job) is not None:
        return profile
    most = nodes.most_threads
    if not 1.0 <= most < profile.threads:
        return None
    fewer = narrowed(profile, int(most))
    return fewer if _fits(job, fewer, nodes) else None


def _fits(job: Job, profile: Profile, nodes: EmptyNodes) -> bool:
    return nodes.never_fits(dataclasses.replace(job, profile=profile)) is None


def narrowed(profile: Profile, threads: int) -> Profile:
    """Return the profile of the same work and traffic by fewer threads, which are busier; phases are averaged."""
    work = sum(group.count * group.demand for group in profile.groups)
    busy = sum(group.count * group.demand * group.mean_utilisation for group in profile.groups) / work * profile.threads
    moved = sum(group.count * group.demand * group.mean_bandwidth for group in profile.groups) / work
    group = ThreadGroup(threads, work / threads, min(1.0, busy / threads), bandwidth=moved)
    return dataclasses.replace(profile, groups=(group,))


def with_learned_profiles(workflow: Workflow, known: Callable[[Job], Profile | None]) -> Workflow:
    """Replace default profiles by learned ones, and update the warnings. O(jobs).

    Args:
        workflow: as submitted.
        known: returns the learned profile of a job, None without one.
    """
    before = [job.id for job in workflow.jobs if has_default_profile(job)]
    if not before:
        return workflow
    job_ids = set(before)
    jobs = tuple(
        dataclasses.replace(job, profile=known(job) or job.profile) if has_default_profile(job) else job
        for job in workflow.jobs
    )
    after = [job.id for job in jobs if has_default_profile(job)]
    predicted = [job.id for job in jobs if job.id in job_ids and job.profile.provenance.source == "predicted"]
    others = tuple(text for text in workflow.warnings if text not in default_warning(before))
    if predicted:
        examples = ", ".join(predicted[:5]) + (", ..." if len(predicted) > 5 else "")
        origin = "of the jobs are predicted from other runs of their programs"
        others = (*others, f"{len(predicted)} {origin}: {examples}")
    new = default_warning(after) if after else ()
    return dataclasses.replace(workflow, jobs=jobs, warnings=(*others, *new))


def job_measurements(
    views: Iterable[JobView], cpu_model: str = "", counted: Mapping[str, HardwareCounts] = NOTHING
) -> list[tuple[Job, Measurement]]:
    """Return the measured usage of each completed job that has a command.

    Args:
        views: of jobs, as the resource manager measured them.
        cpu_model: of the machine.
        counted: hardware counts of some, by key.
    """
    runs = ((view.job, measurement_of(view, cpu_model, counted)) for view in views if view.state is JobState.COMPLETED)
    return [(job, run) for job, run in runs if run is not None and job.command]


def measurement_of(
    view: JobView, cpu_model: str = "", counted: Mapping[str, HardwareCounts] = NOTHING
) -> Measurement | None:
    """Return a job's usage on each of its nodes, assumed to be spread evenly; None if times or CPU time are unknown.

    Usage (see the adapter) is of the whole job: cpu_seconds and waiting_seconds are sums over threads, `threads` the
    most that ran between two samples. Time spent waiting for a core does not count as isolated time.

    Args:
        view: of an ended job.
        cpu_model: of the machine.
        counted: hardware counts of some jobs, by key.
    """
    if view.start_time is None or view.finish_time is None:
        return None
    nodes = max(1, len(view.nodes))
    inputs = {name.removeprefix(INPUT): value for name, value in view.usage if name.startswith(INPUT)}
    usage = {name: value / nodes for name, value in view.usage if not name.startswith(INPUT)}
    if "cpu_seconds" not in usage:
        return None
    wall_s = max(view.finish_time - view.start_time, _LEAST_S)
    held_up = stall_facts(dict(view.usage), wall_s)
    threads = _threads(usage, wall_s)
    busy_s = max(usage["cpu_seconds"] / threads, _LEAST_S)
    # threads that end between two samples hide what they waited; the control group knows when the whole job did
    waited_s = min(max(usage.get("waiting_seconds", 0.0) / threads, usage.get(_STALLED, 0.0)), wall_s)
    isolated_s = max(wall_s - waited_s, busy_s)
    measurement = Measurement(
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
        inputs=inputs or dict(view.job.inputs),
        words=words_checksum(view.job),
    )
    return counted[view.key].apply_to(measurement) if view.key in counted else measurement


def _threads(usage: dict[str, float], wall_s: float) -> int:
    """Return the threads on a node: those counted, at most what core time and waiting time allow.

    The bound is needed because programs that run one after another (a shell and its commands, the stages of a script)
    may all be counted between the same two samples.
    """
    thread_count = max(1, round(usage.get("threads", 1.0)))
    if "waiting_seconds" not in usage:
        return thread_count
    busy_cores = (usage["cpu_seconds"] + usage["waiting_seconds"]) / wall_s
    return min(thread_count, max(1, math.ceil(busy_cores - _SLACK)))


JobClass = Mapping[str, str | None]


def classes_of(plan: Plan, jobs: Iterable[Job], cluster: Cluster) -> dict[str, JobClass]:
    """Return the class of each planned job as a mapping for JSON, by id. O(jobs).

    Jobs of one profile on one type of node are classified once.

    Args:
        plan: gives each job its nodes.
        jobs: of the plan, under their ids there.
        cluster: of the nodes.
    """
    profiles = {job.id: job.profile for job in jobs}
    classes: dict[tuple[int, NodeType | None], JobClass] = {}
    class_by_job: dict[str, JobClass] = {}
    for job in plan.jobs:
        profile = profiles.get(job.id)
        if profile is not None:
            where = next((cluster.nodes[cluster.index[name]].type for name in job.nodes if name in cluster.index), None)
            key = id(profile), where
            if key not in classes:
                classes[key] = class_fields(classify_on(profile, cluster, job.nodes))
            class_by_job[job.id] = classes[key]
    return class_by_job


def with_classes(document: dict[str, Any], classes: Mapping[str, JobClass]) -> dict[str, Any]:
    """Return a JSON document of a plan or a run with the classes of its jobs; `classes` by job id."""
    return document | {"jobs": [job | classes.get(job["id"], {}) for job in document["jobs"]]}
