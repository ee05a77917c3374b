"""How many lines the tests reach, with --cov.

Rule: the counts inform and decide nothing. Where they cannot be saved or joined, the run says so and goes on.
"""

from __future__ import annotations

import io
import os
from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Go on where pytest-cov cannot save or join the counts of the processes."""
    try:
        return (yield)
    except Exception as error:
        if type(error).__module__ != "coverage.exceptions":
            raise
        warning = pytest.PytestWarning(f"lines are not counted: {error}")
        session.config.issue_config_time_warning(warning, stacklevel=1)
        return True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the files of which the tests reach least, if lines are counted, see workers.py.

    What tests run in processes of their own (commands, daemons) and compiled kernels are not counted, nor properties,
    nor rows of a table but the first, nor what a test reaches late.
    """
    options = terminalreporter.config.option
    if options.collectonly or not getattr(options, "cov_source", None):
        return
    from coverage import Coverage
    from coverage.exceptions import CoverageException

    counts, table = Coverage(), io.StringIO()
    try:
        counts.load()
        counts.combine([name for name in (".coverage-imports",) if os.path.exists(name)])
        counts.report(file=table, sort="cover")
    except CoverageException as error:
        terminalreporter.section(f"lines are not counted: {error}")
        return
    terminalreporter.section("coverage in this process, the ten worst files of ten statements or more")
    heading, *files, total = (line for line in table.getvalue().splitlines() if line.strip("-"))
    worst = [line for line in files if int(line.split()[1]) >= 10]
    for line in (heading, *worst[:10], total):
        terminalreporter.write_line(line)
