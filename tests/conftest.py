"""What tests measured is printed at the end of the run: `record_property("measured", "one line")` in a test.

Rule: numbers that depend on how busy the machine is are reported, not asserted; no example has a deadline either.
"""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the lines of all tests, from other processes, too."""
    reports = [report for status in ("passed", "failed") for report in terminalreporter.getreports(status)]
    lines = [
        f"{report.nodeid.partition('::')[2].partition('@')[0]}: {text}"
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, text in report.user_properties
        if name == "measured"
    ]
    if lines:
        terminalreporter.section("measured on this machine")
        for line in sorted(lines):
            terminalreporter.write_line(line)
