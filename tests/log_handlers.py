"""Each test logs to its own streams: a handler that it leaves would write to a closed one in the next."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

#: The loggers that a service sets up; they are there before the first of them is.
SET_UP = tuple(logging.getLogger(name) for name in ("pilotfish", "py.warnings"))


@pytest.fixture(autouse=True, scope="module")
def forget_log_handlers_of_module() -> Iterator[None]:
    """Undo what the fixtures of a module change in the log."""
    yield from _forget()


@pytest.fixture(autouse=True)
def forget_log_handlers_of_test() -> Iterator[None]:
    """Undo what a test changes in the log, as commands and services do that go on until their process ends."""
    yield from _forget()


def _forget() -> Iterator[None]:
    before = {logger: (logger.handlers[:], logger.propagate, logger.level) for logger in _loggers()}
    last_resort = logging.lastResort
    yield
    logging.lastResort = last_resort
    for logger in _loggers():
        handlers, propagate, level = before.get(logger, ([], logger.propagate, logger.level))
        # pytest's own come and go with each part of a test; those that write nothing do no harm
        harmless = [handler for handler in logger.handlers if handler in handlers or not _writes(handler)]
        removed = [handler for handler in handlers if handler not in harmless and _writes(handler)]
        logger.handlers[:] = harmless + removed
        logger.propagate = propagate
        if logger.level != level:  # to set it is slow
            logger.setLevel(level)


def _loggers() -> list[logging.Logger]:
    by_name = logging.root.manager.loggerDict.values()
    return [logging.root, *(logger for logger in by_name if isinstance(logger, logging.Logger))]


def _writes(handler: logging.Handler) -> bool:
    is_own = type(handler).__module__.startswith("_pytest.")
    return isinstance(handler, logging.StreamHandler) and not is_own
