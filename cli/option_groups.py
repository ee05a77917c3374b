"""Groups of options that several commands share: a dataclass whose fields are options, with a heading in the help.

Rule: an option is declared and checked where its value is kept; a command names the groups that it takes.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import MISSING, fields
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, get_args, get_type_hints


def grouped(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command for typer whose parameters are the fields of the groups that `command` takes.

    Args:
        command: a function; each of its parameters is a parameter as typer takes it, or a group: a dataclass of options
            with a HEADING, whose `__post_init__` raises typer.BadParameter for a wrong value.
    """
    hints = get_type_hints(command, include_extras=True)
    parameters = signature(command).parameters
    groups = {name: hints[name] for name in parameters if hasattr(hints[name], "HEADING")}
    flat = list[Parameter]()
    for name, parameter in parameters.items():
        flat += _options(groups[name]) if name in groups else [parameter.replace(annotation=hints[name])]

    def run(**values: Any) -> Any:
        parts = {
            name: group(**{part.name: values.pop(part.name) for part in fields(group)})
            for name, group in groups.items()
        }
        return command(**parts, **values)

    run.__doc__, run.__name__ = command.__doc__, command.__name__
    run.__annotations__.clear()
    run.__annotations__.update((parameter.name, parameter.annotation) for parameter in flat)
    vars(run)["__signature__"] = Signature([one.replace(kind=Parameter.KEYWORD_ONLY) for one in flat])
    return run


def _options(group: Any) -> list[Parameter]:
    """Return the fields of a group as parameters, with its heading."""
    hints, parameters = get_type_hints(group, include_extras=True), []
    for part in fields(group):
        kind, declared = get_args(hints[part.name])
        declared = copy(declared)
        declared.rich_help_panel = group.HEADING
        default = Parameter.empty if part.default is MISSING else part.default
        parameters.append(
            Parameter(part.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, declared])
        )
    return parameters
