"""Writing SWF: everything reads back to the last bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.formats.documents.atomic_write import write_whole
from pilotfish.formats.replays.swf import dump_swf, read_swf
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.workload import COLUMNS, LONGEST, Workload

SECONDS = st.one_of(st.integers(0, 10**7).map(float), st.floats(0.0, LONGEST))
POSITIVE = st.one_of(st.integers(1, 10**7).map(float), st.floats(0.0, LONGEST, exclude_min=True))


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """Draw jobs with numbers of all lengths, and other columns that agree with them or not."""
    count = draw(st.integers(1, 8))

    def column(values: st.SearchStrategy[float]) -> np.ndarray:
        return np.array(draw(st.lists(values, min_size=count, max_size=count)))

    numbers = st.floats(-LONGEST, LONGEST)
    more = {name: column(numbers) for name in ("wait_time", "user", "queue", "allocated", "requested", "requested_time")
            if draw(st.booleans())}  # fmt: skip
    return Workload(
        "made",
        column(st.integers(-(2**53), 2**53)).astype(np.int64),
        np.sort(column(SECONDS)),
        column(SECONDS),
        column(POSITIVE),
        column(st.integers(1, 2**53)).astype(np.int64),
        more=more,
        machine=draw(st.one_of(st.none(), st.integers(1, 10**9))),
    )


def same(first: Workload, second: Workload) -> bool:
    """Return all columns of a workload, and the machine, bit for bit."""
    pairs = [(getattr(first, name), getattr(second, name)) for name in COLUMNS]
    return first.machine == second.machine and all(a.tobytes() == b.tobytes() for a, b in pairs)


@given(workloads())
@settings(deadline=None)
def test_a_written_trace_reads_back(tmp_path_factory: pytest.TempPathFactory, jobs: Workload) -> None:
    path = write_whole(tmp_path_factory.mktemp("swf") / "made.swf.gz", dump_swf(jobs, ["a\nb", "c"]))
    read = read_swf(path)
    assert same(jobs, read) and not read.left_out
    for name in jobs.more.keys() - {"allocated", "requested", "requested_time"}:
        assert jobs.more[name].tobytes() == read.more[name].tobytes()
    assert dump_swf(read) == dump_swf(jobs)  # from here on nothing changes


def test_unknown_values_stay_unknown(tmp_path: Path) -> None:
    text = "1 0 -1 5 4 -1 -1 -1 -1 -1 1 7 -1 -1 -1 -1 -1 -1\n2 1 3 0 4 -1 -1 8 0 -1 0 7 -1 -1 2 -1 -1 -1\n"
    read = read_swf(write_whole(tmp_path / "a.swf", text))
    assert dump_swf(read).partition("\n1 ")[2] == text[2:]


def test_the_header() -> None:
    none = np.array([], np.int64)
    jobs = Workload("none", none, none.astype(float), none.astype(float), none.astype(float), none, machine=64)
    lines = ["Version: 2.2", "MaxJobs: 0", "MaxRecords: 0", "MaxProcs: 64", "Note: in one line"]
    assert dump_swf(jobs, ["in\none  line"]).splitlines() == [f"; {line}" for line in lines]


@pytest.mark.parametrize(
    ("column", "value", "why"),
    [
        ("walltime", 0.0, "job 2: requested_time: 0.0 cannot be written as SWF .allowed: seconds above 0"),
        ("walltime", np.inf, "requested_time: inf .*a finite number"),
        ("submit_time", -1.0, "submit_time: -1.0 .*0 or more"),
        ("run_time", np.nan, "run_time: nan"),
        ("size", 0, "requested: 0 "),
        ("id", 2**53 + 1, "2.53"),
    ],
)
def test_a_job_that_would_not_read_back_is_refused(column: str, value: float, why: str) -> None:
    two = np.array([1, 2])
    jobs = Workload("w", two, two * 1.0, two * 1.0, two * 1.0, two)
    wrong = getattr(jobs, column).copy()
    wrong[1] = value
    with pytest.raises(ConfigError, match=why):
        dump_swf(replace(jobs, **{column: wrong}))
