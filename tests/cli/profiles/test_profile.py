"""`pilotfish profile` and `pilotfish demo` as a person types them."""

import json
import os
import pwd

import pytest

from pilotfish.cli.__main__ import main
from pilotfish.profiles.measurement import Measurement
from pilotfish.profiles.store import ProfileStore
from pilotfish.simulate.model.job import ThreadGroup


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("PILOTFISH_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "80")
    return ProfileStore(tmp_path / "state" / "profiles.sqlite")


@pytest.mark.real
def test_run_prints_a_table_and_keeps_the_profile(store, capfd):
    assert main(["profile", "run", "--name", "nap", "--", "/bin/sleep", "0.05"]) == 0
    out = capfd.readouterr().out
    for word in (
        "THREADS",
        "SERVICE DEMAND",
        "UTILISATION",
        "+-",
        "waiting for a core",
        "memory",
        "wall time",
    ):
        assert word in out
    assert store.get("nap").provenance.runs == 1


@pytest.mark.real
def test_run_has_the_exit_code_of_the_command(store, capfd):
    assert main(["profile", "run", "--", "/bin/sh", "-c", "exit 5"]) == 5
    assert "exit code 5" in capfd.readouterr().err
    assert store.own_names() == []
    assert main(["profile", "run", "no-such-command-here"]) == 127
    assert capfd.readouterr().err == "pilotfish: no-such-command-here: command not found\n"


@pytest.mark.real
def test_repeat_and_json(store, capfd):
    assert main(["profile", "run", "--repeat", "3", "--bandwidth", "2GB/s", "--json", "--", "/bin/echo", "hi"]) == 0
    captured = capfd.readouterr()
    document = json.loads(captured.out)
    assert document["schema"] == "pilotfish/measurement/v1"
    assert len(document["runs"]) == document["profile"]["runs"] == 3
    assert document["profile"]["bandwidth"] == 2e9
    assert captured.err.count("hi") == 3
    assert len(store.history(document["name"])) == 3


@pytest.mark.parametrize(
    "argv",
    [
        ["profile", "run"],
        ["profile", "run", "--cpus", "99999", "true"],
        ["profile", "run", "--cpus", "x", "true"],
        ["profile", "run", "--bandwidth", "much", "true"],
        ["profile", "run", "--repeat", "0", "true"],
        ["profile", "run", "--name", "", "true"],
        ["profile", "export", "x.toml"],
        ["profile", "fly"],
        ["profile", "show"],
        ["profile", "list", "--no-such"],
    ],
)
def test_a_wrong_command_line_is_64(store, capfd, argv):
    assert main(argv) == 64
    stderr = capfd.readouterr().err
    assert "Traceback" not in stderr and ": :" not in stderr


@pytest.mark.real
def test_list_and_show(store, capfd):
    main(["profile", "run", "--name", "nap", "true"])
    main(["profile", "run", "--name", "demo-transfer", "sleep", "0.01"])
    capfd.readouterr()
    assert main(["profile", "list"]) == 0
    out = capfd.readouterr().out
    assert "nap" in out
    assert "cg.C" in out
    assert all(len(line) <= 80 for line in out.splitlines())
    assert out.startswith("PROFILE") and "OWNER" not in out and "…" not in out
    assert main(["profile", "show", "cg.C"]) == 0
    out = capfd.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines())
    out = " ".join(out.split())
    assert "slow there even alone" in out and "class: bandwidth-bound: a thread moves 4.7 times" in out
    assert main(["profile", "show", "ep.C", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["class"] == "cpu-bound"
    assert main(["profile", "show", "nap", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["profiles"]["nap"]["source"] == "measured"
    assert main(["profile", "show", "nab"]) == 1
    assert "did you mean 'nap'" in capfd.readouterr().err


@pytest.mark.real
def test_export_then_import(store, tmp_path, capfd):
    main(["profile", "run", "--name", "nap", "true"])
    for file in (tmp_path / "out.yaml", tmp_path / "out.json"):
        assert main(["profile", "export", str(file)]) == 0
        assert main(["profile", "import", str(file), "--store", str(tmp_path / file.stem)]) == 0
    capfd.readouterr()
    assert main(["profile", "export"]) == 0
    assert capfd.readouterr().out == (tmp_path / "out.yaml").read_text()
    assert main(["profile", "import", str(tmp_path / "nowhere.yaml")]) == 1
    assert main(["profile", "export", str(tmp_path / "no" / "where.yaml")]) == 1


@pytest.mark.real
def test_a_spoilt_store_is_one_line(store, capfd):
    store.path.parent.mkdir()
    store.path.write_bytes(b"spoilt" * 1000)
    for argv in (["list"], ["show", "x"], ["run", "true"], ["export"]):
        assert main(["profile", *argv]) == 1
        err = capfd.readouterr().err
        assert err.count("\n") == 1
        assert "profiles.sqlite" in err


@pytest.mark.real
@pytest.mark.parametrize("command", ["plan", "run"])
def test_a_demo_that_is_not_measured_says_what_to_run_first(store, tmp_path, capfd, command):
    folder = tmp_path / "lab"
    assert main(["demo", str(folder)]) == 0
    capfd.readouterr()
    assert main([command, str(folder / "workflow.yaml"), "--cluster", str(folder / "cluster.yaml")]) == 1
    problem = f"5 of the demo's 5 profiles are not measured yet: first run `sh {folder}/measure.sh`"
    assert capfd.readouterr() == ("", f"pilotfish: error: {folder}/workflow.yaml: {problem}\n")


@pytest.mark.real
def test_demo_prints_what_to_type_next(store, tmp_path, capfd):
    assert main(["demo", str(tmp_path / "try it")]) == 0
    out = capfd.readouterr().out
    assert "cd '" in out
    assert "pilotfish run workflow.yaml" in out
    (tmp_path / "try it" / "cluster.yaml").write_text("mine")
    assert main(["demo", str(tmp_path / "try it")]) == 1
    assert "--force" in capfd.readouterr().err


def test_import_of_what_other_programs_measured(store, tmp_path, capfd):
    (tmp_path / "align.csv").write_text("2000,msec,task-clock,1,100\n1,,x\n2000000000,ns,duration_time,1,100\n")
    assert main(["profile", "import", str(tmp_path / "align.csv"), "--source", "perf", "--date", "2026-02-03"]) == 0
    assert capfd.readouterr().out == "1 profile: align\n"
    about = store.get("align").provenance
    assert (about.source, about.date, about.runs) == ("measured", "2026-02-03", 1) and "perf stat" in about.note


def test_what_an_import_leaves_out_is_counted(store, tmp_path, capfd):
    dump = tmp_path / "jobs.txt"
    dump.write_text(
        "JobID|JobName|State|ElapsedRaw|TotalCPU|NCPUS\n1|align|COMPLETED|9|00:09|1\n2|clock|COMPLETED|9|INVALID|1\n"
        "3|bad|FAILED|9|00:09|1\n4|bad|FAILED|9|00:09|1\n"
    )
    assert main(["profile", "import", str(dump), "--source", "sacct"]) == 0
    shown, noted = capfd.readouterr()
    assert shown == "1 profile: align\n"
    assert noted == "pilotfish: left out: 1 job whose CPU time is not known, 2 jobs that did not complete\n"
    assert main(["profile", "import", str(dump), "--source", "sacct", "--json"]) == 0
    assert '"jobs that did not complete": 2' in capfd.readouterr().out
    assert store.get("align").provenance.runs == 1


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--source", "prf"], 64, "did you mean 'perf'"),
        (["--name", "x"], 64, "only with --source"),
        (["--source", "perf", "--date", "yesterday"], 64, "YYYY-MM-DD"),
        (["--source", "perf"], 1, "line 1"),
        (["--source", "jobstats"], 1, "not JSON"),
        (["--source", "sacct"], 1, "no column JobID"),
        (["--source", "likwid"], 1, "no table of metrics"),
    ],
)
def test_a_bad_import_stores_nothing(store, tmp_path, capfd, options, code, said):
    (tmp_path / "x").write_text("nonsense\n")
    assert main(["profile", "import", str(tmp_path / "x"), *options]) == code
    err = capfd.readouterr().err
    assert said in err and "Traceback" not in err and not store.path.exists()


@pytest.mark.real
def test_a_profile_shows_whose_it_is(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("PILOTFISH_STATE", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "120")
    for name in ("align", "align of uid 1234567"):
        assert main(["profile", "run", "--name", name, "--", "true"]) == 0
    capfd.readouterr()
    assert main(["profile", "list"]) == 0
    me = pwd.getpwuid(os.geteuid()).pw_name
    rows = {line.rsplit("  ", 1)[-1] for line in capfd.readouterr().out.splitlines() if line.startswith("align")}
    assert rows == {me, "uid 1234567"}
    assert main(["profile", "show", "align"]) == 0 and f"owner: {me}" in capfd.readouterr().out
    assert main(["profile", "list", "--json"]) == 0
    owners = json.loads(capfd.readouterr().out)["owners"]
    assert (owners["align"], owners["align of uid 1234567"], owners["cg.C"]) == (os.geteuid(), 1234567, None)


def test_names_of_commands_that_differ_in_the_middle_are_told_apart(store, capfd):
    words = "generate --with-a-long-option=foo --another-long-option={} --and-one-more-long-option=bar --output *.txt"
    names = [f"cmd: {words.format(i)}" for i in range(6)]
    for name in (*names, "align"):
        store.record(name, Measurement((ThreadGroup(1, 2.5),), 2.5, 2.5, 2.5, method="rusage"))
    assert main(["profile", "list"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert all(name in " ".join(lines) for name in names)
    assert lines[1].split()[:4] == ["align", "1", "x", "2.5"] and sum("1 x 2.5" in line for line in lines) == 7
