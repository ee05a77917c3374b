"""What tests measured is printed at the end of the run: `record_property("measured", "one line")` in a test.

Rules: numbers that depend on how busy the machine is are reported, not asserted; no example has a deadline. Properties
try the same examples in each run, at most MOST each, so that a change is judged and not luck; with --quick a fifth of
them, and tests that are marked as long are left out and counted at the end. `--hypothesis-profile=hunt` looks for new
ones, as many as a property asks for and more. marks.py says which tests may be tried again; those that were are named at
the end.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("tests.support", "tests.reference")
sys.path.insert(0, str(Path(__file__).parent))
import guardian
import known_policies
import log_handlers
import marks
import workers

UNTIMED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]}
#: Examples of a property.
MOST = 50
settings.register_profile("same", derandomize=True, max_examples=MOST, **UNTIMED)
settings.register_profile("hunt", max_examples=1000, **UNTIMED)
settings.load_profile("same")

#: The groups that take longest, in that order, after the one that measures the machine.
LONGEST = (
    "machine", "site 2", "site 5", "slurm 2", "oar 2", "oar 1", "site 1", "slurm 1", "site 3", "slurm 3", "site 4",
    "installed docs/guides", "slurm settings shared", "slurm settings alone", "slurm allocation", "slurm rules plain",
    "slurm rules strict", "slurm settings main", "slurm 4", "slurm rules tuned", "counters",
)  # fmt: skip
#: By how much pure tests are nicer than others, under root: they compute while the others wait.
NICER, USUAL = 5, os.getpriority(os.PRIO_PROCESS, 0)
#: New objects between two runs of the garbage collector.
GARBAGE = 50_000
#: Names of the tests that --quick leaves out.
LEFT_OUT = pytest.StashKey[list[str]]()
#: Seconds from which on a run shows what took longest.
LONG_S = 60.0


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --quick."""
    parser.addoption("--quick", action="store_true", help="try a fifth of the examples, and no long test")


def pytest_configure(config: pytest.Config) -> None:
    """Let a guardian end what the run leaves behind, however it is interrupted."""
    config.pluginmanager.register(marks)
    for plugin in (known_policies, log_handlers):
        config.pluginmanager.register(plugin)
    config.stash[LEFT_OUT] = []
    if config.getoption("--quick"):
        from tests.support import effort

        effort.share = effort.QUICK
        _try_fewer(effort.of)
    elif not config.getoption("hypothesis_profile", None):
        _try_fewer(int)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell starts what runs in its background so
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput") and not config.getoption("collectonly"):
        guardian.start(*guardian.outer())


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: list[Any]) -> None:
    """Fork the workers from one process, which has imported all tests."""
    server = workers.Server(guardian.folder() / "workers", [*config.invocation_params.args])
    config.add_cleanup(server.close)
    for spec in specs:
        spec.python = server.worker


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Distribute the tests at a cost that does not grow with those that have ended."""
    from tests.distribution import Distribution

    return Distribution(config, log) if config.getoption("dist") == "loadgroup" else None


def _try_fewer(share_of: Callable[[int], int]) -> None:
    """Limit the examples of properties that are collected from now on to a share of what they ask for, at most MOST."""
    settings.register_profile("fewer", settings.get_profile("same"), max_examples=share_of(MOST))
    settings.load_profile("fewer")
    begin = settings.__init__

    def limited(self: settings, *arguments: Any, **options: Any) -> None:
        if "max_examples" in options:
            options["max_examples"] = share_of(min(options["max_examples"], MOST))
        begin(self, *arguments, **options)

    settings.__init__ = limited


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the tests that take longest; with --quick, leave out those that are long."""
    if config.getoption("--quick"):
        long = [item for item in items if item.get_closest_marker("long") and not item.get_closest_marker("real")]
        config.stash[LEFT_OUT] = [item.nodeid for item in long]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if not item.get_closest_marker("long")]
    items.sort(key=_turn)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Let the process that reports know which tests a worker has left out."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left out"] = session.config.stash[LEFT_OUT]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take from a worker which tests it has left out: all leave out the same."""
    node.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get("left out", [])


def _turn(item: pytest.Item) -> int:
    """Return when a test begins: those of the longest groups, then other groups, other real tests, long ones, pure ones.

    The workers that compute begin with the last.
    """
    if group := item.get_closest_marker("xdist_group"):
        return LONGEST.index(group.args[0]) if group.args[0] in LONGEST else len(LONGEST)
    kind = 1 if item.get_closest_marker("real") else 2 if item.get_closest_marker("long") else 3
    return len(LONGEST) + kind


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep what is collected until the end: the garbage collector need not look at it again and again.

    Otherwise it runs as seldom as in the commands.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(GARBAGE)
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    """Let pure tests compute while the others wait."""
    if os.geteuid() == 0:
        with suppress(PermissionError):  # root in a container may not go back
            os.setpriority(os.PRIO_PROCESS, 0, USUAL + (0 if item.get_closest_marker("real") else NICER))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None, object, object]:
    """Print what tests of all processes measured, and at the very end the tests that were tried again, and why."""
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
    _show_longest(terminalreporter)
    if left_out := terminalreporter.config.stash[LEFT_OUT]:
        terminalreporter.section(f"left out with --quick: {len(left_out)} long tests; `make test` runs them")
        for path, number in Counter(name.partition("[")[0] for name in sorted(left_out)).items():
            terminalreporter.write_line(f"{path}" + (f": {number} cases" if number > 1 else ""))
    result = yield
    again = {report.nodeid: report.longreprtext for report in reversed(terminalreporter.getreports("rerun"))}
    if again:
        terminalreporter.section("tried again")
    for name, text in sorted(again.items()):
        reasons = [line[1:].strip() for line in text.splitlines() if line.startswith("E ")]
        terminalreporter.write_line(f"{name}: {' '.join(reasons[:1])} ({text.rstrip().rpartition(chr(10))[2]})")
    return result


def _show_longest(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the groups and files whose tests take longest, and when their last test ended; the last one is waited for.

    Tests of one group run one after the other in one worker, so no run is shorter than its longest group.
    """
    spent: Counter[str] = Counter()
    ends: dict[str, float] = {}
    reports = [one for kind in ("", "passed", "failed", "rerun") for one in terminalreporter.getreports(kind)]
    for report in reports:
        path, group = report.nodeid.partition("::")[0], report.nodeid.partition("@")[2]
        for what in filter(None, (group, path)):
            spent[what] += report.duration
            ends[what] = max(ends.get(what, 0.0), getattr(report, "stop", 0.0))
    if not ends or (began := min(report.start for report in reports)) + LONG_S > max(ends.values()):
        return
    terminalreporter.section("what took longest: seconds in all, and when it ended")
    for what, seconds in spent.most_common(20):
        terminalreporter.write_line(f"{what}: {seconds:.0f} s, ended at {ends[what] - began:.0f} s")
