"""A record as a site: its jobs, their runs, and a twin that starts them by conservative backfilling."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pilotfish.cli.__main__ import main
from pilotfish.formats.record.changes import ChangeWriter
from pilotfish.formats.record.segments import Bounds, RecordWriter
from pilotfish.formats.record.site_of_record import is_record, site_of_record
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.observed_queue import ObservedJob
from pilotfish.simulate.model.snapshot import JobState
from pilotfish.simulate.slurm.site_outcome import recorded_outcome, replayed_outcome
from pilotfish.simulate.slurm.twin import replay_site

BEGIN = 1.7e9
#: Of each job: submission, nodes, walltime, start and end by conservative backfilling on two nodes, seconds since BEGIN.
JOBS = (
    ("1", 0, 1, 600, 0, 600), ("2", 10, 2, 600, 600, 1200), ("3", 20, 1, 300, 20, 320), ("4", 30, 1, 900, 1200, 2100),
    ("5", 40, 1, 240, 320, 560),
)  # fmt: skip


def record(folder: Path, *, shows_ended: bool) -> Path:
    """Record a look each ten seconds; ended jobs are shown once, or not at all."""
    writer, changes = RecordWriter(folder, {"run": "r"}, Bounds(), lambda: BEGIN), ChangeWriter()
    for now in range(0, 2200, 10):
        jobs = []
        for id, submit, nodes, walltime, start, end in JOBS:
            if now < submit or now > end + 5 or (now >= end and not shows_ended):
                continue
            state = JobState.PENDING if now < start else JobState.RUNNING if now < end else JobState.COMPLETED
            began = None if state is JobState.PENDING else BEGIN + start
            ended = BEGIN + end if state is JobState.COMPLETED else None
            jobs.append(ObservedJob(f"oar/{id}", state, f"j{id}", 1000 + int(id) % 2, "lab", "default", nodes, 1,
                                    walltime=walltime, submit_time=BEGIN + submit, start_time=began,
                                    finish_time=ended))  # fmt: skip
        answer = {"time": BEGIN + now, "jobs": changes.change(jobs)}
        if now == 0:
            answer["nodes"] = {"n1": (1, 1e9), "n2": (1, 1e9)}
        assert writer.begin_line()
        writer.write({"clock": [0], "calls": [["snapshot", None], ["queue", answer]]})
    writer.close()
    return folder


@pytest.mark.parametrize("shows_ended", [True, False])
def test_the_twin_starts_its_jobs_by_conservative_backfilling(tmp_path: Path, shows_ended: bool) -> None:
    site = site_of_record(record(tmp_path / "record", shows_ended=shows_ended))
    assert [job.id for job in site.jobs] == [id for id, *_ in JOBS]
    ends = [(job.runs[0].start - BEGIN, job.runs[0].end - BEGIN) for job in site.jobs]
    assert ends == [(start, end) for *_, start, end in JOBS]
    recorded, twin = recorded_outcome(site), replayed_outcome(site, replay_site(site, 0))
    assert np.abs(recorded.wait_s - twin.wait_s).max() <= 2.0


def test_it_has_a_card_of_its_own_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = record(tmp_path / "record", shows_ended=True)
    assert main(["score", str(folder), "--repeat", "1", "--workers", "1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    waiting = document["measures"]["waiting"]["mean"]
    assert document["handed"]["compared"] == 5 and abs(waiting["twin"] - waiting["recorded"]) < 2.0
    assert main(["score", str(folder), "--repeat", "1", "--workers", "1"]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80 and "conservative backfilling" in text and "Slurm 22.05" not in text


def test_a_service_of_oar_has_the_card_of_its_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cluster.yaml").write_text(
        "schema: pilotfish/cluster/v1\nname: lab\nnode_types: {t: {cores: 1, memory: 1GiB, memory_bandwidth: 1GB/s}}\n"
        "nodes: [{names: 'n[1-2]', type: t}]\n"
    )
    config = tmp_path / "pilotfish.yaml"
    config.write_text("schema: pilotfish/daemon/v1\ncluster: cluster.yaml\nadapter: {name: oar}\nstate_dir: state\n")
    options = ["score", "--config", str(config), "--repeat", "1", "--workers", "1"]
    assert main(options) == 1
    assert "has no record" in " ".join(capsys.readouterr().err.split())
    record(tmp_path / "state" / "record", shows_ended=False)
    assert main(options) == 0
    assert "5 seen, 5 that started on all sides" in " ".join(capsys.readouterr().out.split())


def test_what_is_no_record_of_a_queue_is_one_error(tmp_path: Path) -> None:
    assert not is_record(tmp_path)
    writer = RecordWriter(tmp_path / "record", {"run": "r"}, Bounds(), lambda: BEGIN)
    assert writer.begin_line()
    writer.close()
    with pytest.raises(ConfigError, match="no look at a queue"):
        site_of_record(tmp_path / "record")
