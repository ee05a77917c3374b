"""A small site, its state, and jobs that start and end on it by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pilotfish.simulate.kernels.interpreted import Tables
from pilotfish.simulate.kernels.slurm import job_limits as limits
from pilotfish.simulate.kernels.slurm.tables import RUNNING, Slurm
from pilotfish.simulate.slurm.site import (
    Site,
    SiteAssociation,
    SiteJob,
    SiteLimits,
    SiteNode,
    SitePartition,
    SiteQos,
    SiteRules,
)
from pilotfish.simulate.slurm.site_tables import Phases, completed, site_block

T0 = 1_000_000
NODES = tuple(SiteNode(f"n{i}", cpus=4, cores=4, memory_mib=1000, gpus=2) for i in range(6))
RULES = SiteRules(enforces_associations=True, enforces_limits=True, enforces_qos=True)
PARTITION = SitePartition("main", tuple(node.name for node in NODES), is_default=True, max_time_min=600)
ALL_QOS = frozenset({"normal", "high"})


def job(user: str = "alice", **changes: Any) -> SiteJob:
    """Return a job of an hour; alice and bob are in physics, carol in chem, both below science."""
    account = "chem" if user == "carol" else "physics"
    plain = SiteJob(
        changes.pop("id", "1"),
        "job",
        user,
        account,
        "normal",
        ("main",),
        submit=T0,
        limit_min=60,
        run_s=600.0,
        max_nodes=len(NODES),
    )
    return replace(plain, **changes)


def site(
    jobs: Sequence[SiteJob], *, associations: dict[str, SiteLimits] | None = None, partition: SitePartition = PARTITION,
    rules: SiteRules = RULES, qos: Sequence[SiteQos] = (), **changes: Any,
) -> Site:  # fmt: skip
    """Return a site; `associations`: limits of accounts and users by name."""
    limits_by_name = associations or {}
    rows = (("root", "", -1), ("science", "", 0), ("physics", "", 1), ("chem", "", 1))
    users = (("physics", "alice", 2), ("physics", "bob", 2), ("chem", "carol", 3))
    return Site(
        rules, NODES, (partition,), qos=(*qos, SiteQos("normal")),
        associations=tuple(
            SiteAssociation(account, user, parent, qos=ALL_QOS, limits=limits_by_name.get(user or account, SiteLimits()))
            for account, user, parent in (*rows, *users)
        ), jobs=tuple(jobs), **changes,
    )  # fmt: skip


class Hand:
    """The state of a site, whose jobs are started and ended by hand."""

    def __init__(self, place: Site) -> None:
        self.site = completed(place)
        self.block = site_block(self.site, Phases(0.0, 0.0, 0.0, 0, 0.0))
        self.world: Any = Tables(Slurm, self.block.address)
        self.block.clock["now"] = T0

    def choose(self, nodes: Sequence[int]) -> None:
        """Choose nodes for the next test."""
        self.world.count.chosen = len(nodes)
        for place, node in enumerate(nodes):
            self.world.chosen[place] = node

    def is_blocked(self, job: int, nodes: Sequence[int], cpus: int = 1, memory: int = 100, part: int = 0) -> bool:
        """Return whether limits block a job on these nodes, with so many CPUs and MiB on each."""
        if limits.is_blocked_before_nodes(self.world, job, part, T0):
            return True
        self.choose(nodes)
        number, gpus = len(nodes), int(self.world.jobs[job].gpus)
        return bool(
            limits.is_blocked_with_nodes(
                self.world, job, part, T0, cpus * number, number, memory * number, gpus * number
            )
        )

    def start(self, job: int, nodes: Sequence[int], cpus: int = 1, memory: int = 100, part: int = 0) -> None:
        """Start a job with so many CPUs and MiB on each of these nodes."""
        row, count = self.world.jobs[job], self.world.count
        row.state, row.part, row.start, row.billing = RUNNING, part, int(self.world.clock.now), cpus * len(nodes)
        row.until = row.start + 60 * row.limit
        row.piece0, row.pieces = job * len(NODES), len(nodes)
        for place, node in enumerate(nodes, job * len(NODES)):
            piece = self.world.pieces[place]
            piece.node, piece.cpus, piece.memory = node, cpus, memory
        self.world.running[count.running] = job
        count.running += 1
        limits.count_start(self.world, job)

    def end(self, job: int) -> None:
        """End a job."""
        running = [int(row) for row in self.world.running[: self.world.count.running] if row != job]
        self.world.running[: len(running)] = running
        self.world.count.running = len(running)
        limits.count_end(self.world, job)

    def pass_time(self, seconds: int) -> None:
        """Let time pass, up to a calculation of usage."""
        self.world.clock.now += seconds
        limits.age_run_minutes(self.world, int(self.world.clock.now))
