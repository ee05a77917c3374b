"""The service as a real process on the local adapter: signals, systemd, reload, kill -9, a dry run, its
clients.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pwd
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
import requests
import workers
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.adapters.local.adapter import LocalAdapter
from pilotfish.cli.__main__ import main
from pilotfish.cli.streams import show
from pilotfish.daemon.service import LOOPS
from pilotfish.daemon.socket.ipc import DaemonError, ask
from pilotfish.daemon.state.codec import encode
from pilotfish.daemon.state.users import user_name
from pilotfish.daemon.timing.age_clock import AgeClock
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Workflow

SERVE = Path(__file__).with_name("serve.py")
PATIENCE_S = 60.0


def eventually(check, what):
    """Wait until `check` returns something true, and return that."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if found := check():
            return found
        time.sleep(0.02)
    raise AssertionError(f"{what} did not happen within {PATIENCE_S} s")


class Daemon:
    """A daemon in its own process, with its folder, and the socket that systemd would listen on."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.config = folder, folder / "pilotfish.yaml"
        self.endpoint = f"ipc://{folder}/s"
        self.log = folder / "log"
        cpu = min(os.sched_getaffinity(0))
        (folder / "cluster.yaml").write_text(
            "schema: pilotfish/cluster/v1\nname: here\n"
            "node_types: {t: {cores: 1, memory: 1GiB, memory_bandwidth: 1GB/s}}\n"
            f"nodes: [{{names: 'a', type: t, cpus: '{cpu}'}}]\n"
        )
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.write()
        self.systemd = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.systemd.bind(str(folder / "notify"))
        self.systemd.setblocking(False)
        self.heard: list[str] = []
        self.process: subprocess.Popen[bytes] | workers.Forked | None = None

    def write(self, more: str = "") -> None:
        self.config.write_text(
            "schema: pilotfish/daemon/v1\ncluster: cluster.yaml\nstate_dir: state\ncycle_seconds: 0.2\n"
            "access: {root: true}\n"
            f"profiles: profiles.sqlite\nsocket: {{path: '{self.folder}/s'}}\n"
            f"metrics: {{port: {self.port}}}\n"
            f"adapter: {{name: local, options: {{cgroups: false}}}}\n{more}"
        )

    def start(self, *options: str) -> None:
        env = os.environ | {"NOTIFY_SOCKET": str(self.folder / "notify")}
        with (self.folder / "out").open("a") as out, self.log.open("a") as log:
            self.process = workers.start([SERVE, self.config, *options], env, out, log)
        self.hears("READY=1")

    def hears(self, line: str) -> bool:
        def drained() -> bool:
            assert self.process is None or self.process.poll() is None or line == "STOPPING=1", self.said()
            try:
                while True:
                    self.heard += self.systemd.recv(9999).decode().splitlines()
            except BlockingIOError:
                return line in self.heard

        found = eventually(drained, line)
        self.heard.clear()
        return found

    def said(self) -> str:
        return self.log.read_text()

    def submit(self, *jobs) -> str:
        text = encode(Workflow("w", jobs))
        return ask(self.endpoint, "submit", workflow=text, directory=str(self.folder))["id"]

    def ended(self, workflow: str) -> dict:
        def look():
            found = ask(self.endpoint, "status", workflow=workflow)["workflows"][0]
            return found if found["exit_code"] is not None else None

        return eventually(look, f"the end of {workflow}")

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)

    def close(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.systemd.close()


@pytest.fixture
def daemon(real, tmp_path):
    with closing(Daemon(tmp_path)) as made:
        yield made


def shell(kit, name, line, *after):
    job = kit.job(name, *after, seconds=0.2)
    return type(job)(job.id, job.profile, after=job.after, command=("/bin/sh", "-c", line))


def test_from_ready_to_stop(daemon, kit):
    daemon.start()
    assert daemon.hears("WATCHDOG=1")
    workflow = daemon.submit(
        shell(kit, "a", "echo a >> trail"),
        shell(kit, "b", "echo b >> trail; exit 7", "a"),
        shell(kit, "c", "echo c >> trail", "b"),
    )
    done = daemon.ended(workflow)
    states = {job["id"]: (job["state"], job["exit_code"]) for job in done["jobs"]}
    assert states == {"a": ("completed", 0), "b": ("failed", 7), "c": ("cancelled", None)}
    assert (daemon.folder / "trail").read_text() == "a\nb\n"
    for page, word in (
        ("metrics", 'pilotfish_mode{cluster="here",mode="live"} 1.0'),
        ("healthz", "ok"),
        ("readyz", "ok"),
    ):
        assert word in requests.get(f"http://127.0.0.1:{daemon.port}/{page}", timeout=60).text
    places = f"socket {daemon.folder}/s, metrics at http://127.0.0.1:{daemon.port}/metrics"
    assert f"pilotfish serves cluster here with policy lookahead, live, {places}" in daemon.said()
    assert daemon.stop() == 0
    assert daemon.hears("STOPPING=1")
    assert not (daemon.folder / "s").exists()
    assert "Traceback" not in daemon.said()


def test_a_reload_applies_a_good_file_and_ignores_a_bad_one(daemon):
    daemon.start()
    daemon.write("policy: slf\n")
    daemon.process.send_signal(signal.SIGHUP)
    assert daemon.hears("RELOADING=1")
    eventually(lambda: ask(daemon.endpoint, "status")["policy"] == "slf", "the new policy")
    daemon.write("policy: nonsense\n")
    daemon.process.send_signal(signal.SIGHUP)
    eventually(lambda: "the old one stays" in daemon.said(), "the first_message")
    assert ask(daemon.endpoint, "status")["policy"] == "slf"
    with pytest.raises(DaemonError, match=r"pilotfish.yaml: policy: found 'nonsense'"):
        ask(daemon.endpoint, "reload")
    eventually(lambda: shown(daemon)["config_last_reload_successful"] == 0.0, "the metric of the refusal")
    daemon.write("policy: mom\nseed: 3\ncounters: none\n")
    reply = ask(daemon.endpoint, "reload")
    assert (reply["changed"], reply["restart"], reply["reopens"]) == (["policy", "seed"], ["counters"], False)
    eventually(lambda: shown(daemon)["config_last_reload_successful"] == 1.0, "the metric of the reload")
    assert abs(shown(daemon)["config_last_reload_success_timestamp_seconds"] - time.time()) < PATIENCE_S
    assert ask(daemon.endpoint, "status")["policy"] == "mom"
    assert daemon.stop(signal.SIGINT) == 0


def test_clients_are_answered_during_a_plan_and_a_reload_waits_for_its_end(daemon, kit):
    daemon.start("--slow")
    first = daemon.submit(shell(kit, "a", "true"))
    eventually((daemon.folder / "planning").exists, "the plan")
    second = daemon.submit(shell(kit, "b", "true"))
    with ThreadPoolExecutor() as pool:
        reload = pool.submit(ask, daemon.endpoint, "reload")
        assert ask(daemon.endpoint, "cancel", target=second)["cancelled"] == 1
        assert {each["id"] for each in ask(daemon.endpoint, "status")["workflows"]} == {first, second}
        assert not reload.done()
        (daemon.folder / "go").touch()
        assert reload.result(60)["changed"] == []
    assert daemon.ended(first)["exit_code"] == 0
    assert daemon.stop() == 0


def shown(daemon) -> dict[str, float]:
    text = requests.get(f"http://127.0.0.1:{daemon.port}/metrics", timeout=PATIENCE_S).text
    lines = text.replace('{cluster="here"}', "").replace('cluster="here",', "").splitlines()
    plain = (line.removeprefix("pilotfish_").rsplit(" ", 1) for line in lines if line[0] != "#")
    return {name: float(value) for name, value in plain}


def test_a_reload_pauses_it_and_takes_it_into_shadow_and_back(daemon, kit, capsys):
    def reload(more: str) -> str:
        daemon.write(more)
        assert main(["reload", "--config", str(daemon.config)]) == 0
        return capsys.readouterr().out

    daemon.start()
    assert reload("paused: true\n") == "reloaded: paused\n"
    assert ask(daemon.endpoint, "status")["mode"] == "paused"
    first = daemon.submit(shell(kit, "a", "echo a >> trail"))
    assert reload("mode: shadow\n") == "reloaded: mode, paused\n"
    assert ask(daemon.endpoint, "status")["mode"] == "shadow"
    eventually(lambda: f"would have started {first}/a on a" in daemon.said(), "the decision")
    assert not (daemon.folder / "trail").exists()
    assert reload("") == "reloaded: mode\n"
    assert daemon.ended(first)["exit_code"] == 0
    assert (daemon.folder / "trail").read_text() == "a\n"
    lines = [line for line in ask(daemon.endpoint, "log")["lines"] if line["action"] in ("start", "stop")]
    assert sum(line["action"] == "stop" for line in lines) == 2, "once for each change of mode"
    assert not any("without a stop" in line["why"] for line in lines)
    assert daemon.stop() == 0 and "Traceback" not in daemon.said()


def test_a_pause_survives_a_kill_and_ends_with_resume(daemon, kit, capsys):
    def run(*words: str) -> str:
        assert main([*words, "--socket", daemon.endpoint.removeprefix("ipc:")]) == 0
        return capsys.readouterr().out

    daemon.start()
    assert run("pause", "--why", "new switches", "--for", "2h").startswith(
        f"paused by {user_name(os.getuid())}: all jobs, for "
    )
    daemon.process.kill()
    daemon.process.wait(PATIENCE_S)
    daemon.start()
    workflow = daemon.submit(shell(kit, "a", "echo a >> trail"))
    assert shown(daemon)['paused{partition=""}'] == shown(daemon)['mode{mode="paused"}'] == 1.0
    screen = run("status")
    assert "paused, policy" in screen and screen.count("new switches") == 1
    assert json.loads(run("pause", "--partition", "gpu", "--keep-held", "--json"))["pause"]["keeps_held"] is True
    assert run("resume", "--partition", "gpu") == "resumed: gpu\n"
    assert not (daemon.folder / "trail").exists()
    assert run("resume") == "resumed: all jobs\n" and run("resume") == "resumed: nothing was paused\n"
    assert daemon.ended(workflow)["exit_code"] == 0
    assert daemon.stop() == 0 and "Traceback" not in daemon.said()


@pytest.mark.parametrize("length", ["2", "h", "0s", "1w", "1.5h", "1e9h", "inf"])
def test_a_wrong_length_of_a_pause_is_a_usage_error(length, capsys):
    assert main(["pause", "--for", length]) == 64
    assert "--for" in capsys.readouterr().err


MINE = """
from pilotfish.api import Start

class Mine:
    def decide(self, now):
        free = now.free
        for job in sorted(now.waiting, key=lambda job: job.walltime, reverse=LONGEST_FIRST):
            if job.size <= free:
                free -= job.size
                yield Start(job)
"""


def trail_of(daemon, kit):
    """Return the walltimes of five jobs in the order in which they ran."""
    (daemon.folder / "trail").unlink(missing_ok=True)
    jobs = [
        dataclasses.replace(shell(kit, f"j{wall}", f"echo {wall} >> trail"), walltime=float(wall))
        for wall in (30, 50, 10, 40, 20)
    ]
    assert daemon.ended(daemon.submit(*jobs))["exit_code"] == 0
    return [int(wall) for wall in (daemon.folder / "trail").read_text().split()]


def test_a_users_queue_policy_decides_and_a_reload_reads_it_again(daemon, kit):
    mine = daemon.folder / "mine.py"
    mine.write_text("LONGEST_FIRST = False\n" + MINE)
    mine.chmod(0o644)
    daemon.write("policy: ./mine.py:Mine\n")
    daemon.start("--simulate")
    assert trail_of(daemon, kit) == [10, 20, 30, 40, 50]
    mine.write_text("LONGEST_FIRST = True\n" + MINE)
    daemon.process.send_signal(signal.SIGHUP)
    eventually(lambda: "the configuration was reloaded" in daemon.said(), "the reload")
    assert trail_of(daemon, kit) == [50, 40, 30, 20, 10]
    mine.chmod(0o666)
    daemon.process.send_signal(signal.SIGHUP)
    eventually(lambda: "others can write to it" in daemon.said(), "the refusal")
    assert "the old one stays in force" in daemon.said()
    assert trail_of(daemon, kit) == [50, 40, 30, 20, 10]
    assert daemon.stop() == 0 and "Traceback" not in daemon.said()


def test_a_users_queue_policy_that_others_can_write_keeps_the_daemon_from_starting(daemon, capsys):
    (daemon.folder / "mine.py").write_text("LONGEST_FIRST = True\n" + MINE)
    (daemon.folder / "mine.py").chmod(0o666)
    daemon.write("policy: ./mine.py:Mine\n")
    assert main(["daemon", "--config", str(daemon.config)]) == 1
    said = capsys.readouterr().err
    assert f"{daemon.config}: policy: " in said and "others can write to it" in said and "Traceback" not in said


def test_after_kills_every_job_runs_once(daemon, kit):
    daemon.start()
    jobs = [shell(kit, f"j{i}", f"echo {i} >> trail; sleep 0.1", *(["j0"] if i else [])) for i in range(6)]
    workflow = daemon.submit(*jobs)
    for lines in (1, 3):
        trail = daemon.folder / "trail"
        eventually(lambda: trail.exists() and len(trail.read_text().split()) >= lines, "progress")  # noqa: B023
        daemon.process.kill()
        daemon.process.wait()
        daemon.start()
    assert daemon.ended(workflow)["exit_code"] == 0
    assert sorted((daemon.folder / "trail").read_text().split()) == [str(i) for i in range(6)]
    assert daemon.stop() == 0


def test_a_dry_run_prints_and_starts_nothing(daemon, kit):
    daemon.start("--dry-run")
    workflow = daemon.submit(shell(kit, "a", "echo a >> trail"))
    out = daemon.folder / "out"
    eventually(lambda: ask(daemon.endpoint, "explain", job="a")["story"], "a decision")
    assert daemon.stop() == 0
    name = pwd.getpwuid(os.geteuid()).pw_name
    assert out.read_text() == f"start {workflow}/a on a ({name})\n"
    assert daemon.said().count("on a") == 0 and "start 1 job" in daemon.said()  # the log does not repeat it
    assert not (daemon.folder / "trail").exists()
    assert not (daemon.folder / "state" / "journal.sqlite").exists()


def test_a_second_daemon_is_refused(daemon):
    daemon.start()
    second = subprocess.run([sys.executable, SERVE, daemon.config], capture_output=True, text=True)
    assert second.returncode == 1 and "Traceback" not in second.stderr
    assert "another pilotfish daemon is using this journal" in second.stderr
    assert ask(daemon.endpoint, "status")["mode"] == "live"


def test_a_stopped_daemon_is_one_clear_line(daemon):
    daemon.start()
    assert daemon.stop() == 0
    with pytest.raises(DaemonError, match="no pilotfish daemon listens"):
        ask(daemon.endpoint, "status")


def test_the_commands_submit_show_explain_and_cancel(daemon, capsys):
    daemon.start()
    flow = daemon.folder / "flow.yaml"
    flow.write_text(
        "schema: pilotfish/workflow/v1\nname: flow\njobs:\n"
        "  good: {command: [/bin/true], profile: {service_demand: 0.1}}\n"
        "  bad: {after: [good], command: [/bin/sh, -c, exit 3], profile: {service_demand: 0.1}}\n"
    )
    where = ["--socket", str(daemon.folder / "s")]

    def pilotfish(*arguments):
        code = main([*arguments, *where])
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return code, printed.out, printed.err

    code, workflow, err = pilotfish("submit", str(flow), "--wait", "--key", "k")
    assert "job 'bad' failed: exit code 3; stderr: /" in err and err.count("\n") == 1
    workflow = workflow.strip()
    assert code == 1 and workflow.startswith("flow.")
    assert pilotfish("submit", str(flow), "--key", "k")[:2] == (0, f"{workflow}\n")
    code, out, _ = pilotfish("status", workflow)
    assert code == 0 and "failed (exit 3)" in out and "completed" in out
    assert json.loads(pilotfish("status", "--json")[1])["workflows"][0]["id"] == workflow
    assert [node["name"] for node in json.loads(pilotfish("nodes", "--json")[1])["nodes"]] == ["a"]
    assert "bad" not in pilotfish("status", "--state", "completed")[1]
    code, out, _ = pilotfish("explain", "bad")
    assert code == 0 and "chose a" in out and "failed: exit code 3\n" in out and "runner-up" in out
    assert f"stderr           {daemon.folder}/state/local/jobs/{workflow}%2Fbad/stderr" in out
    code, _, err = pilotfish("cancel", workflow)
    assert code == 1 and err.count("\n") == 1 and "ended already" in err
    assert daemon.stop() == 0
    code, _, err = pilotfish("status")
    assert code == 1 and err.count("\n") == 1 and "no pilotfish daemon listens" in err


def test_folders_of_the_adapter_are_relative_to_the_configuration(daemon, kit):
    (daemon.folder / "said").mkdir()
    wanted = "options: {state_dir: mine, output_dir: said, "
    daemon.config.write_text(daemon.config.read_text().replace("options: {", wanted))
    daemon.start()
    workflow = daemon.submit(shell(kit, "a", "echo here"))
    (job,) = daemon.ended(workflow)["jobs"]
    assert job["stdout"] == str(daemon.folder / "said" / f"{workflow}%2Fa.out")
    assert Path(job["stdout"]).read_text() == "here\n" and (daemon.folder / "mine").is_dir()


def test_a_missing_config_is_one_line(tmp_path, capsys):
    assert main(["daemon", "--config", str(tmp_path / "none.yaml")]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["daemon"]) == 64


@pytest.mark.parametrize("objective", ["energy", "mix:0.5"])
def test_an_energy_objective_without_power_data_is_refused_at_the_start(daemon, objective, capsys):
    daemon.write(f"objective: {objective}\n")
    assert main(["daemon", "--config", str(daemon.config)]) == 1
    assert "the power of node type 't' is unknown" in capsys.readouterr().err
    assert not (daemon.folder / "state").exists()


def test_a_limit_without_power_data_is_refused_at_the_start(daemon, capsys):
    daemon.write("policy: easy+powercap:cap=60%\n")
    assert main(["daemon", "--config", str(daemon.config)]) == 1
    assert (
        "policy: found 'easy+powercap:cap=60%', but the power of this machine is not known" in capsys.readouterr().err
    )
    assert not (daemon.folder / "state").exists()


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ("policy: easy+opportunistic:t_idle=60", "policy: found easy+opportunistic:t_idle=60, but the adapter 'local'"),
        (
            "policy: easy+inertial",
            "policy: found easy+inertial, but the adapter 'local' cannot switch nodes off and on",
        ),
        ("power: {save: true}", "power.save: found true, but the adapter 'local' cannot switch nodes off and on"),
        (
            "policy: easy+opportunistic\npower: {save: true}",
            "power.save: found true, and easy+opportunistic switches nodes, too",
        ),
    ],
)
def test_an_adapter_that_cannot_switch_nodes_off_is_an_error_at_the_start(daemon, policy, says, capsys):
    daemon.write(f"{policy}\n")
    assert main(["daemon", "--config", str(daemon.config)]) == 1
    assert says in capsys.readouterr().err


def test_a_dry_run_leaves_no_trace(daemon):
    daemon.start("--dry-run")
    time.sleep(0.5)
    assert daemon.stop() == 0
    assert not (daemon.folder / "state").exists()


def test_a_dry_run_works_next_to_the_daemon(daemon, kit):
    daemon.start()
    workflow = daemon.submit(shell(kit, "a", "sleep 1"))
    eventually(lambda: list((daemon.folder / "state" / "local" / "jobs").glob("*/begin.json")), "the job")
    live = daemon.process
    try:
        daemon.start("--dry-run")
        assert ask(f"{daemon.endpoint}.dry-run", "status")["ok"]
        assert daemon.stop() == 0
    finally:
        daemon.process = live
    assert daemon.ended(workflow)["exit_code"] == 0
    assert daemon.stop() == 0


def test_a_dry_run_does_not_change_the_profile_store(daemon, kit):
    store = daemon.folder / "profiles.sqlite"
    daemon.start()
    workflow = daemon.submit(dataclasses.replace(shell(kit, "a", "true"), profile=DEFAULT_PROFILE))
    daemon.ended(workflow)
    daemon.stop(signal.SIGKILL)
    files = list(store.parent.glob("profiles.sqlite*"))
    assert store in files
    before = {file: (file.stat().st_mtime_ns, file.stat().st_ctime_ns, file.read_bytes()) for file in files}
    daemon.start("--dry-run")
    daemon.submit(dataclasses.replace(shell(kit, "a", "true"), profile=DEFAULT_PROFILE))
    assert daemon.stop() == 0
    assert {f: (f.stat().st_mtime_ns, f.stat().st_ctime_ns, f.read_bytes()) for f in files} == before
    assert sorted(store.parent.glob("profiles.sqlite*")) == sorted(files)


@pytest.mark.real
@pytest.mark.parametrize(("offers", "loops"), [(False, ["mapping.entry"]), (True, LOOPS)])
def test_what_the_service_needs_is_loaded_before_the_socket_opens(tmp_path, monkeypatch, offers, loops):
    from pilotfish.daemon import service

    served, loaded = Daemon(tmp_path), []

    def load_loops(names, *arguments):
        loaded.append((names, (tmp_path / "s").exists()))
        signal.raise_signal(signal.SIGTERM)
        return False

    monkeypatch.setattr(service, "load_loops", load_loops)
    monkeypatch.setattr(LocalAdapter, "capabilities", dataclasses.replace(LocalAdapter.capabilities, offers=offers))
    with closing(served.systemd):
        assert service.Service(served.config, show=show).run() == 0
    assert loaded == [(loops, False)]


@pytest.mark.real
def test_an_unforeseen_error_of_a_cycle_is_reported_once_and_the_service_goes_on(tmp_path: Path) -> None:
    daemon, fault = Daemon(tmp_path), tmp_path / "fault"
    fault.touch()
    script, said = SERVE.with_name("serve_with_faults.py"), "a cycle failed, please report this fault"
    with daemon.log.open("w") as log:
        process = workers.start([script, daemon.config, fault], os.environ, log, log)

    def page(name: str) -> requests.Response:
        return requests.get(f"http://127.0.0.1:{daemon.port}/{name}", timeout=60)

    def status(name: str) -> int:
        return page(name).status_code

    with closing(daemon.systemd):
        try:
            eventually(lambda: daemon.log.exists() and said in daemon.log.read_text(), "the report")
            assert status("readyz") == 503
            assert page("readyz").text.startswith("faulty: ")
            time.sleep(1.0)
            assert process.poll() is None and daemon.log.read_text().count(said) == 1
            assert "OverflowError" in daemon.log.read_text() and "Traceback" not in daemon.log.read_text()
            fault.unlink()
            eventually(lambda: status("readyz") == 200, "a completed cycle")
            fault.write_text("away")
            eventually(lambda: page("readyz").text.startswith("blind: "), "the fault")
            assert status("healthz") == 200, "the last cycle was a moment ago"
            assert ask(daemon.endpoint, "status")["not_ready"] == page("readyz").text.strip()
            fault.write_text("")
            eventually(lambda: daemon.log.read_text().count(said) == 2, "the second report")
            eventually(lambda: status("healthz") == 503 or time.sleep(0.5), "bad health")  # half a minute later
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        finally:
            process.kill()
            process.wait()


SECONDS = st.floats(0, 1e6)


@given(st.lists(st.tuples(SECONDS, st.just(0.0) | st.floats(-1e8, 1e8)), min_size=1))
def test_a_wall_clock_that_is_set_makes_nothing_older(steps: list[tuple[float, float]]) -> None:
    """Between two looks time passes, and then the wall clock may be set."""
    clock, wall, now = AgeClock(), 1.8e9, 100.0
    last = clock.read(wall, now)
    for passed, step in steps:
        wall, now = wall + passed + step, now + passed
        read = clock.read(wall, now)
        assert read <= wall + 1e-3 and read - last <= passed + 1e-3
        last = read
    assert abs(AgeClock().read(wall, now) - wall) < 1e-3


def test_a_record_of_a_daemon_that_was_killed_gives_the_same_decisions(daemon, kit, capsys):
    daemon.write("record: {enabled: true}\nbudget: 20\n")
    daemon.start("--simulate")
    daemon.submit(shell(kit, "a", "sleep 1"), shell(kit, "b", "true", "a"))
    assert daemon.stop(signal.SIGKILL) == -signal.SIGKILL
    daemon.start("--simulate")
    daemon.ended(daemon.submit(shell(kit, "c", "true"), shell(kit, "d", "true", "c")))
    assert daemon.stop() == 0
    record = daemon.folder / "state" / "record"
    capsys.readouterr()
    assert main(["replay", str(record), "--json"]) == 0
    outcome, notes = json.loads((answer := capsys.readouterr()).out), answer.err
    assert outcome["cycles"] == outcome["equal"] > 3 and outcome["decisions"] >= 3
    assert "it ends in the middle, after " in notes  # the segment of the daemon that was killed
    assert {path.stat().st_mode & 0o777 for path in record.iterdir()} == {0o600}
    assert main(["replay", str(record), "--runtimes", "actual"]) == 64
    assert "--runtimes" in capsys.readouterr().err


def test_a_record_that_cannot_be_made_costs_an_error_in_the_log(daemon, kit):
    daemon.write(f"record: {{enabled: true, folder: '{daemon.folder}/record'}}\n")
    (daemon.folder / "record").write_text("a file")
    daemon.start()
    assert "record: no record is made: " in daemon.said()
    assert daemon.ended(daemon.submit(shell(kit, "a", "true")))["exit_code"] == 0 and daemon.stop() == 0
