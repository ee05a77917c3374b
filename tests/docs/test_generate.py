"""docs/generate.py: the reference says what the product has, whole and in a form that Sphinx and man take."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from pilotfish import api
from pilotfish.cli.__main__ import Pilotfish
from pilotfish.daemon.config import DaemonConfig, load_config
from tests.docs.pages import ROOT, blocks


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(generate: ModuleType) -> dict[str, str]:
    return generate.pages()


def test_each_command_has_a_page_with_every_option(generate: ModuleType, pages: dict[str, str]) -> None:
    assert {f"commands/{name}.md" for name in Pilotfish.lazy} <= pages.keys()
    assert "`-c, --cluster FILE`" in pages["commands/plan.md"] and "default: lookahead" in pages["commands/plan.md"]
    assert "## pilotfish profile run" in pages["commands/profile.md"]
    for command in generate.command_tree().commands:
        assert command.summary and command.text and command.options, command.path


@pytest.mark.real
def test_each_command_has_a_manual_page(generate: ModuleType, tmp_path: Path) -> None:
    found = generate.man_pages()
    assert found.keys() == {"pilotfish.1", *(f"pilotfish-{name}.1" for name in Pilotfish.lazy)}
    assert ".SH EXIT STATUS" in found["pilotfish-plan.1"] and r"\-\-cluster" in found["pilotfish-plan.1"]
    for name, text in found.items():
        assert not re.search(r"^\.(?!TH|SH|PP|TP|B|nf|fi)", text, re.M), name
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed: the manual pages were NOT formatted")
    for name, text in found.items():
        done = subprocess.run(["groff", "-man", "-ww", "-Tutf8"], input=text, capture_output=True, text=True)
        assert done.returncode == 0 and done.stderr == "", name


def test_every_key_of_the_configuration_has_a_meaning(generate: ModuleType, pages: dict[str, str]) -> None:
    rows = re.findall(r"^\| `([\w.]+)` \|(.*)\|$", pages["configuration.md"], re.M)
    assert len(rows) >= 50
    for name, cells in rows:
        assert cells.rpartition("|")[2].strip(), f"{name} is not explained in the sample"
    names = {name.split(".")[0] for name, _ in rows}
    assert names >= set(DaemonConfig.model_fields)
    defaults = dict(rows)
    assert "| `20` |" in defaults["guard.window"] and "at most 1000" in defaults["guard.window"]


def test_the_smallest_configuration_is_one(pages: dict[str, str], tmp_path: Path) -> None:
    (text,) = blocks(pages["configuration.md"], "yaml")
    (tmp_path / "pilotfish.yaml").write_text(text)
    assert len(text.splitlines()) == 2
    assert load_config(tmp_path / "pilotfish.yaml").cluster == str(tmp_path / "cluster.yaml")


def test_meanings_are_read_from_the_comments_of_a_sample(generate: ModuleType) -> None:
    text = "# Head.\n\na:\n  # First line\n  # and second.\n  b: 1\n  # c: 2\n  d: 3  # behind\n# e: shown\n"
    assert generate.meanings(text, lambda name: name == "a.c") == {
        "a": "", "a.b": "First line and second.", "a.c": "", "a.d": "behind",
    }  # fmt: skip


def test_metrics_are_named_once_with_a_meaning(generate: ModuleType) -> None:
    rows = generate.metric_rows()
    names = [name for name, *_ in rows]
    assert len(names) == len(set(names)) >= 25 and "pilotfish_decisions_total" in names
    assert all(name.startswith("pilotfish_") and text for name, _, _, text in rows)
    assert {name: labels for name, _, labels, _ in rows}["pilotfish_decisions_total"] == "action, outcome"


def test_the_page_of_the_python_interface_has_every_name_once(generate: ModuleType, pages: dict[str, str]) -> None:
    shown = re.findall(r"^### (\w+)$", pages["api.md"], re.M)
    assert sorted(shown) == sorted(api.__all__)
    assert "decision_time: float | None = 0.0" in pages["api.md"]


def test_a_docstring_becomes_lists(generate: ModuleType) -> None:
    text = "Return it.\n\nArgs:\n    x: how many,\n        at most 3.\n\nRaises:\n    ConfigError: a *bad* one.\n"
    assert generate.docstring(text) == (
        "Return it.\n\nArgs:\n\n- `x`: how many, at most 3.\n\nRaises:\n\n- `ConfigError`: a \\*bad\\* one.\n"
    )


def test_no_page_has_an_address_of_an_object(generate: ModuleType) -> None:
    pages = generate.pages()
    assert [name for name, text in pages.items() if re.search(r"\bat 0x[0-9a-f]+", text)] == []
    assert "progress=..., clock=..." in pages["api.md"]


@pytest.mark.real
def test_the_site_builds_without_a_warning(generate: ModuleType, tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="Sphinx is not installed: the site was NOT built")
    site = shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns("generated"))
    for folder in ("systemd", "monitoring"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.copy(ROOT / "__init__.py", tmp_path)
    generate.write(site / "reference" / "generated", generate.pages())
    argv = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-n", "-b", "html", site, tmp_path / "out"]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "lookahead" in (tmp_path / "out" / "reference" / "generated" / "commands" / "plan.html").read_text()
    assert (
        "lookahead" in (tmp_path / "out" / "searchindex.js").read_text() and (tmp_path / "out" / "search.html").exists()
    )
    for page in (tmp_path / "out").rglob("*.html"):
        loads = re.findall(r"<(?:script|img|iframe|link)[^>]*\b(?:src|href)=.([^ >]*)", page.read_text())
        assert [place for place in loads if re.match(r"(https?:)?//", place)] == [], page
    for style in (tmp_path / "out").rglob("*.css"):
        assert not re.search(r"url\(\W?(https?:)?//|@import", style.read_text()), style
