"""A decision component of Batsim as the policy of the daemon: it decides what starts, and cannot take the daemon down."""

from __future__ import annotations

import dataclasses
import json
import logging
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pilotfish.adapters.batsim import live_policy
from pilotfish.adapters.batsim.sockets import LiveSocket
from pilotfish.cli.__main__ import main
from pilotfish.daemon.apply import Recording
from pilotfish.daemon.config import load_config, load_policy_of
from pilotfish.daemon.planning.guarded_planner import simulate_plan
from pilotfish.daemon.planning.live_component import end_components, use_policy
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.snapshot import JobState, NodeState
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.planning.mapping_policies import POLICIES
from pilotfish.simulate.queue_policies.policy_specs import parse
from pilotfish.simulate.replay.replay import replay

FCFS = Path(__file__).parents[2] / "adapters" / "batsim" / "fcfs_component.py"
#: Answers each message with the next of the given replies, then with none, and reports what it received.
SCRIPTED = """
import json, sys, time, zmq
context = zmq.Context()
socket = context.socket(zmq.REP)
socket.bind(sys.argv[1])
for events in json.loads(sys.argv[2]):
    message = json.loads(socket.recv())
    jobs = [event["data"]["job_id"] for event in message["events"] if event["type"] == "JOB_SUBMITTED"]
    text = json.dumps(events).replace("JOB0", jobs[0] if jobs else "?")
    if events == "hang":
        time.sleep(60)
    if events == "die":
        sys.exit(1)
    socket.send(b"nonsense" if events == "text" else json.dumps(
        {"now": message["now"], "events": [{"timestamp": message["now"], **one} for one in json.loads(text)]}
    ).encode())
socket.close()
context.term()  # the last reply is sent
"""


@pytest.fixture(autouse=True)
def sessions() -> Iterator[None]:
    """End all sessions."""
    yield
    end_components()


@contextmanager
def component(program: str | Path, socket: Path, *more: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    """A component that listens at a socket."""
    socket.unlink(missing_ok=True)
    with subprocess.Popen([sys.executable, program, f"ipc://{socket}", *more], stdout=subprocess.DEVNULL) as process:
        try:
            while not socket.exists() and process.poll() is None:
                time.sleep(0.02)
            yield process
        finally:
            process.kill()


@pytest.fixture
def decided(real: None, bench: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """A function that lets a component decide in the bench."""
    with ExitStack() as stack:

        def use(*argv: str | Path, kind: str = "batsim") -> Any:
            name = f"{kind}:ipc://{tmp_path}/edc"
            tmp_path.chmod(0o700)
            if argv:
                bench.component = stack.enter_context(component(argv[0], tmp_path / "edc", *argv[1:]))
            use_policy(name)
            bench.cycle.planner.make_plan = simulate_plan
            options = bench.cycle.planner.options
            bench.cycle.planner.options = dataclasses.replace(options, policy=name, time_limit=5.0)
            return bench

        yield use


def starts_of(bench: Any) -> dict[str, tuple[float, tuple[str, ...]]]:
    """Return when and where each job started."""
    views = sorted(bench.manager.views.values(), key=lambda view: view.start_time)
    return {view.key.partition("/")[2]: (view.start_time - 1000.0, view.nodes) for view in views}


def policy_of(bench: Any) -> str:
    name: str = bench.cycle.planner.options.policy
    return name


@pytest.mark.parametrize(("kind", "file"), [("batsim", "fcfs_component.py"), ("batsim5", "fcfs_component_5.py")])
def test_a_component_that_knows_nothing_of_us_decides_as_in_a_replay(
    decided: Any, kit: Any, kind: str, file: str
) -> None:
    walls, runs, sizes = [9.0, 4.0, 7.0, 3.0, 5.0, 2.0], [6.0, 4.0, 5.0, 3.0, 2.0, 1.0], [1, 2, 1, 2, 1, 1]
    times = np.zeros(6), np.array(runs), np.array(walls)
    trace = Workload("w", np.arange(6), *times, size=np.array(sizes))
    bench = decided(FCFS.with_name(file), kind=kind)
    bench.manager.cluster = dataclasses.replace(bench.manager.cluster, nodes=bench.manager.cluster.nodes[:1])
    bench.manager.states = bench.manager.states[:1]
    jobs = zip(runs, walls, sizes, strict=True)
    flow = bench.submit(
        *(kit.job(f"j{i}", seconds=run, threads=size, walltime=wall) for i, (run, wall, size) in enumerate(jobs))
    )
    bench.run(30)
    assert set(bench.states(flow).values()) == {"completed"}
    replayed = replay(trace, 2, parse("strict")).start_time.tolist()
    assert [starts_of(bench)[f"j{i}"][0] for i in range(6)] == replayed
    assert bench.value("plans_total", policy=policy_of(bench), outcome="failed") == 0.0


def test_a_dry_run_prints_what_the_component_decides_and_does_nothing(decided: Any, kit: Any) -> None:
    lines = list[str]()
    bench = decided(FCFS)
    bench.journal.close()
    bench.start(in_memory=True, applier=Recording(lines.append))
    bench = decided()
    bench.submit(*(kit.job(f"j{i}", threads=2, walltime=9.0) for i in range(3)))
    bench.run(4)
    assert lines == ["start w.1/j0 on n1", "start w.1/j1 on n2"]
    assert not bench.manager.views


SCRIPT = ["die", "hang", "text", [{"type": "KILL_JOB", "data": {"job_ids": ["JOB0"]}}]] + [
    [{"type": "EXECUTE_JOB", "data": {"job_id": job, "alloc": alloc}}, *more]
    for job, alloc, more in (
        ("other!job", "0", []),
        ("JOB0", "4", []),
        ("JOB0", "0-1", []),
        ("JOB0", "0", [{"type": "EXECUTE_JOB", "data": {"job_id": "JOB0", "alloc": "1"}}]),
        ("JOB0", "0", [{"type": "CALL_ME_LATER", "timestamp": -5.0, "data": {"timestamp": 1.0}}]),
    )
]
SAYS = [
    "it has closed the connection", "no reply in", "it sent what is not JSON", "KILL_JOB cannot be carried out",
    "EXECUTE_JOB: job 'other!job' is not known", "there is no host 4", "it is given 2 hosts", "was started before",
    "times that ascend",
]  # fmt: skip


@pytest.mark.parametrize(("reply", "says"), [*zip(SCRIPT, SAYS, strict=True)], ids=SAYS)
def test_a_component_that_fails_is_quoted_once_and_the_fallback_decides(
    decided: Any, kit: Any, tmp_path: Path, reply: Any, says: str, caplog: Any
) -> None:
    (tmp_path / "scripted.py").write_text(SCRIPTED)
    bench = decided(tmp_path / "scripted.py", json.dumps([[], reply]))
    options = bench.cycle.planner.options
    bench.cycle.planner.options = dataclasses.replace(options, time_limit=0.5 if reply == "hang" else 9.0)
    bench.cycle.planner.clock = time.monotonic
    flow = bench.submit(*(kit.job(f"j{i}", seconds=2.0, walltime=5.0) for i in range(2)))
    with caplog.at_level(logging.ERROR, "pilotfish.cycle"):
        bench.run(8)
    assert set(bench.states(flow).values()) == {"completed"} and set(bench.manager.runs.values()) == {1}
    said = [record.getMessage() for record in caplog.records]
    quote = "; the message: nonsense" if reply == "text" else '; the message: {"now":'
    assert says in said[0] and quote in said[0].replace('"now": ', '"now":')
    assert len(said) <= 2 and all(record.exc_info in (None, False) for record in caplog.records)


def test_a_component_that_starts_later_is_asked_again(
    decided: Any, kit: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(live_policy, "RETRY_S", (0.0, 0.0))
    bench = decided()
    bench.submit(kit.job("first", seconds=1.0))
    (report,) = bench.run()
    assert report.policy == "slf" and f"policy {policy_of(bench)}: nothing listens there" in report.failures[0]
    with component(FCFS, tmp_path / "edc"):
        bench.submit(kit.job("second", seconds=1.0))
        assert bench.run()[0].policy == policy_of(bench)
        bench.run(3)
        assert {view.state for view in bench.manager.views.values()} == {JobState.COMPLETED}
        end_components()


def test_after_a_restart_what_runs_takes_hosts(decided: Any, kit: Any, tmp_path: Path) -> None:
    bench = decided(FCFS)
    bench.submit(kit.job("runs", seconds=20.0, threads=2, walltime=30.0))
    bench.run(2)
    end_components()  # it ends with the session
    assert bench.component.wait(10) == 0
    bench.restart()
    bench = decided(FCFS)
    bench.submit(*(kit.job(f"j{i}", seconds=2.0, threads=2, walltime=5.0) for i in range(3)))
    bench.run(12)
    times = {name: time for name, (time, _) in starts_of(bench).items()}
    assert times == {"runs": 0.0, "j0": 2.0, "j1": 4.0, "j2": 6.0}
    assert bench.value("plans_total", policy=policy_of(bench), outcome="failed") == 0.0
    assert set(bench.manager.runs.values()) == {1}


def test_a_node_that_takes_no_jobs_takes_hosts_until_it_is_back(decided: Any, kit: Any) -> None:
    """The first two jobs need a node each; the third, which the component starts second, has to wait for it."""
    bench = decided(FCFS)
    bench.manager.states[0] = NodeState.DOWN
    bench.submit(*(kit.job(f"j{i}", seconds=4.0, threads=2, walltime=5.0) for i in range(3)))
    bench.run(2)
    assert {name: nodes for name, (_, nodes) in starts_of(bench).items()} == {"j0": ("n2",)}
    bench.manager.states[0] = NodeState.UP
    bench.run(9)
    found = starts_of(bench)
    assert found == {"j0": (0.0, ("n2",)), "j1": (2.0, ("n1",)), "j2": (4.0, ("n2",))}
    assert bench.value("plans_total", policy=policy_of(bench), outcome="failed") == 0.0


def test_clients_are_answered_while_a_component_does_not_answer(
    decided: Any, kit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scripted.py").write_text(SCRIPTED)
    bench, answers = decided(tmp_path / "scripted.py", json.dumps([[], "hang"])), list[int]()
    bench.cycle.planner.options = dataclasses.replace(bench.cycle.planner.options, time_limit=1.0)
    bench.cycle.planner.clock = time.monotonic
    bench.cycle.planner.breathe = lambda: answers.append(1)
    asked = LiveSocket.ask
    before, after = list[int](), list[int]()

    def ask(self: LiveSocket, message: bytes, stop: Callable[[], bool]) -> bytes:
        before.append(len(answers))
        try:
            return asked(self, message, stop)
        finally:
            after.append(len(answers))

    monkeypatch.setattr(LiveSocket, "ask", ask)
    bench.submit(kit.job("j", walltime=9.0))
    (report,) = bench.run()
    assert "no reply" in report.failures[0]
    assert after[-1] - before[-1] >= 3  # in a second


@pytest.mark.real
def test_a_component_that_answers_at_once_for_ever_has_the_time_of_a_plan(tmp_path: Path) -> None:
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > 50

    (tmp_path / "scripted.py").write_text(SCRIPTED)
    with component(tmp_path / "scripted.py", tmp_path / "edc", json.dumps([[]] * 1000)):
        socket = LiveSocket(f"ipc://{tmp_path}/edc")
        try:
            with pytest.raises(ConfigError, match="it has had the time of this plan"):
                for _ in range(1000):
                    socket.ask(b'{"now": 0.0, "events": []}', stop)
        finally:
            socket.close()
    assert asked == 51


CALLED = """
import json, sys, zmq
socket = zmq.Context().socket(zmq.REP)
socket.bind(sys.argv[1])
job = kind = None
while kind != "SIMULATION_ENDS":
    message, replies = json.loads(socket.recv()), []
    for event in message["events"]:
        kind = event["type"]
        if kind == "JOB_SUBMITTED" and event["data"]["job"]["walltime"] > 50:
            replies.append(("REJECT_JOB", {"job_id": event["data"]["job_id"]}))
        elif kind == "JOB_SUBMITTED":
            job = event["data"]["job_id"]
            replies.append(("CALL_ME_LATER", {"timestamp": message["now"] + 0.05}))
        elif kind == "REQUESTED_CALL":
            replies.append(("EXECUTE_JOB", {"job_id": job, "alloc": "3"}))
    events = [{"timestamp": message["now"], "type": kind, "data": data} for kind, data in replies]
    socket.send(json.dumps({"now": message["now"], "events": events}).encode())
"""


def test_it_is_called_later_and_what_it_rejects_is_not_planned(decided: Any, kit: Any, tmp_path: Path) -> None:
    (tmp_path / "called.py").write_text(CALLED)
    bench = decided(tmp_path / "called.py")
    flow = bench.submit(kit.job("short", seconds=2.0, walltime=5.0), kit.job("long", seconds=2.0, walltime=60.0))
    (report,) = bench.run()
    assert not bench.manager.views and report.plan.forecast_by == "easy"
    assert bench.cycle.trigger.recheck_at <= 1000.05
    ask = kit.requests(bench)
    assert ask("explain", job=f"{flow}/short")["job"]["plan"]["forecast_by"] == "easy"
    time.sleep(0.06)
    bench.run(4)
    assert starts_of(bench) == {"short": (1.0, ("n2",))}
    assert bench.states(flow) == {"short": "completed", "long": "pending"}
    assert ask("explain", job=f"{flow}/long")["waits"] == f"policy {policy_of(bench)} rejects it"
    use_policy("easy")  # as a reload does
    assert bench.component.wait(10) == 0 and policy_of(bench) not in POLICIES


def test_a_component_with_jobs_of_a_killed_daemon_is_found_out(decided: Any, kit: Any) -> None:
    bench = decided(FCFS)
    bench.submit(*(kit.job(f"j{i}", seconds=5.0, threads=2, walltime=9.0) for i in range(3)))
    bench.run()
    killed: Any = POLICIES.pop(policy_of(bench))
    killed._session = None  # it can say nothing any more
    killed.close()
    bench.restart()
    bench = decided()
    (report,) = bench.run()
    assert "is not known" in report.failures[0] and bench.component.wait(10) == 0
    bench.run(12)
    assert set(bench.manager.runs.values()) == {1} and len(bench.manager.runs) == 3


@pytest.mark.parametrize(
    "endpoint",
    ["head:9", "tcp://10.0.0.1:28000", "tcp://*:28000", "ipc://@edc", "ipc://", "tcp://localhost", ""],
)
def test_others_may_not_listen_by_design(tmp_path: Path, endpoint: str) -> None:
    path = tmp_path / "pilotfish.yaml"
    path.write_text(f'schema: pilotfish/daemon/v1\ncluster: lab.yaml\npolicy: "batsim:{endpoint}"\n')
    with pytest.raises(ConfigError, match=r"pilotfish\.yaml: policy: found .*allowed: ipc://FILE in a folder"):
        load_config(path)


@pytest.mark.parametrize(
    ("argv", "code", "says"),
    [
        (("replay", "trace.swf", "--config", "pilotfish.yaml"), 1, "decides about real jobs, in real time"),
        (("plan", "--config", "pilotfish.yaml"), 1, "decides only in the daemon"),
        (("run", "dag.yaml", "-p", "batsim:ipc://edc"), 64, "only the daemon has that"),
        (("simulate", "trace.swf", "-p", "batsim:ipc://edc"), 64, "batsim --endpoint ENDPOINT"),
        (("simulate", "trace.swf", "-p", "batsim5:ipc://edc"), 64, "is a decision component of Batsim"),
    ],
)
def test_only_the_daemon_has_a_component(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, argv: tuple[str, ...], code: int, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pilotfish.yaml").write_text(
        "schema: pilotfish/daemon/v1\ncluster: lab.yaml\npolicy: batsim:ipc://edc\n"
    )
    (tmp_path / "lab.yaml").write_text(
        "schema: pilotfish/cluster/v1\nname: lab\nnodes: [{names: a, type: t}]\n"
        "node_types: {t: {cores: 1, memory: 1GiB, memory_bandwidth: 1GB/s}}\n"
    )
    (tmp_path / "dag.yaml").write_text('schema: pilotfish/workflow/v1\nname: w\njobs: {a: {command: "true"}}\n')
    (tmp_path / "trace.swf").write_text("; MaxProcs: 1\n1 0 -1 1 1 -1 -1 1 1 -1 1 1 1 1 1 1 -1 -1\n")
    assert main([*argv]) == code
    assert says in " ".join(capsys.readouterr().err.split())


def test_a_folder_that_others_can_write_is_refused(tmp_path: Path) -> None:
    path, folder = tmp_path / "pilotfish.yaml", tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    path.write_text("schema: pilotfish/daemon/v1\ncluster: lab.yaml\npolicy: batsim:ipc://open/edc\n")
    config = load_config(path)
    assert config.policy == f"batsim:ipc://{folder}/edc"
    with pytest.raises(ConfigError, match=r"pilotfish\.yaml: policy: .*is not trusted"):
        load_policy_of(config, path)
    folder.chmod(0o700)
    load_policy_of(config, path)
    assert config.policy in POLICIES
