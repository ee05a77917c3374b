"""What one user writes into a job next to a real OAR is about that job only, and holds up no other user."""

from __future__ import annotations

import random
import shutil
import signal
from contextlib import closing

import pytest
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
        slow = [jobs.add(0.2, *SMALL, "-p", f"{SLOW} and {number} = {number}", user=USERS[1]) for number in range(3)]
        plain = [jobs.add(0.2, *SMALL, "-p", f"{number} = {number}", user=USERS[0]) for number in range(3)]
        jobs.wait()
        placed = [eventually(lambda job=job: daemon.placed(job), f"the choice for {job}") for job in plain]
        assert [oar.jobs()[job] for job in plain] == [("Terminated", nodes) for nodes in placed]
        assert "OAR cannot evaluate its properties in time" in str(daemon.story(slow[0]))
        name = 'pilotfish_adapter_requests_total{{adapter="oar",call="properties",outcome="{}"}}'
        assert daemon.metric(name.format("timeout")) >= 2 and daemon.metric(name.format("ok")) >= 3
        assert daemon.metric('pilotfish_adapter_breaker{adapter="oar",service="oar",state="closed"}') == 1
        assert daemon.stop(signal.SIGTERM) == 0
    jobs.each_ran_once()
    said = daemon.log.read_text()
    assert "cannot be reached" not in said and "Traceback" not in said
    assert said.count("is left to OAR: OAR cannot evaluate its properties in time") == 1


def test_brackets_in_properties_do_not_lead_out_of_a_placement(oar: OarCluster, users_shim: Shim) -> None:
    """The shim itself is asked to place each job on the last node; OAR alone begins with the first one."""
    jobs, last = work(oar, "brackets"), oar.nodes[-1]
    texts = ("1=1", "1=1) OR (1=1", "1=1)) OR ((1=1", "1=1))) OR (((1=1", "1=1)))) OR ((((1=1")
    file = PlacementFile(users_shim.file, [f"queue {QUEUE}"], 60.0)
    file.beat(60.0)
    shutil.chown(users_shim.file, users_shim.owner)
    names = [jobs.add(0.2, *SMALL, "-p", text, user=USERS[1]) for text in texts]
    for job in names:
        file.place(job, (last,), 100.0, 60.0)
    shutil.chown(users_shim.file, users_shim.owner)
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
        assert second.process is not None and second.process.wait(60) == 64
        assert "another pilotfish daemon" in second.log.read_text() and "Traceback" not in second.log.read_text()
        assert first.stop(signal.SIGTERM) == 0
