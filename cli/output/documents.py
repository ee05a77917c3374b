"""JSON documents of commands: every one names its schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..streams import show_document


def print_json(kind: str, content: Mapping[str, Any]) -> None:
    """Print one JSON document on stdout.

    Args:
        kind: the name in its schema, `pilotfish/KIND/v1`; a schema in `content` takes precedence.
        content: the other keys.
    """
    show_document(json.dumps({"schema": f"pilotfish/{kind}/v1", **content}, indent=2, allow_nan=False) + "\n")
