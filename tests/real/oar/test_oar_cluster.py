"""The OAR of these tests runs jobs as its users, and listens on loopback only."""

from __future__ import annotations

from pathlib import Path

import pytest
from oar_cluster import USERS, OarCluster
from oar_mounts import group

pytestmark = pytest.mark.xdist_group(group(1))


def test_jobs_of_two_users_run_where_they_asked_to(oar: OarCluster) -> None:
    wanted = {user: oar.nodes[number + 1] for number, user in enumerate(USERS)}
    places = {user: f"network_address in ('{node}')" for user, node in wanted.items()}
    jobs = {user: oar.submit("id -un > $OAR_JOB_ID.user", "-p", places[user], user=user) for user in USERS}
    oar.until(lambda: all(oar.jobs()[job][0] == "Terminated" for job in jobs.values()), "both jobs to end")
    for user, job in jobs.items():
        assert oar.jobs()[job] == ("Terminated", (wanted[user],))
        assert (oar.shared() / f"{job}.user").read_text().strip() == user


def test_it_listens_on_loopback_only(oar: OarCluster) -> None:
    ports = {oar.database, oar.server, oar.ssh}
    tables = [Path(f"/proc/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
    lines = [line.split() for table in tables for line in table]
    listening = [words[1].split(":") for words in lines if words[3] == "0A"]
    found = {address[-2:] for address, port in listening if int(port, 16) in ports}
    assert found == {"7F"}  # little-endian 127.*
