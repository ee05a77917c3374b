"""SchedulerParameters as Slurm reads them: each name by a case-insensitive search in the one text.

Rule: so `defer` is found in `defer_batch`, and `bf_interval=` in `xbf_interval=`, as in Slurm. A number is the digits
that follow, 0 without any; one out of range is Slurm's default.
Source: slurm.conf(5) of Slurm 22.05.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...simulate.slurm.site import SchedulerRules

#: Field -> name, least and largest value, and what one unit is in the field's unit.
_NUMBERS: dict[str, tuple[str, int, int, float]] = {
    "sched_interval": ("sched_interval=", -1, 2**31, 1.0),
    "sched_min_interval": ("sched_min_interval=", 0, 2**31, 1e-6),
    "batch_sched_delay": ("batch_sched_delay=", 0, 2**31, 1.0),
    "default_queue_depth": ("default_queue_depth=", 0, 2**31, 1),
    "partition_job_depth": ("partition_job_depth=", 0, 2**31, 1),
    "sched_max_job_start": ("sched_max_job_start=", 0, 2**31, 1),
    "max_sched_time": ("max_sched_time=", 1, 2**31, 1.0),
    "bf_interval": ("bf_interval=", -1, 10_800, 1.0),
    "bf_window_min": ("bf_window=", 1, 43_200, 1.0),
    "bf_resolution": ("bf_resolution=", 1, 3600, 1),
    "bf_max_job_test": ("bf_max_job_test=", 1, 1_000_000, 1),
    "bf_max_time": ("bf_max_time=", 1, 3600, 1.0),
    "bf_yield_interval": ("bf_yield_interval=", 1, 10_000_000, 1e-6),
    "bf_yield_sleep": ("bf_yield_sleep=", 1, 10_000_000, 1e-6),
    "bf_max_job_start": ("bf_max_job_start=", 0, 10_000, 1),
    "bf_max_job_user": ("bf_max_job_user=", 0, 1_000_000, 1),
    "bf_max_job_part": ("bf_max_job_part=", 0, 1_000_000, 1),
    "bf_max_job_user_part": ("bf_max_job_user_part=", 0, 1_000_000, 1),
    "bf_max_job_assoc": ("bf_max_job_assoc=", 0, 1_000_000, 1),
    "bf_max_job_array_resv": ("bf_max_job_array_resv=", 0, 1000, 1),
    "bf_job_part_count_reserve": ("bf_job_part_count_reserve=", 0, 100_000, 1),
    "bf_min_age_reserve": ("bf_min_age_reserve=", 0, 2_592_000, 1.0),
    "bf_min_prio_reserve": ("bf_min_prio_reserve=", 0, 2**32 - 1, 1),
    "bf_window_linear": ("bf_window_linear=", 0, 2**31, 1.0),
    "bf_node_space_size": ("bf_node_space_size=", 2, 2_000_000, 1),
    "preempt_reorder_count": ("preempt_reorder_count=", 0, 2**31, 1),
}
#: Field -> word that sets it.
_WORDS = {
    "is_deferred": "defer", "bf_continue": "bf_continue", "bf_one_resv_per_job": "bf_one_resv_per_job",
    "bf_busy_nodes": "bf_busy_nodes", "bf_licenses": "bf_licenses",
    "bf_running_job_reserve": "bf_running_job_reserve", "preempt_strict_order": "preempt_strict_order",
    "preempt_youngest_first": "preempt_youngest_first", "time_min_as_soft_limit": "time_min_as_soft_limit",
    "pack_serial_at_end": "pack_serial_at_end",
}  # fmt: skip
#: Words that are read elsewhere, or change nothing in a replay.
_OTHERS = frozenset((
    "assoc_limit_stop", "defer_batch", "disable_job_shrink",
    "enable_hetero_jobs", "enable_job_state_cache", "enable_user_top", "ignore_prefer_validation",
    "kill_invalid_depend", "max_array_tasks", "max_job_bf",
    "no_backup_scheduling", "requeue_setup_env_fail", "salloc_wait_nodes", "sbatch_wait_nodes",
    "spec_cores_first",
))  # fmt: skip
#: Names that a replay follows.
PARAMETERS = tuple(
    sorted(name.rstrip("=") for name in (*(number[0] for number in _NUMBERS.values()), *_WORDS.values()))
)


def scheduler_rules(text: str, preemption: str = "") -> SchedulerRules:
    """Return what SchedulerParameters says.

    Args:
        text: its value.
        preemption: the value of PreemptParameters; its words are those of SchedulerParameters after `preempt_`.
    """
    text += "".join(f",preempt_{word.strip()}" for word in preemption.split(",") if word.strip())
    values: dict[str, float | bool] = {}
    folded = text.lower()
    for field, (name, least, largest, unit) in _NUMBERS.items():
        number = _number(folded, name)
        if number is None and field == "bf_max_job_test":
            number = _number(folded, "max_job_bf=")
        if number is not None and least <= number <= largest:
            values[field] = number * unit
    values |= {field: True for field, word in _WORDS.items() if word in folded}
    values["goes_past_limits"] = "assoc_limit_stop" not in folded
    values["bf_running_job_reserve"] = bool(values.get("bf_running_job_reserve")) or "bf_licenses" in folded
    return SchedulerRules(**values)  # type: ignore[arg-type]


def _number(text: str, name: str) -> int | None:
    """Return the number behind the first place of `name`; None if it is not there."""
    place = text.find(name)
    if place < 0:
        return None
    digits = re.match(r"\s*([+-]?\d{1,12})", text[place + len(name) :], re.ASCII)
    return int(digits[1]) if digits else 0


def unfollowed_parameters(text: str) -> Iterator[str]:
    """Yield the names in SchedulerParameters that a replay does not follow."""
    names = {name.rstrip("=") for name, *_ in _NUMBERS.values()} | set(_WORDS.values()) | _OTHERS
    for word in text.split(","):
        name = word.partition("=")[0].strip()
        if name and name.lower() not in names:
            yield name
