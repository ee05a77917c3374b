"""The recipes of docs/how-to as steps: files to create, edits to make, commands to run with the output they show."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pilotfish

ROOT = Path(pilotfish.__file__).resolve().parent
RECIPES = ROOT / "docs" / "how-to"
#: Recipes for a package of one's own, and recipes that edit files of pilotfish.
OWN, EDITING = (
    ("adapter", "environment", "mapping-policy", "queue-policy", "world-part"),
    ("contention-model", "format"),
)
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
_FILE = re.compile(r"\b(Create|Edit) `([^`]+)`:\s*$")


@dataclass(frozen=True)
class Create:
    """Write a file."""

    path: str
    text: str


@dataclass(frozen=True)
class Edit:
    """Replace the lines of a hunk that are context or removed by those that are context or added."""

    path: str
    hunk: str

    def apply(self, folder: Path) -> None:
        """Change the file; the old lines must occur exactly once."""
        lines = self.hunk.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] in " -")
        new = "".join(line[1:] for line in lines if line[0] in " +")
        file = folder / self.path
        text = file.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{self.path} has {text.count(old)} times:\n{old}"
        file.write_text(text.replace(old, new), encoding="utf-8")


@dataclass(frozen=True)
class Run:
    """Run a command; the lines shown below it are lines of its output, in that order; `...` stands for others."""

    command: str
    shown: tuple[str, ...]


Step = Create | Edit | Run


def steps(text: str) -> Iterator[Step]:
    """Yield the steps of a recipe in order."""
    path, at = "", 0
    for block in _BLOCK.finditer(text):
        before, (language, body) = text[at : block.start()], block.groups()
        at = block.end()
        named = [form for line in before.splitlines() if (form := _FILE.search(line))]
        kind = named[-1][1] if named else ""
        path = named[-1][2] if named else path
        if language == "diff":
            assert kind in ("Edit", ""), before
            yield Edit(path, body)
        elif language == "console":
            yield from _runs(body)
        else:
            assert kind == "Create", f"a block of {language} without a file:\n{body}"
            yield Create(path, body)


def _runs(body: str) -> Iterator[Run]:
    for part in re.split(r"^\$ ", body, flags=re.M)[1:]:
        command, *shown = part.splitlines()
        yield Run(command, tuple(line for line in shown if line != "..."))


def follow(text: str, folder: Path, run: Callable[[str], str]) -> dict[type[Step], int]:
    """Take the steps of a recipe; return how many there were of each kind.

    Args:
        text: the recipe.
        folder: where its files belong.
        run: runs a command line there and returns what it printed.
    """
    counts: dict[type[Step], int] = {Create: 0, Edit: 0, Run: 0}
    for step in steps(text):
        counts[type(step)] += 1
        if isinstance(step, Create):
            (folder / step.path).parent.mkdir(parents=True, exist_ok=True)
            (folder / step.path).write_text(step.text, encoding="utf-8")
        elif isinstance(step, Edit):
            step.apply(folder)
        else:
            printed, at = run(step.command).splitlines(), 0
            for line in step.shown:
                assert line in printed[at:], f"{step.command}\nprinted no line {line!r}:\n" + "\n".join(printed)
                at += printed[at:].index(line) + 1
    return counts
