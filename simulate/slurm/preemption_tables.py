"""Tables of preemption: which jobs make room for which, and how.

Rule: the PreemptMode of a victim is that of its partition (PreemptType=preempt/partition_prio) or QOS (preempt/qos),
else the cluster's. Source: slurm.conf(5), PreemptType and PreemptMode.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..arrays import Array
from ..kernels.slurm.victims import BY_PARTITION, BY_QOS, CANCEL_VICTIM, REQUEUE_VICTIM
from .site import Site

#: What decides who preempts whom, by PreemptType.
PREEMPT_TYPES = {"partition_prio": BY_PARTITION, "qos": BY_QOS}
_MODES = {"CANCEL": CANCEL_VICTIM, "REQUEUE": REQUEUE_VICTIM}


def preemption_tables(site: Site) -> dict[str, Array]:
    """Return the tables of `victims` by name.

    Args:
        site: the site.
    """
    if site.rules.preempt_type == "partition_prio":
        parts = site.partitions
        rows = [[_mode(site, low.preempt_mode) if low.tier < high.tier else 0 for low in parts] for high in parts]
    else:
        rows = [
            [_mode(site, low.preempt_mode) if low.name in high.preempts else 0 for low in site.qos] for high in site.qos
        ]
    return {"preempts": np.array(rows, np.int64), "victims": np.zeros(len(site.jobs), np.int64)}


def unfollowed_preemption(site: Site) -> Iterator[str]:
    """Yield a sentence for each setting of preemption that the replay does not follow."""
    if not site.rules.preempt_type:
        return
    owners = site.partitions if site.rules.preempt_type == "partition_prio" else site.qos
    for owner in owners:
        if "SUSPEND" in (owner.preempt_mode or site.rules.preempt_mode):
            yield f"PreemptMode=SUSPEND of {owner.name}: its jobs are not preempted; others wait longer for them"
        if owner.grace_time_s:
            yield f"GraceTime of {owner.name}: its jobs end at once when they are preempted"
    if site.rules.preempt_type == "qos":
        yield "PreemptType=preempt/qos: jobs that can preempt are not sorted before those that they can preempt"


def _mode(site: Site, mode: str) -> int:
    """Return what happens to a victim by its own PreemptMode, or the cluster's if that is empty; 0: nothing."""
    words = (mode or site.rules.preempt_mode).upper().split(",")
    return next((_MODES[word] for word in words if word in _MODES), 0)
