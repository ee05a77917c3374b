"""Plans as sbatch and oarsub scripts, run with stand-ins for these commands that record their arguments."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.adapters.oar import export as export_oar
from pilotfish.adapters.slurm.plan_export import export as export_slurm
from pilotfish.adapters.slurm.submission import command
from pilotfish.simulate.errors import InvalidJobError
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.plan import Plan, PlannedJob

RECORDER = """#!/bin/sh
for word in "$@"; do printf '%s\\0' "$word"; done >> "$LOG"
printf '\\n\\0' >> "$LOG"
count=$(tr -cd '\\n' < "$LOG" | wc -c)
"""
SBATCH = RECORDER + 'echo "10$count;cluster"\n'
OARSUB = RECORDER + 'echo "[ADMISSION RULE] ok"\necho "OAR_JOB_ID=10$count"\n'
PROFILE = Profile((ThreadGroup(4, 10.0),))


def planned(name, start, nodes=("n1",)):
    return PlannedJob(name, nodes, start, start + 10, 10.0, 1.0)


def plan_of(*jobs):
    return Plan("w", "lab", "mom", 0, 30.0, None, 10.0, 0.001, False, 1, jobs)


def run(script, tmp_path, command, text):
    tool = tmp_path / command
    tool.write_text(text)
    tool.chmod(0o755)
    log = tmp_path / "log"
    log.unlink(missing_ok=True)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "LOG": str(log)}
    result = subprocess.run(["/bin/sh"], input=script.encode(), env=environment, capture_output=True, check=False)
    calls = log.read_bytes().decode().split("\n\0")[:-1] if log.exists() else []
    return result.returncode, [call.split("\0")[:-1] for call in calls]


WORKFLOW = Workflow(
    "dag 1",
    (
        Job("late", PROFILE, ("early", "gone"), command=("echo", "it's $HOME"), environment=(("A", "b c"),)),
        Job(
            "early",
            PROFILE,
            nodes=2,
            walltime=600.5,
            command=("/bin/sh", "-c", "a && b"),
            directory="/my dir",
        ),
        Job("gone", PROFILE),
        Job("idle", PROFILE),
    ),
)
PLAN = plan_of(planned("late", 10.0), planned("early", 0.0, ("n1", "n2")), planned("idle", 5.0))


def test_only_what_a_job_requests_becomes_a_limit():
    """A measured or predicted peak is no request: Slurm would end a later run that takes a little more."""
    measured = replace(PROFILE, memory=2100 * 2.0**20)
    jobs = (
        Job("asks", measured, memory=2.0**31, command=("true",)),
        Job("odd", PROFILE, memory=2.0**20 + 1, command=("true",)),
        Job("measured", measured, command=("true",)),
        Job("unknown", PROFILE, command=("true",)),
    )
    script = export_slurm(plan_of(*(planned(job.id, 0.0) for job in jobs)), Workflow("w", jobs))
    lines = {job.id: next(line for line in script.splitlines() if f"--job-name={job.id}" in line) for job in jobs}
    assert {name: re.findall("--mem=[^ ]*", line) for name, line in lines.items()} == {
        "asks": ["--mem=2048M"], "odd": ["--mem=2M"], "measured": [], "unknown": [],
    }  # fmt: skip
    assert "# No --mem for 1 job without the key memory: a measured peak is not a limit.\n" in script
    assert "--time" not in script
    for job in jobs:
        argv = command("w/x", job, ("n1",), (), None)
        assert [word for word in argv if word.startswith("--mem")] == re.findall("--mem=[^ ]*", lines[job.id])
        assert not [word for word in argv if word.startswith("--time")]


@pytest.mark.real
def test_the_arguments_of_sbatch(tmp_path):
    code, calls = run(export_slurm(PLAN, WORKFLOW), tmp_path, "sbatch", SBATCH)
    common = ["--ntasks-per-node=1", "--cpus-per-task=4"]
    assert code == 0
    assert calls == [
        ["--parsable", "--job-name=early", "--comment=pilotfish:dag 1/early", "--nodes=2", "--nodelist=n1,n2",
         *common, "--time=00:10:01", "--chdir=/my dir", "--wrap=/bin/sh -c 'a && b'"],
        ["--parsable", "--job-name=idle", "--comment=pilotfish:dag 1/idle", "--nodes=1", "--nodelist=n1",
         *common, "--wrap=:"],
        ["--parsable", "--job-name=late", "--comment=pilotfish:dag 1/late", "--nodes=1", "--nodelist=n1",
         *common, "--kill-on-invalid-dep=yes", "--dependency=afterok:101",
         """--wrap=env 'A=b c' echo 'it'"'"'s $HOME'"""],
    ]  # fmt: skip


@pytest.mark.real
def test_the_arguments_of_oarsub(tmp_path):
    code, calls = run(export_oar(PLAN, WORKFLOW), tmp_path, "oarsub", OARSUB)
    assert code == 0
    assert calls == [
        ["--name=pilotfish:dag 1/early", "-p", "network_address in ('n1','n2')",
         "-l", "/nodes=2/core=4,walltime=0:10:01", "-d", "/my dir", "/bin/sh -c 'a && b'"],
        ["--name=pilotfish:dag 1/idle", "-p", "network_address in ('n1')", "-l", "/nodes=1/core=4", ":"],
        ["--name=pilotfish:dag 1/late", "-p", "network_address in ('n1')", "-l", "/nodes=1/core=4", "-a", "101",
         """env 'A=b c' echo 'it'"'"'s $HOME'"""],
    ]  # fmt: skip


def test_no_job_asks_for_more_cores_than_its_nodes_have():
    big, small = (NodeType(name, cores, 1e9, 1e9) for name, cores in (("big", 8), ("small", 2)))
    lab = Cluster("lab", (Node("n1", big), Node("n2", small)), oversubscription=2.0)
    for export, words in ((export_slurm, "--cpus-per-task="), (export_oar, "/core=")):
        early, idle, _ = (line for line in export(PLAN, WORKFLOW, lab).splitlines() if words in line)
        assert f"{words}2" in early and f"{words}4" in idle


@pytest.mark.real
@pytest.mark.parametrize(("export", "command"), [(export_slurm, "sbatch"), (export_oar, "oarsub")])
def test_a_refused_submission_stops_the_script(tmp_path, export, command):
    for text in (f"{RECORDER}exit 1\n", f"{RECORDER}echo OAR_JOB_ID=-5; exit 8\n"):
        code, calls = run(export(PLAN, WORKFLOW), tmp_path, command, text)
        assert code != 0
        assert len(calls) == 1


@pytest.mark.real
@settings(max_examples=15, deadline=None)
@given(st.text(st.sampled_from("a'\"`$(){};&|<>\\ !*?#~-=%\u00e9"), min_size=1, max_size=12))
def test_names_are_quoted_for_the_shell(tmp_path_factory, evil):
    tmp_path = tmp_path_factory.mktemp("evil")
    workflow = Workflow(evil, (Job(evil, PROFILE, command=(evil, evil)), Job("b", PROFILE, (evil,))))
    plan = plan_of(planned(evil, 0.0, (evil,)), planned("b", 0.0))
    code, calls = run(export_slurm(plan, workflow), tmp_path, "sbatch", SBATCH)
    assert code == 0
    assert calls[0][1:5] == [
        f"--job-name={evil}",
        f"--comment=pilotfish:{evil}/{evil}",
        "--nodes=1",
        f"--nodelist={evil}",
    ]
    code, calls = run(export_oar(plan, workflow), tmp_path, "oarsub", OARSUB)
    assert code == 0
    doubled = evil.replace("'", "''")
    assert calls[0][:3] == [f"--name=pilotfish:{evil}/{evil}", "-p", f"network_address in ('{doubled}')"]
    wrapped = calls[0][-1]
    split = subprocess.run(["/bin/sh", "-c", f"printf '%s\\0' {wrapped}"], capture_output=True, check=True).stdout
    assert split.decode().split("\0")[:-1] == [evil, evil]


def test_a_line_break_in_a_name_stays_in_the_comment():
    workflow = Workflow("w\nreboot", (Job("a", PROFILE, command=("x",)),))
    lines = export_slurm(plan_of(planned("a", 0.0)), workflow).splitlines()
    assert lines[1] == "# w?reboot on lab, mapped by pilotfish with mom"


def test_a_plan_of_another_workflow_is_refused():
    with pytest.raises(InvalidJobError, match="'x' is not a job"):
        export_slurm(plan_of(planned("x", 0.0)), WORKFLOW)
