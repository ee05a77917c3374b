"""`pilotfish run`: plan a workflow, run it on this machine, and compare the forecast with the outcome.

Rule: signal handlers and loggers are as before when the run is over.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

from ...daemon.paths import state_dir as state_directory
from ...formats.text import percent
from ...simulate.errors import InvalidJobError
from ...simulate.model.cluster import Cluster
from ...simulate.model.job import Workflow
from ...simulate.model.plan import Plan
from .. import options
from ..charts import picture_files
from ..inputs import Profiles, read_cluster, this_machine, working_directory
from ..options import flag, option
from ..output.documents import print_json
from ..streams import ignore_closed_stdout, note, warn
from .plan_request import PlanRequest

if TYPE_CHECKING:
    from ...adapters.base import Adapter
    from ...daemon.planning.problem import Options
    from ...daemon.report.accuracy import RunOutcome
    from ...daemon.report.cycle_report import CycleReport
    from ...daemon.report.exporter import Health
    from ...daemon.report.metrics import Metrics
    from ...daemon.state.queue import Submission

#: Runs whose output is kept in the state directory.
KEPT_RUNS = 20
#: Share of the CPUs' time that is left by others, from which on they are ignored.
LITTLE_LOAD = 0.95


def run(
    workflow: options.WorkflowFile,
    cluster: options.ClusterFile = None,
    policy: options.MappingPolicy = "lookahead",
    objective: options.Goal = "makespan",
    seed: options.Seed = 0,
    budget: options.Budget = None,
    time_limit: options.TimeLimit = None,
    state_dir: Annotated[
        Path | None, option("DIR", "Folder of the jobs and their output.", default="a new one for each run")
    ] = None,
    live: Annotated[bool, flag("--live/--no-live", "Draw the progress in place, on a terminal.")] = True,
    as_json: options.Json = False,
    everything: options.All = False,
    metrics_port: Annotated[
        int | None, option("PORT", "Serve metrics on 127.0.0.1 during the run.", min=0, max=65535)
    ] = None,
    plot: picture_files.PlotFile = None,
    report: Annotated[Path | None, option("FILE", "The same as --plot.", hidden=True)] = None,
    store: options.Store = None,
) -> int:
    """Plan a workflow, run its commands on this machine, and compare the forecast with the outcome.

    The nodes are made of this machine's CPUs; without --cluster each CPU is a node (cpu0, cpu1, ...).
    Jobs run pinned to the CPUs of their nodes. Whenever a job starts or ends, the rest is planned again, as the service
    does it. FORECAST is a job's run time, forecast at its start; PLANNED and the makespan are of the first plan.
    A job that fails cancels the jobs after it.
    Ctrl-C ends the running jobs (TERM, then KILL); a second Ctrl-C leaves them running. The exit code is
    0 if every job exited with 0, else 1; 130 after Ctrl-C, 143 after TERM.
    The output of the jobs is kept for the latest 20 runs, or in --state-dir. The picture has forecast and actual times.

    \b
    Examples:
      pilotfish run dag.yaml
      pilotfish run dag.yaml --cluster laptop.yaml --policy mom
      pilotfish run dag.yaml --no-live --json > run.json
      pilotfish run dag.yaml --plot run.html
      pilotfish run dag.yaml --metrics-port 9836
    """
    from ...adapters.local.validation import check_cluster
    from ...daemon.learning.node_speeds import at_speeds

    plot = plot or report
    picture_files.check(plot)
    request, profiles = PlanRequest(policy, objective, seed, budget, time_limit), Profiles(store)
    machine = read_cluster(cluster) if cluster else None
    flow = profiles.read_workflow(workflow, machine)
    if missing := [job.id for job in flow.jobs if job.command is None]:
        where = flow.source or flow.name
        raise InvalidJobError(f"{where}: job {missing[0]!r} has no command: it can be planned, but not run")
    working_directory()
    if machine is not None:
        check_cluster(machine)
    site = profiles.scored(machine or this_machine(flow), flow)
    shares, remark = _left_by_others(site)
    planned_on = at_speeds(site, shares)
    request.check(flow, planned_on)
    name, runs = _run_id(flow.name), state_directory() / "runs"
    home = (state_dir or runs / name).absolute()
    with _opened(site, home, metrics_port) as (adapter, metrics, health):
        plan = request.plan(flow, planned_on)
        warn(*flow.warnings, *plan.warnings)
        note(*adapter.notes, *remark)
        work = _Work(name, flow, plan, request.service_options, shares)
        outcome, outputs, ended_by, others_share = _carry_out(work, site, profiles, adapter, metrics, health, live=live)
    with ignore_closed_stdout():
        if as_json:
            from ...daemon.learning.job_profiles import classes_of, with_classes
            from ...daemon.report.accuracy import outcome_to_dict

            classes = classes_of(plan, flow.jobs, site)
            print_json("run", with_classes(outcome_to_dict(outcome, outputs), classes))
        else:
            _show(outcome, flow, site, everything)
    if plot is not None:
        from ..charts.forecast_figure import run_report

        picture_files.save(run_report(outcome, flow, site), plot)
    from ..output.tables import busy_hint, failures

    hint = busy_hint(outcome, others_share)
    note(*failures(outcome, outputs), f"the output of the jobs is in {home}", *([hint] if hint else ()))
    if state_dir is None:
        _remove_old(runs)
    return 128 + ended_by if ended_by else outcome.exit_code


@dataclass(frozen=True)
class _Work:
    """A run that is about to begin.

    Args:
        name: id of the run.
        flow: the workflow.
        plan: by which it begins.
        options: how to plan again.
        shares: of the speed of each node, left by other processes.
    """

    name: str
    flow: Workflow
    plan: Plan
    options: Options
    shares: Sequence[float]


def _left_by_others(site: Cluster) -> tuple[Sequence[float], Sequence[str]]:
    """Return the share of each node's speed that other processes leave, and a sentence on it if that is less than 1."""
    from ...profiles.probes.obtainable_time import busy_shares, obtainable

    busy = busy_shares({cpu for node in site.nodes for cpu in node.cpus})
    shares_of = obtainable(busy)
    shares = [sum(shares_of.get(cpu, 1.0) for cpu in node.cpus) / max(len(node.cpus), 1) for node in site.nodes]
    mean = sum(shares) / len(shares)
    if mean > LITTLE_LOAD or not busy:
        return [1.0] * len(shares), ()
    busy_part = percent(sum(busy.values()) / len(busy))
    return [round(share, 2) for share in shares], (
        f"these CPUs are {busy_part} busy with other processes: forecasts assume {percent(mean)} of their time, as now",
    )


def _remove_old(runs: Path) -> None:
    """Remove all but the latest runs and those that are still running."""
    from ...adapters.local import remove_ended

    with suppress(OSError):
        for old in sorted(runs.iterdir(), key=lambda run: run.stat().st_mtime, reverse=True)[KEPT_RUNS:]:
            remove_ended(old)


def _run_id(name: str) -> str:
    """Return a unique name for this run: the workflow's name, the time, the process."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", name)[:40] or "run"
    return f"{plain}.{time.strftime('%Y%m%dT%H%M%S')}.{os.getpid()}"


@contextmanager
def _opened(site: Cluster, home: Path, port: int | None) -> Iterator[tuple[Adapter, Metrics, Health]]:
    """Open the folder of the jobs and the port of the metrics: whether they are free is known before a plan is made.

    Args:
        site: the nodes of this machine.
        home: folder of the jobs.
        port: of the metrics; None: they are not served.
    """
    from ...adapters import registry
    from ...daemon.report.exporter import Exporter, Health
    from ...daemon.report.metrics import Metrics

    with ExitStack() as stack:
        metrics, health = Metrics(), Health(10.0, time.monotonic)
        if port is not None:
            exporter = stack.enter_context(closing(Exporter(metrics, health, port=port)))
            note(f"metrics on http://127.0.0.1:{exporter.port}/metrics")
        yield stack.enter_context(closing(registry.create(registry.MACHINE, site, state_dir=home))), metrics, health


def _carry_out(
    work: _Work, site: Cluster, profiles: Profiles, adapter: Adapter, metrics: Metrics, health: Health, *, live: bool
) -> tuple[RunOutcome, dict[str, tuple[str, str]], int, float]:
    """Run the workflow to its end.

    Return forecast and actual times; job -> files of its stdout and stderr; the signal that ended the run, or 0; the
    share of the CPUs' time that other processes used.
    """
    from ...daemon.learning.external_load import LoadOfOthers
    from ...daemon.one_off import WorkflowRun, beginning_with
    from ...daemon.report.accuracy import outcome_of
    from ...profiles.probes.node_load import OtherLoad
    from ..output.live import view

    with ExitStack() as stack:
        name, flow, plan, clock = work.name, work.flow, work.plan, time.monotonic
        planner, load = beginning_with(plan, name, flow, clock), LoadOfOthers(work.shares)
        cycles = WorkflowRun(name, flow, adapter, metrics, clock, work.options, planner=planner, others=load)
        dispatch = stack.enter_context(closing(cycles))
        caught = stack.enter_context(collected_signals())
        stack.enter_context(cycle_warnings())
        watcher = stack.enter_context(closing(view(dispatch.submission, plan, site, clock, live=live)))

        def show(report: CycleReport | None) -> None:
            if report is not None:
                health.completed()
            watcher.show(report)

        other_load = OtherLoad(cpu for node in site.nodes for cpu in node.cpus)
        submission = dispatch.until_ended(show, lambda: bool(caught))
        last, keys = adapter.snapshot(), {entry.key for entry in submission.entries.values()}
        used = sum(dict(view.usage).get("cpu_seconds", 0.0) for view in last.jobs if view.key in keys)
        busy = other_load.share(used)
        profiles.learn(submission, last)
        outputs = _outputs(adapter, submission)
    return outcome_of(submission, plan), outputs, caught[0] if caught else 0, busy


def _outputs(adapter: Adapter, submission: Submission) -> dict[str, tuple[str, str]]:
    """Return job -> files of its stdout and stderr, for started jobs whose files the adapter knows."""
    began = [entry for entry in submission.entries.values() if entry.start_time is not None]
    files = {entry.job.id: adapter.output(entry.key) for entry in began}
    return {job: (str(pair[0]), str(pair[1])) for job, pair in files.items() if pair}


def _show(outcome: RunOutcome, flow: Workflow, site: Cluster, everything: bool) -> None:
    from ...daemon.learning.job_profiles import classes_of
    from ...daemon.state.profile_labels import has_default_profile
    from ..output.tables import header, left_out, outcome_summary, outcome_table
    from ..output.text import Screen, class_lines

    screen = Screen()
    screen.title(header(outcome.plan, flow, site))
    guessed = {job.id for job in flow.jobs if has_default_profile(job)}
    screen.put(outcome_table(outcome, screen, everything=everything, guessed=guessed))
    if not everything and (hidden := left_out(len(outcome.jobs))):
        screen.put(hidden)
    screen.put("", *outcome_summary(outcome), *class_lines(classes_of(outcome.plan, flow.jobs, site), screen.cells))


@contextmanager
def collected_signals() -> Iterator[list[int]]:
    """Collect SIGINT and SIGTERM in a list; a second signal has its usual effect."""
    caught: list[int] = []

    def collect(number: int, _frame: FrameType | None) -> None:
        caught.append(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        note("ending the running jobs; once more to leave them running")

    with ExitStack() as stack:
        for number in (signal.SIGINT, signal.SIGTERM):
            stack.callback(signal.signal, number, signal.signal(number, collect))
        yield caught


@contextmanager
def cycle_warnings() -> Iterator[None]:
    """Print the warnings of the control loop; the live view reports on single jobs."""

    class Printer(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            warn(record.getMessage())

    top, cycle = logging.getLogger("pilotfish"), logging.getLogger("pilotfish.cycle")
    with ExitStack() as stack:
        stack.callback(setattr, top, "propagate", top.propagate)
        top.propagate = False
        for logger, handler in ((top, logging.NullHandler()), (cycle, Printer(logging.WARNING))):
            logger.addHandler(handler)
            stack.callback(logger.removeHandler, handler)
        yield
