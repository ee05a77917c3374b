"""Check the shape of documents and convert quantities with units; the texts of their errors are made here.

Rule: a converter takes a plain value and returns what it means, or raises ConfigError with the problem and what is
allowed. The caller of a converter adds the key in front, so every error carries the whole dotted key. A bare number is
in the base unit (bytes, bytes/s, Hz, seconds); text names its unit or is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import Enum
from typing import Any, TypeGuard, TypeVar, cast

from ..simulate.errors import ConfigError, ConfigErrors

#: Largest quantity that is accepted (1 EB, 1 EB/s, 30 Gyr); larger numbers are taken for typing errors.
LARGEST = 1e18
_PREFIXES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_PREFIXES |= {f"{p}i": 1024.0**i for i, p in enumerate("KMGTP", start=1)}
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)\s*([kKMGTP]?i?)(B/s|B|Hz)")
_CLOCK = re.compile(r"(?:([0-9]{1,9})-)?([0-9]{1,9})(?::([0-9]{1,9}))?(?::([0-9]{1,9}))?")
T = TypeVar("T")
K = TypeVar("K", bound=Enum)
ALLOWED_DURATION = "seconds as a number, or D-HH:MM:SS, HH:MM:SS or MM:SS"


def found(value: object) -> str:
    """Return `found VALUE`, the value shortened to a readable length."""
    if value is None:
        return "found nothing"
    if isinstance(value, bool):
        return f"found {str(value).lower()}"
    if isinstance(value, dict | list | tuple):
        kind = "a mapping" if isinstance(value, dict) else "a list"
        return f"found {kind} of {len(value)}" if value else f"found {kind} that is empty"
    if isinstance(value, int) and value.bit_length() > 200:
        return "found a number of more than 60 digits"
    text = repr(value)
    return f"found {text}" if len(text) <= 60 else f"found {text[:56]}...{text[-1]}"


def bad(problem: str, allowed: str = "", key: str = "") -> ConfigError:
    """Return a ConfigError without a file.

    Callers add the file and the keys around `key` (see `inside`, `from_source`).

    Args:
        problem: what was found.
        allowed: what is allowed; may be empty.
        key: where, relative to the value that is checked.
    """
    return ConfigError("", key, problem, allowed)


def is_number(value: object) -> TypeGuard[float]:
    """Return whether `value` is an int or a float; true and false are no numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def checked_number(value: Any, allowed: str, low: float = 0.0, high: float = LARGEST, *, above: bool = False) -> float:
    """Return `value` as a float if it is a number in [low, high], or in (low, high] if `above`.

    Args:
        value: any value of a document.
        allowed: what is allowed, for the error.
        low: smallest number.
        high: largest number.
        above: whether `low` itself is refused.

    Raises:
        ConfigError: bool, text, NaN, or out of range.
    """
    if not is_number(value) or not low <= value <= high or (above and value == low):
        raise bad(found(value), allowed)
    return float(value)


Convert = Callable[[Any], T]


def _quantity(unit: str, allowed: str) -> Convert[float]:
    """Return a converter of numbers, and of text with a unit, to the base unit."""

    def convert(value: Any) -> float:
        if not isinstance(value, str):
            return checked_number(value, allowed)
        match = _QUANTITY.fullmatch(value.strip()) if len(value) < 50 else None
        if not match or match[3] != unit or match[2] not in _PREFIXES:
            raise bad(found(value), allowed)
        number = float(match[1]) * _PREFIXES[match[2]]
        if number > LARGEST:
            raise bad(found(value), allowed)
        return number

    return convert


#: Bytes from a number or from text such as 2GiB (1024s) or 500MB (1000s).
parse_size = _quantity("B", "bytes as a number, or a size such as 2GiB or 500MB")
#: Bytes/s from a number or from text such as 80GB/s.
parse_rate = _quantity("B/s", "bytes/s as a number, or a rate such as 80GB/s")
#: Hz from a number or from text such as 2.4GHz.
parse_frequency = _quantity("Hz", "Hz as a number, or a frequency such as 2.4GHz")


def parse_duration(value: Any) -> float:
    """Return seconds from a number or from Slurm's D-HH[:MM[:SS]], HH:MM:SS or MM:SS (sbatch(1), --time).

    A bare number in text is refused: in Slurm it would be minutes, here seconds. Raises ConfigError.
    """
    if not isinstance(value, str):
        return checked_number(value, ALLOWED_DURATION)
    match = _CLOCK.fullmatch(value.strip())
    if match:
        parts = [int(part) for part in match.groups()[1:] if part is not None]
        days = match[1] is not None
        hours, minutes, seconds = (*parts, 0, 0)[:3] if days or len(parts) == 3 else (0, *parts, 0)[:3]
        minute_limit = 60 if days or len(parts) == 3 else math.inf
        hour_limit = 24 if days else math.inf
        if (days or len(parts) > 1) and seconds < 60 and minutes < minute_limit and hours < hour_limit:
            return float(((int(match[1] or 0) * 24 + hours) * 60 + minutes) * 60 + seconds)
    raise bad(found(value), ALLOWED_DURATION)


def clock(seconds: float, *, days: bool = True) -> str:
    """Format a duration for a resource manager: D-HH:MM:SS (Slurm), or H:MM:SS without days (OAR).

    Args:
        seconds: 0 or more; fractions are rounded up, so that a limit is never shorter than requested.
        days: whether days are written apart from hours.
    """
    minutes, second = divmod(math.ceil(seconds), 60)
    hours, minute = divmod(minutes, 60)
    if not days:
        return f"{hours}:{minute:02}:{second:02}"
    day, hour = divmod(hours, 24)
    return (f"{day}-" if day else "") + f"{hour:02}:{minute:02}:{second:02}"


def format_duration(seconds: float) -> str:
    """Format a duration for people: 850ms, 12.5s, 3m05s, 2h03m, 1d04h."""
    if not math.isfinite(seconds):
        return "never" if seconds > 0 else "unknown"
    if seconds < 0:
        return f"-{format_duration(-seconds)}"
    if 0 < seconds < 0.9995:
        return f"{seconds * 1e3:.3g}ms"
    if seconds < 59.95:
        return f"{seconds:.3g}s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02}m"
    return f"{whole // 86400}d{whole % 86400 // 3600:02}h"


def format_size(size: float, *, rate: bool = False) -> str:
    """Format bytes for people, with three digits: 2GiB for whole multiples of 1024^n, else 500MB.

    Args:
        size: bytes, or bytes/s with `rate`.
        rate: write B/s, with decimal prefixes only.
    """
    tail = "B/s" if rate else "B"
    for i, prefix in reversed(list(enumerate("KMGTP", start=1))):
        if not rate and size >= 1024**i and (size / 1024**i).is_integer() and size / 1024**i < 1024:
            return f"{size / 1024**i:.0f}{prefix}iB"
    for prefix in ("P", "T", "G", "M", "k"):
        if abs(size) >= 0.9995 * _PREFIXES[prefix]:
            return f"{size / _PREFIXES[prefix]:.3g}{prefix}{tail}"
    return f"{size:.3g}{tail}"


_UNFIT = re.compile("[\0\ud800-\udfff]")


def join(key: str, rest: str) -> str:
    """Join two parts of a dotted key; list positions are written [i]."""
    return f"{key}.{rest}" if key and rest and rest[0] != "[" else key + rest


def shown(key: object) -> str:
    """Return a key in a form that is safe to print."""
    text = str(key)
    return text if text.isprintable() and 0 < len(text) <= 100 else ascii(text[:100])


def inside(key: str, convert: Callable[..., T], *args: Any) -> T:
    """Call `convert`, and put `key` in front of the key of each ConfigError that it raises."""
    return _moved(lambda one: ConfigError(one.source, join(key, one.key), one.problem, one.allowed), convert, args)


def from_source(source: str, convert: Callable[..., T], *args: Any) -> T:
    """Call `convert`, and name `source` as the file of each ConfigError that it raises."""
    return _moved(lambda one: ConfigError(source, one.key, one.problem, one.allowed), convert, args)


def _moved(move: Callable[[ConfigError], ConfigError], convert: Callable[..., T], args: tuple[Any, ...]) -> T:
    try:
        return convert(*args)
    except ConfigErrors as several:
        raise ConfigErrors([move(one) for one in several.errors]) from None
    except ConfigError as error:
        raise move(error) from None


#: Errors of one file that are collected before reading stops.
MOST_ERRORS = 20


class Collector:
    """Collects the errors of the parts of a file, so that they are reported together."""

    def __init__(self) -> None:
        self.errors: list[ConfigError] = []

    def add(self, error: ConfigError) -> None:
        """Add an error. Raises ConfigError: there are MOST_ERRORS."""
        self.errors += error.errors if isinstance(error, ConfigErrors) else (error,)
        if len(self.errors) >= MOST_ERRORS:
            del self.errors[MOST_ERRORS:]
            self.check()

    def read(self, key: str, convert: Callable[..., T], *args: Any) -> T | None:
        """Return what `convert` returns, or None and keep its error; see `inside`."""
        try:
            return inside(key, convert, *args)
        except ConfigError as error:
            self.add(error)
            return None

    def check(self) -> None:
        """Raise the errors, if there are any: ConfigError for one, ConfigErrors for several."""
        if self.errors:
            raise ConfigErrors(self.errors) if len(self.errors) > 1 else self.errors[0]


def nearest(wanted: object, names: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` if one of `names` is close to the text `wanted`, else an empty string."""
    from difflib import get_close_matches

    near = get_close_matches(wanted[:100], list(names), n=1) if isinstance(wanted, str) else ()
    return f"; did you mean {shown(near[0])!r}?" if near else ""


def mapping(value: Any) -> dict[str, Any]:
    """Return `value` if it is a mapping with text keys. Raises ConfigError."""
    if not isinstance(value, dict):
        raise bad(found(value), "a mapping of keys to values")
    for key in value:
        if type(key) is not str:
            raise bad("a key that is not text", "text as keys", shown(key))
    return value


def require(data: Mapping[str, Any], keys: Collection[str], allowed: str = "") -> None:
    """Raise ConfigError for the first of `keys` that is missing; `allowed` replaces the list of all of them."""
    for key in keys:
        if key not in data:
            raise bad("missing", allowed or f"required here: {', '.join(keys)}", key)


def keyed(
    value: Any, known: Iterable[str], required: Collection[str] = (), aliases: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return a mapping that has all `required` keys and only `known` ones.

    Args:
        value: what was read.
        known: allowed keys.
        required: keys that must be there.
        aliases: other word -> the key that it probably means, for the error.

    Raises:
        ConfigError: not a mapping; ConfigErrors: several unknown or missing keys.
    """
    data, known, wrong = mapping(value), dict.fromkeys(known), Collector()
    for key in data if not data.keys() <= known.keys() else ():
        if key not in known:
            meant = (aliases or {}).get(key)
            hint = f"; did you mean {meant!r}?" if meant in known else nearest(key, known)
            wrong.add(bad(f"unknown key{hint}", ", ".join(known), shown(key)))
    wrong.read("", require, data, required)
    wrong.check()
    return data


def build(
    make: Callable[..., T],
    table: Mapping[str, Convert[Any]],
    value: Any,
    required: Collection[str] = (),
    **more: Any,
) -> T:
    """Convert each value of a mapping and return `make(**converted, **more)`.

    Args:
        make: called with the converted values.
        table: key -> converter; any other key is an error.
        value: the mapping.
        required: keys that must be there; the others are left to the defaults of `make`.
        more: further arguments of `make`.

    Raises:
        ConfigError: not a mapping, an unknown or a missing key, or an error of a converter; ConfigErrors: several.
    """
    wrong = Collector()
    try:
        data = keyed(value, table, required)
    except ConfigError as error:
        wrong.add(error)
        data = {key: part for key, part in value.items() if key in table} if isinstance(value, dict) else {}
    for key, part in data.items():
        more[key] = wrong.read(key, table[key], part)
    wrong.check()
    return make(**more)


def number(low: float = 0.0, high: float = LARGEST, *, above: bool = False) -> Convert[float]:
    """Return a converter of finite numbers in [low, high], or in (low, high] if `above`."""
    allowed = f"a number {'above' if above else 'from'} {low:g}" + (f" to {high:g}" if high < LARGEST else "")
    return lambda value: checked_number(value, allowed, low, high, above=above)


def whole(low: int, high: int = 1_000_000) -> Convert[int]:
    """Return a converter of whole numbers in [low, high]."""
    allowed = f"a whole number from {low} to {high}"

    def convert(value: Any) -> int:
        if not checked_number(value, allowed, low, high).is_integer():
            raise bad(found(value), allowed)
        return int(value)

    return convert


def above_zero(convert: Convert[float]) -> Convert[float]:
    """Return `convert` with zero refused."""

    def positive(value: Any) -> float:
        result = convert(value)
        if result == 0:
            raise bad(found(value), "more than zero")
        return result

    return positive


def choice(kind: type[K]) -> Convert[K]:
    """Return a converter of the values of a text enumeration to its members."""
    meanings = {member.value: member for member in kind}

    def convert(value: Any) -> K:
        if not isinstance(value, str) or value not in meanings:
            raise bad(found(value) + nearest(value, meanings), ", ".join(meanings))
        return meanings[value]

    return convert


def flag(value: Any) -> bool:
    """Return true or false. Raises ConfigError."""
    if not isinstance(value, bool):
        raise bad(found(value), "true or false")
    return value


def name(value: Any) -> str:
    """Return a name: printable text of 1 to 255 characters; a whole number is accepted. Raises ConfigError."""
    if isinstance(value, int) and not isinstance(value, bool) and -1e18 < value < 1e18:
        value = str(value)
    if not isinstance(value, str) or not 0 < len(value) <= 255 or not value.isprintable() or value != value.strip():
        raise bad(found(value), "printable text of 1 to 255 characters, no blanks at its ends")
    return value


def text(value: Any) -> str:
    """Return text that can be an argument of a process: no NUL, no lone surrogates. Raises ConfigError."""
    if not isinstance(value, str) or _UNFIT.search(value):
        raise bad(found(value), "text (in quotes where it looks like something else)")
    return value


def word(value: Any) -> str:
    """Return a word of a command or the value of a variable: text, or a number as written. Raises ConfigError."""
    return str(value) if is_number(value) and -1e18 < value < 1e18 else text(value)


def listed(convert: Convert[T], *, least: int = 0) -> Convert[tuple[T, ...]]:
    """Return a converter of lists with at least `least` items, each converted by `convert`."""

    def convert_all(value: Any) -> tuple[T, ...]:
        if not isinstance(value, list | tuple) or len(value) < least:
            raise bad(found(value), f"a list of at least {least}" if least else "a list")
        wrong = Collector()
        every = [wrong.read(f"[{i}]", convert, part) for i, part in enumerate(value)]
        wrong.check()
        return tuple(cast("list[T]", every))

    return convert_all


def entries(value: Any, convert: Callable[[str, Any], T]) -> dict[str, T]:
    """Return a mapping with each value replaced by `convert(key, value)`. Raises ConfigError, or ConfigErrors."""
    wrong = Collector()
    converted = {key: wrong.read(shown(key), convert, key, part) for key, part in mapping(value).items()}
    wrong.check()
    return cast("dict[str, T]", converted)


def plain(seconds: float) -> float:
    """Return a whole number as an int, any other number unchanged."""
    return int(seconds) if seconds.is_integer() else seconds
