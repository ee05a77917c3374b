"""The command line: its commands, and the exit code and message of each error.

Rule: results go to stdout, diagnostics to stderr as one line each. Exit codes: 0 success, 1 failure, 64 wrong command
line (EX_USAGE of sysexits.h), 75 the result of a workflow is unknown (EX_TEMPFAIL), 130 interrupted, 141 the reader of
stdout closed it.
"""

from __future__ import annotations

import errno
import gc
import io
import os
import sys
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any

import typer

from ..formats.text import clean, clean_lines
from ..simulate.errors import ConfigErrors, InvalidJobErrors, InvariantError, PilotfishError
from ..trust import message_of
from .lazy import HELP_OPTIONS, Lazy, LazyGroup, UsageError
from .streams import discard, note, open_closed_streams, print_diagnostic, show

FAILED, USAGE, INTERRUPTED, PIPE_CLOSED = 1, 64, 130, 141
#: Width of help and of usage errors, columns.
HELP_CELLS = 80
#: New objects between two runs of the garbage collector. The default, 700, costs the service a fourteenth of its start.
GARBAGE = 50_000
#: Errors of the operating system about a full disk.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
#: The module of `daemon` and its clients.
_SERVICE = ".service.service_commands"


class Pilotfish(LazyGroup):
    """All commands."""

    sections = {
        "Workflows": {
            "plan": Lazy(".workflows.plan", "plan", "Simulate a workflow or a queue; print where each job would run."),
            "run": Lazy(".workflows.run", "run", "Plan a workflow, run it here, compare it with the forecast."),
            "demo": Lazy(".workflows.demo", "demo", "Write a small example workflow of real programs."),
        },
        "Profiles": {
            "profile": Lazy(".profiles.profile", "app", "Measure what jobs need; list, show, import, export profiles."),
            "predict": Lazy(".profiles.predict", "app", "Predict what jobs need from jobs that have ended."),
            "probes": Lazy(".site", "probes", "List what can be measured on this machine, and its cost."),
            "calibrate": Lazy(".profiles.calibrate", "calibrate", "Measure this node; write it as a node type."),
        },
        "Service": {
            "daemon": Lazy(_SERVICE, "daemon", "Start the service that maps and watches submitted jobs."),
            "reload": Lazy(".service.reload", "reload", "Let the service read its configuration again."),
            "pause": Lazy(".service.pause", "pause", "Let the service start nothing, for now."),
            "resume": Lazy(".service.pause", "resume", "Let a paused service go on."),
            "step-up": Lazy(".service.step_up", "step_up", "Let a service that stepped back to shadow go live."),
            "submit": Lazy(_SERVICE, "submit", "Submit a workflow."),
            "status": Lazy(_SERVICE, "status", "Show workflows and jobs, with forecasts."),
            "nodes": Lazy(_SERVICE, "nodes", "Show nodes: state, load, bandwidth, power, jobs."),
            "cancel": Lazy(_SERVICE, "cancel", "Cancel a workflow or a job."),
            "explain": Lazy(_SERVICE, "explain", "Explain a job: candidates, forecasts, choice, outcome."),
            "web": Lazy(".service.web", "web", "Serve pages of the cluster, the queue and its future."),
            "web-token": Lazy(".service.web_token", "web_token", "Make a token for the pages from other machines."),
            "top": Lazy(".service.top", "top", "Show the cluster, the queue and its future in this terminal."),
            "bundle": Lazy(".service.bundle", "bundle", "Collect what helps to find a fault of a service."),
            "score": Lazy(".score.score_command", "score", "Say what a dry run would have gained: the card."),
            "accuracy": Lazy(".service.accuracy", "accuracy", "Compare the forecasts of jobs with their outcomes."),
            "log": Lazy(".service.log", "log", "Show what the service wrote and changed, and who decided it."),
            "backup": Lazy(".service.backup_commands", "backup", "Keep the state of the service in one file."),
            "restore": Lazy(".service.backup_commands", "restore", "Put the state of the service back from a backup."),
            "record": Lazy(".service.record", "record", "Keep what a resource manager shows, for `replay`."),
        },
        "Replay": {
            "simulate": Lazy(".replay.simulate", "simulate", "Replay a trace of jobs under a policy."),
            "replay": Lazy(".replay.replay_command", "replay", "Replay a trace under the service's own control loop."),
            "batsim": Lazy(".replay.batsim_command", "batsim", "Replay a trace under a decision component of Batsim."),
            "edc": Lazy(".replay.edc", "edc", "Decide for a Batsim, as its decision component."),
            "whatif": Lazy(".whatif.whatif", "whatif", "Replay a Slurm site under Slurm's own rules."),
            "sweep": Lazy(".replay.sweep", "sweep", "Replay traces under many policies, machines and loads."),
            "policies": Lazy(".replay.policies", "policies", "List queue policies and mapping policies."),
            "plot": Lazy(".replay.plot", "plot", "Draw a replay: gantt, queue, energy, ..."),
            "generate": Lazy(".replay.generate", "app", "Generate a workload: rigid jobs, workflows, communication."),
            "convert": Lazy(".replay.convert", "convert", "Write a workload or a machine in another format."),
        },
        "Learning": {
            "train": Lazy(".learning.train", "app", "Learn an order of the queue from traces."),
            "evaluate": Lazy(
                ".learning.evaluate_models", "evaluate", "Judge learned orders against every exact rival."
            ),
            "model": Lazy(".learning.model", "app", "Show or check the file of a learned order."),
        },
        "Site": {
            "doctor": Lazy(".site", "doctor", "Examine a site or this machine, and say what to change."),
            "cluster": Lazy(".site", "cluster", "Print a cluster file of the nodes of a resource manager."),
            "site": Lazy(".whatif.site_group", "app", "Record a Slurm site for `whatif`."),
            "warm": Lazy(".warm", "warm", "Compile all kernels for this machine, so that no command does."),
            "reap": Lazy(".site", "reap", "Clear pins whose jobs have not started (for a timer)."),
        },
    }
    lazy = {name: command for commands in sections.values() for name, command in commands.items()}


app = typer.Typer(
    name="pilotfish",
    cls=Pilotfish,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings=HELP_OPTIONS,
)


def _version(is_requested: bool) -> None:
    if is_requested:
        from ..built_from import full_version

        show(f"pilotfish {full_version()}")
        raise typer.Exit


@app.callback()
def pilotfish(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version and the commit."),
    ] = False,
) -> None:
    """Simulate before you dispatch: map workflows to nodes, with the contention that the jobs will meet there.

    \b
    Examples:
      pilotfish plan dag.yaml --cluster lab.yaml
      pilotfish run dag.yaml
      pilotfish simulate trace.swf.gz --policy easy
    """


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (default: of this process) and return its exit code."""
    gc.set_threshold(GARBAGE)
    open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run(argv)
    except BrokenPipeError:
        code = PIPE_CLOSED
    try:
        sys.stdout.flush()
    except OSError as error:
        discard(sys.stdout)
        return code or (PIPE_CLOSED if isinstance(error, BrokenPipeError) else _output_error(error))
    return code


@cache
def _command() -> Any:
    return typer.main.get_command(app)


def _run(argv: Sequence[str] | None) -> int:
    try:
        result = _command().main(None if argv is None else list(argv), prog_name="pilotfish", standalone_mode=False)
    except UsageError as error:
        import textwrap

        is_help = error.ctx is not None and error.message == error.ctx.get_help()  # a group without a command
        error.message = (clean_lines if is_help else clean)(error.message)
        shown = io.StringIO()
        error.show(shown)
        for line in shown.getvalue().splitlines():
            wrapped = textwrap.wrap(line, HELP_CELLS, break_long_words=False, break_on_hyphens=False)
            print_diagnostic(*wrapped or [""])
        return USAGE
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except SystemExit as stop:  # raised by click for a closed pipe and for completion
        if isinstance(stop.__context__, BrokenPipeError):
            raise stop.__context__ from None
        return stop.code if isinstance(stop.code, int) else FAILED
    except InvariantError as error:
        return _internal_error(error)
    except PilotfishError as error:
        return _fail(*map(str, error.errors if isinstance(error, ConfigErrors | InvalidJobErrors) else (error,)))
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is None:
            return _output_error(error) if error.errno in _FULL else _internal_error(error)
        return _fail(message_of(error))
    except MemoryError as error:
        return _fail(f"there is not enough memory for this{f': {error}' if str(error) else ''}")
    except Exception as error:
        return _internal_error(error)
    return result if isinstance(result, int) else 0


def _fail(*texts: str) -> int:
    note(*(f"error: {text}" for text in texts))
    return FAILED


def _output_error(error: OSError) -> int:
    return _fail(f"the output cannot be written: {error.strerror}")


def _internal_error(error: Exception) -> int:
    if os.environ.get("PILOTFISH_DEBUG") == "1":
        import traceback

        print_diagnostic(*"".join(traceback.format_exception(error)).split("\n"))
    problem = f"{type(error).__name__}: {error}"
    return _fail(f"unexpected {problem} (please report this; PILOTFISH_DEBUG=1 shows where it happened)")


if __name__ == "__main__":
    sys.exit(main())
