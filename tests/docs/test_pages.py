"""What the pages say exists: files, anchors, commands with their options, make targets, imports."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path

import pytest
import typer

from pilotfish import api
from pilotfish.cli.__main__ import app
from pilotfish.cli.lazy import UsageError
from tests.docs.pages import GENERATED, PAGES, ROOT, blocks, links, name_of, typed

TEXTS = {name_of(page): page.read_text(encoding="utf-8") for page in PAGES}
COMMANDS = sorted(
    {(name, line) for name, text in TEXTS.items() for line in typed(text) if line.startswith("pilotfish ")}
)
#: Pages that `make docs` generates.
MADE = {"api.md", "configuration.md", "metrics.md", "commands/index.md"}


def test_each_version_of_the_changelog_has_at_most_80_lines() -> None:
    _, *versions = re.split(r"^## (?=\[)", TEXTS["CHANGELOG.md"], flags=re.M)
    lengths = {version.partition("]")[0] + "]": version.count("\n") for version in versions}
    assert lengths and max(lengths.values()) <= 80, lengths


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", head).strip().lower().replace(" ", "-") for head in heads}


def test_there_are_pages_and_commands() -> None:
    assert len(PAGES) >= 20 and len(COMMANDS) >= 80


@pytest.mark.parametrize("name", TEXTS)
def test_its_links_lead_somewhere(name: str) -> None:
    for target in links(TEXTS[name]):
        path, _, anchor = target.partition("#")
        file = ((ROOT / name).parent / path).resolve() if path else ROOT / name
        if GENERATED in file.parents:
            assert file.relative_to(GENERATED).as_posix() in MADE, target
            continue
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target


@pytest.mark.parametrize(("name", "line"), COMMANDS)
def test_its_commands_parse(name: str, line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    words = words[: next((i for i, word in enumerate(words) if word in (">", "|", "<")), None)]
    command = typer.main.get_command(app)
    try:
        context = command.make_context("pilotfish", list(words))
        while hasattr(command, "resolve_command"):
            called, command, words = command.resolve_command(context, words)
            context = command.make_context(called, list(words))
    except UsageError as error:
        pytest.fail(f"{line}: {error.format_message()}")
    said = command.get_help(context)
    for word in words[: words.index("--") if "--" in words else None]:
        if word.startswith("--"):
            assert word.partition("=")[0] in said


def test_its_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    for name, text in TEXTS.items():
        named = {line.split()[1] for line in typed(text) if line.startswith("make ")}
        named |= set(re.findall(r"`make (\w+)[` ]", text))
        assert named <= targets, name


@pytest.mark.parametrize("name", TEXTS)
def test_its_python_is_valid_and_imports_the_stable_interface_alone(name: str) -> None:
    adds_code = name in ("docs/how-to/adapter.md", "docs/how-to/format.md", "docs/how-to/mapping-policy.md")
    for code in blocks(TEXTS[name], "python"):
        for node in ast.walk(ast.parse(code)):
            if not isinstance(node, ast.ImportFrom):
                continue
            module = node.module or ""
            if module.startswith("pilotfish") and not adds_code:
                assert module == "pilotfish.api" and {alias.name for alias in node.names} <= set(api.__all__)


@pytest.mark.parametrize("name", TEXTS)
def test_nothing_is_left_to_be_filled_in(name: str) -> None:
    assert not re.search(r"\b(TODO|FIXME|XXX|TBD)\b", TEXTS[name])


def test_each_page_is_in_the_contents() -> None:
    shown = set(re.findall(r"^([\w/-]+)$", TEXTS["docs/index.md"], re.M))
    pages = {name.removeprefix("docs/").removesuffix(".md") for name in TEXTS if name.startswith("docs/")}
    assert pages - shown == {"index"}


def test_the_readme_is_short_and_shows_the_main_commands() -> None:
    readme = TEXTS["README.md"]
    assert len(readme.splitlines()) <= 150
    shown = {line.split()[1] for line in typed(readme) if line.startswith("pilotfish ")}
    assert shown >= {"plan", "run", "doctor", "daemon", "submit", "explain", "accuracy", "simulate"}
    assert {"make run", "make test"} <= {" ".join(line.split()[:2]) for line in typed(readme)}
