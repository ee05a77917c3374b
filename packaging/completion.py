"""Print the completion for bash, made from the command line's own parser: of commands, options, and files.

python packaging/completion.py >pilotfish
"""

from __future__ import annotations

import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HEAD = """# Completion of pilotfish for bash, made from its parser.
_pilotfish() {
    local word=${COMP_WORDS[COMP_CWORD]} path=pilotfish next i
    for ((i = 1; i < COMP_CWORD; i++)); do
        next="$path ${COMP_WORDS[i]}"
        case "$next" in
"""
MIDDLE = """            path=$next ;;
        esac
    done
    local words=
    case "$path" in
"""
TAIL = """    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    [ ${#COMPREPLY[@]} -gt 0 ] || [ "${word#-}" != "$word" ] || COMPREPLY=($(compgen -f -- "$word"))
}
complete -o filenames -F _pilotfish pilotfish
"""


def completion(root: Any) -> str:
    """Return the completion of a command and all below it, as `docs/generate.py` reads them."""
    commands = list(_commands(root))
    paths = "|".join(f'"{" ".join(command.path)}"' for command in commands if len(command.path) > 1)
    rows = [f'        "{" ".join(command.path)}") words="{" ".join(_words(command))}" ;;\n' for command in commands]
    return f"{HEAD}            {paths})\n{MIDDLE}{''.join(rows)}{TAIL}"


def _commands(command: Any) -> Iterator[Any]:
    yield command
    for child in command.commands:
        yield from _commands(child)


def _words(command: Any) -> list[str]:
    options = {word for names, _ in command.options for word in re.findall(r"(?<![\w-])--[a-z][\w-]*", names)}
    return [*(child.path[-1] for child in command.commands), *sorted(options | {"--help"})]


if __name__ == "__main__":
    generate = runpy.run_path(str(Path(__file__).resolve().parent.parent / "docs/generate.py"))
    sys.stdout.write(completion(generate["command_tree"]()))
