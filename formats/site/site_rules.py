"""The rules of a site from its settings: scheduler, priority, selection of nodes, limits, preemption.

Rule: settings are looked up in slurm.conf, or in `scontrol show config`, whose values read alike (`30 sec`, `NO`). A
value that cannot be read is an error with file and line. What has no setting has the default of the site's version.
Source: slurm.conf(5) of Slurm 22.05; the defaults of 23.11 from its release notes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from ...simulate.errors import ConfigError
from ...simulate.slurm.site import PriorityRules, SiteRules
from ...simulate.slurm.version_rules import NEWEST, OLDEST
from .. import slurm_values
from ..documents.document_errors import found
from .scheduler_parameters import scheduler_rules, unfollowed_parameters
from .slurm_conf import SlurmConf

T = TypeVar("T")
Default = TypeVar("Default")
_VERSION = re.compile(r"(\d{2})\.(\d{2})(?:\.|-|$|\D)", re.ASCII)
#: From this version on, cons_tres and multifactor are the defaults.
_NEW_DEFAULTS = (23, 11)
#: Numbers that sdiag prints below these headings, after these words; microseconds and records.
_BACKFILL, _MAIN = "Backfilling stats", "Main schedule statistics"
_LONGEST_PASS_US = 3_600_000_000


def site_version(text: str) -> tuple[int, int] | None:
    """Return the version in a text such as `22.05.8`; None if it has none."""
    match = _VERSION.match(text.strip())
    return (int(match[1]), int(match[2])) if match else None


def chosen_version(text: str) -> tuple[int, int]:
    """Return the version of Slurm that a user names, such as `25.11`. Raises ConfigError."""
    version = site_version(text)
    if version is None or version < OLDEST:
        raise ConfigError("policy", "version", found(text), "22.05 or later, such as 25.11")
    return version


def setting(conf: SlurmConf, key: str, convert: Callable[[str], T], default: Default, allowed: str) -> T | Default:
    """Return a setting; `default` if it is not set.

    Args:
        conf: the settings.
        key: its name.
        convert: makes a value of the text; raises ValueError.
        default: the value without the setting.
        allowed: what is allowed, for the error.

    Raises:
        ConfigError: `convert` does not know the text.
    """
    text = conf.text(key)
    if not text:
        return default
    try:
        return convert(text)
    except (ValueError, OverflowError):
        raise conf.settings[key.lower()].error(found(text), allowed, key) from None


def _whole(text: str) -> int:
    """Return a whole number, also with a unit behind it (`30 sec`)."""
    return slurm_values.whole(text.split()[0])


def _number(text: str) -> float:
    number = float(text.split()[0])
    if not abs(number) < slurm_values.MOST:
        raise ValueError
    return number


def _flag(text: str) -> bool:
    word = text.lower()
    if word not in ("yes", "no", "true", "false", "1", "0", "up", "down"):
        raise ValueError
    return word in ("yes", "true", "1", "up")


def is_yes(text: str) -> bool:
    """Return whether a value of a line is yes. Raises ValueError for anything but yes and no."""
    return _flag(text)


def _seconds(text: str) -> float:
    """Return the seconds of a span; 0 for none."""
    return slurm_values.span(text) or 0.0


_SPAN = "minutes, h:m:s or d-h:m:s"


#: Values of PriorityUsageResetPeriod.
_RESETS = ("NONE", "NOW", "DAILY", "WEEKLY", "MONTHLY", "QUARTERLY", "YEARLY")


def _reset(text: str) -> str:
    """Return when usage becomes 0, one of `_RESETS`."""
    if text.upper() not in _RESETS:
        raise ValueError(text)
    return text.upper()


def priority_rules(conf: SlurmConf, version: tuple[int, int]) -> PriorityRules:
    """Return the rules of priority/multifactor. Raises ConfigError."""

    def weight(name: str) -> float:
        return float(setting(conf, f"PriorityWeight{name}", _whole, 0, "a whole number"))

    kind = conf.text("PriorityType") or ("priority/multifactor" if version >= _NEW_DEFAULTS else "priority/basic")
    period = setting(conf, "PriorityCalcPeriod", _seconds, 300.0, _SPAN)
    dampening = setting(conf, "FairShareDampeningFactor", _number, 1.0, "a number above 0")
    return PriorityRules(
        is_multifactor="multifactor" in kind.lower(),
        age=weight("Age"),
        association=weight("Assoc"),
        fair_share=weight("FairShare"),
        size=weight("JobSize"),
        partition=weight("Partition"),
        qos=weight("QOS"),
        tres=setting(conf, "PriorityWeightTRES", slurm_values.weights, {}, "NAME=WEIGHT, divided by commas"),
        max_age_s=setting(conf, "PriorityMaxAge", _seconds, 604_800.0, _SPAN),
        half_life_s=setting(conf, "PriorityDecayHalfLife", _seconds, 604_800.0, _SPAN),
        period_s=period or 300.0,
        usage_reset=setting(conf, "PriorityUsageResetPeriod", _reset, "NONE", ", ".join(_RESETS)),
        favours_small=setting(conf, "PriorityFavorSmall", _flag, False, "YES or NO"),
        dampening=dampening if dampening > 0 else 1.0,
        flags=frozenset(word.strip().upper() for word in conf.text("PriorityFlags").split(",") if word.strip()),
    )


def site_rules(conf: SlurmConf, version: tuple[int, int] | None) -> SiteRules:
    """Return the rules of a site.

    Args:
        conf: its settings.
        version: of Slurm; None: not known, the newest.

    Raises:
        ConfigError: a setting cannot be read.
    """
    version = version or NEWEST
    selects, memory, words = _selection(conf, version)
    enforced = conf.text("AccountingStorageEnforce").lower()
    is_safe = "safe" in enforced or "all" in enforced
    limits = is_safe or "limits" in enforced
    enforces_qos = "qos" in enforced or "all" in enforced
    parameters = conf.text("SchedulerParameters")
    preemption = conf.text("PreemptType").lower().rpartition("/")[2]
    exempt = conf.text("PreemptExemptTime")
    dependencies = conf.text("DependencyParameters") + parameters
    return SiteRules(
        version=version,
        scheduler=scheduler_rules(parameters, conf.text("PreemptParameters")),
        priority=priority_rules(conf, version),
        is_backfilling="builtin" not in conf.text("SchedulerType").lower(),
        selects=selects,
        counts_memory=memory,
        is_least_loaded="CR_LLN" in words,
        one_task_per_core="CR_ONE_TASK_PER_CORE" in words,
        default_memory_per_cpu_mib=setting(conf, "DefMemPerCPU", memory_per_cpu, None, "MiB"),
        default_memory_per_node_mib=setting(conf, "DefMemPerNode", memory_limit, None, "MiB"),
        max_memory_per_cpu_mib=setting(conf, "MaxMemPerCPU", memory_limit, None, "MiB"),
        enforces_associations=limits or enforces_qos or "associations" in enforced,
        enforces_limits=limits,
        enforces_qos=enforces_qos,
        is_safe=is_safe,
        complete_wait_s=float(setting(conf, "CompleteWait", _whole, 0, "seconds")),
        kill_wait_s=float(setting(conf, "KillWait", _whole, 30, "seconds")),
        part_limits=setting(conf, "EnforcePartLimits", _part_limits, "NO", "NO, ANY or ALL"),
        over_time_limit_min=setting(conf, "OverTimeLimit", over_time, 0, "minutes, or UNLIMITED"),
        resv_over_run_min=setting(conf, "ResvOverRun", over_time, 0, "minutes, or UNLIMITED"),
        preempt_type="" if preemption == "none" else preemption,
        preempt_mode=conf.text("PreemptMode").upper() or "OFF",
        preempt_exempt_s=0.0 if exempt == "-1" else setting(conf, "PreemptExemptTime", _seconds, 0.0, _SPAN),
        requeues=setting(conf, "JobRequeue", _whole, 1, "0 or 1") != 0,
        message_timeout_s=float(setting(conf, "MessageTimeout", _whole, 10, "seconds")),
        **_power_saving(conf),
        licences=setting(conf, "Licenses", licence_counts, {}, "NAME:COUNT, divided by commas"),
        has_epilog=conf.text("Epilog").lower() not in slurm_values.UNKNOWN,
        kills_invalid_dependents="kill_invalid_depend" in dependencies.lower(),
    )


def _part_limits(text: str) -> str:
    """Return the value of EnforcePartLimits; before Slurm 16.05 it was YES, which is ALL."""
    word = {"YES": "ALL"}.get(text.upper(), text.upper())
    if word not in ("NO", "ANY", "ALL"):
        raise ValueError(text)
    return word


def _power_saving(conf: SlurmConf) -> dict[str, Any]:
    """Return the rules of nodes that sleep, {} where none does."""
    idle = setting(conf, "SuspendTime", _idle_time, None, "seconds, or INFINITE")
    if idle is None or not conf.text("SuspendProgram").replace("(null)", ""):
        return {}
    return {
        "suspend_time_s": idle,
        "suspend_timeout_s": float(setting(conf, "SuspendTimeout", _whole, 30, "seconds")),
        "resume_timeout_s": float(setting(conf, "ResumeTimeout", _whole, 60, "seconds")),
        "suspend_rate": setting(conf, "SuspendRate", _whole, 60, "nodes a minute"),
        "resume_rate": setting(conf, "ResumeRate", _whole, 300, "nodes a minute"),
    }


def _idle_time(text: str) -> float | None:
    """Return seconds; None for none."""
    number = 0 if text.upper() in ("INFINITE", "NONE", "UNLIMITED") else _whole(text)
    return float(number) if number > 0 else None


def _selection(conf: SlurmConf, version: tuple[int, int]) -> tuple[str, bool, frozenset[str]]:
    """Return what is selected, whether memory is counted, and the words of SelectTypeParameters."""
    kind = conf.text("SelectType").lower() or ("select/cons_tres" if version >= _NEW_DEFAULTS else "select/linear")
    words = frozenset(word.strip().upper() for word in conf.text("SelectTypeParameters").split(",") if word.strip())
    resources = [word for word in words if re.fullmatch(r"CR_(CPU|CORE|SOCKET)(_MEMORY)?|CR_MEMORY", word)]
    if not resources and version >= _NEW_DEFAULTS and "linear" not in kind:
        resources = ["CR_CORE_MEMORY"]
    memory = any("MEMORY" in word for word in resources)
    if "linear" in kind:
        return "nodes", memory, words
    for unit, name in (("SOCKET", "sockets"), ("CORE", "cores"), ("CPU", "cpus")):
        if any(f"CR_{unit}" in word for word in resources):
            return name, memory, words
    return "cores", memory, words


def memory_limit(text: str) -> int | None:
    """Return MiB; None for none, which Slurm also writes as 0."""
    return slurm_values.mebibytes(text) or None


def memory_per_cpu(text: str) -> int:
    """Return the MiB of a job that requests none, for each CPU: 0 is no memory, which Slurm shows as UNLIMITED."""
    return slurm_values.mebibytes(text) or 0


def over_time(text: str) -> int | None:
    """Return minutes; None for UNLIMITED."""
    return None if text.upper() in ("UNLIMITED", "INFINITE", "65535") else _whole(text)


def licence_counts(text: str) -> dict[str, int]:
    """Return how many of each licence `a:10,b*2,c=1,d` lists. Raises ValueError."""
    counts: dict[str, int] = {}
    for word in text.replace(" ", "").split(","):
        name, _, number = (
            re.sub(r"[*=]", ":", word).rpartition(":") if re.search(r"[:*=]\d+$", word) else (word, "", "1")
        )
        if name:
            counts[name] = counts.get(name, 0) + slurm_values.whole(number)
    return counts


def with_measured_passes(rules: SiteRules, text: str) -> SiteRules:
    """Return rules whose passes take as long in the mean, and for a job, as `sdiag` measured.

    Args:
        rules: the rules; their backfill passes get no shorter.
        text: what `sdiag` printed, which leaves out the time in which a pass sleeps; "" changes nothing. Its depths
            are rounded down: where passes test less than one job in the mean, a test takes as long as a pass.
    """
    backfill, tests = _printed(text, _BACKFILL, "Mean cycle"), _printed(text, _BACKFILL, "Depth Mean (try depth)")
    main, records = _printed(text, _MAIN, "Mean cycle"), _printed(text, _MAIN, "Mean depth cycle")
    return replace(
        rules,
        pass_s=(rules.pass_s[0], max(rules.pass_s[1], 2e-6 * backfill)),
        test_s=1e-6 * backfill / max(tests, 1),
        record_s=1e-6 * main / records if records else 0.0,
    )


def _printed(text: str, heading: str, words: str) -> int:
    """Return the number behind words below a heading of `sdiag`, at most an hour in microseconds; 0 without it."""
    pattern = rf"^{re.escape(heading)}.*?^\s*{re.escape(words)}:\s*(\d{{1,12}})"
    match = re.search(pattern, text, re.DOTALL | re.MULTILINE | re.ASCII)
    return min(int(match[1]), _LONGEST_PASS_US) if match else 0


#: Settings of what a replay does not have: key, values without an effect, and what it does.
_PLUGINS = (
    ("BurstBufferType", ("", "none", "burst_buffer/none"), "jobs do not wait for their burst buffers"),
    ("MCSPlugin", ("", "none", "mcs/none"), "jobs of different labels may share nodes"),
    ("PrioritySiteFactorPlugin", ("", "none"), "priorities lack its points"),
    ("FederationParameters", ("", "none"), "what other clusters of a federation take is not known"),
    ("ScronParameters", ("", "none"), "cron jobs are jobs like any other"),
)
#: Words that are followed, or that change no start.
_SELECT_WORDS = frozenset((
    "CR_CPU", "CR_CPU_MEMORY", "CR_CORE", "CR_CORE_MEMORY", "CR_SOCKET", "CR_SOCKET_MEMORY", "CR_MEMORY", "CR_LLN",
    "CR_ONE_TASK_PER_CORE", "CR_CORE_DEFAULT_DIST_BLOCK", "NONE",
))  # fmt: skip
_PREEMPT_WORDS = frozenset(("REORDER_COUNT", "SEND_USER_SIGNAL", "STRICT_ORDER", "YOUNGEST_FIRST"))


def _words(conf: SlurmConf, key: str) -> set[str]:
    """Return the words of a setting in upper case, without their values."""
    words = (word.partition("=")[0].strip().upper() for word in conf.text(key).split(","))
    return {word for word in words if word and word.lower() not in slurm_values.UNKNOWN}


def has_tree(conf: SlurmConf) -> bool:
    """Return whether the switches of topology.conf decide where jobs run that do not ask for switches."""
    words = _words(conf, "TopologyParam")
    return _topology(conf) == "tree" and words.isdisjoint({"DRAGONFLY", "TOPOOPTIONAL"})


def _topology(conf: SlurmConf) -> str:
    """Return the plugin of the topology, "" for a flat one."""
    plugin = conf.text("TopologyPlugin").lower().rpartition("/")[2]
    return "" if plugin in ("none", "default", "flat") else plugin


def unfollowed_settings(conf: SlurmConf, *, has_switches: bool = False) -> Iterator[str]:
    """Yield what the settings ask for that a replay does not follow, and what that does.

    Args:
        conf: the settings.
        has_switches: whether the switches of topology/tree are known.
    """
    for key in sorted(conf.repeated):
        yield f"{key} is set more than once: the last value counts, as in Slurm"
    if names := list(unfollowed_parameters(conf.text("SchedulerParameters"))):
        yield f"SchedulerParameters {', '.join(names)}: not followed; passes may test other jobs"
    is_optional = _topology(conf) == "tree" and "TOPOOPTIONAL" in _words(conf, "TopologyParam")
    if _topology(conf) and not has_switches and not is_optional:
        effect = "jobs of several nodes may start on other nodes, or sooner"
        yield f"TopologyPlugin={_topology(conf)}: not followed; {effect}"
    if saving := _power_saving(conf):
        if re.search(r":\d", conf.text("SuspendExcNodes") + conf.text("SuspendExcParts")):
            yield "SuspendExcNodes, SuspendExcParts: all nodes of a list with a number stay awake"
        yield f"SuspendTime: boots take ResumeTimeout, {saving['resume_timeout_s']:.0f} s, the most that Slurm allows"
    if conf.text("MaxMemPerNode") and slurm_values.UNKNOWN.isdisjoint({conf.text("MaxMemPerNode").lower()}):
        yield "MaxMemPerNode: not followed"
    for key, plain, effect in _PLUGINS:
        if (value := conf.text(key).lower()) not in plain and value not in slurm_values.UNKNOWN:
            yield f"{key}={value}: not followed; {effect}"
    for words, effect in (
        (_words(conf, "SelectTypeParameters") - _SELECT_WORDS, "jobs may have other nodes or cores"),
        (_words(conf, "PreemptParameters") - _PREEMPT_WORDS, "other jobs may be preempted"),
    ):
        if words:
            yield f"{', '.join(sorted(words))}: not followed; {effect}"
    if conf.text("JobSubmitPlugins"):
        yield "JobSubmitPlugins: what a plugin changes in a job is seen only where sacct shows it"
