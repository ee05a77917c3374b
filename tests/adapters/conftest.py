"""Makes the contract importable for the tests of adapters, and gives the local one a world of processes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "contract")]
pytest.register_assert_rewrite("adapter_contract", "local_world")

from local_world import LocalWorld  # noqa: E402


@pytest.fixture
def world(tmp_path: Path) -> Iterator[LocalWorld]:
    """The local adapter on two nodes; what still runs at the end is ended."""
    with LocalWorld(tmp_path) as world:
        yield world
