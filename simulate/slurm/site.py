"""A site: what Slurm's scheduler rests on, and the jobs that were submitted to it.

Rule: frozen values, as the files of the site say; nothing is derived from two files here. `None` is "not set" (no
limit, no value), never "unknown": what could not be read is a sentence in `Site.unknown`.
Units: seconds since the epoch (UTC), minutes for time limits as in slurm.conf, MiB for memory, CPUs as Slurm counts.
Source: slurm.conf(5), sacctmgr(1), scontrol(1), sacct(1) of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

#: Trackable resources that rules count, in the order of the kernels' columns; GRES and licences are apart.
TRES = ("cpu", "mem", "node", "gres/gpu", "billing")
#: Amounts of trackable resources by name; memory in MiB.
Amounts = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class SiteNode:
    """A node, in the order of slurm.conf."""

    name: str
    cpus: int
    cores: int
    threads: int = 1  # CPUs of a core
    sockets: int = 1
    memory_mib: int = 1
    weight: int = 1
    features: tuple[str, ...] = ()
    gpus: int = 0
    works: bool = True  # it takes jobs when the replay begins
    stays_on: bool = False  # SuspendExcNodes, SuspendExcParts
    is_asleep: bool = False  # when the replay begins


@dataclass(frozen=True, slots=True)
class SiteSwitch:
    """A switch of topology/tree: names of the nodes at it, and of the switches below it."""

    name: str
    nodes: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SitePartition:
    """A partition; `nodes` are names."""

    name: str
    nodes: tuple[str, ...]
    is_default: bool = False
    tier: int = 1
    job_factor: int = 1
    max_time_min: int | None = None
    default_time_min: int | None = None
    min_nodes: int = 0
    max_nodes: int | None = None
    max_cpus_per_node: int | None = None
    default_memory_per_cpu_mib: int | None = None
    default_memory_per_node_mib: int | None = None
    max_memory_per_cpu_mib: int | None = None
    is_exclusive: bool = False  # OverSubscribe=EXCLUSIVE
    is_least_loaded: bool = False  # LLN
    requires_reservation: bool = False  # ReqResv
    state: str = "UP"
    qos: str = ""
    preempt_mode: str = ""  # "" is the cluster's
    grace_time_s: int = 0
    over_time_limit_min: int | None = None
    allow_accounts: frozenset[str] | None = None
    deny_accounts: frozenset[str] = frozenset()
    allow_qos: frozenset[str] | None = None
    deny_qos: frozenset[str] = frozenset()
    billing_weights: Mapping[str, float] | None = None  # TRESBillingWeights, memory by MiB; None: a CPU counts 1


@dataclass(frozen=True, slots=True)
class SiteLimits:
    """Limits of a QOS or of an association; the last ten, and `min_tres`, of a QOS only."""

    group_jobs: int | None = None
    group_submit: int | None = None
    group_wall_min: float | None = None
    group_tres: Amounts = field(default_factory=dict)
    group_tres_minutes: Amounts = field(default_factory=dict)
    group_run_minutes: Amounts = field(default_factory=dict)
    max_jobs: int | None = None
    max_submit: int | None = None
    max_wall_min: float | None = None
    max_tres: Amounts = field(default_factory=dict)
    max_tres_per_node: Amounts = field(default_factory=dict)
    max_tres_minutes: Amounts = field(default_factory=dict)
    min_tres: Amounts = field(default_factory=dict)
    group_accrue: int | None = None  # jobs whose age counts
    max_accrue: int | None = None
    user_jobs: int | None = None
    user_submit: int | None = None
    user_tres: Amounts = field(default_factory=dict)
    user_accrue: int | None = None
    account_accrue: int | None = None
    account_jobs: int | None = None
    account_submit: int | None = None
    account_tres: Amounts = field(default_factory=dict)
    user_run_minutes: Amounts = field(default_factory=dict)
    account_run_minutes: Amounts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SiteQos:
    """A quality of service."""

    name: str
    priority: int = 0
    flags: frozenset[str] = frozenset()
    usage_factor: float = 1.0
    limit_factor: float = 1.0  # of the GrpTRES and MaxTRES of associations
    min_priority: int = 0  # MinPrioThreshold; 0: that of SchedulerParameters
    preempts: frozenset[str] = frozenset()
    preempt_mode: str = ""
    preempt_exempt_s: float | None = None  # None: as the cluster's
    grace_time_s: int = 0
    limits: SiteLimits = SiteLimits()


@dataclass(frozen=True, slots=True)
class SiteAssociation:
    """An association: an account, or a user in an account (`user` is not empty); parents stand before children."""

    account: str
    user: str = ""
    parent: int = -1  # row of the parent account; -1: this is root
    shares: int | None = 1  # None: Fairshare=parent
    priority: int = 0
    partition: str = ""
    default_qos: str = ""
    qos: frozenset[str] = frozenset()
    limits: SiteLimits = SiteLimits()


@dataclass(frozen=True, slots=True)
class SiteReservation:
    """A reservation, one instance; `created`: jobs do not avoid it before, None: it was always there."""

    name: str
    start: float
    end: float
    nodes: tuple[str, ...]
    users: frozenset[str] = frozenset()
    accounts: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    partition: str = ""  # of PART_NODES
    created: float | None = None


@dataclass(frozen=True, slots=True)
class NodeEvent:
    """A time in which a node took no new jobs; `kills`: its jobs ended, too."""

    node: str
    start: float
    end: float | None
    kills: bool = False


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A run of a job as it really was: one run of it, as sacct tells; times are None where it never did."""

    state: str
    eligible: float | None = None
    start: float | None = None
    end: float | None = None
    partition: str = ""
    nodes: tuple[str, ...] = ()
    cpus: int = 0
    priority: int | None = None
    started_by: str = ""  # main, backfill, submit, or "" where Slurm does not say
    energy_j: float | None = None


@dataclass(frozen=True, slots=True)
class SiteJob:
    """A job, or a task of an array, as it was submitted, and the runs that it really had."""

    id: str  # JobID: 77, 77_5
    name: str
    user: str
    account: str
    qos: str
    partitions: tuple[str, ...]
    submit: float
    runs: tuple[JobRecord, ...] = ()
    limit_min: int | None = None  # None: the partition's
    time_min_min: int | None = None
    min_nodes: int = 1
    max_nodes: int | None = None  # None: as many as it takes
    tasks: int = 1
    cpus_per_task: int = 1
    tasks_per_node: int | None = None
    min_cpus: int = 1
    memory_per_node_mib: int | None = None
    memory_per_cpu_mib: int | None = None
    gpus_per_node: int = 0
    is_exclusive: bool = False
    is_contiguous: bool = False
    constraint: str = ""
    required_nodes: tuple[str, ...] = ()
    excluded_nodes: tuple[str, ...] = ()
    reservation: str = ""
    licences: Mapping[str, int] = field(default_factory=dict)
    nice: int = 0
    begin: float | None = None  # --begin
    released: float | None = None  # it was held until then
    deadline: float | None = None
    array: str = ""  # id of its array
    task: int = -1  # index in its array
    array_limit: int | None = None  # % of its array
    dependency: str = ""  # as written, with job ids: afterok:12:13,singleton
    is_requeued: bool = True  # it may be requeued
    run_s: float = 0.0  # how long it runs if nothing stops it


@dataclass(frozen=True, slots=True)
class PriorityRules:
    """PriorityType=priority/multifactor, its weights and flags."""

    is_multifactor: bool = True
    age: float = 0.0
    association: float = 0.0
    fair_share: float = 0.0
    size: float = 0.0
    partition: float = 0.0
    qos: float = 0.0
    tres: Amounts = field(default_factory=dict)
    max_age_s: float = 604_800.0
    half_life_s: float = 604_800.0  # 0: usage does not decay
    period_s: float = 300.0
    favours_small: bool = False
    dampening: float = 1.0
    usage_reset: str = "NONE"  # PriorityUsageResetPeriod: NONE, NOW, DAILY, WEEKLY, MONTHLY, QUARTERLY or YEARLY
    flags: frozenset[str] = frozenset()  # upper case, as in PriorityFlags


@dataclass(frozen=True, slots=True)
class SchedulerRules:
    """SchedulerParameters, by Slurm's defaults. Seconds unless the name says otherwise."""

    sched_interval: float = 60.0
    sched_min_interval: float = 0.000002
    batch_sched_delay: float = 3.0
    default_queue_depth: int = 100
    partition_job_depth: int = 0
    sched_max_job_start: int = 0
    max_sched_time: float = 2.0
    is_deferred: bool = False
    goes_past_limits: bool = True  # False: assoc_limit_stop
    bf_interval: float = 30.0  # below 0: no backfilling
    bf_window_min: float = 1440.0
    bf_resolution: int = 60
    bf_max_job_test: int = 500
    bf_max_time: float = 0.0  # 0: bf_interval
    bf_yield_interval: float = 2.0
    bf_yield_sleep: float = 0.5
    bf_continue: bool = False
    bf_max_job_start: int = 0
    bf_max_job_user: int = 0
    bf_max_job_part: int = 0
    bf_max_job_user_part: int = 0
    bf_max_job_assoc: int = 0
    bf_max_job_array_resv: int = 20
    bf_job_part_count_reserve: int = 0
    bf_min_age_reserve: float = 0.0
    bf_min_prio_reserve: int = 0
    bf_one_resv_per_job: bool = False
    bf_window_linear: float = 0.0
    bf_busy_nodes: bool = False
    bf_licenses: bool = False
    bf_running_job_reserve: bool = False
    bf_node_space_size: int = 0  # 0: bf_max_job_test
    preempt_reorder_count: int = 1
    preempt_strict_order: bool = False
    preempt_youngest_first: bool = False
    time_min_as_soft_limit: bool = False
    pack_serial_at_end: bool = False


@dataclass(frozen=True, slots=True)
class SiteRules:
    """slurm.conf, as far as scheduling rests on it."""

    version: tuple[int, int] = (22, 5)
    scheduler: SchedulerRules = SchedulerRules()
    priority: PriorityRules = PriorityRules()
    is_backfilling: bool = True  # SchedulerType=sched/backfill
    selects: str = "cores"  # cores (CR_Core), cpus (CR_CPU), sockets (CR_Socket) or nodes (select/linear)
    counts_memory: bool = False  # CR_*_Memory
    is_least_loaded: bool = False  # CR_LLN
    one_task_per_core: bool = False  # CR_ONE_TASK_PER_CORE
    default_memory_per_cpu_mib: int | None = None
    default_memory_per_node_mib: int | None = None
    max_memory_per_cpu_mib: int | None = None
    enforces_associations: bool = False
    enforces_limits: bool = False
    enforces_qos: bool = False
    is_safe: bool = False
    complete_wait_s: float = 0.0
    kill_wait_s: float = 30.0
    part_limits: str = "NO"  # EnforcePartLimits: NO; ANY, ALL: a job needs one partition, or all
    over_time_limit_min: int | None = 0  # None: jobs are never killed
    resv_over_run_min: int | None = 0  # None: jobs go on after their reservation
    preempt_type: str = ""  # "", partition_prio or qos
    preempt_mode: str = "OFF"
    preempt_exempt_s: float = 0.0
    requeues: bool = True  # JobRequeue
    message_timeout_s: float = 10.0
    suspend_time_s: float | None = None  # None: nodes do not sleep
    suspend_timeout_s: float = 30.0
    resume_timeout_s: float = 60.0  # a boot takes as long
    suspend_rate: int = 60  # nodes a minute; 0: any number
    resume_rate: int = 300
    licences: Mapping[str, int] = field(default_factory=dict)
    kills_invalid_dependents: bool = False
    has_epilog: bool = True  # Epilog: a main pass follows the end of a job at once
    epilog_s: tuple[float, float] = (0.1, 1.0)  # least and most seconds from a job's end until its nodes are free
    pass_s: tuple[float, float] = (0.0, 0.1)  # least and most seconds of a backfill pass
    test_s: float = 0.0  # seconds in which a backfill pass tests a job; 0: not known
    record_s: float = 0.0  # seconds that a main pass takes for a record; 0: not known


@dataclass(frozen=True, slots=True)
class Site:
    """A site and a period of it."""

    rules: SiteRules
    nodes: tuple[SiteNode, ...]
    partitions: tuple[SitePartition, ...]
    qos: tuple[SiteQos, ...] = ()
    associations: tuple[SiteAssociation, ...] = ()
    reservations: tuple[SiteReservation, ...] = ()
    events: tuple[NodeEvent, ...] = ()
    jobs: Sequence[SiteJob] = ()  # by submission, then id
    usage: tuple[float, ...] = ()  # RawUsage of each association when the period begins, billing seconds; () is 0
    unknown: tuple[str, ...] = ()  # what could not be read, or is not followed, and what it does to a result
    scheduler: str = ""  # what starts jobs, if the rules stand for another scheduler than Slurm's
    switches: tuple[SiteSwitch, ...] = ()  # in the order of topology.conf; (): they do not matter
