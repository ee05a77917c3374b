"""The packages for Debian and rpm: the same root gives the same bytes, its scripts are right, and completion follows the parser."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import pytest
import yaml

import pilotfish
from pilotfish.cli.__main__ import Pilotfish
from pilotfish.simulate.kernels.object_cache import PORTABLE
from tests.promises import generator

ROOT = Path(pilotfish.__file__).resolve().parent
FOLDER = ROOT / "packaging"
#: A file of each folder of a package.
OTHERS = (
    "usr/bin/pilotfish", "usr/lib/systemd/system/pilotfishd.service", "usr/lib/sysusers.d/pilotfish.conf",
    "usr/lib/tmpfiles.d/pilotfish.conf", "usr/share/bash-completion/completions/pilotfish",
    "usr/share/doc/pilotfish/README.md", "usr/share/man/man1/pilotfish.1.gz",
)  # fmt: skip


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
    for name in OTHERS:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
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


def test_packages_are_put_together_at_one_place_and_one_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = script("packages")
    monkeypatch.setattr(packages, "PLACE", tmp_path / "place")
    with packages.place() as root:
        (root / "file").touch()
        with pytest.raises(SystemExit, match="one build at a time"), packages.place():
            pass
        assert (root / "file").exists()
    assert not root.exists()


def test_a_package_gets_its_parts_from_the_wheelhouse_alone() -> None:
    packages, wheelhouse = script("packages"), script("wheelhouse")
    assert packages.PYTHON == wheelhouse.PYTHON
    lines = [
        line.split()[-2:]
        for line in (ROOT / "Makefile").read_text().splitlines()
        if "packaging/" in line and " dist" in line
    ]
    assert [words[0] for words in lines].index("packaging/wheelhouse.py") < [words[0] for words in lines].index(
        "packaging/packages.py"
    )


def test_a_wheelhouse_has_no_time_or_mode_of_its_own(tmp_path: Path) -> None:
    archives = []
    for name, mode in (("a", 0o600), ("b", 0o644)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "p.whl").write_text("wheel")
        (tmp_path / name / "p.whl").chmod(mode)
        archives.append(script("wheelhouse").packed(tmp_path / name, "house", 1_000_000))
    assert archives[0] == archives[1] and b"house/p.whl" in archives[0]


@pytest.mark.real
@pytest.mark.skipif(not shutil.which("rpmbuild"), reason="no rpmbuild: no package was made")
def test_an_rpm_has_the_same_bytes_and_can_be_unpacked(tmp_path: Path) -> None:
    packages = script("packages")
    names = []
    for folder, umask in ((tmp_path / "a", 0o022), (tmp_path / "b", 0o077)):
        folder.mkdir()
        names.append(packages.build_rpm(small_root(folder, umask), ROOT, folder, "1.2.3", 1_700_000_000))
    assert names[0].read_bytes() == names[1].read_bytes()

    def query(*words: str) -> str:
        return subprocess.run(["rpm", "-qp", *words, names[0]], check=True, capture_output=True, text=True).stdout

    listing = query("-lv").splitlines()
    assert {line.split()[-1].strip("/") for line in listing} >= {"opt/pilotfish/bin/pilotfish", *OTHERS}
    assert all(line.split()[2:4] == ["root", "root"] for line in listing)
    assert query("--qf", "%{NAME} %{VERSION} %{BUILDHOST}") == "pilotfish 1.2.3 localhost"
    assert "/usr/bin/python3.11\n" in query("--requires")
    assert query("--configfiles") == "/etc/pilotfish/pilotfish.yaml\n"
    scripts = query("--scripts")
    assert "systemd-sysusers pilotfish.conf" in scripts and "{" not in scripts.replace("{}", "")
    subprocess.run(["rpm2archive", names[0]], check=True)
    subprocess.run(["tar", "-xf", f"{names[0]}.tgz", "-C", tmp_path], check=True)
    assert (tmp_path / "etc/pilotfish/pilotfish.yaml").read_text() == "mode: shadow\n"
    assert (tmp_path / "opt/pilotfish/bin/pilotfish").stat().st_mode & 0o777 == 0o755


@pytest.mark.real
@pytest.mark.parametrize(
    "name", ["deb/postinst", "deb/prerm", "deb/postrm", "rpm/posttrans", "rpm/preun", "rpm/postun"]
)
def test_the_scripts_of_the_packages_are_shell(name: str) -> None:
    text = (FOLDER / name).read_text()
    assert text.startswith("#!/bin/sh\n") and os.access(FOLDER / name, os.X_OK)
    assert "\nset -e\n" in text or name.startswith("rpm/"), "dpkg repairs what has failed, rpm does not"
    assert subprocess.run(["sh", "-n", FOLDER / name]).returncode == 0


def test_the_role_and_the_container_name_what_a_release_has() -> None:
    tasks = yaml.safe_load((FOLDER / "ansible/tasks.yaml").read_text())
    modules = {key for task in tasks for key in task if "." in key}
    assert modules and all(module.startswith("ansible.builtin.") for module in modules)
    assert all(task["name"][0].isupper() for task in tasks)
    (started,) = (task["loop"] for task in tasks if "loop" in task)
    assert set(started) <= set(script("packages").UNITS)
    words = {
        word for task in tasks for word in re.findall(r"pilotfish (\w[\w-]*)", str(task.get("ansible.builtin.command")))
    }
    assert words == {"reload"} and words <= Pilotfish.lazy.keys()
    container = (FOLDER / "Containerfile").read_text()
    assert (
        re.search(r"^COPY dist/pilotfish_\*\.deb ", container, re.M)
        and "@$(BIN)/python packaging/packages.py dist" in (ROOT / "Makefile").read_text()
    )


def test_the_kernels_of_a_package_are_for_the_processors_that_load_them() -> None:
    compiler = script("packages").COMPILER
    assert (compiler["NUMBA_CPU_NAME"], compiler["NUMBA_CPU_FEATURES"]) == (PORTABLE, "")


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
