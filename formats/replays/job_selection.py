"""Selection of the jobs of a trace: the keys of a sweep's file and of `--select`.

Rule: a selection that is read here can be applied to any trace; errors name the key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...simulate.replay.select import Select
from ..documents.document_errors import bad, found
from ..documents.quantities import Convert, number, whole
from ..documents.schema import build, listed

#: Largest number of processors of a job or a machine.
MOST_PROCESSORS = 2**31 - 64
LOAD = number(above=True)
#: Key -> converter of its value.
SELECTION: dict[str, Convert[Any]] = {
    "from": number(),
    "until": number(),
    "users": listed(whole(-1, 2**53), least=1),
    "min_size": whole(1, MOST_PROCESSORS),
    "max_size": whole(1, MOST_PROCESSORS),
}


def selection_of(values: Mapping[str, Any], load: float = 1.0) -> Select:
    """Return the selection that some converted values mean.

    Args:
        values: key of SELECTION -> value; other keys are ignored.
        load: factor of the arrival rate, above 0.

    Raises:
        ConfigError: a range is empty.
    """
    select = Select(
        values.get("from"), values.get("until"), values.get("users", ()), values.get("min_size"),
        values.get("max_size"), load,
    )  # fmt: skip
    if select.begin is not None and select.end is not None and select.end <= select.begin:
        raise bad(found(select.end), f"more than from, {select.begin:g}", key="until")
    if select.least is not None and select.most is not None and select.most < select.least:
        raise bad(found(select.most), f"at least min_size, {select.least:g}", key="max_size")
    return select


def parse_selection(texts: Iterable[str]) -> Select:
    """Return the selection in texts such as `from=86400,users=3,users=5,load=1.2`.

    Raises:
        ConfigError: a key or value is wrong, or a key other than `users` is given twice.
    """
    words: dict[str, Any] = {}
    for part in (part for text in texts for part in text.split(",")):
        key, equals, value = part.partition("=")
        if not equals:
            raise bad(found(part), "KEY=VALUE")
        if key == "users":
            words.setdefault(key, []).append(_scalar(value))
        elif key in words:
            raise bad("given twice", "each key once", key=key)
        else:
            words[key] = _scalar(value)
    values: dict[str, Any] = build(dict, SELECTION | {"load": LOAD}, words)
    return selection_of(values, values.get("load", 1.0))


def _scalar(text: str) -> int | float | str:
    """Return the number that a text is, else the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
