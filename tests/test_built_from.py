"""The commit that a program says: as git has it, read without git; unknown where nothing says it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from setuptools.dist import Distribution

from pilotfish import built_from
from pilotfish.built_from import COMMIT_FILE, UNKNOWN, commit_of

pytestmark = pytest.mark.real  # starts git

SETUP = Path(built_from.__file__).resolve().parent / "setup.py"


def git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(folder), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    folder = tmp_path / "clone"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def test_a_clone_says_its_commit_however_git_keeps_it(clone: Path, tmp_path: Path) -> None:
    assert commit_of(clone) == git(clone, "rev-parse", "HEAD")
    git(clone, "pack-refs", "--all")
    assert not (clone / ".git/refs/heads/main").exists()
    assert commit_of(clone) == git(clone, "rev-parse", "HEAD")
    linked = tmp_path / "linked"
    git(clone, "worktree", "add", "-q", "-b", "other", str(linked))
    git(linked, "commit", "-q", "--allow-empty", "-m", "second")
    assert commit_of(linked) == git(linked, "rev-parse", "HEAD") != commit_of(clone)
    git(linked, "checkout", "-q", "--detach", "main")
    assert commit_of(linked) == commit_of(clone)


@pytest.mark.parametrize("text", ["", "main", "ref: refs/heads/none", "ref: HEAD", "é", "0" * 39, "g" * 40])
def test_what_is_no_commit_is_unknown(clone: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (clone / ".git/HEAD").write_text(text, encoding="utf-8")
    assert commit_of(clone) == ""
    monkeypatch.setattr(built_from, "commit_of", lambda folder: "")
    assert built_from.commit.__wrapped__() == UNKNOWN


def test_an_empty_repository_and_a_bare_folder_are_unknown(tmp_path: Path) -> None:
    assert commit_of(tmp_path) == ""
    git(tmp_path, "init", "-q")
    assert commit_of(tmp_path) == ""


def test_what_is_built_has_the_commit_of_the_clone_and_of_the_sources_built_from_it(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts: dict = {}
    monkeypatch.setattr("setuptools.setup", parts.update)
    exec(compile(SETUP.read_text(), "setup.py", "exec"), parts)
    source, built = tmp_path / "pilotfish-1", tmp_path / "built"
    for name in ("__init__.py", "built_from.py"):
        (clone / name).write_text((SETUP.parent / name).read_text())
    monkeypatch.chdir(clone)
    assert parts["write_commit"](source) == [str(source / COMMIT_FILE)]
    commit = git(clone, "rev-parse", "HEAD")
    assert commit_of(source) == commit
    (source / "built_from.py").write_text((SETUP.parent / "built_from.py").read_text())
    monkeypatch.chdir(source)
    packages = {"name": "pilotfish", "packages": [], "package_dir": {"pilotfish": "."}, "script_name": "setup.py"}
    command = parts["BuildPackages"](Distribution(packages))
    command.build_lib = str(built)
    command.ensure_finalized()
    command.run()
    assert commit_of(built / "pilotfish") == commit
    assert str(built / "pilotfish" / COMMIT_FILE) in command.get_outputs()
    (source / COMMIT_FILE).unlink()
    assert parts["write_commit"](tmp_path / "none") == []
