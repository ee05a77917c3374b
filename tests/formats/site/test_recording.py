"""The folder of a recording: refused if not empty, marked until complete, without half files and passwords."""

from __future__ import annotations

import errno
import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pilotfish.formats.site.conf_copies import conf_copies
from pilotfish.formats.site.recording import LARGE, MARK, SiteRecording
from pilotfish.formats.site.site_folder import read_site
from pilotfish.simulate.errors import ConfigError
from tests.support.slurm_site_files import FILES


def started(folder: Path) -> SiteRecording:
    recording = SiteRecording(folder, {"since": "2026-03-01T00:00:00"})
    recording.begin()
    return recording


def test_a_finished_recording_is_a_site(tmp_path: Path) -> None:
    recording = started(tmp_path / "site")
    for name, text in FILES.items():
        if name == "sacct.psv":
            recording.stream(name, (text[i : i + 7].encode() for i in range(0, len(text), 7)))
        elif name != "qos.psv":
            recording.write(name, text)
    recording.missing.update({"qos.psv": "sacctmgr: refused", "PrivateData=jobs": "only your own jobs"})
    with pytest.raises(ConfigError, match="the recording was not finished"):
        read_site(tmp_path / "site")
    recording.finish()
    site = read_site(tmp_path / "site")
    assert len(site.jobs) == 5
    assert "no qos.psv (sacctmgr: refused): QOS have no priority and no limits" in site.unknown
    assert "PrivateData=jobs: only your own jobs" in site.unknown
    modes = {path.stat().st_mode & 0o077 for path in (tmp_path / "site").iterdir()}
    assert modes == {0} and (tmp_path / "site").stat().st_mode & 0o077 == 0


def test_a_folder_with_anything_in_it_is_refused_and_stays(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    for folder in (tmp_path, tmp_path / "notes"):
        with pytest.raises(ConfigError, match=r"it is not (empty|a folder)"):
            started(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]


def test_a_recording_that_slurm_did_not_answer_can_be_tried_again(tmp_path: Path) -> None:
    started(tmp_path / "site")
    started(tmp_path / "site").write("qos.psv", "Name\n")
    with pytest.raises(ConfigError, match="it is not empty"):
        started(tmp_path / "site")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_names_the_file_and_leaves_no_half_of_it(number: int, tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"x" * 100_000
        raise OSError(number, "No space left on device")

    recording = started(tmp_path / "site")
    with pytest.raises(OSError, match="No space left on device") as caught:
        recording.stream("sacct.psv", pieces())
    assert caught.value.filename == str(tmp_path / "site" / "sacct.psv.gz")
    assert [path.name for path in (tmp_path / "site").iterdir()] == [MARK]
    assert json.loads((tmp_path / "site" / MARK).read_text())["complete"] is False


def test_large_files_are_packed_and_bytes_that_are_no_text_stay(tmp_path: Path) -> None:
    recording = started(tmp_path / "site")
    recording.write("sdiag.txt", b"\xff\xfe small".decode(errors="surrogateescape"))
    recording.write("scontrol_node.txt", "n" * LARGE)
    assert (tmp_path / "site" / "sdiag.txt").read_bytes() == b"\xff\xfe small"
    assert gzip.decompress((tmp_path / "site" / "scontrol_node.txt.gz").read_bytes()) == b"n" * LARGE


@pytest.mark.parametrize("text", ["", "[", "[]", '{"missing": 3}', '{"complete": "yes"}', "{" * 5000])
def test_a_damaged_mark_is_an_error_that_names_it(text: str, tmp_path: Path) -> None:
    (tmp_path / MARK).write_text(text)
    with pytest.raises(ConfigError, match=r"recording\.json"):
        read_site(tmp_path)


CONF = """\
ClusterName=Small
AccountingStoragePass = s3cr3t  # of the database
JobCompPass=s3cr3t
Include nodes_%c.conf
  include "parts/*.conf"
"""


def test_copies_have_all_included_files_and_no_password(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    texts = {
        "slurm.conf": CONF,
        "nodes_small.conf": "NodeName=n1 CPUs=4\n",
        "parts/a.conf": "PartitionName=a Nodes=n1\n",
        "topology.conf": "Include leaves.conf\n",
        "leaves.conf": "",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    copies = conf_copies(tmp_path / "slurm.conf", "Small")
    assert set(copies) == {"slurm.conf", "nodes_small.conf", "a.conf", "topology.conf", "leaves.conf"}
    assert "s3cr3t" not in "".join(copies.values()) and copies["slurm.conf"].count("removed") == 2
    (tmp_path / "nodes_small.conf").unlink()
    with pytest.raises(ConfigError, match=r"nodes_small\.conf"):
        conf_copies(tmp_path / "slurm.conf", "Small")


def test_files_that_include_each_other_or_share_a_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "slurm.conf").write_text("Include a/x.conf\nInclude x.conf\n")
    (tmp_path / "x.conf").write_text("Include slurm.conf\n")
    (tmp_path / "a" / "x.conf").write_text("KillWait=1\n")
    with pytest.raises(ConfigError, match="has the same name"):
        conf_copies(tmp_path / "slurm.conf", "c")
    (tmp_path / "slurm.conf").write_text("Include x.conf\n")
    assert set(conf_copies(tmp_path / "slurm.conf", "c")) == {"slurm.conf", "x.conf"}
