"""Local variables that do not say what they hold, counted by room.

Rule: a local variable is a noun that says what it holds. The functions that bind one of WORDS are counted, and FUNCTIONS
holds the number of each room exactly, so that it only falls.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tests.support.sources import children_of, tree_of

#: Bare participles, verbs, pronouns, quantifiers and adverbs: each could be the name of any value.
WORDS = frozenset((
    "asked", "done", "each", "few", "found", "given", "gone", "here", "kept", "known", "left", "made", "many", "own", "said",
    "says", "seen", "some", "taken", "there", "told", "took", "wanted", "what", "whole",
))  # fmt: skip
#: Room -> functions that bind one of WORDS; "root" has the files in no folder. Lower it, never raise it.
#: Comments stand between the rooms so that git merges edits of two rooms.
FUNCTIONS = {
    "root": 0,
    # Slurm, OAR, local, simulated
    "adapters": 0,
    # commands, charts
    "cli": 0,
    # the service
    "daemon": 0,
    # readers, writers
    "formats": 0,
    # job and node profiles
    "profiles": 0,
    # the engine
    "simulate": 0,
    # pages for browsers
    "web": 0,
    # all tests
    "tests": 1179,
}


def vague_functions(tree: ast.AST) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each function of a file that binds one of WORDS, with these words. O(nodes).

    Names that a function binds are neither its parameters nor those that functions and classes inside it bind.
    """
    scopes: list[tuple[str, set[str | None], set[str]]] = []
    nodes: list[tuple[ast.AST, set[str | None]]] = [(tree, set())]
    while nodes:
        node, names = nodes.pop()
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                names = set()
                scopes.append((node.name, names, _parameters(node)))
                nodes += [(part, names) for part in node.body]
                continue
            case ast.ClassDef():
                names = set()
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
                continue
            case ast.ExceptHandler(name=name) | ast.MatchAs(name=name) | ast.MatchStar(name=name):
                names.add(name)
        nodes += [(part, names) for part in children_of(node)]
    for function, names, parameters in scopes:
        if words := (names & WORDS) - parameters:
            yield function, sorted(words)


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    arguments = function.args
    parameters = {*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg}
    return {parameter.arg for parameter in parameters if parameter}


def check(root: Path, files: Iterable[str], ceilings: Mapping[str, int] = FUNCTIONS) -> Iterator[str]:
    """Yield one message for each room whose number is not that of the table.

    Args:
        root: the root of the checkout.
        files: paths relative to it; Python files of the rooms of `ceilings` are read.
        ceilings: room -> functions that may bind one of WORDS.
    """
    counts = dict.fromkeys(ceilings, 0)
    functions = defaultdict(list)
    for name in sorted(name for name in files if name.endswith(".py")):
        room = name.split("/")[0] if "/" in name else "root"
        if room in counts:
            vague = [*vague_functions(tree_of(root / name))]
            counts[room] += len(vague)
            functions[room] += [f"{name}: {function} binds {', '.join(words)}" for function, words in vague]
    for room, count in counts.items():
        place = f'tests/lint/local_names.py, FUNCTIONS["{room}"]'
        if count < ceilings[room]:
            yield f"{place}: lower the number from {ceilings[room]} to {count} (after a merge too: the count decides)"
        elif count > ceilings[room]:
            yield from functions[room]
            yield (
                f"{place}: {count} functions, listed above, bind a word of WORDS, more than {ceilings[room]}: "
                "name what your local variables hold (nodes, error, record); `git diff` shows which are yours"
            )
