"""File names, file sizes and import circles of the product's rooms, and long lines of prose.

Rule: a file name is unique in the product unless it is the same thing in another world; a file has at most LONGEST
lines, and the control loop fewer than 100; no file imports itself through others; the number of sibling folders that
import each other only falls; a line of Markdown has at most WIDEST columns; the root holds only what TOP names.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tests.support.sources import nodes_of, tree_of

ROOMS = ("adapters", "cli", "daemon", "formats", "profiles", "simulate", "web")
LONGEST, WIDEST = 450, 125
#: Files of the root, and all other folders.
TOP = {
    ".gitignore", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "SECURITY.md", "MANIFEST.in", "Makefile", "README.md", "__init__.py",
    "api.py", "built_from.py", "machine_share.py", "py.typed", "pyproject.toml", "setup.py", "trust.py",
    ".ci", "benchmarks", "docs", "learning", "monitoring", "packaging", "systemd", "tests",
}  # fmt: skip
#: Files with a limit of their own, lines.
LIMITS = {"daemon/loop.py": 99}
#: The same thing in another world: a command and the module behind it, a value and its file format, an adapter's and a
#: client's part of one kind, the tables of each kernel.
SHARED_NAMES = {
    "__init__.py", "accuracy.py", "adapter.py", "client.py", "cluster.py", "convert.py", "errors.py", "job_views.py",
    "metrics.py", "network.py", "plan.py", "plan_export.py", "policies.py", "profile.py", "profiles.py", "replay.py", "sacct.py", "site.py", "submission.py", "sweep.py", "tables.py", "text.py",
    "whole_queue.py", "workload.py", "write.py",
}  # fmt: skip

#: Pairs of folders with the same parent that import each other both ways. Lower it, never raise it.
MUTUAL_FOLDERS = 7

#: Files whose classes are kinds of policies and their parts, and how often the product asks for one with `isinstance`:
#: a policy states its facts itself. Lower the number, never raise it.
POLICY_FILES = (
    "policy_facts", "policy_specs", "loaded_policies", "energy/power_policies", "energy/power_limits", "energy/saving_policy",
)  # fmt: skip
POLICY_CHECKS = 6

#: A decision of a queue policy, and the action that carries it out.
SHARED_CLASSES = {"Submit"}


def strays(files: Iterable[str]) -> Iterator[str]:
    """Yield one message for each file or folder of the root that is not meant to be there."""
    for name in sorted({name.split("/")[0] for name in files} - TOP - set(ROOMS)):
        yield f"{name}: not expected in the root (remove it, or add it to TOP)"


def product_files(files: Iterable[str]) -> list[str]:
    """Return the Python files of the rooms."""
    return [name for name in files if name.endswith(".py") and name.split("/")[0] in ROOMS]


def shared_names(files: Iterable[str]) -> Iterator[str]:
    """Yield one message for each file name that stands in two folders."""
    places = defaultdict(list)
    for name in product_files(files):
        places[name.rpartition("/")[2]].append(name)
    for name in sorted(name for name in SHARED_NAMES if len(places[name]) < 2):
        yield f"{name}: one file has this name (remove it from SHARED_NAMES)"
    for name, found in sorted(places.items()):
        if len(found) > 1 and name not in SHARED_NAMES:
            yield f"{', '.join(found)}: one name for {len(found)} files (rename, or add to SHARED_NAMES)"


def shared_classes(root: Path, files: Iterable[str]) -> Iterator[str]:
    """Yield one message for each public class whose name another one has: two things that differ need two names."""
    places = defaultdict(list)
    for name in product_files(files):
        for node in tree_of(root / name).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(name)
    for name in sorted(name for name in SHARED_CLASSES if len(places[name]) < 2):
        yield f"{name}: one class has this name (remove it from SHARED_CLASSES)"
    for name, found in sorted(places.items()):
        if len(found) > 1 and name not in SHARED_CLASSES:
            yield f"{', '.join(found)}: one name, {name}, for {len(found)} classes (rename, or add to SHARED_CLASSES)"


def long_files(root: Path, files: Iterable[str]) -> Iterator[str]:
    """Yield one message for each file that has too many lines."""
    for name in product_files(files):
        lines = (root / name).read_text(encoding="utf-8").count("\n")
        if lines > (most := LIMITS.get(name, LONGEST)):
            yield f"{name}: {lines} lines (at most {most}; split it)"


def long_prose(root: Path, files: Iterable[str]) -> Iterator[str]:
    """Yield one message for each line of Markdown, outside code and tables, of more than WIDEST columns."""
    for name in (each for each in files if each.endswith(".md")):
        code = False
        for number, line in enumerate((root / name).read_text(encoding="utf-8").splitlines(), 1):
            code ^= line.lstrip().startswith("```")
            if len(line) > WIDEST and not code and not line.lstrip().startswith("|"):
                yield f"{name}:{number}: {len(line)} columns (at most {WIDEST}; wrap it)"


def import_statements(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield each import of a module, at its top or inside a function; expressions, most of a tree, hold none."""
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, field, None)
            if isinstance(inner, list):
                left += inner


def imported(name: str, tree: ast.Module, known: set[str]) -> set[str]:
    """Return the files of `known` that a file imports, at its top or inside a function.

    Args:
        name: the file's path relative to the root.
        tree: its syntax tree.
        known: all files of the rooms.
    """
    package, found = name.split("/")[:-1], set()
    for node in import_statements(tree):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        base = package[: len(package) - node.level + 1] + (node.module.split(".") if node.module else [])
        path = "/".join(base)
        found.add(f"{path}.py")
        found |= {f"{path}/{alias.name}.py" for alias in node.names}
    return (found & known) - {name}


def import_graph(root: Path, files: Iterable[str]) -> dict[str, set[str]]:
    """Return file -> the files that it imports, of the rooms."""
    names = set(product_files(files))
    return {name: imported(name, tree_of(root / name), names) for name in names}


def mutual_folders(graph: Mapping[str, set[str]], ceiling: int = MUTUAL_FOLDERS) -> Iterator[str]:
    """Yield messages unless `ceiling` is the number of pairs of sibling folders that import each other both ways.

    Args:
        graph: file -> the files that it imports; the folders are those below the rooms, with all that they contain.
        ceiling: the number of pairs.
    """
    importers = defaultdict(set)
    for name, others in graph.items():
        for other in others:
            folders, other_folders = name.split("/")[:-1], other.split("/")[:-1]
            for depth in range(1, min(len(folders), len(other_folders))):
                if folders[:depth] == other_folders[:depth] and folders[depth] != other_folders[depth]:
                    importers["/".join(folders[: depth + 1]), "/".join(other_folders[: depth + 1])].add(name)
    pairs = sorted((folder, other) for folder, other in importers if folder < other and (other, folder) in importers)
    if len(pairs) < ceiling:
        yield f"tests/lint/layout.py, MUTUAL_FOLDERS: lower the number from {ceiling} to {len(pairs)}"
    elif len(pairs) > ceiling:
        for folder, other in pairs:
            forth, back = len(importers[folder, other]), len(importers[other, folder])
            yield f"{folder} <-> {other}: files of each import the other ({forth} forth, {back} back)"
        yield (
            f"tests/lint/layout.py, MUTUAL_FOLDERS: {len(pairs)} pairs of folders, listed above, import each other, more than "
            f"{ceiling}: move what both need into a third folder, or turn the new import round"
        )


def policy_checks(root: Path, files: Iterable[str], ceiling: int = POLICY_CHECKS) -> Iterator[str]:
    """Yield messages unless `ceiling` is the number of `isinstance` calls that ask for a class of POLICY_FILES."""
    trees = {name: tree_of(root / name) for name in product_files(files)}
    homes = [trees.get(f"simulate/queue_policies/{name}.py", ast.parse("")) for name in POLICY_FILES]
    kinds = {node.name for home in homes for node in home.body if isinstance(node, ast.ClassDef)}
    kinds |= {target.id for home in homes for node in home.body if isinstance(node, ast.Assign)
              for target in node.targets if isinstance(target, ast.Name) and _names(node.value) & kinds
              and isinstance(node.value, ast.BinOp)}  # fmt: skip
    places = [
        f"{name}:{line}" for name, tree in trees.items()
        for line in sorted(
            node.lineno for node in nodes_of(tree) if isinstance(node, ast.Call)
            and _names(node.func) & {"isinstance", "issubclass"} and _names(node.args[1]) & kinds
        )
    ]  # fmt: skip
    if len(places) < ceiling:
        yield f"tests/lint/layout.py, POLICY_CHECKS: lower the number from {ceiling} to {len(places)}"
    elif len(places) > ceiling:
        yield f"{', '.join(places)}: more than {ceiling} ask for the kind of a policy: give it a fact instead"


def _names(node: ast.AST) -> set[str]:
    """Return the names in an expression, and the last names of its attributes."""
    inner = [*ast.walk(node)]
    return {one.id for one in inner if isinstance(one, ast.Name)} | {
        one.attr for one in inner if isinstance(one, ast.Attribute)
    }


def circles(graph: Mapping[str, set[str]]) -> Iterator[str]:
    """Yield one message for each group of files that import each other in a circle. O(files + imports)."""
    for group in _components(graph):
        if len(group) > 1:
            yield f"{', '.join(sorted(group))}: they import each other in a circle"


def _components(graph: Mapping[str, set[str]]) -> Iterator[list[str]]:
    """Strongly connected components (Tarjan 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            group = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            found.append(group)

    for node in sorted(graph):
        if node not in index:
            visit(node)
    yield from found


def check(root: Path, files: Iterable[str]) -> Iterator[str]:
    """Yield all messages about the layout."""
    files = list(files)
    yield from strays(files)
    yield from shared_names(files)
    yield from shared_classes(root, files)
    yield from long_files(root, files)
    yield from long_prose(root, files)
    graph = import_graph(root, files)
    yield from circles(graph)
    yield from mutual_folders(graph)
    yield from policy_checks(root, files)
