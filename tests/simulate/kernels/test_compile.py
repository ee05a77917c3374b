"""What is private of numba is in one module, and what it changes in numba it puts back."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pilotfish
from pilotfish.simulate.kernels.object_cache import KERNELS
from tests.support.sources import tree_of

ROOT = Path(pilotfish.__file__).resolve().parent
OWNER = "simulate/kernels/compile.py"
PUBLIC = ("numba", "numba.extending")
#: Names that only numba's insides have.
PRIVATE = ("_tm", "_final_module", "_optimize_final_module", "_finalize_specific", "_add_module", "set_env")
#: What fits into 32 bits; few values, so that many are equal.
WHOLE = st.one_of(st.integers(-2, 2), st.integers(-(2**31), 2**31 - 1))
ROOMS = ("simulate", "profiles", "daemon", "adapters")
FILES = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]


def private(tree: ast.Module) -> list[str]:
    """What a module takes of numba that is private."""
    found = []
    for node in ast.walk(tree):
        names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
        found += [name for name in names if name.split(".")[0] == "numba" and name not in PUBLIC]
        found += [node.attr] if isinstance(node, ast.Attribute) and node.attr in PRIVATE else []
    return found


@pytest.mark.xdist_group("sources")
def test_one_module_uses_private_parts_of_numba() -> None:
    using = {path.relative_to(ROOT).as_posix() for path in FILES if private(tree_of(path))}
    assert using == {OWNER}
    assert not any("NRT_" in path.read_text() for path in FILES if path.relative_to(ROOT).as_posix() != OWNER)


@pytest.mark.parametrize(
    ("source", "count"),
    [("from numba.core import types", 1), ("import numba.cpython.unsafe", 1), ("x.codegen._tm", 1), ("import numba", 0),
     ("from numba import njit, types", 0), ("from numba.extending import overload", 0), ("from .numba import x", 0)],
)  # fmt: skip
def test_the_search_finds_what_it_should(source: str, count: int) -> None:
    assert len(private(ast.parse(source))) == count


def test_the_tested_range_is_that_of_the_package() -> None:
    from pilotfish.simulate.kernels.compile import TESTED

    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    oldest, beyond = (".".join(map(str, each)) for each in TESTED)
    assert f"numba>={oldest},<{beyond}" in listed


@pytest.mark.real
def test_numba_is_as_it_was_after_a_kernel() -> None:
    """Other functions are compiled and run in the same process, with the same functions of numba in them."""
    code = """
import gc
import numpy as np
from numba import njit
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from pilotfish.simulate.kernels import compile as native
from pilotfish.simulate.kernels.swf import parser as swf

def state():
    names = ("_optimize_final_module", "_finalize_specific", "_add_module", "set_env")
    owners = JITCodeLibrary, JITCPUCodegen
    return [getattr(owner, name, None) for owner in owners for name in names], gc.get_threshold()

before = state()
native.object_code(swf.call, swf.SIGNATURES["swf.parser"])
assert state() == before

@njit
def total(x):
    if len(x) > 5:
        raise ValueError("too long")
    return min(x[0], 7.0) + max(x.sum(), 0.0)

assert total(np.ones(3)) == 4.0
try:
    total(np.ones(9))
except ValueError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "too long\n"), done.stderr


@pytest.fixture(scope="module")
def compared() -> Any:
    from numba import njit

    from pilotfish.simulate.kernels.compile import compare_64

    return njit(lambda column, first, bound: compare_64(column, first, bound))


@given(st.lists(WHOLE, min_size=64, max_size=90), WHOLE, st.data())
def test_comparing_64_cells(compared: Any, cells: list[int], bound: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(cells) - 64))
    bits = compared(np.array(cells, np.int32), first, bound)
    assert [bits >> k & 1 for k in range(64)] == [cell >= bound for cell in cells[first : first + 64]]


def test_every_kernel_module_is_listed() -> None:
    folder = ROOT / "simulate" / "kernels"
    signed = {}
    for path in folder.rglob("*.py"):
        tree, module = ast.parse(path.read_text()), ".".join(path.relative_to(folder).with_suffix("").parts)
        for line in tree.body:
            if isinstance(line, ast.Assign) and ast.unparse(line.targets) == "SIGNATURES":
                assert isinstance(line.value, ast.Dict)
                (takes,) = (len(f.args.args) for f in tree.body if isinstance(f, ast.FunctionDef) and f.name == "call")
                signed |= {ast.literal_eval(name): (module, takes) for name in line.value.keys}
    listed = {name: (one.module or name, one.integers + one.reals) for name, one in KERNELS.items()}
    assert signed == listed


def called_functions(call: Any, signature: tuple[Any, ...]) -> list[Any]:
    """Return the Python functions of a kernel, found by the names in them; `jit.by_type` chooses by the signature."""
    functions, waiting = list[Any](), [call]
    while waiting:
        value = waiting.pop()
        cells = getattr(value, "__closure__", None) or ()
        if isinstance(value, FunctionType) and value.__qualname__.startswith("by_type."):
            choice = dict(zip(value.__code__.co_freevars, (cell.cell_contents for cell in cells), strict=True))
            waiting.append(choice["special" if any(map(choice["test"], signature)) else "general"])
        elif (function := getattr(value, "py_func", None)) and function not in functions:
            functions.append(function)
            names = function.__code__.co_names
            seen = [function.__globals__[name] for name in names if name in function.__globals__]
            inside = [
                getattr(module, name, None) for module in seen if isinstance(module, ModuleType) for name in names
            ]
            waiting += [*seen, *inside, *(cell.cell_contents for cell in function.__closure__ or ())]
    return [function for function in functions if function.__module__.startswith("pilotfish.")]


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_lines_of_a_kernel_are_those_of_its_functions(kernel: str) -> None:
    """The remaining time of a compilation rests on them. After a change of the kernels, write the new number there."""
    from pilotfish.simulate.kernels.compile import lines_of

    module = import_module(f"pilotfish.simulate.kernels.{KERNELS[kernel].module or kernel}")
    lines = sum(map(lines_of, called_functions(module.call, module.SIGNATURES[kernel])))
    assert abs(KERNELS[kernel].lines / lines - 1.0) < 0.05, f"object_cache.KERNELS: {kernel} has {lines} lines"
