"""`pilotfish sweep` with all workloads, machines and policies that `simulate` knows: each row is what that says."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import pytest

import pilotfish
from pilotfish.cli import kernel_loading
from pilotfish.cli.__main__ import main
from pilotfish.cli.replay import sweep
from pilotfish.cli.sweeps import prepare, tasks
from pilotfish.cli.sweeps.tasks import TraceFile

SWF = "; MaxProcs: 8\n" + "".join(
    f"{i} {i} -1 {3 + i % 5} {1 + i % 4} -1 -1 -1 20 -1 1 {i % 3} -1 -1 -1 -1 -1 -1\n" for i in range(1, 31)
)
BATSIM: dict[str, Any] = {
    "nb_res": 4,
    "jobs": [
        {"id": f"w0!{i}", "subtime": i, "res": 1 + i % 3, "walltime": 40, "profile": profile}
        for i, profile in enumerate(6 * ("wait", "compute", "trace") + ("wait", "compute"))
    ],
    "profiles": {
        "wait": {"type": "delay", "delay": 5},
        "compute": {"type": "parallel_homogeneous", "cpu": 8e9, "com": 0},
        "trace": {"type": "usage_trace", "trace": "usage/list.txt"},
        "call": {"type": "smpi", "trace": "calls.txt"},
        "talk": {"type": "parallel_homogeneous", "cpu": 4e9, "com": 1e8},
    },
}
IRMASIM = {
    "jobs": [
        {"id": f"j{i}", "subtime": i, "res": 1 + i % 3, "req_ops": 2e10, "ipc": 1, "req_time": 20 - i, "mem_vol": 3e4}
        for i in range(12)
    ]
}
XML = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
 <zone id="AS0" routing="Full">
  <host id="master_host" speed="1Gf"/>
  <cluster id="c" prefix="n" suffix="" radical="0-4" speed="4Gf" bw="125MBps" lat="50us"/>
 </zone>
</platform>
"""
LAB = """
schema: pilotfish/cluster/v1
node_types:
  i5:
    {cores: 4, memory: 8GB, memory_bandwidth: 38.4GB/s, speed: 2.0e9,
     power: {idle: 20, computing: 90, off: 4, switch_on: {watts: 60, seconds: 3}, switch_off: {watts: 30, seconds: 2}}}
nodes: [{names: "n[1-4]", type: i5}]
"""
IRMASIM_LAB = {
    "platform": {"lab": {"clusters": [{"id": "a", "nodes": [{"type": "n", "number": 2}]}]}},
    "node": {"n": {"processors": [{"type": "i5"}]}},
}
TYPES = {"i5": {"cores": 4, "clock_rate": 2, "pa": 6.14, "pb": 5.59, "b": -1.85e-05, "c": 32000, "da": 1.75,
                "db": 3500, "dc": 45000, "dd": 3000}}  # fmt: skip
NODES = {"cluster": "lab.yaml", "resource": "node"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    files = {"a.swf": SWF, "lab.yaml": LAB, "p.xml": XML, "usage/list.txt": "r0\nsub/r1\n",
             "usage/r0": "0 m_usage 1 8e9\n", "usage/sub/r1": "1 m_usage 0.5 1.6e10\n"}  # fmt: skip
    files |= {
        name: json.dumps(data)
        for name, data in (("b.json", jobs_of("wait", "compute")), ("i.json", IRMASIM), ("u.json", jobs_of("trace")),
                           ("t.json", BATSIM | {"jobs": [job | {"profile": "talk"} for job in BATSIM["jobs"]]}),
                           ("p.json", IRMASIM_LAB), ("processor_types.json", TYPES))
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def jobs_of(*profiles: str) -> dict[str, Any]:
    """The jobs of these profiles, and what they need; those of the trace have two ranks."""
    jobs = [job | {"res": 2} if job["profile"] == "trace" else job for job in BATSIM["jobs"]]
    return BATSIM | {
        "jobs": [job for job in jobs if job["profile"] in profiles],
        "profiles": {name: BATSIM["profiles"][name] for name in profiles},
    }


def swept(folder: Path, code: int = 0, out: str = "s.results", **keys: Any) -> list[dict[str, str]]:
    write(folder, **keys)
    assert main(["sweep", "s.yaml", "--workers", "1", "--out", out]) == code
    with (folder / out / "results.csv").open() as file:
        return list(csv.DictReader(file))


def write(folder: Path, **keys: Any) -> None:
    (folder / "s.yaml").write_text(json.dumps({"schema": "pilotfish/sweep/v1", "policies": ["easy"]} | keys))


def alone(capsys: pytest.CaptureFixture[str], row: dict[str, str]) -> dict[str, Any]:
    """What `simulate` says of a row."""
    name, _, resource = row["machine"].partition(":")
    machine = ["--procs", name] if name.isdigit() else ["-c", name, "--resource", resource or "core"]
    capsys.readouterr()
    argv = [row["workload"], "-p", row["policy"], "--seed", row["seed"]]
    assert main(["simulate", *argv, *([] if name == "trace" else machine), "--json"]) == 0
    return dict(json.loads(capsys.readouterr().out))


@pytest.mark.real
@pytest.mark.parametrize(
    ("workloads", "machines", "policies"),
    [
        (["b.json", "a.swf"], ["p.xml", "lab.yaml", NODES], ["easy:order=wfp3", "conservative"]),
        (["i.json", "a.swf"], ["p.json", "lab.yaml"], ["pairs:resource=random", "pairs:job=shortest", "nodes", "easy"]),
        (["u.json"], ["lab.yaml", "p.xml"], ["strict"]),
        (["t.json", "b.json"], ["p.xml"], ["easy", "conservative:order=sjf"]),
        (["a.swf"], [NODES], ["easy+opportunistic:t_idle=2", "easy+energybud:budget=70%+opportunistic"]),
    ],
)
def test_a_row_is_what_simulate_says(
    folder: Path, workloads: list[str], machines: Any, policies: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    table = swept(folder, workloads=workloads, machines=machines, policies=policies, seeds=[3])
    assert len(table) == len(workloads) * len(machines) * len(policies)
    for row in table:
        summary, numbers = alone(capsys, row), set(prepare.NUMBERS) - {prepare.MEASURED}
        assert {name: row[name] for name in numbers} == {
            name: "" if summary[name] is None else str(summary[name]) for name in numbers
        }
        assert row["status"] == "done" and (row["machine"] == "p.xml") is (row["consumed_joules"] == "")


@pytest.mark.real
def test_all_kernels_are_made_before_processes_need_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = list[str]()
    for module in (sweep, kernel_loading):
        monkeypatch.setattr(module, "load_kernels", lambda *names: loaded.extend(names))
    swept(folder, workloads=["a.swf"], machines=["lab.yaml"], policies=["easy", "pairs"])
    assert set(loaded) == {"swf.parser", "queue.easy", "mapping.entry"}
    loaded.clear()
    swept(folder, workloads=["t.json"], machines=["p.xml"], policies=["strict", "conservative"], out="two")
    assert set(loaded) >= {"queue.easy_networked", "queue.conservative_networked"}


@pytest.mark.real
def test_options_of_all_policies_are_columns(folder: Path) -> None:
    policies = ["easy:order=sjf", {"policy": "pairs", "resource": ["random", "high_core"]}, "nodes:rule=biggest"]
    table = swept(folder, workloads=["a.swf"], machines=["lab.yaml"], policies=policies)
    named = ("policy_order", "policy_job", "policy_resource", "policy_rule")
    assert [tuple(row[name] for name in named) for row in table] == [
        ("sjf", "", "", ""), ("", "first", "random", ""), ("", "first", "high_core", ""), ("", "first", "", "biggest"),
    ]  # fmt: skip


def identities(folder: Path, **keys: Any) -> list[str]:
    write(folder, **keys)
    return [task.identity for task in prepare.prepare(folder / "s.yaml").tasks]


def test_a_run_is_known_by_all_that_its_files_name(folder: Path) -> None:
    """Ranks of a usage trace, types of processors beside a platform."""
    keys = {"workloads": ["u.json", "b.json"], "machines": ["p.json", "lab.yaml", NODES]}
    first = identities(folder, **keys)
    assert len(set(first)) == 6 and identities(folder, **keys) == first
    (folder / "usage" / "sub" / "r1").write_text("1 m_usage 1 1e9\n")
    changed = identities(folder, **keys)
    assert [a == b for a, b in zip(first, changed, strict=True)] == [False] * 3 + [True] * 3
    (folder / "processor_types.json").write_text(json.dumps({"i5": TYPES["i5"] | {"clock_rate": 3}}))
    again = identities(folder, **keys)
    assert [a == b for a, b in zip(changed, again, strict=True)] == [False, True, True] * 2
    prepared = prepare.prepare(folder / "s.yaml")
    assert set(prepared.contents) == {
        "u.json", "b.json", "usage/list.txt", "usage/r0", "usage/sub/r1", "p.json", "processor_types.json", "lab.yaml",
    }  # fmt: skip


def test_contents_will_do_where_no_file_can_be_seen(folder: Path) -> None:
    keys = {"workloads": ["u.json", "i.json", "b.json"], "machines": ["lab.yaml"], "policies": ["easy", "pairs"]}
    write(folder, **keys)
    prepared = prepare.prepare(Path("s.yaml"))
    results = [tasks.carry_out(task) for task in prepared.tasks]
    contents = [task.trace.contents() for task in prepared.tasks]
    assert [len(files) for files in contents] == [4, 4, 1, 1, 1, 1]
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        path.unlink()
    for task, content, numbers in zip(prepared.tasks, contents, results, strict=True):
        assert tasks.carry_out(task, content) | {"simulation_time": 0} == numbers | {"simulation_time": 0}
    first = prepared.tasks[0]
    wrong = (*contents[0][:-1], b"1 m_usage 2 1\n")
    assert tasks.features_of_task(first, contents[0]) == frozenset()
    answer = tasks.attempt(pilotfish.__version__, tasks.features_of_task, first, wrong)
    assert isinstance(answer, tasks.Failure) and "in usage/sub/r1" in answer.why and "u.json: jobs[0]" in answer.why
    answer = tasks.attempt(
        pilotfish.__version__, tasks.features_of_task, first, (*contents[0][:-1], b"1 m_usage 1 1\n")
    )
    assert isinstance(answer, tasks.Failure) and "changed while the sweep ran" in answer.why


@pytest.mark.parametrize("name", ["../r0", "/abs/r0", "sub/../../r0"])
def test_files_elsewhere_cannot_be_handed_over(name: str) -> None:
    assert not TraceFile("u.json", "", named=(("usage/r0", ""), (name, ""))).kept_together
    assert TraceFile("u.json", "", named=(("usage/r0", ""), ("r..0", ""))).kept_together


@pytest.mark.real
@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"machines": [8]}, "the speed of the machine is unknown (allowed: a file among `machines` with a speed"),
        ({"workloads": ["i.json"], "machines": [8]}, "the speed of the cores is unknown (allowed: a file among"),
        (
            {"machines": ["pairless.yaml"], "policies": ["pairs:resource=low_power"]},
            "the power of this machine is not known",
        ),
        ({"machines": ["pairless.yaml"], "policies": ["easy+powercap"]}, "machines: easy+powercap on pairless.yaml: "),
        (
            {"machines": ["lab.yaml"], "policies": ["easy+opportunistic"]},
            "it switches nodes, and the resources of this machine are cores",
        ),
        (
            {"machines": ["p.xml"], "policies": ["easy+opportunistic"]},
            "a cluster file with power, or a number of processors)",
        ),
        ({"workloads": ["endless.json"], "policies": ["easy", "conservative"]}, "job w0!0: it has no walltime"),
        ({"workloads": ["endless.json"], "policies": ["easy+powercap"], "machines": ["lab.yaml"]}, "has no walltime"),
        ({"workloads": ["call.json"]}, "call.json: jobs[0]: job w0!0, profile 'call'"),
        ({"workloads": ["t.json"], "machines": [8]}, "t.json: jobs[0]: job w0!0, profile 'talk'"),
        ({"workloads": ["nowhere.json"]}, "nowhere.json: nb_res: missing: the size of the machine"),
        ({"workloads": ["lost.json"], "machines": ["lab.yaml"]}, "usage/gone: cannot be read: No such file"),
        ({"workloads": ["far.json"], "machines": ["lab.yaml"]}, "(usage_trace): ../../gone: cannot be read: No"),
        ({"workloads": ["no.json"]}, "no.json: line 1"),
        ({"machines": ["p.xml", "bad.xml"]}, "bad.xml: line 5: host.speed: found '1Gz'"),
        ({"machines": ["i.json"]}, "i.json: "),
    ],
)
def test_all_is_checked_before_anything_runs(
    folder: Path, keys: dict[str, Any], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "endless.json": jobs_of("wait") | {"jobs": [{"id": "w0!0", "subtime": 0, "res": 1, "profile": "wait"}]},
        "call.json": BATSIM | {"jobs": [BATSIM["jobs"][0] | {"profile": "call", "res": 2}]},
        "nowhere.json": {key: part for key, part in jobs_of("wait").items() if key != "nb_res"},
        "lost.json": jobs_of("trace") | {"profiles": {"trace": {"type": "usage_trace", "trace": "usage/gone"}}},
        "far.json": jobs_of("trace") | {"profiles": {"trace": {"type": "usage_trace", "trace": "../../gone"}}},
    }
    for name, data in files.items():
        (folder / name).write_text(json.dumps(data))
    (folder / "no.json").write_text("{")
    (folder / "bad.xml").write_text(XML.replace("1Gf", "1Gz"))
    (folder / "pairless.yaml").write_text(LAB[: LAB.index(",\n     power")] + "}\nnodes: [{names: n, type: i5}]\n")
    write(folder, **{"workloads": ["b.json"], **keys})
    assert main(["sweep", "s.yaml", "--workers", "1"]) == 1
    stderr = capsys.readouterr().err
    assert why in stderr and "Traceback" not in stderr and not (folder / "s.results").exists()


@pytest.mark.real
def test_what_cannot_be_replayed_is_left_out_where_that_is_wanted(folder: Path) -> None:
    (folder / "lost.json").write_text(json.dumps(jobs_of("wait", "trace")))
    (folder / "usage" / "sub" / "r1").unlink()
    keys = {"workloads": [{"file": "lost.json", "skip_invalid": True}], "machines": ["lab.yaml"]}
    assert [row["nb_jobs"] for row in swept(folder, **keys)] == ["7"]
    (folder / "usage" / "sub" / "r1").write_text("1 m_usage 1 1e9\n")
    assert [row["nb_jobs"] for row in swept(folder, **keys)] == ["13"], "a file that is there now makes another run"


@pytest.mark.real
def test_energy_is_weighed_where_all_know_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = swept(folder, workloads=["a.swf"], machines=["lab.yaml"], policies=["pairs", "easy"])
    assert all(math.isfinite(float(row["consumed_joules"])) for row in table)
    assert "beats it in both energy and waiting" in capsys.readouterr().out
    swept(folder, workloads=["a.swf"], machines=["lab.yaml", "p.xml"], out="two")
    stdout = capsys.readouterr().out
    assert "unknown" in stdout or "beats it in both utilisation and waiting" in stdout
    assert max(map(len, stdout.splitlines())) <= 80


@pytest.mark.real
def test_what_a_platform_says_in_vain_is_said_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "p.xml").write_text(XML.replace(' <zone id="AS0"', ' <config id="c"/>\n <zone id="AS0"'))
    swept(folder, workloads=["a.swf"], machines=["p.xml"], policies=["easy", "strict"])
    assert capsys.readouterr().err.count("p.xml: ignored: <config>") == 1
