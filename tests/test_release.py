"""`make release`: the same commit gives the same bytes, and its parts belong together."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import os
import re
import runpy
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import pytest
import yaml

import pilotfish
from pilotfish.built_from import COMMIT_FILE

ROOT = Path(pilotfish.__file__).resolve().parent
SCRIPT = ROOT / "packaging/release.py"


@pytest.fixture(scope="module")
def release() -> ModuleType:
    spec = importlib.util.spec_from_file_location("packaging_release", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_notes_are_the_part_of_the_changelog(release: ModuleType) -> None:
    notes = release.release_notes((ROOT / "CHANGELOG.md").read_text(), pilotfish.__version__)
    assert notes.startswith(f"## [{pilotfish.__version__}]") and "\n### " in notes
    two = "# C\n\n## [2.0.0] - x\n- a\n\n## [1.0.0] - y\n- b\n"
    assert release.release_notes(two, "2.0.0") == "## [2.0.0] - x\n- a\n"
    assert release.release_notes(two, "1.0.0") == "## [1.0.0] - y\n- b\n"
    for version in ("3.0.0", "2.0"):
        with pytest.raises(SystemExit, match=rf"nothing of {version}"):
            release.release_notes(two, version)


def test_an_archive_of_pages_has_no_time_or_mode_of_its_own(tmp_path: Path) -> None:
    pages = runpy.run_path(str(ROOT / "packaging/pages.py"))
    archives = []
    for name, mode in (("a", 0o600), ("b", 0o644)):
        (tmp_path / name / "man1").mkdir(parents=True)
        (tmp_path / name / "man1/p.1").write_text("page")
        (tmp_path / name / "man1/p.1").chmod(mode)
        archives.append(pages["pack"](tmp_path / name, "man", 1_000_000))
    assert archives[0] == archives[1]
    with tarfile.open(fileobj=io.BytesIO(archives[0])) as packed_pages:
        assert [(one.name, one.mode, one.mtime) for one in packed_pages] == [
            ("man/man1", 0o755, 1_000_000), ("man/man1/p.1", 0o644, 1_000_000),
        ]  # fmt: skip
    with pytest.raises(SystemExit, match="0 source distributions"):
        pages["main"]([str(tmp_path)])


def packed(path: Path, time: int, owner: int, mode: int, names: list[str]) -> bytes:
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.mtime, member.uid, member.uname, member.mode, member.size = time, owner, f"u{owner}", mode, 3
            archive.addfile(member, io.BytesIO(b"abc"))
    return path.read_bytes()


def test_a_repacked_archive_has_no_time_owner_or_order_of_its_own(release: ModuleType, tmp_path: Path) -> None:
    first, second = tmp_path / "1.tar.gz", tmp_path / "2.tar.gz"
    assert packed(first, 5, 1, 0o600, ["a/b", "a/c"]) != packed(second, 9, 2, 0o664, ["a/c", "a/b"])
    for path in (first, second):
        release.repack(path, 1_000_000)
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as archive:
        assert [(one.name, one.mtime, one.mode, one.uid) for one in archive] == [
            ("a/b", 1_000_000, 0o644, 0), ("a/c", 1_000_000, 0o644, 0),
        ]  # fmt: skip


def test_what_names_a_version_names_this_one() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == pilotfish.__version__ and citation["cff-version"] == "1.2.0"
    assert (
        citation["authors"] == [{"name": "The pilotfish project"}]
        and {"title", "message", "license"} <= citation.keys()
    )
    heading = re.search(r"^## \[(.*?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert heading[1] == pilotfish.__version__


@pytest.mark.real
def test_the_same_commit_gives_the_same_bytes_twice(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    content = dict[str, dict[str, bytes]]()
    for name, umask, zone in (("one", 0o022, "UTC"), ("two", 0o077, "Asia/Tokyo")):
        argv = [sys.executable, str(SCRIPT), str(tmp_path / name), "--source", str(clone)]
        environment = os.environ | {"TZ": zone, "LC_ALL": "C"}
        ran = subprocess.run(argv, capture_output=True, text=True, umask=umask, env=environment, cwd=tmp_path)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        content[name] = {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
    first, second = content.values()
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []
    listed = dict(reversed(line.split("  ")) for line in first["SHA256SUMS"].decode().splitlines())
    assert listed == {name: hashlib.sha256(text).hexdigest() for name, text in first.items() if name != "SHA256SUMS"}
    (wheel,) = (tmp_path / "one").glob("*.whl")
    commit = subprocess.run(["git", "-C", clone, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    assert zipfile.ZipFile(wheel).read(f"pilotfish/{COMMIT_FILE}").decode().strip() == commit
    (bill,) = (tmp_path / "one").glob("*.cdx.json")
    assert json.loads(bill.read_text())["metadata"]["component"]["version"] == pilotfish.__version__
    assert b"[" + pilotfish.__version__.encode() in first["NOTES.md"]
    (clone / "README.md").write_text("changed")
    argv = [sys.executable, str(SCRIPT), str(tmp_path / "three"), "--source", str(clone)]
    ran = subprocess.run(argv, capture_output=True, text=True)
    assert ran.returncode == 1 and "README.md" in ran.stderr and not (tmp_path / "three").exists()
