"""Layout of the tables of the fluid simulation; one row per entity, of fixed size for the life of a simulation.

Terms: a *class* is a distinct job shape (profile, memory, nodes); a *strand* is one thread group of one job (on one
socket if the model works per socket), the unit of progress; a *part* is a strand on one node; a *domain* is a set of
nodes that share a memory channel (usually one node).
Units: seconds, bytes, bytes/s, watts, joules, threads.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..block import Block, int64

NONE, EQUAL_SHARE, MAX_MIN, PIECEWISE = 0, 1, 2, 3
# Codes passed between kernels are NumPy scalars: numba would compile a copy of the callee for each plain int.
LOADAVG, SLF, LET, MOM, FORCED, EASY, STRICT, MEASURE = (int64(code) for code in range(8))
#: Rules for jobs of independent tasks, see `task_rules`: two choose one machine, the others a node for each task.
RANDOM_CORE, HIGH_GFLOPS, HIGH_CORE, HIGH_MEM, HIGH_MEM_BW, LOW_POWER, ORDERED_MACHINE, RANDOM_MACHINE = (
    int64(code) for code in range(8, 16)
)
PEAK_GFLOPS, PEAK_POWER = (int64(code) for code in range(16, 18))
ZERO, ONE, NO_INDEX = int64(0), int64(1), int64(-1)
WAITING, READY, RUNNING, DONE = 0, 1, 2, 3

FLOAT, INT, NARROW, FLAG = (np.dtype(code) for code in ("f8", "i8", "i4", "i1"))


def row_dtype(floats: str, ints: str, narrow: str = "", flags: str = "") -> np.dtype:
    """Return the type of a row with these fields, aligned so that compiled code loads whole words.

    Args:
        floats: names of the fields with reals.
        ints: of those with whole numbers.
        narrow: of those with whole numbers of 32 bits.
        flags: of those with whole numbers of 8 bits.
    """
    kinds = ((floats, FLOAT), (ints, INT), (narrow, NARROW), (flags, FLAG))
    return np.dtype([(name, kind) for names, kind in kinds for name in names.split()], align=True)


def extended(row: np.dtype, floats: Iterable[str] = (), ints: Iterable[str] = ()) -> np.dtype:
    """Return the type of a row with further fields."""
    fields = [(name, row[name]) for name in row.names or ()]
    return np.dtype(fields + [(name, FLOAT) for name in floats] + [(name, INT) for name in ints], align=True)


TYPE = row_dtype(
    "cores speed bandwidth remote queueing b c da db dc dd n_max d_weight watts_idle watts_base watts_slope",
    "sockets contention all_threads per_job inflating",
)
#: `first`, `last`: the nodes that share its memory capacity; `core0`: its first entry in `taken`. Only tasks use cores
#: and machines of several nodes.
NODE = row_dtype(
    "limit cap memory alloc used live load load_time busy energy energy_time",
    "type domain head tail heap_pos ties touched end_exact first last core0",
)
DOMAIN = row_dtype("", "start count mark")
CLASS = row_dtype("threads memory told", "nodes group_start group_count spin name places")
GROUP = row_dtype("count", "phase_start phase_count")
#: `alone`: seconds that the phase takes on a node without other jobs; filled by `forecast.isolated` when asked for.
PHASE = row_dtype("work utilisation bandwidth alone", "")
#: `base`: added to the key when the job becomes ready.
JOB = row_dtype(
    "key start finish energy alt_cost progress score scale submit walltime asked base",
    "cls state blockers succ_start succ_count queue strand0 part0 place0 left wait_for waiter next_waiter alt killed "
    "listed",
)
#: From a job to its successor: seconds from its end, and 1 if it does not matter how it ends.
EDGE = row_dtype("delay", "any_end")
#: `until`: when its job reaches its walltime; `last`: its end, once it has ended.
STRAND = row_dtype("rem rate last finish until", "job group phase part0 parts type local mark")
PART = row_dtype("threads core", "node strand next prev socket")
QUEUE = row_dtype("", "start length")
#: Smallest size and shortest walltime of the waiting jobs below a node of a tree.
LEAST = row_dtype("wall", "size")
END = row_dtype("until", "job")
#: Rows of a block of `ends`; a block in use has at least one.
END_ROWS = 64
BLOCK = row_dtype("", "first size")
#: A node that has what the head of the queue needs, since when.
CANDIDATE = row_dtype("time", "node")
#: Cores and bytes that are free on a node at the reservation, less what is held for the head; `enough`: the time from
#: which on it has what the head needs, inf: it is no candidate; `changed`: 1 if jobs started or ended there since the
#: reservation was brought up to date; `seen`, `hold`: the last search, and the last choice of nodes, that met it.
#: `rank`: its place in `ranked`.
LATER = row_dtype("cores memory enough", "held changed seen hold rank")
#: `arrived`: jobs of `arrivals` that were submitted; `instants`: times at which something happened; `finished`: jobs
#: that have ended; `ended`: those of whose end the last pass knew; `head`: rank of the first waiting job; `newest`: the
#: lowest rank of the jobs that no pass has examined; `reserved_for`: rank of the head with a reservation, plus 1;
#: `capped`: under a power cap the most threads that may run, plus 1; 0: there is no cap;
#: `passes`: those that examined all jobs; `sweeps`, `holds`: how often a reservation was found, and its nodes chosen;
#: `postponed`: submissions that are repeated later; `near`: 1 if forecasts look at the start nodes alone;
#: `tasks`: 1 if each node of a job runs a task that ends by itself; `drawn`: 1 if the next job is drawn at random;
#: `keyed`: 1 if the keys of the jobs are their order from the beginning; `decided`: `instants` at the last pass for
#: tasks;
#: `most`: forecasts after which a pass pauses, 0: it does not; the others: entries of the tables of that name.
COUNT = row_dtype(
    "",
    "evaluations stamp running_jobs powered split simple explain bounded arrived instants "
    "beliefs finished ended free_cores reserved_for passes waiting head newest blocks candidates held changed sweeps "
    "holds unlisted capped postponed near most tasks drawn keyed decided",
)
#: `share`: the largest factor by which jobs may slow each other down; `first_end`: no running job is expected to end
#: before.
CLOCK = row_dtype("now share reserved first_end", "")

#: State of the stream of random draws.
RANDOM = np.dtype([("state", np.uint64)])

#: Results of operations, see `entry.call`. `exact`, `found`: 1 or 0; `wrong`: a job that cannot run as mapped.
ANSWER = row_dtype("makespan joules seconds", "status wrong exact found")
#: What would happen if a job started now, see `forecast.what_if`.
EFFECT = row_dtype("end slowdown factor delay crowding", "alone")
#: How many entries the lists `touched` and `started` have.
LISTED = row_dtype("", "touched started")

#: Columns of the forecast `_simple`, whose loops over them become vector code; see LOCAL_PART. `own`: 1 for the
#: candidate; `wall`: seconds for a second of work; `left`: bytes to move.
SIMPLE = ("k", "u", "b", "rem", "own", "wall", "busy", "left")

# Scratch of one component (nodes tied to each other) while it is solved or simulated ahead.
LOCAL_DOMAIN = row_dtype("bandwidth remote", "first last type")
LOCAL_NODE = row_dtype("cores queueing", "id type per_job first last")
LOCAL_STRAND = row_dtype("rem rate low second", "id group phase candidate type low_part dead")
#: A job under per-job sharing: its first part, and the part after its last.
SEGMENT = row_dtype("", "first last")
LOCAL_PART = row_dtype("k u b m wake cap offer core scale inflation", "strand job node socket spin id name lead")


class World(Block):
    """All tables of a simulation.

    A job that is submitted later, at `submit`, has one blocker more until then, and is in `arrivals`. It is killed
    `walltime` seconds after its start, and expected to end `asked` seconds after it. `told`: the run time of a class of
    one phase that forecasts expect, as a factor on the true one; only if `count.beliefs` is 1.
    """

    layout = {
        "types": (TYPE, 1),
        "nodes": (NODE, 1),
        "domains": (DOMAIN, 1),
        "domain_nodes": (INT, 1),
        "classes": (CLASS, 1),
        "groups": (GROUP, 1),
        "phases": (PHASE, 1),
        "jobs": (JOB, 1),
        "successors": (INT, 1),
        "edges": (EDGE, 1),  # of each of these; empty: no delay, and each has to end by itself
        "arrivals": (INT, 1),  # the jobs that are submitted later, by time
        "strands": (STRAND, 1),
        "parts": (PART, 1),
        "placed": (INT, 1),
        "ended": (INT, 1),  # [jobs]: the jobs that have ended, in the order of their ends
        "queues": (QUEUE, 1),
        "queued": (INT, 1),  # the jobs of each queue, a heap, and their keys
        "queued_key": (FLOAT, 1),
        "heap": (INT, 1),  # the nodes by their next event, and its time
        "heap_time": (FLOAT, 1),
        "versions": (INT, 1),  # [nodes]: incremented at every change of the node
        "bounds": (FLOAT, 1),  # [nodes]: time before which the node is not empty without arrivals; -inf: not known
        "clock": (CLOCK, 0),
        "count": (COUNT, 0),
        "random": (RANDOM, 0),
        "allowed": (INT, 2),  # [lists, nodes]: 1 if jobs of a class with this list as `places` may run there
        "isolated": (FLOAT, 2),  # seconds [classes, types]
        "inflation": (FLOAT, 2),  # factor on a job's core time [types * names, names of the co-runner]
        # Backfilling; empty under other policies, see `backfilling`. `queued` then has the job of each rank.
        "ranked": (INT, 1),  # nodes, the fastest first, then by number
        "grades": (INT, 1),  # of each of these: equal for equally fast nodes, higher for slower ones
        "tree": (INT, 1),  # free cores: maxima of pairs; the upper half are the ranked nodes, and 0 for none
        "late_tree": (INT, 1),  # the same for jobs that end after the reservation
        "least": (LEAST, 1),  # waiting jobs by rank, see `queue.waiting`
        "levels": (INT, 1),
        "ends": (END, 1),  # running jobs by expected ends, see `expected_ends`
        "blocks": (BLOCK, 1),
        "unlisted": (INT, 1),  # [jobs]: those that have started since `ends` was brought up to date
        "later": (LATER, 1),  # of each node
        "candidates": (CANDIDATE, 1),  # by time; the second half is working space
        "candidate_bits": (np.dtype("u8"), 1),  # the same, one bit per ranked node
        "changed": (INT, 1),  # nodes
        "held": (INT, 1),  # the nodes held for the head; the second half is working space
        # Jobs of independent tasks; empty for others.
        "taken": (INT, 1),  # [cores]: 1 if a job has the core
        "task_core": (INT, 1),  # of each entry of `placed`
    }


_SPECIAL = (
    "ranked grades tree late_tree least levels ends blocks unlisted later candidates candidate_bits changed held"
    " taken task_core"
)
#: Shapes of the tables of backfilling, and of those of tasks, under other policies.
NO_SPECIAL = dict.fromkeys(_SPECIAL.split(), (0,))

#: How a run ended, see `fluid_loop.simulate`.
FINISHED, STUCK, CUT, PAUSED = range(4)
#: Seconds that a job is expected to go on for when it has run for longer than was expected.
OVERDUE_S = 1.0

# Operations of `entry.call`.
RUN, EVALUATE, ISOLATED, FORECAST, CHOOSE, SETTLE, PLACE, ADVANCE, RERATE, REPLAY, WHAT_IF = range(11)
STEP, DECIDE, START, WITHDRAW = range(11, 15)


class Scratch(Block):
    """Working space; only the score cache outlives a kernel call (node versions keep it valid)."""

    layout = {
        "domains": (LOCAL_DOMAIN, 1),
        "nodes": (LOCAL_NODE, 1),
        "strands": (LOCAL_STRAND, 1),
        "parts": (LOCAL_PART, 1),
        "segments": (SEGMENT, 1),
        "wanted": (FLOAT, 1),  # cores that each segment wants
        "sockets": (FLOAT, 1),  # threads on each socket
        **dict.fromkeys(SIMPLE, (FLOAT, 1)),
        "numbers": (INT, 1),  # list of domains
        "chosen": (INT, 1),  # [nodes + 2]: nodes chosen for a job, then a list of one node
        "score": (FLOAT, 2),  # [rows, nodes]: cached scores, seconds from now
        "score_version": (INT, 2),  # [rows, nodes]: node version for which they are valid
        "score_exact": (INT, 2),  # [rows, nodes]: 1 exact, 0 a lower bound
        "row_class": (INT, 1),
        "row_time": (FLOAT, 1),
        "listed": (LISTED, 0),
        "touched": (INT, 1),  # [nodes]: nodes touched at this instant
        "values": (FLOAT, 1),  # [nodes]: scores while several nodes are chosen
        # [queues]: heap of the queues whose first job may still start at this instant, and the keys of these jobs
        "heads": (INT, 1),
        "head_key": (FLOAT, 1),
        "head_place": (INT, 1),
        "started": (INT, 1),  # [jobs]: the jobs that the last pass started
        # Arguments and results of operations, see `entry`:
        "keys": (FLOAT, 1),  # [jobs]
        "wait_for": (INT, 1),  # [jobs]
        "caps": (FLOAT, 1),  # [nodes]
        "places": (INT, 1),  # [slots of all jobs, at least the nodes]
        "answer": (ANSWER, 0),
        "effect": (EFFECT, 0),
    }
