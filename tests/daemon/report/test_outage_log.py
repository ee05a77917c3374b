"""Outages in the log: each that lasts, and never a flood of pairs."""

from __future__ import annotations

import logging

import pytest

from pilotfish.daemon.report.outage_log import EVERY_S, OutageLog
from tests.support.clock import Clock


def test_outages_that_alternate_with_answers_are_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    outages = OutageLog(clock)
    with caplog.at_level(logging.WARNING):
        for _ in range(10):
            outages.begin("x")
            outages.begin("x")
            assert outages.lasts
            clock.now += 1
            outages.end()
            assert not outages.lasts
        said = [record.getMessage() for record in caplog.records]
        assert said == [
            "the cluster cannot be reached: x; nothing is decided until it can",
            "the cluster can be reached again",
        ]
        outages.begin("y")
        clock.now += EVERY_S
        outages.begin("y")
        outages.end()
    said = [record.getMessage() for record in caplog.records][2:]
    assert said[0].startswith("the cluster cannot be reached: y;")
    assert said[0].endswith("(after 9 short outages that the log leaves out)")
    assert said[1:] == ["the cluster can be reached again"]
