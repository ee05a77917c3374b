"""Check Slurm's scheduling: the cost of a hold, what jobs of each partition share or block, and what keeps jobs out.

Rule: pure; numbers are computed from the site's settings; equal partitions share a finding.
Source: slurm.conf(5): SchedulerParameters, PriorityFlags, PriorityWeightAge, PriorityMaxAge, SelectTypeParameters,
DefMemPerCPU, JobDefaults, PARTITION CONFIGURATION of 22.05 (further keys of newer releases are ignored); sched_conf of
22.05.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ...findings import NOTE, OK, WARNING, Finding
from ..handed_over.ownership import SlurmSelection
from .questions import Answers

#: Slurm's own defaults: seconds, seconds, jobs, minutes.
SCHED_INTERVAL_S, BF_INTERVAL_S, QUEUE_DEPTH, BF_WINDOW_MIN = 60, 30, 100, 1440
EXAMPLE_S = 600.0
#: Key -> (value without effect, what any other value means for pilotfish).
LIMITS = {
    "AllowAccounts": ("ALL", "only some accounts may use it"),
    "AllowGroups": ("ALL", "only some groups may use it"),
    "AllowQos": ("ALL", "only some QOS may use it"),
    "RootOnly": ("NO", "only root may submit to it"),
    "ReqResv": ("NO", "its jobs need a reservation, and those are left to Slurm"),
}


def findings(answers: Answers, selection: SlurmSelection) -> Iterator[Finding]:
    """Yield scheduling first, then the partitions: those that are handed over, if any, otherwise all."""
    yield from _scheduling(answers)
    chosen = [words for words in answers.partitions if words["PartitionName"] in selection.partitions]
    relevant = answers.partitions if selection.comment or not chosen else chosen
    if answers.config["SelectType"] == "select/linear":
        yield Finding(WARNING, "sharing", "select/linear allocates whole nodes: pilotfish cannot pair jobs")
    else:
        for kind, names in _by(relevant, sharing).items():
            level = NOTE if "whole" in kind or "one user" in kind else OK
            yield Finding(level, "sharing", f"{_partitions(names)}: {kind}")
        yield from _default_memory(answers)
    for state, names in _by(relevant, lambda words: words.get("State", "UP")).items():
        if state != "UP":
            make = tuple(f"scontrol update PartitionName={name} State=UP" for name in names)
            yield Finding(WARNING, "partition", f"{_partitions(names)}: State={state}, so no job starts there", make)
    for key, (usual, meaning) in LIMITS.items():
        names = [words["PartitionName"] for words in relevant if words.get(key, usual) not in (usual, "(null)", "N/A")]
        if names:
            yield Finding(NOTE, "partition", f"{_partitions(names)}: {meaning} ({key})")


def _default_memory(answers: Answers) -> Iterator[Finding]:
    """Yield the partitions, handed over or not, in which a job without --mem gets all memory of its nodes."""
    site_type = answers.config["SelectTypeParameters"]
    names = set[str]()
    for words in () if _has_default_memory(answers.config) else answers.partitions:
        partition_type = words.get("SelectTypeParameters", "NONE")
        counts_memory = "MEMORY" in (site_type if partition_type == "NONE" else partition_type).upper()
        if counts_memory and not _has_default_memory(words) and "whole nodes" not in sharing(words):
            names.add(words["PartitionName"])
    if names:
        nodes = [node for node in answers.nodes if not names.isdisjoint(node.partitions)]
        shares = [int(node.memory / 2**20 / node.cpus) for node in nodes if node.cpus]
        effect = "a job without --mem gets all memory of its nodes, so no other job fits next to it"
        message = f"{_partitions(sorted(names))}: {effect} (no DefMemPerCPU, DefMemPerNode or DefMemPerGPU)"
        remedy = f"DefMemPerCPU={min(filter(None, shares), default='...')}   # MiB, in slurm.conf"
        yield Finding(WARNING, "memory", message, (remedy,))


def _has_default_memory(settings: Mapping[str, str]) -> bool:
    """Return whether a configuration or a partition sets the memory of a job that asks for none."""
    defaults = {settings.get(key, "UNLIMITED") for key in ("DefMemPerCPU", "DefMemPerNode")}
    return bool(defaults - {"UNLIMITED", "0"}) or "DefMemPerGPU=" in settings.get("JobDefaults", "")


def _scheduling(answers: Answers) -> Iterator[Finding]:
    """Yield what happens after a hold, the priority that a hold costs, the backfill scheduler, preemption."""
    pause_s = answers.config.number("sched_interval", SCHED_INTERVAL_S)
    depth = answers.config.number("default_queue_depth", QUEUE_DEPTH)
    yield Finding(OK, "grace", f"after its hold Slurm starts a job within {pause_s} s (sched_interval) if it is among "
                  f"the first {depth} (default_queue_depth); with holds of {max(10 * pause_s, 120)} s and more this "
                  "delay matters little")  # fmt: skip
    yield _age(answers)
    scheduler = answers.config["SchedulerType"]
    if scheduler == "sched/backfill":
        backfill = answers.config.number("bf_interval", BF_INTERVAL_S)
        hours = answers.config.number("bf_window", BF_WINDOW_MIN) / 60
        yield Finding(OK, "backfill", f"Slurm plans every {backfill} s (bf_interval), {hours:.3g} h ahead (bf_window); "
                      "it reserves no nodes for a job that is held for pilotfish")  # fmt: skip
    else:
        yield Finding(NOTE, "backfill", f"{scheduler or 'unknown'} makes no reservations: no nodes are kept free for a "
                      "wide job, with or without pilotfish")  # fmt: skip
    if answers.config["PreemptType"] not in ("", "preempt/none"):
        yield Finding(NOTE, "preemption", f"{answers.config['PreemptType']}: a job that is preempted and requeued "
                      "loses its pin within seconds, and Slurm starts it again")  # fmt: skip


def _age(answers: Answers) -> Finding:
    if answers.config["PriorityType"] != "priority/multifactor":
        return Finding(OK, "priority", "no priority grows with waiting here: a begin time costs none")
    if "ACCRUE_ALWAYS" in answers.config.words("PriorityFlags"):
        return Finding(OK, "priority", "ACCRUE_ALWAYS: waiting for a begin time counts as waiting")
    weight, longest = answers.config["PriorityWeightAge"], answers.seconds("PriorityMaxAge", 7 * 86400.0)
    lost = int(weight) * min(1.0, EXAMPLE_S / max(longest, 1.0)) if weight.isdigit() else 0.0
    if lost == 0:
        return Finding(OK, "priority", "PriorityWeightAge=0: a begin time costs no priority")
    message = (
        f"a job gains no age while it waits for its begin time: ten minutes of it cost {lost:.3g} points of priority"
    )
    return Finding(NOTE, "priority", message, ("PriorityFlags=ACCRUE_ALWAYS   # in slurm.conf, if it matters",))


def sharing(words: Mapping[str, str]) -> str:
    """Return what jobs of a partition share, as a clause."""
    shares, _, job_count = words.get("OverSubscribe", "NO").partition(":")
    if shares == "EXCLUSIVE" or words.get("Exclusive", "NO").upper() in ("NODE", "TOPO", "YES"):
        return "jobs get whole nodes (OverSubscribe=EXCLUSIVE), so none has neighbours"
    if words.get("ExclusiveUser") == "YES" or words.get("Exclusive", "").upper() == "USER":
        return "nodes belong to one user at a time (ExclusiveUser), so only their jobs are neighbours"
    if shares == "FORCE":
        return f"up to {job_count or 4} jobs share each core (OverSubscribe=FORCE), and slow each other down"
    if shares == "YES":
        return f"up to {job_count or 4} jobs that ask for it share each core (OverSubscribe=YES)"
    return "jobs share nodes, and each core belongs to one job"


def _by(partitions: list[dict[str, str]], key: Callable[[Mapping[str, str]], str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for words in partitions:
        groups.setdefault(key(words), []).append(words["PartitionName"])
    return groups


def _partitions(names: list[str]) -> str:
    return f"partition {names[0]}" if len(names) == 1 else f"partitions {', '.join(names)}"
