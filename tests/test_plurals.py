"""No message says "1 jobs": a number with its noun is written by `count`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

import pilotfish
from pilotfish.formats.text import count
from tests.support.sources import tree_of

pytestmark = pytest.mark.xdist_group("sources")  # one process reads them
ROOT = Path(pilotfish.__file__).resolve().parent
ROOMS = ("cli", "daemon", "profiles", "adapters", "formats", "simulate")
NOUNS = (
    "jobs|nodes|workflows|cycles|files|rows|lines|profiles|runs|cores|CPUs|processors|resources|tasks|traces|policies|"
    "users|kernels|workers|pairs|warnings|errors|names|places|measurements|threads|groups|samples|records|processes|"
    "commands|hosts|fields|placements|connections|entries|requests|words|columns|events|slots|submissions|links|"
    "machines|others|days|hours|minutes"
)
FOLLOWED = re.compile(rf" (?:[a-z-]+ )?(?:{NOUNS})\b(?!\()")
#: Numbers that are never 1, and names of a profile, which stay as they were when it was learned.
NEVER_ONE = {"len(PROGRAMS)"}
STABLE = {"profiles/identity.py"}


def unspelled(tree: ast.AST) -> Iterator[str]:
    """Yield the numbers in the f-strings of a file that a plural noun follows: a length, a sum, or with thousands."""
    for node in (each for each in ast.walk(tree) if isinstance(each, ast.JoinedStr)):
        for part, after in pairwise(node.values):
            if isinstance(part, ast.FormattedValue) and isinstance(after, ast.Constant):
                number = ast.unparse(part.value)
                spelled = ast.unparse(part.format_spec) if part.format_spec else ""
                counts = number.startswith(("len(", "sum(")) or spelled.strip("f'\"") in (",", "d", ",d")
                constant = number in NEVER_ONE or re.fullmatch(r"[A-Z_0-9.]+|[a-z_]+\.[A-Z_]+", number)
                if counts and not constant and FOLLOWED.match(str(after.value)):
                    yield f"{node.lineno}: {{{number}}}{str(after.value)[:30]}"


def disagreeing(tree: ast.AST) -> Iterator[str]:
    """Yield what stands before `count(...)` in the f-strings of a file and agrees with a plural only."""
    for node in (leaf for leaf in ast.walk(tree) if isinstance(leaf, ast.JoinedStr)):
        for before, part in pairwise(node.values):
            if isinstance(before, ast.Constant) and isinstance(part, ast.FormattedValue):
                words = str(before.value)[-30:]
                if re.search(r"\b(?:are|were) $", words) and ast.unparse(part.value).startswith("count("):
                    yield f"{node.lineno}: {words}{{{ast.unparse(part.value)}}}"


def _named_files() -> list[tuple[str, Path]]:
    files = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
    return [(path.relative_to(ROOT).as_posix(), path) for path in files]


def test_no_verb_before_a_number_is_always_a_plural() -> None:
    wrong = [f"{name}:{text}" for name, path in _named_files() for text in disagreeing(tree_of(path))]
    assert wrong == []
    assert [*disagreeing(ast.parse("f\"there are {count(number, 'job')}\""))]


def test_a_number_with_its_noun_is_written_by_one_function() -> None:
    names = _named_files()
    wrong = [f"{name}:{text}" for name, path in names if name not in STABLE for text in unspelled(tree_of(path))]
    assert len(names) > 500 and wrong == []


@pytest.mark.parametrize("line", ['f"{len(jobs)} jobs"', 'f"{number:,} equal runs"', 'f"{sum(sizes):,} cores of {x}"'])
def test_a_plural_that_is_always_written_is_found(line: str) -> None:
    assert [*unspelled(ast.parse(line))]


@pytest.mark.parametrize("line", ["f\"{count(len(jobs), 'job')} wait\"", 'f"{name} jobs"', 'f"{MOST_JOBS:,} jobs"'])
def test_other_texts_are_not_found(line: str) -> None:
    assert not [*unspelled(ast.parse(line))]


@pytest.mark.parametrize(
    ("number", "words", "text"),
    [
        (1, ("job",), "1 job"),
        (0, ("job",), "0 jobs"),
        (1234, ("job",), "1,234 jobs"),
        (2, ("switch",), "2 switches"),
        (3, ("equal mix",), "3 equal mixes"),
        (1, ("job waits", "jobs wait"), "1 job waits"),
        (2, ("job waits", "jobs wait"), "2 jobs wait"),
    ],
)
def test_a_count_agrees_with_its_noun_and_verb(number: int, words: tuple[str, ...], text: str) -> None:
    assert count(number, *words) == text
