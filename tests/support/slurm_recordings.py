"""Recordings of a real Slurm: its configuration, dumps and accounting of small cases. They are not in the project.

They are in the folder that SLURM_RECORDINGS names, else in a `data/slurm-real` of a neighbour of the checkout.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]


def recorded_case(name: str) -> Path:
    """Return the folder of a recorded case; the test is skipped if it is not there."""
    named = os.environ.get("SLURM_RECORDINGS")
    folders = [Path(named)] if named else sorted(CHECKOUT.parent.glob("*/data/slurm-real"))
    for folder in folders:
        if (folder / name / "slurm.conf").exists():
            return folder / name
    pytest.skip(
        f"NOT compared with the real Slurm: its recording {name} is not in SLURM_RECORDINGS or */data/slurm-real"
    )
