"""The jobs that a partition takes: by numbers of nodes, lists of accounts and QOS, and the QOS of an association.

Source: slurm.conf(5), sacctmgr(1) of Slurm 22.05.
"""

from __future__ import annotations

from .site import Site, SitePartition, SiteQos


def has_flag(qos: SiteQos, flag: str) -> bool:
    """Return whether a QOS has a flag, in upper or lower case."""
    return flag.lower() in {name.lower() for name in qos.flags}


def node_numbers(site: Site, partition: SitePartition, qos: int) -> tuple[int, int]:
    """Return the least and the most nodes of a job by its partition; -1 for no limit."""
    least, most = partition.min_nodes, -1 if partition.max_nodes is None else partition.max_nodes
    if qos >= 0:
        least = 0 if has_flag(site.qos[qos], "PartitionMinNodes") else least
        most = -1 if has_flag(site.qos[qos], "PartitionMaxNodes") else most
    return least, most


def takes_owner(partition: SitePartition, account: str, qos: str) -> bool:
    """Return whether the lists of a partition allow an account and a QOS; Allow overrides Deny."""
    return all(
        name in allowed if allowed is not None else name not in denied
        for name, allowed, denied in (
            (account, partition.allow_accounts, partition.deny_accounts),
            (qos, partition.allow_qos, partition.deny_qos),
        )
    )


def has_qos(site: Site, association: int, qos: int) -> bool:
    """Return whether an association has a QOS, where Slurm looks at that."""
    if not site.rules.enforces_qos or association < 0 or qos < 0:
        return True
    names = site.associations[association].qos
    return not names or site.qos[qos].name in names
