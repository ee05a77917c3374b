"""What tests of planning register is forgotten after each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pilotfish.simulate.planning.mapping_policies import POLICIES


@pytest.fixture(autouse=True)
def registry() -> Iterator[None]:
    """Forget what a test registers."""
    before = dict(POLICIES)
    yield
    POLICIES.clear()
    POLICIES.update(before)
