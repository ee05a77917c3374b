"""Make the contract importable for the tests of adapters, and give the local adapter a world of processes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "contract"))
pytest.register_assert_rewrite("adapter_contract")

from tests.support.local_world import LocalWorld


@pytest.fixture
def world(real: None, tmp_path: Path) -> Iterator[LocalWorld]:
    """Yield the local adapter on two nodes; end what still runs."""
    with LocalWorld(tmp_path) as world:
        yield world
