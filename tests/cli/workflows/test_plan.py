"""`pilotfish plan`: what is printed where, for terminals, for programs, for other schedulers."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from pilotfish.cli.__main__ import main
from pilotfish.formats.text import width

HOSTILE = ("作業" * 20, "[red]boo[/red]", "x" * 200, "<script>&", "plain")


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("PILOTFISH_STATE", str(tmp_path / "state"))
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def lab(tmp_path) -> str:
    kind = {"cores": 8, "memory": "16GiB", "memory_bandwidth": "20GB/s"}
    cluster = {
        "schema": "pilotfish/cluster/v1",
        "name": "lab",
        "node_types": {"small": kind},
        "nodes": [{"names": "s[1-3]", "type": "small"}],
    }
    path = tmp_path / "lab.yaml"
    path.write_text(yaml.safe_dump(cluster))
    return str(path)


@pytest.fixture
def dag(tmp_path):
    """Write a workflow: a source, `width` jobs that wait for it, and a sink."""

    def write(wide: int = 3, names: tuple[str, ...] = ("job",)) -> str:
        profile = {"threads": 2, "service_demand": 5.0, "bandwidth": "2GB/s"}
        middle = [f"{names[i % len(names)]}-{i}" for i in range(wide)]
        jobs = {"source": {"profile": profile}}
        jobs |= {name: {"profile": profile, "after": ["source"], "command": "true"} for name in middle}
        jobs["sink"] = {"profile": profile, "after": middle or ["source"]}
        path = tmp_path / "dag.yaml"
        document = {"schema": "pilotfish/workflow/v1", "name": "dag-1", "jobs": jobs}
        path.write_text(yaml.safe_dump(document, allow_unicode=True, sort_keys=False))
        return str(path)

    return write


def test_a_plan_for_people(dag, lab, capsys):
    assert main(["plan", dag(), "--cluster", lab, "--policy", "mom"]) == 0
    output = capsys.readouterr()
    lines = output.out.splitlines()
    assert lines[0] == "dag-1 on lab: 5 jobs, 3 nodes, policy mom" and lines[1] == ""
    assert lines[2].split()[:2] == ["JOB", "NODES"]
    assert any(line.startswith("source ") for line in lines) and any(line.startswith("s1 │█") for line in lines)
    assert any(line.startswith("makespan ") and "lower bound" in line for line in lines)
    assert any("unknown: node type small gives no power" in line for line in lines)
    assert lines[-2].startswith("decided ")
    assert lines[-1] == "classes   5 mixed (source, job-0, job-1, ...)"
    assert "\x1b" not in output.out and all(line == line.rstrip() for line in lines)


@pytest.mark.parametrize("wide", [0, 8, 200])
def test_every_line_fits_80_cells_whatever_the_names(wide, dag, lab, capsys):
    assert main(["plan", dag(wide, HOSTILE), "--cluster", lab, "--policy", "slf"]) == 0
    stdout = capsys.readouterr().out
    assert max(map(width, stdout.splitlines())) <= 80
    assert ("172 jobs left out" in stdout) == (wide == 200)
    if wide == 200:
        assert main(["plan", dag(wide, HOSTILE), "--cluster", lab, "--policy", "slf", "--all"]) == 0
        assert len(capsys.readouterr().out.splitlines()) > 202


def test_colour_only_where_it_is_wanted(dag, lab, capsys, monkeypatch):
    argv = ["plan", dag(), "--cluster", lab, "--policy", "slf"]
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    assert main(argv) == 0
    assert "\x1b[38;5" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(argv) == 0
    stdout = capsys.readouterr().out
    assert "38;5" not in stdout and "\x1b[3" not in stdout and "slowdown by contention" not in stdout


def test_json_is_one_document_that_reads_back(dag, lab, capsys):
    assert main(["plan", dag(), "--cluster", lab, "--policy", "mom", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["policy"] == "mom" and [job["id"] for job in document["jobs"]] == [
        "source",
        "job-0",
        "job-1",
        "job-2",
        "sink",
    ]


def test_compare_shows_every_policy_and_marks_the_best(dag, lab, capsys):
    assert main(["plan", dag(), "--cluster", lab, "--compare", "--budget", "50"]) == 0
    stdout = capsys.readouterr().out
    assert max(map(width, stdout.splitlines())) <= 80
    rows = [line[2:].split()[0] for line in stdout.splitlines()[3:8]]
    assert rows == ["loadavg", "slf", "let", "mom", "lookahead"]
    assert sum(line.startswith("> ") for line in stdout.splitlines()) == 1
    assert main(["plan", dag(), "--cluster", lab, "--compare", "--budget", "50", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [plan["policy"] for plan in document["plans"]] == rows
    makespans = {plan["policy"]: plan["makespan"] for plan in document["plans"]}
    assert makespans["lookahead"] <= min(makespans.values()) * (1 + 1e-9)


@pytest.mark.parametrize("form", ["slurm", "oar"])
def test_export_is_a_script_on_stdout_and_nothing_else(form, dag, lab, capsys):
    assert main(["plan", dag(), "--cluster", lab, "--policy", "slf", "--export", form]) == 0
    stdout = capsys.readouterr().out
    assert stdout.startswith("#!") and {"slurm": "sbatch", "oar": "oarsub"}[form] in stdout


@pytest.mark.parametrize("ending", [".svg", ".html", ".png", ".pdf"])
def test_the_picture_goes_into_the_file_and_the_tables_to_stdout(ending, dag, lab, tmp_path: Path, capsys):
    target = tmp_path / f"plan{ending}"
    argv = ["plan", dag(4, HOSTILE), "--cluster", lab, "--policy", "slf", "--plot", str(target)]
    assert main(argv) == 0
    output = capsys.readouterr()
    assert output.out.startswith("dag-1 on lab") and f"the picture is in {target}" in output.err
    content = target.read_bytes()
    if ending == ".svg":
        assert "[red]boo[/red]-1" in "".join(ElementTree.fromstring(content).itertext())
    else:
        assert content.startswith({".html": b"<!DOCTYPE", ".png": b"\x89PNG", ".pdf": b"%PDF"}[ending])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--policy", "mum"], "did you mean 'mom'"),
        (["--export", "pbs"], "'pbs' is not a form (allowed: oar, slurm, json)"),
        (["--objective", "speed"], "--objective"),
        (["--time-limit", "0"], "--time-limit"),
        (["--time-limit", "nan"], "--time-limit"),
        (["--plot", "plan.gif"], "no known ending (allowed: .svg, .png, .pdf, .html)"),
        (["--compare", "--export", "slurm"], "--compare"),
        (["--compare", "--plot", "x.svg"], "--compare"),
        (["--json", "--export", "oar"], "--json"),
    ],
)
def test_a_wrong_option_is_64_before_any_file_is_read(options, said, capsys):
    assert main(["plan", "no-such-file", "--cluster", "no-such-file", *options]) == 64
    heard = capsys.readouterr()
    assert heard.out == "" and said in " ".join(heard.err.split())


@pytest.mark.parametrize("which", ["workflow", "cluster"])
def test_a_wrong_file_is_1_and_one_line(which, dag, lab, tmp_path, capsys):
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("schema: pilotfish/nothing/v1\n")
    files = {"workflow": dag(), "cluster": lab} | {which: str(wrong)}
    assert main(["plan", files["workflow"], "--cluster", files["cluster"]]) == 1
    output = capsys.readouterr()
    assert output.out == "" and output.err.count("\n") == 1 and str(wrong) in output.err


def test_a_picture_that_cannot_be_written_is_1(dag, lab, tmp_path, capsys):
    target = tmp_path / "none" / "plan.svg"
    assert main(["plan", dag(), "--cluster", lab, "--policy", "slf", "--plot", str(target)]) == 1
    output = capsys.readouterr()
    assert f"{target}: cannot be written: there is no such folder" in output.err and output.out == ""
    (target := tmp_path / "plan.svg").mkdir()
    assert main(["plan", dag(), "--cluster", lab, "--policy", "slf", "--plot", str(target)]) == 1
    output = capsys.readouterr()
    assert f"{target}: cannot be written: it is a folder" in output.err and output.out == ""
    target.rmdir()
    target.symlink_to("/dev/full")  # this is known only once it is written
    assert main(["plan", dag(), "--cluster", lab, "--policy", "slf", "--plot", str(target)]) == 1
    output = capsys.readouterr()
    assert str(target) in output.err and "makespan" in output.out


def test_jobs_that_rest_on_the_default_are_said_on_stderr(lab, tmp_path, capsys):
    path = tmp_path / "bare.yaml"
    path.write_text("schema: pilotfish/workflow/v1\njobs: {one: {command: echo}}\n")
    assert main(["plan", str(path), "--cluster", lab, "--policy", "slf", "--json"]) == 0
    output = capsys.readouterr()
    assert json.loads(output.out)["jobs"][0]["id"] == "one"
    assert "pilotfish: warning: " in output.err and "default" in output.err


def test_same_seed_same_plan(dag, lab, capsys):
    plans = []
    for _ in range(2):
        assert main(["plan", dag(6), "--cluster", lab, "--json", "--budget", "100", "--seed", "7"]) == 0
        plans.append(json.loads(capsys.readouterr().out))
        plans[-1].pop("simulated_in")
    assert plans[0] == plans[1]


def test_jobs_that_can_never_start_are_named_on_a_line_each(lab, tmp_path, capsys):
    jobs = {name: {"profile": {"threads": 2, "service_demand": 5.0}, "nodes": 4} for name in ("wide", "wider")}
    document = {"schema": "pilotfish/workflow/v1", "name": "dag-1", "jobs": jobs}
    (tmp_path / "dag.yaml").write_text(yaml.safe_dump(document))
    assert main(["plan", str(tmp_path / "dag.yaml"), "-c", lab]) == 1
    lines = [line for line in capsys.readouterr().err.splitlines() if "never" in line]
    assert len(lines) == 2 and "job 'wide' can never start on 'lab'" in lines[0] and "job 'wider'" in lines[1]


def test_queues_are_handed_over_only_where_a_queue_is_planned(lab, dag, capsys):
    assert main(["plan", dag(), "--cluster", lab, "--as-if-handed-over", "all"]) == 64
    assert "only with --adapter or --config" in " ".join(capsys.readouterr().err.split())
