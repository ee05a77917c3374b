"""Laws of a whole replay of a random small site, whatever rules it uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.kernels.slurm.tables import DRAINED, UP, Slurm
from pilotfish.simulate.slurm.site import (
    Site,
    SiteAssociation,
    SiteJob,
    SiteLimits,
    SiteQos,
    SiteReservation,
    SiteSwitch,
)
from pilotfish.simulate.slurm.site_changes import with_drained_nodes, with_load
from pilotfish.simulate.slurm.site_tables import Phases, completed, site_block
from pilotfish.simulate.slurm.twin import SiteStart, advanced, played, replay_site, starts_of
from tests.simulate.slurm import small_sites
from tests.support.slurm_sites import ASPECTS, T0, sites

seeds = st.integers(0, 3)
aspects = st.frozensets(st.sampled_from(sorted(ASPECTS)), max_size=3)
#: All jobs have ended by then, but those that can never start.
END = T0 + 5 * 86400.0
#: Without what makes two jobs different to the main pass.
plain_aspects = st.frozensets(st.sampled_from(("weights", "gpus", "overdue", "shapes")), max_size=2)


class Use(NamedTuple):
    """What a run has on a node from `start` until `end`; memory in MiB."""

    start: float
    end: float
    node: int
    cores: int
    memory: int
    gpus: int


def with_own_clocks(site: Site) -> Site:
    """Return a site whose passes begin by themselves."""
    clocks = {
        "is_deferred": False,
        "batch_sched_delay": 3.0,
        "sched_interval": 60.0,
        "bf_interval": 30.0,
        "bf_max_time": 30.0,
    }
    rules = replace(site.rules, scheduler=replace(site.rules.scheduler, **clocks), epilog_s=(0.1, 2.0))
    return replace(site, rules=rules)


own_sites = aspects.flatmap(sites).map(with_own_clocks)


def state(site: Site, seed: int) -> Slurm:
    """Return the state after a replay."""
    site = completed(site)
    return advanced(site_block(site, Phases.drawn(site, seed), seed=seed), END)


def starts(site: Site, seed: int) -> list[SiteStart]:
    """Return the starts of a replay."""
    return list(starts_of(completed(site), state(site, seed)))


def uses_of(site: Site, seed: int) -> list[Use]:
    """Return what each run has on each of its nodes."""
    block = state(site, seed)
    uses = list[Use]()
    for row in block.starts[: int(block.count["starts"])]:
        pieces = block.pieces[row["piece0"] : row["piece0"] + row["pieces"]]
        end = float(row["end"]) if row["end"] >= 0 else float("inf")
        gpus = site.jobs[int(row["job"])].gpus_per_node
        uses += [Use(float(row["start"]), end, node, cores, memory, gpus) for node, cores, _, memory in pieces.tolist()]
    return uses


@given(own_sites, seeds)
@settings(max_examples=40, deadline=None)
def test_no_resource_is_used_twice(site: Site, seed: int) -> None:
    uses = uses_of(site, seed)
    for use in uses:
        present = [one for one in uses if one.node == use.node and one.start <= use.start < one.end]
        node = site.nodes[use.node]
        assert sum(one.cores for one in present) <= node.cores
        assert sum(one.gpus for one in present) <= node.gpus
        assert not site.rules.counts_memory or sum(one.memory for one in present) <= node.memory_mib


@given(
    st.frozensets(st.sampled_from(sorted(ASPECTS)), max_size=2).flatmap(lambda more: sites(more | {"limits"})), seeds
)
@settings(max_examples=40, deadline=None)
def test_no_number_of_jobs_is_exceeded(site: Site, seed: int) -> None:
    limits = {qos.name: qos.limits for qos in site.qos}
    runs = starts(with_own_clocks(site), seed)
    for run in runs:
        present = [site.jobs[one.job] for one in runs if one.start <= run.start and not (one.end or 1e18) <= run.start]
        by_qos, by_user = Counter(job.qos for job in present), Counter((job.qos, job.user) for job in present)
        for qos, number in by_qos.items():
            assert limits[qos].group_jobs is None or number <= limits[qos].group_jobs
        for (qos, _), number in by_user.items():
            assert limits[qos].user_jobs is None or number <= limits[qos].user_jobs
        physics = next(one.limits for one in site.associations if one.account == "physics" and not one.user)
        is_hidden = any(one.group_jobs is not None for one in limits.values())
        assert physics.group_jobs is None or is_hidden or len(present) <= physics.group_jobs


class Run(NamedTuple):
    """A run, with the CPUs that it has on each of its nodes."""

    job: SiteJob
    start: float
    end: float
    cpus: dict[int, int]
    memory: int  # of all nodes, MiB


def resources_of(site: Site, seed: int) -> list[Run]:
    """Return what each run has."""
    block, runs = state(site, seed), list[Run]()
    for row in block.starts[: int(block.count["starts"])]:
        pieces = block.pieces[row["piece0"] : row["piece0"] + row["pieces"]]
        cpus = dict(zip(pieces["node"].tolist(), pieces["cpus"].tolist(), strict=True))
        end = float(row["end"]) if row["end"] >= 0 else float("inf")
        memory = int(pieces["memory"].sum())
        runs.append(Run(site.jobs[int(row["job"])], float(row["start"]), end, cpus, memory))
    return runs


def amounts(runs: Iterable[Run]) -> dict[str, int]:
    """Return what runs have together; a node counts once."""
    shares = [run.cpus for run in runs]
    return {
        "cpu": sum(sum(cpus.values()) for cpus in shares),
        "node": len({node for cpus in shares for node in cpus}),
        "mem": sum(run.memory for run in runs),
        "gres/gpu": sum(run.job.gpus_per_node * len(run.cpus) for run in runs),
    }


@given(
    st.frozensets(st.sampled_from(sorted(ASPECTS)), max_size=2).flatmap(lambda more: sites(more | {"limits"})), seeds
)
@settings(max_examples=40, deadline=None)
def test_no_amount_of_resources_is_exceeded(site: Site, seed: int) -> None:
    qos = {one.name: one.limits for one in site.qos}
    associations = {one.user or one.account: one.limits for one in site.associations}
    runs = resources_of(with_own_clocks(site), seed)
    for run in runs:
        present = [one for one in runs if one.start <= run.start < one.end]
        service, user = qos[run.job.qos], associations[run.job.user]
        same_qos = [one for one in present if one.job.qos == run.job.qos]
        bounds = [
            (service.group_tres, same_qos),
            (service.user_tres, [one for one in same_qos if one.job.user == run.job.user]),
            (service.max_tres, [run]),
            ({name: most for name, most in user.max_tres.items() if name not in service.max_tres}, [run]),
            (associations["physics"].group_tres, present),
        ]
        for limits, group in bounds:
            assert all(amounts(group)[name] <= most for name, most in limits.items())


tres = st.fixed_dictionaries({}, optional={"mem": st.sampled_from((300, 1000, 2400)), "gres/gpu": st.integers(1, 3)})


@given(
    st.frozensets(st.sampled_from(sorted(ASPECTS - {"limits"})), max_size=1).flatmap(
        lambda more: sites(more | {"memory", "gpus"})
    ),
    st.lists(tres, min_size=4, max_size=4),
    seeds,
)
@settings(max_examples=60, deadline=None)
def test_no_amount_of_memory_or_gpus_is_exceeded(site: Site, tres: list[dict[str, float]], seed: int) -> None:
    of_qos, of_user, of_job, of_account = tres
    qos = SiteQos("normal", limits=SiteLimits(group_tres=of_qos, user_tres=of_user, max_tres=of_job))
    account = SiteAssociation("physics", parent=0, limits=SiteLimits(group_tres=of_account))
    users = (SiteAssociation("physics", "alice", 1), SiteAssociation("physics", "bob", 1))
    rules = replace(site.rules, enforces_limits=True)
    site = replace(site, rules=rules, qos=(qos,), associations=(SiteAssociation("root"), account, *users))
    runs = resources_of(with_own_clocks(site), seed)
    for run in runs:
        present = [one for one in runs if one.start <= run.start < one.end]
        same_user = [one for one in present if one.job.user == run.job.user]
        hidden = {name: most for name, most in of_account.items() if name not in of_qos}
        for limits, group in ((of_qos, present), (of_user, same_user), (of_job, [run]), (hidden, present)):
            assert all(amounts(group)[name] <= most for name, most in limits.items())


@given(own_sites, st.integers(0, 20), st.integers(1, 30), st.integers(0, 7), seeds)
@settings(max_examples=40, deadline=None)
def test_a_reservation_is_empty_of_jobs_outside_it(site: Site, begin: int, length: int, node: int, seed: int) -> None:
    name = site.nodes[node % len(site.nodes)].name
    start, end = T0 + 60.0 * begin, T0 + 60.0 * (begin + length)
    site = replace(site, reservations=(SiteReservation("r", start, end, (name,)),))
    for run in starts(site, seed):
        limit = 60.0 * (site.jobs[run.job].limit_min or 0)
        assert name not in run.nodes or run.start + limit <= start or run.start >= end


@given(plain_aspects.flatmap(sites).map(with_own_clocks), seeds)
@settings(max_examples=40, deadline=None)
def test_the_main_pass_keeps_the_order_of_a_partition(site: Site, seed: int) -> None:
    """With one partition and one priority: who is submitted first."""
    first = {run.job: run for run in replay_site(site, seed).starts}
    for number, run in first.items():
        before = [first[one].start for one in range(number) if one in first]
        assert run.by != "main" or max(before, default=0.0) <= run.start


@given(own_sites, seeds)
@settings(max_examples=30, deadline=None)
def test_the_same_site_phases_and_seed_give_the_same_starts(site: Site, seed: int) -> None:
    assert starts(site, seed) == starts(replace(site), seed)


@given(own_sites, seeds)
@settings(max_examples=30, deadline=None)
def test_a_change_that_changes_nothing_changes_no_start(site: Site, seed: int) -> None:
    changed = with_drained_nodes(with_load(site, 1.0), [site.nodes[0].name], END, None)
    assert starts(changed, seed) == starts(site, seed)


def test_a_replay_ends_where_switches_keep_jobs_from_starting() -> None:
    """Below no common switch are n0 and n1, and below none the others: a job of two nodes never starts."""
    switches = (SiteSwitch("s0", ("n0",)), SiteSwitch("s1", ("n1",)))
    jobs = [small_sites.job(id="1", min_nodes=2, max_nodes=2), small_sites.job(id="2", max_nodes=1)]
    site = completed(replace(small_sites.site(jobs), switches=switches))
    times = list[float]()
    block = played(site_block(site, Phases.drawn(site, 0)), site, times.append)
    assert {start.nodes for start in starts_of(site, block)} <= {("n0",), ("n1",)} and int(block.count["starts"]) == 1
    assert times[-1] <= T0 + 2 * 86400.0
    assert block.nodes["state"].tolist() == [UP, UP, *[DRAINED] * 4]


def test_a_job_that_begins_after_all_others_have_ended_starts() -> None:
    late = small_sites.job(id="1", begin=small_sites.T0 + 20 * 86400.0)
    starts = list(replay_site(small_sites.site([late])).starts)
    assert [start.job for start in starts] == [0] and starts[0].start >= small_sites.T0 + 20 * 86400.0


def test_a_replay_does_not_wait_for_events_that_no_job_needs() -> None:
    """A node that comes back in the year 2286 counts for nothing; one that comes back in a month is waited for."""
    site = small_sites.site([small_sites.job(id="1", max_nodes=1)])
    names = [node.name for node in site.nodes]
    times = list[float]()
    far = completed(with_drained_nodes(site, names[:1], T0, 1e10))
    played(site_block(far, Phases.drawn(far, 0)), far, times.append)
    assert times[-1] <= T0 + 2 * 86400.0
    far = completed(with_drained_nodes(site, names, T0 - 60.0, 1e10))
    assert int(played(site_block(far, Phases.drawn(far, 0)), far, times.append).count["starts"]) == 0
    assert times[-1] <= T0 + 3 * 86400.0
    (start,) = replay_site(with_drained_nodes(site, names, T0 - 60.0, T0 + 30 * 86400.0)).starts
    assert start.start >= T0 + 30 * 86400.0
