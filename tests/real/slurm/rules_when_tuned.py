"""Cases of rules that a site chooses: whole nodes, preemption, other fair shares, and bounds of backfilling."""

from __future__ import annotations

from rule_case import CORES, Case, changed_rules, partition_changed, priority_changed, scheduler_changed
from rule_case import Submission as Job

GATES = (Job("gate1", "-w {n1} -t10", "+150", user="root"), Job("gate2", "-w {n2} -t30", "+10", user="root"))
HEAD = Job("head", "-N2 -t5", "30", user="news")
NO_PREEMPTION = changed_rules(preempt_type="")

TUNED_CASES = (
    Case(
        "linear",
        nodes=(CORES, CORES),
        jobs=(Job("a", "-n1 -t10", "60"), Job("b", "-n1 -t10", "60"), Job("c", "-n1 -t10", "30")),
        without={"select/linear": changed_rules(selects="cores")},
    ),
    # assoc_limit_stop: a job over a limit closes its partition, in the first pass that finds it so.
    Case(
        "stop",
        nodes=(CORES, CORES),
        accounts=("add qos one MaxJobsPerUser=1", "modify user games set qos+=one"),
        jobs=(
            Job("gate", "-N2 --exclusive -t10", "+10", user="root"),
            Job("first", "-N1 -t10 --qos=one", "90"),
            Job("second", "-N1 -t10 --qos=one", "30"),
            Job("low", "-N1 -t10 --nice=100", "30"),
        ),
        without={"assoc_limit_stop": scheduler_changed(goes_past_limits=True)},
    ),
    # A job of a user after the second is not tested, though it would fit.
    Case(
        "per_user",
        nodes=(CORES, CORES),
        jobs=(
            *GATES,
            HEAD,
            Job("long1", "-N1 -t60 --nice=100", "20"),
            Job("long2", "-N1 -t60 --nice=110", "20"),
            Job("third", "-N1 -t2 --nice=200", "20"),
            Job("other", "-N1 -t2 --nice=300", "20", user="uucp"),
        ),
        without={"bf_max_job_user": scheduler_changed(bf_max_job_user=0)},
    ),
    # Nor is one of a partition after the sixth.
    Case(
        "per_part",
        nodes=(CORES, CORES),
        jobs=(
            *GATES,
            HEAD,
            *(
                Job(f"long{number}", f"-N1 -t60 --nice={100 + number}", "20", user=user)
                for number, user in enumerate(("man", "list", "irc", "proxy", "sync"))
            ),
            Job("seventh", "-N1 -t2 --nice=200", "20"),
        ),
        without={"bf_max_job_part": scheduler_changed(bf_max_job_part=0)},
    ),
    Case(
        "size",
        nodes=(CORES, CORES),
        jobs=(Job("gate", "-N2 -t30", "+30"), Job("small", "-N1 -t1", "45"), Job("large", "-N2 -t1", "45")),
        without={"the size": priority_changed(size=0.0)},
    ),
    Case(
        "classic",
        accounts=("add account fair", "add user mail account=fair", "add user lp account=fair"),
        jobs=(
            Job("gate", "-t30", "+130", user="mail"),
            Job("heavy", "-t1", "45", user="mail"),
            Job("light", "-t1", "45", user="lp"),
        ),
        without={"fair share": priority_changed(fair_share=0.0)},
    ),
    Case(
        "requeue",
        partitions={"": "PreemptMode=REQUEUE", "high": "PriorityTier=10"},
        jobs=(
            Job("low", "-t10 --requeue", "300"),
            Job("high", "-p requeue_high -t10", "40", after=60),
            Job("next", "-t10 --nice=100", "40", after=70),
        ),
        without={"preemption": NO_PREEMPTION},
    ),
    Case(
        "cancel",
        partitions={"": "PreemptMode=CANCEL", "high": "PriorityTier=10"},
        jobs=(Job("low", "-t10", "300"), Job("high", "-p cancel_high -t10", "40", after=60)),
        without={"PreemptMode=CANCEL": partition_changed("cancel", preempt_mode="REQUEUE")},
    ),
    # The victim is the job that started last, though the other one was submitted before it.
    Case(
        "youngest",
        nodes=(CORES, CORES),
        partitions={"": "PreemptMode=CANCEL", "high": "PriorityTier=10"},
        jobs=(
            Job("old", "-w {n1} -N1 -t10", "150", after=5),
            Job("young", "-w {n2} -N1 -t10", "150", after=25),
            Job("high", "-p youngest_high -N1 -t10", "40", after=60),
            Job("after_old", "-w {n1} -N1 -t10 --nice=100", "20", after=70),
            Job("after_young", "-w {n2} -N1 -t10 --nice=100", "20", after=75),
        ),
        without={"preempt_youngest_first": scheduler_changed(preempt_youngest_first=False)},
    ),
)
