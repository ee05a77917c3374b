"""Contention factors of scored program pairs, added to a cluster.

Rule: factors only fill gaps. A pair given by the cluster file is unchanged; if the bandwidths of both programs are
known and the node's model uses them, the model alone applies, so that contention is not counted twice. Scores hold for
the node type that they name, or else, like profiles, for the first one; scores of different processors are not mixed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from ...simulate.model.cluster import Cluster, Contention, CoRun, NodeType
from .scores import Scores, co_run_inflation

#: Number of the latest scored programs that count: pairs grow with the square.
MOST = 100


def with_scores(cluster: Cluster, scores: Iterable[Scores], counted: Callable[[str], bool]) -> Cluster:
    """Return the cluster with the pairs that scores add, or itself if they add none.

    Args:
        cluster: whose node types are extended.
        scores: oldest first.
        counted: whether the bandwidth of a program (by its profile's name) is known.
    """
    latest = list(scores)[-MOST:]
    kinds = {kind: _with(kind, [one for one in latest if _of(one, cluster) == kind.name], counted)
             for kind in cluster.types}  # fmt: skip
    if all(kind is kinds[kind] for kind in kinds):
        return cluster
    return replace(cluster, nodes=tuple(replace(node, type=kinds[node.type]) for node in cluster.nodes))


def added(before: Cluster, after: Cluster) -> int:
    """Return how many pairs `with_scores` added, over all node types."""
    return sum(
        len(new.co_run_inflation) - len(old.co_run_inflation)
        for old, new in zip(before.types, after.types, strict=True)
    )


def _of(scores: Scores, cluster: Cluster) -> str:
    return scores.node_type or cluster.types[0].name


def _with(kind: NodeType, scores: Sequence[Scores], counted: Callable[[str], bool]) -> NodeType:
    """Return the node type with the pairs of each processor's scores, the latest if several have one."""
    pairs: dict[tuple[str, str], CoRun] = {}
    for model in dict.fromkeys(one.cpu_model for one in scores):
        for job, beside in co_run_inflation(one for one in scores if one.cpu_model == model).items():
            pairs |= {(job, other): CoRun(job, other, times) for other, times in beside.items()}
    modelled = kind.contention is not Contention.NONE
    known = {(pair.job, pair.beside) for pair in kind.co_run_inflation}
    known |= {key for key in pairs if modelled and all(counted(name) for name in key)}
    more = [pair for key, pair in pairs.items() if key not in known]
    return replace(kind, co_run_inflation=(*kind.co_run_inflation, *more)) if more else kind
