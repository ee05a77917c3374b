"""Words of messages.

Rule: a number with its noun is written by `count`, so that no message says "1 jobs".
"""

from __future__ import annotations


def count(number: int, one: str, many: str = "") -> str:
    """Format a count with its noun: `1 job`, `1,000 jobs`.

    Args:
        number: how many.
        one: the noun in the singular, also with a verb, as in "job waits".
        many: the same in the plural; "" = the singular with s, or es after x, ch, sh or ss.
    """
    if number == 1:
        return f"1 {one}"
    return f"{number:,} {many or one + ('es' if one.endswith(('x', 'ch', 'sh', 'ss')) else 's')}"
