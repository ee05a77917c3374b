"""The profile name of a job without one, made from its command, so that a repeated job is recognised.

Without a command it is made from the job's name, owner and size.

Rule: words that define the amount of work stay (words, options, numbers, names of programs and scripts); places and
serial numbers are dropped (folders, names of data files, dates, long numbers within a word). If there are several
dates, the number of days between the first and the last stays. The value of a variable is dropped if it is not a
number, because it may be a secret. The same command on more nodes is another job. The sizes of input files are not in
the name, but kept with each run. Of a long command only the beginning is read so; the rest counts by a checksum. The
name of a command is made once and kept for as long as jobs have the command.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterable, Sequence
from datetime import date
from itertools import islice
from pathlib import PurePosixPath

from ..formats.command_words import beginning, program_words
from ..simulate.model.job import Job

LONGEST = 120
#: Prefixes of such names: from a command, and from a job's own name.
COMMAND, KIND = "cmd: ", "job: "
_LONG_NUMBER = re.compile(r"[0-9]{6,}")
_UNIQUE = re.compile(r"[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}|[0-9]{4}-[0-9]{2}-[0-9]{2}")
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")
_DATE = re.compile(r"(?<![0-9])[0-9]{4}-[0-9]{2}-[0-9]{2}(?![0-9])")
#: A part of a word; such a part that is an amount: `1000000k`, `-n1000000`, `1000000-2000000`, `1..1000000`.
_PART = re.compile(r"[\w.-]+")
_AMOUNT = re.compile(r"(?:-[A-Za-z])?-?[0-9]+(?:(?:\.{1,2}|[-x])[0-9]+)*(?:\.|[A-Za-z]{0,5})")
#: The value of a variable that is an amount: `10M`, `1,2,4`, `0:30:00`.
_UNIT = r"(?:[kKMGTP]i?[Bb]?|[Bb]|[munp]?s|min|[hd])?"
_AMOUNTS = re.compile(rf"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?{_UNIT}(?:[,:][0-9.]+{_UNIT})*")
#: In a name, the value of a variable that is not in it.
UNTOLD = "=?"
#: Words that begin so are places, others with a slash need not be: `s/a/b/`, `facebook/opt`.
_PLACES = ("/", ".", "~", "$")
_USER = re.compile(r"(?<=://)[^/@]*@")
_FILE = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,7}")
#: Options with a value, and words of the form `if=FILE`; those that name what is written.
_OPTION = re.compile(r"(-[^=]*|[A-Za-z_]\w*)=(.*)", re.DOTALL)
_WRITTEN = re.compile(r"-*(?:o|of|log\w*|out\w*|te?mp\w*)")
#: Endings of scripts, whose names stay.
_SCRIPTS = frozenset((
    ".R", ".bash", ".csh", ".exe", ".jar", ".jl", ".js", ".ksh", ".lua", ".m", ".pl", ".py", ".r", ".rb", ".sh", ".zsh",
))  # fmt: skip
_APART = re.compile(r"(?: of uid (-?[0-9]{1,10}))+$")
_KIND_OWNER = re.compile(r".* of ([^,]+), [0-9]+ cores?\b")
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def signature(job: Job) -> str | None:
    """Return the name of a job's measurements, None without a command and a known name.

    The command, the number of nodes and thread variables count; without a command `known_as`, nodes and cores.
    """
    if not job.command:
        cores = job.profile.threads
        extent = f", {cores} core{'s' if cores > 1 else ''}" + (f" on {job.nodes} nodes" if job.nodes > 1 else "")
        kind_name, of, owner = job.known_as.rpartition(" of ")  # the owner stays: uids may be long numbers
        known_as = f"{without_numbers(kind_name)}{of}{owner}" if of else without_numbers(owner)
        return _valid_name(f"{KIND}{known_as}{extent}") if job.known_as else None
    place = id(job.command), id(job.environment), job.nodes
    entry = _names.get(place)
    if entry is None:
        entry = _names[place] = job.command, job.environment, _command_name(job)
        if len(_names) > MOST_KEPT:
            for oldest in list(islice(_names, MOST_KEPT // 2)):
                del _names[oldest]
    return entry[2]


#: Names of commands by the identity of what they are made from, which is kept with them; the most that are kept.
_names: dict[tuple[int, int, int], tuple[object, object, str]] = {}
MOST_KEPT = 100_000
#: Variables of a command whose values are looked at, and letters of such a value.
MOST_VARIABLES, LONGEST_AMOUNT = 50, 100


def _command_name(job: Job) -> str:
    """Return the name of a job's command. O(bytes), and slow only for the first of them."""
    assert job.command
    program, variables = program_words(job.command)
    words = [_last_name(program[0]) or _shape(program[0]), *map(_shape, program[1:])]
    words += _days(program)
    variables = [*job.environment[:MOST_VARIABLES], *variables]
    words += [_setting(key, value) for key, value in variables if key not in _THREADS]
    words += [f"{key}={value}" for key, value in variables if key in _THREADS]
    if rest := _rest(job):
        words.append(f"#{_checksum(rest)}")
    if job.nodes > 1:
        words.append(f"on {job.nodes} nodes")
    return _valid_name(COMMAND + " ".join(words))


def _rest(job: Job) -> list[str]:
    """Return the words and variables of a job that are not looked at."""
    command = job.command or ()
    words = beginning(command)
    return [*(() if words is command else command[len(words) - 1 :]), *map("=".join, job.environment[MOST_VARIABLES:])]


def _checksum(words: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(words).encode(errors="replace")).hexdigest()[:16]


def words_checksum(job: Job) -> str:
    """Return a checksum of a job's words without their folders, and of its variables; "" without a command.

    It tells `sort a.txt` from `sort b.txt`, which have one name: who runs the former again most likely reads the same.
    """
    if not job.command:
        return ""
    program, variables = program_words(job.command)
    words = [*map(_last_name, program), *map("=".join, (*job.environment[:MOST_VARIABLES], *variables))]
    return _checksum([*words, *_rest(job)])


def program(name: str) -> str | None:
    """Return the first words of a command's or a job's name: `cmd: align.sh`; None if it names no program."""
    words = name.split(" ")[:2]
    return " ".join(words) if len(words) == 2 and name.startswith((COMMAND, KIND)) else None


def seen_by_others(name: str) -> str:
    """Return what other users may see of a profile's name: of a command, only its first word."""
    return program(name) or name if name.startswith(COMMAND) else name


def name_apart(name: str, owner: int) -> str:
    """Return the name under which a user's runs of another user's named profile are kept: `align of uid 1005`.

    Args:
        name: of the profile, also of one that is kept apart for whomever.
        owner: uid of the user.
    """
    return f"{_APART.sub('', name)} of uid {owner}"


def owner_apart(name: str) -> int | None:
    """Return the uid in a name from `name_apart`, else None."""
    match = _APART.search(name)
    return int(match[1]) if match else None


def kind_owner(name: str) -> str:
    """Return the user in the name of a kind of jobs of a resource manager, as `known_as` has it; "" without one."""
    match = _KIND_OWNER.search(name) if name.startswith(KIND) else None
    return match[1].rpartition("/")[2] if match else ""


def _valid_name(text: str) -> str:
    """Return a valid profile name for a text; a long one ends with a checksum."""
    name = " ".join(text.split())
    name = "".join(letter if letter.isprintable() else "?" for letter in name).strip()
    if len(name) <= LONGEST:
        return name
    return f"{name[: LONGEST - 10]} #{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _shape(word: str) -> str:
    """Return a word's contribution: the ending of a data file, the last name of a path, # for what occurs once."""
    match = _OPTION.fullmatch(word)
    option, value = (f"{match[1]}=", match[2]) if match else ("", word)
    if _NUMBER.fullmatch(value):
        return word
    name = _last_name(value)
    ending = "" if _is_text(value) else PurePosixPath(name).suffix
    if _FILE.fullmatch(ending) and ending not in _SCRIPTS:
        value = f"*{ending}"
    elif name != value:
        if match and _WRITTEN.fullmatch(match[1]):
            value = "*"
        elif value.startswith(_PLACES):
            value = name or "*"
        value = _USER.sub("", value)
    return f"{option}{_without_serials(value)}"


def _last_name(word: str) -> str:
    """Return the last name of a path; a text of several words is none, and its slashes are its own."""
    return word if _is_text(word) else PurePosixPath(word).name


def _is_text(word: str) -> bool:
    return any(letter.isspace() for letter in word)


def _setting(key: str, value: str) -> str:
    return f"{key}={value}" if len(value) <= LONGEST_AMOUNT and _AMOUNTS.fullmatch(value) else f"{key}{UNTOLD}"


def _days(words: Sequence[str]) -> list[str]:
    """Return in words the days between the first and the last date among some words, nothing for fewer than two."""
    days = []
    for written in _DATE.findall(" ".join(words)):
        with contextlib.suppress(ValueError):
            days.append(date.fromisoformat(written))
    return [f"{(max(days) - min(days)).days} days"] if len(days) > 1 else []


def _without_serials(text: str) -> str:
    """Return a text with # for dates, unique identifiers, and long numbers that are a part of a word."""
    return _PART.sub(
        lambda part: part[0] if _AMOUNT.fullmatch(part[0]) else without_numbers(part[0]), _UNIQUE.sub("#", text)
    )


def without_numbers(text: str) -> str:
    """Return a text with # for dates, unique identifiers, and long numbers."""
    return _LONG_NUMBER.sub("#", _UNIQUE.sub("#", text))
