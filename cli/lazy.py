"""A command group that imports the module of a command only when the command is invoked.

Rule: listing the commands imports no command; the summaries are written next to the commands' names.
"""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from .moved_options import moved

F = TypeVar("F", bound=Callable[..., Any])
#: Base of click's errors about the command line, in every version of typer.
UsageError: Any = typer.BadParameter.__mro__[1]
#: A default in words, as typer writes it.
_IN_WORDS = re.compile(r"default: \((.*?)\)(?=[];])")
HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}


def help_rows(command: Any, ctx: Any) -> dict[str, list[tuple[str, str]]]:
    """Return (how it is written, what it means) of each parameter, under its heading.

    The headings are "Arguments", those of the groups of options (`option_groups`), and "Options".
    """
    rows: dict[str, list[tuple[str, str]]] = {"Arguments": []}
    for param in command.get_params(ctx):
        if record := param.get_help_record(ctx):
            is_argument = param.param_type_name == "argument"
            heading = "Arguments" if is_argument else getattr(param, "rich_help_panel", None) or "Options"
            text = _IN_WORDS.sub(r"default: \1", record[1])
            rows.setdefault(heading, []).append((param.metavar if is_argument else record[0], text))
    return rows


#: Seconds of an option `[SECONDS]` that stands alone.
SECONDS = "2"
_NUMBER = re.compile(r"[-+]?[\d.]+(e[-+]?\d+)?", re.IGNORECASE)


def _with_values(args: list[str], names: Collection[str]) -> Iterator[tuple[str, ...]]:
    """Yield each word, with SECONDS after each of the names that no number follows; `--` ends the options."""
    options = args[: args.index("--")] if "--" in args else args
    for i, word in enumerate(args):
        alone = i < len(options) and word in names and not any(map(_NUMBER.fullmatch, args[i + 1 : i + 2]))
        yield (word, SECONDS) if alone else (word,)


class Command(TyperCommand):
    """A command whose help shows metavars, and neither Python's types nor brackets around defaults in words."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line; an option that may stand without its value, `--watch [SECONDS]`, gets its default."""
        names = {name for param in self.params if str(param.metavar).startswith("[S") for name in param.opts}
        words = [word for pair in _with_values(args, names) for word in pair]
        try:
            remaining = list(super().parse_args(ctx, words))
        except UsageError as error:
            option = str(getattr(error, "option_name", ""))
            if sentence := moved(self.name, option):
                raise typer.BadParameter(sentence, ctx, param_hint=f"'{option}'") from None
            raise
        for param in self.params:
            value = ctx.params.get(param.name)
            if isinstance(value, float) and math.isnan(value):
                raise typer.BadParameter("nan (allowed: a number)", ctx, param)
            if param.type.name == "path" and (value == "" or (isinstance(value, list | tuple) and "" in value)):
                raise typer.BadParameter("an empty name (allowed: a file or folder)", ctx, param)
        return remaining

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line: optional arguments in brackets, `...` after repeatable ones."""
        pieces = ["[OPTIONS]"]
        for param in self.get_params(ctx):
            if param.param_type_name == "argument":
                word = str(param.metavar)
                word += "" if param.nargs == 1 or word.endswith("...") else "..."
                pieces.append(word if param.required else f"[{word}]")
        return pieces

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and the options."""
        for heading, records in help_rows(self, ctx).items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


class CommandGroup(typer.Typer):
    """An empty group of commands."""

    def __init__(self, help: str) -> None:
        super().__init__(no_args_is_help=True, rich_markup_mode=None, context_settings=HELP_OPTIONS, help=help)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[F], F]:
        """Add a command, see `typer.Typer.command`."""
        return super().command(name, cls=Command, **settings)


@dataclass(frozen=True, slots=True)
class Lazy:
    """The place where a command is defined.

    Args:
        module: its module, relative to this package.
        attribute: a function (a command) or a `typer.Typer` (a group of commands) in it.
        summary: its line in the list of commands.
    """

    module: str
    attribute: str
    summary: str

    @cache  # noqa: B019  # of the few that the table of commands holds
    def load(self, name: str) -> Any:
        """Import the module and return the click command, named `name`."""
        target = getattr(importlib.import_module(self.module, __package__), self.attribute)
        if isinstance(target, typer.Typer):
            group = typer.main.get_group(target)
            group.name = name
            return group
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(name, cls=Command, context_settings=HELP_OPTIONS)(target)
        return typer.main.get_command(app)


class LazyGroup(TyperGroup):
    """The top-level group: a subclass lists its commands in `lazy`, and under headings in `sections`."""

    lazy: ClassVar[Mapping[str, Lazy]] = {}
    sections: ClassVar[Mapping[str, Mapping[str, Lazy]]] = {}

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, command in self.lazy.items():
            self.commands[name] = TyperCommand(name, help=command.summary, rich_markup_mode=None)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Find a command by its placeholder, and load it."""
        name, command, remaining = super().resolve_command(ctx, args)
        if name is not None and name in self.lazy:
            command = self.lazy[name].load(name)
        return name, command, remaining

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands under their headings."""
        widest = max(map(len, self.lazy))
        for heading, commands in self.sections.items():
            with formatter.section(heading):
                formatter.write_dl([(f"{name:<{widest}}", command.summary) for name, command in commands.items()])
