"""What a job gets on this machine (CPUs, environment, files) and what is recorded of it (code, signal, usage)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.local import create
from pilotfish.adapters.local.job_files import WRITTEN
from pilotfish.formats.command_words import INPUT
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup
from pilotfish.simulate.model.plan import Cancel, Submit
from pilotfish.simulate.model.snapshot import JobState
from tests.support.local_world import CPUS, LocalWorld, gone, python, sh


def said(world: LocalWorld, key: str) -> str:
    return world.adapter.output(key)[0].read_text()


@pytest.mark.parametrize("nodes, cpus", [(("b",), CPUS[-1:]), (("a", "b"), sorted({CPUS[0], CPUS[-1]}))])
def test_a_job_sees_only_the_cpus_of_its_nodes(world: LocalWorld, nodes: tuple[str, ...], cpus: list[int]) -> None:
    job = python("j", "import os; print(sorted(os.sched_getaffinity(0)), os.environ['PILOTFISH_CPUS'])")
    assert world.finish(job, *nodes).state is JobState.COMPLETED
    assert said(world, "j").strip() == f"{cpus} {','.join(map(str, cpus))}"


def test_a_job_leads_its_own_session_and_has_no_terminal(world: LocalWorld) -> None:
    code = "import os; print(os.getsid(0) == os.getpgrp() == os.getpid(), os.isatty(0), os.read(0, 1))"
    world.finish(python("j", code))
    assert said(world, "j").strip() == "True False b''"


def test_a_job_starts_with_default_signals_and_no_foreign_files(world: LocalWorld) -> None:
    code = (
        "import os, signal; print([s for s in range(1, 32) if signal.getsignal(s) == signal.SIG_IGN"
        " and s not in (13, 25)], sorted(map(int, os.listdir('/proc/self/fd')))[:-1])"  # Python: PIPE, XFSZ
    )
    world.finish(python("j", code))
    assert said(world, "j").strip() == "[] [0, 1, 2]"


def test_environment_and_directory_are_as_asked(world: LocalWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    of_the_service = ("NOTIFY_SOCKET", "STATE_DIRECTORY", "CREDENTIALS_DIRECTORY", "SLURM_JWT", "LISTEN_FDNAMES")
    for name in (*of_the_service, "WATCHDOG_USEC", "INVOCATION_ID", "JOURNAL_STREAM"):
        monkeypatch.setenv(name, "ours-alone")
    monkeypatch.setenv("FROM_OUTSIDE", "1")
    (world.path / "wörk").mkdir()
    job = Job(
        "j",
        Profile((ThreadGroup(3, 1.0),)),
        command=("/bin/sh", "-c", "pwd; env"),
        environment=(("X", "ä\nb"), ("FROM_OUTSIDE", "2")),
        directory=str(world.path / "wörk"),
    )
    world.finish(job, "a", "b")
    out = said(world, "j")
    assert out.startswith(f"{world.path}/wörk\n")
    lines = ("PILOTFISH_JOB_ID=j", "PILOTFISH_KEY=j", "PILOTFISH_NODES=a,b", "PILOTFISH_THREADS=6")
    for line in ("X=ä\nb", "FROM_OUTSIDE=2", *lines):
        assert f"{line}\n" in out
    assert "ours-alone" not in out


def test_a_job_has_its_submitters_environment_and_not_the_daemons(
    world: LocalWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_DAEMON", "1")
    tool = world.path / "tool"
    tool.write_text("#!/bin/sh\n/usr/bin/env\n")
    tool.chmod(0o755)
    base = (("OF_THE_USER", "2"), ("X", "user"), ("PATH", str(world.path)))
    job = Job(
        "j", Profile((ThreadGroup(1, 1.0),)), command=("tool",), environment=(("X", "file"),), base_environment=base
    )
    world.finish(job, "a")
    out = said(world, "j")
    assert "OF_THE_USER=2\n" in out and "X=file\n" in out and "PILOTFISH_KEY=j\n" in out
    assert "OF_THE_DAEMON" not in out


@pytest.mark.parametrize("umask", [0o002, 0o077, 0o000])
def test_a_job_has_its_submitters_umask(world: LocalWorld, umask: int) -> None:
    job = replace(sh("j", "umask; touch made"), umask=umask, directory=str(world.path))
    world.finish(job, "a")
    assert int(said(world, "j"), 8) == umask and (world.path / "made").stat().st_mode & 0o777 == 0o666 & ~umask


def test_exit_codes_are_kept(world: LocalWorld) -> None:
    codes = (0, 1, 2, 126, 127, 128, 137, 254, 255)
    for code in codes:
        world.start(sh(f"j{code}", f"exit {code}"))
    views = world.all_ended()
    assert {view.key: (view.exit_code, view.signal) for view in views} == {f"j{code}": (code, None) for code in codes}
    assert [view.key for view in views if view.state is JobState.COMPLETED] == ["j0"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGHUP, signal.SIGTERM])
def test_a_signal_is_kept(world: LocalWorld, number: signal.Signals) -> None:
    view = world.finish(sh("j", f"kill -{number.value} $$"))
    assert (view.state, view.exit_code, view.signal) == (JobState.FAILED, 128 + number, number)
    assert number.name in view.reason


def missing(world: LocalWorld) -> Job:
    return Job("j", sh("j", "").profile, command=("./no-such-command",))


def not_executable(world: LocalWorld) -> Job:
    return Job("j", sh("j", "").profile, command=("/etc/passwd",))


def no_directory(world: LocalWorld) -> Job:
    return sh("j", "true", directory=str(world.path / "nowhere"))


def not_a_program(world: LocalWorld) -> Job:
    (world.path / "text").write_text("no shebang")
    (world.path / "text").chmod(0o755)
    return Job("j", sh("j", "").profile, command=(str(world.path / "text"),))


@pytest.mark.parametrize(
    "make, code, says",
    [(missing, 127, "no-such-command"), (not_executable, 126, "/etc/passwd"), (no_directory, 126, "nowhere"),
     (not_a_program, 126, "text")],
)  # fmt: skip
def test_a_command_that_cannot_run_fails_as_in_a_shell(world: LocalWorld, make, code: int, says: str) -> None:
    view = world.finish(make(world))
    assert (view.state, view.exit_code) == (JobState.FAILED, code)
    assert says in view.reason


def test_output_goes_where_asked_and_stays(world: LocalWorld) -> None:
    world.adapter.close()
    outputs = world.path / "outputs"
    world.adapter = create(world.adapter.cluster, world.state, output_dir=outputs)
    view = world.finish(sh("lost", "echo x"))
    assert (view.exit_code, view.state) == (126, JobState.FAILED)
    assert str(outputs) in view.reason
    outputs.mkdir(0o755)
    world.finish(sh("j", "echo out; echo err >&2"))
    world.adapter.forget("j")
    assert {path.name: path.read_text() for path in outputs.iterdir()} == {"j.out": "out\n", "j.err": "err\n"}


TREE = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for away in (False, True):
    if os.fork() == 0:
        if away:
            os.setsid()
            if os.fork(): os._exit(0)
        break
with open(sys.argv[1], 'a') as pids: pids.write(f'{os.getpid()}\\n')
time.sleep(600)
"""


def tree(world: LocalWorld, walltime: float | None) -> Job:
    job = python("tree", TREE, walltime=walltime)
    return Job(**{f: getattr(job, f) for f in job.__slots__} | {"command": (*job.command, str(world.path / "pids"))})


def pids(world: LocalWorld) -> list[int]:
    path = world.path / "pids"
    numbers = [int(line) for line in path.read_text().split()] if path.exists() else []
    return numbers if len(numbers) == 3 else []


@pytest.mark.parametrize("how", ["walltime", "cancel", "leftover"])
def test_the_whole_tree_ends_with_its_job(world: LocalWorld, how: str) -> None:
    world.start(tree(world, 4.0 if how == "walltime" else None))
    processes = world.wait_for(lambda: pids(world))
    if how == "cancel":
        world.adapter.apply(Cancel("tree"))
    elif how == "leftover":
        os.kill(world.begun("tree")["pid"], signal.SIGKILL)
    view = world.wait_for(lambda: (v := world.look("tree")).state.ended and v)
    expected = {"walltime": JobState.TIMEOUT, "cancel": JobState.CANCELLED, "leftover": JobState.FAILED}
    assert view.state is expected[how]
    assert view.signal == signal.SIGKILL
    assert all(map(gone, processes))


def test_a_job_has_a_grace_to_end_by_itself(world: LocalWorld) -> None:
    world.restart(grace_s=60.0)
    view = world.finish(sh("j", "trap 'echo bye; exit 5' TERM; while :; do sleep 0.05; done", walltime=2.0))
    assert (view.state, view.exit_code, view.signal) == (JobState.TIMEOUT, 5, None)
    assert said(world, "j") == "bye\n"


def test_what_a_job_used_is_measured(world: LocalWorld) -> None:
    code = "import time\nx = bytearray(60_000_000)\nwhile time.process_time() < 0.5: pass"
    used = dict(world.finish(python("j", code)).usage)
    assert used["cpu_seconds"] >= 0.5
    assert used["on_core_seconds"] == pytest.approx(used["cpu_seconds"], rel=0.2)  # read when it has ended
    assert used["waiting_seconds"] >= 0.0
    assert (used["threads"], used["tasks"]) == (1, 1)
    assert 60e6 <= used["memory_bytes"] < 120e6


def test_a_waiting_shell_is_no_thread_that_ran(world: LocalWorld) -> None:
    busy = "import time; t = time.process_time()\nwhile time.process_time() - t < 0.4: pass"
    used = dict(world.finish(sh("j", f'{sys.executable} -I -S -c "{busy}"; true')).usage)
    assert used["tasks"] == 2
    assert used["threads"] == 1


def test_children_count_whichever_process_reaps_them(world: LocalWorld) -> None:
    orphan = (  # its parent does not wait for it
        "import os, time\nif not os.fork():\n while time.process_time() < 0.3: pass\n open('ended', 'w')"
    )
    waits = "until [ -e ended ]; do sleep 0.1; done; sleep 0.3"
    line = f'{sys.executable} -I -S -c "{orphan}"; {waits}'
    used = dict(world.finish(sh("j", line, directory=str(world.path))).usage)
    assert used["cpu_seconds"] >= 0.3


def test_only_ended_jobs_can_be_forgotten(world: LocalWorld) -> None:
    world.start(sh("j", "sleep 600"))
    with pytest.raises(AdapterError, match="running"):
        world.adapter.forget("j")
    world.adapter.apply(Cancel("j"))
    world.wait_for(lambda: world.look("j").state.ended)
    world.adapter.forget("j")
    world.adapter.forget("j")
    assert world.adapter.snapshot().jobs == ()
    assert list(world.state.glob("*/j")) == []


@pytest.mark.parametrize(
    "job",
    [
        Job("j", sh("j", "").profile),
        Job("j", sh("j", "").profile, command=()),
        Job("j", sh("j", "").profile, command=("a\0b",)),
        sh("j", "true", environment=(("A=B", "1"),)),
        sh("j", "true", environment=(("", "1"),)),
        sh("j", "true", environment=(("A", "\ud800"),)),
        sh("j", "true", directory="/\0"),
    ],
)
def test_an_impossible_start_is_refused_and_leaves_nothing(world: LocalWorld, job: Job) -> None:
    with pytest.raises(AdapterError) as caught:
        world.start(job, key="k")
    assert (caught.value.transient, caught.value.kind) == (False, "refused")
    assert world.adapter.snapshot().jobs == ()


@pytest.mark.parametrize("nodes", [(), ("a", "a")])
def test_nodes_must_be_given_and_unique(world: LocalWorld, nodes: tuple[str, ...]) -> None:
    with pytest.raises(AdapterError, match="different nodes"):
        world.adapter.apply(Submit("k", sh("j", "true"), nodes))


def test_records_are_private(world: LocalWorld) -> None:
    world.finish(sh("j", "umask"))
    for path in (world.state, *world.state.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path
    assert json.loads((world.directory("j") / "end.json").read_text())["state"] == "completed"


def test_a_job_killed_for_memory_has_that_reason(world: LocalWorld) -> None:
    limited = not any("memory" in note for note in world.adapter.notes)
    view = world.finish(python("j", "x = bytearray(300_000_000)", memory=50e6))
    assert view.state is (JobState.FAILED if limited else JobState.COMPLETED)
    assert ("memory limit" in view.reason) is limited
    groups = json.loads((world.directory("j") / "spec.json").read_text())["cgroups"]
    assert not any(Path(group).exists() for group in groups)


@pytest.mark.parametrize("what", ["link", "pipe", "open folder"])
def test_output_goes_through_no_link_and_into_no_open_folder(world: LocalWorld, what: str) -> None:
    world.adapter.close()
    outputs, secret = world.path / "outputs", world.path / "secret"
    outputs.mkdir(0o700)
    secret.write_text("mine")
    if what == "open folder":
        outputs.chmod(0o1777)
        with pytest.raises(AdapterError, match=r"output_dir: .*outputs is not trusted: .*others can write to it"):
            create(world.adapter.cluster, world.state, output_dir=outputs)
        outputs.chmod(0o700)
    elif what == "link":
        (outputs / "j.out").symlink_to(secret)
    else:
        os.mkfifo(outputs / "j.out")
    world.adapter = create(world.adapter.cluster, world.state, output_dir=outputs)
    if what == "open folder":
        outputs.chmod(0o777)
        with pytest.raises(AdapterError, match="others can write to it"):
            world.start(sh("j", "echo x"))
    else:
        view = world.finish(sh("j", "echo x"))
        assert (view.state, view.exit_code) == (JobState.FAILED, 126) and "j.out" in view.reason
    assert secret.read_text() == "mine"


def test_the_sizes_of_its_input_files_are_those_from_before_it_began(world: LocalWorld) -> None:
    """Its keeper looks after it for longer than between two looks at its directory."""
    (world.path / "in.txt").write_bytes(bytes(5000))
    view = world.finish(sh("j", "sleep 1; cp in.txt out.txt; rm in.txt", directory=str(world.path)))
    assert view.state is JobState.COMPLETED, view.reason
    assert {name: value for name, value in view.usage if name.startswith(INPUT)} == {
        f"{INPUT}3": 5000.0, f"{INPUT}4": WRITTEN, f"{INPUT}6": 5000.0,
    }  # fmt: skip


def test_the_time_for_which_its_cpus_were_busy_is_that_of_the_job_and_of_others(world: LocalWorld) -> None:
    """A process of somebody else computes on the CPU of the second job, which computes until it has waited for long."""
    work = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass\n"
    waits = "while int(open('/proc/self/schedstat').read().split()[1]) < 3e8: pass\n"
    usage = dict(world.finish(python("alone", work), "b").usage)
    assert usage["busy_seconds"] >= 0.9 * usage["cpu_seconds"]
    neighbour = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        os.sched_setaffinity(neighbour.pid, CPUS[-1:])
        next_to = dict(world.finish(python("next", work + waits), "b").usage)
    finally:
        neighbour.kill()
        neighbour.wait()
    assert next_to["busy_seconds"] >= next_to["cpu_seconds"] + 0.1 and next_to["waiting_seconds"] >= 0.1


def test_an_end_that_a_second_reading_sees_first_still_ends_the_next_wait(world: LocalWorld) -> None:
    """Or a job that ends while a cycle checks its actions is seen a second late."""
    world.start(sh("e", "sleep 0.2"))
    world.adapter.snapshot()
    while not world.adapter.refresh(["e"]).jobs[0].state.ended:
        time.sleep(0.005)
    assert world.adapter.wait(10.0) is True
