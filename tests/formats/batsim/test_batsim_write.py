"""Writing Batsim workloads."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.formats.batsim.write import batsim_communicating, batsim_text
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.generate.communication import communicating
from pilotfish.simulate.model.workload import Workload


def made(run: list[float], machine: int | None = 128) -> Workload:
    """Return jobs of 1, 2, ... processors."""
    numbers, times = np.arange(1, len(run) + 1), np.array(run)
    return communicating(Workload("t", numbers + 6, numbers * 1.0, times, times, numbers, machine=machine))


@given(st.lists(st.floats(0.0, 1e9), min_size=1, max_size=6), st.booleans())
def test_numbers_are_written_to_the_last_bit(run: list[float], matrices: bool) -> None:
    data = json.loads(batsim_text(batsim_communicating(made(run), {"description": 'a "note"'}, matrices)))
    assert data["nb_res"] == 128 and data["description"] == 'a "note"'
    for i, job in enumerate(data["jobs"]):
        assert (job["id"], job["subtime"], job["res"]) == (i + 7, 0.0, i + 1)
        assert job["walltime"] == max(run[i] * 1e3, 1e-6)
        computation, communication = run[i] * 1e6, run[i] * 1e7
        assert data["profiles"][job["profile"]] == (
            {"type": "parallel", "cpu": [computation] * (i + 1), "com": [communication] * (i + 1) ** 2}
            if matrices
            else {"type": "parallel_homogeneous", "cpu": computation, "com": communication}
        )


def test_each_job_and_profile_has_a_line() -> None:
    text = batsim_text(batsim_communicating(made([5.0, 6.0], None), {}))
    assert len(text.splitlines()) == 10 and "nb_res" not in text


def test_what_cannot_be_written_is_refused() -> None:
    with pytest.raises(ConfigError, match="job 7: given twice"):
        batsim_communicating(replace(made([1.0, 2.0, 3.0]), id=np.array([7, 8, 7])), {})
    with pytest.raises(ConfigError, match="matrices have 16,000,000 numbers"):
        batsim_communicating(replace(made([1.0]), size=np.array([4000])), {}, True)


def test_names_and_missing_walltimes_are_kept() -> None:
    jobs = made([5.0, 6.0])
    named = replace(jobs, walltime=np.array([np.inf, 7.0]), more=jobs.more | {"name": np.array(["w0!a", "b"], object)})
    data = json.loads(batsim_text(batsim_communicating(named, {})))
    assert [(job["id"], job["profile"], job.get("walltime")) for job in data["jobs"]] == [
        ("w0!a", "w0!a", None), ("b", "b", 7),
    ]  # fmt: skip


@pytest.mark.parametrize("matrices", [False, True])
def test_no_walltime_is_0_in_messages(matrices: bool) -> None:
    jobs = replace(made([1.0, 2.0]), walltime=np.array([5e-324, 1e-7]))
    written = json.loads(batsim_text(batsim_communicating(jobs, {}, matrices)))
    assert [job["walltime"] for job in written["jobs"]] == [1e-6, 1e-6]
