"""Everything that commands and the service make, with its mode under any umask; what the service listens on; what
another user's files and folders get from them: a refusal that names the file.
"""

from __future__ import annotations

import os
import signal
import stat
import subprocess
from contextlib import closing
from pathlib import Path

import forked
import psutil
import pytest
from real_world import CPUS, PATIENCE_S, Served, eventually

pytestmark = pytest.mark.xdist_group("machine")

CLUSTER = f"""\
schema: pilotfish/cluster/v1
name: here
node_types: {{t: {{cores: 1, memory: 1GiB, memory_bandwidth: 1GB/s}}}}
nodes: [{{names: a, type: t, cpus: "{CPUS[0]}"}}]
"""
WORKFLOW = """\
schema: pilotfish/workflow/v1
name: dag
jobs:
  j: {profile: {service_demand: 0.1}, command: [echo, "--password=hunter2"]}
"""
CONFIG = """\
schema: pilotfish/daemon/v1
cluster: cluster.yaml
cycle_seconds: 0.2
socket: {{path: {folder}/run/s}}
metrics: {{port: 0}}
access: {{root: true}}
adapter: {{name: local, options: {{cgroups: false, output_dir: {folder}/outputs}}}}
"""
SWEEP = """\
schema: pilotfish/sweep/v1
workloads: [trace.swf]
policies: [easy, conservative]
"""
#: Each writes something; the variables of the environment are in `home`.
COMMANDS = (
    "demo demo",
    "profile run --name p -- true --token=hunter3",
    "profile export profiles.yaml",
    "generate lublin --jobs 5 --procs 4 -o trace.swf",
    "convert trace.swf trace.json",
    "simulate trace.swf --out results",
    "sweep sweep.yaml --out swept",
    "plan workflow.yaml --cluster cluster.yaml --plot plan.html",
    "plan workflow.yaml --cluster cluster.yaml --plot plan.svg",
    "plan workflow.yaml --cluster cluster.yaml --plot plan.png",
    "run workflow.yaml --cluster cluster.yaml",
)


class Home:
    """A new user's home, in which commands run under a umask."""

    def __init__(self, folder: Path, umask: int) -> None:
        self.folder, self.umask = folder, umask
        texts = {"cluster.yaml": CLUSTER, "workflow.yaml": WORKFLOW, "sweep.yaml": SWEEP}
        texts["pilotfish.yaml"] = CONFIG.format(folder=folder)
        for name, text in texts.items():
            (folder / name).write_text(text)
        self.given = set(folder.iterdir())
        dropped = ("PILOTFISH_STATE", "STATE_DIRECTORY", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "PILOTFISH_SOCKET")
        self.environment = {name: value for name, value in os.environ.items() if name not in dropped}
        cache = os.environ.get("PILOTFISH_CACHE") or Path.home() / ".cache" / "pilotfish"
        self.environment |= {"HOME": str(folder), "PILOTFISH_CACHE": str(cache), "PILOTFISH_SOCKET": f"{folder}/run/s"}

    def try_to(self, line: str) -> subprocess.CompletedProcess[str]:
        """Run a command."""
        return forked.run(line.split(), env=self.environment, cwd=self.folder, umask=self.umask, timeout=PATIENCE_S)

    def run(self, line: str) -> None:
        """Run a command, which must succeed."""
        done = self.try_to(line)
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"

    def made(self) -> dict[str, int]:
        """Mode of everything that was made, sockets, pipes and files of the test's own left out."""
        found = {}
        for path in sorted(self.folder.rglob("*")):
            status = path.lstat()
            if path not in self.given and path.name not in ("log", "out"):
                found[str(path.relative_to(self.folder))] = stat.S_IMODE(status.st_mode)
        return found


def wrong(home: Home) -> dict[str, str]:
    """What has another mode than 0700 (folders, programs) or 0600."""
    programs = ("demo/work.py",)
    return {
        name: f"{mode:04o}"
        for name, mode in home.made().items()
        if mode != (0o700 if (home.folder / name).is_dir() or name in programs else 0o600)
    }


def test_what_commands_make_is_its_owners_only(tmp_path: Path) -> None:
    home = Home(tmp_path, 0o000)  # under a tighter one no mode is wider
    for line in COMMANDS:
        home.run(line)
    made = home.made()
    for name in ("demo/work.py", "results/jobs.csv", "swept/journal.jsonl", "plan.html", "plan.svg", "trace.swf"):
        assert name in made, made
    assert ".local/state/pilotfish/profiles.sqlite" in made
    assert wrong(home) == {}


@pytest.mark.parametrize("umask", [0o000, 0o077], ids="{:03o}".format)
def test_what_the_service_makes_and_where_it_listens(tmp_path: Path, umask: int) -> None:
    home, others = Home(tmp_path, umask), set(psutil.Process().children())  # a Slurm of other tests, say
    (tmp_path / "outputs").mkdir(0o700)
    with closing(Served(tmp_path)) as served:
        served.socket, served.environment = tmp_path / "run" / "s", home.environment
        before = os.umask(umask)
        try:
            served.start()
        finally:
            os.umask(before)
        home.run("submit workflow.yaml --wait")
        state = tmp_path / ".local/state/pilotfish"
        assert {"journal.sqlite", "journal.sqlite-wal", "local"} <= set(os.listdir(state))
        assert wrong(home) == {}
        process = psutil.Process(served.process.pid)
        bound = [each for each in process.net_connections("all") if each.status in ("LISTEN", "NONE") and each.laddr]
        unix = {each.laddr for each in bound if isinstance(each.laddr, str)}
        inet = {each.laddr.ip for each in bound if not isinstance(each.laddr, str)}
        assert (unix, inet) == ({f"{tmp_path}/run/s"}, {"127.0.0.1"})
        assert {*process.uids()} == {os.geteuid()} and {*process.gids()} == {os.getegid()}
        assert served.stop(signal.SIGTERM) == 0
    eventually(
        lambda: not [p for p in {*psutil.Process().children()} - others if p.status() != "zombie"],
        "the end of keepers",
    )
    assert wrong(home) == {}


STRANGER = 61001
#: What is given to a stranger, or opened to all, and the command that must refuse it.
REFUSED = {
    "state directory": ("state", 0o777, "daemon --config pilotfish.yaml"),
    "journal": ("state/journal.sqlite", 0o644, "daemon --config pilotfish.yaml"),
    "log of the journal": ("state/journal.sqlite-wal", 0o644, "daemon --config pilotfish.yaml"),
    "records of jobs": ("state/local/jobs", 0o755, "daemon --config pilotfish.yaml"),
    "folder of the socket": ("run", 0o755, "daemon --config pilotfish.yaml"),
    "outputs": ("outputs", 0o755, "daemon --config pilotfish.yaml"),
    "configuration": ("pilotfish.yaml", 0o644, "daemon --config pilotfish.yaml"),
    "cluster file": ("cluster.yaml", 0o644, "daemon --config pilotfish.yaml"),
    "folder above all": (".", 0o755, "daemon --config pilotfish.yaml"),
    "dry run": ("state/journal.sqlite", 0o644, "daemon --config pilotfish.yaml --dry-run"),
    "profile store": ("profiles.sqlite", 0o644, "profile list --store profiles.sqlite"),
    "demo": ("demo", 0o777, "demo demo"),
    "demo by force": ("demo", 0o777, "demo demo --force"),
}


@pytest.mark.skipif(os.geteuid() != 0, reason="not root, so nothing can be given to another user")
@pytest.mark.parametrize(
    ("what", "how"),
    [*((what, "owner") for what in REFUSED), ("journal", "mode"), ("configuration", "mode"), ("demo by force", "mode")],
)
def test_what_another_user_controls_is_refused(tmp_path: Path, what: str, how: str) -> None:
    name, mode, line = REFUSED[what]
    folder = tmp_path / "home"
    folder.mkdir()
    home = Home(folder, 0o022)
    config = (folder / "pilotfish.yaml").read_text()
    (folder / "pilotfish.yaml").write_text(f"{config}state_dir: {folder}/state\n")
    for each in ("state/local/jobs", "run", "outputs", "demo"):
        (folder / each).mkdir(mode=0o755, parents=True)
    for each in {"state/journal.sqlite", "profiles.sqlite"} | {name}:
        (folder / each).touch(mode=0o644)
    before = home.made()
    os.chown(folder / name, STRANGER if how == "owner" else 0, 0)
    (folder / name).chmod(mode if how == "owner" else 0o777)
    done = home.try_to(line)
    said = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    assert str((folder / name).resolve()) in said and "not trusted" in said, done.stderr
    assert (f"user {STRANGER}" if how == "owner" else "others can write to it (chmod go-w") in said
    assert {*home.made()} - {*before} <= {
        "state/local/adapter.lock",
        "state/local/events",
        "state/local/forgotten",
        "state/local",
    }, home.made()
