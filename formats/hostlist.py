"""Node lists in hostlist syntax: n1,n[3-5,07-10],r[1-2]n[1-4]; and lists of CPU numbers.

Rule: this is Slurm's syntax, for what is read and for what is written. Names are expanded in the order in which they
are written, and the digits of the first number of a range are the least width of all its numbers: n[08-100]. The size
of a list is checked before it is expanded. Steps (n[1-9/4]) and text after a bracket (n[1-3]-ib) are read in addition.
Source: `scontrol show hostnames` and `scontrol show hostlist` of Slurm 22.05.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import lru_cache
from itertools import groupby, product
from math import prod
from string import digits

from .documents.document_errors import bad, found
from .text import count

MOST_NODES = 200_000
ALLOWED = "node names such as n1,n[3-5]: letters, digits, '.', '_' and '-', at most 255 characters each"
ALLOWED_CPUS = 'CPU numbers such as "0-3,6"'
#: Most digits of a number that is folded, and most numbers of a range that Slurm reads.
_MOST_DIGITS, _MOST_IN_RANGE = 12, 65_536
_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,254})")
_RANGE = re.compile(r"([0-9]{1,12})(?:-([0-9]{1,12})(?:/([1-9][0-9]{0,8}))?)?")
_PATTERN = re.compile(r"(?:[A-Za-z0-9_.-]|\[[0-9,/-]+\])+")
_PART = re.compile(r"(?:[^\[\],]|\[[^\[\]]*\])+")


def is_node_name(name: str) -> bool:
    """Return whether `name` is one plain node name that is safe to pass to any resource manager."""
    return _NAME.fullmatch(name) is not None


def local_node_names(host: str, groups: Sequence[Sequence[int]]) -> list[str]:
    """Name the nodes that are made of this machine's CPUs: `HOST` for one node, else `cpuN` by the first CPU of each.

    Args:
        host: name of this machine.
        groups: CPU numbers of each node, each in ascending order.
    """
    if len(groups) == 1:
        return [host if is_node_name(host) else "localhost"]
    return [f"cpu{cpus[0]}" for cpus in groups]


def expand(text: object, most: int = MOST_NODES) -> tuple[str, ...]:
    """Return the node names of a hostlist, in order. O(names).

    Args:
        text: the hostlist.
        most: most names that it may have.

    Raises:
        ConfigError: not text, not a hostlist, a duplicate name, or more than `most` names.
    """
    if isinstance(text, str) and is_node_name(text):
        return (text,)
    if not isinstance(text, str) or len(text) > 1_000_000:
        raise bad(found(text), ALLOWED)
    parts = [part.strip() for part in _PART.findall(text)]
    if not parts or _PART.sub("", text) != "," * (len(parts) - 1):
        raise bad(found(text), ALLOWED)
    if len(parts) > most or sum(_count(part) for part in parts) > most:
        raise bad(f"{found(text)}, too many names", f"at most {count(most, 'name')}")
    names = [name for part in parts for name in _expand_part(part)]
    if len(set(names)) != len(names):
        twice = next(name for name, times in Counter(names).items() if times > 1)
        raise bad(f"{found(text)}, with {twice!r} twice", "each name once")
    return tuple(names)


def _count(part: str) -> int:
    """Return the number of names in a part without expanding it."""
    if not _PATTERN.fullmatch(part):
        raise bad(found(part), ALLOWED)
    return prod(sum(map(len, _spans(bracket, ALLOWED))) for bracket in re.findall(r"\[([^\]]*)\]", part))


def _spans(text: str, allowed: str) -> list[range]:
    spans = []
    for piece in text.split(","):
        match = _RANGE.fullmatch(piece.strip())
        low, high = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not match or high < low:
            raise bad(found(text), allowed)
        spans.append(range(low, high + 1, int(match[3] or 1)))
    return spans


def _expand_part(part: str) -> Iterable[str]:
    plain, *segments = re.split(r"[\[\]]", part)  # text and brackets in turn
    choices = [[plain]]
    for bracket, text in zip(segments[::2], segments[1::2], strict=True):
        choices += [_numbers(bracket), [text]]
    names = tuple("".join(words) for words in product(*choices))
    if wrong := next((name for name in names if not is_node_name(name)), None):
        raise bad(found(wrong), ALLOWED)
    return names


def _numbers(text: str) -> list[str]:
    """Return the numbers of a bracket in the order in which they are written."""
    numbers = list[str]()
    for span, piece in zip(_spans(text, ALLOWED), text.split(","), strict=True):
        width = len(piece.strip().partition("/")[0].partition("-")[0])
        numbers += [f"{number:0{width}}" for number in span]
    return numbers


def fold(names: Iterable[str]) -> str:
    """Return a short hostlist of `names` that Slurm reads, each name once: n1,n2,n3 -> n[1-3].

    Only the number at the end of a name is folded, because Slurm reads no text after a bracket. Names are sorted by
    their beginning, then by their number.
    """
    return _folded(tuple(names))


@lru_cache(1024)
def _folded(names: tuple[str, ...]) -> str:
    if len(names) < 2 or not all(map(is_node_name, names)):
        return ",".join(names)
    ends: dict[str, set[str]] = {}
    for name in names:
        stem = name.rstrip(digits)
        stem = name[: max(len(stem), len(name) - _MOST_DIGITS)]
        ends.setdefault(stem, set()).add(name[len(stem) :])
    return ",".join(part for stem in sorted(ends) for part in _parts(stem, ends[stem]))


def _parts(stem: str, numbers: Set[str]) -> Iterator[str]:
    """Yield the parts of a hostlist: names that begin with `stem`, which alone is a name if "" is a number."""
    if "" in numbers:
        yield stem
    runs = _runs(numbers - {""})
    if len(runs) == 1 and len(runs[0]) == 1:
        yield stem + runs[0][0]
    elif runs:
        yield f"{stem}[{','.join(run[0] if len(run) == 1 else f'{run[0]}-{run[-1]}' for run in runs)}]"


def _runs(numbers: Iterable[str]) -> list[list[str]]:
    """Return ascending numbers as ranges; those of a range are padded to the width of its first."""
    runs: list[list[str]] = []
    following: dict[str, list[str]] = {}  # number -> the range that it continues
    for text in sorted(numbers, key=lambda text: (int(text), len(text))):
        run = following.pop(text, None)
        if run is None or len(run) == _MOST_IN_RANGE:
            run = []
            runs.append(run)
        run.append(text)
        following.setdefault(f"{int(text) + 1:0{len(run[0])}}", run)
    return runs


def parse_cpus(value: object) -> tuple[int, ...]:
    """Return CPU numbers in ascending order from one number or from text such as "0-3,6" (cpuset(7), "List format").

    Raises:
        ConfigError: not such a list, a duplicate number, or a number of 1,000,000 or more.
    """
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1_000_000:
        return (value,)
    if not isinstance(value, str) or len(value) > 100_000:
        raise bad(found(value), ALLOWED_CPUS)
    spans = _spans(value, ALLOWED_CPUS)
    if sum(map(len, spans)) > 1_000_000 or max(span[-1] for span in spans) >= 1_000_000:
        raise bad(f"{found(value)}, too large", ALLOWED_CPUS)
    cpus = sorted(cpu for span in spans for cpu in span)
    if len(set(cpus)) != len(cpus):
        raise bad(f"{found(value)}, with a number twice", "each CPU once")
    return tuple(cpus)


def with_cores(nodes: Sequence[str], cores: Sequence[Iterable[int]]) -> str:
    """Return nodes as text such as `n[1-2] (cores 0-3), n3 (cores 2)`; without the cores if `cores` is empty."""
    if not cores:
        return fold(nodes)
    alike: dict[str, list[str]] = {}
    for node, node_cores in zip(nodes, cores, strict=True):
        alike.setdefault(fold_cpus(node_cores), []).append(node)
    return ", ".join(f"{fold(names)} (cores {numbers})" for numbers, names in alike.items())


def fold_cpus(cpus: Iterable[int]) -> str:
    """Return CPU numbers as text such as 0-3,6."""
    spans = groupby(enumerate(sorted(cpus)), lambda numbered: numbered[1] - numbered[0])
    runs = [[cpu for _, cpu in span] for _, span in spans]
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
