"""docs/guides/oar.md from look to canary and back, on a real OAR: each command is typed, and does what the text says.

The queue has its shim already, as test_oar_setup types it. There is no systemd: `systemctl` starts and stops the daemon.
"""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from oar_cluster import USERS, OarCluster
from oar_mounts import group
from oar_site import Shim
from real_world import Served, eventually, pilotfish, users_cache

from pilotfish.adapters.oar.placement_file import silent_since
from pilotfish.trust import as_account, owner_of

pytestmark = pytest.mark.xdist_group(group(1))
ROOT = Path(__file__).resolve().parents[3]
GUIDE = (ROOT / "docs" / "guides" / "oar.md").read_text()
SECTIONS = dict(re.findall(r"^##+ (.*?)\n(.*?)(?=^##|\Z)", GUIDE, re.M | re.S))
#: The reaper has a test of its own, and units are installed under a real systemd.
NOT_HERE = r"reap|sysusers|pilotfishd[.-]|daemon-reload"
SUBMIT = "oarsub -q pilotfish -l /core=1,walltime=0:10:00 ./work.sh"
#: Jobs until both groups have one; all are in the same group once in 32,000 walks.
MOST_JOBS = 16


class Walk(Served):
    """An administrator, and the daemon that they start; the guide's paths are below its folder."""

    manager = "oar"

    def __init__(self, oar: OarCluster, shim: Shim) -> None:
        folder = Path(tempfile.mkdtemp(prefix="guide-", dir=oar.path))
        folder.chmod(0o755)
        super().__init__(folder, shim.owner)
        self.oar, self.jobs = oar, list[int]()
        self.home = folder.with_name(f"{folder.name}-root")  # root believes no settings in the account's folder
        settings = self.home / ".config" / "pilotfish" / "client.yaml"
        settings.parent.mkdir(parents=True)
        settings.write_text(f"schema: pilotfish/client/v1\nservice_user: {shim.owner}\n")
        self.here = {
            "/var/lib/pilotfish-oar/placements": shim.file, "/etc/pilotfish": folder, "/var/lib/pilotfish": folder / "state",
            "/run/pilotfish/pilotfish.sock": self.socket, "port=5432": f"port={oar.database}", ":6666": f":{oar.server}",
            "--user pilotfish": f"--user {shim.owner}", "-o pilotfish": f"-o {shim.owner}", " seen": f" {self.home}/seen",
            "--for 7d": "--for 3s", "./work.sh": "'sleep 0.1'", "card.html": folder / "card.html", "10%": "50%",
        }  # fmt: skip

    def section(self, title: str) -> dict[str, str]:
        """Type the commands of a section; return what each printed."""
        return self.lines(SECTIONS[title])

    def lines(self, text: str) -> dict[str, str]:
        """Type the commands in the blocks of a text; return what each printed."""
        blocks = "".join(re.findall(r"^```\w+\n(.*?)^```$", text, re.M | re.S))
        lines = re.findall(r"^([#$]) (.*)$", blocks, re.M)
        return {line: self.type(prompt, line) for prompt, line in lines if not re.search(NOT_HERE, line)}

    def type(self, prompt: str, line: str) -> str:
        """Type one line of the guide, as root (`#`) or as a user (`$`)."""
        for words, ours in self.here.items():
            line = line.replace(words, str(ours))
        if line.startswith("systemctl "):
            return self._switch(line.split()[1])
        if prompt == "$":
            options = shlex.split(line)[1:]
            self.jobs.append(self.oar.submit(options.pop(), *options, user=USERS[1]))
            return str(self.jobs[-1])
        line, _, file = line.replace("oar/1234", self.last if self.jobs else "").partition(" > ")
        if line.startswith("pilotfish "):
            words = shlex.split(line)[1:]
            places = {"HOME": self.home, "PILOTFISH_SOCKET": self.socket, "PILOTFISH_CACHE": users_cache(self.user)}
            result = pilotfish(*words, **{name: str(place) for name, place in places.items()})
        else:
            result = subprocess.run(["sh", "-c", line], capture_output=True, text=True, cwd=ROOT)
        assert result.returncode == 0, f"{line}: {result.stdout}{result.stderr}"
        if file:
            Path(file).write_text(result.stdout)
        if "pilotfish.oar.yaml" in line:
            self.settle()
        return result.stdout

    def _switch(self, verb: str) -> str:
        if verb == "reload":
            assert self.process is not None
            self.process.send_signal(signal.SIGHUP)
        elif self.process is not None:
            assert self.stop(signal.SIGTERM) == 0
        if verb in ("enable", "restart"):
            self.start()
        return ""

    def settle(self) -> None:
        """Write the paths of this machine into the configuration."""
        text = self.config.read_text()
        for words, ours in self.here.items():
            text = text.replace(words, str(ours)) if words[0] in "/p:" else text
        self.config.write_text(f"{text}cycle_seconds: 0.5\nmetrics: {{port: 0}}\naccess: {{root: true}}\n")

    @property
    def last(self) -> str:
        """The key of the last job."""
        return f"oar/{self.jobs[-1]}"

    def ended(self) -> bool:
        """Return whether all jobs of the walk have ended well."""
        return {self.oar.jobs()[job][0] for job in self.jobs} == {"Terminated"}

    def log_of(self, kind: str) -> dict[str, dict[str, Any]]:
        """Return the newest line of the audit about each job, of a kind, by the job's key."""
        reply = self.ask("log") or {"lines": []}
        return {line["target"]: line for line in reply["lines"] if line["kind"] == kind}

    def groups(self) -> dict[str, str]:
        """Return the group of each job that has one."""
        return {job: line["after"]["mode"] for job, line in self.log_of("handover").items()}


@pytest.fixture
def walk(oar: OarCluster, users_shim: Shim) -> Iterator[Walk]:
    with closing(Walk(oar, users_shim)) as administrator:
        yield administrator


def test_look_shadow_card_canary_and_back(walk: Walk, users_shim: Shim) -> None:
    """A week lasts a second, half of the jobs are the canary instead of a tenth, and the daemon is restarted before the
    card: until then a record is on disk a minute late."""
    looks = walk.section("1. Look")
    assert "problem" not in looks["pilotfish doctor --adapter oar"]
    assert "shadow" in walk.section("Install and start")["pilotfish status"]
    for _ in range(3):
        walk.type("$", SUBMIT)
    eventually(walk.ended, "the jobs of OAR alone")
    walk.type("#", "systemctl restart pilotfishd")
    assert not users_shim.file.exists() and not walk.groups()
    cards = walk.section("3. Card")
    assert all("verdict" in text for line, text in cards.items() if " score " in line)
    change, answers = SECTIONS["4. Canary"].split(SUBMIT, 1)
    walk.lines(f"{change.rpartition(chr(10))[0]}\n```")
    while len(set(walk.groups().values())) < 2:
        assert len(walk.jobs) < MOST_JOBS
        walk.type("$", SUBMIT)
        eventually(lambda: walk.last in walk.groups(), "the group of the job")
    eventually(walk.ended, "the jobs of both groups")
    text = "".join(walk.lines(f"```text{answers}").values())
    sides = walk.groups()
    side = "canary" if sides[walk.last] == "canary" else "control group"
    assert re.search(rf"^ *group +{side}", text, re.M), text
    assert re.search("CONTROL +CANARY", text) and "verdict" in text
    writes = {job: line["action"] for job, line in walk.log_of("write").items()}
    actions = {"canary": "start", "control": "release"}
    assert writes == {job: actions[side] for job, side in sides.items()}, "before the canary nothing was written"
    walk.type("#", "sed -i 's/^mode: live/mode: shadow/' /etc/pilotfish/pilotfish.yaml")
    walk.type("#", "systemctl reload pilotfishd")
    eventually(lambda: (walk.ask("status") or {}).get("run_mode") == "shadow", "shadow again")
    with as_account(owner_of(users_shim.file)):  # root believes no file in the folder of another account
        assert (silent_since(users_shim.file) or 0.0) <= time.time(), "OAR has its jobs back at once"
    walk.type("$", SUBMIT)
    eventually(walk.ended, "the last job")
    assert walk.groups() == sides
    assert walk.stop(signal.SIGTERM) == 0
