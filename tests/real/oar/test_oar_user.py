"""Workflows of an ordinary user over a real OAR, without a daemon: whole or not at all, each job once and in order.

What OAR's commands show is compared with what its database holds.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from oar_cluster import USERS, OarCluster
from oar_mounts import group
from oar_site import as_user
from real_world import COMMAND, PATIENCE_S, users_cache

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.oar.commands import OarCommands
from pilotfish.adapters.oar.records.oarstat import Oarstat
from pilotfish.adapters.oar.records.world import Database, OarJob
from pilotfish.adapters.oar.submission import command, job_id, key_in
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Job

pytestmark = pytest.mark.xdist_group(group(1))


class User:
    """A user of OAR with a home, and `pilotfish` over OAR in it."""

    def __init__(self, oar: OarCluster, name: str) -> None:
        self.home = oar.shared() / name
        shutil.rmtree(self.home, ignore_errors=True)  # of a try before
        self.home.mkdir()
        settings = {"schema": "pilotfish/client/v1", "adapter": "oar", "submit_options": ["--project=flows"]}
        (self.home / "client.yaml").write_text(yaml.safe_dump(settings))
        shutil.chown(self.home, USERS[0])

    def __call__(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run a command as this user."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PILOTFISH_", "XDG_"))}
        mine = {"HOME": str(self.home), "PILOTFISH_CLIENT": str(self.home / "client.yaml"), "PWD": str(self.home)}
        mine["PILOTFISH_CACHE"] = str(users_cache(USERS[0]))
        as_user = ("setpriv", f"--reuid={USERS[0]}", f"--regid={USERS[0]}", "--clear-groups")
        return subprocess.run(
            [*as_user, *COMMAND, *argv],
            capture_output=True, text=True, cwd=self.home, env=kept | mine, timeout=PATIENCE_S,
        )  # fmt: skip

    def write(self, **jobs: tuple[str, str]) -> None:
        """Write a workflow of jobs: the names of those before it, and its command."""
        plain = {
            name: {
                "after": list(after),
                "command": f"echo {name} >> trail; {line}",
                "walltime": 120,
                "profile": {"service_demand": 0.1},
            }
            for name, (after, line) in jobs.items()
        }
        flow = {"schema": "pilotfish/workflow/v1", "name": "dag", "jobs": plain}
        (self.home / "dag.yaml").write_text(yaml.safe_dump(flow, sort_keys=False))

    def trail(self) -> list[str]:
        """The jobs that ran, in their order."""
        path = self.home / "trail"
        return path.read_text().split() if path.exists() else []

    def status(self, workflow: str) -> dict[str, dict[str, Any]]:
        """The jobs of a workflow by name."""
        said = self("status", workflow, "--json")
        assert said.returncode == 0, said.stderr
        return {job["id"]: job for job in json.loads(said.stdout)["workflows"][0]["jobs"]}


def test_a_workflow_runs_once_and_in_order(oar: OarCluster) -> None:
    user = User(oar, "whole")
    user.write(a=("", "sleep 1"), b=("a", "true"), c=("a", "true"), d=("bc", "true"))
    for _ in range(2):  # the same key: submitted once
        done = user("submit", "dag.yaml", "--wait", "--key", "nightly")
        assert (done.returncode, done.stderr) == (0, "")
    trail = user.trail()
    assert Counter(trail) == Counter("abcd") and trail[0] == "a" and trail[-1] == "d"
    jobs = user.status(done.stdout.strip())
    assert {job["state"] for job in jobs.values()} == {"completed"}
    assert all(job["nodes"] and job["start_time"] <= job["finish_time"] for job in jobs.values())
    said = user("explain", "d", "--json")
    story = json.loads(said.stdout)
    assert [each["kind"] for each in story["story"]] == ["submitted", "started", "ended"] and story["after"] == [
        "b",
        "c",
    ]
    assert oar.sql("select distinct project from jobs where job_name like 'dag.%'") == "flows"


def test_what_follows_a_failure_does_nothing_and_what_is_cancelled_ends(oar: OarCluster) -> None:
    user = User(oar, "failing")
    user.write(a=("", "exit 3"), b=("a", "true"), c=("b", "true"), long=("", "sleep 100"), last=(["long"], "true"))
    done = user("submit", "dag.yaml")
    assert done.returncode == 0, done.stderr
    id = done.stdout.strip()
    _until(oar, id, "c", "Terminated")
    _until(oar, id, "long", "Running")
    jobs = user.status(id)
    assert (jobs["a"]["state"], jobs["a"]["exit_code"]) == ("failed", 3)
    assert [(jobs[name]["state"], jobs[name]["start_time"]) for name in "bc"] == [("cancelled", None)] * 2
    assert jobs["b"]["reason"].startswith("a predecessor did not complete")
    assert "it does nothing" in Path(jobs["a"]["stderr"]).with_name("b.err").read_text()
    assert jobs["long"]["state"] == "running"
    said = user("cancel", id)
    assert said.stdout == "1 cancelled, 1 being ended\n", said.stderr
    _until(oar, id, "long", "Error")
    _until(oar, id, "last", "Error")
    jobs = user.status(id)
    assert {jobs[name]["state"] for name in ("long", "last")} == {"cancelled"}
    assert sorted(user.trail()) == ["a", "long"]
    refused = user("submit", "dag.yaml", "--no-hold")
    assert refused.returncode == 64 and "only with --adapter slurm" in refused.stderr
    (user.home / "client.yaml").write_text(
        "schema: pilotfish/client/v1\nadapter: oar\nsubmit_options: [--queue=none]\n"
    )
    refused = user("submit", "dag.yaml")
    assert refused.returncode == 1 and "is refused: oarsub: " in refused.stderr and "\n" not in refused.stderr.strip()


def _until(oar: OarCluster, workflow: str, job: str, state: str) -> None:
    """Wait for a state of a job of a workflow."""
    oar.until(lambda: oar.sql(f"select state from jobs where job_name = '{workflow}/{job}'") == state, f"{job} {state}")


ODD = ("a'b", 'a"b', "a b; $(id)", "a\nb", "é ß", "x" * 300, "\\\\")


@pytest.mark.parametrize("option", ["--project", "-p", "--name"])
def test_odd_words_come_back_or_are_refused_in_one_sentence(oar: OarCluster, option: str) -> None:
    commands, numbers = OarCommands(PATIENCE_S, tuple(as_user())), dict[int, str]()
    key = "flow/odd 'key'"
    for word in ODD:
        value = f"host <> {word}" if option == "-p" else word
        job = Job("odd", DEFAULT_PROFILE, command=("printf", word))
        try:
            said = commands.oar("submit", command(key, job, ["--hold", option, value], None, [], None))
        except AdapterError as error:
            assert not re.search(r"\n|DBD::| line \d|\.pm|^oarsub: exit code", str(error)), str(error)
            continue
        number = job_id(said)
        assert number is not None, said
        numbers[number] = word
    taken = dict[str, str]()
    for found in Oarstat(commands).find(numbers).jobs:
        word = numbers[found.id]
        assert option == "--name" or key_in(found.command, found.name) == key
        assert found.command.endswith(f"exec {shlex.join(('printf', word))}")
        taken[word] = {"--project": found.project, "-p": found.properties, "--name": found.name}[option]
    assert len(taken) == len(numbers)
    assert taken.keys() <= {word for word in ODD if taken.get(word, word).endswith(word)}, taken
    assert option == "-p" or "a b; $(id)" in taken


def test_the_commands_show_what_the_database_holds(oar: OarCluster) -> None:
    commands = OarCommands(PATIENCE_S, tuple(as_user()))
    first = 1 + int(oar.sql("select coalesce(max(job_id), 0) from jobs"))
    plain = ("-l", "/nodes=1/core=1,walltime=0:02:00")
    done = oar.submit("exit 3", "-n", "é x", "-l", "/core=1,walltime=0:01:00")
    running = oar.submit("sleep 20", *plain, user=USERS[1])
    oar.submit("true", *plain, "-a", str(running), "-p", "host <> 'a b\"c'")
    oar.submit("true", "-l", "/core=1", "-l", "/core=2")
    oar.submit("true", "-l", "{host <> 'x/core=1'}/core=1+/core=2,walltime=1:00:00")
    oar.submit("true", "-t", "besteffort", "-l", "/nodes=ALL")
    oar.run("oarhold", str(oar.submit("true", "-l", "/nodes=4/core=2")), user=USERS[0])
    oar.until(lambda: (oar.jobs()[done][0], oar.jobs()[running][0]) == ("Terminated", "Running"), "the jobs")
    shown = Oarstat(commands)
    held = Database(commands.psql, oar.connection, oar.password_file, PATIENCE_S)

    for attempt in range(20):  # something may happen between the two reads
        one, other = shown.world(), held.world()
        assert one.resources == other.resources and abs(one.now - other.now) < 5
        mine, theirs = ([_comparable(job) for job in world.jobs if job.id >= first] for world in (one, other))
        if mine == theirs:
            break
        assert attempt < 19, next(pair for pair in zip(mine, theirs, strict=False) if pair[0] != pair[1])
        time.sleep(1.0)
    name = {job.id: job for job in shown.world().jobs}[done].name
    assert name == "é x"
    found = shown.find([done], {name.replace("é", "e"): USERS[0]})
    assert [job.id for job in found.jobs] == [done]


def _comparable(job: OarJob) -> OarJob:
    """A job without what the commands do not show: when its process began and its cores were free, and requests that are not plain."""
    plain = all(levels and where in ("", "type = 'default'") for form in job.forms for where, levels in form.groups)
    forms = job.forms if plain and len(job.forms) == 1 and len(job.forms[0].groups) == 1 else ()
    return replace(job, decided=None, began=None, freed=None, forms=forms, message="")
