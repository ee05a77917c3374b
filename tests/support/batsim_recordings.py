"""Recordings of the real Batsim: results of small cases, and all messages of some runs. They are not in the project.

They are in the folder that BATSIM_RECORDINGS names, else in a `data/batsim-real` of a neighbour of the checkout.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]


def recordings() -> Path | None:
    """Return the folder of the recordings; None: there is none."""
    if named := os.environ.get("BATSIM_RECORDINGS"):
        return Path(named)
    return next(iter(sorted(CHECKOUT.parent.glob("*/data/batsim-real"))), None)


def recorded(name: str) -> Path:
    """Return a file or a folder of the recordings; the test is skipped if it is not there."""
    folder = recordings()
    if folder is None or not (folder / name).exists():
        where = folder or "BATSIM_RECORDINGS"
        pytest.skip(f"NOT compared with the real Batsim: its recording {name} is not in {where}")
    return folder / name


def recorded_messages(name: str) -> list[tuple[str, bytes]]:
    """Return who sent each message of a recorded run, "batsim" or "scheduler", and the message as it was sent."""
    lines = recorded(f"protocol_{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [(row["from"], row["raw"].encode()) for row in map(json.loads, lines)]
