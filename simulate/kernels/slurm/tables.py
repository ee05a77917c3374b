"""Tables of a site under Slurm's rules (needs NumPy only).

Terms: a *record* of the queue is a job in one of its partitions; a *piece* is what a running job has on one node; a
*view* of the nodes is what is free on them, really (NOW) or in a question about later (LATER).
Units: seconds since the epoch, minutes for limits, MiB. -1 is "not set" for whole numbers.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..block import Block
from ..mapping.layout import FLAG, FLOAT, INT, NARROW, row_dtype

WORD = np.dtype("u8")
#: States of a job. HELD: its priority is 0. COMPLETING: it ended, and its nodes are being cleaned up. SUSPENDED: it has
#: its nodes and memory, and stands still.
FUTURE, PENDING, HELD, RUNNING, COMPLETING, GONE, SUSPENDED = range(7)
#: States of a node: it takes jobs; it takes no new ones; its jobs have ended, too.
UP, DRAINED, DOWN = range(3)
#: Seconds from the requeue of a job until it may start: the life of its credential, and one.
REQUEUE_S = 121
#: Which jobs a job may preempt (`rules.preempts`): none, those of lower tiers, those of a QOS that its own QOS lists.
NOT_AT_ALL, BY_TIER, BY_QOS = range(3)
#: What becomes of a job that is killed or preempted; STAYS: it is neither, or cannot be preempted.
STAYS, IS_CANCELLED, IS_REQUEUED, IS_SUSPENDED = range(4)
#: By how much a node that sleeps is heavier, so that it comes after all others.
ASLEEP_WEIGHT = 1 << 40
#: The most blocks of running jobs, and the most kinds of nodes.
MOST_BLOCKS, MOST_KINDS = 1024, 8
#: Times, in seconds, whose decay is kept: about as long as PriorityCalcPeriod.
MOST_DECAYS = 1024
#: The most running jobs that are still to be added to the others, and the most sizes of tasks with a list of nodes.
MOST_ADDED, MOST_SIZES, MOST_BOUNDS = 64, 8, 64
#: Rows of the table `views`.
NOW, LATER = 0, 1
#: A question about a node as if it had no jobs.
EMPTY = 2
#: Who started a job.
BY_MAIN, BY_BACKFILL, BY_HISTORY = range(3)
#: Answers to the question whether a job can start.
STARTED, BUSY, LIMITED, RESERVED, UNAVAILABLE = range(5)
#: Kinds of events of the agenda: `what` is a job, a node or a reservation.
SUBMIT, RELEASE, CANCEL, NODE_STATE, RESERVATION_EDGE = range(5)
#: Kinds of dependencies.
AFTER_ANY, AFTER_OK, AFTER_NOT_OK, AFTER_START = range(4)
#: Flags of PriorityFlags, bits of `rules.priority_flags`; the others are in the tables of what they scale.
(
    FAIR_TREE, SMALL_RELATIVE_TO_TIME, FAVOR_SMALL, ACCRUE_ALWAYS, NO_NORMAL_TRES, INCR_ONLY, MAX_TRES, DEPTH_OBLIVIOUS,
    MAX_TRES_GRES,
) = (1, 2, 4, 8, 16, 32, 64, 128, 256)  # fmt: skip
#: Columns of amounts of trackable resources.
CPU, MEM, NODE_COUNT, GPU, BILLING = range(5)
TRES_COUNT = 5
#: Further columns: of what a counter holds, numbers of jobs; of what was spent, the run time.
JOBS, SUBMITTED, ACCRUING, WALL = 5, 6, 7, 5
NO_LIMIT = -1.0
#: Rows of `node_sets`, kept up to date: nodes that take jobs; nodes on which nothing is cleaned up; nodes with free
#: cores; nodes without jobs; the last two in the later view.
TAKING, CLEAN, FREE, IDLE, FREE_LATER, IDLE_LATER = range(6)
NODE_SETS = 6
#: Rows of `scratch`, sets of nodes: those that a pass may use; the candidates of a job; the same before the plan is
#: looked at; the nodes that were chosen; those that functions use for themselves.
AVAILABLE, CANDIDATES, WHOLE, CHOSEN, OWN, MORE, ALIKE, BELOW = range(8)
SCRATCH_ROWS = 8

#: What the site's configuration says; see `simulate.slurm.site`.
RULES = row_dtype(
    "weight_age weight_assoc weight_fair_share weight_size weight_part weight_qos max_age half_life dampening "
    "epilog_least epilog_most pass_least pass_most test_s bf_yield_interval bf_yield_sleep",
    "sched_interval sched_min_interval batch_sched_delay deferred backfills bf_interval bf_max_time "
    "default_queue_depth partition_job_depth sched_max_job_start assoc_limit_stop "
    "bf_window bf_resolution bf_max_job_test bf_max_job_start bf_max_job_user bf_max_job_part bf_max_job_user_part "
    "bf_max_job_assoc bf_max_job_array_resv bf_job_part_count_reserve bf_min_age_reserve bf_min_prio_reserve "
    "bf_one_resv_per_job bf_window_linear bf_busy_nodes bf_node_space_size bf_continue most_records limits_accrual "
    "multifactor priority_flags period enforces_limits enforces_qos safe complete_wait kill_wait over_time_limit "
    "resv_over_run counts_memory least_loaded threads cpus_total nodes_total pack_serial weighs_tres "
    "restarts preempts preempt_pause preempt_exempt preempt_youngest_first preempt_strict_order "
    "preempt_reorder_count soft_time_min closes_late searches_from_start waits_for_own_nodes "
    "short_jobs_apart drops_jobs kills_dependents suspend_time suspend_timeout resume_timeout suspend_rate resume_rate "
    "placement",
)
#: A node: its size and state; `jobs`: jobs on it; `completing`: jobs that have ended on it and are not cleaned up;
#: `touched`: the question for which its later view was made.
NODE = row_dtype("", "cpus cores threads memory weight gpus state completing touched")
#: Whether a node sleeps. `stays_on`: 1 if it never does; `idle_since`: when its last job ended; `asleep`: 1 if it does,
#: since `slept_at`; `ready_at`: when it has booted, 0 if it does not boot.
SLEEP = row_dtype("", "stays_on idle_since asleep slept_at ready_at")
#: A switch: its level, 0 for a leaf, and the one above, itself if none is. Of the choice at hand: `free`: nodes below
#: it that the job could still have; `used`: 1 if it has some; `distance`: links to all leaf switches in use together.
SWITCH = row_dtype("", "level above free used distance")
#: What is free on a node in one view, and how many jobs have a part of it.
VIEW = np.dtype([("cores", INT), ("memory", INT), ("gpus", INT), ("jobs", INT)], align=True)
#: A partition; `closed`, `emptied`, `passing`: the pass in which a job of it was refused, in which its nodes were taken
#: from others, and after which a job waits in it that is not held; `tested`, `reserves`: records tested in this pass,
#: and reservations made in it; `taken`: nodes of it in the present reservation; `cpu_row`: its row of `part_cores`, -1:
#: its jobs may have all CPUs of a node.
PARTITION = row_dtype(
    "factor",
    "tier max_time min_nodes max_nodes max_cpus_per_node exclusive least_loaded up qos preempt_mode grace cpus nodes "
    "over_time cpu_row closed emptied passing tested tested_pass reserves reserves_pass taken reach reach_first "
    "reach_last reach_nodes",
)
#: A job. `limit`: minutes; `run`: seconds that it runs if nothing stops it; `until`: its start and its limit; `finish`:
#: when it ends; `clean`: when its nodes were clean in the record, 0 outside one;
#: `accrue`: since when its age counts, 0 before; `part0`, `parts`: its rows in `job_parts`; `part`: the
#: partition that it runs in; `counted_cpus`: CPUs of its last test, 0 before; `refused`, `refused_part`: of the first
#: task of an array, the pass and partition in which a task was refused; `running_tasks`: of the first task of an array;
#: `successful`: whether afterok counts it as met; `fate`: what becomes of it at its end, STAYS if it is not killed;
#: `yields`: 1 once it was preempted; `preempted_at`, `preempted_pass`: when it last preempted jobs, 0 if never;
#: `held_until`: when its hold by something else than Slurm ends, 0: it is not held, or was released;
#: `granted`: the limit with which it starts, -1: `limit`;
#: `accruing`: whether its age counts and it is counted for that;
#: `limited`: whether a limit stopped it when a main pass tested it last, or at its submission;
#: `never`: 1 once a job ended so that this one's dependency on it can no longer be met;
#: `possible`: 1 + the row of `job_parts` in which it could run if no other job did, 0 if none is known.
JOB = row_dtype(
    "run finish clean billing",
    "submit begin accrue begin_at deadline start until expected preempted_at held_until memory reservation part",
    "limit time_min min_nodes max_nodes want_nodes min_cpus tasks cpus_per_task tasks_per_node gpus nice user account "
    "assoc qos part0 parts array array_limit after0 afters unmet allowed required piece0 pieces counted_cpus cpus "
    "refused refused_part running_tasks restarts log preempted_pass resv_count resv_pass licence0 licences magnet0 "
    "magnets granted possible",
    "memory_per_cpu exclusive contiguous requeued successful state started_by fate yields submitted listed never "
    "limited accruing",
)
#: How a job stands still: `rest`: seconds that it has still to run, `since`: when it was suspended.
PAUSE = row_dtype("rest", "since")
#: The largest number of a field of 32 bits.
LARGEST = 2**31 - 1
#: What a job has, or had, on a node.
PIECE = np.dtype([("node", np.int32), ("cores", np.int32), ("cpus", np.int32), ("memory", np.int32)])
#: A record of the queue: a job, and a row of `job_parts`. While the queue is sorted: `rank`, least first, before
#: `priority`, largest first, before `submit`.
RECORD = row_dtype("", "rank priority submit", "job slot")
#: A record of a job that was handed over; `group`: those of one group exchange their places, see `held_order`.
TURN = row_dtype("", "job slot group")
#: A slice of the plan of a backfill pass; its nodes are row `nodes` of `slice_nodes`; `frees`: 1 if the next slice may
#: have a node that this one lacks; `joins`: 1 if it may have the same nodes.
SLICE = row_dtype("", "begin end nodes frees joins")
#: A record that was put off in a backfill pass, and the number of starts before it.
PUT_OFF = row_dtype("", "record starts")
#: A time before which so many nodes of a partition are not free for so many minutes, see `place_bounds`.
BOUND = row_dtype("", "part nodes minutes time")
#: How many nodes a backfill pass may start a job on; `passes`, `starts`: those of `count` at that time.
STARTABLE = row_dtype("", "nodes passes starts")
#: The latest end of a running job (0 in `running_ends`), its `until`, its pieces, and its first node, -1: it has none.
END = row_dtype("", "time until", "piece0 pieces node")
#: Nodes that get room for a task of so many CPUs, `number` so far: after `ended` of the ends of note `notes`.
ROOMY = row_dtype("", "cpus notes ended number")
#: A run of consecutive nodes that a job could use; `used`: it was tried. Nodes that the job names are taken before and
#: count nothing; `named`: the first of them, -1 if it has none.
RUN = row_dtype("", "first last cpus nodes weight used named")
#: A dependent: a job, how it depends, and seconds after the start, or the end, until it is eligible.
AFTER = row_dtype("", "job kind delay")
#: An association. `usage`: billing seconds; `share`: of its siblings' shares, `norm_share`: of the cluster's; `level`:
#: its level fair share; `effective`: its effective usage; `factor`: of fair share; `priority`: by the largest one.
#: `fair_parent`: the account below which it competes (accounts with Fairshare=parent pass it on), -1 for root; `child0`
#: and `children`: the rows of `siblings` that compete below it; `place`: its row there.
ASSOCIATION = row_dtype(
    "usage share norm_share level factor priority effective",
    "parent fair_parent is_user shares_parent child0 children place",
)
#: A QOS; `factor`: its priority by the largest one; `exempt`: seconds that a run is safe from preemption, -1: as in
#: `rules`; `within`: a job preempts those of lower priority in the same QOS; `least_priority`: below it, a job neither
#: closes its partition nor has a reservation, 0: as in `rules`.
QOS = row_dtype(
    "usage factor usage_factor", "priority no_reserve no_decay preempt_mode grace exempt within least_priority"
)
#: A reservation, one instance; `next`: the next instance of the same name, -1 if none; `created`: jobs see it from then
#: on; `began`: 1 if a pass was asked for; `closed`: the pass in which a job of it was refused.
RESERVATION = row_dtype("", "start end created maint overlap flex next began closed")
#: A limit: `kind` as in `job_limits`; its counter and column; `bound`: an amount, or minutes of it.
LIMIT = row_dtype("bound", "kind counter column")
#: Jobs that the same limits bind. Rows of `limits`: `limits0` to `after0` are tested before nodes are picked, to
#: `limits1` after that, to `submit1` at the submission, to `accrual1` before its age
#: counts (one at most). `counters0`, `counters1`: rows of `group_counters`.
#: `usage_factor`: of the QOS; `time_factor`: the same where it multiplies the minutes of requests, else 1. Known while
#: `count.limit_changes` is `change`: `stopped`: 1 if a limit stops each of them whatever it asks for; `most_minutes`,
#: `most_cpus`, `most_gpus`: what one may ask for at most, by the limits on nothing but that.
LIMIT_GROUP = row_dtype(
    "usage_factor time_factor most_minutes most_cpus most_gpus",
    "limits0 after0 limits1 submit1 accrual1 counters0 counters1 change stopped",
)
#: A counter of jobs and resources; `nodes`: its row of `counted_nodes`, -1 if no limit counts nodes; `decays`: its
#: usage decays.
COUNTER = row_dtype("", "nodes decays")
LICENCE = row_dtype("", "licence number")
COUNTED = NARROW
#: A start in the result; `end` is -1 while the job runs.
START = row_dtype("priority", "start end", "job part piece0 pieces cpus", "by")
EVENT = row_dtype("", "time", "what state", "kind")
#: A run that really happened; its nodes are a row of `allowed_nodes`; `clean`: when they were clean again.
HISTORY = row_dtype("finish clean", "job part start nodes by cpus")

#: Counters and clocks; times that are not whole are in CLOCK. `changed`: when something changed last; `armed`: the
#: backfill thread waits for a change; `wanted`: a main pass was asked for; `passes`: number of the present pass;
#: `most_tests`: records that the present backfill pass tests at most;
#: `owed`: 1 if a main pass waits for sched_min_interval, 2 if it is a full one; `suspended`: suspended jobs; of CLOCK,
#: `main_ended`: the last main pass; `next_suspend`, `next_resume`: when another node may go to sleep, or boot;
#: `asleep_s`: seconds for which nodes slept that have woken since;
#: `put_off_until`: the least horizon of the records that are put off, see `put_off`;
#: `history`: 1 if starts come from the record; `full`: 1 if there are too few rows for the next pass.
COUNT = row_dtype(
    "",
    "jobs next_event running pieces starts waiting records slices free_rows used_rows chosen_words wanted "
    "last_full last_sched changed armed backfill_started last_period ends epilogs chosen chosen_cpus test_start "
    "passes random history limit_phase "
    "tests reservation_end stale in_pass basic next_reset listed usage_aged plans question "
    "ends_noted noted block_jobs block_shift noted_blocks shared_nodes try_later reached delayed full "
    "ended_reservations owed suspended turns puts_off put_off put_off_until horizon reach tight added gaps first_gap "
    "notes later_notes later_question later_ended oldest_roomy bounds is_sure bound looks "
    "hopes hopes_pass hopes_starts planned limit_changes most_tests",
)
CLOCK = row_dtype("now tick_phase next_backfill next_period main_ended next_suspend next_resume asleep_s", "")


class Slurm(Block):
    """State of a site under Slurm's rules."""

    layout: ClassVar = {
        "rules": (RULES, 0),
        "nodes": (NODE, 1),
        "kinds": (INT, 1),  # the first node of each kind; none if there are too many
        "kind_nodes": (WORD, 2),  # nodes of each kind: alike in size and weight
        "switches": (SWITCH, 1),  # of topology/tree; none: they do not matter
        "switch_nodes": (WORD, 2),  # [switches, words] nodes below each
        "sleeps": (SLEEP, 1),  # of each node
        "views": (VIEW, 2),  # [2, nodes]
        "partitions": (PARTITION, 1),
        "part_cores": (
            INT,
            2,
        ),  # [2 * rows, nodes] cores that jobs of a partition have; then the same in the later view
        "partition_nodes": (WORD, 2),  # [partitions, words]
        "allowed_nodes": (WORD, 2),  # sets that jobs name by features and lists; -1: all
        "jobs": (JOB, 1),
        "pauses": (PAUSE, 1),  # of each job
        "job_parts": (INT, 1),  # partitions of each job, by tier
        "part_allowed": (FLAG, 1),  # of each: whether the job keeps the partition's limits, see `job_limits.ALLOWED`
        "part_denied": (FLAG, 1),  # of each: 1 if sbatch rejects the job
        "part_group": (NARROW, 1),  # of each: its row of `limit_groups`
        "part_least_nodes": (NARROW, 1),  # of each: nodes that the job gets at least, and at most; -1: any number
        "part_most_nodes": (NARROW, 1),
        "part_priority": (FLOAT, 1),  # of each: the job's priority in it
        "after": (AFTER, 1),
        "pieces": (PIECE, 1),
        "starts": (START, 1),
        "running": (INT, 1),  # running jobs by `until`, see `running_order`
        "added_running": (INT, 1),  # those that are still to be added to it, in the same order
        "running_ends": (END, 1),  # of each of them
        "latest_ends": (END, 1),  # of running jobs, see `node_ends`
        "block_nodes": (WORD, 2),  # nodes of each block of them
        "wide_nodes": (WORD, 2),  # nodes of several blocks
        "ended_nodes": (WORD, 2),  # nodes of all blocks up to each; `count.noted_blocks` rows
        "roomy": (ROOMY, 1),  # see `later_room`
        "roomy_nodes": (NARROW, 2),  # [rows, nodes] in the order in which they get room
        "roomy_ends": (NARROW, 2),  # [rows, nodes] after how many ends each of these has it
        "roomy_cpus": (NARROW, 2),  # [rows, nodes] free CPUs of each node after `ended` ends
        "waiting": (INT, 1),  # jobs in the queue, in no order
        "waiting_places": (NARROW, 1),  # [jobs] where each of them is there
        "planned": (INT, 1),  # jobs that have an expected start since the last backfill pass
        "records": (RECORD, 1),  # the queue, in order unless `count.stale`
        "merged": (RECORD, 1),  # scratch of its sort, and the order outside a pass while places are exchanged
        "turn_records": (TURN, 1),  # records of jobs that were handed over, by group and their order in it
        "part_turn": (INT, 1),  # of each row of `job_parts`: its row there, or -1; empty without ordered jobs
        "turns": (INT, 1),  # rows there of jobs in the queue, ascending
        "next_turn": (INT, 1),  # [groups] scratch: where in `turns` the next one of each group is
        "ends_at": (FLOAT, 1),  # heap of ends
        "ends_job": (INT, 1),
        "ends_place": (INT, 1),  # [jobs] where each job is in the heap
        "epilogs_at": (FLOAT, 1),
        "epilogs_job": (INT, 1),
        "hopes": (INT, 1),  # records that may start, see `start_hopes`
        "startable": (STARTABLE, 2),  # [partitions, 2]: of nodes with free cores, and of those without jobs
        "startable_nodes": (WORD, 2),  # [2 * partitions, words] those on which a backfill pass may start a job now
        "slices": (SLICE, 1),
        "slice_nodes": (WORD, 2),
        "open_nodes": (WORD, 2),  # of each slice, in the same row: nodes without a reservation up to its end
        "room": (INT, 2),  # [partitions, rows] see `plan_slices`
        "put_off": (PUT_OFF, 1),  # see `put_off`
        "reach": (INT, 2),  # [partitions, slices] the same
        "bounds": (BOUND, 1),  # see `place_bounds`
        "free_rows": (INT, 1),  # rows of `slice_nodes` that slices have given back
        "node_sets": (WORD, 2),
        "scratch": (WORD, 2),
        "usable_cpus": (INT, 1),  # [nodes] CPUs that the job at hand could have
        "taken_cpus": (INT, 1),  # [nodes] CPUs that were chosen for it
        "chosen": (INT, 1),  # nodes that were chosen, in the order of choice
        "chosen_words": (INT, 1),  # words of a set of nodes that have some of them
        "runs": (RUN, 1),
        "run_sizes": (INT, 1),  # [runs] nodes of each run of nodes that are alike, 0 once they are chosen
        "associations": (ASSOCIATION, 1),
        "job_list": (INT, 1),  # submitted jobs that have not left, in the order of submission
        "siblings": (INT, 1),  # associations, those below one account next to each other, best level first
        "sibling_space": (INT, 1),  # scratch of their sort
        "qos": (QOS, 1),
        "decays": (FLOAT, 1),  # factors by which usage falls in so many seconds; 0: not calculated yet
        "usage_resets": (FLOAT, 1),  # times at which all usage becomes 0, ascending
        "tres_weights": (FLOAT, 1),  # [TRES_COUNT] of PriorityWeightTRES
        "partition_tres": (FLOAT, 2),  # [partitions, TRES_COUNT] resources of each partition
        "billing_weights": (FLOAT, 2),  # [partitions, TRES_COUNT]; -1 in its first column: billing is the CPUs
        "limit_groups": (LIMIT_GROUP, 1),
        "preemptible": (INT, 2),  # [QOS, QOS] 1: jobs of the first preempt jobs of the second
        "victims": (INT, 1),  # running jobs that the job at hand can preempt, in the order of choice
        "victim_keys": (INT, 1),  # [jobs] their order
        "staying": (INT, 1),  # running jobs that it cannot preempt
        "delayed": (INT, 1),  # jobs that sbatch rejects while too many are submitted
        "limits": (LIMIT, 1),
        "counters": (COUNTER, 1),
        "group_counters": (INT, 1),
        "held": (INT, 2),  # [counters, TRES, JOBS, SUBMITTED and ACCRUING]
        "promised": (INT, 2),  # [counters, TRES] amounts times seconds that running jobs may still take
        "spent": (FLOAT, 2),  # [counters, TRES and WALL] amounts times seconds, decayed
        "counted_nodes": (COUNTED, 2),  # [rows, nodes] jobs of a counter on each node
        "promised_seconds": (INT, 1),  # [jobs] its part of `promised`
        "usage_until": (INT, 1),  # [jobs] until when its usage is in `spent`
        "request": (INT, 1),  # [TRES] scratch: of the job at hand
        "job_licences": (LICENCE, 1),
        "free_licences": (INT, 1),
        "reservations": (RESERVATION, 1),
        "reservation_nodes": (WORD, 2),
        "reservation_stops": (INT, 2),  # [reservations, partitions] 1: a job of the partition waits for its end
        "magnets": (INT, 1),  # magnetic reservations that jobs may use; see `jobs.magnet0`
        "user_counts": (INT, 1),  # records of each user in a backfill pass
        "user_part_counts": (INT, 2),  # [users, partitions] the same in each partition
        "association_counts": (INT, 1),  # the same of each association
        "agenda": (EVENT, 1),  # what happens by itself, by time
        "history": (HISTORY, 1),
        "count": (COUNT, 0),
        "clock": (CLOCK, 0),
    }
