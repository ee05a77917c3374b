"""Scheduler parameters as Slurm searches them, and the rules that other settings make."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotfish.formats.site.scheduler_parameters import scheduler_rules, unfollowed_parameters
from pilotfish.formats.site.site_rules import licence_counts, site_rules, site_version, with_measured_passes
from pilotfish.formats.site.slurm_conf import read_slurm_conf
from pilotfish.simulate.slurm.site import SchedulerRules, SiteRules


def rules(folder: Path, text: str, version: tuple[int, int] | None = None) -> SiteRules:
    path = folder / "slurm.conf"
    path.write_text(text)
    return site_rules(read_slurm_conf(path), version)


def test_defaults() -> None:
    assert scheduler_rules("") == SchedulerRules()


def test_names_are_searched_in_the_text_without_case() -> None:
    assert scheduler_rules("DEFER_batch").is_deferred
    assert scheduler_rules("xbf_interval=20").bf_interval == 20
    assert scheduler_rules("BF_Continue").bf_continue
    assert scheduler_rules("bf_interval=10,bf_interval=20").bf_interval == 10  # the first one is result
    assert not scheduler_rules("assoc_limit_stop").goes_past_limits
    assert scheduler_rules("bf_licenses").bf_running_job_reserve


def test_numbers_units_and_ranges() -> None:
    result = scheduler_rules(
        "bf_yield_interval=1000000,sched_min_interval=12000000,bf_interval=-1,bf_window=99999,bf_resolution=60s,"
        "max_job_bf=77,bf_max_job_user_part=3,bf_max_job_user=15,bf_max_time="
    )
    assert (result.sched_min_interval, result.bf_interval) == (12.0, -1)
    assert (result.bf_window_min, result.bf_resolution, result.bf_max_job_test) == (1440, 60, 77)
    assert (result.bf_max_job_user_part, result.bf_max_job_user, result.bf_max_time) == (3, 15, 0)


def test_what_is_not_followed_is_named() -> None:
    assert list(unfollowed_parameters("bf_continue,bf_topopt_enable,defer, bf_hetjob_prio=min")) == [
        "bf_topopt_enable", "bf_hetjob_prio",
    ]  # fmt: skip


def test_selection_of_resources(tmp_path: Path) -> None:
    cons = "SelectType=select/cons_tres\nSelectTypeParameters="
    assert rules(tmp_path, "KillWait=1", (22, 5)).selects == "nodes"  # select/linear before 23.11
    newer = rules(tmp_path, "KillWait=1", (23, 11))
    assert (newer.selects, newer.counts_memory, newer.priority.is_multifactor) == ("cores", True, True)
    sockets = rules(tmp_path, f"{cons}CR_SOCKET_MEMORY,CR_LLN,CR_ONE_TASK_PER_CORE")
    assert (sockets.selects, sockets.counts_memory) == ("sockets", True)
    assert sockets.is_least_loaded
    assert sockets.one_task_per_core
    assert rules(tmp_path, f"{cons}cr_cpu").selects == "cpus"
    assert not rules(tmp_path, f"{cons}CR_Core").counts_memory


@pytest.mark.parametrize(
    ("text", "enforced"),
    [("", "0000"), ("associations", "1000"), ("limits", "1100"), ("safe", "1101"), ("qos", "1010"), ("all", "1111"),
     ("associations,limits,qos,safe", "1111")],
)  # fmt: skip
def test_what_is_enforced(tmp_path: Path, text: str, enforced: str) -> None:
    result = rules(tmp_path, f"KillWait=1\nAccountingStorageEnforce={text}\n")
    flags = (result.enforces_associations, result.enforces_limits, result.enforces_qos, result.is_safe)
    assert "".join(str(int(flag)) for flag in flags) == enforced


def test_priority_and_times(tmp_path: Path) -> None:
    result = rules(
        tmp_path,
        "PriorityType=priority/multifactor\nPriorityWeightTRES=CPU=1000,Mem=2,GRES/gpu=7\nPriorityCalcPeriod=2\n"
        "PriorityDecayHalfLife=14-0\nPriorityMaxAge=1-0\nPriorityFavorSmall=yes\n"
        "PriorityFlags=Small_Relative_To_Time,no_fair_tree\nOverTimeLimit=UNLIMITED\nPreemptType=preempt/qos\n"
        "PreemptMode=suspend,gang\nPreemptExemptTime=-1\nLicenses=a:10,b*2,c\nDependencyParameters=kill_invalid_depend\n"
        "CompleteWait=32\nResvOverRun=5\nPriorityUsageResetPeriod=Monthly\n",
    )
    priority = result.priority
    assert priority.tres == {"cpu": 1000, "mem": 2, "gres/gpu": 7}
    assert (priority.period_s, priority.half_life_s, priority.max_age_s) == (120, 14 * 86_400, 86_400)
    assert priority.favours_small and priority.usage_reset == "MONTHLY"
    assert priority.flags == {"SMALL_RELATIVE_TO_TIME", "NO_FAIR_TREE"}
    assert (result.over_time_limit_min, result.preempt_type, result.preempt_mode) == (None, "qos", "SUSPEND,GANG")
    assert (result.preempt_exempt_s, result.licences, result.complete_wait_s) == (0.0, {"a": 10, "b": 2, "c": 1}, 32)
    assert result.kills_invalid_dependents
    assert result.resv_over_run_min == 5


def test_nodes_sleep_only_where_a_program_puts_them_to_sleep(tmp_path: Path) -> None:
    program = "SuspendProgram=/usr/sbin/off\n"
    for text in ("SuspendTime=300\n", f"{program}SuspendTime=-1\n", f"{program}SuspendTime=INFINITE\n", program):
        assert rules(tmp_path, text).suspend_time_s is None
    text = f"{program}SuspendTime=600\nSuspendTimeout=45\nResumeTimeout=90\nSuspendRate=7\nResumeRate=0\n"
    result = rules(tmp_path, text)
    assert (result.suspend_time_s, result.suspend_timeout_s, result.resume_timeout_s) == (600.0, 45.0, 90.0)
    assert (result.suspend_rate, result.resume_rate) == (7, 0)


def test_basic_priority_is_the_old_default(tmp_path: Path) -> None:
    assert not rules(tmp_path, "KillWait=1", (23, 2)).priority.is_multifactor
    assert rules(tmp_path, "KillWait=1").priority.is_multifactor  # of a version that is not known


def test_versions_and_licences() -> None:
    assert site_version("22.05.8") == (22, 5)
    assert site_version("26.05.3-1") == (26, 5)
    assert site_version("unknown") is None
    assert licence_counts("matlab:2,fluent") == {"matlab": 2, "fluent": 1}


@pytest.mark.parametrize(
    ("mean_us", "pass_s"), [(2_500_000, (0.0, 5.0)), (30_000, (0.0, 0.1)), (10**11, (0.0, 7200.0))]
)
def test_long_backfill_passes_are_as_long_as_sdiag_measured(mean_us: int, pass_s: tuple[float, float]) -> None:
    text = f"Main schedule statistics\n\tMean cycle:   9999999\n\nBackfilling stats\n\tLast cycle: 7\n\tMean cycle: {mean_us}\n"
    assert with_measured_passes(SiteRules(), text).pass_s == pytest.approx(pass_s)
    assert with_measured_passes(SiteRules(), text.partition("Backfilling")[0]) == SiteRules()


def test_a_test_takes_what_sdiag_measured_for_a_pass_and_its_depth() -> None:
    main = "Main schedule statistics (microseconds):\n\tMean cycle:   7000\n\tMean depth cycle:  2\n"
    text = f"{main}\nBackfilling stats\n\tMean cycle: 60000\n\tDepth Mean: 9\n\tDepth Mean (try depth): 6\n"
    rules = with_measured_passes(SiteRules(), text)
    assert (rules.test_s, rules.record_s) == pytest.approx((0.01, 0.0035))
    rules = with_measured_passes(SiteRules(), main)
    assert (rules.test_s, rules.record_s) == pytest.approx((0.0, 0.0035))


def test_where_passes_test_less_than_a_job_in_the_mean_a_test_takes_as_long_as_a_pass() -> None:
    text = "Backfilling stats\n\tMean cycle: 11140\n\tDepth Mean: 0\n\tDepth Mean (try depth): 0\n"
    assert with_measured_passes(SiteRules(), text).test_s == pytest.approx(0.01114)
