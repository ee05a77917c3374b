"""What waiting for pilotfish costs a job here, and when Slurm starts it by itself.

Rule: pure; numbers are computed from this site's settings, and said.
Source: slurm.conf(5): SchedulerParameters, PriorityFlags, PriorityWeightAge, PriorityMaxAge; sched_conf of 22.05.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...findings import NOTE, OK, Finding
from ..handover import Selection
from .asked import Asked

#: Slurm's own defaults, seconds, jobs, minutes
SCHED_INTERVAL_S, BF_INTERVAL_S, QUEUE_DEPTH, BF_WINDOW_MIN = 60, 30, 100, 1440
EXAMPLE_S = 600.0


def findings(asked: Asked, selection: Selection) -> Iterator[Finding]:
    """The grace, the priority that is lost, the backfill scheduler."""
    every = asked.number("sched_interval", SCHED_INTERVAL_S)
    depth = asked.number("default_queue_depth", QUEUE_DEPTH)
    yield Finding(OK, "grace", f"a job whose hold is over is started by Slurm itself within {every} s "
                  f"(sched_interval) if it is among the first {depth} (default_queue_depth); holds of "
                  f"{max(10 * every, 120)} s and more lose little by that")  # fmt: skip
    yield _age(asked)
    if asked.setting("SchedulerType") == "sched/backfill":
        backfill = asked.number("bf_interval", BF_INTERVAL_S)
        hours = asked.number("bf_window", BF_WINDOW_MIN) / 60
        yield Finding(OK, "backfill", f"Slurm plans every {backfill} s (bf_interval), {hours:.3g} h ahead (bf_window); "
                      "a job that is held for pilotfish keeps no nodes free there")  # fmt: skip
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

