"""The words of a command that say what it does, and those that may name its input files."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath

_INTERPRETER = re.compile(r"(python|perl|ruby|bash|sh|dash|zsh|ksh|Rscript|julia|node|lua)[0-9.]*")
#: A variable that is set, words that a program may follow, and options of `env` with an argument.
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\+?=(.*)", re.DOTALL)
_BEFORE_PROGRAM = frozenset(("env", "export", "exec", "nohup", "time", "then", "else", "do", "{", "(", "!"))
_WITH_ARGUMENT = frozenset(("-u", "--unset", "-C", "--chdir"))
#: In the usage of a job, before the place of a word that names a file: its bytes.
INPUT = "input:"
#: What stands before a file that is written.
_WRITES = re.compile(r"[0-9&]?>>?\|?")
#: Only the first words may name files.
MOST_FILES = 100


def program_words(command: Sequence[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the command's words without the interpreter or shell in front, and the variables that it sets."""
    words, variables = _parted(command)
    while len(words) > 1 and _INTERPRETER.fullmatch(PurePosixPath(words[0]).name):
        if words[1] == "-c" and len(words) > 2:
            lines = [_parted(line) for line in _split(words[2])]
            words = [word for line, _ in lines for word in line]
            variables += [variable for _, more in lines for variable in more]
        elif words[1].startswith("-"):
            break
        else:
            words = words[1:]
    return words or ["variables"], variables


def named_files(command: Sequence[str]) -> dict[str, str]:
    """Return the words of a command that may name a file that it reads, by their places; most do not.

    Files that it writes by a redirection (`> out.txt`) are left out. What a shell would make of a word (`*.txt`,
    `$HOME`) is not known.
    """
    found, writes = dict[str, str](), False
    for place, word in enumerate(program_words(command)[0][:MOST_FILES]):
        name = word.partition("=")[2] if word.startswith("-") else word
        skipped, writes = writes, _WRITES.fullmatch(word) is not None
        if place and not skipped and not _WRITES.match(word) and (name := name.lstrip("<").rstrip(";")):
            found[str(place)] = name
    return found


def _split(script: str) -> list[list[str]]:
    """Return the words of a script, by line if no quotation spans lines."""
    try:
        return [shlex.split(line) for line in script.split("\n")]
    except ValueError:
        pass
    try:
        return [shlex.split(script)]
    except ValueError:
        return [line.split() for line in script.split("\n")]


def _parted(words: Sequence[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the words without the variables that are set in front of a program, and these variables."""
    kept, variables, begins, takes = list[str](), list[tuple[str, str]](), True, False
    for word in words:
        found = _ASSIGNMENT.fullmatch(word) if begins else None
        if found:
            variables.append((found[1], found[2]))
            continue
        kept.append(word)
        begins = takes or word in _BEFORE_PROGRAM or word.endswith((";", "&", "|")) or (begins and word[:1] == "-")
        takes = begins and word in _WITH_ARGUMENT
    return kept, variables
