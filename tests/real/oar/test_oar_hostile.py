"""What one user writes into a job next to a real OAR is about that job only, and holds up no other user."""

from __future__ import annotations

import json
import pwd
import random
import signal
import subprocess
import sys
import time
from contextlib import closing
from typing import Any

import pytest
import yaml
from oar_cluster import USERS, OarCluster
from oar_daemon import OarDaemon, work
from oar_mounts import group
from oar_site import QUEUE, Shim
from real_world import eventually

from pilotfish.adapters.oar.placement_file import PlacementFile
from pilotfish.adapters.oar.records.requests import contained

pytestmark = pytest.mark.xdist_group(group(2))
SMALL = ("-l", "/core=1,walltime=0:02:00")
#: It takes 16 s, but only when `oarnodes` asks for it, so that OAR itself accepts and starts the job at once.
SLOW = """(case when current_query() ~ '^[[:space:]]*SELECT resource_id[[:space:]]'
 then (select 1 from pg_sleep(16)) is not null else true end)"""

#: Evaluate a condition as the shim puts it together, with a pin that no node meets.
TRY = """create or replace function try_it(t text) returns text language plpgsql as $f$ declare found boolean; begin
 execute 'select (' || t || ') and false' into found; return found; exception when others then return 'error'; end $f$"""


def test_slow_properties_of_one_user_hold_up_no_other(oar: OarCluster, users_shim: Shim) -> None:
    jobs = work(oar, "slow")
    with closing(OarDaemon("slow", oar, users_shim)) as daemon:
        daemon.start()
        eventually(users_shim.file.exists, "the first heartbeat")
        slow = [jobs.add(0.2, *SMALL, "-p", f"{SLOW} and {number} = {number}", user=USERS[1]) for number in range(2)]
        plain = [jobs.add(0.2, *SMALL, "-p", f"{number} = {number}", user=USERS[0]) for number in range(3)]
        jobs.wait()
        placed = [eventually(lambda job=job: daemon.placed(job), f"the choice for {job}") for job in plain]
        assert [oar.jobs()[job] for job in plain] == [("Terminated", nodes) for nodes in placed]
        assert "OAR cannot evaluate its properties in time" in str(daemon.story(slow[0]))
        name = 'pilotfish_adapter_requests_total{{adapter="oar",call="properties",result="{}"}}'
        assert daemon.metric(name.format("timeout")) >= 2 and daemon.metric(name.format("ok")) >= 3
        assert daemon.metric('pilotfish_adapter_breaker{adapter="oar",service="oar",state="closed"}') == 1
        assert daemon.stop(signal.SIGTERM) == 0
    jobs.each_ran_once()
    said = daemon.log.read_text()
    assert "cannot be reached" not in said and "Traceback" not in said
    assert said.count("is left to OAR: OAR cannot evaluate its properties in time") == 1


def test_brackets_in_properties_do_not_lead_out_of_a_placement(oar: OarCluster, shim: Shim) -> None:
    """The shim itself is asked to place each job on the last node; OAR alone begins with the first one."""
    jobs, last = work(oar, "brackets"), oar.nodes[-1]
    texts = ("1=1", "1=1) OR (1=1", "1=1)) OR ((1=1", "1=1))) OR (((1=1", "1=1)))) OR ((((1=1")
    file = PlacementFile(shim.file, [f"queue {QUEUE}"], 60.0)
    file.beat(60.0)
    names = [jobs.add(0.2, *SMALL, "-p", text, user=USERS[1]) for text in texts]
    for job in names:
        file.place(job, (last,), 100.0, 60.0)
    jobs.wait()
    jobs.each_ran_once()
    for job in names:
        stored = oar.sql(f"select properties from jobs where job_id = {job}")
        if contained(stored):
            assert oar.jobs()[job][1] == (last,), stored
    assert [contained(oar.sql(f"select properties from jobs where job_id = {job}")) for job in names][-2:] == [
        False
    ] * 2


def test_what_the_shim_takes_for_contained_is_so_for_postgresql(oar: OarCluster) -> None:
    """With `AND false` behind the brackets, nothing is true that stays within them."""
    draw = random.Random(7)
    tokens = [
        "(",
        ")",
        "'",
        "''",
        "\\",
        "--",
        "/*",
        "*/",
        "$$",
        "E'",
        " ",
        "1=1",
        " OR ",
        " AND ",
        "true",
        "false",
        "'x'='x'",
    ]
    texts = {"".join(draw.choices(tokens, k=draw.randint(1, 9))) for _ in range(20000)}
    escapes = {
        f"true{left}OR {right}true" for left in (")", "))", ") --", ") /*", "$$)$$)") for right in ("(", "((", "")
    }
    taken = [text for text in sorted(texts) if contained(text)]
    rows = ",".join("(" + "'" + text.replace("'", "''") + "')" for text in [*taken, *escapes])
    oar.sql(TRY)
    answers = oar.sql(f"select try_it(t), t from (values {rows}) as v(t)").splitlines()
    true = {line.partition("|")[2] for line in answers if line.startswith("true|")}
    assert len(taken) > 100 and sum(line.startswith("false|") for line in answers) > 20
    assert true and not true & set(taken)


def test_a_second_daemon_does_not_write_the_same_placement_file(oar: OarCluster, users_shim: Shim) -> None:
    with closing(OarDaemon("first", oar, users_shim)) as first, closing(OarDaemon("second", oar, users_shim)) as second:
        first.start()
        eventually(users_shim.file.exists, "the first heartbeat")
        second.spawn()
        assert second.process is not None and second.process.wait(60) == 1
        assert "another pilotfish daemon" in second.log.read_text() and "Traceback" not in second.log.read_text()
        assert first.stop(signal.SIGTERM) == 0


#: Ask a daemon as the user who runs this, and print its answer, or its refusal.
ASK = """import json, sys
from pilotfish.daemon.socket import ipc
try:
    answer = ipc.ask(sys.argv[1], sys.argv[2], trusted=lambda uid: True, **json.loads(sys.argv[3]))
except ipc.DaemonError as error:
    answer = {"refused": str(error)}
print(json.dumps(answer))"""


def asked_as(user: str, daemon: OarDaemon, do: str, **arguments: str) -> dict[str, Any]:
    """Return the answer to a user."""
    group = pwd.getpwnam(user).pw_gid
    argv = ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", sys.executable, "-c", ASK]
    done = subprocess.run(
        [*argv, str(daemon.socket), do, json.dumps(arguments)], capture_output=True, text=True, cwd="/", timeout=60
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_users_see_their_own_jobs_and_all_that_oar_decides_is_explained(oar: OarCluster, users_shim: Shim) -> None:
    """Placed, and left to OAR because of what it asks for: while it waits, and after its end."""
    mine, theirs = USERS[1], USERS[0]
    jobs = work(oar, "own")
    with closing(OarDaemon("own", oar, users_shim)) as daemon:
        config = yaml.safe_load(daemon.config.read_text())
        config["access"]["see"] = "own"
        daemon.config.write_text(yaml.safe_dump(config))
        daemon.start()
        daemon.socket.chmod(0o666)
        eventually(users_shim.file.exists, "the first heartbeat")
        placed = jobs.add(0.2, *SMALL, user=mine)
        moldable = jobs.add(0.2, *SMALL, "-l", "/core=2,walltime=0:01:00", user=mine)
        out = jobs.add(0.2, *SMALL, "-p", "1=1))) OR (((1=1", user=mine)
        foreign = jobs.add(0.2, *SMALL, user=theirs)
        jobs.wait()
        eventually(lambda: daemon.placed(placed), "the choice")
        for job, reason in (
            (placed, ""),
            (moldable, "it is moldable"),
            (out, "its properties have brackets that do not match"),
        ):
            story = eventually(
                lambda job=job: (
                    found if "job" in (found := asked_as(mine, daemon, "explain", job=f"oar/{job}"))
                    and found["job"]["state"] == "completed" else None
                ),
                f"the end of {job}",
            )  # fmt: skip
            began, ended = oar.sql(f"select start_time, stop_time from jobs where job_id = {job}").split("|")
            assert story["job"]["start_time"] == pytest.approx(float(began), abs=6)
            assert story["job"]["finish_time"] == pytest.approx(float(ended), abs=6)
            assert reason in str(story), story
            hidden = asked_as("nobody", daemon, "explain", job=f"oar/{job}")
            assert "refused" in hidden and f"'{job}'" in hidden["refused"], hidden
        refused = asked_as(mine, daemon, "explain", job=f"oar/{foreign}")
        assert "refused" in refused and str(placed) not in refused["refused"], refused
        shown = {job["id"] for flow in asked_as(mine, daemon, "status")["workflows"] for job in flow["jobs"]}
        assert str(foreign) not in shown
        assert daemon.stop(signal.SIGTERM) == 0


def attempts(daemon: OarDaemon) -> float:
    """Return how often the daemon has tried in vain to read OAR."""
    name = 'pilotfish_adapter_requests_total{{adapter="oar",call="world",result="{}"}}'
    return sum(daemon.metric(name.format(result)) for result in ("open", "unreachable", "refused"))


def test_a_daemon_whose_question_hangs_stops_at_once_and_one_that_waits_does_not_run_hot(
    oar: OarCluster, users_shim: Shim
) -> None:
    with closing(OarDaemon("frozen", oar, users_shim, timeout_s=60.0)) as daemon:
        daemon.start()
        oar.signal("postgres", signal.SIGINT)
        eventually(lambda: "cannot be reached" in daemon.log.read_text(), "a word about it")
        before = attempts(daemon)
        time.sleep(5.0)
        assert 0 < attempts(daemon) <= before + 10, "two for each pause of the breaker"
        oar.start_database()
        eventually(lambda: "can be reached again" in daemon.log.read_text(), "its return")
        oar.signal("postgres", signal.SIGSTOP)
        try:
            time.sleep(2.0)  # a question is open: a new connection is not answered
            assert daemon.stop(signal.SIGTERM) == 0
        finally:
            oar.signal("postgres", signal.SIGCONT)
    assert "did not answer" not in daemon.log.read_text() and "Traceback" not in daemon.log.read_text()
