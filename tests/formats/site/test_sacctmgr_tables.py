"""QOS, associations, usage, node events and reservations from sacctmgr, scontrol and sshare."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotfish.formats.site.site_folder import read_site
from pilotfish.simulate.slurm.site import NodeEvent, Site, SiteLimits
from tests.support.slurm_site_files import ASSOCIATIONS, COLUMNS, CONF, EVENTS, RESERVATIONS, SERVICES, row, write_site

FLAT = "\n".join(line.rpartition("|")[0] for line in ASSOCIATIONS.splitlines()) + "\n"


def site(folder: Path, **files: str | None) -> Site:
    return read_site(write_site(folder, **files))


def parents(result: Site) -> dict[str, str]:
    """Return account or user -> account above."""
    rows = result.associations
    return {row.user or row.account: rows[row.parent].account if row.parent >= 0 else "" for row in rows}


def test_qos(tmp_path: Path) -> None:
    normal, high = site(tmp_path).qos
    assert (normal.name, normal.preempt_mode, normal.limits) == ("normal", "", SiteLimits())
    assert (high.priority, high.usage_factor, high.grace_time_s, high.preempt_mode) == (100, 0.5, 90, "REQUEUE")
    assert (high.preempts, high.flags) == ({"normal"}, {"DenyOnLimit", "NoReserve"})
    assert high.limits == SiteLimits(
        group_tres={"node": 2}, user_tres={"cpu": 32, "gres/gpu": 4}, user_jobs=3, max_wall_min=1440
    )


def test_long_names_of_limits_and_limits_that_are_not_followed(tmp_path: Path) -> None:
    text = (
        "Name|Priority|MaxTRESPerUser|MaxJobsPerUser|GrpSubmitJobs|GrpWall|MaxTRESRunMinsPU|LimitFactor|MinPrioThreshold|UsageThres\n"
        "a|1|cpu=4,mem=1.5T|-1|5|10|cpu=3|0.000000|7|0.000000\nb|x||||||||\n"
    )
    result = site(tmp_path, qos_psv=text)
    (service,) = result.qos
    assert service.limits == SiteLimits(
        user_tres={"cpu": 4, "mem": 1.5 * 2**20}, group_submit=5, group_wall_min=10, user_run_minutes={"cpu": 3}
    )
    assert (service.min_priority, service.limit_factor) == (7, 1.0)
    assert any("1 QOS with a value that cannot be read" in sentence for sentence in result.unknown)


def test_associations_and_shares(tmp_path: Path) -> None:
    result = site(tmp_path)
    root, _, lab, ann, bob = result.associations
    assert (root.parent, lab.parent, ann.parent, bob.parent) == (-1, 0, 2, 2)
    assert (lab.shares, ann.shares, bob.shares) == (10, 2, None)
    assert lab.limits == SiteLimits(group_tres={"cpu": 16, "mem": 1024})
    assert (ann.limits.max_jobs, ann.default_qos, ann.qos) == (5, "normal", {"high", "normal"})
    assert bob.limits.max_jobs is None
    assert result.usage == (300, 0, 300, 250, 0)


TREE = "Account|User|Share\nroot||1\n top||5\n  low||3\n  low|ann|1\n  mid||2\n   deep||1\n   deep|bob|1\n other||9\n other|cid|1\n"
ABOVE = {
    "root": "", "top": "root", "low": "top", "ann": "low", "mid": "top", "deep": "mid", "bob": "deep", "other": "root",
    "cid": "other",
}  # fmt: skip


def test_parents_from_the_blanks_of_a_tree(tmp_path: Path) -> None:
    assert parents(site(tmp_path, assoc_psv=TREE, sshare_psv=None)) == ABOVE


def test_parents_from_a_dump_and_from_sshare(tmp_path: Path) -> None:
    flat = TREE.replace(" ", "")
    dump = (
        "# Parent - 'cs'\nCluster - 'x':Fairshare=1\nParent - 'root'\nUser - 'root':Fairshare=1\n"
        "Account - 'top':Description='a':Fairshare=5\nAccount - 'other':Fairshare=9\nParent - 'top'\n"
        "Account - 'low':Fairshare=3\nAccount - 'mid'\nParent - 'mid'\nAccount - 'deep':Description='x y'\n"
    )
    assert parents(site(tmp_path, assoc_psv=flat, sacctmgr_dump_cfg=dump, sshare_psv=None)) == ABOVE
    (tmp_path / "sacctmgr_dump.cfg").unlink()
    result = site(tmp_path, assoc_psv=flat, sshare_psv=TREE.replace("Share", "RawUsage"))
    assert parents(result) == ABOVE
    assert not any("without a parent" in sentence for sentence in result.unknown)
    (tmp_path / "sshare.psv").unlink()
    result = site(tmp_path, assoc_psv=flat, sshare_psv=None)
    assert parents(result)["deep"] == "root"
    assert any(sentence.startswith("5 accounts without a parent in any file") for sentence in result.unknown)
    assert any(sentence.startswith("no sshare.psv: usage is 0") for sentence in result.unknown)


def test_children_before_their_parents_orphans_and_circles(tmp_path: Path) -> None:
    text = "Account|User|Share|ParentName\nb|ann|1|\nb||1|a\na||1|root\nx||1|y\ny||1|x\nlost||1|nowhere\nmissing|bob|1|\nz||-1|a\n"
    result = site(tmp_path, assoc_psv=text, sshare_psv=None)
    assert parents(result) == {"root": "", "a": "root", "b": "a", "ann": "b", "lost": "root"}
    assert all(row.parent < i for i, row in enumerate(result.associations))
    (sentence,) = [sentence for sentence in result.unknown if "assoc.psv: left out" in sentence]
    assert "3 associations whose account is not there, or is its own parent" in sentence
    assert "1 association with a value that cannot be read" in sentence


def test_other_clusters(tmp_path: Path) -> None:
    result = site(tmp_path, assoc_psv=ASSOCIATIONS + "big|zoo|||1||||normal||root\n")
    assert len(result.associations) == 5
    assert any("1 association of other clusters" in sentence for sentence in result.unknown)


def test_node_events(tmp_path: Path) -> None:
    result = site(tmp_path)
    assert result.events == (
        NodeEvent("n1", 1772434800.0, 1772438400.0, kills=False),
        NodeEvent("n2", 1772436600.0, None, kills=True),
    )
    assert all(node.works for node in result.nodes)


def test_odd_node_events(tmp_path: Path) -> None:
    odd = (
        "small|n9|2026-03-02T07:00:00|Unknown|DOWN|x|y\nsmall|n3|never|Unknown|DOWN|x|y\nsmall|n4|Unknown|Unknown|DRAIN|x|y\n"
        "small|n3|2026-03-02T07:00:00|2026-03-02T06:00:00|DRAIN|x|y\nsmall|n3|2026-03-02T07:00:00|Unknown|IDLE+POWERED_DOWN|x|y\n"
    )
    result = site(tmp_path, events_psv=EVENTS + odd)
    assert len(result.events) == 2
    (sentence,) = [sentence for sentence in result.unknown if "events.psv: left out" in sentence]
    assert "1 event of other nodes" in sentence
    assert "3 events without a time that can be read" in sentence
    assert any(sentence.startswith("no events.psv") for sentence in _without(tmp_path, "events.psv").unknown)


def _without(folder: Path, name: str) -> Site:
    (folder / name).unlink()
    return read_site(folder)


def test_reservations_of_the_database_and_of_scontrol(tmp_path: Path) -> None:
    shown = (
        "ReservationName=course StartTime=2026-03-09T09:00:00 EndTime=2026-03-09T10:00:00 Nodes=n[1-2] Flags=DAILY Users=(null)\n"
        "ReservationName=maint StartTime=2026-03-02T12:00:00 EndTime=2026-03-02T13:00:00 Duration=01:00:00 Nodes=n[3-4,9]"
        " NodeCnt=3 Features=(null) PartitionName=(null) Flags=MAINT,IGNORE_JOBS,SPEC_NODES TRES=cpu=32 Users=root,ann"
        " Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE\n"
        "ReservationName=all StartTime=2026-03-03T12:00:00 EndTime=2026-03-03T13:00:00 Nodes=ALL Accounts=lab Flags=\n"
    )
    course, maint, everything = site(tmp_path, scontrol_res_txt=shown).reservations
    assert (course.name, course.start, course.nodes) == ("course", 1772442000.0, ("n1", "n2"))
    assert (course.users, course.accounts, course.flags) == ({"ann"}, {"lab"}, {"SPEC_NODES"})
    assert (maint.nodes, maint.users, maint.accounts) == (("n3", "n4"), {"root", "ann"}, frozenset())
    assert maint.flags == {"MAINT", "IGNORE_JOBS", "SPEC_NODES"}
    assert everything.nodes == ("n1", "n2", "n3", "n4")


@pytest.mark.parametrize("column", ["NodeName", "NodeNames", "Nodes"])
def test_reservations_by_ids_of_associations(tmp_path: Path, column: str) -> None:
    """Slurm 22.05 prints NodeName where NodeNames was asked for."""
    rows = ASSOCIATIONS.splitlines()
    with_ids = "\n".join([f"{rows[0]}|ID", *(f"{text}|{i}" for i, text in enumerate(rows[1:], start=1))])
    text = f"Name|TimeStart|TimeEnd|{column}|Flags|Assocs\nr|2026-03-02T09:00:00|2026-03-02T10:00:00|n1||3,4,77\n"
    result = site(tmp_path, assoc_psv=with_ids, reservations_psv=text)
    (reservation,) = result.reservations
    assert (reservation.users, reservation.accounts, reservation.nodes) == ({"ann"}, {"lab"}, ("n1",))
    assert any("1 association of reservations that are in no file" in sentence for sentence in result.unknown)


@pytest.mark.parametrize(
    "text",
    [
        "Unknown|2026-03-02T10:00:00|n1",
        "2026-03-02T11:00:00|2026-03-02T10:00:00|n1",
        "2026-03-02T09:00:00|2026-03-02T10:00:00|n[",
    ],
)
def test_reservations_that_cannot_be_read(tmp_path: Path, text: str) -> None:
    result = site(tmp_path, reservations_psv=f"{RESERVATIONS.replace('Cluster|', '').replace('small|', '')}")
    assert len(result.reservations) == 1
    result = site(tmp_path, reservations_psv=f"Name|TimeStart|TimeEnd|NodeNames\nr|{text}\n")
    assert result.reservations == ()
    assert any("1 reservation with a value that cannot be read" in sentence for sentence in result.unknown)


def test_partition_and_creation_of_a_reservation(tmp_path: Path) -> None:
    text = "Name|TimeStart|TimeEnd|NodeNames|PartitionName|Created\nr|1772442000|1772445600|n1|main|1772431200\n"
    (reservation,) = site(tmp_path, reservations_psv=text).reservations
    assert (reservation.start, reservation.partition, reservation.created) == (1772442000.0, "main", 1772431200.0)


@pytest.mark.parametrize(("flags", "unasked"), [("MAGNETIC", ""), ("SPEC_NODES", "r")])
def test_a_job_that_ran_in_a_magnetic_reservation_unasked_names_none(tmp_path: Path, flags: str, unasked: str) -> None:
    reservations = f"Name|TimeStart|TimeEnd|NodeNames|Flags\nr|1772442000|1772445600|n1|{flags}\n"
    options = {"1": "", "2": "--reservation=r "}
    rows = [f"r|{row(JobID=number, SubmitLine=f'sbatch {words}--wrap=x')}" for number, words in options.items()]
    jobs = site(tmp_path, reservations_psv=reservations, sacct_psv="\n".join((f"Reservation|{COLUMNS}", *rows))).jobs
    assert [job.reservation for job in jobs] == [unasked, "r"]


def test_no_sacctmgr_at_all(tmp_path: Path) -> None:
    result = site(tmp_path, qos_psv=None, assoc_psv=None, reservations_psv=None, events_psv=None, sshare_psv=None)
    assert (result.qos, result.associations, result.usage) == ((), (), ())
    for name in ("qos.psv", "assoc.psv", "reservations.psv", "events.psv"):
        assert any(sentence.startswith(f"no {name}:") for sentence in result.unknown), name


def test_limits_that_sacctmgr_did_not_show_are_named_where_limits_are_enforced(tmp_path: Path) -> None:
    def sentences(hidden: int, conf: str = CONF) -> list[str]:
        services = "\n".join(line.rsplit("|", hidden)[0] for line in SERVICES.splitlines()) + "\n"
        return [text for text in site(tmp_path, qos_psv=services, slurm_conf=conf).unknown if "qos.psv without" in text]

    assert sentences(0) == sentences(7, CONF.replace("associations,limits,qos", "associations")) == []
    assert sentences(1) == ["qos.psv without MaxJobsAccruePA: taken as not set, see the command of this file"]
    assert sentences(7)[0].startswith("qos.psv without LimitFactor, MinPrioThres, MaxTRESRunMinsPU, MaxTRESRunMinsPA, ")
