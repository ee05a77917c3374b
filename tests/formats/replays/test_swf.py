"""Reading SWF: exact numbers and exact errors, whatever the file holds."""

from __future__ import annotations

import gzip
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.formats.replays.swf import COLUMNS, read_swf
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.workload import joined
from pilotfish.simulate.replay.replay import replay
from pilotfish.simulate.replay.select import Select

HEADER = "; Version: 2.2\n; MaxNodes: 64\n;  MaxProcs: 256 (of which 2 rest)\n"
LINE = "{job} {submit} -1 {run} {allocated} -1 -1 {requested} {time} -1 1 7 -1 -1 -1 -1 -1 -1"


def line(
    job: int = 1, submit: object = 0, run: object = 5, allocated: object = 4, requested: object = -1, time: object = -1
) -> str:
    """Return the line of a job."""
    return LINE.format(job=job, submit=submit, run=run, allocated=allocated, requested=requested, time=time)


def written(folder: Path, text: str | bytes) -> Path:
    """Write a file with this text."""
    path = folder / "trace.swf"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_fields_and_their_fallbacks(tmp_path: Path) -> None:
    text = HEADER + "\n".join([line(1, requested=8, time=60), line(2, 3, run=7), line(3, 4, allocated=2, time=0)])
    jobs = read_swf(written(tmp_path, text))
    assert jobs.size.tolist() == [8, 4, 2] and jobs.walltime.tolist() == [60.0, 7.0, 5.0]
    assert jobs.machine == 256 and jobs.name == "trace" and jobs.more["user"].tolist() == [7.0] * 3


def test_a_header_with_nodes_only(tmp_path: Path) -> None:
    assert read_swf(written(tmp_path, "; MaxNodes: 64\n" + line())).machine == 64
    assert read_swf(written(tmp_path, line() + "\n; MaxProcs: 9\n")).machine is None


@pytest.mark.parametrize(
    ("header", "epoch"),
    [("; UnixStartTime: 1346598124\n", 1346598124.0), ("; UnixStartTime: 0\n", None), ("; UnixStartTime: soon\n", None),
     ("", None)],
)  # fmt: skip
def test_the_start_date_stays_with_the_jobs_unless_they_arrive_faster(
    tmp_path: Path, header: str, epoch: float | None
) -> None:
    jobs = read_swf(written(tmp_path, f"{header}{line()}\n{line(2)}"))
    assert jobs.epoch == epoch == Select(begin=0.0).of(jobs).epoch == joined([jobs, jobs]).epoch
    assert Select(load=2.0).of(jobs).epoch is None
    assert joined([jobs, replace(jobs, epoch=7.0)]).epoch is None


def test_gzip_by_its_content(tmp_path: Path) -> None:
    plain = read_swf(written(tmp_path, HEADER + line()))
    packed = read_swf(written(tmp_path, gzip.compress((HEADER + line()).encode())))
    assert packed.submit_time.tolist() == plain.submit_time.tolist() and packed.machine == 256
    with pytest.raises(ConfigError, match="cannot be unpacked"):
        read_swf(written(tmp_path, gzip.compress(HEADER.encode())[:-9]))


NUMBERS = st.one_of(
    st.integers(0, 10**18).map(str),
    st.floats(0, 1e15, allow_subnormal=False).map(repr),
    st.floats(0, 1e15).map(lambda value: f"{value:.{3}f}"),
    st.decimals(0, 10**9, places=9).map(str),
    st.sampled_from(["1e3", "1E+3", "2.5e-3", "+7", "007", "0.1", ".5", "5.", "123456789012345", "1234567890123456"]),
)


@given(st.lists(NUMBERS, min_size=1, max_size=20))
@settings(deadline=None)
def test_numbers_are_read_to_the_last_bit(tmp_path_factory: pytest.TempPathFactory, words: list[str]) -> None:
    text = "\n".join(line(i + 1).replace(" -1", f" {word}", 2) for i, word in enumerate(words))
    jobs = read_swf(written(tmp_path_factory.mktemp("swf"), text))
    for name in ("wait_time", "cpu_time"):
        assert jobs.more[name].tolist() == [float(word) for word in words]


@pytest.mark.parametrize("blank", [" ", "\t", "   ", " \t "])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n", " \n", ""])
def test_blanks_and_ends_of_lines(tmp_path: Path, blank: str, end: str) -> None:
    text = blank + line().replace(" ", blank) + (end or "\n") + line(2, 9) + end
    assert read_swf(written(tmp_path, text)).id.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        ("1 2 3", "3 numbers"),
        (line() + " 19", "19 numbers"),
        (line(run="x"), "not a number"),
        (line(run="5x"), "not a number"),
        (line(run="-"), "not a number"),
        (line(run="1e"), "not a number"),
        (line(run="1e999"), "not a number"),
        (line(run="nan"), "not a number"),
        (line(run="1.2.3"), "not a number"),
        (line().replace(" ", "\0", 1), "not a number"),
        ("# a comment of another format", "not a number"),
    ],
)
def test_an_invalid_line_is_named_or_counted(tmp_path: Path, wrong: str, found: str) -> None:
    path = written(tmp_path, HEADER + line() + "\n" + wrong + "\n" + line(2, 4) + "\n")
    with pytest.raises(ConfigError, match=f"trace.swf:5: found .*{found}"):
        read_swf(path)
    jobs = read_swf(path, skip_invalid=True)
    assert jobs.id.tolist() == [1, 2] and jobs.left_out == {"lines without a job": 1}


@pytest.mark.parametrize(
    ("wrong", "key", "allowed"),
    [
        (line(submit="1.1e15"), "submit_time", "seconds, at most 1e+15"),
        (line(submit="-1e308"), "submit_time", "seconds, at most 1e+15"),
        (line(run="1e308"), "run_time", "seconds, at most 1e+15"),
        (line(time="9e307"), "requested_time", "seconds, at most 1e+15"),
        (line().replace("1 ", "1.5 ", 1), "job", "a whole number"),
        (line(allocated="1e17"), "requested or allocated processors", "a whole number"),
        (line(requested="2.5"), "requested or allocated processors", "a whole number"),
    ],
)
def test_an_invalid_number_is_named_or_counted(tmp_path: Path, wrong: str, key: str, allowed: str) -> None:
    path = written(tmp_path, HEADER + line() + "\n" + wrong + "\n" + line(2, 4) + "\n")
    with pytest.raises(ConfigError, match=f"trace.swf:5: {key}: found .*{re.escape(allowed)}; or --skip"):
        read_swf(path)
    jobs = read_swf(path, skip_invalid=True)
    assert jobs.id.tolist() == [1, 2] and jobs.left_out == {"lines without a job": 1}
    with pytest.raises(ConfigError, match=r"trace\.swf:4: found 3 numbers"):
        read_swf(written(tmp_path, HEADER + "1 2 3\n" + wrong))


@given(st.binary(max_size=300))
@settings(deadline=None, max_examples=300)
def test_garbage_is_one_clear_error(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = written(tmp_path_factory.mktemp("swf"), data)
    try:
        read_swf(path)
    except ConfigError as error:
        assert str(path) in str(error)


def test_jobs_with_unknown_fields_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = [line(1), line(2, run=-1), line(3, allocated=0), line(4, submit=-1), line(5, 1)]
    jobs = read_swf(written(tmp_path, "\n".join(rows)))
    assert jobs.id.tolist() == [1, 5]
    assert jobs.left_out == dict.fromkeys(
        ("jobs without a submit time", "jobs without a run time", "jobs without processors"), 1
    )


def test_jobs_are_in_order_of_submission_then_of_the_file(tmp_path: Path) -> None:
    jobs = read_swf(written(tmp_path, "\n".join([line(1, 9), line(2, 3), line(3, 9), line(4, 3)])))
    assert jobs.id.tolist() == [2, 4, 1, 3] and np.all(np.diff(jobs.submit_time) >= 0)


def test_processors_are_whole(tmp_path: Path) -> None:
    wrong = line().split()
    wrong[COLUMNS.index("allocated")] = "2.5"
    with pytest.raises(ConfigError, match="whole number"):
        read_swf(written(tmp_path, " ".join(wrong)))


def test_an_empty_file_has_no_jobs(tmp_path: Path) -> None:
    assert len(read_swf(written(tmp_path, ""))) == 0
    assert len(read_swf(written(tmp_path, HEADER))) == 0


def test_a_device_and_a_file_beyond_any_memory_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"/dev/zero: a device, which may have no end \(allowed: a file or a pipe\)"):
        read_swf("/dev/zero")
    with open(tmp_path / "huge.swf", "wb") as file:
        file.truncate(2**35)  # without a block on disk
    with pytest.raises(ConfigError, match=r"huge.swf: too large \(allowed: at most 16384 MiB\)"):
        read_swf(tmp_path / "huge.swf")


@pytest.mark.parametrize(
    ("header", "machine"),
    [
        ("; MaxProcs: 1,024\n", 1024),
        ("; MaxProcs: 1'234'567 \n", 1234567),
        ("; MaxProcs:\t12.345\n", 12345),
        ("; MaxProcs: 1\u202f024\n", 1024),
        ("; MaxProcs: 1\xa0024 (of which 2 rest)\n", 1024),
        ("; MaxProcs: 4 (2 nodes of 2)\n", 4),
        ("; MaxProcs: 128, 2 for each node\n", 128),
        ("; MaxProcs: 64.\n", 64),
        ("; MaxProcs:\n; 9\n", None),
        ("\ufeff; MaxProcs: 64\n", 64),
        ("\ufeff", None),
    ],
)
def test_a_header_that_an_editor_wrote(tmp_path: Path, header: str, machine: int | None) -> None:
    jobs = read_swf(written(tmp_path, header + line()))
    assert jobs.machine == machine and len(jobs) == 1 and not jobs.left_out


@pytest.mark.parametrize("number", ["1,02", "1,0244", "1024,5", "1,,024", "1.5"])
def test_a_number_of_the_header_with_other_text_in_it_is_named(tmp_path: Path, number: str) -> None:
    with pytest.raises(
        ConfigError, match=rf"trace.swf:2: MaxProcs: found '{re.escape(number)}' .allowed: a whole number"
    ):
        read_swf(written(tmp_path, f"; Version: 2.2\n; MaxProcs: {number}\n{line()}"))


def test_a_start_date_with_separators(tmp_path: Path) -> None:
    assert read_swf(written(tmp_path, f"; UnixStartTime: 1,346,598,124\n{line()}")).epoch == 1346598124.0


def rows(*jobs: tuple[int, float, float, int, int, float]) -> str:
    """Return lines of job, submit time, run time, status, preceding job and think time."""
    return "".join(
        f"{job} {submit} -1 {run} 4 -1 -1 4 {run} -1 {status} 1 1 1 1 1 {preceding} {think}\n"
        for job, submit, run, status, preceding, think in jobs
    )


def test_partial_executions_next_to_a_summary_are_left_out(tmp_path: Path) -> None:
    text = rows((1, 0, 30, 1, -1, -1), (1, 0, 10, 2, -1, -1), (1, 15, 20, 3, -1, -1), (2, 1, 5, 0, -1, -1),
                (2, 1, 5, 4, -1, -1), (3, 2, 7, 2, -1, -1), (3, 20, 8, 3, -1, -1), (4, 3, 9, 5, -1, -1))  # fmt: skip
    jobs = read_swf(written(tmp_path, text))
    assert list(zip(jobs.id.tolist(), jobs.run_time.tolist(), strict=True)) == [(1, 30), (2, 5), (3, 7), (4, 9), (3, 8)]
    assert jobs.left_out == {"partial executions of jobs that have a summary": 3}


def test_a_job_is_submitted_when_its_preceding_job_has_ended_and_the_think_time_is_over(tmp_path: Path) -> None:
    text = rows((1, 0, 100, 1, -1, -1), (7, 0, 10, 1, 1, 50), (3, 500, 10, 1, 1, -1), (4, 1, 10, 0, 7, 0.5),
                (5, 0, 1, 1, 9, 5), (6, 0, 1, 1, 6, 5), (9, 0, 1, 1, -1, -1), (10, 0, 1, 1, 9, -1))  # fmt: skip
    jobs = read_swf(written(tmp_path, text))
    assert jobs.left_out == {"dependencies on jobs that are not earlier in the trace": 2}
    replayed = replay(jobs, 64)
    submitted = dict(zip(jobs.id.tolist(), replayed.submit_time.tolist(), strict=True))
    assert submitted == {1: 0, 7: 150, 3: 500, 4: 160.5, 5: 0, 6: 0, 9: 0, 10: 1}


def test_a_job_follows_a_preceding_job_that_failed_or_was_killed(tmp_path: Path) -> None:
    text = "1 0 -1 90 4 -1 -1 4 60 -1 0 1 1 1 1 1 -1 -1\n" + rows((2, 0, 10, 1, 1, 5))
    replayed = replay(read_swf(written(tmp_path, text)), 8)
    assert replayed.submit_time.tolist() == [0.0, 65.0] and replayed.overran.tolist() == [True, False]


def test_a_preceding_job_without_a_run_time_is_counted(tmp_path: Path) -> None:
    jobs = read_swf(written(tmp_path, rows((1, 0, -1, 5, -1, -1), (2, 3, 10, 1, 1, 5))))
    assert jobs.left_out == {"jobs without a run time": 1, "dependencies on jobs that are left out": 1}
    assert replay(jobs, 8).submit_time.tolist() == [3.0]


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9), st.integers(-1, 9), st.integers(-1, 6), st.integers(-1, 9),
                          st.integers(-1, 9)), min_size=1, max_size=12))  # fmt: skip
def test_any_preceding_jobs_are_replayed_to_the_end(
    tmp_path_factory: pytest.TempPathFactory, jobs: list[tuple[int, float, float, int, int, float]]
) -> None:
    workload = read_swf(written(tmp_path_factory.mktemp("swf"), rows(*jobs)))
    replayed = replay(workload, 64)
    assert not replayed.rejected.any() and (replayed.start_time >= workload.submit_time).all()
