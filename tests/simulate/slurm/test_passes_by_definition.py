"""The passes start what a naive reading of the rules starts, on the same nodes, and plan the same."""

from __future__ import annotations

from hypothesis import given, settings

from pilotfish.simulate.kernels.object_cache import load
from pilotfish.simulate.slurm.site import Site
from pilotfish.simulate.slurm.site_tables import Phases, completed, site_block
from pilotfish.simulate.slurm.twin import ADVANCE, BACKFILL, FULL_MAIN, MAIN, starts_of
from tests.reference.slurm_machine import Machine
from tests.reference.slurm_passes import Start
from tests.reference.slurm_replay import PlainReplay
from tests.support.slurm_sites import NEVER_S, passes_of, sites

KINDS = {"main": MAIN, "full": FULL_MAIN, "backfill": BACKFILL}


def by_twin(site: Site, passes: list[tuple[int, str]]) -> list[Start]:
    """Return the starts of the twin, whose passes are asked for."""
    site = completed(site)
    block = site_block(site, Phases(0.0, float(NEVER_S), float(NEVER_S), 0, float(NEVER_S)))
    call = load("slurm.site_requests")
    for time, kind in passes:
        call(block.address, ADVANCE, float(time))
        call(block.address, KINDS[kind], float(time))
    return [Start(one.job, one.partition, one.nodes, int(one.start), one.by) for one in starts_of(site, block)]


def by_reference(site: Site, passes: list[tuple[int, str]]) -> list[Start]:
    """Return the starts of the reference."""
    return PlainReplay(Machine(completed(site)), epilog=int(site.rules.epilog_s[0]), limit_phase=0).run(passes)


@given(sites(), passes_of())
@settings(max_examples=60, deadline=None)
def test_jobs_that_ask_for_cores(site: Site, passes: list[tuple[int, str]]) -> None:
    assert by_twin(site, passes) == by_reference(site, passes)
