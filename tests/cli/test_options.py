"""Options of all commands: one name, one metavar and one sentence each; help in sections; completion."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from pilotfish.cli import options
from pilotfish.cli.__main__ import USAGE, Pilotfish, app, main
from pilotfish.cli.lazy import help_rows
from pilotfish.cli.moved_options import MOVED

#: Options whose meaning depends on the command: two kinds of policies, files and folders to write, names of things, and
#: what is to be small.
DIFFERENT = {
    "--anonymise",
    "--partition",
    "--policy",
    "--objective",
    "--out",
    "--adapter",
    "--name",
    "--compare",
    "--user",
    "--set",
    "--repeat",
    "--until",
    "--since",
    "--export",
    "--force",
    "--as",
}


def commands() -> Iterator[tuple[str, Any]]:
    """Every command and its full name."""
    root: Any = typer.main.get_command(app)
    for name in Pilotfish.lazy:
        command = root.resolve_command(root.make_context("pilotfish", [name], resilient_parsing=True), [name])[1]
        if hasattr(command, "commands"):
            yield from ((f"{name} {part}", command.commands[part]) for part in command.commands)
        else:
            yield name, command


def groups() -> Iterator[tuple[str, Any]]:
    """Every group of commands and its name."""
    root: Any = typer.main.get_command(app)
    for name in sorted({name.partition(" ")[0] for name, _ in commands() if " " in name}):
        yield name, root.resolve_command(root.make_context("pilotfish", [name], resilient_parsing=True), [name])[1]


def test_an_option_has_the_same_metavar_and_sentence_in_every_command() -> None:
    meanings: dict[str, dict[tuple[str, str], list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, command in commands():
        for parameter in command.params:
            if parameter.param_type_name == "option" and not getattr(parameter, "hidden", False):
                meanings[parameter.opts[0]][parameter.metavar or "", parameter.help or ""].append(name)
    assert len(meanings) > 50
    assert {option: dict(places) for option, places in meanings.items() if len(places) > 1}.keys() == DIFFERENT


def test_a_file_without_a_name_is_a_wrong_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    files = 0
    for name, command in commands():
        for empty in (one for one in command.params if one.type.name == "path"):
            words = []
            parts = [one for one in command.params if one.required or one is empty]
            parts.sort(key=lambda one: one.param_type_name == "argument")  # options first
            for one in parts:
                words += [one.opts[0]] * (one.param_type_name == "option") + ["" if one is empty else "1"]
            assert main([*name.split(), *words]) == USAGE, (name, words)
            message = " ".join(capsys.readouterr().err.split())
            assert "an empty name (allowed: a file or folder)" in message, (name, words, message)
            files += 1
    assert files > 80


def test_what_is_no_number_is_a_wrong_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    numbers = 0
    for name, command in commands():
        for option in (one for one in command.params if one.type.name in ("float", "float range")):
            if str(option.metavar).startswith("["):
                continue  # `--watch nan` is --watch, and a workflow named nan
            parts = [one for one in command.params if one.required]
            parts.sort(key=lambda one: one.param_type_name == "argument")  # options first
            words = [option.opts[0], "nan"] if option.param_type_name == "option" else []
            for part in parts:
                words += [part.opts[0]] * (part.param_type_name == "option") + ["nan" if part is option else "1"]
            assert main([*name.split(), *words]) == USAGE, (name, words)
            assert "nan" in capsys.readouterr().err, (name, words)
            numbers += 1
    assert numbers > 30


def test_a_letter_means_the_same_option_everywhere() -> None:
    letters = defaultdict(set)
    for _, command in commands():
        for parameter in command.params:
            names = [name for name in parameter.opts if name.startswith("--")]
            for letter in (name for name in parameter.opts if len(name) == 2):
                letters[letter].update(names)
    assert letters["-c"] == {"--cluster"}
    assert all(len(names) == 1 for names in letters.values()), letters


def test_pictures_have_one_option_and_each_option_one_name() -> None:
    plots = set()
    for name, command in commands():
        for parameter in command.params:
            if parameter.param_type_name == "option" and not parameter.hidden:
                assert len([spelling for spelling in parameter.opts if spelling.startswith("--")]) == 1, (
                    name,
                    parameter.opts,
                )
                if ".svg" in parameter.help or ".html" in parameter.help or "draw" in parameter.help.lower().split():
                    plots.add((name, parameter.opts[0]))
    drawing_options = {(name, option) for name, option in plots if option != "--plot"}
    assert drawing_options == {("run", "--live")} and len(plots) > 5


def test_every_option_has_a_sentence_and_every_default_is_shown() -> None:
    for name, command in commands():
        for parameter in command.params:
            if parameter.param_type_name == "option" and "--help" not in parameter.opts:
                assert parameter.help and parameter.help.endswith("."), (name, parameter.opts)
                assert parameter.show_default and "default:" not in parameter.help, (name, parameter.opts)


@pytest.mark.parametrize("cells", [80, 40, 200])
def test_help_has_metavars_and_no_types_and_fits(monkeypatch: pytest.MonkeyPatch, cells: int) -> None:
    monkeypatch.setenv("COLUMNS", str(cells))
    root: Any = typer.main.get_command(app)
    walked = 0
    for name, command in [*commands(), *groups(), ("", root)]:
        context = command.make_context(f"pilotfish {name}".strip(), [], resilient_parsing=True)
        text = command.get_help(context)
        assert max(map(len, text.splitlines())) <= max(cells, 80), name
        assert not re.search(r"<\w+(\[|>)|\(none\)|default: [(]|\{|None", text), name
        if "COMMAND [ARGS]" not in text or name:
            assert f"  pilotfish {name}" in text.partition("Examples:")[2], name
        for parameter in command.params:
            if parameter.param_type_name == "argument" or not parameter.is_flag:
                assert (
                    re.search("[A-Z]", parameter.metavar or "") and parameter.metavar in text
                ) or parameter.hidden, name
        walked += 1
    assert walked > 30


def test_usage_errors_are_wrapped(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for argv in (["simulate", "x.swf", "--policy", "esay"], ["plan"], ["plot", "gnatt", "run"], ["generate", "x"]):
        assert main(argv) == 64
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) > 2 and max(map(len, lines)) <= 80, lines


def test_a_command_that_replays_can_be_surveyed() -> None:
    tree = dict(commands())
    for name in ("simulate", "replay", "batsim"):
        command = tree[name]
        rows = help_rows(command, command.make_context(name, [], resilient_parsing=True))
        assert sum(map(len, rows.values())) <= 20 and len(rows) >= 5, name  # with TRACE and --help
        assert rows["Arguments"][0][0] == "TRACE" and rows["Options"] == [("-h, --help", "Show this message and exit.")]


@pytest.mark.parametrize(("command", "option"), [(name, one) for name, names in MOVED.items() for one in names])
def test_an_old_spelling_is_a_usage_error_that_names_the_new_one(
    command: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = {name.split()[-1]: name.split() for name, _ in commands()}
    assert main([*tree[command], "trace.swf", option, "1"]) == 64
    *_, error = " ".join(capsys.readouterr().err.split()).partition("Error: ")
    assert error == f"Invalid value for '{option}': it is now {MOVED[command][option]}"
    spellings = {
        name.split()[-1]: {spelling for one in command.params for spelling in one.opts} for name, command in commands()
    }
    words = MOVED[command][option].replace(";", "").replace(",", "").split()
    place = words[1] if words[0] == "pilotfish" else command
    assert option not in spellings[command] and {word for word in words if word.startswith("--")} <= spellings[place]


def test_the_commands_are_listed_in_sections(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    places = [text.index(f"\n{heading}:\n") for heading in ("Workflows", "Profiles", "Service", "Replay", "Site")]
    assert places == sorted(places) and text.index("  simulate ") > places[3]
    assert sorted(name for names in Pilotfish.sections.values() for name in names) == sorted(Pilotfish.lazy)


def complete(line: str) -> set[str]:
    """What bash offers at the end of a line."""
    words = line.split(" ")
    environment = {**os.environ, "_PILOTFISH_COMPLETE": "complete_bash", "COMP_WORDS": line}
    command = [sys.executable, "-m", "pilotfish.cli"]
    changes = {**environment, "COMP_CWORD": str(len(words) - 1)}
    return set(subprocess.run(command, env=changes, capture_output=True, text=True, timeout=60).stdout.split())


@pytest.mark.real
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("pilotfish plan --policy s", {"slf", "strict"}),
        (
            "pilotfish simulate --policy ",
            {"easy", "conservative", "strict", "pairs", "nodes", "mom", "let", "slf", "loadavg", "lookahead"},
        ),
        ("pilotfish plot ", {"gantt", "utilisation", "queue", "energy", "compare"}),
        ("pilotfish generate lublin --kind b", {"both", "batch"}),
        ("pilotfish policies cons", {"conservative"}),
        ("pilotfish generate stream --shape w", {"wide"}),
        ("pilotfish warm -k mapping.e", {"mapping.entry"}),
        ("pilotfish doctor --adapter ", {"local", "oar", "slurm"}),
    ],
)
def test_words_are_completed(line: str, offered: set[str]) -> None:
    assert complete(line) == offered


@pytest.mark.real
def test_nothing_is_completed_where_no_service_answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("PILOTFISH_SOCKET", str(tmp_path / "none"))
    assert options.completing(options.workflow_ids)("") == [] == options.completing(options.job_names)("x")


def test_a_seed_beyond_the_generators_range_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "dag.yaml", "-c", "c.yaml", "--seed", str(2**63)]) == 64
    assert f"(allowed: 0 to {2**63 - 1})" in " ".join(capsys.readouterr().err.split())
