"""doctor without options, sizes in the cluster file, and JSON of commands that print results."""

from __future__ import annotations

import json
import os
import pwd
from pathlib import Path

import pytest
import yaml

from pilotfish.cli.__main__ import main
from pilotfish.daemon import paths

SWF = "; MaxProcs: 4\n; UnixStartTime: 1000000000\n" + "".join(
    f"{i} {10 * i} 0 60 2 -1 -1 2 100 -1 1 1 1 -1 1 -1 -1 -1\n" for i in range(1, 21)
)
CLUSTER = """
schema: pilotfish/cluster/v1
node_types: {t: {cores: 2, memory: 4GiB, memory_bandwidth: 10GB/s}}
nodes: [{names: a, type: t}]
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, without a configuration of the site and without Slurm."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PILOTFISH_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("PILOTFISH_SOCKET", str(tmp_path / "s"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(paths, "SITE_CONFIG", tmp_path / "site" / "pilotfish.yaml")
    return tmp_path


def document(capsys: pytest.CaptureFixture[str], *argv: str) -> dict:
    code = main(argv)
    output = capsys.readouterr()
    assert code == 0, output.err
    return json.loads(output.out)


@pytest.mark.real
def test_doctor_alone_examines_this_machine(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    findings = document(capsys, "doctor", "--json")["findings"]
    topics = {finding["topic"] for finding in findings}
    assert {"config", "service", "cpus", "memory", "cgroups", "state", "probes"} <= topics
    assert str(home / "state" / "local") in next(one["says"] for one in findings if one["topic"] == "state")
    assert not (home / "state" / "local").exists(), "doctor changes nothing"


@pytest.mark.real
def test_doctor_alone_examines_the_default_configuration(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = home / "config" / "pilotfish"
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(CLUSTER)
    (folder / "pilotfish.yaml").write_text("schema: pilotfish/daemon/v1\ncluster: cluster.yaml\n")
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "is valid" in out and "node a names no CPUs of this machine" in out
    (folder / "pilotfish.yaml").write_text("schema: pilotfish/daemon/v1\ncluster: cluster.yaml\nsede: 1\n")
    assert main(["doctor"]) == 1
    assert "did you mean 'seed'?" in " ".join(capsys.readouterr().out.split())


STRANGER = 61001


@pytest.mark.real
@pytest.mark.skipif(os.geteuid() != 0, reason="not root, so nothing can be given to another user")
@pytest.mark.parametrize("user", ["root", "games"])
def test_what_others_control_is_a_problem(home: Path, user: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Judged as the account of the service would judge it, and nothing is changed."""
    uid = pwd.getpwnam(user).pw_uid

    def file_findings(*argv: str) -> list[tuple[str, str]]:
        main(["doctor", "--config", str(home / "c.yaml"), "--json", *argv])
        findings = json.loads(capsys.readouterr().out)["findings"]
        assert os.geteuid() == 0
        return [(finding["level"], finding["says"]) for finding in findings if finding["topic"] == "files"]

    (home / "cluster.yaml").write_text(CLUSTER)
    (home / "c.yaml").write_text(f"schema: pilotfish/daemon/v1\ncluster: cluster.yaml\nstate_dir: {home}/mine\n")
    (home / "mine").mkdir()
    os.chown(home / "mine", uid, uid)
    for above in home.parents:  # pytest's own folders are root's alone
        above.chmod(above.stat().st_mode | 0o011)
    home.chmod(0o755)
    ok = [("ok", f"no other user controls the files and folders of {user}")]
    assert file_findings("--user", user) == file_findings() == ok
    (home / "mine" / "journal.sqlite").write_text("")
    os.chown(home / "mine" / "journal.sqlite", STRANGER, STRANGER)
    ((level, text),) = file_findings("--user", user)
    assert level == "problem" and f"journal.sqlite is not trusted: it belongs to user {STRANGER}" in text
    (home / "mine" / "journal.sqlite").unlink()
    for name, mode in (("mine", 0o777), ("c.yaml", 0o666), ("cluster.yaml", 0o664)):
        before = (home / name).stat().st_mode
        (home / name).chmod(mode)
        ((level, text),) = file_findings("--user", user)
        assert level == "problem" and f"{home / name} is not trusted" in text and "others can write to it" in text
        (home / name).chmod(before)
    account = "backup"
    ((level, text),) = file_findings("--user", account) if user == "games" else [("problem", "belongs to user games")]
    assert level == "problem" and "belongs to user games" in text
    assert sorted(path.name for path in home.iterdir()) == ["c.yaml", "cluster.yaml", "mine"]


@pytest.mark.real
@pytest.mark.parametrize("config", [[], ["--config", "c.yaml"]])
def test_an_account_that_does_not_exist_is_a_problem(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, config: list[str]
) -> None:
    monkeypatch.chdir(home)
    Path("cluster.yaml").write_text(CLUSTER)
    Path("c.yaml").write_text("schema: pilotfish/daemon/v1\ncluster: cluster.yaml\n")
    assert main(["doctor", *config, "--user", "no-such-user", "--json"]) == 1
    findings = {
        finding["topic"]: (finding["level"], finding["says"])
        for finding in json.loads(capsys.readouterr().out)["findings"]
    }
    assert findings["account"] == (
        "problem",
        "there is no Unix user no-such-user here, so the service cannot run as it",
    )
    assert findings.get("files", ("note",))[0] == "note"
    main(["doctor", *config, "--json"])
    assert "no Unix user" not in capsys.readouterr().out


@pytest.mark.real
def test_a_state_folder_that_cannot_be_written_is_a_problem(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "state").write_text("a file")
    assert main(["doctor"]) == 1
    assert "cannot be written" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("command", ["daemon", "reap"])
def test_without_a_configuration_the_command_line_is_wrong(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command]) == 64
    assert "'--config': missing" in " ".join(capsys.readouterr().err.split())


def test_a_cluster_file_says_sizes_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster"]) == 0
    types = yaml.safe_load(capsys.readouterr().out)["node_types"]
    assert all(isinstance(kind["memory"], str) and kind["memory"].endswith("iB") for kind in types.values())
    assert document(capsys, "cluster", "--json")["schema"] == "pilotfish/cluster/v1"


@pytest.mark.parametrize(
    ("argv", "schema"),
    [
        (["generate", "lublin", "--jobs", "5", "-o", "g.swf"], "generated"),
        (["convert", "t.swf", "t.json"], "conversion"),
        (["profile", "import", "p.yaml"], "profile-import"),
        (["simulate", "t.swf"], "replay"),
        (["predict", "evaluate", "t.swf"], "prediction-scores"),
    ],
)
def test_results_are_printed_as_json_with_a_schema(
    argv: list[str], schema: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "t.swf").write_text(SWF)
    profile = "{groups: [{count: 1, service_demand: 1.0}]}"
    (home / "p.yaml").write_text(f"schema: pilotfish/profiles/v1\nprofiles:\n  mine: {profile}\n")
    assert document(capsys, *argv, "--json")["schema"] == f"pilotfish/{schema}/v1"


def test_json_and_the_file_cannot_both_be_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "lublin", "-o", "-", "--json"]) == 64
    assert "not both" in " ".join(capsys.readouterr().err.split())


def test_a_replay_shows_percentiles_and_dates(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "t.swf").write_text(SWF)
    assert main(["simulate", "t.swf"]) == 0
    out = capsys.readouterr().out
    assert out.count("50 % within ") == out.count("99 % within ") == 2
    assert "period      2001-09-09 01:46 to 2001-09-09 01:" in out
    summary = document(capsys, "simulate", "t.swf", "--json")
    for name in ("waiting_time", "bounded_slowdown"):
        levels = [summary[f"{level}_{name}"] for level in ("median", "p95", "p99")]
        assert levels == sorted(levels) and summary[f"mean_{name}"] > 0


def test_a_missing_trace_is_found_before_anything_is_compiled(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "none.swf"]) == 1
    assert capsys.readouterr().err == "pilotfish: error: none.swf: No such file or directory\n"
    assert main(["simulate"]) == 64


def test_plan_of_a_trace_names_simulate(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "t.swf").write_text(SWF)
    assert main(["plan", "t.swf"]) == 1
    assert (
        "this is a trace of jobs (SWF)" in (stderr := capsys.readouterr().err)
        and "`pilotfish simulate t.swf`" in stderr
    )


def test_every_error_of_a_workflow_is_a_line(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "c.yaml").write_text(CLUSTER)
    (home / "d.yaml").write_text("schema: pilotfish/workflow/v1\njobs:\n  a: {comand: x}\n  b: {command: x, wait: 1}\n")
    assert main(["plan", "d.yaml", "-c", "c.yaml"]) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert "d.yaml: jobs.a.comand: unknown key; did you mean 'command'?" in first and "jobs.b.wait" in second
