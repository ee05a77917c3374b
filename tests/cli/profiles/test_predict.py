"""`pilotfish predict evaluate` as a person types it."""

import json

import pytest

from pilotfish.cli.__main__ import main
from pilotfish.formats.replays.swf import dump_swf
from pilotfish.profiles.prediction.predictors import QUANTILE
from tests.profiles.prediction.generated_users import habitual


@pytest.fixture
def trace(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    path = tmp_path / "trace.swf"
    path.write_text("".join(dump_swf(habitual(400), [])))
    return path


def test_a_table_of_predictors(trace, capfd):
    assert main(["predict", "evaluate", str(trace)]) == 0
    out = capfd.readouterr().out
    shown = ("MEAN ERROR", "TOO LOW", "user, size, walltime", "inside their 80 % interval", "no better than")
    for word in ("estimate", "last-two", "history", *shown):
        assert word in out
    assert max(map(len, out.splitlines())) <= 80


def test_jobs_without_a_waiting_time_are_a_line_that_fits(trace, capfd):
    rows = [line.split() for line in trace.read_text().splitlines() if not line.startswith(";")]
    trace.write_text("".join(" ".join([*row[:2], "-1", *row[3:]]) + "\n" for row in rows))
    assert main(["predict", "evaluate", str(trace)]) == 0
    stderr = capfd.readouterr().err
    assert "400 jobs of unknown waiting time, taken as 0 s" in stderr
    assert len(stderr.replace("400", "1,000,000").splitlines()[-1]) <= 80


def test_the_help_names_the_quantile_that_is_used(capfd):
    assert main(["predict", "evaluate", "--help"]) == 0
    assert f"[default: {QUANTILE:g}]" in " ".join(capfd.readouterr().out.split())


def test_json(trace, capfd):
    argv = ["predict", "evaluate", str(trace), "--json", "--predictor", "history", "--quantile", "0.9"]
    assert main([*argv, "--need", "memory"]) == 0
    document = json.loads(capfd.readouterr().out)
    assert (document["schema"], document["need"]) == ("pilotfish/prediction-scores/v1", "memory")
    assert (list(document["scores"]), document["quantile"]) == (["history"], 0.9)


@pytest.mark.parametrize(
    "wrong, said",
    [
        (["--predictor", "histroy"], "did you mean 'history'"),
        (["--need", "luck"], "run-time, memory"),
        (["--quantile", "1"], "below 1"),
    ],
)
def test_a_wrong_option_is_a_usage_error(trace, wrong, said, capfd):
    assert main(["predict", "evaluate", str(trace), *wrong]) == 64
    assert said in " ".join(capfd.readouterr().err.split())


@pytest.mark.real
def test_a_command_that_never_ran(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("PILOTFISH_STATE", str(tmp_path))
    assert main(["predict", "command", "--", "/bin/echo", "3"]) == 1
    assert "no run of '/bin/echo' is recorded: a plan takes one thread for a minute" in capfd.readouterr().err
    assert main(["profile", "run", "/bin/echo", "1"]) == 0
    capfd.readouterr()
    assert main(["predict", "command", "/bin/echo", "3"]) == 0
    out = " ".join(capfd.readouterr().out.split())
    assert "source: predicted" in out and "from 1 run with other numbers" in out
    assert main(["predict", "command", "--json", "/bin/echo", "3"]) == 0
    assert json.loads(capfd.readouterr().out)["profiles"]["cmd: echo 3"]["source"] == "predicted"
    for wrong in ("soon", "0", "nan", "inf"):
        assert main(["predict", "command", "--walltime", wrong, "/bin/echo"]) == 64


def test_a_wrong_file_is_one_line(trace, tmp_path, capfd):
    (tmp_path / "no.swf").write_bytes(b"\x00\xff not a trace\n")
    for path in (tmp_path / "no.swf", tmp_path / "none.swf"):
        assert main(["predict", "evaluate", str(path)]) == 1
        lines = [line for line in capfd.readouterr().err.splitlines() if "compiling" not in line]
        assert len(lines) == 1
    assert main(["predict", "evaluate", str(tmp_path / "dag.yaml")]) == 64


def test_a_trace_that_does_not_tell_is_named_by_its_path(trace, capfd):
    lines = [line.split() for line in trace.read_text().splitlines() if not line.startswith(";")]
    trace.write_text("".join(" ".join([*line[:6], "-1", *line[7:]]) + "\n" for line in lines))
    assert main(["predict", "evaluate", str(trace), "--need", "memory"]) == 1
    assert f"error: {trace}: used_memory: no job's memory is recorded" in capfd.readouterr().err


@pytest.mark.real
def test_a_command_that_was_measured_under_a_name_is_found(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("PILOTFISH_STATE", str(tmp_path))
    assert main(["profile", "run", "--name", "say", "/bin/echo", "3"]) == 0
    capfd.readouterr()
    assert main(["predict", "command", "--", "/bin/echo", "3"]) == 0
    assert "source: measured" in capfd.readouterr().out
