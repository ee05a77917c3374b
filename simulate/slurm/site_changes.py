"""Changes of a site for what-if questions: drained nodes, more nodes, another load.

Rule: a change returns another site and leaves everything else as it is. Changes of slurm.conf and of QOS are made in
their text before it is read (`formats.site.site_edits`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..errors import ConfigError
from .site import NodeEvent, Site, SiteJob


def first_submission(site: Site) -> float:
    """Return when the period of a site begins, seconds since the epoch; 0 without jobs."""
    return min((job.submit for job in site.jobs), default=0.0)


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
        like: name of the node that they are like, and whose partitions they are in; "": the last node.

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
    return replace(site, nodes=(*site.nodes, *nodes), partitions=partitions)


def with_load(site: Site, factor: float) -> Site:
    """Return the site whose jobs are submitted `factor` times as fast; 1.2 is 20 % more load.

    All times of a job move with its submission. Node events and reservations stay where they are.
    """
    first = first_submission(site)
    return replace(site, jobs=tuple(_moved(job, (job.submit - first) * (1.0 / factor - 1.0)) for job in site.jobs))


def _moved(job: SiteJob, seconds: float) -> SiteJob:
    """Return a job whose times are later by so many seconds, rounded to whole ones."""
    shift = round(seconds)

    def at(time: float | None) -> float | None:
        return None if time is None else time + shift

    runs = tuple(
        replace(run, eligible=at(run.eligible), start=at(run.start), end=at(run.end)) for run in job.runs
    )  # fmt: skip
    return replace(
        job, submit=job.submit + shift, runs=runs, begin=at(job.begin), released=at(job.released),
        deadline=at(job.deadline),
    )  # fmt: skip
