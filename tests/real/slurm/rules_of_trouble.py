"""Cases in which jobs end early, or do not get what is free: preemption by QOS, nodes that fail, time limits, nodes that are
reserved for maintenance, weights of resources, and limits with `safe`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rule_case import (
    CORES,
    Case,
    Change,
    changed_rules,
    jobs_changed,
    no_limits,
    no_reservations,
    partition_changed,
    qos_changed,
)
from rule_case import Submission as Job

from pilotfish.simulate.slurm.site import Site

NO_PREEMPTION = changed_rules(preempt_type="")
LOW = Job("low", "-n1 -t10 --nice=100", "20", after=20)


def no_events(site: Site) -> Site:
    """Return a site whose nodes never fail."""
    return replace(site, events=())


def no_flag(flag: str) -> Change:
    """Return what takes a flag from all reservations."""

    def change(site: Site) -> Site:
        reservations = (replace(one, flags=one.flags - {flag}) for one in site.reservations)
        return replace(site, reservations=tuple(reservations))

    return change


def marked(until: int) -> tuple[Job, Job]:
    """Return a gate on the second node until `until`, seconds after the gates open, and a job that waits for it."""
    return (
        Job("mark_gate", "-w {n2} -n4 -t30", f"+{until}", user="root"),
        Job("mark", "-w {n2} -n4 -t5", "20", user="root"),
    )


def pushed_aside(name: str, weak: str = "", *, options: str = "", without: Mapping[str, Change] | None = None) -> Case:
    """Return a case in which a job of one QOS preempts a job of another one.

    Args:
        name: of the case; the QOS are NAME_weak and NAME_strong.
        weak: what the QOS of the victim has besides.
        options: of the victim.
        without: preemption is taken away, if nothing else is said.
    """
    return Case(
        name,
        nodes=(CORES, CORES),
        partitions={"": "Nodes={n1}", "other": "Nodes={n2}"},
        accounts=(
            f"add qos {name}_weak {weak}".strip(),
            f"add qos {name}_strong Preempt={name}_weak",
            f"modify user games set qos+={name}_weak,{name}_strong",
        ),
        jobs=(
            *(replace(job, options=f"-p {name}_other {job.options}") for job in marked(90)),
            Job("victim", f"-n4 -t10 --qos={name}_weak {options}", "300", after=5),
            Job("strong", f"-n4 -t10 --qos={name}_strong", "40", after=40),
            Job("next", "-n4 -t10 --nice=100", "40", after=45),
        ),
        without=without or {"preemption": NO_PREEMPTION},
    )


PREEMPTION: Sequence[Case] = (
    pushed_aside("evicted", options="--requeue"),
    pushed_aside(
        "killed",
        "PreemptMode=cancel",
        options="--requeue",
        without={"PreemptMode=CANCEL": qos_changed("killed_weak", preempt_mode="")},
    ),
    pushed_aside(
        "unrepeatable",
        options="--no-requeue",
        without={"--no-requeue": jobs_changed("unrepeatable", "victim", is_requeued=True)},
    ),
    pushed_aside("graced", "GraceTime=100", without={"GraceTime": qos_changed("graced_weak", grace_time_s=0)}),
    pushed_aside(
        "spared",
        "PreemptExemptTime=00:02:00",
        without={"PreemptExemptTime": qos_changed("spared_weak", preempt_exempt_s=None)},
    ),
    # The victim is the job whose QOS has the lower priority, though the other one is on the first node.
    Case(
        "choosy",
        nodes=(CORES, CORES),
        accounts=(
            "add qos choosy_weak",
            "add qos choosy_better Priority=10",
            "add qos choosy_strong Preempt=choosy_weak,choosy_better",
            "modify user games set qos+=choosy_weak,choosy_better,choosy_strong",
        ),
        jobs=(
            Job("better", "-w {n1} -n4 -t10 --qos=choosy_better", "150", after=5),
            Job("weak", "-w {n2} -n4 -t10 --qos=choosy_weak", "150", after=5),
            Job("strong", "-n4 -t10 --qos=choosy_strong", "40", after=40),
        ),
        without={"the priority of the QOS": qos_changed("choosy_better", priority=0)},
    ),
)
FAILURES: Sequence[Case] = (
    # The job begins again two minutes after its node has failed; `next` has gone first.
    Case(
        "failed",
        commands=((60, "update NodeName={n1} State=DOWN Reason=test"), (100, "update NodeName={n1} State=RESUME")),
        jobs=(
            Job("first", "-n4 -t10 --requeue", "150", after=5),
            Job("next", "-n4 -t10 --nice=100", "40", after=20),
        ),
        without={
            "the failure": no_events,
            "requeue": jobs_changed("failed", "first", is_requeued=False),
        },
    ),
    # The job ends on both nodes; `second` has the one that works.
    Case(
        "lost",
        nodes=(CORES, CORES),
        commands=((60, "update NodeName={n1} State=DOWN Reason=test"), (180, "update NodeName={n1} State=RESUME")),
        jobs=(
            Job("first", "-N2 -n8 -t10 --no-requeue", "150", after=5),
            Job("second", "-n4 -t10", "40", after=20),
            Job("third", "-n4 -t10 --nice=100", "20", after=20),
            Job("wide", "-N2 -n8 -t10 --nice=200", "20", after=20),
        ),
        without={
            "the failure": no_events,
            "--no-requeue": jobs_changed("lost", "first", is_requeued=True),
        },
    ),
)
LIMITS_OF_TIME: Sequence[Case] = (
    Case(
        "overdue",
        nodes=(CORES, CORES),
        jobs=(
            *marked(150),
            Job("overdue", "-w {n1} -n4 -t1", "300", after=5),
            Job("next", "-w {n1} -n4 -t5", "20", after=20),
        ),
        without={"time limits": changed_rules(over_time_limit_min=None)},
    ),
    Case(
        "overtime",
        nodes=(CORES, CORES),
        partitions={"": "OverTimeLimit=3"},
        jobs=(
            *marked(115),
            Job("overdue", "-w {n1} -n4 -t1", "170", after=5),
            Job("next", "-w {n1} -n4 -t5", "20", after=20),
        ),
        without={"OverTimeLimit": partition_changed("overtime", over_time_limit_min=0)},
    ),
)
MAINTENANCE: Sequence[Case] = (
    # All nodes of the partition: `long` waits until the maintenance is over.
    Case(
        "maint",
        commands=(
            (5, "create reservation=upkeep StartTime=now+4minutes Duration=2 Nodes={n1} Users=root Flags=MAINT"),
        ),
        jobs=(
            Job("long", "-n4 -t30", "20", after=15),
            Job("short", "-n4 -t1 --nice=100", "20", after=15),
            Job("repair", "-n4 -t5 --reservation=upkeep", "20", user="root", after=15),
        ),
        without={"the reservation": no_reservations},
    ),
    # A job of a FLEX reservation starts before it, and on other nodes, too; but main passes pass over it while it wants more
    # nodes than the reservation has, so that `outside` takes the node that becomes free.
    Case(
        "flex",
        nodes=(CORES, CORES),
        commands=((5, "create reservation=supple StartTime=now+9minutes Duration=2 Nodes={n1} Users=news Flags=FLEX"),),
        jobs=(
            Job("gate", "-w {n2} -n4 -t30", "+100", user="root"),
            Job("inside", "-N2 -n8 -t5 --reservation=supple", "30", user="news", after=15),
            Job("outside", "-w {n2} -n4 -t10 --nice=100", "60", after=20),
            Job("alone", "-n4 -t5 --reservation=supple", "20", user="news", after=25),
        ),
        without={"FLEX": no_flag("FLEX"), "the reservation": no_reservations},
    ),
    # A job ends with its reservation, whatever its time limit is.
    Case(
        "expired",
        nodes=(CORES, CORES),
        commands=((5, "create reservation=brief StartTime=now+1minutes Duration=2 Nodes={n1} Users=news"),),
        jobs=(
            *marked(270),
            Job("inside", "-n4 -t30 --reservation=brief", "400", user="news", after=15),
            Job("next", "-w {n1} -n4 -t5", "20", after=15),
        ),
        without={"its end": changed_rules(resv_over_run_min=None)},
    ),
    # A job uses a magnetic reservation that it does not name.
    Case(
        "magnet",
        nodes=(CORES, CORES),
        commands=((5, "create reservation=pull StartTime=now Duration=5 Nodes={n1} Users=news Flags=MAGNETIC"),),
        jobs=(
            *marked(150),
            Job("drawn", "-n4 -t4", "40", user="news", after=15),
            Job("other", "-n4 -t4", "20", user="root", after=15),
        ),
        without={"MAGNETIC": no_flag("MAGNETIC")},
    ),
)
WEIGHTS = "TRESBillingWeights=CPU=1.0,Mem=2.0G"
BILLING: Sequence[Case] = (
    Case(
        "billed",
        nodes=(f"{CORES}0",),  # ten times the memory
        partitions={"": WEIGHTS},
        accounts=("add qos billed GrpTRES=billing=8", "modify user where name=games,news set qos+=billed"),
        jobs=(
            Job("first", "-n1 --mem=3000 -t10 --qos=billed", "90", after=5),
            Job("second", "-n1 --mem=1500 -t10 --qos=billed", "20", user="news", after=15),
            LOW,
        ),
        without={"the weights": partition_changed("billed", billing_weights=None)},
    ),
    # Usage is what was billed: `mail` had one CPU with much memory, and `lp` two with little.
    Case(
        "dues",
        partitions={"": WEIGHTS},
        accounts=("add account fair", "add user mail account=fair", "add user lp account=fair"),
        jobs=(
            Job("gate1", "-n1 --mem=3000 -t30", "+130", user="mail"),
            Job("gate2", "-n2 --mem=100 -t30", "+130", user="lp"),
            Job("costly", "-n4 -t1", "45", user="mail"),
            Job("cheap", "-n4 -t1", "45", user="lp"),
        ),
        without={"the weights": partition_changed("dues", billing_weights=None)},
    ),
    # UsageFactor: three CPUs of `irc` count less than one of `proxy`.
    Case(
        "discount",
        accounts=(
            "add qos discount UsageFactor=0.1",
            "add account fees",
            "add user irc account=fees",
            "add user proxy account=fees",
            "modify user irc set qos+=discount",
        ),
        jobs=(
            Job("gate1", "-n1 -t30", "+130", user="proxy"),
            Job("gate2", "-n3 -t30 --qos=discount", "+130", user="irc"),
            Job("full", "-n4 -t1", "45", user="proxy"),
            Job("cheap", "-n4 -t1", "45", user="irc"),
        ),
        without={"UsageFactor": qos_changed("discount", usage_factor=1.0)},
    ),
)


SAFE: Sequence[Case] = (
    # The minutes of the first job's whole time limit count until it has ended.
    Case(
        "safe",
        accounts=("add qos safe GrpTRESMins=cpu=30", "modify user where name=games,news set qos+=safe"),
        jobs=(
            Job("first", "-n2 -t10 --qos=safe", "90", after=5),
            Job("second", "-n2 -t10 --qos=safe", "20", user="news", after=15),
            LOW,
        ),
        without={"safe": changed_rules(is_safe=False), "the limit": no_limits(qos="safe")},
    ),
)
SUBMISSIONS = Case(
    "submissions",
    accounts=("add qos submissions MaxSubmitJobsPerUser=2", "modify user games set qos+=submissions"),
    jobs=(
        Job("first", "-n1 -t10 --qos=submissions", "90", after=5),
        Job("second", "-n1 -t10 --qos=submissions", "220", after=10),
        Job("third", "-n1 -t10 --qos=submissions", "20", after=15, is_refused=True),
        Job("again", "-n1 -t10 --qos=submissions", "20", after=150),
    ),
)
TROUBLE = (*PREEMPTION, *FAILURES, *LIMITS_OF_TIME, *MAINTENANCE, *BILLING, *SAFE, SUBMISSIONS)
#: Of a site that suspends jobs.
SUSPENSION: Sequence[Case] = (
    Case(
        "suspended",
        nodes=(CORES, CORES),
        partitions={"": "Nodes={n1} PreemptMode=SUSPEND", "high": "Nodes={n1} PriorityTier=10", "other": "Nodes={n2}"},
        jobs=(
            *(replace(job, options=f"-p suspended_other {job.options}") for job in marked(115)),
            Job("victim", "-n4 -t10", "80", after=5),
            Job("high", "-p suspended_high -n4 -t10", "80", after=40),
            Job("next", "-n4 -t10", "20", after=45),
        ),
        without={"preemption": NO_PREEMPTION},
    ),
    # The victim keeps its memory.
    Case(
        "kept_memory",
        partitions={"": "PreemptMode=SUSPEND", "high": "PriorityTier=10"},
        jobs=(
            Job("victim", "-n4 --mem=3000 -t10", "80", after=5),
            Job("rich", "-p kept_memory_high -n4 --mem=2000 -t10", "20", after=30),
            Job("poor", "-p kept_memory_high -n4 --mem=500 -t10 --nice=100", "20", after=40),
        ),
        without={"preemption": NO_PREEMPTION},
    ),
)
