"""What `pip install` installs is what the repository holds: every module, every data file, and nothing else."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from setuptools.config.pyprojecttoml import apply_configuration
from setuptools.dist import Distribution

import pilotfish
from tests.support.sources import tree_of

ROOT = Path(pilotfish.__file__).resolve().parent
#: Folders of the repository that are not installed; of `docs` and of the root only what DATA names.
NOT_INSTALLED = {"tests", "benchmarks", "docs", "packaging", ".ci", ".github"}
#: Files of the root that are installed. Everything else there is for people and for build tools.
OF_THE_ROOT = {"__init__.py", "api.py", "built_from.py", "machine_share.py", "py.typed", "trust.py"}
#: Files of folders that are not installed, but for these.
DATA = {"docs/slurm/job_submit.lua"}


def tracked() -> set[str]:
    """Return the files of the repository, as git lists them."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode or not listed.stdout:
        pytest.skip("SKIPPED: this is not a git checkout, so nothing says which files belong to it")
    return {name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()}


def meant() -> set[str]:
    """Return the tracked files that belong into the wheel."""
    wanted = set()
    for name in tracked():
        room, *rest = name.split("/")
        if name in DATA or (rest and room not in NOT_INSTALLED) or (not rest and room in OF_THE_ROOT):
            wanted.add(name)
    return wanted


def installed(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return the files that setuptools puts into the wheel, relative to the repository."""
    monkeypatch.chdir(ROOT)
    found: dict[str, Any] = {}
    monkeypatch.setattr("setuptools.setup", found.update)
    exec(compile((ROOT / "setup.py").read_text(), "setup.py", "exec"), {})
    distribution = Distribution({**found, "script_name": "setup.py"})
    apply_configuration(distribution, ROOT / "pyproject.toml")
    command = distribution.get_command_obj("build_py")
    command.ensure_finalized()
    return {Path(os.path.relpath(name, ROOT)).as_posix() for name in command.get_output_mapping().values()}


@pytest.mark.real
def test_every_tracked_file_of_a_room_is_installed_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = meant(), installed(monkeypatch)
    assert not ours - theirs, f"not in the wheel: {sorted(ours - theirs)}"
    stray = {name for name in theirs - ours if name in tracked()}  # untracked files are the developer's
    assert not stray, f"in the wheel, although it should not be: {sorted(stray)}"
    assert {"cli/__init__.py", "daemon/__init__.py"} & theirs and "profiles/library/node_types.yaml" in theirs


def test_a_new_folder_is_installed_without_being_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("room/part/__init__.py", "room/__init__.py", "tests/__init__.py", ".venv/lib/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {}
    monkeypatch.setattr("setuptools.setup", found.update)
    exec(compile((ROOT / "setup.py").read_text(), "setup.py", "exec"), {})
    assert sorted(found["packages"]) == ["pilotfish", "pilotfish.room", "pilotfish.room.part"]


#: Name of a distribution -> the module that it installs, if they differ.
MODULES = {
    "prometheus-client": "prometheus_client", "pyyaml": "yaml", "pyzmq": "zmq", "stable-baselines3": "stable_baselines3",
}  # fmt: skip
#: Packages that a user may bring along. pybatsim's pins do not install on current Pythons, so no extra can name it.
BROUGHT = {"batsim"}


def imported_packages() -> dict[str, str]:
    """Return the packages outside the standard library that the product imports -> a file that does."""
    found = {}
    for name in sorted(tracked()):
        if name.endswith(".py") and name.split("/")[0] not in (*NOT_INSTALLED, "setup.py"):
            for node in ast.walk(tree_of(ROOT / name)):
                modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                modules += [str(node.module)] if isinstance(node, ast.ImportFrom) and not node.level else []
                found |= {module.split(".")[0]: name for module in modules}
    return {module: name for module, name in found.items() if module not in (*sys.stdlib_module_names, "pilotfish")}


@pytest.mark.real
@pytest.mark.xdist_group("sources")
def test_every_imported_package_is_declared_and_every_declared_one_is_imported() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [each for extra, names in project["optional-dependencies"].items() if extra != "dev" for each in names]
    names = {re.split(r"[<>=!~ ;\[]", each)[0] for each in project["dependencies"]}
    declared = {MODULES.get(name, name) for name in names}
    optional = {MODULES.get(name, name) for each in extras if (name := re.split(r"[<>=!~ ;\[]", each)[0])}
    used = imported_packages()
    assert {module: name for module, name in used.items() if module not in declared | optional | BROUGHT} == {}
    assert declared <= used.keys()
