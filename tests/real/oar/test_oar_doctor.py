"""The doctor and the commands next to a real OAR: what is right, and one line for each thing that is not."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from oar_cluster import USERS, OarCluster
from oar_mounts import group
from oar_site import PROGRAM, QUEUE, Shim, cluster
from real_world import pilotfish

from pilotfish.adapters import registry
from pilotfish.adapters.findings import Finding, ServiceState
from pilotfish.adapters.oar import doctor
from pilotfish.adapters.oar.placement_file import PlacementFile
from pilotfish.adapters.oar.site_config import SiteConfig

pytestmark = pytest.mark.xdist_group(group(2))


def options(oar: OarCluster, shim: Shim) -> dict[str, Any]:
    """Options of the adapter as a site has them."""
    return {
        "database": oar.connection, "password_file": str(oar.password_file), "placement_file": str(shim.file),
        "queues": [QUEUE], "server": f"127.0.0.1:{oar.server}",
    }  # fmt: skip


def examined(oar: OarCluster, settings: Mapping[str, Any], user: str = "root") -> list[Finding]:
    """What the doctor finds."""
    return registry.examine("oar", cluster(oar), user, ServiceState(), **settings)


def bad(found: list[Finding]) -> list[str]:
    """What is wrong, in words."""
    return [f"{each.topic}: {each.says}" for each in found if each.level in ("problem", "warning")]


def test_a_site_that_is_set_up_has_no_problem(oar: OarCluster, shim: Shim) -> None:
    found = examined(oar, options(oar, shim))
    assert not bad(found)
    assert {each.topic for each in found} >= {"version", "database", "passes", "nodes", "handover", "file", "queue"}


def test_without_a_configuration_oars_own_is_read(oar: OarCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    found = registry.examine("oar", None, "root", ServiceState())
    assert not bad(found) and {"database", "passes", "nodes"} <= {each.topic for each in found}
    (named,) = [each for each in found if each.mend and each.topic == "database"]
    assert f"port={oar.database}" in named.mend[0] and oar.password not in str(found)

    def unreadable() -> SiteConfig:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(doctor, "site_config", unreadable)
    found = registry.examine("oar", None, "root", ServiceState())
    said = {each.topic: each.says for each in found}
    assert not bad(found) and "jobs by oarstat took" in said["database"] and "passes" not in said and "nodes" in said


def test_each_thing_that_is_wrong_is_one_line(oar: OarCluster, shim: Shim, tmp_path: Path) -> None:
    good = options(oar, shim)
    password = tmp_path / "pgpass"
    password.write_text("*:*:*:*:wrong\n")
    password.chmod(0o600)
    readable = tmp_path / "readable"
    readable.write_text(oar.password_file.read_text())
    readable.chmod(0o644)
    host = good["database"].replace(f"port={oar.database}", "port=9")
    for wrong, words in (
        ({"queues": ["nowhere"]}, "adapter.options.queues: OAR has no queue 'nowhere'"),
        ({"queues": ["default"]}, "is not the shim"),
        ({"database": host}, "adapter.options.database: OAR's database: "),
        ({"database": good["database"].replace("dbname=oar", "dbname=none")}, 'database "none" does not exist'),
        ({"database": "host=/nowhere dbname=oar user=oar_ro"}, "adapter.options.database: OAR's database: "),
        ({"password_file": str(password)}, "adapter.options.password_file: OAR's database: "),
        ({"password_file": "/nonexistent/pgpass"}, "password_file: /nonexistent/pgpass: No such file or directory"),
        ({"password_file": str(readable)}, "password_file: " + f"{readable}: its mode is 0644 (allowed: its account"),
        ({"password_file": None}, "adapter.options.database: OAR's database: psql: error: "),
        ({"placement_file": "/nonexistent/placements"}, "file: /nonexistent"),
        ({"server": "127.0.0.1:9"}, "adapter.options.server: OAR's server does not answer at 127.0.0.1:9"),
        ({"server": f"127.0.0.1:{oar.database}"}, f"adapter.options.server: found 127.0.0.1:{oar.database}, /etc/oar"),
        ({"max_defer_s": -1}, "max_defer_s: found -1"),
    ):
        said = bad(examined(oar, {**good, **wrong}))
        assert len(said) == 1 and words in said[0] and "\n" not in said[0], said
    shutil.chown(shim.folder, USERS[0])
    assert "belongs to pilotfish-a" in bad(examined(oar, good))[0]
    (said,) = bad(examined(oar, good, USERS[0]))
    assert f"{oar.password_file} does not belong to {USERS[0]}" in said and "\n" not in said


def test_a_connection_that_fails_is_mended_by_that_of_oar_itself(oar: OarCluster, shim: Shim) -> None:
    wrong = {"database": oar.connection.replace(f"port={oar.database}", "port=9")}
    (found,) = [each for each in examined(oar, {**options(oar, shim), **wrong}) if each.level == "problem"]
    assert found.mend == (f"database: {oar.connection}   # in adapter.options",)


def test_a_property_of_resources_that_is_missing_is_named(oar: OarCluster, shim: Shim) -> None:
    oar.run("oarproperty", "--rename", "core,kern")
    try:
        (said,) = [each for each in bad(examined(oar, options(oar, shim))) if each.startswith("properties: ")]
        assert said.startswith("properties: OAR's resources have no property 'core': ") and "\n" not in said
    finally:
        oar.run("oarproperty", "--rename", "kern,core")


def test_a_disabled_queue_is_named(oar: OarCluster, shim: Shim) -> None:
    oar.run("oarnotify", "-d", QUEUE)
    try:
        (said,) = [each for each in examined(oar, options(oar, shim)) if each.level == "problem"]
        assert said.says.startswith(f"queue {QUEUE} is notActive") and said.mend == (f"oarnotify -e {QUEUE}",)
    finally:
        oar.run("oarnotify", "-e", QUEUE)


def test_jobs_in_a_queue_that_was_removed_are_named(oar: OarCluster, shim: Shim) -> None:
    oar.submit("true", "-q", QUEUE, "-l", "/nodes=4/core=2", "-t", "postpone=2100-01-01 00:00:00")
    oar.run("oarnotify", "--remove-queue", QUEUE)
    try:
        settings = {**options(oar, shim), "queues": ["default"]}
        assert f"handover: jobs wait in queue {QUEUE}, which OAR does not have any more: they never start" in bad(
            examined(oar, settings)
        )
    finally:
        oar.add_queue(QUEUE, PROGRAM)


@pytest.fixture
def configured(oar: OarCluster, shim: Shim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the configuration of a daemon."""
    found = pilotfish("cluster", "--adapter", "oar")
    assert found.returncode == 0 and "names: 127.0.1.[1-4]\n" in found.stdout
    (tmp_path / "cluster.yaml").write_text(found.stdout)
    (tmp_path / "pgpass").write_text(oar.password_file.read_text())
    (tmp_path / "pgpass").chmod(0o600)
    words = ", ".join(f"{name}: {value}" for name, value in options(oar, shim).items())
    (tmp_path / "pilotfish.yaml").write_text(
        "schema: pilotfish/daemon/v1\ncluster: cluster.yaml\nwithout_gain: place\n"
        f"adapter: {{name: oar, options: {{{words.replace(str(oar.password_file), 'pgpass')}}}}}\n"
    )
    monkeypatch.chdir(tmp_path)


def test_the_reaper_ends_a_hold_without_a_heartbeat(oar: OarCluster, shim: Shim, configured: None) -> None:
    PlacementFile(shim.file, [f"queue {QUEUE}"], 600.0).beat(3.0)
    job = oar.submit("true", "-q", QUEUE, "-l", "/core=1,walltime=0:01:00")
    reap = ("reap", "--config", "pilotfish.yaml", "--older-than", "0")
    oar.until(lambda: shim.file.stat().st_mtime < time.time() - 4, "the end of the heartbeat")
    assert (
        pilotfish(*reap, "--dry-run").stdout.startswith(f"remove {shim.file}: no heartbeat for ") and shim.file.exists()
    )
    done = pilotfish(*reap)
    assert (done.returncode, done.stderr) == (0, "") and not shim.file.exists()
    oar.until(lambda: oar.jobs()[job][0] == "Terminated", "the job")
    assert pilotfish(*reap).stdout == ""


def test_the_command_line_knows_this_oar(oar: OarCluster, shim: Shim, configured: None) -> None:
    oar.run("oarnodesetting", "-s", "Absent", "--sql", "state = 'Alive'")  # so that nothing starts
    job = oar.submit("true", "-q", QUEUE, "-l", "/core=1,walltime=0:01:00")
    oar.run("oarnodesetting", "-s", "Alive", "--sql", "state = 'Absent'")
    oar.until(lambda: oar.sql("select count(*) from resources where state <> 'Alive'") == "0", "the nodes")
    shown = pilotfish("plan", "--config", "pilotfish.yaml", "--show-commands")
    assert shown.returncode == 0, shown.stderr
    assert f"place {job} 127.0.1." in shown.stdout or oar.jobs()[job][0] != "Waiting"
    assert not shim.file.exists()
    assert pilotfish("doctor", "--config", "pilotfish.yaml").returncode in (0, 1)


def test_a_queue_is_planned_as_if_it_were_handed_over(oar: OarCluster, shim: Shim) -> None:
    oar.run("oarnodesetting", "-s", "Absent", "--sql", "state = 'Alive'")  # so that nothing starts
    job = oar.submit("true", "-q", "default", "-l", "/core=1,walltime=0:01:00")
    oar.run("oarnodesetting", "-s", "Alive", "--sql", "state = 'Absent'")
    oar.until(lambda: oar.sql("select count(*) from resources where state <> 'Alive'") == "0", "the nodes")
    printed = pilotfish("plan", "--adapter", "oar", "--as-if-handed-over", "default", "--json")
    assert printed.returncode == 0, printed.stderr
    plan = json.loads(printed.stdout)
    assert plan["as_if_handed_over"] == ["default"]
    assert plan["handed_over"] == 1 or oar.jobs()[job][0] != "Waiting"
    wrong = pilotfish("plan", "--adapter", "oar", "--as-if-handed-over", "defaults")
    assert wrong.returncode != 0 and "did you mean 'default'?" in " ".join(wrong.stderr.split())
    assert not shim.file.exists()
