"""`pilotfish.api` is the stable interface: its names exist, are documented, cost nothing until used, and stay."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import pilotfish
from pilotfish import api

ROOT = Path(pilotfish.__file__).resolve().parent
TREE = ast.parse((ROOT / "api.py").read_text(encoding="utf-8"))
ROOMS = {"simulate", "formats", "learning", "profiles", "adapters", "daemon"}


def imported_for_types() -> dict[str, tuple[str, str]]:
    """Public name -> (module, name there), as the type checker sees it."""
    return {
        alias.asname or alias.name: (f".{node.module}", alias.name)
        for node in ast.walk(TREE)
        if isinstance(node, ast.ImportFrom) and node.level
        for alias in node.names
    }


def test_each_public_name_stands_there_once() -> None:
    assert len(api.__all__) == len(set(api.__all__))
    assert set(dir(api)) >= set(api.__all__)


@pytest.mark.parametrize("name", api.__all__)
def test_each_name_exists_and_is_documented(name: str) -> None:
    value = getattr(api, name)
    assert value is getattr(api, name)
    assert name == "Decision" or (value.__doc__ or "").strip()


def test_each_function_with_several_parameters_explains_them() -> None:
    found = 0
    for name in api.__all__:
        made = getattr(api, name)
        own = vars(made).items() if inspect.isclass(made) else [("", made)]
        for part, function in own:
            if inspect.isfunction(function) and not part.startswith("_"):
                parameters = inspect.signature(function).parameters.keys() - {"self", "cls"}
                assert len(parameters) < 2 or "Args:" in (function.__doc__ or ""), (name, part)
                found += len(parameters) > 1
    assert found > 10


def test_type_checker_and_interpreter_see_the_same_names() -> None:
    assert imported_for_types() == api._WHERE


def test_it_imports_no_command_line() -> None:
    assert {module.split(".")[1] for module, _ in api._WHERE.values()} <= ROOMS


@pytest.mark.real
def test_the_import_alone_loads_nothing_heavy() -> None:
    heavy = ("numpy", "numba", "pydantic", "networkx", "yaml")
    code = f"import sys, pilotfish.api; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Snapshots'"):
        api.Snapshots  # noqa: B018


def test_every_reader_takes_a_path_as_text(tmp_path: Path) -> None:
    (tmp_path / "t.swf").write_text("1 0 0 5 2 -1 -1 2 9 -1 1 1 1 1 1 1 -1 -1\n")
    (tmp_path / "f.yaml").write_text("schema: pilotfish/workflow/v1\nname: f\njobs: {a: {command: [/bin/true]}}\n")
    (tmp_path / "c.yaml").write_text(
        "schema: pilotfish/cluster/v1\nname: c\nnode_types: {t: {cores: 1, memory: 1GiB, memory_bandwidth: 1GB/s}}\n"
        "nodes: [{names: n, type: t}]\n"
    )
    for read, name in (api.read_workload, "t.swf"), (api.read_workflow, "f.yaml"), (api.read_cluster, "c.yaml"):
        assert str(read(str(tmp_path / name))) == str(read(tmp_path / name))
