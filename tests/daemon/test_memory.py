"""What is remembered of programs, and given to jobs that name it."""

from __future__ import annotations

import pytest

from pilotfish.daemon.learned import widened
from pilotfish.daemon.memory import Memory
from pilotfish.profiles.store import ProfileStore
from pilotfish.simulate.job import Job, Profile, Provenance, ThreadGroup


@pytest.mark.parametrize(("cores", "used"), [(1, False), (2, True), (3, True), (8, True)])
def test_a_named_profile_is_used_where_the_job_has_cores_for_its_threads(tmp_path, cores, used):
    store = ProfileStore(tmp_path / "profiles.sqlite")
    store.put(Profile((ThreadGroup(2, 30.0, 0.5),), name="align"))
    asked = Job("7", Profile((ThreadGroup(cores, 600.0),), name="align", provenance=Provenance("default")))
    found = Memory(tmp_path / "profiles.sqlite").named(asked)
    assert found.profile.threads == cores  # all of its cores are taken, whatever it does with them
    assert (found.profile.groups[0] == ThreadGroup(2, 30.0, 0.5)) is used
    assert (found == asked) is not used


def test_cores_that_are_not_used_change_no_forecast():
    profile = Profile((ThreadGroup(2, 30.0, 0.5),), name="align")
    wide = widened(profile, 4)
    assert wide.threads == 4 and widened(profile, 2) == profile
    assert wide.isolated_time == 60.0
