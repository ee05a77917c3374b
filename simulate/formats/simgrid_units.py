"""Quantities as SimGrid's platform files write them: 100.0Mf, 125MBps, 50us.

Rule: a number and its unit, at once; a bare number is in flop/s, bytes/s or seconds, as in SimGrid.
Source: SimGrid's documentation, "Platform file reference".
"""

from __future__ import annotations

import re

from .shape import Convert
from .units import LARGEST, bad, found

_QUANTITY = re.compile(r"([+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)([A-Za-z]*)")
_TENS = ("", "k", "M", "G", "T", "P", "E", "Z", "Y")
_TWOS = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi")
_WORDS = ("", "kilo", "mega", "giga", "tera", "peta", "exa", "zeta", "yotta")


def _scaled(unit: str, value: float, prefixes: tuple[str, ...], step: float = 1000.0) -> dict[str, float]:
    return {prefix + unit: value * step**i for i, prefix in enumerate(prefixes)}


_SPEEDS = _scaled("f", 1.0, _TENS) | _scaled("flops", 1.0, _WORDS)
_RATES = _scaled("Bps", 1.0, _TENS) | _scaled("Bps", 1.0, _TWOS, 1024.0)
_RATES |= _scaled("bps", 0.125, _TENS) | _scaled("bps", 0.125, _TWOS, 1024.0)
_TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12}
_TIMES |= {"m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


def _quantity(units: dict[str, float], allowed: str) -> Convert[float]:
    def convert(text: str) -> float:
        match = _QUANTITY.fullmatch(text.strip()) if len(text) < 100 else None
        if match is None or match[2] not in units | {"": 1.0}:
            raise bad(found(text), allowed)
        value = float(match[1]) * units.get(match[2], 1.0)
        if value > LARGEST:
            raise bad(found(text), f"{allowed}, at most {LARGEST:g}")
        return value

    return convert


parse_speed = _quantity(_SPEEDS, "flop/s such as 1Gf or 98.095Mf")
parse_bandwidth = _quantity(_RATES, "bytes or bits per second such as 125MBps or 1Gbps")
parse_time = _quantity(_TIMES, "a time such as 50us or 0.1s")


def parse_speeds(text: str) -> tuple[float, ...]:
    """Flop/s in each performance state, separated by commas. Raises ConfigError."""
    return tuple(map(parse_speed, text.split(",")))
