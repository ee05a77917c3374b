"""The package for Debian: the same root gives the same bytes, its scripts are right, and completion follows the parser."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

import pilotfish
from tests.promises import generator

ROOT = Path(pilotfish.__file__).resolve().parent
FOLDER = ROOT / "packaging"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"packaging_{name}", FOLDER / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def small_root(folder: Path, umask: int) -> Path:
    before = os.umask(umask)
    root = folder / "root"
    (root / "opt/pilotfish/bin").mkdir(parents=True)
    (root / "opt/pilotfish/bin/pilotfish").write_text("#!/bin/sh\n")
    (root / "opt/pilotfish/bin/pilotfish").chmod(0o755)
    (root / "etc/pilotfish").mkdir(parents=True)
    (root / "etc/pilotfish/pilotfish.yaml").write_text("mode: shadow\n")
    os.umask(before)
    return root


@pytest.mark.real
@pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="no dpkg-deb: no package was made")
def test_the_same_root_gives_the_same_bytes_and_belongs_to_root(tmp_path: Path) -> None:
    packages = script("packages")
    names = []
    for folder, umask in ((tmp_path / "a", 0o022), (tmp_path / "b", 0o077)):
        folder.mkdir()
        names.append(packages.build_deb(small_root(folder, umask), ROOT, folder, "1.2.3", 1_700_000_000))
    assert names[0].read_bytes() == names[1].read_bytes()
    listing = subprocess.run(["dpkg-deb", "-c", names[0]], check=True, capture_output=True, text=True).stdout
    assert all("root/root" in line for line in listing.splitlines())
    fields = subprocess.run(["dpkg-deb", "-f", names[0]], check=True, capture_output=True, text=True).stdout
    assert "Version: 1.2.3\n" in fields and "python3 (>= 3.11), python3 (<< 3.12)" in fields
    conffiles = subprocess.run(["dpkg-deb", "--ctrl-tarfile", names[0]], check=True, capture_output=True).stdout
    assert b"/etc/pilotfish/pilotfish.yaml\n" in conffiles


@pytest.mark.real
@pytest.mark.parametrize("name", ["postinst", "prerm", "postrm"])
def test_the_scripts_of_the_package_are_shell_and_stop_at_an_error(name: str) -> None:
    text = (FOLDER / "deb" / name).read_text()
    assert text.startswith("#!/bin/sh\n") and "\nset -e\n" in text and os.access(FOLDER / "deb" / name, os.X_OK)
    assert subprocess.run(["sh", "-n", FOLDER / "deb" / name]).returncode == 0


def test_every_unit_is_in_the_package() -> None:
    units = {path.name for path in (ROOT / "systemd").iterdir() if path.suffix in (".service", ".timer")}
    assert units == set(script("packages").UNITS)


@pytest.mark.real
def test_completion_offers_what_the_parser_takes(tmp_path: Path) -> None:
    (tmp_path / "c").write_text(script("completion").completion(generator().command_tree()))
    (tmp_path / "file.yaml").touch()

    def offered(*words: str) -> set[str]:
        code = f'. ./c; COMP_WORDS=({" ".join(words)} ""); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 2)); _pilotfish; '
        result = subprocess.run(
            ["bash", "-c", f'{code} echo "${{COMPREPLY[@]}}"'], cwd=tmp_path, check=True, capture_output=True, text=True
        )
        return set(result.stdout.split())

    assert offered("pilotfish", "sta") == {"status"}
    assert {"run", "show", "list"} <= offered("pilotfish", "profile", "''")
    assert offered("pilotfish", "status", "--js") == {"--json"}
    assert offered("pilotfish", "profile", "run", "--nod") == {"--node-type"}
    assert offered("pilotfish", "plan", "fi") == {"file.yaml"}
