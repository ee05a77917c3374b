"""Cases of settings of slurm.conf: the real Slurm decides one way with a setting, and another way without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rule_case import CORES, Case
from rule_case import Submission as Job

#: No backfill passes; and no full main pass while the cases are played.
NO_BACKFILL = "bf_interval=-1"
NEVER_FULL = f"{NO_BACKFILL} sched_interval=100000"
#: No backfill passes, and main passes are full; or they follow the end of a job, too.
ONLY_FULL = f"{NO_BACKFILL} batch_sched_delay=100000"
AT_ONCE = f"{ONLY_FULL} Epilog=/bin/true"
#: Settings of several cases that happen next to each other: each decides one of them, and does not touch the others.
RESERVES = "bf_window=10 bf_max_job_array_resv=1 bf_one_resv_per_job bf_min_prio_reserve=980000"
PARTITION = "bf_max_job_user_part=2 bf_job_part_count_reserve=1 bf_window_linear=60 bf_busy_nodes"
ASSOCIATION = "bf_max_job_assoc=2 bf_resolution=1800"
WEIGHTS = "PriorityFavorSmall=YES PriorityWeightTRES=Mem=1000000"
BRIEF = "PriorityFlags=SMALL_RELATIVE_TO_TIME,ACCRUE_ALWAYS,MAX_TRES bf_min_age_reserve=100000"
#: Three seconds of the true clock, a minute of the fast one.
LONG_EPILOG = "Epilog={path}/etc/epilog.sh"
#: A backfill pass sleeps for a second after each test.
SLEEPS = "bf_yield_interval=1 bf_yield_sleep=1000000"
#: Settings that several cases share.
SHARED = frozenset((RESERVES, PARTITION, ASSOCIATION, WEIGHTS, BRIEF))


@dataclass(frozen=True)
class Setting:
    """A setting, and a case that it decides.

    Settings are words with blanks between them: keys of slurm.conf, which begin with a capital letter, and words of
    SchedulerParameters.

    Args:
        case: its jobs.
        words: the settings with it.
        orders: pairs of jobs. With the setting or without it, the first starts a while before the second one, and in the
            other record it does not; for one pair at least.
        before: the settings without it.
        has_steps: whether the twin is asked at each start of the record. It does not say which main passes were full.
        epilog_s: for how long a node is cleaned up after a job, least and most seconds; None: as the twin has it.
    """

    case: Case
    words: str
    orders: Sequence[tuple[str, str]]
    before: str = ""
    has_steps: bool = True
    epilog_s: tuple[float, float] | None = None


def backfilled(*jobs: Job, limit: int = 30, until: int = 150, nodes: int = 1, tier: str = "") -> tuple[Job, ...]:
    """Return jobs behind gates that leave two of four cores of each node, until `head` may have three of one of them.

    Args:
        jobs: further jobs.
        limit: of the gate that `head` waits for, minutes.
        until: when it ends, seconds after the gates open.
        nodes: number of nodes.
        tier: more options of the gates.
    """
    numbers = range(1, nodes + 1)
    return (
        *(Job(f"long_gate{k}", f"-w {{n{k}}} -n2 -t{limit} {tier}", f"+{until}", user="root") for k in numbers),
        *(Job(f"gate{k}", f"-w {{n{k}}} -n2 -t60 {tier}", "+10", user="root") for k in numbers),
        *jobs,
    )


def chain(name: str) -> Case:
    """Return a case of six short jobs one after another on a node, and of a job on the other node after 150 seconds."""
    return Case(
        name,
        nodes=(CORES, CORES),
        partitions={"": "Nodes={n1}", "other": "Nodes={n2}"},
        jobs=(
            Job("gate1", "-n4 -t30", "+10"),
            Job("gate2", f"-p {name}_other -n4 -t30", "+150"),
            *(Job(f"link{k}", f"-n4 -t5 --nice={k}", "5") for k in range(1, 7)),
            Job("mark", f"-p {name}_other -n4 -t5", "20"),
        ),
    )


HEAD = Job("head", "-N1 -n3 -t5", "30", user="news")
LONG = Job("long", "-n1 -t60 --nice=100", "30")
SINGLES = tuple(Job(f"single{k}", f"-n1 -t10 --nice={k}", f"{seconds}") for k, seconds in ((1, 60), (2, 60), (3, 20)))
SETTINGS = (
    # A start beyond the window has no reservation.
    Setting(Case("window", backfilled(HEAD, LONG)), RESERVES, [("long", "head")]),
    # The reservation begins at the last half hour before the start. Whatever the time is, one of both jobs does not end
    # before it: the second head starts a quarter of an hour after the first one.
    Setting(
        Case(
            "resolution",
            nodes=(CORES, CORES),
            jobs=(
                Job("gate1", "-w {n1} -n2 -t40", "+150"),
                Job("gate2", "-w {n2} -n2 -t55", "+150"),
                Job("gate3", "-w {n1} -n2 -t60", "+10"),
                Job("gate4", "-w {n2} -n2 -t60", "+10"),
                Job("head1", "-w {n1} -N1 -n3 -t5", "30", user="man"),
                Job("head2", "-w {n2} -N1 -n3 -t5", "30", user="man"),
                Job("short1", "-w {n1} -N1 -n1 -t27 --nice=100", "30", user="list"),
                Job("short2", "-w {n2} -N1 -n1 -t42 --nice=100", "30", user="list"),
            ),
        ),
        ASSOCIATION,
        [("short1", "head1"), ("short2", "head2")],
    ),
    # The third record is not tested.
    Setting(
        Case("tests", backfilled(HEAD, LONG, Job("short", "-n1 -t2 --nice=200", "30"))),
        "bf_max_job_test=2",
        [("short", "head")],
    ),
    # Each test is followed by a second of sleep: the pass is over before it comes to `short`.
    Setting(
        Case(
            "no_time",
            backfilled(
                HEAD,
                *(Job(f"long{k}", f"-n1 -t60 --nice={100 + k}", "30") for k in range(1, 6)),
                Job("short", "-n1 -t2 --nice=200", "30"),
            ),
        ),
        f"{SLEEPS} bf_max_time=3",
        [("short", "head")],
        before=SLEEPS,
        has_steps=False,
    ),
    # Each test is followed by a second of sleep, and every few seconds a job is submitted: without `bf_continue` no pass
    # comes to `short`.
    Setting(
        Case(
            "goes_on",
            nodes=(CORES, CORES),
            partitions={"": "Nodes={n1}", "other": "Nodes={n2}"},
            jobs=(
                Job("gate1", "-n2 -t30", "+180"),
                Job("gate2", "-n2 -t60", "+10"),
                Job("gate3", "-p goes_on_other -n4 -t60", "+240"),
                Job("head", "-n3 -t5", "30", after=20),
                *(Job(f"long{k}", f"-n1 -t60 --nice={100 + k}", "10", after=20) for k in range(1, 13)),
                Job("short", "-n1 -t2 --nice=200", "30", after=20),
                *(
                    Job(f"late{at}", "-p goes_on_other -n1 -t5 --nice=100000", "1", after=at)
                    for at in range(25, 190, 5)
                ),
            ),
        ),
        SLEEPS,
        [("short", "head")],
        before=f"{SLEEPS} -bf_continue",
        has_steps=False,
    ),
    # One start a pass: the third job starts two passes after the first one.
    Setting(
        Case(
            "one_start",
            jobs=(
                Job("gate1", "-n1 -t30", "+200"),
                Job("gate2", "-n3 -t60", "+10"),
                Job("head", "-n4 -t5", "30"),
                *(Job(f"short{k}", f"-n1 -t10 --nice=10{k}", "90") for k in (1, 2, 3)),
            ),
        ),
        "bf_max_job_start=1",
        [("short1", "short3")],
    ),
    # The third record of a user in a partition, or of an association, is not tested.
    *(
        Setting(
            Case(
                name,
                jobs=backfilled(
                    HEAD, LONG, Job("long2", "-n1 -t60 --nice=110", "30"), Job("third", "-n1 -t2 --nice=200", "30")
                ),
            ),
            words,
            [("third", "head")],
        )
        for name, words in (("user_part", PARTITION), ("association", ASSOCIATION))
    ),
    # The second task has no reservation.
    Setting(
        Case(
            "array_resv",
            nodes=(CORES, CORES),
            jobs=backfilled(Job("head", "-N1 -n3 -t5 --array=0-1", "30"), LONG, limit=5, nodes=2),
        ),
        RESERVES,
        [("long", "head")],
    ),
    # Nor has the second job of the partition.
    Setting(
        Case(
            "part_reserve",
            nodes=(CORES, CORES),
            jobs=backfilled(HEAD, Job("next", "-N1 -n3 -t5 --nice=50", "30"), LONG, limit=5, nodes=2),
        ),
        PARTITION,
        [("long", "head")],
    ),
    # Nor has a job in its second partition.
    Setting(
        Case(
            "one_resv",
            nodes=(CORES, CORES),
            partitions={"": "Nodes={n1} PriorityTier=2", "other": "Nodes={n2}"},
            jobs=(
                Job("gate1", "-w {n1} -n2 -t5", "+150"),
                Job("gate2", "-p one_resv_other -w {n2} -n2 -t5", "+150"),
                Job("gate3", "-w {n1} -n2 -t60", "+10"),
                Job("gate4", "-p one_resv_other -w {n2} -n2 -t60", "+10"),
                Job("head", "-p one_resv,one_resv_other -N1 -n3 -t5", "30"),
                Job("long", "-p one_resv_other -n1 -t60 --nice=100", "30"),
            ),
        ),
        RESERVES,
        [("long", "head")],
    ),
    # Nor have jobs of a low priority, or young ones.
    Setting(
        Case(
            "low_reserve",
            backfilled(
                Job("head", "-N1 -n3 -t5 --nice=100000", "30", user="news"),
                Job("long", "-n1 -t60 --nice=100100", "30"),
            ),
        ),
        RESERVES,
        [("long", "head")],
    ),
    Setting(Case("young_reserve", backfilled(HEAD, LONG)), BRIEF, [("long", "head")]),
    # No backfill pass and no full main pass: three records are tested, and the fourth waits until one of these has gone.
    Setting(
        Case(
            "depth",
            nodes=(CORES, CORES),
            partitions={"": "Nodes={n1}", "other": "Nodes={n2}"},
            jobs=(
                Job("gate", "-n4 -t30", "+220"),
                *(Job(f"closed{k}", "-n4 -t5", "30") for k in (1, 2, 3)),
                Job("fourth", "-p depth_other -n4 -t5 --nice=500", "20"),
            ),
        ),
        f"{NEVER_FULL} default_queue_depth=2",
        [("fourth", "closed1")],
        before=NEVER_FULL,
        has_steps=False,
    ),
    # The third record of the partition is not tested: it waits until a job has ended.
    Setting(
        Case("part_depth", jobs=(Job("gate", "-n4 -t30", "+10"), *SINGLES)),
        f"{NEVER_FULL} partition_job_depth=2",
        [("single1", "single3")],
        before=NEVER_FULL,
        has_steps=False,
    ),
    # A pass starts two jobs at most.
    Setting(
        Case("most_starts", jobs=(Job("gate", "-n4 -t30", "+10"), *SINGLES)),
        f"{NEVER_FULL} sched_max_job_start=2",
        [("single1", "single3")],
        before=NEVER_FULL,
        has_steps=False,
    ),
    # With an epilog a main pass follows the end of a job at once; without one, or with `defer`, each job of the chain
    # waits for the next full pass.
    *(
        Setting(case, words, [("link6", "mark")], before=before, has_steps=False)
        for case, words, before in (
            (chain("epilog"), AT_ONCE, ONLY_FULL),
            (chain("deferred"), f"{AT_ONCE} defer", AT_ONCE),
        )
    ),
    # No pass begins while the node of a job that has ended is cleaned up.
    Setting(
        Case(
            "completing",
            nodes=(CORES,) * 3,
            jobs=(
                Job("gate", "-w {n1} -n4 -t30", "+40"),
                Job("early", "-w {n2} -n4 -t5", "20", after=50),
                Job("late", "-w {n3} -n4 -t5", "20", after=92),
            ),
        ),
        f"{LONG_EPILOG} CompleteWait=120",
        [("early", "late")],
        before=LONG_EPILOG,
        epilog_s=(60.0, 65.0),
    ),
    # No event tells that a begin time has come: the next full pass starts the job, or the one after the end of a job.
    Setting(
        Case(
            "full",
            nodes=(CORES, CORES),
            partitions={"": "Nodes={n1}", "other": "Nodes={n2}"},
            jobs=(
                Job("gate", "-n4 -t30", "+220"),
                Job("last", "-n4 -t5", "30"),
                Job("begin", "-p full_other -n4 -t5 --begin=now+80", "20"),
            ),
        ),
        NEVER_FULL,
        [("begin", "last")],
        before=NO_BACKFILL,
    ),
    # Ends are looked at in windows that double: with the third job that ends, `head` is planned for the end of the last one,
    # after 25 minutes, though it could start after 20.
    Setting(
        Case(
            "linear_window",
            jobs=(
                *(Job(f"gate{limit}", f"-n1 -t{limit}", "+150") for limit in (10, 20, 25)),
                Job("gate", "-n1 -t60", "+10"),
                HEAD,
                Job("short", "-n1 -t21 --nice=100", "30"),
            ),
        ),
        PARTITION,
        [("short", "head")],
    ),
    Setting(
        Case(
            "small",
            jobs=(
                Job("gate", "-n4 -t30", "+30"),
                Job("few", "-n1 --mem=100 -t5", "45"),
                Job("many", "-n4 --mem=100 -t5", "45"),
            ),
        ),
        WEIGHTS,
        [("few", "many")],
    ),
    Setting(
        Case(
            "brief",
            jobs=(
                Job("gate", "-n4 -t30", "+30"),
                Job("large", "-n4 -t60", "45"),
                Job("short", "-n1 -t2", "45"),
            ),
        ),
        BRIEF,
        [("short", "large")],
    ),
    Setting(
        Case(
            "memory_first",
            jobs=(
                Job("gate", "-n4 -t30", "+30"),
                Job("lean", "-n4 --mem=400 -t5", "45"),
                Job("rich", "-n4 --mem=3900 -t5", "45"),
            ),
        ),
        WEIGHTS,
        [("rich", "lean")],
    ),
    # The age of a job that waits for a time begins with its submission.
    Setting(
        Case(
            "accrued",
            jobs=(
                Job("gate", "-n4 -t30", "+160"),
                Job("begun", "-n4 -t1 --begin=now+140", "45"),
                Job("young", "-n4 -t1", "45", after=60),
            ),
        ),
        BRIEF,
        [("begun", "young"), ("young", "begun")],
    ),
    # The largest of what a job has is billed, and not the sum.
    Setting(
        Case(
            "largest",
            nodes=(f"{CORES}0",),  # ten times the memory
            partitions={"": "TRESBillingWeights=CPU=1.0,Mem=2.0G"},
            accounts=("add qos largest GrpTRES=billing=8", "modify user where name=games,news set qos+=largest"),
            jobs=(
                Job("first", "-n1 --mem=3000 -t10 --qos=largest", "90", after=5),
                Job("second", "-n1 --mem=1500 -t10 --qos=largest", "20", user="news", after=15),
            ),
        ),
        BRIEF,
        [("first", "second")],
    ),
    # Nodes in use are planned before idle ones: `long` starts on the second idle one.
    Setting(
        Case(
            "busy",
            nodes=(CORES,) * 4,
            jobs=(
                *(Job(f"gate{k}", f"-w {{n{k}}} -n4 -t5", "+150", user="root") for k in (3, 4)),
                Job("head", "-N3 -n12 -t5", "30", user="news"),
                Job("long", "-n4 -t60 --nice=100", "30"),
            ),
        ),
        PARTITION,
        [("long", "head")],
    ),
    # Where nodes in use suffice, the plan has an idle one besides: `long` waits.
    Setting(
        Case(
            "spare",
            nodes=(CORES,) * 4,
            jobs=(
                *(Job(f"gate{k}", f"-w {{n{k}}} -n4 -t5", "+150", user="root") for k in (1, 2, 3)),
                Job("head", "-N2 -n8 -t5", "30", user="news"),
                Job("long", "-n4 -t60 --nice=100", "30"),
            ),
        ),
        PARTITION,
        [("long", "head")],
    ),
)
