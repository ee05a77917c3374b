"""The recipes of docs/how-to for a package of one's own, word by word, as a user follows them.

The environment has the installed wheel, what it needs, and pytest. It has no pip, setuptools or wheel, and no network is
used.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from importlib import metadata
from pathlib import Path

import guardian
import pytest
from installed import PATIENCE_S, Installed, _copy, _environment, _packages, locked

from tests.docs.recipes import OWN, RECIPES, ROOT, Create, Edit, Run, follow

pytestmark = pytest.mark.xdist_group("installed recipes")
#: What the recipe of an adapter asks for in addition to pilotfish, with what that needs.
PYTEST = ("pytest", "iniconfig", "packaging", "pluggy", "pygments")


@pytest.fixture(scope="session")
def environment(installed: Installed) -> Path:
    """A virtual environment with the packages of the clean installation, and pytest."""
    place = guardian.folder() / "recipes"
    with locked(guardian.folder() / "recipes.lock"):
        if not place.exists():
            _environment(guardian.folder(), place)
            _packages(place).joinpath("clean.pth").write_text(f"{_packages(installed.folder / 'clean')}\n")
            for name in PYTEST:
                _copy(metadata.distribution(name), Path(sysconfig.get_path("purelib")), _packages(place))
            script = (installed.folder / "clean" / "bin" / "pilotfish").read_text()
            (place / "bin" / "pilotfish").write_text(script.replace(str(installed.folder / "clean"), str(place)))
            (place / "bin" / "pilotfish").chmod(0o755)
    return place


def follow_as_user(text: str, folder: Path, environment: Path, cache: Path) -> dict[type[Create | Edit | Run], int]:
    """Follow a recipe in a folder; return the number of steps of each kind."""

    def run(command: str) -> str:
        done = shell(command, folder, environment, cache)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    return follow(text, folder, run)


def shell(command: str, folder: Path, environment: Path, cache: Path) -> subprocess.CompletedProcess[str]:
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    variables |= {"PATH": f"{environment / 'bin'}:/usr/bin:/bin", "COLUMNS": "100", "PIP_NO_INDEX": "1"}
    variables |= {"PILOTFISH_STATE": str(folder / "state"), "PILOTFISH_CACHE": str(cache)}
    argv = ["sh", "-c", command]
    return subprocess.run(
        argv, cwd=folder, env=variables, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with what the recipes use of a checkout: the contract tests."""
    shutil.copytree(ROOT / "tests" / "contract", tmp_path / "tests" / "contract")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", OWN)
def test_a_recipe_works_word_by_word(name: str, folder: Path, environment: Path, installed: Installed) -> None:
    text = (RECIPES / f"{name}.md").read_text(encoding="utf-8")
    counts = follow_as_user(text, folder, environment, installed.cache)
    assert counts[Create] and counts[Run] and not counts[Edit]


@pytest.mark.parametrize("name", ["pip", "setuptools", "wheel", "hypothesis"])
def test_the_environment_has_nothing_of_a_developer(
    name: str, folder: Path, environment: Path, installed: Installed
) -> None:
    done = shell(f"python -c 'import {name}'", folder, environment, installed.cache)
    assert f"No module named '{name}'" in done.stderr
    where = shell(
        "python -c 'import pilotfish; print(pilotfish.__file__)'", folder, environment, installed.cache
    ).stdout
    assert Path(where.strip()).is_relative_to(installed.folder / "clean")


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("toy/toy.dist-info/entry_points.txt", "", "found 'toy'"),
        (
            "toy/toy_adapter.py",
            "import no_such_module",
            "toy_adapter cannot be imported: No module named 'no_such_module'",
        ),
        ("toy/toy_adapter.py", "x = 1", "'toy' starts no jobs"),
    ],
)
def test_an_adapter_that_is_not_found_is_one_error(
    file: str, content: str, message: str, folder: Path, environment: Path, installed: Installed
) -> None:
    outputs: list[str] = []

    def run(command: str) -> str:
        (folder / file).write_text(content)
        outputs.append(shell(command, folder, environment, installed.cache).stdout)
        return outputs[-1]

    follow((RECIPES / "adapter.md").read_text(encoding="utf-8"), folder, run)
    (printed,) = outputs
    assert printed.count(message) == 1 and "1 error" in printed and "passed" not in printed, printed
