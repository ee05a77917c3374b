"""The accounting of a site as SWF and for Batsim: every field, what is left out, and what is lost."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pilotfish.cli.__main__ import main
from pilotfish.formats.replays.swf import read_swf
from pilotfish.formats.site.site_folder import read_accounting, read_site
from pilotfish.formats.site_conversion import AccountingTrace, trace_of
from pilotfish.simulate.slurm.site import JobRecord, SiteJob
from tests.support.slurm_recordings import recorded_case


def job(number: str = "1", submit: float = 0.0, start: float | None = 10.0, end: float | None = 40.0, **changes: object) -> SiteJob:  # fmt: skip
    run = JobRecord(str(changes.pop("state", "COMPLETED")), submit, start, end, "main", ("n1",), 4)
    values = {
        "id": number, "name": "wrap", "user": "ann", "account": "lab", "qos": "normal", "partitions": ("main",),
        "submit": submit, "runs": (run,), "limit_min": 2, "tasks": 2, "min_cpus": 2, **changes,
    }  # fmt: skip
    return SiteJob(**values)


def written(*jobs: SiteJob) -> tuple[list[list[float]], AccountingTrace, str]:
    trace = AccountingTrace(jobs, "site", 32)
    text = trace.swf("a note").text
    rows = [[float(word) for word in line.split()] for line in text.split("\n") if line and line[0] != ";"]
    return rows, trace, text


def test_every_field_of_swf() -> None:
    first = job("7", 100.0, 110.0, 140.0, memory_per_cpu_mib=3)
    second = job(
        "8_2", 105.0, 150.0, 160.0, user="bob", account="uni", qos="high", name="x", state="CANCELLED", is_exclusive=True,
        memory_per_node_mib=8, min_nodes=2, dependency="afterany:7,after:5", limit_min=None,
    )  # fmt: skip
    third = job("9", 106.0, 150.0, 190.0, state="TIMEOUT", dependency="singleton")
    rows, trace, text = written(first, second, third)
    assert rows == [
        [1, 0, 10, 30, 4, -1, -1, 2, 120, 3072, 1, 1, 1, 1, 1, 1, -1, -1],
        [2, 5, 45, 10, 4, -1, -1, 4, 10, 8192, 5, 2, 2, 2, 2, 1, 1, 0],
        [3, 6, 44, 40, 4, -1, -1, 2, 120, -1, 0, 1, 1, 1, 1, 1, -1, -1],
    ]
    assert "; MaxProcs: 32\n; UnixStartTime: 100\n; Queue: 1 normal\n; Queue: 2 high\n; Partition: 1 main\n" in text
    assert +trace.lost == {
        "ids that are not numbers: now numbered from 1": 1,
        "jobs without a time limit: now their run time": 1,
        "numbers of nodes and tasks of a node: only CPUs are left": 1,
        "whole nodes: now their CPUs": 1,
        "dependencies that are not on the end of an earlier job": 1,
    }


def test_jobs_that_cannot_be_replayed_are_counted() -> None:
    rows, trace, _ = written(job(), job("2", start=None, end=None), job("3", end=None), job("4", runs=()))
    assert len(rows) == 1
    assert trace.left_out == {"jobs that never started": 2, "jobs that had not ended": 1}
    assert written()[0] == []


def test_the_last_run_of_a_requeued_job_counts() -> None:
    runs = (
        JobRecord("NODE_FAIL", 0.0, 5.0, 8.0, "main", (), 2),
        JobRecord("COMPLETED", 9.0, 20.0, 30.0, "main", (), 2),
    )
    rows, trace, _ = written(job(runs=runs))
    assert rows[0][2:4] == [20, 10] and trace.lost["earlier runs of requeued jobs"] == 1


@pytest.mark.parametrize("case", ["plain", "tiers", "arrays", "memory", "preempt"])
def test_a_recorded_site_reads_back_as_it_was(case: str, tmp_path: Path) -> None:
    folder = recorded_case(case)
    site = read_site(folder, folder / "r1" / "sacct.psv.gz")
    trace = AccountingTrace(site.jobs, case, sum(node.cpus for node in site.nodes))
    (tmp_path / "t.swf").write_text(trace.swf("").text)
    back = read_swf(tmp_path / "t.swf")
    assert len(back) == len(site.jobs) and back.machine == trace.workload.machine
    assert back.epoch == site.jobs[0].submit
    assert np.array_equal(back.submit_time, [one.submit - site.jobs[0].submit for one in site.jobs])
    ends = [one.runs[-1].end or 0 for one in site.jobs]
    assert np.array_equal(back.submit_time + back.more["wait_time"] + back.run_time + (back.epoch or 0), ends)
    assert np.array_equal(back.walltime, [(one.limit_min or 0) * 60 for one in site.jobs])
    assert len(set(back.more["user"])) == len({one.user for one in site.jobs})
    if case == "arrays":
        assert back.dependencies is not None and trace.workload.dependencies is not None
        assert np.array_equal(back.dependencies.before, trace.workload.dependencies.before)


def test_a_dump_alone_has_the_same_jobs_as_its_folder() -> None:
    folder = recorded_case("plain")
    dump = folder / "r1" / "sacct.psv.gz"
    assert read_accounting(dump)[1] == {}
    recorded = AccountingTrace(read_site(folder, dump).jobs, "", None).workload
    alone = trace_of(dump).workload
    for name in ("submit_time", "run_time", "walltime"):
        assert np.array_equal(getattr(alone, name), getattr(recorded, name))
    assert (alone.size != recorded.size).mean() < 0.2  # whole nodes that no option requests


def test_convert_as_it_is_typed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = tmp_path / "sacct.psv.gz"
    dump.write_bytes((recorded_case("arrays") / "r1" / "sacct.psv.gz").read_bytes())
    assert main(["convert", str(dump), str(tmp_path / "t.json")]) == 1
    assert "it does not say how large the machine is (allowed: a folder, or --procs)" in capsys.readouterr().err
    assert main(["convert", str(dump), str(tmp_path / "t.json"), "--procs", "128"]) == 0
    assert "402 jobs for 128 CPUs" in capsys.readouterr().err
    assert len(json.loads((tmp_path / "t.json").read_text())["jobs"]) == 402
    assert main(["convert", str(dump), str(tmp_path / "t.swf"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["content"] == "402 jobs" and document["lost"]["licences"] > 0
    assert main(["convert", str(dump), str(tmp_path / "t.dax")]) == 64
