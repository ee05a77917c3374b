"""The passes start what a naive reading of the rules starts, on the same nodes, and plan the same starts."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.kernels.object_cache import load
from pilotfish.simulate.kernels.slurm.tables import PENDING
from pilotfish.simulate.slurm.ordered_jobs import OrderedJobs
from pilotfish.simulate.slurm.site import Site
from pilotfish.simulate.slurm.site_tables import Phases, completed, site_block
from pilotfish.simulate.slurm.twin import BACKFILL, FULL_MAIN, MAIN, advanced, starts_of
from tests.reference.slurm_machine import Machine
from tests.reference.slurm_passes import Start
from tests.reference.slurm_replay import Passes, PlainReplay
from tests.support.slurm_sites import ASPECTS, NEVER_S, passes_of, sites

KINDS = {"main": MAIN, "full": FULL_MAIN, "backfill": BACKFILL}
Plans = list[dict[int, int]]


def by_twin(
    site: Site, passes: Passes, *, plans: bool = True, handed: OrderedJobs | None = None
) -> tuple[list[Start], Plans]:
    """Return the starts of the twin, whose passes are asked for, and the planned starts after each of them.

    Args:
        site: the site.
        passes: when, and of what kind.
        plans: whether backfill passes plan the start of each job; otherwise they end after the last that may start.
        handed: jobs that something else than Slurm orders.
    """
    site = completed(site)
    block = site_block(site, Phases(0.0, float(NEVER_S), float(NEVER_S), 0, float(NEVER_S)), handed=handed)
    block.count["plans"] = int(plans)
    call, planned = load("slurm.site_requests"), Plans()
    for time, kind in passes:
        block = advanced(block, float(time))
        call(block.address, KINDS[kind], float(time))
        rows = block.jobs[["state", "expected"]].tolist()
        planned.append({job: start for job, (state, start) in enumerate(rows) if state == PENDING and start})
    return [Start(one.job, one.partition, one.nodes, int(one.start), one.by) for one in starts_of(site, block)], planned


def by_reference(site: Site, passes: Passes) -> tuple[list[Start], Plans]:
    """Return the same of the reference."""
    return PlainReplay(Machine(completed(site)), epilog=int(site.rules.epilog_s[0]), limit_phase=0).run(passes)


def check(site: Site, passes: Passes) -> None:
    starts, plans = by_reference(site, passes)
    assert by_twin(site, passes) == (starts, plans)
    assert by_twin(site, passes, plans=False)[0] == starts


@given(sites(), passes_of())
@settings(max_examples=40, deadline=None)
def test_jobs_that_ask_for_cores(site: Site, passes: Passes) -> None:
    check(site, passes)


@given(st.frozensets(st.sampled_from(sorted(ASPECTS)), min_size=1, max_size=3).flatmap(sites), passes_of())
@settings(max_examples=50, deadline=None)
def test_sites_that_use_a_few_rules(site: Site, passes: Passes) -> None:
    check(site, passes)


@given(sites(ASPECTS), passes_of())
@settings(max_examples=20, deadline=None)
def test_sites_that_use_all_rules(site: Site, passes: Passes) -> None:
    check(site, passes)


@given(
    st.frozensets(st.sampled_from(sorted(ASPECTS)), max_size=2).flatmap(
        lambda others: sites(others | {"reservations"})
    ),
    passes_of(),
)
@settings(max_examples=60, deadline=None)
def test_sites_with_reservations(site: Site, passes: Passes) -> None:
    check(site, passes)
