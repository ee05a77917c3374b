"""`pilotfish run`: plan a workflow, run it on this machine, and say how far the forecast was from what
happened.
"""

from __future__ import annotations

import json
import os
import re
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ...simulate.errors import InvalidJobError
from ...simulate.job import Workflow
from ...simulate.plan import Plan
from ...simulate.platform import Cluster
from ..streams import unheard
from . import inputs
from .during import collected_signals, cycle_warnings

if TYPE_CHECKING:
    from ...adapters.base import Adapter
    from ...simulate.snapshot import Snapshot
    from ..cycle import Report
    from ..outcome import RunOutcome
    from ..queue import Submission

#: Runs whose jobs' output is kept in the state directory.
KEPT_RUNS = 20


def run(
    workflow: inputs.WorkflowFile,
    cluster: Annotated[
        Path | None,
        typer.Option(
            "--cluster", "-c", metavar="FILE", help="Nodes made of this machine's CPUs; default: one a CPU."
        ),
    ] = None,
    policy: inputs.Policy = "lookahead",
    objective: inputs.Goal = "makespan",
    seed: inputs.Seed = 0,
    budget: inputs.Budget = None,
    time_limit: inputs.TimeLimit = None,
    state_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Where jobs and their output are kept; default: a new one each run."
        ),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live/--no-live", help="Draw the run in place, on a terminal.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document at the end.")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Show every job, however many there are.")
    ] = False,
    metrics_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, metavar="PORT", help="Serve metrics on 127.0.0.1 while it runs."),
    ] = None,
    store: inputs.Store = None,
) -> int:
    """Plan a workflow, run its commands on this machine, and compare the forecast with what happened.

    Jobs run pinned to their nodes' CPUs, in the plan's order. A job that fails cancels what waits for it.
    Ctrl-C ends the running jobs (TERM, then KILL); once more, and they go on without us. The exit code is
    0 if every job exited with 0, else 1; 130 after Ctrl-C, 143 after TERM.
    The jobs' output is kept for the latest 20 runs, or where --state-dir says.

    \b
    Examples:
      pilotfish run dag.yaml
      pilotfish run dag.yaml --cluster laptop.yaml --policy mom
      pilotfish run dag.yaml --no-live --json > run.json
      pilotfish run dag.yaml --metrics-port 9836
    """
    wishes = inputs.wishes(policy, objective, seed, budget, time_limit)
    profiles = inputs.Profiles(store)
    flow = profiles.read_workflow(workflow)
    _demand_commands(flow)
    inputs.working_directory()
    site = inputs.read_cluster(cluster) if cluster else inputs.this_machine(flow)
    site = profiles.scored(site, flow)
    inputs.load_simulator()
    plan = wishes.plan(flow, site)
    for warning in dict.fromkeys((*flow.warnings, *plan.warnings)):
        inputs.warn(warning)
    name = _run_id(flow.name)
    home = (state_dir or _runs() / name).absolute()
    outcome, outputs, interrupted, others = _carry_out(name, flow, plan, site, home, profiles, live, metrics_port)
    with unheard():
        if as_json:
            from ..classed import classes_of, with_classes
            from ..outcome import outcome_to_dict

            document = with_classes(outcome_to_dict(outcome, outputs), classes_of(plan, flow.jobs, site))
            print(json.dumps(document, indent=2, allow_nan=False))
        else:
            _show(outcome, flow, site, everything)
    _tell_failures(outcome, outputs, home)
    _tell_why(outcome, others)
    if state_dir is None:
        _prune(_runs())
    return 128 + interrupted if interrupted else outcome.exit_code


class _Ran(NamedTuple):
    """What came of a run.

    `outputs`: the jobs' files of stdout and stderr; `signal` that ended it, or 0; `others`: their share of the CPUs.
    """

    outcome: RunOutcome
    outputs: dict[str, tuple[str, str]]
    signal: int
    others: float


def _runs() -> Path:
    return inputs.state_dir() / "runs"


def _prune(runs: Path) -> None:
    """Keep the latest runs and what goes on; remove the others."""
    from ...adapters.local import remove_ended

    with suppress(OSError):
        for old in sorted(runs.iterdir(), key=lambda run: run.stat().st_mtime, reverse=True)[KEPT_RUNS:]:
            remove_ended(old)


def _demand_commands(flow: Workflow) -> None:
    for job in flow.jobs:
        if job.command is None:
            where = flow.source or flow.name
            raise InvalidJobError(f"{where}: job {job.id!r} has no command: it can be planned, but not run")


def _run_id(name: str) -> str:
    """A name for this run that no other has: the workflow's, the time, the process."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", name)[:40] or "run"
    return f"{plain}.{time.strftime('%Y%m%dT%H%M%S')}.{os.getpid()}"


def _adapter(site: Cluster, home: Path) -> Adapter:
    from ...adapters import registry

    adapter = registry.create("local", site, state_dir=home)
    for note in adapter.notes:
        inputs.note(note)
    return adapter


def _carry_out(
    name: str,
    flow: Workflow,
    plan: Plan,
    site: Cluster,
    home: Path,
    profiles: inputs.Profiles,
    live: bool,
    metrics_port: int | None,
) -> _Ran:
    """Run the plan; returns what came of it."""
    from ...profiles.probes.others import Others
    from ..dispatch import Dispatch
    from ..exporter import Exporter, Health, Metrics
    from ..outcome import outcome_of
    from ..render.live import view

    with ExitStack() as stack:
        adapter = _adapter(site, home)
        stack.callback(adapter.close)
        metrics, health = Metrics(), Health(10.0, time.monotonic)
        if metrics_port is not None:
            exporter = Exporter(metrics, health, port=metrics_port)
            stack.callback(exporter.close)
            inputs.note(f"metrics on http://127.0.0.1:{exporter.port}/metrics")
        dispatch = Dispatch(name, flow, plan, adapter, metrics, time.monotonic)
        stack.callback(dispatch.close)
        caught = stack.enter_context(collected_signals())
        stack.enter_context(cycle_warnings())
        watcher = view(dispatch.submission, plan, site, time.monotonic, live=live)
        stack.callback(watcher.close)

        def show(report: Report | None) -> None:
            if report is not None:
                health.completed()
            watcher.show(report)

        others = Others(cpu for node in site.nodes for cpu in node.cpus)
        submission = dispatch.until_ended(show, lambda: bool(caught))
        last = adapter.snapshot()
        busy = others.share(_cpu_seconds(submission, last))
        profiles.learn(submission, last)
        outputs = _outputs(adapter, submission)
    return _Ran(outcome_of(submission, plan), outputs, caught[0] if caught else 0, busy)


def _cpu_seconds(submission: Submission, snapshot: Snapshot) -> float:
    """What the jobs used, all together."""
    keys = {entry.key for entry in submission.entries.values()}
    return sum(dict(view.usage).get("cpu_seconds", 0.0) for view in snapshot.jobs if view.key in keys)


def _outputs(adapter: Adapter, submission: Submission) -> dict[str, tuple[str, str]]:
    """Job id -> files of its stdout and stderr, for the jobs that began, where the adapter knows them."""
    began = [entry for entry in submission.entries.values() if entry.start_time is not None]
    files = {entry.job.id: adapter.output(entry.key) for entry in began}
    return {job: (str(pair[0]), str(pair[1])) for job, pair in files.items() if pair}


def _show(outcome: RunOutcome, flow: Workflow, site: Cluster, everything: bool) -> None:
    from ..classed import classes_of
    from ..render.classes import class_lines
    from ..render.outcome import outcome_summary, outcome_table
    from ..render.screen import Screen
    from ..render.tables import header, left_out

    screen = Screen()
    screen.title(header(outcome.plan, flow, site))
    screen.put(outcome_table(outcome, screen.cells, ascii_only=screen.ascii_only, everything=everything))
    if not everything and (note := left_out(len(outcome.jobs))):
        screen.put(note)
    screen.put("", *outcome_summary(outcome), *class_lines(classes_of(outcome.plan, flow.jobs, site), screen.cells))


def _tell_failures(outcome: RunOutcome, outputs: dict[str, tuple[str, str]], home: Path) -> None:
    from ..render.outcome import failures

    for line in failures(outcome, outputs):
        inputs.note(line)
    inputs.note(f"the jobs' output is in {home}")


def _tell_why(outcome: RunOutcome, others: float) -> None:
    from ..render.outcome import busy_hint

    if hint := busy_hint(outcome, others):
        inputs.note(hint)
