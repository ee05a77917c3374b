"""Measuring real processes with known resource use."""

import os
import signal
import subprocess
import sys
import time

import pytest

from pilotfish.profiles.measure import observer
from pilotfish.profiles.measure.command import CommandError, measure
from pilotfish.profiles.probes.cpu_time import PsutilTimes, Schedstat
from pilotfish.simulate.errors import ConfigError

pytestmark = pytest.mark.skipif(Schedstat().available() is not None, reason="no /proc/PID/schedstat here")

PYTHON = (sys.executable, "-IS", "-c")
BURN = "import time\ndef burn(s):\n    while time.thread_time() < s: pass\n"
HASH = "import hashlib\ndef work(n): hashlib.pbkdf2_hmac('sha256', b'x', b'y', n)\n"


def python(code):
    return [*PYTHON, BURN + code]


@pytest.mark.real
def test_service_demand_of_a_known_program():
    code, found = measure(python("burn(0.8)"))
    assert code == found.exit_code == 0
    assert [group.count for group in found.groups] == [1]
    assert found.groups[0].demand == pytest.approx(0.8, rel=0.1)  # how exact: tests/real/test_profile_truth.py
    assert found.cpu_s == pytest.approx(0.8, rel=0.1)
    assert found.groups[0].utilisation > 0.9
    assert found.method == "schedstat"


@pytest.mark.real
def test_utilisation_of_a_duty_cycle():
    """Seldom more than the 0.4 that it is; less where a busy machine lets it sleep longer."""
    cycle = "for i in range(1, 41):\n    burn(i * 0.012)\n    time.sleep(0.018)"
    found = measure(python(cycle))[1]
    assert found.groups[0].demand == pytest.approx(0.48, rel=0.1)
    assert 0.1 < found.groups[0].utilisation < 0.5


@pytest.mark.real
def test_isolated_time_is_recovered_next_to_other_load():
    cpu = min(os.sched_getaffinity(0))
    pin = f"import os; os.sched_setaffinity(0, {{{cpu}}})\n"
    hog = subprocess.Popen(python(pin + "burn(30)"), start_new_session=True)
    try:
        _, found = measure(python("burn(0.8)"), cpus=[cpu])
    finally:
        hog.kill()
        hog.wait()
    assert found.waiting > 0.3
    assert found.wall_s > 1.3 * found.isolated_s
    assert found.cpu_s > 0.8 and found.isolated_s == pytest.approx(found.cpu_s, rel=0.25)  # it never sleeps
    assert "next to other load" in found.to_profile("x").provenance.note


@pytest.mark.real
def test_threads_are_counted_and_none_of_their_time_is_lost():
    code = (
        HASH + "import threading\ntogether = threading.Barrier(3)\n"
        "def turn():\n    together.wait()\n    work(1_500_000)\n    together.wait()\n"
        "ts = [threading.Thread(target=turn) for _ in range(3)]\n"
    )
    _, found = measure([*PYTHON, code + "for t in ts: t.start()\nfor t in ts: t.join()"])
    assert found.threads == 3
    assert sum(g.count * g.demand for g in found.groups) == pytest.approx(found.cpu_s, rel=0.01)


@pytest.mark.real
def test_forked_children_are_threads_of_the_job():
    _, found = measure(python("import os\nif os.fork():\n    os.wait()\nelse:\n    burn(0.6)\n    os._exit(0)"))
    assert found.threads == 1
    assert found.cpu_s == pytest.approx(0.6, abs=0.15)
    assert sum(g.count * g.demand for g in found.groups) == pytest.approx(found.cpu_s, rel=0.01)


@pytest.mark.real
def test_successive_processes_are_one_thread():
    line = f"for i in 1 2 3 4 5; do {sys.executable} -IS -c 'sum(range(2000000))'; done"
    _, found = measure(["/bin/sh", "-c", line])
    assert found.threads == 1
    assert found.groups[0].demand == pytest.approx(found.cpu_s, rel=0.01)


@pytest.mark.real
def test_orphans_are_counted_and_do_not_outlive_the_job(tmp_path):
    pid_file = tmp_path / "pid"
    note = f'import os\nwhile os.times().user < 0.1: pass\nopen("{pid_file}", "w").write(str(os.getpid()))'
    orphan = f"{sys.executable} -IS -c '{note}\nwhile 1: pass'"
    busy = f"until [ -s {pid_file} ]; do sleep 0.05; done; sleep 0.3"
    code, found = measure(["/bin/sh", "-c", f"( setsid {orphan} & ) ; {busy}; exit 4"])
    assert code == 4
    assert found.cpu_s > 0.1  # the shell itself needs a few milliseconds
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


@pytest.mark.real
def test_early_orphans_belong_to_the_job(monkeypatch, tmp_path):
    """Children that we had before the job began are not the job's."""
    real, pid_file = observer.JobObserver.__init__, tmp_path / "pid"

    def late(self, *arguments, **options):
        while not (pid_file.exists() and pid_file.read_text().strip()):
            time.sleep(0.01)
        real(self, *arguments, **options)

    monkeypatch.setattr(observer.JobObserver, "__init__", late)
    with subprocess.Popen(["/bin/sleep", "60"]) as bystander:
        begun = f"until [ -s {pid_file} ]; do sleep 0.05; done"
        measure(["/bin/sh", "-c", f"( setsid sh -c 'echo $$ >{pid_file}; exec sleep 60' & ) ; {begun}; sleep 0.5"])
        assert bystander.poll() is None
        bystander.kill()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


@pytest.mark.real
def test_a_program_shorter_than_an_interval():
    code, found = measure(["/bin/true"])
    assert code == 0
    assert 0 < found.cpu_s < 0.5
    assert found.groups[0].demand == pytest.approx(found.cpu_s, rel=0.2)
    assert 0 < found.isolated_s <= found.wall_s * 1.001


@pytest.mark.real
def test_a_sleeping_program_keeps_its_length():
    _, found = measure(["/bin/sleep", "0.3"])
    assert 0.15 < found.isolated_s <= found.wall_s * 1.001  # 0.3 less what a busy machine lets it wait
    assert found.groups[0].utilisation < 0.2


@pytest.mark.real
@pytest.mark.parametrize(("command", "code"), [("exit 7", 7), ("kill -9 $$", 137)])
def test_exit_codes_are_the_shells(command, code):
    assert measure(["/bin/sh", "-c", command])[0] == code


@pytest.mark.real
def test_memory_and_storage(tmp_path):
    path = tmp_path / "file"
    write = f"f = open('{path}', 'wb')\nf.write(data[:4_000_000])\nf.flush()\n"
    _, found = measure(python("data = b'x' * 90_000_000\n" + write + "time.sleep(1.0)"))
    assert found.memory_bytes == pytest.approx(100e6, rel=0.15)
    assert found.written_bytes is not None
    assert found.to_profile("x").memory == found.memory_bytes


@pytest.mark.real
def test_environment_and_directory(tmp_path):
    line = 'test "$WORD" = fish && test "$PWD" = "$PLACE"'
    code, _ = measure(["/bin/sh", "-c", line], env={"WORD": "fish", "PLACE": str(tmp_path)}, cwd=tmp_path)
    assert code == 0


@pytest.mark.real
@pytest.mark.parametrize(
    ("argv", "code"), [(["no-such-command-here"], 127), ([""], 127), ([], 127), (["/etc/passwd"], 126), (["/"], 126)]
)
def test_commands_that_cannot_be_started(argv, code):
    with pytest.raises(CommandError) as caught:
        measure(argv)
    assert caught.value.exit_code == code


@pytest.mark.real
def test_a_directory_that_is_not_there(tmp_path):
    with pytest.raises(CommandError, match="not a directory"):
        measure(["/bin/true"], cwd=tmp_path / "nowhere")


def test_cpus_that_are_not_ours():
    with pytest.raises(ConfigError, match="cpus"):
        measure(["/bin/true"], cpus=[99_999])


@pytest.mark.real
def test_the_affinity_of_the_caller_stays():
    before = os.sched_getaffinity(0)
    measure(["/bin/true"], cpus=[min(before)])
    assert os.sched_getaffinity(0) == before


@pytest.mark.real
def test_signals_are_forwarded():
    code = "from pilotfish.profiles.measure.command import measure; print(measure(['/bin/sleep', '20'])[0])"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not _children(process.pid):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[0] == "130\n"


def _children(pid):
    found = subprocess.run(["ps", "-o", "comm=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return "sleep" in found.stdout


@pytest.mark.real
def test_psutil_where_there_is_no_schedstat(monkeypatch):
    monkeypatch.setattr(observer, "thread_times", PsutilTimes)
    _, found = measure(python("burn(0.4)"))
    assert found.method == "psutil"
    assert found.waiting is None
    assert found.groups[0].demand == pytest.approx(0.4, rel=0.2)
