"""The jobs that a partition takes: by numbers of nodes, time limit, accounts and QOS, and the QOS of an association.

Source: slurm.conf(5), sacctmgr(1) of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..arrays import Array
from ..kernels.slurm import job_limits as kinds
from .job_columns import Coded, SiteJobs, distinct
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


class PartitionSlots:
    """Jobs in their partitions, as columns: a row is a job in one of its partitions.

    Args:
        site: the site.
        jobs: rows of `tables.JOB`; the columns limit, time_min, min_nodes, max_nodes, assoc, qos, reservation and parts
            are read.
        job_parts: rows of partitions of each job.
    """

    def __init__(self, site: Site, jobs: Array, job_parts: Array) -> None:
        self._site, self._jobs = site, jobs
        self._job = np.repeat(np.arange(len(jobs)), jobs["parts"])
        #: The row of the partition of each row.
        self.part = job_parts[: len(self._job)]

    def of_jobs(self, *names: str) -> Iterator[Array]:
        """Yield columns of the jobs, with a value for each row."""
        return (self._jobs[name][self._job] for name in names)

    def node_numbers(self) -> tuple[Array, Array]:
        """Return the least and the most nodes of each row by its partition; -1 for no limit."""
        (qos,) = self.of_jobs("qos")
        first, pairs = distinct(self.part, qos)
        numbers = [
            node_numbers(self._site, self._site.partitions[part], one)
            for part, one in zip(self.part[first].tolist(), qos[first].tolist(), strict=True)
        ]
        table = np.array(numbers, np.int64).reshape(len(first), 2)[pairs]
        return table[:, 0].copy(), table[:, 1].copy()

    def allowances(self, least: Array, most: Array) -> Array:
        """Return whether the partition of each row takes the job: `job_limits.NEVER`, SHORTENED or ALLOWED.

        Args:
            least: nodes that a job of each row gets at least.
            most: nodes that it gets at most; -1 for no limit.
        """
        qos, association, reservation = self.of_jobs("qos", "assoc", "reservation")
        first, owners = distinct(association, qos)
        pairs = zip(association[first].tolist(), qos[first].tolist(), strict=True)
        answers = [has_qos(self._site, *pair) for pair in pairs]
        is_refused = self._have_wrong_nodes(least, most) | ~self._are_taken() | ~np.array(answers, bool)[owners]
        is_refused |= (reservation < 0) & self._need_reservations(qos)
        return np.asarray(np.where(is_refused, kinds.NEVER, self._by_time()))

    def rejections(self, least: Array, most: Array) -> Array:
        """Return 1 where sbatch rejects the job of a row for its nodes or its time limit, by EnforcePartLimits."""
        mode, number = self._site.rules.part_limits, len(self._jobs)
        breaks = self._have_wrong_nodes(least, most) | (self._by_time() != kinds.ALLOWED)
        broken = np.bincount(self._job[breaks], minlength=number)
        rejected = {"ALL": broken > 0, "ANY": broken == self._jobs["parts"]}.get(mode, np.zeros(number, bool))
        return np.asarray(rejected[self._job], np.int64)

    def _have_wrong_nodes(self, least: Array, most: Array) -> Array:
        """Return whether the job of each row wants fewer or more nodes than its partition gives to a job."""
        max_nodes, min_nodes = self.of_jobs("max_nodes", "min_nodes")
        too_few = (max_nodes >= 0) & (max_nodes < least)
        return np.asarray(too_few | ((min_nodes > most) & (most >= 0)))

    def _by_time(self) -> Array:
        """Return whether the job of each row keeps the time limit of its partition, as `allowances` does."""
        limit, time_min, qos = self.of_jobs("limit", "time_min", "qos")
        parts = self._site.partitions
        longest = np.array([np.inf if one.max_time_min is None else one.max_time_min for one in parts])[self.part]
        passes = np.array([has_flag(one, "PartitionTimeLimit") for one in self._site.qos], bool)[qos]
        is_short = (time_min >= 0) & (time_min <= longest)
        refused = np.where(is_short, kinds.SHORTENED, kinds.NEVER)
        return np.asarray(np.where((limit <= longest) | passes, kinds.ALLOWED, refused))

    def _need_reservations(self, qos: Array) -> Array:
        """Return whether the partition, or the QOS, of each row takes only jobs in a reservation."""
        of_part = np.array([part.requires_reservation for part in self._site.partitions], bool)
        of_qos = np.array([has_flag(one, "RequiresReservation") for one in self._site.qos], bool)
        return np.asarray(of_part[self.part] | of_qos[qos])

    def _are_taken(self) -> Array:
        """Return whether the lists of the partition allow the account and the QOS that the job of each row names."""
        columns = SiteJobs.of(self._site.jobs)
        names = Coded.of(job.qos for job in columns.patterns)
        qos, account = names.codes[columns.pattern][self._job], columns.accounts.codes[self._job]
        first, owners = distinct(self.part, account, qos)
        keys = (self.part[first].tolist(), account[first].tolist(), qos[first].tolist())
        answers = [
            takes_owner(self._site.partitions[part], columns.accounts.values[account], names.values[one])
            for part, account, one in zip(*keys, strict=True)
        ]
        return np.asarray(np.array(answers, bool)[owners])
