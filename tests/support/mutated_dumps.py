"""Dumps as they should never be: cut, with columns exchanged, with NUL bytes, huge numbers, other encodings, and damaged gzip."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from random import Random

#: What may stand in the place of a number.
NUMBERS = (
    b"-1", b"0", b"99999999999", b"18446744073709551615", b"4294967294", b"1e308", b"nan", b"9" * 400, b"", b"1.5",
    "\u0663".encode(),
)  # fmt: skip
#: What may stand in the place of a word.
WORDS = (
    b"",
    b"(null)",
    b"UNLIMITED",
    b"n[1-99999999]",
    b"n[1-",
    b"'",
    b"[",
    b"=",
    b"|",
    b"%s",
    b"..",
    b"-",
    b"Unknown",
    b"\\",
)


def mutated(data: bytes, random: Random) -> bytes:
    """Return a dump with one to three faults."""
    for _ in range(random.choice((1, 1, 2, 3))):
        data = random.choice(FAULTS)(data, random)
    return data


def _cut(data: bytes, random: Random) -> bytes:
    place = random.randrange(len(data) + 1)
    return data[:place] if random.random() < 0.7 else data[place:]


def _without_a_piece(data: bytes, random: Random) -> bytes:
    place = random.randrange(len(data) + 1)
    return data[:place] + data[place + random.choice((1, 7, 60, 400)) :]


def _exchanged(data: bytes, random: Random) -> bytes:
    """Exchange two fields of one line, or of all lines."""
    lines, bar = data.split(b"\n"), b"|" if b"|" in data else b" "
    fields = max(line.count(bar) for line in lines) + 1
    first, second = random.randrange(fields), random.randrange(fields)
    chosen = range(len(lines)) if random.random() < 0.5 else [random.randrange(len(lines))]
    for number in chosen:
        row = lines[number].split(bar)
        if max(first, second) < len(row):
            row[first], row[second] = row[second], row[first]
            lines[number] = bar.join(row)
    return b"\n".join(lines)


def _shuffled(data: bytes, random: Random) -> bytes:
    lines = data.split(b"\n")
    random.shuffle(lines)
    return b"\n".join(lines)


def _repeated(data: bytes, random: Random) -> bytes:
    lines = data.split(b"\n")
    number = random.randrange(len(lines))
    return b"\n".join([*lines[:number], *[lines[number]] * 3, *lines[number:]])


def _with_bytes(data: bytes, random: Random) -> bytes:
    place = random.randrange(len(data) + 1)
    extra = random.choice(
        (b"\0", b"\xff\xfe", b"\r", b"\x85", b"\xe2\x80\xa8", b"\x1b[2J", b"\n\n", b"|" * 50, b"#", b"\xc3")
    )
    return data[:place] + extra + data[place:]


def _with_number(data: bytes, random: Random) -> bytes:
    return _replaced(rb"\d+", NUMBERS, data, random)


def _with_word(data: bytes, random: Random) -> bytes:
    return _replaced(rb"[A-Za-z][A-Za-z0-9_]*", WORDS, data, random)


def _replaced(pattern: bytes, others: tuple[bytes, ...], data: bytes, random: Random) -> bytes:
    matches = list(re.finditer(pattern, data))
    if not matches:
        return data
    match = random.choice(matches)
    return data[: match.start()] + random.choice(others) + data[match.end() :]


def _encoded(data: bytes, random: Random) -> bytes:
    text = data.decode("utf-8", "replace")
    name = random.choice(("utf-16", "utf-32", "utf-8-sig", "cp037", "utf-7"))
    return text.encode(name, "replace")


def _packed_and_damaged(data: bytes, random: Random) -> bytes:
    packed = bytearray(gzip.compress(data, mtime=0))
    if random.random() < 0.5:
        return bytes(packed[: random.randrange(2, len(packed))])
    packed[random.randrange(2, len(packed))] ^= 1 << random.randrange(8)
    return bytes(packed)


def _with_other_bits(data: bytes, random: Random) -> bytes:
    changed = bytearray(data or b"?")
    for _ in range(random.choice((1, 5, 40))):
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def _without_a_column(data: bytes, random: Random) -> bytes:
    lines, bar = data.split(b"\n"), b"|" if b"|" in data else b" "
    column = random.randrange(max(line.count(bar) for line in lines) + 1)
    rows = [line.split(bar) for line in lines]
    return b"\n".join(bar.join(row[:column] + row[column + 1 :]) for row in rows)


def _with_other_line_ends(data: bytes, random: Random) -> bytes:
    return data.replace(b"\n", random.choice((b"\r\n", b"\r", b"\n\r\n")))


FAULTS: tuple[Callable[[bytes, Random], bytes], ...] = (
    _cut, _without_a_piece, _exchanged, _shuffled, _repeated, _with_bytes, _with_bytes, _with_number, _with_number,
    _with_word, _with_word, _encoded, _with_other_bits, _without_a_column, _with_other_line_ends, _packed_and_damaged,
)  # fmt: skip
