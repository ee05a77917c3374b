"""The DAG of a workflow: built with networkx, checked once, with one clear error for each way to be wrong."""

from __future__ import annotations

import difflib

import networkx as nx

from .errors import InvalidJobError
from .job import Workflow


def build_dag(workflow: Workflow) -> nx.DiGraph:
    """Return the graph whose edges run from a job to those that wait for it. O(jobs + edges).

    Raises:
        InvalidJobError: a duplicate job, a dependency on an unknown job or on itself, or a cycle (its jobs named).
    """
    where = workflow.source or workflow.name
    if not workflow.jobs:
        raise InvalidJobError(f"{where}: jobs: the workflow has no jobs (allowed: at least one)")
    index = workflow.index
    graph = nx.DiGraph()
    graph.add_nodes_from(index)
    for job in workflow.jobs:
        for before in job.after:
            if before not in index:
                near = difflib.get_close_matches(before, index, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise InvalidJobError(f"{where}: job {job.id!r} waits for {before!r}, which is not a job here{hint}")
            graph.add_edge(before, job.id)
    if not nx.is_directed_acyclic_graph(graph):
        cycle = [edge[0] for edge in nx.find_cycle(graph)]
        raise InvalidJobError(f"{where}: jobs wait for each other in a cycle: {' -> '.join([*cycle, cycle[0]])}")
    return graph
