"""Nodes that sleep while no job runs on them (SuspendTime), and boot for the job that gets them.

Rule: an idle node goes to sleep after SuspendTime, takes no job for SuspendTimeout, and then one that boots it. Such a
node comes after all others in the choice of nodes. A job on booting nodes starts when all are ready; until then the
nodes take no other job, as nodes that are cleaned up. Where the site saves no power, all this costs one comparison.
Source: slurm.conf(5), SuspendTime, SuspendTimeout, ResumeTimeout, SuspendRate, ResumeRate, SuspendExcNodes.
Complexity: O(nodes) a pass, O(chosen nodes) a start.
"""

from __future__ import annotations

from ..block import Block, int64
from ..jit import inner
from .bits import add, drop, has
from .tables import ASLEEP_WEIGHT, AVAILABLE, CLEAN, IDLE, UP


@inner
def save_power(world: Block, now: int) -> None:
    """Let nodes sleep that have been idle for long; leave out of AVAILABLE those that are going to sleep."""
    rules, clock = world.rules, world.clock
    for node in range(len(world.nodes) if rules.suspend_time > 0 else int64(0)):
        row, place = world.sleeps[node], world.nodes[node]
        if 0 < row.ready_at <= now:
            row.ready_at = 0
            place.completing -= 1
            if place.completing == 0:
                add(world.node_sets[CLEAN], node)
        if row.asleep == 0 and row.stays_on == 0 and place.state == UP and has(world.node_sets[IDLE], node):
            begin = max((row.idle_since + rules.suspend_time) * 1.0, clock.next_suspend)
            if begin <= now:
                row.asleep, row.slept_at = 1, int64(begin)
                place.weight += ASLEEP_WEIGHT
                clock.next_suspend = begin + (60.0 / rules.suspend_rate if rules.suspend_rate > 0 else 0.0)
        if row.asleep == 1 and now < row.slept_at + rules.suspend_timeout:
            drop(world.scratch[AVAILABLE], node)


@inner
def boot_chosen(world: Block, now: int) -> int:
    """Boot the chosen nodes that sleep; return when all chosen nodes are ready."""
    rules, clock, ready = world.rules, world.clock, int64(now)
    for i in range(world.count.chosen if rules.suspend_time > 0 else int64(0)):
        node = world.chosen[i]
        row, place = world.sleeps[node], world.nodes[node]
        if row.asleep == 1:
            begin = max(now * 1.0, clock.next_resume)
            clock.next_resume = begin + (60.0 / rules.resume_rate if rules.resume_rate > 0 else 0.0)
            clock.asleep_s += now - row.slept_at
            row.asleep, row.ready_at = 0, int64(begin) + rules.resume_timeout
            place.weight -= ASLEEP_WEIGHT
            place.completing += 1
            drop(world.node_sets[CLEAN], node)
            ready = max(ready, row.ready_at)
    return ready
