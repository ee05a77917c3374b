"""Who shares what in each partition, and which of its settings keep pilotfish from placing a job there.

Rule: pure; partitions that are alike share a finding.
Source: slurm.conf(5), PARTITION CONFIGURATION of 22.05; newer releases print further keys, which are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...findings import NOTE, OK, WARNING, Finding
from ..handover import Selection
from .asked import Asked

#: key -> (value that means nothing, what another value means for pilotfish)
LIMITS = {
    "AllowAccounts": ("ALL", "only some accounts may use it"),
    "AllowGroups": ("ALL", "only some groups may use it"),
    "AllowQos": ("ALL", "only some QOS may use it"),
    "RootOnly": ("NO", "only root may submit to it"),
    "ReqResv": ("NO", "jobs there need a reservation, and those are left to Slurm"),
}


def findings(asked: Asked, selection: Selection) -> Iterator[Finding]:
    """Sharing first, then what is out of the ordinary; of partitions that are handed over, where there are any."""
    chosen = [words for words in asked.partitions if words["PartitionName"] in selection.partitions]
    looked_at = asked.partitions if selection.comment or not chosen else chosen
    if asked.setting("SelectType") == "select/linear":
        yield Finding(WARNING, "sharing", "select/linear gives whole nodes away: there is nothing to pair")
    else:
        kinds: dict[str, list[str]] = {}
        for words in looked_at:
            kinds.setdefault(sharing(words), []).append(words["PartitionName"])
        for kind, names in kinds.items():
            level = NOTE if "whole" in kind or "one user" in kind else OK
            yield Finding(level, "sharing", f"{_partitions(names)}: {kind}")
    odd: dict[str, list[str]] = {}
    for words in looked_at:
        if words.get("State", "UP") != "UP":
            odd.setdefault(f"State={words['State']}", []).append(words["PartitionName"])
    for state, names in odd.items():
        yield Finding(WARNING, "partition", f"{_partitions(names)}: {state}, so no job starts there",
                      tuple(f"scontrol update PartitionName={name} State=UP" for name in names))  # fmt: skip
    for key, (usual, meaning) in LIMITS.items():
        names = [words["PartitionName"] for words in looked_at if words.get(key, usual) not in (usual, "(null)", "N/A")]
        if names:
            yield Finding(NOTE, "partition", f"{_partitions(names)}: {meaning} ({key})")


def sharing(words: Mapping[str, str]) -> str:
    """What jobs of a partition share."""
    shares, _, most = words.get("OverSubscribe", "NO").partition(":")
    if shares == "EXCLUSIVE" or words.get("Exclusive", "NO").upper() in ("NODE", "TOPO", "YES"):
        return "jobs get whole nodes (OverSubscribe=EXCLUSIVE), so none has neighbours"
    if words.get("ExclusiveUser") == "YES" or words.get("Exclusive", "").upper() == "USER":
        return "nodes belong to one user at a time (ExclusiveUser), so only their jobs are neighbours"
    if shares == "FORCE":
        return f"up to {most or 4} jobs share each core (OverSubscribe=FORCE), and slow each other down"
    if shares == "YES":
        return f"up to {most or 4} jobs that ask for it share each core (OverSubscribe=YES)"
    return "jobs share nodes, and each core belongs to one job"


def _partitions(names: list[str]) -> str:
    return f"partition {names[0]}" if len(names) == 1 else f"partitions {', '.join(names)}"
