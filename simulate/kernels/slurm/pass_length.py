"""The number of records that a backfill pass tests before its time is over.

Rule: a pass tests records for `bf_yield_interval`, then sleeps for `bf_yield_sleep`; jobs are submitted and end
meanwhile. It ends after `bf_max_time`; without `bf_continue` it ends with the first sleep up to whose end something
changed. How long a test takes is what the site's sdiag says; without that, a pass tests as many records as it may.
Source: slurm.conf(5); _attempt_backfill and _yield_locks of Slurm 22.05.
"""

from __future__ import annotations

import math

from ..block import Block, int64
from ..jit import inner


@inner
def most_tests(world: Block) -> int:
    """Return how many records a backfill pass that begins now tests at most."""
    rules = world.rules
    most, test_s = rules.bf_max_job_test * 1.0, rules.test_s
    if test_s > 0.0:
        in_turn = max(math.ceil(rules.bf_yield_interval / test_s), 1.0)  # tests between two sleeps
        turn_s = in_turn * test_s + rules.bf_yield_sleep
        limit_s = (rules.bf_max_time if rules.bf_max_time > 0 else rules.bf_interval) * 1.0
        turns = math.floor(limit_s / turn_s)
        # A pass looks at the clock before it sleeps; so it tests another record after its last sleep.
        rest = min(math.ceil((limit_s - turns * turn_s) / test_s), in_turn + 1.0)
        most = min(most, turns * in_turn + max(rest, 1.0))
        if rules.bf_continue == 0:
            turns = math.floor(min((_next_change(world) - world.clock.now) / turn_s, most))
            most = min(most, (turns + 1.0) * in_turn)
    return int64(max(most, 1.0))


@inner
def _next_change(world: Block) -> float:
    """Return when something next happens: an end, an epilog, a submission, new priorities, or a main pass."""
    count, time = world.count, world.clock.next_period
    if count.ends > 0:
        time = min(time, world.ends_at[0])
    if count.epilogs > 0:
        time = min(time, world.epilogs_at[0])
    if count.next_event < len(world.agenda):
        time = min(time, world.agenda[count.next_event].time * 1.0)
    if count.wanted == 1:
        time = min(time, max(count.last_sched + world.rules.batch_sched_delay * 1.0, world.clock.now))
    return float(time)
