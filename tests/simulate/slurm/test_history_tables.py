"""What a record says about the past: when nodes were clean again, and which starts are of one pass."""

from __future__ import annotations

import numpy as np

from pilotfish.simulate.kernels.slurm.tables import BY_BACKFILL, BY_MAIN, HISTORY
from pilotfish.simulate.slurm.site import JobRecord
from pilotfish.simulate.slurm.site_tables import Phases, completed, site_block
from pilotfish.simulate.slurm.twin import history_steps, pass_begins
from tests.simulate.slurm.small_sites import T0, job, site


def run(start: float, end: float | None, *nodes: str, eligible: float | None = None) -> JobRecord:
    return JobRecord("COMPLETED", eligible, start, end, "main", nodes, 4, started_by="main")


def clean_times(*jobs: tuple[str, JobRecord], dependency: str = "") -> list[float]:
    """Return how long after its end the nodes of each run were clean; the epilog of the site takes 0.1 to 1 s."""
    rows = [job(id=name, runs=(one,), dependency=dependency if name == "2" else "") for name, one in jobs]
    history = site_block(completed(site(rows)), Phases(0.0, 0.0, 0.0, 0, 0.0), repeats=True).history
    return [round(float(row["clean"] - row["finish"]), 2) if row["clean"] else 0.0 for row in history]


def test_nodes_are_clean_after_the_usual_epilog() -> None:
    assert clean_times(("1", run(T0, T0 + 100.0, "n1"))) == [0.55]


def test_nodes_are_clean_once_a_job_starts_on_one_of_them() -> None:
    first, second = run(T0, T0 + 100.0, "n1", "n2"), run(T0 + 100.0, None, "n2")
    assert clean_times(("1", first), ("2", second)) == [0.0, 0.0]
    assert clean_times(("1", first), ("2", run(T0 + 100.0, None, "n3"))) == [0.55, 0.0]


def test_nodes_are_clean_once_a_job_that_waited_for_the_run_is_eligible() -> None:
    waits = run(T0 + 300.0, None, "n5", eligible=T0 + 100.0)
    assert clean_times(("1", run(T0, T0 + 100.0, "n1")), ("2", waits), dependency="afterany:1") == [0.0, 0.0]


def test_starts_by_backfill_that_are_nearer_than_its_interval_are_of_one_pass() -> None:
    history = np.zeros(5, HISTORY)
    history["start"] = [100, 102, 102, 131, 131]
    history["by"] = [BY_BACKFILL, BY_BACKFILL, BY_MAIN, BY_BACKFILL, BY_MAIN]
    assert pass_begins(history, 30.0).tolist() == [100, 100, 102, 131, 131]


def test_a_start_of_the_record_has_all_its_nodes_though_the_rules_need_fewer() -> None:
    record = run(T0 + 1.0, T0 + 100.0, "n2", "n4")
    (step,) = history_steps(site([job(id="1", tasks=4, min_cpus=4, max_nodes=1, runs=(record,))]))
    assert [start.nodes for start in step.real] == [("n2", "n4")]
    assert [start.nodes for start in step.twin] == [("n0",)]
