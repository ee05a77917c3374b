"""`--policy ./mine.py:Class` of `simulate`, `plan` and `run`: what is said to people, right or wrong."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pilotfish.cli.__main__ import main

TRACE = "; MaxProcs: 8\n" + "".join(
    f"{i} {i} -1 {3 + i % 5} {1 + i % 9} -1 -1 -1 20 -1 1 {i % 3} -1 -1 -1 -1 -1 -1\n" for i in range(1, 41)
)
MINE = """
from __future__ import annotations
from dataclasses import dataclass
from pilotfish.simulate.queue_policies.interface import Reject, Start
import beside

@dataclass
class Strict:
    least: int = 0
    share: float = 1.0
    loud: bool = False
    seed: int = -1

    def decide(self, now):
        if self.loud:
            print("seed", self.seed, "share", self.share)
        free = now.free
        for job in now.waiting:
            if job.size < self.least:
                yield Reject(job)
            elif job.size > free:
                return
            else:
                free -= job.size
                yield Start(job)

class Breaks:
    def __init__(self, when=beside.WHEN, then=None):
        if then is not None:
            raise ValueError(f"{then!r} is not for me")
        self.when = when

    def decide(self, now):
        1 / (now.time < self.when)

class Asks:
    def __init__(self, depth):
        pass

    def decide(self, now):
        return [1]

class Leaves:
    def decide(self, now):
        raise SystemExit(0)

class Nothing:
    pass
"""

LAB = """
schema: pilotfish/cluster/v1
name: lab
node_types: {small: {cores: 2, memory: 8GiB, memory_bandwidth: 20GB/s}}
nodes: [{names: "n[1-2]", type: small}]
"""
DAG = """
schema: pilotfish/workflow/v1
name: dag
jobs:
  a: {profile: {threads: 2, service_demand: 9}, walltime: 20, command: "true"}
  b: {profile: {threads: 1, service_demand: 5}, walltime: 8, command: "true"}
  c: {profile: {threads: 2, service_demand: 7}, walltime: 8, command: "true"}
  d: {profile: {threads: 1, service_demand: 1}, walltime: 2, after: [b], command: "true"}
"""


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    modules = set(sys.modules)
    (tmp_path / "small.swf").write_text(TRACE)
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "beside.py").write_text("WHEN = 5.5\n")
    (tmp_path / "broken.py").write_text("x = (\n")
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "policies.py").write_text(MINE.replace("import beside", "").replace("beside.WHEN", "1.0"))
    (tmp_path / "here" / "lacks.py").write_text("import something_that_is_nowhere\n")
    (tmp_path / "lab.yaml").write_text(LAB)
    (tmp_path / "dag.yaml").write_text(DAG)
    monkeypatch.setenv("PILOTFISH_STATE", str(tmp_path / "state"))
    yield tmp_path
    for name in set(sys.modules) - modules:
        if name.startswith(("./", "here", "beside")):
            del sys.modules[name]


def simulate(policy: str, *more: str) -> int:
    return main(["simulate", "small.swf", "-p", policy, *more])


def test_its_results_are_those_of_ours(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate("./mine.py:Strict", "--out", "own") == 0
    output = capsys.readouterr()
    assert "policy ./mine.py:Strict" in output.out and "4 rejected: too large for the machine" in output.out
    assert not output.err.count("compiling the replay")
    assert simulate("strict", "--out", "ours") == 0
    for name in ("jobs.csv", "machine_states.csv"):
        assert Path("own", name).read_text() == Path("ours", name).read_text()
    about = json.loads(Path("own/summary.json").read_text())
    assert about["policy"] == "./mine.py:Strict" and about["decision_time"] == 0.0
    assert [Path(name).name for name in about["inputs"]] == ["small.swf", "mine.py"]


def test_a_module_and_options(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = "least=3,loud=true,share=0.25"
    assert simulate(f"here.policies:Strict:{options}", "--seed", "7", "--decision-time", "2") == 0
    stdout = capsys.readouterr().out
    assert "seed 7 share 0.25" in stdout and "9 rejected by" in stdout
    assert simulate("./mine.py:Strict", "--decision-time", "measured", "--json") == 0
    assert json.loads(capsys.readouterr().out)["decision_time"] == "measured"


@pytest.mark.parametrize(
    ("policy", "code", "why"),
    [
        (
            "./mine.py:Asks:depth=2",
            1,
            "policy ./mine.py:Asks: at 1.0 s: invalid decision 1 (allowed: Start, Reserve, Reject, Wake, Switch, Kill, Submit)",
        ),
        ("./mine.py:Asks", 64, "Asks: missing: depth (allowed: :depth=...)"),
        ("./mine.py:Strict:least=x", 64, "Strict:least: 'x' (allowed: a whole number)"),
        ("./mine.py:Strict:loud=yes", 64, "Strict:loud: 'yes' (allowed: true, false)"),
        ("./mine.py:Strict:least=1,least=2", 64, "Strict:least: given twice"),
        ("./mine.py:Strict:most=1", 64, "'most=1' (allowed: least=..., share=..., loud=..., seed=...)"),
        ("./mine.py:Leaves:depth=1", 64, "'depth=1' (allowed: it has no options)"),
        ("./mine.py:Nothing", 1, "mine.py: Nothing: it has no method decide(self, snapshot) (allowed: Strict, Breaks,"),
        ("./mine.py:Other", 1, "mine.py: Other: there is no such class"),
        ("./mine.py:beside", 1, "mine.py: beside: there is no such class"),
        ("./mine.py", 64, "'./mine.py' (allowed: ./file.py:Class or package.module:Class"),
        ("./mine.py:", 64, "(allowed: ./file.py:Class"),
        ("./nowhere.py:Strict", 1, "nowhere.py: No such file or directory"),
        ("here.nowhere:Strict", 64, "there is no module 'here.nowhere'"),
        ("easy.x", 64, "'easy.x' (allowed: ./file.py:Class"),
    ],
)
def test_what_is_wrong_is_said(
    room: Path, policy: str, code: int, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert simulate(policy) == code
    stderr = " ".join(capsys.readouterr().err.split())
    assert why in stderr and "Traceback" not in stderr


@pytest.mark.parametrize(
    ("policy", "line", "why"),
    [
        ("./mine.py:Breaks", "1 / (now.time < self.when)", "./mine.py:Breaks: at 6.0 s: ZeroDivisionError: division"),
        ("./mine.py:Breaks:then=2", "raise ValueError(", "as it was made: ValueError: 2 is not for me"),
        ("./mine.py:Leaves", "raise SystemExit(0)", "./mine.py:Leaves: at 1.0 s: SystemExit: 0"),
        ("./broken.py:Any", "x = (", "policy ./broken.py:Any: as it was loaded: SyntaxError: '(' was never closed"),
        ("here.lacks:Any", "import something_that_is_nowhere", "as it was loaded: ModuleNotFoundError: No module"),
    ],
)
def test_the_users_own_errors_are_shown_as_such(
    room: Path, policy: str, line: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert simulate(policy) == 1
    stderr = capsys.readouterr().err
    assert line in stderr and why in stderr.splitlines()[-1] and "raised an exception:" in stderr
    assert "asking.py" not in stderr and "own_policy.py" not in stderr and "importlib" not in stderr


@pytest.mark.parametrize("text", ["-1", "inf", "soon", ""])
def test_times_that_are_none(room: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate("./mine.py:Strict", "--decision-time", text) == 64
    assert "(allowed: ignore, measured, or seconds from 0 to 1e+15)" in " ".join(capsys.readouterr().err.split())


def test_compiled_policies_take_seconds_or_none(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for policy, takes in (("easy:order=sjf", "measured"), ("easy+opportunistic", "measured")):
        assert simulate(policy, "--decision-time", takes) == 64
        assert f"{takes}, with {policy}: it decides at once (allowed: ignore or seconds;" in " ".join(
            capsys.readouterr().err.split()
        )
    assert simulate("easy:order=sjf", "--decision-time", "2", "--json") == 0
    assert json.loads(capsys.readouterr().out)["decision_time"] == 2.0
    assert main(["policies"]) == 0
    assert "./mine.py:Class" in capsys.readouterr().out


def plan(policy: str, *more: str) -> int:
    return main(["plan", "dag.yaml", "-c", "lab.yaml", "-p", policy, *more])


def test_a_plan_under_it_is_that_of_ours(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plans = {}
    for policy in ("./mine.py:Strict", "strict", "easy:order=sjf"):
        assert plan(policy, "--json") == 0
        plans[policy] = json.loads(capsys.readouterr().out)
    assert plans["./mine.py:Strict"]["policy"] == "./mine.py:Strict"
    starts = {policy: {job["id"]: job["start_time"] for job in one["jobs"]} for policy, one in plans.items()}
    assert starts["./mine.py:Strict"] == starts["strict"] == {"a": 0.0, "b": 0.0, "c": 5.0, "d": 9.0}
    assert starts["easy:order=sjf"] == {"a": 6.0, "b": 0.0, "c": 0.0, "d": 5.0}
    assert plan("./mine.py:Strict", "--compare") == 0
    assert "./mine.py:Strict" in capsys.readouterr().out


def test_a_changed_file_is_read_again_by_the_next_plan(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan("./mine.py:Strict") == 0
    (room / "mine.py").write_text("class Strict:\n    def decide(self, now):\n        return 7\n")
    assert plan("./mine.py:Strict") == 1
    assert "at 0.0 s: TypeError: 'int' object is not iterable" in capsys.readouterr().err


@pytest.mark.real
@pytest.mark.parametrize(
    ("policy", "code", "why"),
    [
        ("./mine.py:Asks", 64, "Asks: missing: depth (allowed: :depth=...)"),
        ("./mine.py:Asks:depth=2", 1, "policy ./mine.py:Asks:depth=2: at 0.0 s: invalid decision 1 (allowed: Start,"),
        (
            "./mine.py:Strict:least=2",
            1,
            "least=2: job 'b': it is never started: policy ./mine.py:Strict:least=2 rejects it",
        ),
        ("./mine.py:Other", 1, "mine.py: Other: there is no such class"),
        ("./nowhere.py:Strict", 1, "nowhere.py: No such file or directory"),
        ("./mine.py:Breaks:when=-1", 1, "at 0.0 s: ZeroDivisionError: division by zero"),
        ("./mine.py:Breaks:then=2", 1, "as it was made: ValueError: 2 is not for me"),
    ],
)
@pytest.mark.parametrize("command", [["plan", "-c", "lab.yaml"], ["run", "--no-live"]], ids=lambda words: words[0])
def test_what_is_wrong_in_a_plan_is_said(
    room: Path, command: list[str], policy: str, code: int, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "dag.yaml", "-p", policy]) == code
    stderr = capsys.readouterr().err
    assert why in " ".join(stderr.split()) and "policy_calls.py" not in stderr and "queue_mapping.py" not in stderr


@pytest.mark.real
def test_a_workflow_is_run_in_the_order_of_a_queue_policy(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "dag.yaml", "-p", "./mine.py:Strict", "--no-live", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["plan"]["policy"] == "./mine.py:Strict"
