"""The information that a decision component gets of the machine, and the actions open to it.

Rule: in protocol 4 the configuration of Batsim says what it may do, in protocol 5 its own hello.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ComponentWorld:
    """The machine as a component sees it, and what the component may do.

    Args:
        about: the `data` of SIMULATION_BEGINS.
        states: number of a state of machines -> whether they are on then; empty: machines cannot be switched.
        storages: name of each storage -> its number; None: the machine has no network.
        speeds: flop/s of all resources; () = unknown.
        registers: it may register jobs.
        forwards: submissions carry the profile.
        natural: submissions of one instant come in the order of the file.
        latency_s: seconds by which each end reaches the component later.
    """

    about: Mapping[str, Any]
    states: Mapping[str, bool] = field(default_factory=dict)
    storages: Mapping[str, int] | None = None
    speeds: tuple[float, ...] = ()
    registers: bool = False
    forwards: bool = False
    natural: bool = False
    latency_s: float = 0.0
