"""Numbers for plotting: their sources and bounds, and complete files."""

import csv
import io
import json
from contextlib import closing
from dataclasses import replace

import pytest

from pilotfish.cli.__main__ import main
from pilotfish.profiles.interference.scores import PressureEffect, Scores
from pilotfish.profiles.measurement import Measurement
from pilotfish.profiles.numbers import numbers, to_csv
from pilotfish.profiles.store import ProfileStore
from pilotfish.simulate.model.job import Phase, Profile, ThreadGroup

PHASED = ThreadGroup(2, 4.0, 0.5, 0.1, phases=(Phase(0.5, 0.9, 0.0), Phase(0.5, 0.1, 0.0)))
RUN = Measurement((PHASED,), 8.0, 7.5, 8.0, waiting=0.1, date="2026-01-02T03:04:05Z", cpu_model="cpu", node_type="t",
                  memory_bytes=1e6, ipc=1.5, sources={"ipc": "perf"}, method="schedstat")  # fmt: skip


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("PILOTFISH_STATE", str(tmp_path))
    with closing(ProfileStore(tmp_path / "profiles.sqlite")) as opened:
        yield opened


@pytest.fixture
def full(store):
    store.record("x", RUN)
    store.record("x", replace(RUN, isolated_s=8.5, memory_bytes=3e6, ipc=1.7))
    store.record("x", replace(RUN, exit_code=3))
    store.put(Profile((ThreadGroup(1, 2.0),), name='odd, "name"'))
    store.put_scores(Scores("x", (PressureEffect(1.0, 1e10, 1.5, 1.4, 1.6, 1.2),), 0.25, 3, "2026-02-02", "cpu"))
    return store


def of(rows, part, quantity):
    return [row for row in rows if (row.profile, row.part, row.quantity) == ("x", part, quantity)]


def test_every_number_has_its_source_and_bounds(full):
    rows = list(numbers(full))
    (memory,) = of(rows, "profile", "memory")
    assert (memory.value, memory.low, memory.high, memory.confidence) == (3e6, 1e6, 3e6, "range of the runs")
    assert (memory.source, memory.date[:10], memory.runs, memory.node_type, memory.cpu_model) == (
        "measured", "2026-01-02", 2, "t", "cpu",
    )  # fmt: skip
    (ipc,) = of(rows, "profile", "ipc")
    assert ipc.source == "perf" and ipc.low == 1.5 < ipc.value < ipc.high == 1.7
    (demand,) = of(rows, "group 1", "service_demand")
    assert demand.confidence == "interval" and demand.low < demand.value == 4.0 < demand.high
    assert [row.value for row in of(rows, "group 1 phase 2", "utilisation")] == [pytest.approx(0.1)]
    (score,) = of(rows, "score at 1", "sensitivity")
    assert (score.source, score.low, score.high, score.runs) == ("relative score", 1.4, 1.6, 3)
    assert of(rows, "run 3", "cpu_time")[0].note == "exit code 3"


def test_unknown_values_have_no_row(full):
    rows = list(numbers(full))
    assert not of(rows, "group 1", "bandwidth") and not of(rows, "profile", "power_watts")
    assert not of(rows, "run 1", "company")
    given = [row for row in rows if row.profile == 'odd, "name"']
    assert {row.source for row in given} == {"given"} and {row.confidence for row in given} == {"unknown"}


def test_csv_and_json_exports_agree(full, tmp_path, capsys):
    rows = list(numbers(full))
    back = list(csv.DictReader(io.StringIO(to_csv(rows))))
    assert [(row["profile"], float(row["value"])) for row in back] == [(row.profile, row.value) for row in rows]
    assert main(["profile", "export", str(tmp_path / "n.csv")]) == 0
    assert (tmp_path / "n.csv").read_text() == to_csv(rows)
    assert main(["profile", "export", "--numbers", str(tmp_path / "n.json")]) == 0
    found = json.loads((tmp_path / "n.json").read_text())
    assert found["schema"] == "pilotfish/numbers/v1" and len(found["numbers"]) == len(rows)
    assert main(["profile", "export", str(tmp_path / "p.json")]) == 0
    assert main(["profile", "import", str(tmp_path / "p.json"), "--store", str(tmp_path / "other")]) == 0


def test_exports_are_complete_or_one_error(full, tmp_path, capsys):
    (tmp_path / "n.csv").mkdir()
    (tmp_path / "n.csv" / "x").touch()
    for target, code in ((tmp_path / "n.csv", 1), (tmp_path / "nowhere" / "n.csv", 1), (tmp_path / "n.txt", 64)):
        assert main(["profile", "export", str(target)]) == code
        said = capsys.readouterr().err
        assert target.name in said and "Traceback" not in said and (said.count("\n") == 1) == (code == 1)
    assert main(["profile", "export", "--numbers", str(tmp_path / "n.yaml")]) == 64
    assert "--numbers" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir() if "sqlite" not in path.name) == ["n.csv"]
