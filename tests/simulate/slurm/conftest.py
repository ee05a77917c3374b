"""Kernels of Slurm's rules as plain Python, in this process."""

from __future__ import annotations

from types import ModuleType

import pytest

from pilotfish.simulate.kernels import interpreted
from pilotfish.simulate.kernels.slurm import (
    bits,
    fair_shares,
    job_limits,
    later_room,
    node_ends,
    node_use,
    pass_length,
    priority,
    reserved_nodes,
    running_order,
)


@pytest.fixture
def plain_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Call the functions of limits, reservations and running jobs uncompiled."""
    limits: tuple[ModuleType, ...] = (bits, fair_shares, priority, job_limits, reserved_nodes)
    modules = (*limits, running_order, node_use, node_ends, later_room, pass_length)
    for module in modules:
        for name, function in vars(module).copy().items():
            if hasattr(function, "py_func"):
                monkeypatch.setattr(module, name, function.py_func)
    monkeypatch.setattr(bits, "trailing_zeros", interpreted.trailing_zeros)
