"""Changes of a site for what-if questions: drained nodes, more nodes, another load, jobs in another QOS or later.

Rule: a change returns another site and leaves everything else as it is. Changes of slurm.conf and of QOS are made in
their text before it is read (`formats.site.site_edits`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ..arrays import Array
from ..errors import ConfigError, did_you_mean
from .job_columns import SiteJobs, distinct
from .site import NodeEvent, Site


def first_submission(site: Site) -> float:
    """Return when the period of a site begins, seconds since the epoch; 0 without jobs."""
    submit = SiteJobs.of(site.jobs).submit
    return float(submit.min()) if len(submit) else 0.0


def with_drained_nodes(site: Site, nodes: Sequence[str], start: float, end: float | None) -> Site:
    """Return the site whose nodes take no new jobs for a time; running jobs go on.

    Args:
        site: the site.
        nodes: their names.
        start: seconds since the epoch.
        end: the same; None: for ever.

    Raises:
        ConfigError: a node is not there.
    """
    names = {node.name for node in site.nodes}
    for name in nodes:
        if name not in names:
            raise ConfigError("", "", f"{name!r} is not a node", f"{site.nodes[0].name} to {site.nodes[-1].name}")
    events = (*site.events, *(NodeEvent(name, start, end) for name in nodes))
    return replace(site, events=tuple(sorted(events, key=lambda event: event.start)))


def with_more_nodes(site: Site, number: int, like: str = "") -> Site:
    """Return the site with more nodes, named added1, added2 and so on.

    Args:
        site: the site.
        number: of nodes, 1 or more.
        like: name of the node that they are like, and whose partitions and switches they are in; "": the last node.

    Raises:
        ConfigError: that node is not there.
    """
    model = next((node for node in site.nodes if node.name == like), None) if like else site.nodes[-1]
    if model is None:
        raise ConfigError("", "", f"{like!r} is not a node", f"{site.nodes[0].name} to {site.nodes[-1].name}")
    names = tuple(f"added{place}" for place in range(1, number + 1))
    nodes = tuple(replace(model, name=name, works=True) for name in names)
    partitions = tuple(
        replace(one, nodes=(*one.nodes, *names)) if model.name in one.nodes else one for one in site.partitions
    )
    switches = tuple(
        replace(one, nodes=(*one.nodes, *names)) if model.name in one.nodes else one for one in site.switches
    )
    return replace(site, nodes=(*site.nodes, *nodes), partitions=partitions, switches=switches)


def with_load(site: Site, factor: float) -> Site:
    """Return the site whose jobs are submitted `factor` times as fast; 1.2 is 20 % more load.

    All times of a job move with its submission. Node events and reservations stay where they are.
    """
    first = first_submission(site)
    jobs, runs = SiteJobs.of(site.jobs), SiteJobs.of(site.jobs).runs
    shift = np.rint((jobs.submit - first) * (1.0 / factor - 1.0))  # whole seconds
    of_runs = np.repeat(shift, np.diff(jobs.first_run))
    moved_runs = replace(runs, **{name: getattr(runs, name) + of_runs for name in ("eligible", "start", "end")})
    times = {name: getattr(jobs, name) + shift for name in ("submit", "begin", "released", "deadline")}
    return replace(site, jobs=replace(jobs, runs=moved_runs, **times))


def with_moved_jobs(site: Site, qos: str, other: str, share: float, seed: int = 0) -> Site:
    """Return the site where a share of the jobs of a QOS was submitted to another QOS.

    Args:
        site: the site.
        qos: name of the QOS that the jobs have.
        other: name of the one that they get.
        share: of the jobs, drawn one by one, in (0, 1].
        seed: of the draw.

    Raises:
        ConfigError: the site has no such QOS.
    """
    for name in (qos, other):
        _check_qos(site, name)
    jobs = SiteJobs.of(site.jobs)
    site = _noting_no_job(site, qos)
    is_moved = (np.random.default_rng(seed).random(len(jobs)) < share) & _have_qos(jobs, qos)
    patterns = [*jobs.patterns, *(replace(pattern, qos=other) for pattern in jobs.patterns)]
    return replace(site, jobs=replace(jobs, patterns=patterns, pattern=jobs.pattern + is_moved * len(jobs.patterns)))


def with_held_jobs(site: Site, qos: str, release: Callable[[float], float]) -> Site:
    """Return the site where the jobs of a QOS may start only after a time of their own.

    Args:
        site: the site.
        qos: name of the QOS.
        release: submission -> time, seconds since the epoch.

    Raises:
        ConfigError: the site has no such QOS.
    """
    _check_qos(site, qos)
    jobs = SiteJobs.of(site.jobs)
    site = _noting_no_job(site, qos)
    begin, rows = jobs.begin.copy(), np.flatnonzero(_have_qos(jobs, qos))
    begin[rows] = np.fmax(begin[rows], [release(submit) for submit in jobs.submit[rows].tolist()])
    return replace(site, jobs=replace(jobs, begin=begin))


def _have_qos(jobs: SiteJobs, name: str) -> Array:
    """Return which jobs have a QOS."""
    return np.array([pattern.qos == name for pattern in jobs.patterns], bool)[jobs.pattern]


def _noting_no_job(site: Site, qos: str) -> Site:
    """Return the site; if no job has the QOS, with a sentence that says that the change does nothing."""
    if _have_qos(SiteJobs.of(site.jobs), qos).any():
        return site
    return replace(site, unknown=(*site.unknown, f"no job has the QOS {qos}: a change of its jobs does nothing"))


def _check_qos(site: Site, name: str) -> None:
    jobs = SiteJobs.of(site.jobs)
    used, _ = distinct(jobs.pattern)
    names = sorted({one.name for one in site.qos} | {jobs[row].qos for row in used.tolist()})
    if name not in names:
        raise ConfigError("", "", f"{name!r} is not a QOS{did_you_mean(name, names)}", ", ".join(names))
