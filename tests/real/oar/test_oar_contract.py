"""The OAR adapter keeps the contract of all adapters, against a real OAR: with the shim, and as an ordinary user."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from adapter_contract import AdapterContract, Mind, ended, until, view
from oar_cluster import OarCluster
from oar_mounts import group
from oar_site import Shim
from oar_world import OarWorld

from pilotfish.adapters.oar.job_views import state_of
from pilotfish.simulate.model.plan import Place, Submit, SubmitAhead
from pilotfish.simulate.model.snapshot import JobState

pytestmark = pytest.mark.xdist_group(group(1))


class TestOarContract(AdapterContract):
    """With the shim."""

    #: Other keys differ in the argv only, which the tests of the adapter read back.
    keys = ("a b\n\"c'; rm -rf /", "x" * 300)

    def test_a_job_is_previewed_starts_once_and_completes(self, world: Any, nodes: tuple[str, ...]) -> None:
        """Its start time is when its process began."""
        super().test_a_job_is_previewed_starts_once_and_completes(world, nodes)
        (job,) = world.reader.world().jobs
        assert job.decided and job.began
        began = float((world.notes / "a.runs").read_text())
        took = max(0.0, job.began - job.decided)  # both in whole seconds; what takes longer is less exact
        assert began == pytest.approx(job.began, abs=1.5 + took)
        assert view(world.adapter.snapshot(), "flow/a").start_time == job.began

    @pytest.mark.parametrize("does", [Mind.HOLD, Mind.CANCEL])
    def test_what_a_user_has_changed_is_the_users(self, world: Any, placing: tuple[str, ...], does: Mind) -> None:
        """OAR has no command for anything else."""
        super().test_what_a_user_has_changed_is_the_users(world, placing, does)

    def test_a_job_that_oar_submits_again_is_still_the_same_job(
        self, world: OarWorld, placing: tuple[str, ...], oar: OarCluster
    ) -> None:
        """Its node does not answer OAR's ping when it is launched there."""
        key = world.hand_over("a", 0.2, 600)
        script = oar.path / "ping"
        script.write_text(f'#!/bin/sh\nfor n in "$@"; do [ "$n" = {placing[1]} ] && echo "$n" >&2; done; exit 0\n')
        script.chmod(0o755)
        oar.ping = str(script)
        oar.configure()
        try:
            world.adapter.apply(Place(key, view(world.adapter.snapshot(), key).job, placing[1:2]))
            done = ended(world, key)
        finally:
            oar.ping = "/bin/true"
            oar.configure()
            oar.run("oarnodesetting", "-h", placing[1], "-s", "Alive")
        chain = [job for job in world.reader.world().jobs if job.first == int(key.partition("/")[2])]
        assert len(chain) == 2 and {state for state, _ in map(state_of, chain)} == {JobState.UNKNOWN, done.state}
        assert (done.state, world.runs("a")) == (JobState.COMPLETED, 1)
        assert done.nodes and done.nodes[0] != placing[1]
        recalled = world.adapter.recall({key: 0.0})
        assert recalled[key].state is JobState.COMPLETED

    def test_a_job_that_was_submitted_ahead_does_nothing_without_us_after_a_failure(
        self, world: OarWorld, placing: tuple[str, ...]
    ) -> None:
        world.hold_s = 4
        world.restart()
        first, second = world.job("a", 0.2, exit_code=3), world.job("b", 0.2)
        world.adapter.apply(Submit("flow/a", first, placing[:1], followed=True))
        world.adapter.apply(SubmitAhead("flow/b", second, (("flow/a", first),)))
        alone = view(until(world, lambda snapshot: "it did nothing" in view(snapshot, "flow/b").reason), "flow/b")
        assert (alone.state, alone.restartable, alone.ahead) == (JobState.PENDING, True, False)
        assert world.runs("b") == 0
        world.adapter.apply(Submit("flow/b", second, placing[1:2]))
        assert ended(world, "flow/b").nodes == placing[1:2]
        assert (world.runs("a"), world.runs("b")) == (1, 1)

    @pytest.fixture
    def world(self, oar: OarCluster, shim: Shim, tmp_path: Path) -> OarWorld:
        return OarWorld(tmp_path, oar, shim)


class TestOarUsersContract(AdapterContract):
    """As an ordinary user: no shim, no database, and no job is handed over.

    Only what a pin and `oarstat` change is tested; the rest would repeat what the shim's run shows.
    """

    @pytest.fixture
    def world(self, oar: OarCluster, tmp_path: Path) -> OarWorld:
        return OarWorld(tmp_path, oar, None)


KEPT = (
    "test_a_job_is_previewed_starts_once_and_completes", "test_jobs_end_by_a_cancel_their_walltime_or_themselves",
    "test_a_job_on_two_nodes_has_both_and_cores_on_both_or_none",
)  # fmt: skip
for name in dir(AdapterContract):
    if name.startswith("test_") and name not in KEPT:
        setattr(TestOarUsersContract, name, None)
