"""Each rule of Slurm that a site can ask for is followed, or the report says that it is not.

Rule: a rule is *followed* if the site that is read, or what the kernels know of it, differs with it; else a sentence in
`Site.unknown` has its name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pilotfish.formats.site.site_folder import read_site
from pilotfish.simulate.slurm.site import Site
from tests.support import effort
from tests.support.slurm_site_files import CONF, RESERVATIONS, SERVICES, records, row, write_site

VERSION = "SLURM_VERSION = {}\n"
#: Words of SchedulerParameters. Those of which a site that is read shows nothing are in the report.
SCHEDULER = (
    "sched_interval=30", "sched_min_interval=12000000", "batch_sched_delay=20", "defer", "default_queue_depth=1000",
    "partition_job_depth=10", "sched_max_job_start=5", "max_sched_time=4", "build_queue_timeout=2000000",
    "max_rpc_cnt=150", "bf_interval=60", "bf_window=4320", "bf_resolution=300", "bf_max_job_test=1000", "bf_max_time=60",
    "bf_yield_interval=1000000", "bf_yield_sleep=100000", "bf_yield_rpc_cnt=5", "bf_continue", "bf_max_job_start=5",
    "bf_max_job_user=5", "bf_max_job_part=5", "bf_max_job_user_part=5", "bf_max_job_assoc=5", "bf_max_job_array_resv=5",
    "bf_job_part_count_reserve=5", "bf_min_age_reserve=60", "bf_min_prio_reserve=60", "bf_one_resv_per_job",
    "bf_node_space_size=50", "bf_running_job_reserve", "bf_licenses", "bf_window_linear=60", "bf_busy_nodes",
    "assoc_limit_stop", "bf_hetjob_prio=min", "bf_hetjob_immediate", "bf_allow_magnetic_slot", "bf_topopt_enable",
    "time_min_as_soft_limit", "requeue_delay=30", "pack_serial_at_end", "preempt_reorder_count=3", "preempt_strict_order",
    "preempt_youngest_first", "reduce_completing_frag", "max_switch_wait=60", "kill_invalid_depend",
)  # fmt: skip
SETTINGS = (
    "CompleteWait=30", "KillWait=60", "OverTimeLimit=5", "ResvOverRun=5", "JobRequeue=0", "MessageTimeout=20",
    "EnforcePartLimits=ALL", "EnforcePartLimits=ANY", "Epilog=/x",
    "Licenses=a:10", "DefMemPerCPU=100", "DefMemPerNode=100", "MaxMemPerCPU=1000", "MaxMemPerNode=1000",
    "PreemptType=preempt/qos", "PreemptType=preempt/other", "PreemptMode=SUSPEND,GANG", "PreemptExemptTime=00:10:00",
    "PriorityMaxAge=1-0", "PriorityWeightAge=5", "PriorityWeightAssoc=5", "PriorityWeightFairShare=5",
    "PriorityWeightJobSize=5", "PriorityWeightPartition=5", "PriorityWeightQOS=5", "PriorityWeightTRES=cpu=5",
    "PriorityWeightTRES=license/a=5", "PriorityDecayHalfLife=1-0", "PriorityUsageResetPeriod=MONTHLY",
    "PriorityCalcPeriod=1", "PriorityFavorSmall=YES", "FairShareDampeningFactor=3", "PriorityType=priority/basic",
    "PrioritySiteFactorPlugin=site_factor/own", "SchedulerType=sched/builtin", "SelectType=select/linear",
    "SelectTypeParameters=CR_Socket", "SelectTypeParameters=CR_CPU", "SelectTypeParameters=CR_Core,CR_LLN",
    "SelectTypeParameters=CR_Core,CR_ONE_TASK_PER_CORE", "SelectTypeParameters=CR_Core_Memory,CR_Pack_Nodes",
    "TopologyPlugin=topology/tree", "BurstBufferType=burst_buffer/lua", "MCSPlugin=mcs/account",
    "JobSubmitPlugins=lua", "AccountingStorageEnforce=associations", "AccountingStorageEnforce=limits",
    "AccountingStorageEnforce=safe,qos", "PreemptParameters=strict_order", "PreemptParameters=reclaim_licenses",
    "SuspendTime=300\nSuspendProgram=/x", "SuspendTime=9\nSuspendProgram=/x\nSuspendExcNodes=n1:1",
    "DependencyParameters=kill_invalid_depend", "ScronParameters=enable",
    *(f"PriorityFlags={flag}" for flag in (
        "ACCRUE_ALWAYS", "CALCULATE_RUNNING", "DEPTH_OBLIVIOUS", "INCR_ONLY", "MAX_TRES", "MAX_TRES_GRES", "NO_FAIR_TREE",
        "NO_NORMAL_ALL", "NO_NORMAL_ASSOC", "NO_NORMAL_PART", "NO_NORMAL_QOS", "NO_NORMAL_TRES", "SMALL_RELATIVE_TO_TIME",
    )),
)  # fmt: skip
PARTITION = (
    "PriorityTier=7", "PriorityJobFactor=7", "Priority=7", "DefaultTime=5", "MaxTime=7", "MinNodes=2", "MaxNodes=2",
    "MaxCPUsPerNode=3", "MaxCPUsPerSocket=2", "DefMemPerCPU=77", "DefMemPerNode=77", "MaxMemPerCPU=77",
    "MaxMemPerNode=77", "OverSubscribe=EXCLUSIVE", "OverSubscribe=YES:4", "OverSubscribe=FORCE:4", "ExclusiveUser=YES",
    "Exclusive=NODE", "Exclusive=USER", "Exclusive=TOPO", "LLN=YES", "QOS=high", "AllowAccounts=lab", "AllowQos=high",
    "DenyAccounts=lab", "DenyQos=high", "State=DOWN", "State=DRAIN", "State=INACTIVE", "OverTimeLimit=5",
    "PreemptMode=REQUEUE", "GraceTime=60", "TRESBillingWeights=CPU=2", "TRESBillingWeights=license/a=2", "ReqResv=YES",
    "SelectTypeParameters=CR_Socket", "JobDefaults=DefCpuPerGPU=2",
)  # fmt: skip
NODE = (
    "Weight=5", "Features=fat", "Gres=gpu:2", "MemSpecLimit=100", "CoreSpecCount=1", "CPUSpecList=0-1", "State=FUTURE",
    "State=CLOUD", "State=DOWN",
)  # fmt: skip
#: Column and value of `sacctmgr show qos`.
QOS = {
    "GraceTime": "00:01:00", "Preempt": "high", "PreemptMode": "cancel", "PreemptExemptTime": "00:05:00",
    "UsageFactor": "2.0", "UsageThres": "0.5", "LimitFactor": "2.0", "MinPrioThres": "100", "GrpTRES": "cpu=4",
    "GrpTRESMins": "cpu=4", "GrpTRESRunMins": "cpu=4", "GrpJobs": "2", "GrpSubmit": "2", "GrpWall": "01:00:00",
    "MaxTRES": "gres/scratch=2", "MaxTRESPerNode": "cpu=2", "MaxTRESMins": "cpu=2", "MaxWall": "01:00:00",
    "MaxTRESPU": "cpu=2", "MaxJobsPU": "2", "MaxSubmitPU": "2", "MaxTRESPA": "cpu=2", "MaxJobsPA": "2",
    "MaxSubmitPA": "2", "MinTRES": "cpu=2", "MaxTRESRunMinsPU": "cpu=2", "MaxTRESRunMinsPA": "cpu=2",
    "GrpJobsAccrue": "2", "MaxJobsAccruePU": "2", "MaxJobsAccruePA": "2",
}  # fmt: skip
QOS_FLAGS = (
    "DenyOnLimit", "PartitionTimeLimit", "PartitionMaxNodes", "PartitionMinNodes", "OverPartQOS", "NoReserve", "NoDecay",
    "RequiresReservation", "EnforceUsageThreshold", "UsageFactorSafe", "Relative", "SomethingNew",
)  # fmt: skip
#: Flags that are read, but do nothing: a sentence must say so.
UNFOLLOWED_FLAGS = {"EnforceUsageThreshold", "SomethingNew"}
RESERVATION_FLAGS = (
    "MAINT", "OVERLAP", "FLEX", "DAILY", "WEEKDAY", "WEEKEND", "WEEKLY", "HOURLY", "TIME_FLOAT", "MAGNETIC", "PURGE_COMP",
    "REPLACE", "REPLACE_DOWN", "ANY_NODES", "PART_NODES", "ALL_NODES",
)  # fmt: skip
UNFOLLOWED_RESERVATIONS = {"TIME_FLOAT", "PURGE_COMP", "REPLACE", "REPLACE_DOWN", "ANY_NODES"}
OPTIONS = (
    "-N 2", "-N 1-2", "-n 3", "-c 2", "--ntasks-per-node=2 -N 2", "--mincpus=4", "--mem=77", "--mem-per-cpu=77",
    "--mem-per-gpu=7 --gpus-per-node=1", "--gres=gpu:1", "--gpus=1", "--gpus-per-node=1", "--gpus-per-task=1",
    "--gpus-per-socket=1", "--cpus-per-gpu=2 -n 2", "--ntasks-per-gpu=2", "--tres-per-task=gres/gpu:1", "--exclusive",
    "--exclusive=user", "--exclusive=mcs", "--exclusive=topo", "-s", "--overcommit", "--contiguous", "-C fat",
    "-C [fat|thin]", "-C fat*2&thin*1", "--prefer=fat", "-w n2", "-x n1", "--time-min=3", "-p fast", "--qos=high,normal", "--reservation=course", "--reservation=course,other", "-L a:1", "--nice=5", "--priority=5",
    "-H", "--begin=2026-03-02T09:00:00", "--deadline=2026-03-02T09:00:00", "-a 1-3%2", "-d afterok:1", "-d after:1+5",
    "-d afterany:1", "-d afternotok:1", "-d singleton", "-d afterburstbuffer:1", "-d afterok:1?afterok:2",
    "--kill-on-invalid-dep=yes", "--switches=1@60", "--spread-job", "--use-min-nodes", "--hint=nomultithread",
    "--threads-per-core=1", "--sockets-per-node=2", "--cores-per-socket=2", "--ntasks-per-core=1",
    "--ntasks-per-socket=1", "--core-spec=1", "--tmp=100", "--bb=x", "--no-requeue", "--something-new=1",
)  # fmt: skip


def shown(site: Site) -> tuple[object, ...]:
    """Return what a replay sees of a site."""
    return replace(site, unknown=(), jobs=()), tuple(site.jobs)


def check(name: str, before: Site, after: Site) -> None:
    """Check that a rule is followed, or that a sentence has its name or its value."""
    sentences = " ".join(set(after.unknown) - set(before.unknown)).lower()
    words = {word.lower() for part in name.replace("-d ", "").split(",") for word in part.split("=")} - {""}
    if shown(before) == shown(after):
        assert any(word.lstrip("-").partition(":")[0] in sentences for word in words), (name, sentences)


def read(folder: Path, **files: str | None) -> Site:
    folder.mkdir(exist_ok=True)
    return read_site(write_site(folder, scontrol_config_txt=files.pop("config", VERSION.format("25.11.1")), **files))


def cases() -> Iterator[tuple[str, dict[str, str], dict[str, str]]]:
    """Yield the name of each rule, and the files of a site without and with it."""
    for word in SCHEDULER:
        yield word, {}, {"slurm_conf": f"{CONF}SchedulerParameters={word}\n"}
    for setting in SETTINGS:
        key = setting.partition("=")[0]
        plain = "".join(line for line in CONF.splitlines(keepends=True) if not line.startswith(f"{key}="))
        yield setting, {}, {"slurm_conf": f"{plain}{setting}\n"}
    main, first = "PartitionName=main Nodes=n[1-4] Default=YES", "NodeName=n[1-4] CPUs=8 Sockets=2 CoresPerSocket=4"
    for key in PARTITION:
        plain = CONF.replace(f"{main} MaxTime=240 DefaultTime=60", main)
        yield key, {"slurm_conf": plain}, {"slurm_conf": plain.replace(main, f"{main} {key}")}
    for key in NODE:
        yield key, {}, {"slurm_conf": CONF.replace(f"{first} ", f"{first} {key} ")}
    for column, value in QOS.items():
        yield (
            f"QOS {column}",
            {"qos_psv": f"Name|{column}\nnormal|\nhigh|\n"},
            {"qos_psv": f"Name|{column}\nnormal|\nhigh|{value}\n"},
        )
    for flag in QOS_FLAGS:
        yield (
            f"QOS {flag}",
            {},
            {"qos_psv": SERVICES.replace("normal|0|00:00:00||cluster||", f"normal|0|00:00:00||cluster|{flag}|")},
        )
    for flag in RESERVATION_FLAGS:
        yield f"reservation {flag}", {}, {"reservations_psv": RESERVATIONS.replace("SPEC_NODES", flag)}
    for option in OPTIONS:
        line = f"sbatch {option} --wrap=x"
        tasks = {"ReqCPUS": "", "ReqTRES": "", "AllocCPUS": "2", "ReqMem": ""}
        sacct = (
            records(row(SubmitLine=text, JobID=job, **tasks)) for text, job in (("sbatch --wrap=x", "1"), (line, "1"))
        )
        before, after = sacct
        yield f"option {option}", {"sacct_psv": before}, {"sacct_psv": after}


CASES = {name: (before, after) for name, before, after in cases()}


@pytest.mark.parametrize("name", effort.some(CASES))
def test_a_rule_is_followed_or_named(name: str, tmp_path: Path) -> None:
    before, after = CASES[name]
    with_it = read(tmp_path / "after", **after)
    check(
        name.removeprefix("QOS ").removeprefix("reservation ").removeprefix("option "),
        read(tmp_path / "before", **before),
        with_it,
    )


@pytest.mark.parametrize(
    "name",
    [
        *(f"QOS {flag}" for flag in sorted(UNFOLLOWED_FLAGS)),
        *(f"reservation {flag}" for flag in sorted(UNFOLLOWED_RESERVATIONS)),
    ],
)
def test_flags_that_are_read_and_do_nothing_are_named(name: str, tmp_path: Path) -> None:
    _, after = CASES[name]
    flag = name.split()[1]
    assert any(flag in text for text in read(tmp_path / "after", **after).unknown)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("bf_licenses", "bf_licenses"), ("bf_running_job_reserve", "bf_running_job_reserve"),
        ("time_min_as_soft_limit", "time_min_as_soft_limit"), ("max_rpc_cnt=100", "max_rpc_cnt"),
        ("requeue_delay=5", "requeue_delay"),
    ],
)  # fmt: skip
def test_parameters_that_are_read_and_do_less_than_in_slurm_are_named(words: str, name: str, tmp_path: Path) -> None:
    site = read(tmp_path / "after", slurm_conf=f"{CONF}SchedulerParameters={words}\n")
    assert any(name in text for text in site.unknown)
