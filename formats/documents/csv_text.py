"""Write columns of numbers and texts as the rows of a CSV table, a million rows in about a second.

Rule: numbers are written as `repr` does, so they read back to the last bit. An unknown number (nan) is an empty field.
A cell is a row of character codes if its digits can be computed for the whole column at once; all others are written
one by one. A number of up to 15 digits is one of these: it is a whole number divided by a power of ten, both exact, and
no shorter decimal is the same number.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
#: Rows that are written at once; their cells fit into a processor's cache.
CHUNK = 4096
#: Codes of cells that have no character here, and of a text that is inserted later.
_NOTHING, _LATER = 0, 1
_ZERO, _POINT = b"0."
#: Decimals of numbers that are not whole, and the bound of numbers with 15 digits.
_DECIMALS, _EXACT = 6, 1e15
#: Numbers of up to four digits, which are written at once.
_GROUP = 10_000


@dataclass(frozen=True, slots=True)
class Known:
    """A column of numbers; some may be unknown.

    Args:
        values: numbers.
        known: which are known, bool.
        unknown: ASCII text of the others.
    """

    values: Array
    known: Array
    unknown: bytes = b""

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> Known:
        return Known(self.values[rows], self.known[rows], self.unknown)


#: A column: floats (nan = unknown), whole numbers, texts (objects), or ASCII texts of bytes; or a text of all rows.
Column = Array | Known | bytes


def csv_table(names: Sequence[str], columns: Sequence[Column | tuple[Column, ...]]) -> bytes:
    """Return a table with a header. O(cells).

    Args:
        names: of the columns.
        columns: one for each name, all of the same length; several together are one field.
    """
    parts = list[Column]()
    for column in columns:
        parts += [*(column if isinstance(column, tuple) else (column,)), b","]
    return ",".join(names).encode() + b"\n" + text_rows([*parts[:-1], b"\n"])


def text_rows(parts: Sequence[Column]) -> bytes:
    """Return the parts of each row one after the other. O(cells).

    Args:
        parts: columns of the same length, and texts between them; at least one column.
    """
    parts = [_shared(part) for part in parts]
    rows = next(len(part) for part in parts if not isinstance(part, bytes))
    return b"".join([_chunk(parts, slice(at, min(at + CHUNK, rows))) for at in range(0, rows, CHUNK)])


def csv_line(values: Iterable[Any]) -> str:
    """Return values as a line of CSV without its end, quoted where they have to be."""
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(values)
    return out.getvalue()


def _shared(part: Column) -> Column:
    """Return a column of one short text as that text."""
    if isinstance(part, np.ndarray) and part.dtype == object and len(part) and len(set(part.tolist())) == 1:
        text = part[0].encode()
        if len(text) < 64 and min(text, default=32) > _LATER:
            return bytes(text)
    return part


def _chunk(parts: Sequence[Column], rows: slice) -> bytes:
    """Return some rows."""
    cells, masks, texts = list[Array](), list[Array](), list[list[str]]()
    for part in parts:
        codes, later, written = _cells(part, rows)
        cells.append(codes)
        if len(written):
            masks.append(later)
            texts.append(written)
    joined = np.concatenate(cells, axis=1).tobytes().translate(None, bytes([_NOTHING]))
    if not masks:
        return joined
    if len(masks) == 1:
        (late_texts,) = texts
    else:
        mask = np.stack(masks, axis=1)
        table = np.empty(mask.shape, object)
        for i, written in enumerate(texts):
            table[masks[i], i] = written
        late_texts = table[mask].tolist()
    pieces = joined.decode().split(chr(_LATER))
    woven = [""] * (2 * len(late_texts) + 1)
    woven[::2], woven[1::2] = pieces, late_texts
    return "".join(woven).encode()


#: Codes of the cells [rows, width]; which of them are written later; their texts.
_Cells = tuple[Array, Array, list[str]]


def _cells(part: Column, rows: slice) -> _Cells:
    """Return some cells of a column."""
    if isinstance(part, bytes):
        count = rows.stop - rows.start
        codes = np.broadcast_to(np.frombuffer(part, np.uint8), (count, len(part)))
        return codes, np.zeros(0, bool), []
    values = part[rows]
    if isinstance(values, Known):
        return _known_cells(values)
    if values.dtype.kind == "f":
        return _known_cells(Known(values, ~np.isnan(values)))
    if values.dtype.kind == "S":
        return values.view(np.uint8).reshape(len(values), -1), np.zeros(0, bool), []
    if values.dtype.kind in "iu":
        return _whole_cells(values)
    return np.full((len(values), 1), _LATER, np.uint8), np.ones(len(values), bool), values.tolist()


def _known_cells(column: Known) -> _Cells:
    is_known, unknown = column.known, column.unknown
    if column.values.dtype == object:
        return (
            np.where(is_known, np.uint8(_LATER), np.uint8(_NOTHING))[:, None],
            is_known,
            column.values[is_known].tolist(),
        )
    if is_known.all():
        return (_float_cells if column.values.dtype.kind == "f" else _whole_cells)(column.values)
    codes, later, texts = _known_cells(Known(np.where(is_known, column.values, 0), np.ones_like(is_known)))
    codes = np.pad(codes, ((0, 0), (0, max(0, len(unknown) - codes.shape[1]))))
    codes[~is_known] = _NOTHING
    codes[~is_known, : len(unknown)] = np.frombuffer(unknown, np.uint8)
    return codes, later, texts


def _whole_cells(values: Array) -> _Cells:
    easy = (values >= 0) & (values < _EXACT)
    return _with_texts(_digits(np.where(easy, values, 0)), ~easy, values)


def _float_cells(values: Array) -> _Cells:
    usual = (values < _EXACT) & ((values >= 1e-4) | (values == 0)) & ~np.signbit(values)
    plain = np.where(usual, values, 0.0)
    easy = usual & (np.floor(plain) == plain)
    if easy.all():
        codes = np.concatenate(
            [_digits(plain.astype(np.int64)), np.full((len(plain), 2), (_POINT, _ZERO), np.uint8)], 1
        )
    else:
        scale = 10.0**_DECIMALS
        scaled = np.rint(np.where(plain < _EXACT / scale, plain, 0.0) * scale)
        easy = usual & (scaled / scale == plain)
        codes = _decimals(np.where(easy, scaled, 0.0).astype(np.int64))
    return _with_texts(codes, ~easy, values)


def _with_texts(codes: Array, later: Array, values: Array) -> _Cells:
    """Mark the cells that are written one by one, as `repr` does."""
    if not later.any():
        return codes, later, []
    codes[later] = _NOTHING
    codes[later, 0] = _LATER
    return codes, later, list(map(repr, values[later].tolist()))


def _digits(numbers: Array) -> Array:
    """Return the digits of whole numbers, 0 or more, as codes [rows, digits]; codes before a number are _NOTHING."""
    width, table = len(str(int(numbers.max(initial=0)))), _groups()
    groups = np.empty((len(numbers), (width + 3) // 4), np.uint32)
    for place in range(groups.shape[1] - 1, 0, -1):
        quotient = numbers // _GROUP
        groups[:, place] = table[np.where(quotient, numbers - quotient * _GROUP, numbers + _GROUP)]
        numbers = quotient
    groups[:, 0] = table[numbers + _GROUP]
    codes = groups.view(np.uint8)[:, -width:]
    codes[:, -1] |= _ZERO  # of the number 0; all digits have these bits
    return codes


@cache
def _groups() -> Array:
    """Return four digits as one number, for 0 to 9999: first with zeros in front, then with _NOTHING there."""
    numbers, powers = np.arange(_GROUP)[:, None], np.array([1000, 100, 10, 1])
    digits = (numbers // powers % 10 + _ZERO).astype(np.uint8)
    return np.concatenate([digits, digits * (numbers >= powers)]).view(np.uint32)[:, 0].copy()


def _decimals(scaled: Array) -> Array:
    """Return numbers that were multiplied by 10 ** _DECIMALS as codes, without zeros at the end but the first."""
    integers = scaled // 10**_DECIMALS
    fraction = scaled - integers * 10**_DECIMALS
    codes = np.empty((len(scaled), _DECIMALS), np.uint8)
    ended = np.ones(len(scaled), bool)
    for place in range(_DECIMALS - 1, -1, -1):
        quotient = fraction // 10
        digit = (fraction - quotient * 10).astype(np.uint8)
        ended &= digit == 0
        codes[:, place] = np.where(ended & (place > 0), _NOTHING, digit + np.uint8(_ZERO))
        fraction = quotient
    point = np.full((len(scaled), 1), _POINT, np.uint8)
    return np.concatenate([_digits(integers), point, codes], axis=1)
