"""Cases of limits: of QOS, associations and partitions, of licences, arrays, times and dependencies."""

from __future__ import annotations

from collections.abc import Mapping
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
    priority_changed,
    qos_changed,
)
from rule_case import Submission as Job

GATE = Job("gate", "-n4 -t30", "+10")
LOW = Job("low", "-n1 -t10 --nice=40000", "20")


def limited(
    name: str, limit: str, second: str = "games", *, options: str = "-n1 -t10", starts: bool = True,
    without: Mapping[str, Change] | None = None,
) -> Case:  # fmt: skip
    """Return a case in which a QOS named as the case hides `second`, and `low` passes it.

    Args:
        name: of the case.
        limit: of the QOS, as sacctmgr takes it.
        second: the user of the second job.
        options: of the second job.
        starts: whether the second job starts once the first has ended.
        without: the limit is taken away, if nothing else is said.
    """
    users = ",".join(sorted({"games", second}))
    return Case(
        name,
        accounts=(f"add qos {name} {limit}", f"modify user where name={users} set qos+={name}"),
        jobs=(
            GATE,
            Job("first", f"-n2 -t10 --qos={name}", "90"),
            # A nice that outweighs the fair shares of both users.
            Job("second", f"{options} --nice=20000 --qos={name}", "20", user=second, never_starts=not starts),
            LOW,
        ),
        without=without or {"the limit": no_limits(qos=name)},
    )


LIMITS = (
    limited("user_jobs", "MaxJobsPerUser=1"),
    limited("group_jobs", "GrpJobs=1", "news"),
    limited("group_cpus", "GrpTRES=cpu=2", "news"),
    limited("user_cpus", "MaxTRESPerUser=cpu=2"),
    limited("account_jobs", "MaxJobsPerAccount=1", "news"),
    limited("account_cpus", "MaxTRESPerAccount=cpu=2", "news"),
    limited("job_cpus", "MaxTRESPerJob=cpu=2", options="-n3 -t10", starts=False),
    limited("run_minutes", "GrpTRESRunMins=cpu=25", "news"),
    limited("wall", "MaxWall=10", options="-n1 -t20", starts=False),
    limited("node_cpus", "MaxTRESPerNode=cpu=2", options="-n3 -t10", starts=False),
    limited("least_cpus", "MinTRESPerJob=cpu=2", starts=False),
    limited("job_minutes", "MaxTRESMinsPerJob=cpu=25", options="-n1 -t30", starts=False),
    # The first job uses up more than a minute of a CPU; then no other one starts.
    Case(
        "used_up",
        accounts=("add qos used_up GrpTRESMins=cpu=1", "modify user where name=games,news set qos+=used_up"),
        jobs=(
            Job("first", "-n2 -t10 --qos=used_up", "190"),
            Job("second", "-n1 -t10 --qos=used_up", "20", user="news", after=150, never_starts=True),
            Job("low", "-n1 -t10 --nice=100", "20", after=150),
        ),
        without={"the limit": no_limits(qos="used_up")},
    ),
    # A minute in which a job of the group ran is used up; the job itself is killed then.
    Case(
        "wall_used",
        accounts=("add qos wall_used GrpWall=1", "modify user where name=games,news set qos+=wall_used"),
        jobs=(
            Job("first", "-n2 -t10 --qos=wall_used", "190"),
            Job("second", "-n1 -t10 --qos=wall_used", "20", user="news", after=150, never_starts=True),
            Job("low", "-n1 -t10 --nice=100", "20", after=150),
        ),
        without={"the limit": no_limits(qos="wall_used")},
    ),
    # NoReserve: the first job in the queue keeps no node free; later jobs take it.
    Case(
        "unreserved",
        accounts=("add qos unreserved Flags=NoReserve", "modify user news set qos+=unreserved"),
        jobs=(
            Job("gate1", "-n2 -t30", "+150"),
            Job("gate2", "-n2 -t60", "+10"),
            Job("head", "-n3 -t5 --qos=unreserved", "30", user="news"),
            Job("long", "-n1 -t60 --nice=100", "30"),
        ),
        without={"NoReserve": qos_changed("unreserved", flags=frozenset())},
    ),
    # MinPrioThreshold: nor does a job below the least priority of its QOS.
    Case(
        "threshold",
        accounts=("add qos threshold MinPrioThres=100000000", "modify user news set qos+=threshold"),
        jobs=(
            Job("gate1", "-n2 -t30", "+150"),
            Job("gate2", "-n2 -t60", "+10"),
            Job("head", "-n3 -t5 --qos=threshold", "30", user="news"),
            Job("long", "-n1 -t60 --nice=100", "30"),
        ),
        without={"MinPrioThreshold": qos_changed("threshold", min_priority=0)},
    ),
    # PartitionTimeLimit: the job may run for longer than its partition allows.
    Case(
        "longer",
        partitions={"": "MaxTime=30"},
        accounts=("add qos longer Flags=PartitionTimeLimit", "modify user games set qos+=longer"),
        jobs=(
            GATE,
            Job("long", "-n1 -t60 --qos=longer", "20"),
            Job("other", "-n1 -t60", "20", never_starts=True),
        ),
        without={"PartitionTimeLimit": qos_changed("longer", flags=frozenset())},
    ),
    Case(
        "account",
        accounts=("add account narrow", "modify account narrow set GrpTRES=cpu=2", "add user man account=narrow"),
        jobs=(
            GATE,
            Job("first", "-n2 -t10", "90", user="man"),
            Job("second", "-n1 -t10", "20", user="man"),
            LOW,
        ),
        without={"the limit": no_limits(account="narrow")},
    ),
    Case(
        "member",
        accounts=("add user list account=lab MaxJobs=1",),
        jobs=(
            GATE,
            Job("first", "-n2 -t10", "90", user="list"),
            Job("second", "-n1 -t10", "20", user="list"),
            LOW,
        ),
        without={"the limit": no_limits(user="list")},
    ),
    # The QOS of the partition comes first.
    Case(
        "partition_qos",
        partitions={"": "QOS=two"},
        accounts=("add qos two MaxTRESPerUser=cpu=2",),
        jobs=(
            Job("first", "-n2 -t10", "90"),
            Job("second", "-n1 -t10", "20"),
            Job("low", "-n1 -t10 --nice=100", "20", user="news", after=10),
        ),
        without={"the limit": no_limits(qos="two")},
    ),
    # OverPartQOS: that of the job comes first, and allows more.
    Case(
        "over",
        partitions={"": "QOS=tight"},
        accounts=(
            "add qos tight MaxTRESPerUser=cpu=2",
            "add qos ample MaxTRESPerUser=cpu=3 Flags=OverPartQOS",
            "modify user games set qos+=ample",
        ),
        jobs=(Job("first", "-n2 -t10 --qos=ample", "60"), Job("second", "-n1 -t10 --qos=ample", "20")),
        without={"OverPartQOS": qos_changed("ample", flags=frozenset())},
    ),
    # A limit of the QOS takes the place of that of the account.
    Case(
        "hides",
        accounts=(
            "add account tiny",
            "modify account tiny set GrpTRES=cpu=2",
            "add qos large GrpTRES=cpu=4",
            "add user irc account=tiny qos=normal,large",
        ),
        jobs=(
            GATE,
            Job("first", "-n2 -t10 --qos=large", "60", user="irc"),
            Job("second", "-n1 -t10 --qos=large", "20", user="irc"),
        ),
        without={"the limit of the QOS": no_limits(qos="large")},
    ),
)
PARTITIONS = (
    # Jobs over a limit of their partition wait for ever, and close nothing.
    Case(
        "borders",
        nodes=(CORES, CORES),
        partitions={"": "MaxTime=30 MaxNodes=1", "wide": "MinNodes=2"},
        jobs=(
            Job("gate1", "-w {n1} -n4 -t30", "+10"),
            Job("gate2", "-w {n2} -n4 -t30", "+120"),
            Job("long", "-n1 -t60", "20", never_starts=True),
            Job("wide", "-N2 -t10", "20", never_starts=True),
            Job("low", "-n1 -t10 --nice=100", "60"),
        ),
        without={
            "MaxTime": partition_changed("borders", max_time_min=None),
            "MaxNodes": partition_changed("borders", max_nodes=None),
        },
    ),
    Case(
        "choice",
        nodes=(CORES, CORES),
        partitions={"": "Nodes={n1}", "other": "Nodes={n2}"},
        jobs=(Job("gate", "-n4 -t30", "+90"), Job("either", "-p choice,choice_other -n1 -t10", "30")),
        without={"the other partition": jobs_changed("choice", "either", partitions=("choice",))},
    ),
    Case(
        "shut",
        partitions={"": "", "down": "State=DOWN"},
        jobs=(GATE, Job("never", "-p shut_down -n1 -t10", "20", never_starts=True), LOW),
        without={"State=DOWN": partition_changed("shut_down", state="UP")},
    ),
    # A node that is drained takes no job; without that, it would be the first choice.
    Case(
        "drained",
        nodes=(CORES, f"{CORES} Weight=10"),
        jobs=(Job("first", "-n4 -t10", "120", after=40), Job("second", "-n4 -t10", "20", after=50)),
        commands=((10, "update NodeName={n1} State=DRAIN Reason=test"), (90, "update NodeName={n1} State=RESUME")),
        without={"the drain": lambda site: replace(site, events=())},
    ),
    # Jobs that could run into the reservation avoid its node; `inside` begins with it.
    Case(
        "reserved",
        nodes=(CORES, CORES),
        commands=(
            (
                5,
                "create reservation ReservationName=course StartTime=now+4minutes Duration=3 Nodes={n1} Users=news,root",
            ),
        ),
        jobs=(
            Job("inside", "-n4 -t30 --reservation=course", "30", user="news", after=10),
            Job("long", "-n4 -t30", "60", after=10),
            Job("next", "-n4 -t30 --nice=50", "60", after=10),
            Job("short", "-n4 -t1 --nice=100", "30", after=10),
        ),
        without={"the reservation": no_reservations},
    ),
)
OTHERS = (
    # A job that could not end by its deadline is taken out of the queue.
    Case(
        "deadline",
        jobs=(
            Job("gate", "-n4 -t30", "+150"),
            Job("hopeless", "-n4 -t5 --deadline=now+7minutes", "20", never_starts=True),
            Job("next", "-n4 -t5 --nice=100", "20"),
        ),
        without={"the deadline": jobs_changed("deadline", "hopeless", deadline=None)},
    ),
    Case(
        "licence",
        jobs=(
            Job("first", "-n1 -t10 -L tool", "+90"),
            Job("second", "-n1 -t10 -L tool", "20"),
            Job("low", "-n1 -t10 --nice=100", "20", after=20),
        ),
        without={"licences": jobs_changed("licence", "first", "second", licences={})},
    ),
    Case(
        "array",
        jobs=(
            GATE,
            Job("tasks", "-n1 -t10 --array=0-4%2", "40"),
            Job("low", "-n1 -t10 --nice=100", "20"),
        ),
        without={"%2": jobs_changed("array", "tasks", array_limit=None)},
    ),
    Case(
        "later",
        jobs=(
            GATE,
            Job("begin", "-n1 -t10 --begin=now+150", "20"),
            Job("held", "-n1 -t10 -H", "20"),
            Job("now", "-n1 -t10", "20"),
        ),
        commands=((90, "release {held}"),),
        without={
            "--begin": jobs_changed("later", "begin", begin=None),
            "the hold": jobs_changed("later", "held", released=None),
        },
    ),
    Case(
        "after",
        nodes=(CORES, CORES),
        jobs=(
            Job("well", "-n1 -t10", "60"),
            Job("badly", "-n1 -t10", "sleep 60; exit 1"),
            Job("ok", "-n1 -t10 -d afterok:$well", "20"),
            Job("not_ok", "-n1 -t10 -d afternotok:$badly", "20"),
            Job("any", "-n1 -t10 -d afterany:$badly", "20"),
            Job("minute", "-n1 -t10 -d after:$well+2", "20"),
            Job("twin1", "-n1 -t10 -J after.twin", "90"),
            Job("twin2", "-n1 -t10 -J after.twin -d singleton", "20"),
            Job("low", "-n1 -t10 --nice=100", "20"),
        ),
        without={
            name: jobs_changed("after", name, dependency="") for name in ("ok", "not_ok", "any", "minute", "twin")
        },
    ),
)


def entry(mode: str) -> Case:
    """Return a case of EnforcePartLimits: jobs that are too long for one of their partitions, or for their only one.

    Args:
        mode: NO, ANY or ALL.
    """
    return Case(
        "entry",
        partitions={"": "MaxTime=30", "long": ""},
        jobs=(
            Job("short", "-p entry -n1 -t60", "20", is_refused=mode != "NO", never_starts=mode == "NO"),
            Job("both", "-p entry,entry_long -n1 -t60", "20", is_refused=mode == "ALL"),
            Job("long", "-p entry_long -n1 -t60", "20"),
        ),
        without={} if mode == "ALL" else {"EnforcePartLimits": changed_rules(part_limits="ALL")},
    )


#: Before midnight `mail` uses much, and after it `lp` uses a little. The first calculation of a new day forgets the usage
#: of the day before.
MIDNIGHT_CASE = Case(
    "midnight",
    accounts=("add account fair", "add user mail account=fair", "add user lp account=fair"),
    jobs=(
        Job("much", "-n4 -t30", "150", user="mail"),
        Job("little", "-n4 -t30 --begin=00:01:05", "130", user="lp"),
        Job("second", "-n4 -t1 --begin=00:01:10", "45", user="lp"),
        Job("first", "-n4 -t1 --begin=00:01:10", "45", user="mail"),
    ),
    without={"PriorityUsageResetPeriod": priority_changed(usage_reset="NONE")},
)
