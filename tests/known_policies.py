"""Each test knows the built-in mapping policies, and those that it or a fixture of its module registers."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def forget_policies_of_module() -> Iterator[None]:
    """Forget the policies that the fixtures of a module register, so that the next module does not meet them."""
    yield from _forget()


@pytest.fixture(autouse=True)
def forget_policies_of_test() -> Iterator[None]:
    """Forget the policies that a test registers."""
    yield from _forget()


def _forget() -> Iterator[None]:
    name = "pilotfish.simulate.planning.mapping_policies"  # most tests do not import it
    before = dict(sys.modules[name].POLICIES) if name in sys.modules else None
    yield
    if module := sys.modules.get(name):
        kept = before or {name: module.POLICIES[name] for name in (*module.POLICY_CODES, "lookahead")}
        module.POLICIES.clear()
        module.POLICIES.update(kept)
