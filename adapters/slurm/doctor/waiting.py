"""What waiting for pilotfish costs a job here, and when Slurm starts it by itself.

Rule: pure; numbers are computed from this site's settings, and said.
Source: slurm.conf(5): SchedulerParameters, PriorityFlags, PriorityWeightAge, PriorityMaxAge; sched_conf of 22.05.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...findings import NOTE, OK, Finding
from ..handover import Selection
from .asked import Asked

#: Slurm's own defaults, seconds
SCHED_INTERVAL_S, BF_INTERVAL_S = 60.0, 30.0
EXAMPLE_S = 600.0


def findings(asked: Asked, selection: Selection) -> Iterator[Finding]:
    """The grace, the priority that is lost, the backfill scheduler."""
    every = _seconds(asked, "sched_interval", SCHED_INTERVAL_S)
    yield Finding(OK, "grace", f"a job whose hold is over is started by Slurm within {every:.0f} s (sched_interval) "
                  "where it is among the first in the queue")  # fmt: skip
    yield _age(asked)
    if asked.setting("SchedulerType") == "sched/backfill":
        backfill = _seconds(asked, "bf_interval", BF_INTERVAL_S)
        yield Finding(OK, "backfill", f"every {backfill:.0f} s (bf_interval); a held job has no reservation there, "
                      "so wide jobs that cannot start are let go within one such pass")  # fmt: skip
    else:
        yield Finding(NOTE, "backfill", f"{asked.setting('SchedulerType') or 'unknown'} makes no reservations: "
                      "nothing keeps nodes free for a wide job, with or without pilotfish")  # fmt: skip
    if asked.setting("PreemptType") not in ("", "preempt/none"):
        yield Finding(NOTE, "preemption", f"{asked.setting('PreemptType')}: a job that is preempted and requeued "
                      "loses its pin within seconds, and is Slurm's to start again")  # fmt: skip


def _age(asked: Asked) -> Finding:
    if asked.setting("PriorityType") != "priority/multifactor":
        return Finding(OK, "priority", "no priority grows with waiting here: a begin time costs none")
    if "ACCRUE_ALWAYS" in asked.words("PriorityFlags"):
        return Finding(OK, "priority", "ACCRUE_ALWAYS: waiting for a begin time counts as waiting")
    weight, longest = asked.setting("PriorityWeightAge"), asked.seconds("PriorityMaxAge", 7 * 86400.0)
    lost = int(weight) * min(1.0, EXAMPLE_S / max(longest, 1.0)) if weight.isdigit() else 0.0
    if lost == 0:
        return Finding(OK, "priority", "PriorityWeightAge=0: a begin time costs no priority")
    says = f"a job gains no age while it waits for its begin time: ten minutes of it cost {lost:.3g} points of priority"
    return Finding(NOTE, "priority", says, ("PriorityFlags=ACCRUE_ALWAYS   # in slurm.conf, if it matters",))


def _seconds(asked: Asked, name: str, otherwise: float) -> float:
    value = asked.parameter(name)
    return float(value) if value and value.isdigit() and int(value) else otherwise
