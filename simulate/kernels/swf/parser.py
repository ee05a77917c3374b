"""Parser of the Standard Workload Format: lines of 18 numbers separated by blanks, and comments from `;` on.

Rule: values are exact to the last bit. A number of up to 15 digits is an integer divided by a power of ten, both exact,
so one division rounds correctly; lines with longer numbers or exponents are only marked for the caller. Each byte is
read once.
"""

from __future__ import annotations

from ..compile import register
from ..jit import inner
from .tables import DECIMALS, DIGITS, FIELDS, Text

_NEWLINE, _SPACE, _TAB, _RETURN, _COMMENT = 10, 32, 9, 13, 59
_PLUS, _MINUS, _POINT, _ZERO, _NINE, _E, _e = 43, 45, 46, 48, 57, 69, 101


TextType = register(Text, __name__)


@inner
def call(block: Text) -> int:  # noqa: C901
    """Parse the whole text. Return the number of rows found."""
    text, values, count = block.text, block.values, block.count
    at, end, row, line = 0, len(text), 0, 0
    while at < end:
        line += 1
        begin, field, bad, hard = at, 0, False, False
        while True:
            byte = text[at]
            if byte == _SPACE or byte == _TAB or byte == _RETURN:
                at += 1
                continue
            if byte == _NEWLINE:
                break
            if byte == _COMMENT and field == 0:
                while text[at] != _NEWLINE:
                    at += 1
                break
            negative = byte == _MINUS
            if negative or byte == _PLUS:
                at += 1
            number, digits, decimals, figure_count, point = 0, 0, 0, 0, False
            while True:
                byte = text[at]
                if _ZERO <= byte <= _NINE:
                    figure_count += 1
                    if digits < DIGITS:
                        number = number * 10 + (byte - _ZERO)
                        digits += number > 0
                        decimals += point
                    else:
                        hard = True
                elif byte == _POINT and not point:
                    point = True
                else:
                    break
                at += 1
            if (byte == _E or byte == _e) and figure_count > 0:
                hard = True
                while text[at] > _SPACE:
                    at += 1
                byte = text[at]
            if figure_count == 0 or not (byte == _SPACE or byte == _TAB or byte == _RETURN or byte == _NEWLINE):
                bad = True
                while text[at] != _NEWLINE:
                    at += 1
                break
            if field < FIELDS:
                if decimals > DECIMALS:
                    hard = True
                    decimals = 0
                value = number / block.powers[decimals]
                values[row, field] = -value if negative else value
            field += 1
        at += 1
        if bad or (field > 0 and field != FIELDS):
            if count.invalid == 0:
                count.first_invalid, count.found = line, -1 if bad else field
            count.invalid += 1
        elif field > 0:
            block.lines[row] = line
            block.unread[row] = begin if hard else -1
            row += 1
    count.at, count.line, count.rows = at, line, row
    return row


SIGNATURES = {"swf.parser": (TextType(),)}
