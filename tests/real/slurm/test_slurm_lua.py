"""docs/slurm/job_submit.lua in a real controller: what it holds back is what pilotfish then takes, and nothing else."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
from real_world import eventually, pilotfish
from slurm_daemon import SlurmDaemon
from slurm_lua import PLUGIN, LuaSlurm

from pilotfish.adapters.slurm.handed_over.ownership import Ownership, SlurmSelection, hold_seconds, ownership_of
from pilotfish.adapters.slurm.handed_over.unheld_kinds import FEWEST
from pilotfish.adapters.slurm.records import SlurmJob
from pilotfish.adapters.slurm.submission import profile_in, script_in
from pilotfish.adapters.slurm.transport.command_transport import CommandTransport
from pilotfish.adapters.slurm.transport.runner import CommandRunner
from pilotfish.simulate.model.snapshot import JobState

pytestmark = pytest.mark.xdist_group("slurm 3")
HOLD_S, SPREAD_S = 600, 120
HELD = {
    "a partition that is handed over": (["--partition=half"], "pilotfish:hold=H;script=S"),
    "a comment": (["--comment=pilotfish"], "pilotfish:hold=H;script=S"),
    "a comment among words": (["--comment=for the pilotfish there"], "for the pilotfish:hold=H;script=S there"),
    "a comment with a profile": (
        ["--comment=my pilotfish:profile=a%2F1 x"],
        "my pilotfish:profile=a%2F1;hold=H;script=S x",
    ),
    "nothing behind the colon": (["--comment=pilotfish:"], "pilotfish:hold=H;script=S"),
    "a comment with room for a hold and a script": (
        ["--partition=half", f"--comment={'x' * 987}"],
        f"{'x' * 987} pilotfish:hold=H;script=S",
    ),
    "a comment with room for a hold alone": (
        ["--partition=half", f"--comment={'x' * 988}"],
        f"{'x' * 988} pilotfish:hold=H",
    ),
    "a comment with a script": (["--comment=pilotfish:script=abcdefgh"], "pilotfish:script=abcdefgh;hold=H"),
    "both": (["--partition=half", "--comment=a|b;c=d 'é'"], "a|b;c=d 'é' pilotfish:hold=H;script=S"),
}
LEFT = {
    "another partition": (),
    "a comment that only looks like it": ("--comment=pilotfishes",),
    "a comment that cannot be told": ("--partition=half", "--comment=my-pilotfish"),
    "two words of ours": ("--comment=pilotfish pilotfish:profile=a",),
    "a hold of the user's without a begin time": ("--comment=pilotfish:hold=60",),
    "a begin time in the comment alone": ("--comment=pilotfish:until=1800000000",),
    "a begin time of the user's": ("--partition=half", "--begin=now+100"),
    "both, as users write them": ("--begin=now+60", "--comment=pilotfish:hold=60"),
    "a job of pilotfish's own": ("--partition=half", "--comment=pilotfish:key=dag%2Fa"),
    "a job that its user holds": ("--partition=half", "--hold"),
    "an array": ("--partition=half", "--array=1-2"),
    "a comment without room for a hold": ("--partition=half", f"--comment={'x' * 1005}"),
    "the longest comment": ("--partition=half", f"--comment={'x' * 1023}"),
    "several partitions": ("--partition=half,main",),
}


def seen(job: int) -> SlurmJob:
    return CommandTransport(CommandRunner()).jobs([job])[0]


@pytest.mark.parametrize(("options", "comment"), HELD.values(), ids=HELD)
def test_jobs_that_are_handed_over_wait_for_their_hold_and_no_longer(
    lua: LuaSlurm, options: list[str], comment: str
) -> None:
    job = seen(lua.submit("true", *options))
    hold = hold_seconds(job.comment)
    assert hold is not None and HOLD_S - SPREAD_S <= hold <= HOLD_S
    script = script_in(job.comment)
    assert job.comment == comment.replace("hold=H", f"hold={hold}").replace("script=S", f"script={script}")
    assert bool(script) is ("script=" in comment)
    assert job.submit is not None and job.begin is not None and abs(job.begin - job.submit - hold) <= 2.0
    selection = SlurmSelection(frozenset({"half"}))
    assert ownership_of(job, selection, job.submit) == (Ownership.HELD, "")
    assert ownership_of(job, selection, job.begin) == (Ownership.FREE, "")
    assert profile_in(job.comment) == ("a/1" if "profile" in comment else "")


@pytest.mark.parametrize("options", LEFT.values(), ids=LEFT)
def test_other_jobs_stay_as_their_users_wrote_them(lua: LuaSlurm, options: tuple[str, ...]) -> None:
    asked_at = time.time()
    job = seen(lua.submit("true", *options))
    given = next((word.split("=", 1)[1] for word in options if word.startswith("--comment=")), "")
    assert job.comment == given
    if not any(word.startswith("--begin") for word in options):
        assert job.begin is None or job.begin <= asked_at + 5
    lua.run("scancel", str(job.id))


def test_jobs_with_dependencies_and_interactive_jobs_stay_too(lua: LuaSlurm) -> None:
    first = lua.submit("sleep 30")
    after = seen(lua.submit("true", "--partition=half", f"--dependency=afterok:{first}"))
    assert (after.comment, after.begin) == ("", None)
    lua.run("srun", "--partition=half", "--chdir=/tmp", "true", user="games")
    script = lua.shared() / "het.sh"
    script.write_text("#!/bin/sh\n#SBATCH -p half\n#SBATCH hetjob\n#SBATCH -p half\ntrue\n")
    argv = ("sbatch", "--parsable", "--output=/dev/null", "--chdir=/tmp", str(script))
    het = seen(int(lua.run(*argv, user="games")))
    assert het.part and het.comment == ""


def test_the_checksum_of_a_script_is_that_of_its_text_and_arguments(lua: LuaSlurm) -> None:
    def known(text: str, *arguments: str) -> str:
        script = lua.shared() / "work.sh"
        script.write_text(f"#!/bin/sh\n{text}\n")
        argv = ("sbatch", "--parsable", "--partition=half", "--output=/dev/null", "--chdir=/tmp", str(script))
        return script_in(seen(int(lua.run(*argv, *arguments, user="games"))).comment)

    asked = [("true",), ("true", "7"), ("true", "8"), ("false",), ("#" * 100_000,)]
    first, again = ([known(*each) for each in asked] for _ in range(2))
    assert first == again and len(set(first)) == len(asked) and all(first)


def test_holds_do_not_end_in_one_moment(lua: LuaSlurm) -> None:
    jobs = [lua.submit("true", "--comment=pilotfish") for _ in range(20)]
    holds = sorted(hold_seconds(job.comment) or 0 for job in CommandTransport(CommandRunner()).jobs(jobs))
    gaps = [later - earlier for earlier, later in pairwise(holds)]
    assert len(set(holds)) == 20 and max(gaps) <= 3 * SPREAD_S / 20


def test_a_daemon_places_them_and_without_one_no_job_is_held(lua: LuaSlurm, tmp_path: Path) -> None:
    with closing(SlurmDaemon(tmp_path, lua.nodes, lua.cpus)) as daemon:
        daemon.start()
        jobs = [lua.submit("sleep 0.3", "--comment=pilotfish", "--cpus-per-task=4") for _ in range(4)]
        eventually(lambda: all(seen(job).state is JobState.COMPLETED for job in jobs), "the jobs")
        assert all(daemon.placed(job) for job in jobs)
        assert daemon.stop(signal.SIGTERM) == 0
    lua.served.unlink()
    assert seen(lua.submit("true", "--comment=pilotfish")).comment == "pilotfish"


def test_kinds_by_which_nothing_is_gained_are_not_held_but_may_be_placed(lua: LuaSlurm) -> None:
    uid = seen(lua.submit("true")).uid
    kinds = [lua.unheld.with_name(f"unheld.{who}.{name}") for who, name in ((f"{uid}0", "short"), (uid, "short%20one"))]
    for kind in kinds:
        kind.touch()
    try:
        for options, comment in (
            ((), "pilotfish:script=S"),
            (("--comment=pilotfish:profile=a",), "pilotfish:profile=a"),
            (("--comment=mine",), "mine pilotfish:script=S"),
            ((f"--comment={'x' * 1014}",), "x" * 1014),
        ):
            job = seen(lua.submit("true", "--partition=half", "--job-name=short one", *options))
            assert job.comment == comment.replace("=S", f"={script_in(job.comment)}")
            assert hold_seconds(job.comment) is None
            assert job.begin is None or job.submit is None or job.begin <= job.submit + 2
        for name in ("short", "one", "short one more", f"x\n{uid} short one"):
            assert hold_seconds(seen(lua.submit("true", "--partition=half", f"--job-name={name}")).comment)
        assert seen(lua.submit("true", "--partition=main", "--job-name=short one")).comment == ""
    finally:
        for kind in kinds:
            kind.unlink()


def test_a_daemon_that_gains_nothing_by_a_kind_has_it_no_longer_held(lua: LuaSlurm, tmp_path: Path) -> None:
    with closing(
        SlurmDaemon(tmp_path, lua.nodes, lua.cpus, unheld_prefix=str(lua.unheld), asked_file=str(lua.asked))
    ) as daemon:
        daemon.config.write_text(daemon.config.read_text().replace("without_gain: place", "without_gain: release"))
        daemon.start()
        fillers = [lua.submit("sleep 60", "--cpus-per-task=4", f"--nodelist=n{node}") for node in (1, 2)]
        lua.until(lambda: len(lua.run("squeue", "--noheader", "--states=running").split("\n")) >= 2, "full nodes")
        jobs = [
            lua.submit("true", "--comment=pilotfish", "--job-name=tiny", "--cpus-per-task=4") for _ in range(FEWEST)
        ]
        kind = lua.unheld.with_name(f"unheld.{seen(jobs[0]).uid}.tiny")
        eventually(kind.exists, "the kind to be known")
        after = seen(lua.submit("true", "--comment=pilotfish", "--job-name=tiny", "--cpus-per-task=4"))
        other = seen(lua.submit("true", "--comment=pilotfish", "--job-name=another", "--cpus-per-task=4"))
        assert after.comment == "pilotfish" and hold_seconds(other.comment)
        assert daemon.stop(signal.SIGTERM) == 0
        assert not kind.exists()
        lua.run("scancel", *map(str, (*fillers, *jobs, after.id, other.id)))


def test_nothing_in_the_folder_of_pilotfish_blocks_the_controller(lua: LuaSlurm) -> None:
    """The account of pilotfish replaces each name that the script looks at by a FIFO; sbatch fails if it waits for it."""
    uid = seen(lua.submit("true")).uid
    kind = lua.unheld.with_name(f"unheld.{uid}.blocked")
    lua.served.unlink(missing_ok=True)
    try:
        for fifo in (lua.unheld, kind, lua.served):
            os.mkfifo(fifo, 0o666)
        jobs = [seen(lua.submit("true", "--partition=half", f"--job-name={name}")) for name in ("blocked", "other")]
        assert [hold_seconds(job.comment) is None for job in jobs] == [True, False]
    finally:
        for fifo in (lua.unheld, kind, lua.served):
            fifo.unlink(missing_ok=True)


def test_an_error_in_the_script_refuses_no_job(lua: LuaSlurm) -> None:
    lua.install(("local hold = math.floor(", "local hold = math.no_such_thing("))
    job = seen(lua.submit("true", "--comment=pilotfish"))
    assert job.comment == "pilotfish"
    assert "pilotfish: " in (lua.path / "log" / "slurmctld.log").read_text().rpartition("no_such_thing")[0][-300:]


def test_the_script_is_removed_as_documented(lua: LuaSlurm) -> None:
    text = lua.config.read_text()
    try:
        lua.config.write_text(text.replace(PLUGIN, ""))
        lua.run("scontrol", "reconfigure")
        lua.until(lambda: "JobSubmitPlugins        = (null)" in lua.run("scontrol", "show", "config"), "no plugin")
        lua.script.unlink()
        assert seen(lua.submit("true", "--comment=pilotfish")).comment == "pilotfish"
        lua.signal("slurmctld", signal.SIGTERM)
        lua.start_controller()
    finally:
        lua.install()
        lua.config.write_text(text)
        lua.run("scontrol", "reconfigure")
    lua.until(lambda: hold_seconds(seen(lua.submit("true", "--comment=pilotfish")).comment), "the plugin to be back")


def test_a_job_submit_plugin_holds_nothing_without_a_daemon(lua: LuaSlurm, tmp_path: Path) -> None:
    with closing(SlurmDaemon(tmp_path, lua.nodes, lua.cpus)) as daemon:

        def said() -> tuple[str, str]:
            done = pilotfish("doctor", "--config", daemon.config, "--json")
            (found,) = (each for each in json.loads(done.stdout)["findings"] if each["topic"] == "job_submit")
            return found["level"], found["says"]

        lua.served.touch()
        assert said()[0] == "problem"
        lua.served.unlink()
        assert said()[0] == "ok" and "holds no job now" in said()[1]
        daemon.start()
        assert said()[0] == "warning" and f"the daemon at {daemon.socket} does not keep" in said()[1]
        lua.served.touch()
        assert said()[0] == "ok"
        daemon.stop(signal.SIGTERM)
        daemon.start("--dry-run")
        assert said()[0] == "warning" and "places none" in said()[1]
        lua.script.rename(tmp_path / "away.lua")
        level, text = said()
        assert level == "problem" and "will not start again" in text


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("if true then return slurm.ERROR end", "could not be placed"),
        ("job.begin_time = os.time() + 86400", "did not make them (StartTime)"),
    ],
)
def test_a_plugin_that_refuses_or_undoes_updates_is_found(lua: LuaSlurm, body: str, words: str) -> None:
    """The rights look right: only a trial shows it."""
    modify = "function slurm_job_modify(job, record, partitions, uid)\n"
    lua.install((modify, f"{modify}   {body}\n"))
    before = set(lua.jobs())
    done = pilotfish("doctor", "--adapter", "slurm", "--json", "--try")
    found = [each for each in json.loads(done.stdout)["findings"] if each["topic"] == "trial"]
    assert done.returncode == 1 and found[0]["level"] == "problem" and words in found[0]["says"]
    (job,) = set(lua.jobs()) - before
    assert lua.jobs()[job][0] == "CANCELLED"
