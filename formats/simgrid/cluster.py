"""What a SimGrid host draws, as Batsim takes it.

Rule: a host draws what it says for all its cores while a job computes on it, and what it says for none else. Of
`sleep_pstates` each triple names a state to sleep in, and two more: as long as a flop takes there, so long, and at that
power, the host is switched off and on. The first triple is `off`.
Source: SimGrid's documentation, "Host energy plugin"; Batsim's, "Platform".
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NamedTuple

from ..platform import Power, PowerState, Transition
from .shape import inside
from .simgrid_platform import Host
from .units import bad, found

#: Properties that say it; two of them had other names once.
PROPERTIES = ("wattage_per_state", "watt_per_state", "wattage_off", "watt_off", "sleep_pstates")
_WATTS = re.compile(r"\s*[0-9]+\.?[0-9]*(?:[eE][-+]?[0-9]{1,3})?\s*")
_ALLOWED = "idle:all cores, or idle:epsilon:all cores, in watts, for each performance state, separated by commas"
_ALLOWED_SLEEP = "triples such as 1:2:3 of states: asleep, switching off, switching on; separated by commas"


class _Watts(NamedTuple):
    """Of a performance state: idle, and with all cores busy."""

    idle: float
    full: float


class _States:
    """The performance states of a host, as power states."""

    def __init__(self, host: Host, watts: list[_Watts]) -> None:
        self._host, self._watts = host, watts

    def computing(self, state: int) -> PowerState:
        """At the speed of that state."""
        if self._host.speeds[state] <= 0:
            raise bad(f"found 0 flop/s in state {state}", "more than 0, or a state of sleep_pstates", "speed")
        return PowerState(f"pstate{state}", *self._watts[state], self._host.speeds[state])

    def asleep(self, state: int, enter: int, leave: int) -> PowerState:
        """Switched off and on through two others."""
        ways = (Transition(self._watts[way].full, 1.0 / self._host.speeds[way]) for way in (enter, leave))
        return PowerState(f"pstate{state}", self._watts[state].idle, None, None, *ways)


def power_of(host: Host) -> Power | None:
    """Its power states; None where it says none. Raises ConfigError."""
    key = next((key for key in PROPERTIES[:2] if key in host.properties), None)
    if key is None:
        return None
    watts = inside(key, _all_watts, host.properties[key], len(host.speeds))
    triples = inside("sleep_pstates", _triples, host.properties.get("sleep_pstates", ""), host.speeds)
    special = {state for triple in triples for state in triple}
    if host.pstate in special:
        raise bad(f"{host.pstate} is the state in which it begins", "states other than that", "sleep_pstates")
    states = _States(host, watts)
    power = Power(
        watts[host.pstate].idle,
        computing=watts[host.pstate].full,
        off=_off(host),
        states=(
            *(states.computing(i) for i in range(len(watts)) if i not in special | {host.pstate}),
            *(states.asleep(*triple) for triple in triples[1:]),
        ),
    )
    if not triples:
        return power
    off = states.asleep(*triples[0])
    return replace(power, off=off.watts, switch_on=off.leave, switch_off=off.enter)


def _off(host: Host) -> float | None:
    key = next((key for key in PROPERTIES[2:4] if key in host.properties), None)
    return None if key is None else inside(key, _watts, host.properties[key])


def _all_watts(text: str, count: int) -> list[_Watts]:
    """Of each performance state."""
    states = []
    for part in text.split(","):
        watts = [_watts(each) for each in part.split(":")]
        if len(watts) not in (2, 3):
            raise bad(found(part.strip()), _ALLOWED)
        if watts[-1] < watts[0]:
            raise bad(f"{found(part.strip())}, less with all cores busy than idle", _ALLOWED)
        states.append(_Watts(watts[0], watts[-1]))
    if len(states) != count:
        raise bad(f"found {len(states)} for {count} performance states", _ALLOWED)
    return states


def _watts(text: str) -> float:
    if not _WATTS.fullmatch(text) or float(text) > 1e9:
        raise bad(found(text.strip()), "watts, 0 or more")
    return float(text)


def _triples(text: str, speeds: tuple[float, ...]) -> list[tuple[int, int, int]]:
    """Of states: asleep, switching off, switching on."""
    triples = []
    for part in text.split(",") if text.strip() else ():
        states = [int(word) if re.fullmatch("[0-9]{1,4}", word.strip()) else -1 for word in part.split(":")]
        if len(states) != 3 or not all(0 <= state < len(speeds) for state in states):
            raise bad(found(part.strip()), f"{_ALLOWED_SLEEP}; states are 0 to {len(speeds) - 1}")
        sleep, enter, leave = states
        if speeds[enter] <= 0 or speeds[leave] <= 0:
            raise bad(f"{found(part.strip())}: at 0 flop/s, switching has no end", "states of a speed above 0")
        triples.append((sleep, enter, leave))
    sleeps = {triple[0] for triple in triples}
    if len(sleeps) < len(triples) or any(sleeps & set(triple[1:]) for triple in triples):
        raise bad(f"{found(text)}: a state is named twice", "each state for one thing")
    return triples
