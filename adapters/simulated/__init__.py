"""A simulated cluster with a virtual clock, to run the whole daemon at full speed."""

from __future__ import annotations

from .adapter import SimulatedAdapter, create

__all__ = ["SimulatedAdapter", "create"]
