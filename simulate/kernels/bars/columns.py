"""Columns of a table divided by bars: numbers of their texts, times and ids of jobs.

Rule: only what is written in the usual way is read here; everything else is a text with a number, for the caller.
Complexity: O(bytes of the column), expected.
"""

from __future__ import annotations

from numba import types

from ..block import int64
from ..compile import register
from ..jit import inner
from .tables import ID_DIGITS, IDS, SLOTS, TASK_DIGITS, TIMES, RecordLines, Texts

_COLON, _ZERO, _FIVE, _NINE, _LOW_LINE, _BLANK, _LAST_ASCII = 58, 48, 53, 57, 95, 32, 126
#: Characters of `2026-03-02T06` and of `2026-03-02T06:00:00`.
_HOUR, _TIME = 13, 19
_WORD, _PRIME = 0xFFFFFFFF, 16_777_619

RecordLinesType = register(RecordLines, __name__)
TextsType = register(Texts, __name__)


@inner
def call(lines: RecordLines, texts: Texts, request: int, column: int) -> int:
    """Read a column of some records; return the number of different texts so far.

    Args:
        lines: the records.
        texts: different texts, with room for one of each record more; no more than half of `slots` are then in use.
        request: TEXTS, TIMES, IDS or SLOTS.
        column: its place.
    """
    if request == SLOTS:
        _fill_slots(texts)
        return int64(texts.count.texts)
    for record in range(len(lines.first)):
        place = lines.first[record] + column
        begin, end = lines.cuts[place] + 1, lines.cuts[place + 1]
        lines.number[record] = -1
        if request == IDS:
            _read_id(lines, record, begin, end)
            continue
        if request == TIMES:
            seconds = _seconds(lines, begin, end)
            lines.number[record] = seconds
            if seconds >= 0:
                end = begin + _HOUR
        lines.code[record] = _number_of(lines, texts, begin, end)
    return int64(texts.count.texts)


@inner
def _fill_slots(texts: Texts) -> None:
    """Note the slot of each text; there are new ones without any. O(texts), expected."""
    mask = len(texts.slots) - 1
    for number in range(texts.count.texts):
        slot = int64(texts.hashes[number]) & mask
        while texts.slots[slot] != 0:
            slot = (slot + 1) & mask
        texts.slots[slot] = number + 1


@inner
def _digits(lines: RecordLines, begin: int, end: int, most: int) -> int:
    """Return where the digits end that stand from `begin` on, `begin` if there are more than that."""
    at = begin
    while at < end and _ZERO <= lines.text[at] <= _NINE:
        at += 1
    return at if at - begin <= most else begin


@inner
def _whole(lines: RecordLines, begin: int, end: int) -> int:
    """Return the number that some digits write."""
    number = int64(0)
    for at in range(begin, end):
        number = number * 10 + (int64(lines.text[at]) - _ZERO)
    return number


@inner
def _read_id(lines: RecordLines, record: int, begin: int, end: int) -> None:
    """Read `77` or `77_5`; `code` is -1 for the first one."""
    lines.code[record] = -1
    split = _digits(lines, begin, end, int64(ID_DIGITS))
    if split == begin:
        return
    if split < end:
        if lines.text[split] != _LOW_LINE or split + 1 == end:
            return
        if _digits(lines, split + 1, end, int64(TASK_DIGITS)) != end:
            return
        lines.code[record] = _whole(lines, split + 1, end)
    lines.number[record] = _whole(lines, begin, split)


@inner
def _seconds(lines: RecordLines, begin: int, end: int) -> int:
    """Return the seconds that `:MM:SS` after an hour writes; -1 if something else stands there."""
    if end - begin != _TIME:
        return int64(-1)
    seconds = int64(0)
    for at in (begin + _HOUR, begin + _HOUR + 3):
        first, second = lines.text[at + 1], lines.text[at + 2]
        if lines.text[at] != _COLON or not (_ZERO <= first <= _FIVE and _ZERO <= second <= _NINE):
            return int64(-1)
        seconds = seconds * 60 + (int64(first) - _ZERO) * 10 + (int64(second) - _ZERO)
    return seconds


@inner
def _number_of(lines: RecordLines, texts: Texts, begin: int, end: int) -> int:
    """Return the number of a text, which is kept if it is new."""
    code = int64(texts.count.seed)
    for at in range(begin, end):
        code = ((code ^ int64(lines.text[at])) * _PRIME) & _WORD
    code ^= code >> 15
    sign = int64(code & 0x7FFFFFFF)
    mask = len(texts.slots) - 1
    slot = sign & mask
    while texts.slots[slot] != 0:
        number = int64(texts.slots[slot]) - 1
        if texts.hashes[number] == sign and _is_equal(lines, texts, number, begin, end):
            return number
        slot = (slot + 1) & mask
    number = int64(texts.count.texts)
    texts.slots[slot] = number + 1
    texts.hashes[number] = sign
    _keep(lines, texts, number, begin, end)
    texts.count.texts = number + 1
    return number


@inner
def _is_equal(lines: RecordLines, texts: Texts, number: int, begin: int, end: int) -> bool:
    """Return whether a kept text is that of a field."""
    first = texts.ends[number]
    if texts.ends[number + 1] - first != end - begin:
        return False
    for place in range(end - begin):  # noqa: SIM110 - compiled code has no generators
        if texts.bytes[first + place] != lines.text[begin + place]:
            return False
    return True


@inner
def _keep(lines: RecordLines, texts: Texts, number: int, begin: int, end: int) -> None:
    """Keep the text of a field under a number."""
    at = texts.ends[number]
    is_odd = end > begin and (lines.text[begin] <= _BLANK or lines.text[end - 1] <= _BLANK)
    for place in range(begin, end):
        byte = lines.text[place]
        is_odd = is_odd or byte == 0 or byte > _LAST_ASCII
        texts.bytes[at] = byte
        at += 1
    texts.ends[number + 1] = at
    texts.is_odd[number] = int64(is_odd)


SIGNATURES = {"bars.columns": (RecordLinesType(), TextsType(), types.int64, types.int64)}
