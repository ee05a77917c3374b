"""`pilotfish simulate` and `policies`, as they are typed."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pilotfish.cli.__main__ import main
from pilotfish.formats.replays.results_read import read_run

TRACE = "; MaxProcs: 8\n" + "".join(
    f"{i} {i} -1 {3 + i % 5} {1 + i % 9} -1 -1 -1 20 -1 1 {i % 3} -1 -1 -1 -1 -1 -1\n" for i in range(1, 41)
)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "small.swf"
    path.write_text(TRACE)
    return path


def test_a_summary_and_its_files(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", str(trace), "--out", str(tmp_path / "run")]) == 0
    output = capsys.readouterr()
    assert "small: 40 jobs on 8 processors" in output.out and "4 rejected: too large for the machine" in output.out
    assert max(map(len, output.out.splitlines())) <= 80
    files = ["jobs.csv", "machine_states.csv", "schedule.csv", "summary.json"]
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == files


def test_wrapped_lines_of_the_summary_start_below_their_text(
    trace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    assert main(["simulate", str(trace)]) == 0
    lines = capsys.readouterr().out.split("\n\n", 1)[1].splitlines()
    labels = [line[:12].strip() for line in lines]
    assert labels.count("") > 2  # percentiles, and wrapped lines
    assert [label for label in labels if label and label not in (
        "waiting", "turnaround", "slowdown", "utilisation", "makespan", "energy", "jobs", "simulated",
    )] == []  # fmt: skip


def test_json_says_where_the_numbers_come_from(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", str(trace), "--procs", "16", "-p", "easy:order=sjf", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["machine"], document["policy"], document["nb_jobs_rejected"]) == (16, "easy:order=sjf", 0)
    assert next(iter(document["inputs"].values())).startswith("sha256:")


def test_the_summary_says_which_run_times_the_policy_knew(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    documents = {}
    for kind in ("walltime", "predicted", "actual"):
        assert main(["simulate", str(trace), "--runtimes", kind, "--json"]) == 0
        documents[kind] = json.loads(capsys.readouterr().out)
        assert documents[kind]["runtimes"] == kind and ("accuracy" in documents[kind]) == (kind == "predicted")
        assert main(["simulate", str(trace), "--runtimes", kind]) == 0
        stdout = " ".join(capsys.readouterr().out.split())
        assert ("run times " in stdout) == (kind != "walltime")
    accuracy = documents["predicted"]["accuracy"]
    assert accuracy["walltime"]["median_factor"] == 4.0 and accuracy["predicted"]["jobs"] == 36
    assert accuracy["predicted"]["median_factor"] < 2.0 and accuracy["predicted"]["within_20_percent"] > 0.1
    assert documents["predicted"]["mean_waiting_time"] != documents["walltime"]["mean_waiting_time"]
    assert main(["simulate", str(trace), "--runtimes", "predicted"]) == 0
    assert "% too low; walltime: 4.00 times off in the median, 0 % within 20 %" in " ".join(
        capsys.readouterr().out.split()
    )


def test_an_unknown_kind_of_run_times_is_a_usage_error(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", str(trace), "--runtimes", "guess"]) == 64
    why = "'guess' is not a kind of run time (allowed: walltime, predicted, actual)"
    assert why in " ".join(capsys.readouterr().err.split())


def test_predictions_reach_each_kind_of_policy(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also a policy of a user's own, which sees that its walltimes are predictions; and jobs without a request."""
    (trace.parent / "mine.py").write_text(
        "from pilotfish.api import Start\n\n\nclass Mine:\n    def decide(self, now):\n"
        "        assert all(job.predicted and job.walltime <= 20.0 for job in now.waiting)\n"
        "        return [Start(job) for job in now.waiting if job.size <= now.free][:1]\n"
    )
    for policy in (
        "strict:order=sjf",
        "conservative",
        "conservative:allocation=contiguous",
        f"{trace.parent}/mine.py:Mine",
    ):
        assert main(["simulate", str(trace), "-p", policy, "--runtimes", "predicted", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["nb_jobs_finished"] == 36
    trace.write_text(TRACE.replace(" 20 -1 1 ", " -1 -1 1 "))
    assert main(["simulate", str(trace), "--runtimes", "predicted"]) == 0
    assert "40 jobs with no requested time; its run time is its walltime" in capsys.readouterr().err


def test_the_start_date_of_a_trace_stays_with_the_results(tmp_path: Path) -> None:
    (tmp_path / "dated.swf").write_text(f"; UnixStartTime: 1346598124\n{TRACE}")
    assert main(["simulate", str(tmp_path / "dated.swf"), "--out", str(tmp_path / "run")]) == 0
    assert read_run(tmp_path / "run").epoch == 1346598124


def test_a_pipe_is_read_once_and_its_content_has_no_hash(capsys: pytest.CaptureFixture[str]) -> None:
    read, write = os.pipe()
    try:
        os.write(write, TRACE.encode())
        os.close(write)
        assert main(["simulate", f"/dev/fd/{read}", "--json"]) == 0
    finally:
        os.close(read)
    document = json.loads(capsys.readouterr().out)
    assert document["nb_jobs"] == 40 and document["inputs"] == {f"/dev/fd/{read}": None}


def test_filters_are_counted(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    selection = ["--select", "from=5,until=30,max_size=8", "--select", "min_size=2,users=1,load=2"]
    assert main(["simulate", str(trace), *selection, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    left_out = document["left_out"]
    assert left_out["jobs submitted before the window"] == 4 and left_out["jobs submitted after the window"] == 11
    assert document["nb_jobs"] + sum(left_out.values()) == 40 and set(left_out) >= {"jobs of other users"}


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["-p", "easy"], "The engine is easy, with the compiled kernel queue.easy;"),
        (["-p", "conservative", "--decision-time", "5"], "not a compiled one because decisions take time"),
    ],
)
def test_the_engine_is_explained(trace: Path, argv: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", str(trace), *argv, "--explain-engine"]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert why in line


@pytest.mark.parametrize(
    ("argv", "code", "why"),
    [
        (["-p", "esy"], 64, "did you mean easy"),
        (["--procs", "0"], 64, "allowed: 1 to 2147483584"),
        (["--procs", "2147483585"], 64, "allowed: 1 to 2147483584"),
        (["--select", "from=nan"], 64, "from: found nan (allowed: a number from 0)"),
        (["--select", "from=5,until=5"], 64, "until: found 5.0 (allowed: more than from, 5)"),
        (["--select", "min_size=5,max_size=4"], 64, "max_size: found 4 (allowed: at least min_size, 5)"),
        (["--seed", "9223372036854775808"], 64, "--seed"),
        (["--procs", "4", "--cluster", "x.yaml"], 64, "not together with --cluster"),
        (["--select", "load=0"], 64, "above 0"),
        (["--select", "load=1,load=2"], 64, "each key once"),
        (["--select", "user=1"], 64, "did you mean 'users'"),
        (["--select", "5"], 64, "KEY=VALUE"),
        (["--as-batsim"], 64, "needed: --out"),
        (["--cluster", "nowhere.yaml"], 1, "nowhere.yaml"),
        (["--select", "users=99"], 1, "no jobs to replay"),
        (["-p", "pairs"], 64, "needed: --cluster"),
        (["-p", "nodes", "--cluster", "x.yaml", "--resource", "node"], 64, "needed: --cluster"),
        (["-p", "pairs:resource=fast"], 64, "high_gflops"),
        (["-p", "pairs+opportunistic"], 64, "does not go with"),
    ],
)
def test_what_is_wrong_is_said(
    trace: Path, argv: list[str], code: int, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", str(trace), *argv]) == code
    assert why in " ".join(capsys.readouterr().err.split())


CLUSTER = """
schema: pilotfish/cluster/v1
name: c
node_types: {t: {cores: 4, memory: 4GiB, memory_bandwidth: 10GB/s}}
nodes: [{names: "n[1-4]", type: t}]
clusters: {left: "n[1-2]", right: "%s"}
"""


def test_jobs_stay_within_the_clusters_of_a_cluster_file(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "c.yaml", tmp_path / "run"
    path.write_text(CLUSTER % "n[3-4]")
    argv = ["simulate", str(trace), "-c", str(path), "-p", "conservative:allocation=local", "--out", str(out)]
    assert main(argv) == 0
    assert "4 rejected" in capsys.readouterr().out  # they ask for 9 of the 8 cores of a cluster
    for row in csv.DictReader((out / "jobs.csv").open()):
        cores = [int(word) for word in row["allocated_resources"].replace("-", " ").split()]
        assert not cores or max(cores) < 8 or min(cores) >= 8
    path.write_text(CLUSTER % "n[1,4]")
    assert main(argv) == 1
    assert "clusters.right: its nodes are not adjacent" in capsys.readouterr().err
    assert main([*argv[:4], "-p", "conservative:allocation=contiguous"]) == 0, "who looks at no clusters does not mind"


def test_a_machine_that_nobody_tells(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace.write_text(TRACE.split("\n", 1)[1])
    assert main(["simulate", str(trace)]) == 1
    assert "small.swf: MaxProcs: missing" in capsys.readouterr().err


def test_preceding_jobs_think_times_and_partial_executions(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = ["1 0 -1 9 4 -1 -1 4 9 -1 1 1 1 1 1 1 -1 -1", "1 0 -1 4 4 -1 -1 4 9 -1 3 1 1 1 1 1 -1 -1",
            "2 0 -1 5 4 -1 -1 4 9 -1 1 1 1 1 1 1 1 6"]  # fmt: skip
    trace.write_text("\n".join(["; MaxProcs: 1,024", *jobs]))
    assert main(["simulate", str(trace)]) == 0
    shown = capsys.readouterr().out
    assert "small: 2 jobs on 1,024 processors" in shown and "makespan    20.00 s" in shown
    assert "left out    1 partial execution of jobs that have a summary" in shown
    trace.write_text("\n".join(jobs))
    assert main(["simulate", str(trace)]) == 1
    assert "small.swf: MaxProcs: missing" in capsys.readouterr().err


BATSIM = {
    "nb_res": 4,
    "jobs": [
        {"id": "w0!a", "subtime": 0, "res": 2, "walltime": 9, "profile": "wait"},
        {"id": "w0!b", "subtime": 1, "res": 3, "profile": "compute"},
        {"id": "w0!c", "subtime": 1, "res": 2, "profile": "talk"},
    ],
    "profiles": {
        "wait": {"type": "delay", "delay": 5},
        "compute": {"type": "parallel_homogeneous", "cpu": 8e9, "com": 0},
        "talk": {"type": "parallel_homogeneous", "cpu": 8e9, "com": 1},
    },
}


@pytest.fixture
def batsim(tmp_path: Path) -> Path:
    path = tmp_path / "b.json"
    path.write_text(json.dumps(BATSIM))
    return path


def test_a_workload_of_batsim_on_a_cluster_that_says_its_speed(
    batsim: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster, out = tmp_path / "c.yaml", tmp_path / "run"
    cluster.write_text((CLUSTER % "n[3-4]").replace("cores: 4", "cores: 1, speed: 4.0e9"))
    argv = ["simulate", str(batsim), "-c", str(cluster), "--skip-invalid", "--out", str(out)]
    assert main(argv) == 0
    stdout = capsys.readouterr().out
    assert "b: 2 jobs on 4 processors (the nodes of c.yaml)" in stdout and "left out    1 job that cannot" in stdout
    rows = list(csv.DictReader((out / "jobs.csv").open()))
    assert [(row["job_id"], row["profile"]) for row in rows] == [("w0!a", "wait"), ("w0!b", "compute")]
    assert [row["finish_time"] for row in rows] == ["5.0", "7.0"] and rows[1]["requested_time"] == "-1"


PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
 <zone id="AS0" routing="Full">
  <host id="master_host" speed="1Gf"/>
  <cluster id="c" prefix="n" suffix="" radical="0-4" speed="4Gf" bw="125MBps" lat="50us"/>
 </zone>
</platform>
"""


def test_a_platform_of_simgrid_says_how_many_resources_there_are_and_how_fast(
    batsim: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    platform = tmp_path / "p.xml"
    platform.write_text(PLATFORM)
    assert main(["simulate", str(batsim), "-c", str(platform), "--skip-invalid", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["machine"] == 5 and document["nb_jobs"] == 3
    assert document["makespan"] == 5.0001, "from 3 on, 2 s and what the first byte takes"
    platform.write_text(PLATFORM.replace("Gf", "Gz"))
    assert main(["simulate", str(batsim), "-c", str(platform)]) == 1
    assert "p.xml: line 5: host.speed: found '1Gz' (allowed: flop/s such as" in capsys.readouterr().err


def test_every_queue_policy_takes_a_network(batsim: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.xml").write_text(PLATFORM)
    argv = ["simulate", str(batsim), "-c", str(tmp_path / "p.xml"), "-p"]
    (tmp_path / "mine.py").write_text(
        "from pilotfish.api import Start\nclass Own:\n    def decide(self, now):\n        free = now.free\n"
        "        for job in now.waiting:\n            free -= job.size\n            if free < 0:\n                return\n"
        "            yield Start(job)\n"
    )
    makespans = {}
    for policy in ("strict", "easy:order=wfp3", f"{tmp_path}/mine.py:Own"):
        assert main([*argv, policy, "--json"]) == 0
        makespans[policy] = json.loads(capsys.readouterr().out)["makespan"]
    assert makespans["strict"] == makespans[f"{tmp_path}/mine.py:Own"]


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (
            [],
            "jobs[1]: job w0!b, profile 'compute' (parallel_homogeneous): it computes, but the speed of the machine is unknown",
        ),
        (["--select", "users=3"], "this workload has no users"),
        (["-p", "conservative"], "job w0!b: it has no walltime"),
    ],
)
def test_what_a_workload_of_batsim_lacks_is_said(
    batsim: Path, argv: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    data = {**BATSIM, "profiles": {**BATSIM["profiles"], "talk": {"type": "delay", "delay": 1}}}
    if argv:
        data["profiles"]["compute"] = {"type": "delay", "delay": 2}
    batsim.write_text(json.dumps(data))
    assert main(["simulate", str(batsim), *argv]) == 1
    assert why in " ".join(capsys.readouterr().err.split())
    del data["nb_res"]
    data["profiles"]["compute"] = {"type": "delay", "delay": 2}
    batsim.write_text(json.dumps(data))
    assert main(["simulate", str(batsim)]) == 1
    assert "b.json: nb_res: missing" in capsys.readouterr().err


def test_policies_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policies"]) == 0
    stdout = capsys.readouterr().out
    assert "easy: EASY backfilling" in stdout and "wfp3" in stdout and max(map(len, stdout.splitlines())) <= 80


LAB = """
schema: pilotfish/cluster/v1
node_types:
  i5: {cores: 4, memory: 8GB, memory_bandwidth: 38.4GB/s, power: {idle: 20, per_core: 6.14, per_socket: 5.59}}
nodes:
  - {names: "n[1-2]", type: i5}
"""


def test_tasks_that_contend(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "lab.yaml").write_text(LAB)
    lab = ["--cluster", str(tmp_path / "lab.yaml")]
    pairs = ["-p", "pairs:job=first,resource=low_power", "--out", str(tmp_path / "run")]
    assert main(["simulate", str(trace), *lab, *pairs, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["machine"], document["policy"]) == (8, "pairs:resource=low_power")
    assert main(["simulate", str(trace), *lab, "-p", "strict", "--json"]) == 0
    strict = json.loads(capsys.readouterr().out)
    assert document["makespan"] == strict["makespan"] and document["nb_jobs_rejected"] == 4
    with (tmp_path / "run" / "consumed_energy.csv").open() as file:
        assert float(list(csv.DictReader(file))[-1]["energy"]) == pytest.approx(document["consumed_joules"])
    assert main(["simulate", str(trace), *lab, "-p", "nodes:rule=biggest"]) == 0
    assert "17 rejected: no" in capsys.readouterr().out


def test_irmasims_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two tasks that move 30 GB/s each on one processor are slower than on two."""
    constants = {"b": -1.85e-05, "c": 32000, "da": 1.75, "db": 3500, "dc": 45000, "dd": 3000}
    platform = {
        "platform": {"lab": {"clusters": [{"id": "a", "nodes": [{"type": "n", "number": 2}]}]}},
        "node": {"n": {"processors": [{"type": "i5"}]}},
        "processor": {"i5": {"cores": 4, "clock_rate": 2, "pa": 6.14, "pb": 5.59, **constants}},
    }
    jobs = {"jobs": [{"id": "j", "subtime": 0, "res": 2, "req_ops": 2e11, "ipc": 1, "mem_vol": 3e6}]}
    (tmp_path / "p.json").write_text(json.dumps(platform))
    (tmp_path / "w.json").write_text(json.dumps(jobs))
    argv = ["simulate", str(tmp_path / "w.json"), "-c", str(tmp_path / "p.json"), "--json", "-p"]
    documents = {}
    for rule in ("high_core", "random"):
        assert main([*argv, f"pairs:job=first,resource={rule}", "--seed", "1"]) == 0
        documents[rule] = json.loads(capsys.readouterr().out)
    assert documents["high_core"]["makespan"] == 100.0
    assert documents["high_core"]["consumed_joules"] == pytest.approx(100 * 2 * (6.14 + 5.59))
    assert documents["random"]["makespan"] > 110.0


WORKFLOW = """
schema: pilotfish/workflow/v1
jobs:
  prepare: {profile: {threads: 2, service_demand: 10.0}}
  align-1: {after: prepare, profile: {threads: 4, service_demand: 20.0}, walltime: 15}
  align-2: {after: prepare, profile: {threads: 4, service_demand: 20.0}}
  merge: {after: [align-1, align-2], profile: {threads: 1, service_demand: 5.0}}
  report: {after: [align-2], profile: {threads: 1, service_demand: 1.0}}
"""


def test_a_workflow_beside_a_trace(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "flow.yaml", tmp_path / "run"
    path.write_text(WORKFLOW)
    assert main(["simulate", str(path), "--procs", "8", "-p", "conservative", "--out", str(out)]) == 0
    stdout = capsys.readouterr().out
    assert "1 ended by their walltime, 1 rejected: a job that they depend on was" in " ".join(stdout.split())
    assert max(map(len, stdout.splitlines())) <= 80
    rows = {row["job_id"]: row for row in csv.DictReader((out / "jobs.csv").open())}
    assert [row["submission_time"] for row in rows.values()] == ["0.0", "10.0", "10.0", "0.0", "30.0"]
    assert rows["report"]["waiting_time"] == "0.0" and rows["merge"]["final_state"] == "REJECTED"
    assert main(["simulate", str(path), str(trace), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["machine"], document["nb_jobs"], document["nb_jobs_rejected"]) == (8, 45, 5)


@pytest.mark.parametrize(
    ("old", "new", "argv", "why"),
    [
        ("", "", [], "flow.yaml: missing: the size of the machine (allowed: --procs, or --cluster)"),
        ("after: prepare", "after: prepares", ["--procs", "8"], "did you mean 'prepare'?"),
        ("prepare: {", "prepare: {after: merge, ", ["--procs", "8"], "in a cycle: prepare ->"),
        ("{threads: 2, service_demand: 10.0}", "nothing", ["--procs", "8"], "no profile is named 'nothing'"),
        (
            "",
            "",
            ["--procs", "8", "-p", "easy+energybud:budget=50%"],
            "a budget needs an end, because jobs have dependencies",
        ),
    ],
)
def test_what_is_wrong_with_a_workflow_is_said(
    tmp_path: Path, old: str, new: str, argv: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "flow.yaml"
    path.write_text(WORKFLOW.replace(old, new) if old else WORKFLOW)
    assert main(["simulate", str(path), *argv]) == 1
    assert why in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("argv", [["simulate", "flow.yaml", "--procs", "8"], ["convert", "flow.yaml", "flow.swf"]])
def test_a_forgotten_unit_in_a_workflow_is_a_warning(
    tmp_path: Path, argv: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    job = "{walltime: 10, profile: {service_demand: 20, memory: 256}}"
    Path("flow.yaml").write_text(f"schema: pilotfish/workflow/v1\nname: flow\njobs:\n  a: {job}\n  b: {job}\n")
    assert main(argv) == 0
    stderr = capsys.readouterr().err
    assert "warning: flow.yaml: jobs.a.walltime (and 1 more job): 10 means 10 seconds, not minutes" in stderr
    assert "warning: flow.yaml: jobs.a.profile.memory (and 1 more job): 256 means 256 bytes" in stderr
    assert stderr.count("warning: ") == 2


@pytest.mark.real
def test_a_machine_that_is_too_large_for_the_memory_is_one_line(trace: Path) -> None:
    limited = "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (12 * 2**30,) * 2); "
    code = limited + "from pilotfish.cli.__main__ import main; sys.exit(main(sys.argv[1:]))"
    argv = [sys.executable, "-c", code, "simulate", str(trace), "--procs", str(2**31 - 64)]
    process = subprocess.run(argv, capture_output=True, text=True, timeout=300)
    assert process.returncode == 1 and "pilotfish: error: there is not enough memory for this" in process.stderr
    assert "report" not in process.stderr and "Traceback" not in process.stderr


def test_energy_is_unknown_unless_a_machine_is_given_or_the_policy_decides_by_it(tmp_path, capsys):
    trace = tmp_path / "t.swf"
    trace.write_text("; MaxProcs: 4\n1 0 0 10 2 -1 -1 2 20 -1 1 1 1 1 1 1 -1 -1\n")
    joules = {}
    for policy in ("easy", "strict", "easy+opportunistic"):
        assert main(["simulate", str(trace), "-p", policy, "--json", "--out", str(tmp_path / policy)]) == 0
        joules[policy] = json.loads(capsys.readouterr().out)["consumed_joules"]
    assert joules["easy"] is joules["strict"] is None and joules["easy+opportunistic"] > 0.0
    assert not (tmp_path / "easy" / "consumed_energy.csv").exists()
    assert main(["simulate", str(trace), "--procs", "8"]) == 0
    assert "energy      unknown" in capsys.readouterr().out
