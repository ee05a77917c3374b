"""docs/guides/slurm.md, walked from end to end on a real site: every command in it is run, and does what the text says.

There is no systemd here: `systemctl` starts and stops the daemon of the unit it names, as the daemon's account.
"""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from real_world import COMMAND, Served, eventually, users_cache
from slurm_lua import missing
from slurm_site import SlurmSite

import pilotfish

pytestmark = pytest.mark.xdist_group("site 5")
ROOT = Path(pilotfish.__file__).resolve().parent
TEXT = (ROOT / "docs" / "guides" / "slurm.md").read_text()
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", TEXT, re.M | re.S))
ACCOUNT = "irc"  #: stands for the user `pilotfish`
NOT_HERE = ("systemd-sysusers", "systemd-tmpfiles", "journalctl")


class Walk:
    """One administrator on one machine: the paths of the guide are below `folder`."""

    def __init__(self, site: SlurmSite, folder: Path) -> None:
        self.site, self.folder, self.jobs = site, folder, list[int]()
        self.etc, self.units = folder / "etc", folder / "units"
        for made in (self.etc, self.units, folder / "home"):
            made.mkdir()
        (folder / "home" / "job.sh").write_text("#!/bin/sh\nsleep 0.2\n")
        self.home = folder.with_name(f"{folder.name}-root")  # root believes no settings in the account's folder
        settings = self.home / ".config" / "pilotfish" / "client.yaml"
        settings.parent.mkdir(parents=True)
        settings.write_text(f"schema: pilotfish/client/v1\nservice_user: {ACCOUNT}\n")
        self.daemon: Served | None = None

    def section(self, title: str) -> list[str]:
        """Run the commands of a section in turn; returns what each printed."""
        blocks = re.findall(r"^```console\n(.*?)^```$", SECTIONS[title], re.M | re.S)
        return [self.command(line) for block in blocks for line in re.sub(r" \\\n>\s*", " ", block).splitlines()]

    def command(self, line: str) -> str:
        """Run one line of the guide."""
        prompt, line = line[0], line[2:]
        words = shlex.split(line)
        if words[0] in NOT_HERE:
            return ""
        if words[0] == "systemctl":
            self.systemctl(words[1:])
            return ""
        line = re.sub(r"(?<![\w./-])pilotfish(?= account=|$)|(?<=name=)pilotfish", ACCOUNT, self.here(line))
        line = line.replace("runuser -u pilotfish -- ", f"setpriv --reuid={ACCOUNT} --clear-groups ")
        line = re.sub(r"^(setpriv .*)?pilotfish (?=\w+(?: |$))", rf"\1{shlex.join(COMMAND)} ", line)
        if prompt == "$":
            line = f"{line.replace('sbatch', 'sbatch --parsable --output=/dev/null', 1)}"
            self.jobs.append(int(self.site.run("sh", "-c", f"cd {self.folder}/home; {line}", user="games")))
            return str(self.jobs[-1])
        assert prompt == "#"
        environment = self.site.environment | {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(self.home)}
        environment |= {"PILOTFISH_CACHE": str(users_cache(ACCOUNT)), "PILOTFISH_SOCKET": str(self.folder / "s")}
        done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, cwd=ROOT, env=environment)
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
        return done.stdout

    def here(self, text: str) -> str:
        """The text with the guide's paths replaced."""
        for path, ours in (
            ("[batch]", "[shared]"), ("/etc/pilotfish", self.etc / "pilotfish"), ("/etc/slurm", self.site.config.parent),
            ("/run/pilotfish/pilotfish.sock", self.folder / "s"), ("/run/pilotfish/heartbeat", self.folder / "heartbeat"),
            ("/var/lib/pilotfish", self.folder / "state"),
            ("/etc/systemd/system", self.units), ("/etc/sysusers.d", self.folder / "sysusers"),
            ("/etc/tmpfiles.d", self.folder / "tmpfiles"),
        ):  # fmt: skip
            text = text.replace(path, str(ours))
        return text

    def systemctl(self, words: list[str]) -> None:
        """What systemd would do with the daemon's unit."""
        if words == ["daemon-reload"]:
            return
        assert all((self.units / (w if "." in w else f"{w}.service")).exists() for w in words[1:] if w[0] != "-"), words
        if words[-1] != "pilotfishd":
            return
        if self.daemon:
            assert self.daemon.stop(signal.SIGTERM) == 0
            (self.folder / "s").unlink(missing_ok=True)  # RuntimeDirectory=
            self.daemon = None
        if words[0] in ("enable", "restart"):
            self.daemon = Served(self.folder, ACCOUNT)
            self.daemon.config = self.etc / "pilotfish" / "pilotfish.yaml"
            self.daemon.environment["RUNTIME_DIRECTORY"] = str(self.folder)
            self.settle(self.daemon.config)
            self.daemon.start()

    def settle(self, config: Path) -> None:
        """Paths of this machine, a port of its own, and a cycle for the impatient."""
        document = yaml.safe_load(self.here(config.read_text()))
        document |= {"cycle_seconds": 0.5, "metrics": {"port": 0}}
        lines = "".join(f"{key}: {json.dumps(document.pop(key))}\n" for key in ("mode", "handover") if key in document)
        config.write_text(
            f"{yaml.safe_dump(document)}{lines.replace(chr(34), '')}"
        )  # as the guide writes and reads them

    def ended(self) -> Callable[[], bool]:
        """Whether all jobs of the walk have completed."""
        return lambda: all(self.site.jobs()[job][0] == "COMPLETED" for job in self.jobs)


@pytest.fixture
def walk(site: SlurmSite, tmp_path: Path) -> Iterator[Walk]:
    if why := missing():
        pytest.skip(f"SKIPPED, the guide's plugin: {why}")
    if subprocess.run(["setpriv", f"--reuid={ACCOUNT}", "--clear-groups", *COMMAND, "--version"], cwd="/").returncode:
        pytest.skip(f"SKIPPED, the user {ACCOUNT} may not read the folder in which pilotfish is installed")
    text, folder = site.config.read_text(), site.shared() / tmp_path.name
    folder.mkdir()
    walked = Walk(site, folder)
    try:
        yield walked
    finally:
        if walked.daemon:
            walked.daemon.close()
        site.config.write_text(text)
        site.run("scontrol", "reconfigure")
        site.config.with_name("job_submit.lua").unlink(missing_ok=True)
        site.run("sacctmgr", "-i", "delete", "user", f"name={ACCOUNT}", check=False)


def test_the_guide_from_end_to_end(site: SlurmSite, walk: Walk) -> None:
    looked = walk.section("1. Look")
    assert "controller" in looked[0] and "queue of slurm" in looked[1]
    _, _, _, rights, *_, beside, _, _, _, status, _ = walk.section("2. Shadow")
    assert f"ok       rights      {ACCOUNT} is an operator" in rights
    assert "cluster.yaml agrees with Slurm about 8 nodes" in " ".join(beside.split()) and "problem" not in beside
    assert "shadow" in status and walk.daemon
    eventually(lambda: "would have started slurm/" in walk.daemon.log.read_text(), "a decision in shadow")
    assert site.show(walk.jobs[0])["ReqNodeList"] == "(null)"
    walk.command(f"# scontrol update JobId={walk.jobs[0]} StartTime=now")  # do not wait for the minute here

    *_, checked, _, reaped, status = walk.section("4. Canary")
    assert re.search(r"the daemon answers at .*; mode shadow", " ".join(checked.split()))  # it is restarted afterwards
    assert "problem" not in checked and reaped == "" and "canary" in status and ": live, policy" in status
    walk.section("5. Live")  # the heartbeat is not at its usual place, so job_submit.lua holds nothing
    eventually(walk.ended(), "the jobs that were handed over")
    script = site.config.with_name("job_submit.lua")
    time.sleep(1.1)  # the controller tells a new script by whole seconds
    script.write_text(walk.here(script.read_text()))
    held = int(walk.command("$ sbatch --comment=pilotfish job.sh"))
    eventually(walk.ended(), "the job that job_submit.lua handed over")
    comment = site.run("squeue", "--noheader", "--states=all", f"--jobs={held}", "--Format=Comment:0")
    assert re.fullmatch(r"pilotfish:hold=\d+;script=[a-z]+", comment)

    walk.section("Undo")
    assert walk.daemon is None and not (walk.etc / "pilotfish").exists() and not script.exists()
    assert "JobSubmitPlugins        = (null)" in site.run("scontrol", "show", "config")
    assert ACCOUNT not in site.run("sacctmgr", "-nP", "show", "user", "format=User").split()
    walk.command("$ sbatch --comment=pilotfish job.sh")
    eventually(walk.ended(), "a job without pilotfish")


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "guides").glob("slurm*.md")), ids=lambda page: page.stem)
def test_the_metrics_of_a_page_are_there(page: Path) -> None:
    from pilotfish.daemon.report import metrics

    text = page.read_text()
    known = "".join(path.read_text() for path in Path(metrics.__file__).parent.glob("*.py"))
    for name in set(re.findall(r"pilotfish_(\w+[a-z])(?=[`{ )]| >)", text)):
        assert f'"{name}"' in known or f'"pilotfish_{name}"' in known or f'"{name.removesuffix("_total")}"' in known, (
            name
        )
    assert all(len(line) <= 130 for line in text.splitlines() if not line.startswith(("|", "$ ")))


def test_what_doctor_prints_are_the_guides_commands() -> None:
    from pilotfish.adapters.slurm.doctor.setup import SETUP, UNDO

    blocks = re.findall(r"^```console\n(.*?)^```$", TEXT, re.M | re.S)
    verbs = {line.split()[1] for block in blocks for line in block.splitlines()}
    for line in (SETUP + "\n" + UNDO).format(user="pilotfish").splitlines():
        if not line.startswith("#"):
            assert shlex.split(line)[0] in verbs, line
