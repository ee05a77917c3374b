"""Each test logs to its own streams: a handler that it leaves would write to a closed one in the next."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def forget_log_handlers() -> Iterator[None]:
    """Remove the handlers that a test adds, as commands do that go on until their process ends."""
    root = logging.getLogger()
    before = set(root.handlers)
    yield
    for handler in set(root.handlers) - before:
        if not type(handler).__module__.startswith("_pytest."):  # these come and go with each part of a test
            root.removeHandler(handler)
