"""`pilotfish doctor` on a real site, as root, as an operator, and as an ordinary user; and with parts of it away."""

from __future__ import annotations

import json
import pwd
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from real_world import COMMAND, pilotfish
from slurm_daemon import SlurmDaemon
from slurm_lua import LuaSlurm
from slurm_site import OPERATOR, SlurmSite

pytestmark = pytest.mark.xdist_group("site 2")


def as_user(site: SlurmSite, user: str, *argv: str) -> subprocess.CompletedProcess[str]:
    who = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    environment = site.environment | {"PATH": "/usr/bin:/bin:/usr/sbin", "COLUMNS": "80", "HOME": str(site.shared())}
    done = subprocess.run([*who, *COMMAND, *argv], capture_output=True, text=True, env=environment, cwd="/")
    if "ermission denied" in done.stderr:
        pytest.skip(f"SKIPPED, the user {user} may not read the folder in which pilotfish is installed")
    return done


def findings(printed: str) -> dict[str, set[str]]:
    """Topic -> levels."""
    every: dict[str, set[str]] = {}
    for finding in json.loads(printed)["findings"]:
        every.setdefault(finding["topic"], set()).add(finding["level"])
    return every


@pytest.mark.parametrize(("user", "rights", "code"), [("root", "note", 0), (OPERATOR, "ok", 0), ("news", "problem", 1)])
def test_each_user_learns_their_rights(site: SlurmSite, user: str, rights: str, code: int) -> None:
    before = site.jobs()
    done = as_user(site, user, "doctor", "--adapter", "slurm", "--json")
    assert (done.returncode, done.stderr) == (code, "")
    every = findings(done.stdout)
    assert every["rights"] == {rights} and every["controller"] == every["clock"] == every["accounting"] == {"ok"}
    assert site.jobs() == before, "it only looks"
    tried = as_user(site, user, "doctor", "--adapter", "slurm", "--json", "--try")
    assert tried.returncode == code
    assert ("problem" in findings(tried.stdout)["trial"]) is (user == "news")
    (job,) = set(site.jobs()) - set(before)
    assert site.jobs()[job][0] == "CANCELLED"


def test_the_output_fits_a_terminal_without_colour(site: SlurmSite) -> None:
    done = as_user(site, "news", "doctor", "--adapter", "slurm")
    lines = done.stdout.splitlines()
    assert all(len(line) <= 80 for line in lines if "$ " not in line) and "\x1b" not in done.stdout
    assert "problem  rights      news is no operator: Slurm lets it change only its own jobs" in lines
    assert lines[-1].startswith("1 problem")


def test_the_printed_command_fixes_the_finding(site: SlurmSite) -> None:
    done = as_user(site, "root", "doctor", "--adapter", "slurm", "--user", "irc", "--json")
    (mend,) = (each["mend"] for each in json.loads(done.stdout)["findings"] if each["topic"] == "rights")
    (command,) = mend
    assert command == "sacctmgr add user irc account=ACCOUNT AdminLevel=Operator"
    try:
        site.run(*command.replace("ACCOUNT", "research").split(), "-i")
        mended = as_user(site, "root", "doctor", "--adapter", "slurm", "--user", "irc", "--json")
        assert findings(mended.stdout)["rights"] == {"ok"}
    finally:
        site.run("sacctmgr", "-i", "delete", "user", "name=irc")


def test_an_account_without_a_unix_user_is_a_problem(site: SlurmSite) -> None:
    """slurmctld looks up the user's id when the account is added, and shows 2**32 - 2 if there is none."""
    site.run("sacctmgr", "-i", "add", "user", "nosuchuser", "account=research", "AdminLevel=Operator")
    try:
        for user, uid in (("nosuchuser", 2**32 - 2), (OPERATOR, pwd.getpwnam(OPERATOR).pw_uid)):
            assert f"UserName={user}({uid})" in site.run(
                "scontrol", "show", "assoc_mgr", f"users={user}", "flags=users"
            )
        done = as_user(site, "root", "doctor", "--adapter", "slurm", "--user", "nosuchuser", "--json")
        (mend,) = (each["mend"] for each in json.loads(done.stdout)["findings"] if each["topic"] == "rights")
        assert done.returncode == 1 and mend[0] == "useradd --system nosuchuser" and mend[-1].startswith("sacctmgr add")
    finally:
        site.run("sacctmgr", "-i", "delete", "user", "name=nosuchuser")


@pytest.mark.parametrize(
    ("who", "topic", "level"),
    [("slurmdbd", "accounting", "warning"), ("munged", "munge", "problem"), ("slurmctld", "controller", "problem")],
)
def test_a_service_that_is_down_is_reported(site: SlurmSite, who: str, topic: str, level: str) -> None:
    site.signal(who, signal.SIGKILL)
    done = as_user(site, OPERATOR, "doctor", "--adapter", "slurm", "--json")
    site.up()
    assert findings(done.stdout)[topic] == {level} and done.returncode == (level == "problem")
    assert "Traceback" not in done.stderr


@pytest.fixture
def daemon(site: SlurmSite, tmp_path: Path) -> Iterator[SlurmDaemon]:
    with closing(SlurmDaemon(tmp_path, site.nodes, site.cpus)) as made:
        yield made


def test_with_the_daemons_configuration(site: SlurmSite, daemon: SlurmDaemon) -> None:
    def examined() -> dict[str, Any]:
        done = pilotfish("doctor", "--config", daemon.config, "--user", OPERATOR, "--json")
        assert done.stderr == ""
        return findings(done.stdout)

    site.submit("true", "--begin=now+600", "--comment=pilotfish:hold=600")
    away = examined()
    assert away["service"] == {"warning"} and away["queue"] == {"ok", "warning"} and away["cluster"] == {"ok"}
    daemon.start()
    here = examined()
    assert here["service"] == here["queue"] == {"ok"}
    text = daemon.config.read_text()
    config = yaml.safe_load(text)
    config["power"], config["adapter"]["options"] = {"save": True}, {"partitions": ["mian"]}
    daemon.config.write_text(yaml.safe_dump(config))
    wrong = examined()
    assert wrong["power"] == {"problem", "ok"} and "problem" in wrong["handover"]
    config["adapter"]["options"] = {"partition": "main"}
    daemon.config.write_text(yaml.safe_dump(config))
    done = pilotfish("doctor", "--config", daemon.config)
    assert done.returncode == 1 and "did you mean 'partitions'" in done.stderr and done.stderr.count("\n") == 1


def test_slurmrestd_and_its_token(site: SlurmSite, daemon: SlurmDaemon, tmp_path: Path) -> None:
    token = tmp_path / "token"
    config = yaml.safe_load(daemon.config.read_text())
    config["adapter"]["options"] = {"rest_url": site.rest_url, "rest_token_file": str(token), "rest_user": OPERATOR}
    daemon.config.write_text(yaml.safe_dump(config))
    token.write_text(site.token())
    for mode, levels in ((0o600, {"ok", "note"}), (0o644, {"ok", "problem"})):
        token.chmod(mode)
        done = pilotfish("doctor", "--config", daemon.config, "--json")
        assert findings(done.stdout)["rest"] == levels, done.stdout
        assert token.read_text() not in done.stdout
    site.signal("slurmrestd", signal.SIGKILL)
    assert "warning" in findings(pilotfish("doctor", "--config", daemon.config, "--json").stdout)["rest"]
    site.up()


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("--adapter", "slrum"), "did you mean"),
        (("--adapter", "slurm", "--try", "--user", "news"), "run it as news"),
        (("--config", "/no/such/file.yaml"), "/no/such/file.yaml"),
    ],
)
def test_invalid_arguments_are_one_line(argv: tuple[str, ...], words: str) -> None:
    done = pilotfish("doctor", *argv)
    assert done.returncode in (1, 64) and words in done.stderr and "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.xdist_group("slurm 1")
def test_a_job_submit_plugin_without_a_daemon_is_a_problem(lua: LuaSlurm, tmp_path: Path) -> None:
    with closing(SlurmDaemon(tmp_path, lua.nodes, lua.cpus)) as daemon:

        def said() -> tuple[str, str]:
            done = pilotfish("doctor", "--config", daemon.config, "--json")
            (found,) = (each for each in json.loads(done.stdout)["findings"] if each["topic"] == "job_submit")
            return found["level"], found["says"]

        assert said()[0] == "problem"
        daemon.start("--dry-run")
        assert said()[0] == "warning"
        daemon.stop(signal.SIGTERM)
        daemon.start()
        assert said()[0] == "ok"
        lua.script.rename(tmp_path / "away.lua")
        level, text = said()
        assert level == "problem" and "will not start again" in text
