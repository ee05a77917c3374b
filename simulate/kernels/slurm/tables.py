"""Tables of a site under Slurm's rules (needs NumPy only).

Terms: a *record* of the queue is a job in one of its partitions; a *piece* is what a running job has on one node; a
*view* of the nodes is what is free on them, really (NOW) or in a question about later (LATER).
Units: seconds since the epoch, minutes for limits, MiB. -1 is "not set" for whole numbers.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..block import Block
from ..mapping.layout import FLOAT, INT, row_dtype

WORD = np.dtype("u8")
#: States of a job. HELD: it has no priority. GONE: it ended, or left the queue without a run.
FUTURE, PENDING, HELD, RUNNING, COMPLETING, GONE = range(6)
#: States of a node: it takes jobs; it takes no new ones; its jobs have ended, too.
UP, DRAINED, DOWN = range(3)
#: Rows of the table `views`.
NOW, LATER = 0, 1
#: What selects resources on a node.
BY_CORE, BY_CPU, BY_NODE = range(3)
#: Who started a job.
BY_MAIN, BY_BACKFILL, BY_HISTORY = range(3)
#: Flags of PriorityFlags, bits of `rules.priority_flags`.
(
    FAIR_TREE, SMALL_RELATIVE_TO_TIME, FAVOR_SMALL, ACCRUE_ALWAYS, NO_NORMAL_ASSOC, NO_NORMAL_PART, NO_NORMAL_QOS,
    NO_NORMAL_TRES, INCR_ONLY, CALCULATE_RUNNING, MAX_TRES, DEPTH_OBLIVIOUS,
) = (1 << bit for bit in range(12))  # fmt: skip
#: Columns of amounts of trackable resources.
CPU, MEM, NODE_COUNT, GPU, BILLING = range(5)
TRES_COUNT = 5
NO_LIMIT = -1.0

#: What the site's configuration says; see `simulate.slurm.site`.
RULES = row_dtype(
    "weight_age weight_assoc weight_fair_share weight_size weight_part weight_qos max_age half_life dampening",
    # clocks
    "sched_interval sched_min_interval batch_sched_delay deferred bf_interval bf_max_time "
    # main pass
    "default_queue_depth partition_job_depth sched_max_job_start assoc_limit_stop "
    # backfill pass
    "bf_window bf_resolution bf_max_job_test bf_max_job_start bf_max_job_user bf_max_job_part bf_max_job_user_part "
    "bf_max_job_assoc bf_max_job_array_resv bf_job_part_count_reserve bf_min_age_reserve bf_min_prio_reserve "
    "bf_one_resv_per_job bf_window_linear bf_busy_nodes bf_node_space_size "
    # the rest
    "multifactor priority_flags period enforces_limits enforces_qos safe complete_wait kill_wait over_time_limit "
    "preempts requeue_preempted select counts_memory least_loaded cpus_total nodes_total version",
)
#: A node; `first_record`: unused cells are 0. `completing`: jobs that have ended on it and are not cleaned up.
NODE = row_dtype("", "cpus cores threads memory weight gpus state jobs completing mark")
#: What is free on a node in one view. `exclusive`: jobs that hold it alone.
VIEW = np.dtype([("cores", INT), ("memory", INT), ("gpus", INT), ("jobs", INT)], align=True)
PARTITION = row_dtype(
    "factor",
    "tier max_time min_nodes max_nodes max_cpus_per_node exclusive least_loaded up qos requeues cpus nodes closed tested",
)
#: A job. `limit`: minutes; `run`: seconds that it runs if nothing stops it; `finish`: when it ends; `deadline_end`: its
#: start and its limit; `part`: the partition that it runs in; `place`: its first row in `waiting`, -1 if it does not
#: wait; `counted_cpus`: CPUs of its last test (for its size), 0 before.
JOB = row_dtype(
    "priority",
    "submit begin accrue run limit time_min min_nodes max_nodes want_nodes min_cpus tasks cpus_per_task tasks_per_node "
    "memory memory_per_cpu gpus exclusive contiguous nice user assoc qos reservation part0 parts array task after0 "
    "afters unmet held_until begin_at cancel_at deadline requeue allowed required excluded licence0 licences "
    "state start finish until part piece0 pieces counted_cpus expected running_place cpus billing started_by tried "
    "submitted restarts expected_nodes",
)
#: What a job has, or had, on a node.
PIECE = np.dtype([("node", np.int32), ("cores", np.int32), ("cpus", np.int32), ("memory", np.int32)])
#: A record of the queue.
RECORD = row_dtype("", "job part")
#: A slice of the plan of a backfill pass; its nodes are a row of `slice_nodes`.
SLICE = row_dtype("", "begin end next")
#: An association; `children0` and `children` are its rows in `child`; `is_user`: 1 if it is a user's.
ASSOCIATION = row_dtype(
    "usage shares norm_shares level factor priority effective", "parent is_user first_child next_sibling shares_parent"
)
QOS = row_dtype("usage factor usage_factor", "priority no_reserve over_part")
RESERVATION = row_dtype("", "start end maint ignore_jobs overlap flex allowed0 alloweds began closed")
#: A start in the result: job, its partition, when, who started it, its pieces, its priority then; `end` -1 while it runs.
START = row_dtype("priority", "job part start end by piece0 pieces")
#: A thing that happens to the site by itself: a node changes its state.
EVENT = row_dtype("", "time kind node state")

#: Counters and clocks.
COUNT = row_dtype(
    "",
    "now jobs next_job next_event running pieces starts waiting slices free_slices wanted last_full last_sched "
    "next_backfill last_backfill backfill_started next_period last_period next_limit_check next_tick changed "
    "main_seen backfill_seen records ends epilogs pending chosen chosen_cpus users tests_done "
    "main_passes backfill_passes tests random history",
)


class Slurm(Block):
    """State of a site under Slurm's rules."""

    layout: ClassVar = {
        "rules": (RULES, 0),
        "nodes": (NODE, 1),
        "views": (VIEW, 2),  # [2, nodes]
        "partitions": (PARTITION, 1),
        "partition_nodes": (WORD, 2),  # [partitions, words]
        "allowed_nodes": (WORD, 2),  # sets that jobs name: required, excluded and by features
        "jobs": (JOB, 1),
        "job_parts": (INT, 1),  # partitions of each job, by tier
        "after": (INT, 1),  # dependents
        "pieces": (PIECE, 1),
        "starts": (START, 1),
        "running": (INT, 1),  # running jobs by `until`
        "waiting": (INT, 1),  # jobs in the queue, in no order
        "records": (RECORD, 1),  # the queue of a pass
        "order": (INT, 1),
        "ends_at": (FLOAT, 1),  # heap of ends
        "ends_job": (INT, 1),
        "epilogs_at": (FLOAT, 1),
        "epilogs_job": (INT, 1),
        "slices": (SLICE, 1),
        "slice_nodes": (WORD, 2),
        "scratch": (WORD, 2),  # [rows, words] sets of nodes that functions work on; see `bits`
        "usable_cpus": (INT, 1),  # [nodes] of the job that is placed
        "taken_cpus": (INT, 1),  # [nodes] of the job that is placed; 0: not chosen
        "chosen": (INT, 1),  # nodes that were chosen, ascending
        "associations": (ASSOCIATION, 1),
        "shares": (INT, 1),  # scratch of the fair tree
        "qos": (QOS, 1),
        "reservations": (RESERVATION, 1),
        "reservation_nodes": (WORD, 2),
        "user_counts": (INT, 1),  # [users] of a backfill pass
        "events": (EVENT, 1),
        "count": (COUNT, 0),
    }
