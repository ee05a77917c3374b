"""The counting checks of `tests.lint`: vague names, folders that import each other, questions for a policy's kind."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.lint.layout import import_graph, mutual_folders, policy_checks, strays
from tests.lint.local_names import check, vague_functions

VAGUE = "def f(jobs):\n    found = [job for job in jobs]\n    return found\n"


@pytest.mark.parametrize(
    "body",
    [
        "found = 1", "found: int = 1", "found += 1", "(a, found), b = x", "a, *found = x", "a = [found for found in x]",
        "a = {found: 0 for _, found in x}", "for found in x: pass", "with x as found: pass", "if (found := x): pass",
        "a = lambda: (found := x)", "match x:\n  case [found, 1]: pass", "match x:\n  case [*found]: pass",
        "try: pass\n except E as found: pass",
    ],
)  # fmt: skip
def test_each_binding_of_a_vague_name_is_found(body: str) -> None:
    code = f"async def f(x):\n {body}\n"
    assert [*vague_functions(ast.parse(code))] == [("f", ["found"])]


@pytest.mark.parametrize(
    "code",
    [
        "def f(found): found = found or 1", "def f(*found): found = 1", "def f(*, found): found = 1",
        "def f(**found): found = 1", "def f(found, /): found = 1", "def f(x): return lambda found: found",
        "def f(x): x.found = 1", "def f(x): x[found] = 1", "def f(x): return g(found=x)",
        "def f(x):\n class A:\n  found = 1", "found = 1", "def f(x): found_nodes = 1", "def f(x): del found",
    ],
)  # fmt: skip
def test_parameters_attributes_and_other_scopes_are_no_local_variables(code: str) -> None:
    assert [*vague_functions(ast.parse(code))] == []


def test_a_name_counts_for_the_function_that_binds_it() -> None:
    inner = "def f(x):\n def g():\n  made = said = 1\n  return made\n return g"
    assert [*vague_functions(ast.parse(inner))] == [("g", ["made", "said"])]


def test_a_room_may_have_neither_more_nor_fewer_than_its_number(tmp_path: Path) -> None:
    (tmp_path / "cli").mkdir()
    (tmp_path / "cli/a.py").write_text(VAGUE + VAGUE)
    (tmp_path / "api.py").write_text(VAGUE)
    (tmp_path / "notes.md").write_text(VAGUE)
    files = ["api.py", "cli/a.py", "notes.md"]
    assert [*check(tmp_path, files, {"root": 1, "cli": 2, "daemon": 0})] == []
    (fewer,) = check(tmp_path, files, {"root": 1, "cli": 3})
    assert "lower the number from 3 to 2" in fewer and '["cli"]' in fewer
    *functions, more = check(tmp_path, files, {"root": 1, "cli": 1})
    assert functions == ["cli/a.py: f binds found"] * 2
    assert '["cli"]: 2 functions' in more and "more than 1" in more


def test_sibling_folders_that_import_each_other_are_counted_once(tmp_path: Path) -> None:
    files = {
        "cli/a/one.py": "from ..b.inner import two",
        "cli/b/inner/two.py": "",
        "cli/b/three.py": "def f():\n    from ..a.four import x",
        "cli/a/four.py": "from ..c import five",
        "cli/c/five.py": "from ...daemon.a import six",
        "cli/seven.py": "from .a import one",
        "daemon/a/six.py": "from ...cli.a import four",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    graph = import_graph(tmp_path, files)
    assert [*mutual_folders(graph, 1)] == []
    pair, more = mutual_folders(graph, 0)
    assert pair.startswith("cli/a <-> cli/b") and "1 pairs" in more
    (fewer,) = mutual_folders(graph, 2)
    assert "lower the number from 2 to 1" in fewer


def test_questions_for_the_kind_of_a_policy_are_counted(tmp_path: Path) -> None:
    kinds = "class Easy: ...\nclass Strict: ...\nQueueing = Easy | Strict\n"
    asks = "isinstance(policy, Easy)\nisinstance(policy, specs.Strict | int)\nissubclass(kind, Queueing)\nisinstance(policy, int)"
    files = {"simulate/queue_policies/policy_specs.py": kinds, "cli/asks.py": asks}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert [*policy_checks(tmp_path, files, 3)] == []
    (more,) = policy_checks(tmp_path, files, 2)
    assert more.startswith("cli/asks.py:1, cli/asks.py:2, cli/asks.py:3: more than 2")
    (fewer,) = policy_checks(tmp_path, files, 4)
    assert "lower the number from 4 to 3" in fewer


@pytest.mark.parametrize("name", ["o.csv", "site/slurm.conf", "setup.cfg", "Docs/notes.md"])
def test_the_root_holds_only_what_is_listed(name: str) -> None:
    listed = ["README.md", "simulate/sweep.py", "docs/setup.cfg", "tests/o.csv", ".ci/run"]
    assert [*strays(listed)] == []
    (finding,) = strays([*listed, name])
    assert finding.startswith(f"{name.split('/')[0]}: not expected in the root")
