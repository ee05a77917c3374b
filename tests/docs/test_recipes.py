"""The recipes of docs/how-to that edit the source are followed word by word, in a copy of the source tree.

`tests/real/test_user_recipes.py` follows the others in the environment of a user.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.docs.recipes import EDITING, OWN, RECIPES, ROOT, Edit, follow

#: What a checkout has that the copy does not need. Its compiled modules save the copy from compiling all of them.
LEFT_OUT = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "demo-run", "real", "benchmarks", "docs")


@pytest.fixture
def checkout(real: None, tmp_path: Path) -> Path:
    """A copy of the source tree, which `import pilotfish` finds."""
    return Path(shutil.copytree(ROOT, tmp_path / "pilotfish", ignore=LEFT_OUT))


def run(command: str, checkout: Path) -> str:
    """Run a command line of a recipe in the checkout and return its standard output."""
    (entry,) = entry_points(group="console_scripts", name="pilotfish")
    bin = checkout.parent / "bin"
    bin.mkdir(exist_ok=True)
    for name, code in (("python", 'exec "{0}" "$@"'), ("pilotfish", 'exec "{0}" -m {1} "$@"')):
        (bin / name).write_text(f"#!/bin/sh\n{code.format(sys.executable, entry.module)}\n")
        (bin / name).chmod(0o755)
    environment = os.environ | {
        "PATH": f"{bin}:{os.environ['PATH']}", "PYTHONPATH": str(checkout.parent), "COLUMNS": "100",
        "PILOTFISH_STATE": str(checkout.parent / "state"),
    }  # fmt: skip
    done = subprocess.run(["sh", "-c", command], cwd=checkout, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_there_is_a_recipe_for_each_extension() -> None:
    assert sorted(path.stem for path in RECIPES.glob("*.md")) == sorted((*OWN, *EDITING))


@pytest.mark.parametrize("name", EDITING)
def test_a_recipe_that_edits_the_source_works_word_by_word(name: str, checkout: Path) -> None:
    text = (RECIPES / f"{name}.md").read_text(encoding="utf-8")
    counts = follow(text, checkout, lambda command: run(command, checkout))
    assert all(counts.values()), counts


def test_the_copy_is_what_is_imported(checkout: Path) -> None:
    assert Path(run("python -c 'import pilotfish; print(pilotfish.__file__)'", checkout).strip()).parent == checkout


def test_an_edit_that_does_not_match_fails(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("a\nb\n")
    Edit("x.py", " a\n-b\n+c\n").apply(tmp_path)
    assert (tmp_path / "x.py").read_text() == "a\nc\n"
    with pytest.raises(AssertionError, match="has 0 times"):
        Edit("x.py", "-b\n+c\n").apply(tmp_path)


def test_queue_policy_recipe_shows_a_short_policy() -> None:
    text = (RECIPES / "queue-policy.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?class Easy.*?)```", text, re.S)
    assert len(code.splitlines()) <= 25
