"""`pilotfish plot`, as it is typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotfish.cli.__main__ import main

HEAD = (
    "job_id,workload_name,submission_time,requested_number_of_resources,success,final_state,starting_time,finish_time,"
    "allocated_resources\n"
)
ROWS = "1,w,0,4,1,COMPLETED_SUCCESSFULLY,0,10,0-3\n2,w,0,4,0,COMPLETED_KILLED,10,20,0-1 4-5\n3,w,5,99,0,REJECTED,,,\n"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, policy in (("run", "easy"), ("other", "strict")):
        Path(name).mkdir()
        Path(name, "jobs.csv").write_text(HEAD + ROWS)
        Path(name, "summary.json").write_text(f'{{"policy": "{policy}", "machine": 8}}')
    return Path("run")


@pytest.mark.parametrize("kind", ["gantt", "utilisation", "queue", "compare"])
def test_a_picture_goes_where_it_is_said_to_be(run: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", kind, "run", "other", "--plot", f"{kind}.svg"]) == 0
    assert capsys.readouterr() == ("", f"pilotfish: the picture is in {kind}.svg\n")
    text = Path(f"{kind}.svg").read_text()
    assert "w on 8 resources" in text and "strict" in text


@pytest.mark.parametrize("kind", ["gantt", "utilisation", "queue", "compare"])
@pytest.mark.parametrize("columns", [40, 80])
def test_without_a_file_it_draws_into_the_terminal(
    run: Path, kind: str, columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(["plot", kind, "run", "other", "--label", "first", "--label", "second"]) == 0
    output = capsys.readouterr()
    assert (
        "w on 8 resources" in output.out and "second" in output.out and "strict" not in output.out and output.err == ""
    )
    assert max(map(len, output.out.splitlines())) <= columns and "\x1b" not in output.out
    assert sorted(path.name for path in Path().iterdir()) == ["other", "run"]


def test_the_start_date_of_a_trace_is_on_the_axis(run: Path) -> None:
    Path("run", "summary.json").write_text('{"policy": "easy", "machine": 8, "epoch": 1346598124}')
    assert main(["plot", "utilisation", "run", "--plot", "x.svg"]) == 0
    assert "time on 2 Sep 2012 (UTC)" in Path("x.svg").read_text()


def test_the_name_of_a_single_run_is_shown(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", "gantt", "run"]) == 0 and "last year" not in capsys.readouterr().out
    assert main(["plot", "gantt", "run", "--label", "last year"]) == 0
    assert "last year" in capsys.readouterr().out


def test_time_title_and_names(run: Path) -> None:
    argv = [
        "plot",
        "gantt",
        "run",
        "--from",
        "9",
        "--until",
        "15",
        "--title",
        "a < b",
        "--job-names",
        "--plot",
        "x.svg",
    ]
    assert main(argv) == 0
    text = Path("x.svg").read_text()
    assert "a &lt; b" in text and "w on 8" not in text and "<text" in text and ">2</text>" in text


def test_a_page(run: Path) -> None:
    assert main(["plot", "gantt", "run", "--plot", "x.HTML"]) == 0
    assert "policy easy</title>" in Path("x.HTML").read_text()


@pytest.mark.parametrize(
    ("argv", "code", "why"),
    [
        (["gnatt", "run"], 64, "did you mean 'gantt'?"),
        (["gantt"], 64, "DIR"),
        (["gantt", "run", "--plot", "x.gif"], 64, "no known ending (allowed: .svg, .png, .pdf, .html)"),
        (["gantt", "run", "--from", "5", "--until", "5"], 64, "allowed: more than --from, 5"),
        (["gantt", "run", "--until", "inf"], 64, "allowed: seconds"),
        (["queue", "run", "--label", "a", "--label", "b"], 64, "2 for 1 run (allowed: one for each DIR)"),
        (["queue", "run", "--job-names"], 64, "allowed: with gantt"),
        (["gantt", "run", "run"], 64, "given twice"),
        (["compare", *map(str, range(10))], 64, "up to 9 in one picture"),
        (["gantt", "run", "--plot", "nowhere/x.svg"], 1, "no such folder"),
        (["gantt", "nowhere"], 1, "nowhere: no such folder"),
        (["gantt", "run/summary.json"], 1, "summary.json: not a folder"),
        (["energy", "run"], 1, "run: no consumed_energy.csv and no machine_states.csv in it"),
    ],
)
def test_what_is_wrong_is_said(
    run: Path, argv: list[str], code: int, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plot", *argv]) == code
    assert why in capsys.readouterr().err.replace("\n", " ")


def test_a_malformed_row_has_its_line(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("run", "jobs.csv").write_text(HEAD + ROWS + "4,w,x,4,1,,0,10,0-3\n")
    assert main(["plot", "gantt", "run"]) == 1
    stderr = capsys.readouterr().err
    assert stderr.startswith("pilotfish: error: run/jobs.csv:5: submission_time: found 'x'") and stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "package"),
    [("x.svg", "matplotlib"), ("x.png", "matplotlib"), ("x.pdf", "matplotlib"), ("x.html", "bokeh")],
)
def test_without_what_draws_it_says_what_to_do(
    run: Path, name: str, package: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["plot", "gantt", "run", "--plot", name]) == 1
    stderr = capsys.readouterr().err
    assert f"needs {package}: pip install 'pilotfish[plot]'" in stderr and stderr.count("\n") == 1
    assert not Path(name).exists()


@pytest.mark.parametrize("name", ["x.svg", "x.pdf", "x.html"])
def test_where_the_disk_is_full_the_older_picture_stays(
    run: Path, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(name).write_text("before")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pilotfish.formats.documents.atomic_write.os.chmod", full)
    assert main(["plot", "gantt", "run", "--plot", name]) == 1
    assert capsys.readouterr() == ("", f"pilotfish: error: {name}: No space left on device\n")
    assert Path(name).read_text() == "before" and {path.name for path in Path().iterdir()} == {"other", "run", name}
