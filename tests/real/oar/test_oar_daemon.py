"""The daemon next to a real OAR: jobs of two users go where it planned, and each runs once, whatever happens to it."""

from __future__ import annotations

import gzip
import re
import signal
import subprocess
from contextlib import closing
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from oar_campaigns import SMALL, death, killed_work, mixed_work
from oar_cluster import USERS, OarCluster
from oar_daemon import OarDaemon, work
from oar_mounts import group
from oar_site import QUEUE, Shim
from real_world import COMMAND, eventually

import pilotfish

pytestmark = pytest.mark.xdist_group(group(2))
DROP_IN = Path(pilotfish.__path__[0]) / "systemd" / "pilotfishd-oar.conf"


def test_a_dry_run_holds_and_places_nothing(oar: OarCluster, users_shim: Shim) -> None:
    jobs = work(oar, "dry")
    with closing(OarDaemon("dry", oar, users_shim, dry=True)) as daemon:
        daemon.start()
        jobs.add(1, *SMALL, user=USERS[1])
        jobs.wait()
        assert daemon.stop(signal.SIGTERM) == 0
    jobs.each_ran_once()
    assert not users_shim.file.exists()


def shows_all_starts(record: Path) -> bool:
    """Whether each job of a record has started in it; jobs of other tests may be among them."""
    card = subprocess.run([*COMMAND, "score", str(record), "--repeat", "1"], capture_output=True, text=True)
    match = re.search(r"jobs +(\d+) seen, \1 that started", card.stdout)
    return card.returncode == 0 and match is not None and int(match[1]) >= 3


def test_a_day_in_shadow_is_recorded_and_decides_the_same_again(
    oar: OarCluster, users_shim: Shim, tmp_path: Path
) -> None:
    """The daemon's own record, one that is kept without it, and both without names."""
    jobs = work(oar, "record")
    with closing(OarDaemon("record", oar, users_shim, dry=True)) as daemon:
        config = daemon.folder / "pilotfish.yaml"
        config.write_text(yaml.safe_dump(yaml.safe_load(config.read_text()) | {"record": {"enabled": True}}))
        daemon.start()
        beside = subprocess.Popen(
            [*COMMAND, "record", str(tmp_path / "seen"), "--adapter", "oar", "--every", "0.5"],
            cwd=tmp_path,
        )  # fmt: skip
        for _ in range(3):
            jobs.add(1, *SMALL, user=USERS[1])

        def decides() -> bool:  # on a busy machine OAR starts a job before the daemon has seen it
            jobs.add(1, *SMALL, user=USERS[1])
            return "would have started oar/" in daemon.log.read_text()

        eventually(decides, "a decision in shadow")
        jobs.wait()
        records = (daemon.folder / "state" / "record", tmp_path / "seen")
        for record in records:
            eventually(partial(shows_all_starts, record), f"the starts of all jobs in {record}")
        beside.send_signal(signal.SIGINT)
        assert beside.wait(60) == 0
        assert daemon.stop(signal.SIGTERM) == 0
    jobs.each_ran_once()
    for record in records:
        away = tmp_path / f"{record.name}-away"
        for argv in (("replay", record), ("record", record, "--anonymise", away), ("replay", away)):
            run = subprocess.run([*COMMAND, *map(str, argv)], capture_output=True, text=True)
            assert run.returncode == 0, run.stdout + run.stderr
            assert argv[0] == "record" or re.search("All cycles decide the same|Nothing was decided", run.stdout)
        assert shows_all_starts(away)
        text = "".join(gzip.decompress(path.read_bytes()).decode() for path in away.glob("*.gz"))
        assert f'"{USERS[1]}"' not in text and f"/{USERS[1]}" not in text and "oar/" in text


def test_mixed_jobs_of_two_users_run_where_they_were_placed(oar: OarCluster, users_shim: Shim) -> None:
    """A short version of the campaign with 60 jobs; no reservation is late."""
    assert mixed_work(oar, users_shim, "mixed", 12, 10.0).placed >= 4


def test_a_workflow_runs_in_order(oar: OarCluster, users_shim: Shim) -> None:
    """Its output is in the folder from which it was submitted.

    The daemon has the capabilities that its drop-in for systemd leaves it.
    """
    jobs = {name: {"after": after, "command": "echo here; sleep 1", "walltime": 60,
                   "profile": {"service_demand": 0.01, "utilisation": 0.01}}
            for name, after in {"a": [], "b": ["a"], "c": ["b"]}.items()}  # fmt: skip
    (left,) = re.findall(r"^CapabilityBoundingSet=(.+)$", DROP_IN.read_text(), re.MULTILINE)
    with closing(OarDaemon("flow", oar, users_shim)) as daemon:
        kept = left.lower().replace("cap_", "+").split()
        daemon.prefix.append(f"--bounding-set={','.join(['-all', *kept])}")
        daemon.start()
        flow = daemon.folder / "dag.yaml"
        flow.write_text(
            yaml.safe_dump({"schema": "pilotfish/workflow/v1", "name": "steps", "jobs": jobs}, sort_keys=False)
        )
        theirs = daemon.environment | {"PWD": str(oar.shared())}
        argv = [*daemon.prefix, *COMMAND, "submit", str(flow), "--socket", str(daemon.socket)]
        id = subprocess.run(
            argv, check=True, capture_output=True, text=True, env=theirs, cwd=oar.shared()
        ).stdout.strip()

        def known() -> list[dict[str, Any]]:
            (found,) = (daemon.ask("status", workflow=id) or {"workflows": [{"jobs": []}]})["workflows"]
            return list(found["jobs"])

        eventually(lambda: len(known()) == 3 and all(job["forecast_finish_time"] for job in known()), "forecasts")
        ends = [job["forecast_finish_time"] for job in known()]
        # 1 s each, and the launch, which this OAR may have done within the second that it counts in.
        assert all(after - before > 0.999 for before, after in pairwise(ends)), ends
        eventually(lambda: [job["state"] for job in known()] == ["completed"] * 3, "the end")
        assert all(before["finish_time"] <= after["start_time"] + 1 for before, after in pairwise(known()))
        assert daemon.stop(signal.SIGTERM) == 0
        said = daemon.log.read_text()
        assert "Traceback" not in said and "fault of pilotfish" not in said
    outputs = sorted(oar.shared().glob(f"OAR.{id}_?-*.stdout"))
    assert [path.read_text() for path in outputs] == ["here\n"] * 3


def test_each_job_runs_once_though_the_daemon_is_killed_again_and_again(oar: OarCluster, users_shim: Shim) -> None:
    killed_work(oar, users_shim, "killed", 3, drain=True)


def test_kept_jobs_start_by_themselves_when_the_daemon_is_gone(oar: OarCluster, users_shim: Shim) -> None:
    """Nobody asks OAR for a pass: it begins one at least every 60 s."""
    death(oar, users_shim, "silent", shorten=True)
    assert QUEUE in oar.sql("select queue_name from queues where state = 'Active'")


def test_status_forecasts_the_jobs_of_others_and_names_a_disabled_queue(oar: OarCluster, users_shim: Shim) -> None:
    """Jobs that are not handed over: OAR starts them, and says when it plans to."""
    wide, limit_s = ("-l", "/nodes=4/core=2,walltime=0:03:00"), 180
    with closing(OarDaemon("others", oar, users_shim)) as daemon:
        daemon.start()
        runs = oar.submit("sleep 600", *wide, user=USERS[1])
        oar.until(lambda: oar.jobs()[runs][0] == "Running", "a job on all cores")
        second, third = (oar.submit("true", *wide, user=user) for user in USERS)
        killable = oar.submit("true", "-q", "besteffort", "-t", "besteffort", *SMALL)

        def shown() -> dict[int, dict[str, Any]]:
            queue = (daemon.ask("status") or {}).get("queue", ())
            found = {int(job["id"]): job for job in queue if job["unknown"] != "it was submitted a moment ago"}
            last = found.get(third, {"plan": None})
            return found if last["plan"] and last["manager_start_time"] and killable in found else {}

        found = eventually(shown, "forecasts")
        assert list(found)[:2] == [second, third], "in OAR's order"
        began = float(oar.sql(f"select start_time from jobs where job_id = {runs}"))
        starts = [found[job]["plan"]["start_time"] for job in (second, third)]
        assert starts == sorted(starts), "jobs of earlier tests have ended, so that they may be expected to be short"
        for number, job in enumerate((second, third), 1):
            early, late = found[job]["plan"]["start_within"]
            assert began <= early <= starts[number - 1] <= late <= began + number * limit_s + 30
            assert found[job]["manager_start_time"] == pytest.approx(began + number * limit_s, abs=30)
        assert found[killable]["plan"] is None and "besteffort" in found[killable]["unknown"]
        assert "not handed over" in daemon.story(third)["waits"]
        name = f'pilotfish_adapter_closed_queue{{adapter="oar",queue="{QUEUE}"}}'
        for switch, closed in (("-d", [QUEUE]), ("-e", [])):
            oar.run("oarnotify", switch, QUEUE)
            eventually(lambda closed=closed: (daemon.ask("status") or {}).get("closed_queues") == closed, "status")
            eventually(lambda closed=closed: daemon.metric(name) == len(closed), "the metric")
        assert daemon.stop(signal.SIGTERM) == 0
    assert daemon.log.read_text().count(f"queue {QUEUE} is disabled in OAR") == 1


def test_a_site_full_of_besteffort_jobs_is_not_full(oar: OarCluster, users_shim: Shim) -> None:
    jobs = work(oar, "besteffort")
    first = oar.submit("sleep 300", "-q", "besteffort", "-t", "besteffort", "-l", "/core=1,walltime=0:10:00",
                       "--array", "8", user=USERS[1])  # fmt: skip
    fill = range(first, first + 8)
    oar.until(lambda: {oar.jobs()[job][0] for job in fill} == {"Running"}, "the besteffort jobs")
    with closing(OarDaemon("besteffort", oar, users_shim)) as daemon:
        daemon.start()
        eventually(users_shim.file.exists, "the first heartbeat")
        jobs.add(1, *SMALL, user=USERS[0])
        jobs.wait()
        placed = eventually(lambda: daemon.placed(jobs.jobs[0]), "the choice")
        (chosen,) = [each for each in daemon.story(jobs.jobs[0])["story"] if each["kind"] == "chosen"]
        assert {int(key.partition("/")[2]) for key in chosen["data"]["preempts"]} < set(fill)
        assert "; may end preemptible jobs there: oar/" in chosen["text"]
    jobs.each_ran_once()
    assert oar.jobs()[jobs.jobs[0]] == ("Terminated", placed)
    assert sorted(oar.jobs()[job][0] for job in fill) == ["Error"] + ["Running"] * 7
