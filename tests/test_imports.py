"""Imports run one way: cli -> daemon -> adapters, profiles -> formats -> simulate. The engine reads no clock."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import pilotfish
from pilotfish.adapters.registry import BUILT_IN
from tests.lint.layout import import_statements
from tests.support.sources import tree_of

pytestmark = pytest.mark.xdist_group("sources")  # one process reads them
ROOT = Path(pilotfish.__file__).resolve().parent
ROOMS = {
    "simulate": {"simulate"},
    "formats": {"formats", "simulate"},
    "profiles": {"profiles", "formats", "simulate"},
    "adapters": {"adapters", "formats", "simulate"},
    "daemon": {"daemon", "adapters", "profiles", "formats", "simulate"},
    "learning": {"learning", "simulate"},
    "web": {"web", "daemon", "formats", "simulate"},
    "cli": {"cli", "web", "learning", "daemon", "adapters", "profiles", "formats", "simulate"},
}
FILES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
#: What would let the world into the engine; `random` only as a generator of its own.
OUTSIDE = {
    "os", "time", "datetime", "subprocess", "socket", "threading", "multiprocessing", "asyncio", "signal", "tempfile",
    "shutil", "pathlib", "io", "glob", "requests", "urllib", "http", "psutil", "zmq", "logging", "getpass", "secrets",
    "uuid",
}  # fmt: skip
GLOBAL_RANDOM = {"random", "randrange", "randint", "choice", "choices", "shuffle", "sample", "seed", "uniform", "gauss",
                 "normal", "rand", "randn", "permutation"}  # fmt: skip


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imports(path: Path, tree: ast.Module | None = None) -> Iterator[tuple[int, str]]:
    """(line, module) of everything imported, relative names made absolute: "pilotfish.room.module"."""
    package = ["pilotfish", *path.relative_to(ROOT).parts[:-1]]
    for node in import_statements(tree or tree_of(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        else:
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield node.lineno, module
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def crossings(path: Path, tree: ast.Module | None = None) -> list[str]:
    """Imports of a file that break the directions, or reach its own package by its absolute name."""
    room, wrong, tree = path.relative_to(ROOT).parts[0], [], tree or tree_of(path)
    for line, module in imports(path, tree):
        parts = module.split(".")
        if parts[0] == "pilotfish" and len(parts) > 1 and parts[1] in ROOMS and parts[1] not in ROOMS[room]:
            wrong.append(f"{name_of(path)}:{line}: {room} imports {module}")
    for node in import_statements(tree):
        named = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        named += [node.module or ""] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
        wrong += [f"{name_of(path)}:{node.lineno}: {n}: not relative" for n in named if n.split(".")[0] == "pilotfish"]
    return wrong


def outside(path: Path, tree: ast.Module | None = None) -> list[str]:
    """What a file of simulate/ takes from the outside: modules, files, global random state."""
    tree, wrong = tree or tree_of(path), []
    for line, module in imports(path, tree):
        head, _, rest = module.partition(".")
        if head in OUTSIDE or module.startswith("numpy.random") or (head == "random" and rest in GLOBAL_RANDOM):
            wrong.append(f"{name_of(path)}:{line}: imports {module}")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in ("open", "input", "print", "eval", "exec", "__import__"):
            wrong.append(f"{name_of(path)}:{node.lineno}: uses {node.id}")
        if isinstance(node, ast.Attribute) and node.attr in GLOBAL_RANDOM and ast.unparse(node.value) in (
            "random", "np.random", "numpy.random",
        ):  # fmt: skip
            wrong.append(f"{name_of(path)}:{node.lineno}: {ast.unparse(node)} is global random state")
    return wrong


def test_there_is_something_to_read() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in FILES} == set(ROOMS)
    assert len(FILES) > 50


def test_imports_run_one_way() -> None:
    assert [wrong for path in FILES for wrong in crossings(path)] == []


def imported(paths: list[Path], unwanted: Callable[[str], bool]) -> list[tuple[str, str]]:
    """(file, module) of everything unwanted that files import."""
    return [(name_of(path), module) for path in paths for _, module in imports(path) if unwanted(module)]


def test_the_daemon_imports_no_adapter_by_name() -> None:
    adapters = tuple(f"pilotfish.adapters.{name}" for name in BUILT_IN)
    daemon = [path for path in FILES if name_of(path).startswith("daemon/")]
    assert daemon and imported(daemon, lambda module: module.startswith(adapters)) == []


def test_the_simulation_knows_no_clock_and_no_outside() -> None:
    pure = [path for path in FILES if name_of(path).startswith("simulate/") and "kernels" not in path.parts]
    assert pure and [wrong for path in pure for wrong in outside(path)] == []
    assert imported(pure, lambda module: module == "pilotfish.trust") == []


def test_kernels_know_no_clock_and_no_chance() -> None:
    """One module may open files: the cache of compiled code."""
    kernels = [path for path in FILES if name_of(path).startswith("simulate/kernels/")]
    banned = ("time", "datetime", "subprocess", "socket", "threading", "random")
    assert kernels and imported(kernels, lambda m: m.split(".")[0] in banned or m.startswith("numpy.random")) == []
    others, outer = [path for path in kernels if path.name != "object_cache.py"], ("os", "pathlib", "tempfile", "io")
    assert imported(others, lambda module: module.split(".")[0] in outer or module == "pilotfish.trust") == []


@pytest.mark.parametrize(
    "room, source, wrong",
    [
        ("simulate", "from ..profiles import store", "simulate imports pilotfish.profiles"),
        ("simulate", "import pilotfish.daemon.loop", "simulate imports pilotfish.daemon.loop"),
        ("profiles", "from ..adapters.base import Adapter", "profiles imports pilotfish.adapters.base"),
        ("adapters", "def f():\n    from ..daemon import loop", "adapters imports pilotfish.daemon"),
        ("adapters", "from .. import daemon", "adapters imports pilotfish.daemon"),
        ("daemon", "from pilotfish.daemon import loop", "pilotfish.daemon: not relative"),
        ("adapters", "from ..simulate.model.job import Job", None),
        ("simulate", "from ..formats import swf", "simulate imports pilotfish.formats"),
        ("daemon", "from ..cli import plan", "daemon imports pilotfish.cli"),
        ("daemon", "from ..adapters import base\nfrom . import ipc", None),
    ],
)
def test_the_reader_of_imports_sees_what_it_should(room: str, source: str, wrong: str | None) -> None:
    said = crossings(ROOT / room / "x.py", ast.parse(source))
    assert said == [] if wrong is None else any(text.endswith(wrong) for text in said)


@pytest.mark.parametrize(
    "source, found",
    [
        ("import time", 1),
        ("from os import environ", 2),
        ("import random\nx = random.random()", 1),
        ("import random\nx = random.Random(1)", 0),
        ("import numpy as np\nnp.random.shuffle(x)", 1),
        ("import numpy as np\nnp.random.default_rng(3)", 0),
        ("def f():\n    import subprocess", 1),
        ("open('x')", 1),
        ("import math", 0),
    ],
)
def test_the_reader_of_the_outside_sees_what_it_should(source: str, found: int) -> None:
    assert len(outside(ROOT / "simulate" / "x.py", ast.parse(source))) == found
