"""The versions of Batsim's protocol: how each reads and writes the same events and decisions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .messages import DECISIONS, EVENTS, Event, Message, read_message
from .messages_4_write import batsim_message, component_message
from .messages_5_read import DECISIONS_5, EVENTS_5, NAMES_5, read_5
from .messages_5_write import batsim_message_5, component_message_5


@dataclass(frozen=True, slots=True)
class ProtocolVersion:
    """A version of the protocol.

    Args:
        number: 4 or 5.
        from_batsim: writes a message in Batsim's place.
        from_component: writes a message of a decision component.
        read_events: reads what Batsim says, under a name for messages. Raises ConfigError.
        read_decisions: reads what a component says, under its name. Raises ConfigError.
        names: decision -> its name in messages, where that is not its `type`.
    """

    number: int
    from_batsim: Callable[[Message], bytes]
    from_component: Callable[[Message], bytes]
    read_events: Callable[[bytes, str], Message]
    read_decisions: Callable[[bytes, str], Message]
    names: Mapping[type[Event], str] = field(default_factory=dict)


VERSION_4 = ProtocolVersion(
    4, batsim_message, component_message,
    lambda raw, sender: read_message(raw, EVENTS, sender), lambda raw, sender: read_message(raw, DECISIONS, sender),
)  # fmt: skip
VERSION_5 = ProtocolVersion(
    5, batsim_message_5, component_message_5,
    lambda raw, sender: read_5(raw, EVENTS_5, sender), lambda raw, sender: read_5(raw, DECISIONS_5, sender),
    NAMES_5,
)  # fmt: skip
