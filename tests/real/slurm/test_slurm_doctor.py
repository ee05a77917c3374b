"""`pilotfish doctor` on a real site, as root, as an operator, and as an ordinary user; and with parts of it away."""

from __future__ import annotations

import json
import pwd
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from real_world import COMMAND, pilotfish, run_as
from slurm_daemon import SlurmDaemon
from slurm_site import OPERATOR, SlurmSite

from pilotfish.adapters.slurm.transport.scontrol import Configuration, hard_time_min

pytestmark = pytest.mark.xdist_group("site 2")


def as_user(site: SlurmSite, user: str, *argv: str) -> subprocess.CompletedProcess[str]:
    environment = site.environment | {"PATH": "/usr/bin:/bin:/usr/sbin", "COLUMNS": "80", "HOME": str(site.shared())}
    done = run_as(user, *argv, env=environment)
    if "ermission denied" in done.stderr:
        pytest.skip(f"SKIPPED, the user {user} may not read the folder in which pilotfish is installed")
    return done


def findings(printed: str) -> dict[str, set[str]]:
    """Topic -> levels."""
    every: dict[str, set[str]] = {}
    for finding in json.loads(printed)["findings"]:
        every.setdefault(finding["topic"], set()).add(finding["level"])
    return every


@pytest.mark.parametrize(("user", "rights"), [("root", "note"), (OPERATOR, "ok"), ("news", "note")])
def test_each_user_learns_their_rights(site: SlurmSite, user: str, rights: str) -> None:
    before = site.jobs()
    done = as_user(site, user, "doctor", "--adapter", "slurm", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    every = findings(done.stdout)
    assert every["rights"] == {rights} and every["controller"] == every["clock"] == every["accounting"] == {"ok"}
    assert site.jobs() == before, "it only looks"
    tried = as_user(site, user, "doctor", "--adapter", "slurm", "--json", "--try")
    assert tried.returncode == (user == "news")
    assert ("problem" in findings(tried.stdout)["trial"]) is (user == "news")
    (job,) = set(site.jobs()) - set(before)
    assert site.jobs()[job][0] == "CANCELLED"


def test_the_output_fits_a_terminal_without_colour(site: SlurmSite) -> None:
    done = as_user(site, "news", "doctor", "--adapter", "slurm", "--user", "news")
    lines = done.stdout.splitlines()
    assert (
        all(len(line) <= 80 for line in lines if not line.lstrip().startswith(("$ ", "# ")))
        and "\x1b" not in done.stdout
    )
    assert "problem rights news is not an operator: Slurm lets it change only its own jobs" in " ".join(
        done.stdout.split()
    )
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


@pytest.mark.skipif(not shutil.which("faketime"), reason="no faketime: a wrong clock was NOT tried")
def test_the_clock_of_a_login_node(site: SlurmSite) -> None:
    """`sbatch` and `doctor` on a machine that is 40 s ahead of the controller's."""
    ahead = ("faketime", "-f", "+40s")
    words = ("sbatch", "--parsable", "--output=/dev/null", "--chdir=/tmp", "--begin=now+600", "--wrap=true")
    for user in ("games", "news", "games"):
        site.run(*ahead, *words, "--comment=pilotfish:hold=600", user=user)
    done = pilotfish("doctor", "--adapter", "slurm", "--json")
    (wrong,) = (each for each in json.loads(done.stdout)["findings"] if each["topic"] == "clock" and each["mend"])
    assert "3 jobs of 2 users from " in wrong["says"] and "s later than their holds" in wrong["says"]
    assert 10 <= int(re.search(r"begin (\d+) s", wrong["says"])[1]) <= 45
    there = subprocess.run([*ahead, *COMMAND, "doctor", "--adapter", "slurm", "--json"], capture_output=True, text=True)
    here = [each["says"] for each in json.loads(there.stdout)["findings"] if each["topic"] == "clock"]
    assert re.match(r"the controller's clock is -(3|4)\d s from", here[0]) and "not placed" in here[0], there.stderr


def test_jobs_that_are_handed_over_in_vain(site: SlurmSite) -> None:
    site.submit("true", "--begin=now+600", "--comment=pilotfish:hold=600", "--time-min=1", "--time=5")
    done = pilotfish("doctor", "--adapter", "slurm", "--json")
    said = [each["says"] for each in json.loads(done.stdout)["findings"] if each["topic"] == "queue"]
    assert "because it asks for a minimum time limit" in said[1] and "(--time-min): backfill may cut" in said[2]


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


def test_a_time_min_that_would_cut_limits_for_good_is_a_problem(site: SlurmSite, daemon: SlurmDaemon) -> None:
    """Slurm before 23.11, or without time_min_as_soft_limit; the case on a newer one is in tests/adapters."""
    if not hard_time_min(Configuration(site.run("scontrol", "show", "config"))):
        pytest.skip("NOT TESTED: this Slurm takes TimeMin for a soft limit")
    config = yaml.safe_load(daemon.config.read_text())
    config["adapter"]["options"] = {"time_min": True}
    daemon.config.write_text(yaml.safe_dump(config))
    examined = pilotfish("doctor", "--config", daemon.config, "--user", OPERATOR, "--json")
    (problem,) = (row for row in json.loads(examined.stdout)["findings"] if row["topic"] == "time_min")
    assert problem["level"] == "problem" and "cuts the time limits of such jobs for good" in problem["says"]
    assert examined.returncode == 1 and problem["mend"][0].startswith("time_min: false")


def test_the_pins_of_a_daemon_that_is_not_the_user_in_question(site: SlurmSite, daemon: SlurmDaemon) -> None:
    site.submit("sleep 60", "--exclusive", "--nodelist=n1")
    job = site.submit("true", "--comment=pilotfish", "--nodelist=n1")
    daemon.record(job, pwd.getpwnam("games").pw_uid, ("n1",), time.time())
    done = pilotfish("doctor", "--config", daemon.config, "--user", OPERATOR, "--json")
    said = [each["says"] for each in json.loads(done.stdout)["findings"] if each["topic"] == "queue"]
    assert len(said) == 1 and said[0].endswith(" 0 for pilotfish; 1 pinned")


def test_files_that_another_user_controls(site: SlurmSite, daemon: SlurmDaemon) -> None:
    def said() -> list[str]:
        done = pilotfish("doctor", "--config", daemon.config, "--json")
        return [each["says"] for each in json.loads(done.stdout)["findings"] if each["topic"] == "files"]

    state = daemon.config.parent / "state"
    state.mkdir(mode=0o700)
    assert said() == ["no other user controls the files and folders of root"]
    state.chmod(0o770)
    assert said() == [f"{state} is not trusted: it belongs to user root (0), mode 0770: others can write to it (chmod "
                      f"go-w {state})"]  # fmt: skip


def test_slurmrestd_and_its_token(site: SlurmSite, daemon: SlurmDaemon, tmp_path: Path) -> None:
    token = tmp_path / "token"
    config = yaml.safe_load(daemon.config.read_text())
    config["adapter"]["options"] = {"rest_url": site.rest_url, "rest_token_file": str(token), "rest_user": OPERATOR}
    daemon.config.write_text(yaml.safe_dump(config))
    token.write_text(site.token())
    for mode, levels in ((0o600, {"ok"}), (0o644, {"ok", "problem"})):
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
