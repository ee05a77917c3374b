"""packaging/requirements.lock and sbom.cdx.json: current, complete, without addresses. `make lock` writes them."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import pilotfish

ROOT = Path(pilotfish.__file__).resolve().parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCK = (ROOT / "packaging" / "requirements.lock").read_text()
SBOM = json.loads((ROOT / "packaging" / "sbom.cdx.json").read_text())
#: Package -> version, and the lines that follow it.
LOCKED = {
    canonicalize_name(found[1]): (found[2], found[3])
    for found in re.finditer(r"^([A-Za-z0-9._-]+)==(\S+) \\\n((?: .*\n?)+)", LOCK, re.MULTILINE)
}
#: Extras that a production installation has, too: the pages, and the same views in a terminal.
EXTRAS = ("tui", "web")
DIRECT = [
    *PROJECT["project"]["dependencies"],
    *(text for extra in EXTRAS for text in PROJECT["project"]["optional-dependencies"][extra]),
    *PROJECT["build-system"]["requires"],
]


@pytest.mark.parametrize("text", DIRECT)
def test_every_dependency_is_locked_in_its_range(text: str) -> None:
    wanted = Requirement(text)
    version, _ = LOCKED[canonicalize_name(wanted.name)]
    assert wanted.specifier.contains(version), f"{text}, and {version} is locked: `make lock`"


def test_each_package_has_hashes_and_says_who_needs_it() -> None:
    names = {canonicalize_name(line.partition("==")[0]) for line in LOCK.splitlines() if re.match(r"[A-Za-z]", line)}
    assert names == LOCKED.keys()
    direct = {canonicalize_name(Requirement(text).name) for text in DIRECT}
    for name, (_, rest) in LOCKED.items():
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", rest), name
        via = re.findall(r"#\s+(?:via )?([A-Za-z0-9._-]+)", rest)
        assert ("pilotfish" in via) == (name in direct), f"{name}: `make lock`"
        assert {canonicalize_name(one) for one in via} - {"via", "pilotfish"} <= LOCKED.keys()


def test_neither_file_has_an_address_or_a_path_of_ours() -> None:
    for text in (LOCK, json.dumps(SBOM).replace(SBOM["$schema"], "")):
        assert not re.search(
            r"https?:|file://|index-url|find-links|trusted-host|(?<![\w.-])/(?:tmp|home|opt|root)/", text
        )


def test_the_sbom_is_of_the_lock_and_has_every_licence() -> None:
    assert SBOM["bomFormat"] == "CycloneDX"
    listed = {canonicalize_name(part["name"]): part["version"] for part in SBOM["components"]}
    assert listed == {name: version for name, (version, _) in LOCKED.items()}
    for part in SBOM["components"]:
        named = [each.get("expression") or each["license"].get("id") or each["license"].get("name")
                 for each in part["licenses"]]  # fmt: skip
        assert named and all(named), part["name"]


def test_the_guides_install_from_the_lock() -> None:
    for page in ("docs/guides/slurm.md", "docs/guides/one-machine.md", "docs/getting-started.md"):
        steps = re.findall(r"^# (/opt/pilotfish/bin/pip .*)$", (ROOT / page).read_text(), re.MULTILINE)
        assert [step.split(" install ")[1] for step in steps] == [
            "--require-hashes -r packaging/requirements.lock",
            "--no-deps --no-build-isolation .",
        ]
