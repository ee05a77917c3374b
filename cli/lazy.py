"""A command group that imports a command's module only when that command is invoked.

Rule: listing commands costs no import; the one-line summaries are written where the commands are listed.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}


@dataclass(frozen=True, slots=True)
class Lazy:
    """Where a command lives: a module relative to this package, the attribute in it, and one line for the
    list.

    The attribute is a function (a command) or a `typer.Typer` (a group of commands).
    """

    module: str
    attribute: str
    summary: str

    def load(self, name: str) -> Any:
        """Import the module and return the click command, named `name`."""
        found = getattr(importlib.import_module(self.module, __package__), self.attribute)
        if isinstance(found, typer.Typer):
            found.rich_markup_mode = None
            group = typer.main.get_group(found)
            group.name = name
            return group
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(name, context_settings=HELP_OPTIONS)(found)
        return typer.main.get_command(app)


class LazyGroup(TyperGroup):
    """The top-level group; a subclass says in `lazy` which commands there are, in the order of the list."""

    lazy: ClassVar[dict[str, Lazy]] = {}

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, command in self.lazy.items():
            self.commands[name] = TyperCommand(name, help=command.summary, rich_markup_mode=None)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Find the command by its stand-in, then put the real one in its place."""
        name, command, rest = super().resolve_command(ctx, args)
        if name in self.lazy:
            command = self.lazy[name].load(name)
        return name, command, rest
