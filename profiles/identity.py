"""The profile name of a job without one, made from its command, so that a repeated job is recognised.

Without a command it is made from the job's name, owner and size.

Rule: words that define the amount of work stay (words, options, numbers); places and serial numbers are dropped
(folders, file names, dates, long numbers within a word), and variables that are set in front of a program, because they
hold secrets. The same command on more nodes is another job. The sizes of input files are not in the name, but kept with
each run.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from ..formats.command_words import program_words
from ..simulate.model.job import Job

LONGEST = 120
#: Prefixes of such names: from a command, and from a job's own name.
COMMAND, KIND = "cmd: ", "job: "
_IDENTIFIER = re.compile(r"[0-9]{6,}|[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}|[0-9]{4}-[0-9]{2}-[0-9]{2}")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")
_FILE = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,7}")
_APART = re.compile(r"(?: of uid (-?[0-9]{1,10}))+$")
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def signature(job: Job) -> str | None:
    """Return the name of a job's measurements, None without a command and a known name.

    The command, the number of nodes and thread variables count; without a command `known_as`, nodes and cores.
    """
    if not job.command:
        cores = job.profile.threads
        extent = f", {cores} core{'s' if cores > 1 else ''}" + (f" on {job.nodes} nodes" if job.nodes > 1 else "")
        what, of, owner = job.known_as.rpartition(" of ")  # the owner stays: uids may be long numbers
        known_as = f"{_IDENTIFIER.sub('#', what)}{of}{owner}" if of else _IDENTIFIER.sub("#", owner)
        return _valid_name(f"{KIND}{known_as}{extent}") if job.known_as else None
    program, variables = program_words(job.command)
    words = [PurePosixPath(program[0]).name or _shape(program[0]), *map(_shape, program[1:])]
    words += [f"{key}={value}" for key, value in (*job.environment, *variables) if key in _THREADS]
    if job.nodes > 1:
        words.append(f"on {job.nodes} nodes")
    return _valid_name(COMMAND + " ".join(words))


def words_checksum(command: Sequence[str] | None) -> str:
    """Return a checksum of the words of a command without their folders, "" without a command.

    It tells `sort a.txt` from `sort b.txt`, which have one name: who runs the former again most likely reads the same.
    """
    if not command:
        return ""
    words = "\0".join(PurePosixPath(word).name for word in program_words(command)[0])
    return hashlib.sha256(words.encode(errors="replace")).hexdigest()[:16]


def program(name: str) -> str | None:
    """Return the first words of a command's or a job's name: `cmd: align.sh`; None if it names no program."""
    words = name.split(" ")[:2]
    return " ".join(words) if len(words) == 2 and name.startswith((COMMAND, KIND)) else None


def name_apart(name: str, owner: int) -> str:
    """Return the name under which a user's runs of another user's named profile are kept: `align of uid 1005`.

    Args:
        name: of the profile, also of one that is kept apart for whomever.
        owner: uid of the user.
    """
    return f"{_APART.sub('', name)} of uid {owner}"


def owner_apart(name: str) -> int | None:
    """Return the uid in a name from `name_apart`, else None."""
    found = _APART.search(name)
    return int(found[1]) if found else None


def _valid_name(text: str) -> str:
    """Return a valid profile name for a text; a long one ends with a checksum."""
    name = " ".join(text.split())
    name = "".join(letter if letter.isprintable() else "?" for letter in name).strip()
    if len(name) <= LONGEST:
        return name
    return f"{name[: LONGEST - 10]} #{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _shape(word: str) -> str:
    """Return a word's contribution: the extension of a file, # for an identifier, else the word, as a number is."""
    option, equals, value = word.partition("=") if word.startswith("-") else ("", "", word)
    if _NUMBER.fullmatch(value):
        return word
    path = PurePosixPath(value)
    if "/" in value or _FILE.fullmatch(path.suffix):
        value = f"*{path.suffix}" if _FILE.fullmatch(path.suffix) else "*"
    return f"{option}{equals}{_IDENTIFIER.sub('#', value)}"
