"""What tests measured is printed at the end of the run: `record_property("measured", "one line")` in a test.

Rules: numbers that depend on how busy the machine is are reported, not asserted; no example has a deadline. Properties
try the same examples in each run, so that a change is judged and not luck; `--hypothesis-profile=hunt` looks for new
ones. What meets real servers, processes and clocks may be tried again, and what needed it is named at the end.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

UNTIMED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]}
settings.register_profile("same", derandomize=True, **UNTIMED)
settings.register_profile("hunt", max_examples=1000, **UNTIMED)
settings.load_profile("same")

#: Directories whose tests meet the real world (servers, processes, signals, clocks) of the machine they run on.
REAL = ("tests/adapters/", "tests/daemon/", "tests/profiles/", "tests/real/")
AGAIN = 2


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let tests of the real world try again; those of pure code may not."""
    for item in items:
        if item.nodeid.startswith(REAL):
            item.add_marker(pytest.mark.flaky(reruns=AGAIN, reruns_delay=2))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the lines of all tests, from other processes, too, and why a test was tried again."""
    again = terminalreporter.getreports("rerun")
    if again:
        terminalreporter.section("tried again")
        for report in again:
            terminalreporter.write_line(f"{report.nodeid}\n{report.longrepr}")
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
