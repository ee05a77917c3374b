"""The words of a command that identify its work, and those that may name its input files.

Rule: only the first MOST_LETTERS letters and MOST_WORDS words of a command are looked at, so that none takes long.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

#: Programs that run a script; the letter of their option that is followed by its text.
_INTERPRETERS = {
    **dict.fromkeys(("bash", "sh", "dash", "zsh", "ksh", "python"), "c"),
    **dict.fromkeys(("perl", "ruby", "Rscript", "julia", "node", "lua"), "e"),
}
_SHELLS = ("bash", "sh", "dash", "zsh", "ksh")
#: Programs that start another one.
_LAUNCHERS = frozenset((
    "chrt", "env", "ionice", "mpiexec", "mpirun", "nice", "nohup", "numactl", "orterun", "prterun", "prun", "setsid",
    "srun", "stdbuf", "taskset", "time", "timeout",
))  # fmt: skip
#: Options of launchers with an argument that does not begin with a digit; options of interpreters with an argument.
_WITH_ARGUMENT = frozenset((
    "--bind-to", "--chdir", "--cpu-bind", "--host", "--hostfile", "--machinefile", "--map-by", "--partition",
    "--rank-by", "--signal", "--wdir", "-A", "-H", "-J", "-bind-to", "-f", "-host", "-hostfile", "-machinefile",
    "-map-by", "-o", "-p", "-q", "-rank-by", "-s", "-w", "-wdir", "-x",
))  # fmt: skip
_SCRIPT_WITH_ARGUMENT = frozenset(("-W", "-X", "-o", "-p", "-t"))
_ENV_WITH_ARGUMENT = frozenset(("-u", "--unset", "-C", "--chdir"))
_TWO_ARGUMENTS = frozenset(("--mca", "-mca", "-env", "-genv"))
#: A variable that is set, and words that a program may follow.
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\+?=(.*)", re.DOTALL)
_BEFORE_PROGRAM = frozenset(("env", "export", "exec", "nohup", "time", "then", "else", "do", "{", "(", "!"))
#: In the usage of a job, before the place of a word that names a file: its bytes.
INPUT = "input:"
#: What stands before a file that is written.
_WRITES = re.compile(r"[0-9&]?>>?\|?")
#: Only the first words may name files.
MOST_FILES = 100
#: Letters of a command that are looked at, with one for each word, and words.
MOST_LETTERS, MOST_WORDS = 1024, 100
#: A word of a shell; how one of its parts is quoted.
_WORD = re.compile(r"""(?:[^ \t\r\n'"\\]+|'[^']*'|"(?:[^"\\]|\\.)*"|\\.)+""", re.DOTALL)
_QUOTED = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)""", re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\])')


def program_words(command: Sequence[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the words of a command, those of the program first, and the variables that it sets.

    A script is the program, not its interpreter; of a text that is given to an interpreter (`sh -c`), its words are.
    What starts the program (`mpirun -n 4`, `timeout 60`, options of an interpreter) follows after its arguments. Of a
    long command, only its `beginning` counts.
    """
    words, variables = _parted(beginning(command))
    before = list[str]()
    while len(words) > 1:
        name = PurePosixPath(words[0]).name
        interpreter = name.rstrip("0123456789.")
        if interpreter in _INTERPRETERS:
            place, takes_text = _after_options(words, _INTERPRETERS[interpreter])
            if place == len(words):
                break
            before += words[1 : place - takes_text]
            text, words = words[place], words[place + takes_text :]
            if takes_text and interpreter in _SHELLS:
                lines = [_parted(line) for line in _split(text)]
                words = [word for line, _ in lines for word in line] + words
                variables += [variable for _, more in lines for variable in more]
            elif takes_text:
                words = [" ".join(text.split()), *words]
        elif name in _LAUNCHERS:
            place, _ = _after_options(words, "")
            if place == len(words):
                break
            before += [name, *words[1:place]]
            words = words[place:]
        else:
            break
    return words + before or ["variables"], variables


def beginning(command: Sequence[str]) -> Sequence[str]:
    """Return the words of a command that are looked at, the last of them cut; the command itself if it has no more."""
    words, budget = list[str](), MOST_LETTERS
    for word in command[:MOST_WORDS]:
        if budget <= 0:
            break
        words.append(word[:budget])
        budget -= len(word) + 1
    return words if budget < 0 or len(command) > MOST_WORDS else command


def _after_options(words: Sequence[str], text: str) -> tuple[int, bool]:
    """Return the place of the program behind an interpreter or a launcher, and whether it is the program's text.

    Args:
        words: the interpreter or launcher, its options, the program.
        text: letter of the option that is followed by a text; "" for a launcher, whose program is not a number.
    """
    options = _SCRIPT_WITH_ARGUMENT if text else _WITH_ARGUMENT
    if PurePosixPath(words[0]).name == "env":
        options = _ENV_WITH_ARGUMENT
    place = 1
    while place < len(words):
        word = words[place]
        if text and re.fullmatch(f"-[A-Za-z]*{text}", word) and place + 1 < len(words):
            return place + 1, True
        if not word.startswith("-"):
            if text or not word[:1].isdigit():
                break
        elif text and word == "-m":
            return min(place + 1, len(words)), False
        elif word in options:
            place += 1
        elif word in _TWO_ARGUMENTS:
            place += 2
        place += 1
    return min(place, len(words)), False


def named_files(command: Sequence[str]) -> dict[str, str]:
    """Return the words of a command that may name a file that it reads, by their places; most do not.

    Files that it writes by a redirection (`> out.txt`) are left out. What a shell would make of a word (`*.txt`,
    `$HOME`) is not known.
    """
    files, writes = dict[str, str](), False
    for place, word in enumerate(program_words(command)[0][:MOST_FILES]):
        name = word.partition("=")[2] if word.startswith("-") else word
        skipped, writes = writes, _WRITES.fullmatch(word) is not None
        if place and not skipped and not _WRITES.match(word) and (name := name.lstrip("<").rstrip(";")):
            files[str(place)] = name
    return files


def _split(script: str) -> list[list[str]]:
    """Return the words of a script, by line if no quotation spans lines."""
    lines = script.split("\n")
    try:
        return [split_line(line) for line in lines]
    except ValueError:
        pass
    try:
        return [split_line(script)]
    except ValueError:
        return [line.split() for line in lines]


def split_line(text: str) -> list[str]:
    """Return the words of a line as a shell splits it, as `shlex.split` does, which takes thirty times as long.

    Raises:
        ValueError: a quotation has no end.
    """
    words = _WORD.findall(text)
    if _WORD.sub("", text).strip(" \t\r\n"):
        raise ValueError("a quotation has no end")
    return [_QUOTED.sub(_unquoted, word) for word in words]


def _unquoted(part: re.Match[str]) -> str:
    return part[1] or _ESCAPED.sub(r"\1", part[2] or "") or part[3] or ""


def _parted(words: Sequence[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the words without the variables that are set in front of a program, and these variables."""
    program, variables, begins, takes = list[str](), list[tuple[str, str]](), True, False
    for word in words:
        assignment = _ASSIGNMENT.fullmatch(word) if begins else None
        if assignment:
            variables.append((assignment[1], assignment[2].rstrip(";")))
            continue
        program.append(word)
        begins = takes or word in _BEFORE_PROGRAM or word.endswith((";", "&", "|")) or (begins and word[:1] == "-")
        takes = begins and word in _ENV_WITH_ARGUMENT
    return program, variables
