"""Messages name nodes as a hostlist: a job of a thousand nodes takes a few characters, and Slurm reads them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import pilotfish
from tests.support.sources import tree_of

pytestmark = pytest.mark.xdist_group("sources")  # one process reads them
ROOT = Path(pilotfish.__file__).resolve().parent
ROOMS = ("cli", "daemon", "adapters")
SHOWN_BY_ONE = re.compile(r"(?:\w+\.)*nodes|\w+\[['\"]nodes['\"]\]")


def joined_nodes(tree: ast.AST) -> Iterator[str]:
    """Yield the calls of a file that join the names of `nodes` with commas and blanks."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "join":
            continue
        separator, names = ast.unparse(node.func.value), [ast.unparse(argument) for argument in node.args]
        if separator == "', '" and SHOWN_BY_ONE.fullmatch(names[0]):
            yield f"{node.lineno}: {ast.unparse(node)}"


def test_no_message_spells_out_the_nodes_of_a_job() -> None:
    files = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
    wrong = [f"{path.relative_to(ROOT)}:{text}" for path in files for text in joined_nodes(tree_of(path))]
    assert len(files) > 300 and wrong == []


@pytest.mark.parametrize("line", ["', '.join(action.nodes)", "', '.join(plan['nodes'])", "', '.join(a.why.nodes)"])
def test_nodes_that_are_spelled_out_are_found(line: str) -> None:
    assert [*joined_nodes(ast.parse(line))]
