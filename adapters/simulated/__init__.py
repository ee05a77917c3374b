"""The engine behind the adapter protocol, with a virtual clock: the whole daemon at full speed."""

from __future__ import annotations

from .adapter import SimulatedAdapter, create

__all__ = ["SimulatedAdapter", "create"]
