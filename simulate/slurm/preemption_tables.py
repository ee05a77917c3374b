"""Tables of preemption: who preempts whom, what becomes of the victims, and which time they have.

Rule: PreemptMode of the victim's partition (preempt/partition_prio) or QOS (preempt/qos) overrides that of the cluster.
Source: slurm.conf(5), PreemptType and PreemptMode; sacctmgr(1).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..arrays import Array
from ..kernels.mapping.layout import INT
from ..kernels.slurm.tables import BY_QOS, BY_TIER, IS_CANCELLED, IS_REQUEUED, IS_SUSPENDED, NOT_AT_ALL, STAYS
from .site import Site

_TYPES = {"partition_prio": BY_TIER, "qos": BY_QOS}
_FATES = {"CANCEL": IS_CANCELLED, "REQUEUE": IS_REQUEUED, "SUSPEND": IS_SUSPENDED}


def preemption_tables(site: Site) -> dict[str, Array]:
    """Return the table of the QOS whose jobs preempt jobs of others, by name.

    Args:
        site: the site, completed.
    """
    preemptible = [[int(other.name in qos.preempts) for other in site.qos] for qos in site.qos]
    return {"preemptible": np.array(preemptible, INT)}


def set_preemption(world: Any, site: Site) -> None:
    """Fill the fields of `rules`, `partitions` and `qos` that say who is preempted, and when.

    Args:
        world: the state; its rows are in the order of the site's.
        site: the site, completed.
    """
    rules = site.rules
    world.rules["preempts"] = _TYPES.get(rules.preempt_type, NOT_AT_ALL)
    world.rules["preempt_exempt"] = rules.preempt_exempt_s
    world.rules["preempt_pause"] = rules.kill_wait_s + rules.message_timeout_s
    for row, partition in zip(world.partitions, site.partitions, strict=True):
        row["preempt_mode"], row["grace"] = _fate(partition.preempt_mode or rules.preempt_mode), partition.grace_time_s
    for row, qos in zip(world.qos, site.qos, strict=True):
        row["preempt_mode"], row["grace"] = _fate(_own_mode(qos.preempt_mode) or rules.preempt_mode), qos.grace_time_s
        row["exempt"] = -1 if qos.preempt_exempt_s is None else qos.preempt_exempt_s
        row["within"] = "WITHIN" in _words(qos.preempt_mode) | _words(rules.preempt_mode)


def unfollowed_preemption(site: Site) -> Iterator[str]:
    """Yield a sentence for each setting of preemption that the replay does not follow."""
    rules = site.rules
    if "GANG" in _words(rules.preempt_mode) and "SUSPEND" not in _words(rules.preempt_mode):
        yield "PreemptMode=GANG: jobs do not take turns on the same cores; they wait for free ones"
    if not rules.preempt_type:
        return
    if rules.preempt_type not in _TYPES:
        yield f"PreemptType=preempt/{rules.preempt_type}: no job is preempted; jobs that would preempt wait longer"
        return
    if "PRIORITY" in _words(rules.preempt_mode):
        yield "PreemptMode=PRIORITY: jobs of higher priority are preempted, too"


def _words(mode: str) -> set[str]:
    return {word.strip() for word in mode.upper().split(",")}


def _own_mode(mode: str) -> str:
    """Return the mode of a QOS; OFF and WITHIN alone leave that of the cluster."""
    return mode if _words(mode) - {"OFF", "WITHIN", "CLUSTER", ""} else ""


def _fate(mode: str) -> int:
    return next((fate for word, fate in _FATES.items() if word in _words(mode)), STAYS)
