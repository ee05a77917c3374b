"""The command line: which commands there are, and what becomes of their errors.

Rule: results go to stdout, diagnostics to stderr as one line. Exit codes: 0 done, 1 the thing asked for
failed, 64 the command line was wrong (EX_USAGE of sysexits.h), 75 the end that was waited for could not be learned
(EX_TEMPFAIL), 130 interrupted, 141 the reader of stdout went away.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from ..simulate.errors import InvariantError, PilotfishError
from .lazy import HELP_OPTIONS, Lazy, LazyGroup
from .streams import attach, forget, tell

FAILED, USAGE, INTERRUPTED, UNHEARD = 1, 64, 130, 141
#: What the operating system says of a disk that takes no more.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
#: Base of click's errors about the command line, wherever this version of typer keeps its click.
_UsageError: Any = typer.BadParameter.__mro__[1]


class Pilotfish(LazyGroup):
    """The commands, in the order in which a newcomer meets them."""

    lazy = {
        "plan": Lazy(".commands.plan", "plan", "Simulate a workflow or a queue; print where each job would run."),
        "run": Lazy(".commands.run", "run", "Plan a workflow, run it here, compare with the forecast."),
        "demo": Lazy(
            ".commands.demo", "demo", "Write small example workflows with real programs to try out."
        ),
        "profile": Lazy(
            ".commands.profile", "app", "Measure what jobs need; list, show, import and export profiles."
        ),
        "probes": Lazy(".commands.probes", "probes", "List what can be measured here, why not more, at what cost."),
        "calibrate": Lazy(".commands.calibrate", "calibrate", "Measure this node; write it as a node type."),
        "predict": Lazy(".commands.predict", "app", "Predict what jobs need from those that ended; measure how well."),
        "simulate": Lazy(".commands.simulate", "simulate", "Replay a trace of jobs under a queue policy."),
        "convert": Lazy(".commands.convert", "convert", "Write a workload or a machine in another format."),
        "generate": Lazy(".commands.generate", "app", "Make up a workload: rigid jobs, workflows, communication."),
        "sweep": Lazy(".commands.sweep", "sweep", "Replay traces under many policies, machines and loads."),
        "policies": Lazy(".commands.simulate", "policies", "List the queue policies and their options."),
        "plot": Lazy(".commands.plot", "plot", "Draw what a replay was like: gantt, queue, energy, ..."),
        "daemon": Lazy(
            ".commands.service", "daemon", "Start the service that maps and watches what is submitted."
        ),
        "submit": Lazy(".commands.service", "submit", "Hand a workflow to the service."),
        "status": Lazy(".commands.service", "status", "Show what the service is doing."),
        "cancel": Lazy(".commands.service", "cancel", "Cancel a workflow or a job of the service."),
        "explain": Lazy(
            ".commands.service", "explain", "Tell a job's story: candidates, forecasts, choice, outcome."
        ),
        "accuracy": Lazy(".commands.accuracy", "accuracy", "Compare what was foretold of jobs with what came true."),
        "doctor": Lazy(".commands.doctor", "doctor", "Examine a site: can pilotfish work beside it, and how?"),
        "cluster": Lazy(".commands.cluster", "cluster", "Print a cluster file of the nodes that are there."),
        "reap": Lazy(".commands.reap", "reap", "Take back pins that have not become a start (for a timer)."),
    }


app = typer.Typer(
    name="pilotfish",
    cls=Pilotfish,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings=HELP_OPTIONS,
)


def _version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        print(f"pilotfish {__version__}")
        raise typer.Exit


@app.callback()
def pilotfish(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Simulate before you dispatch: map workflows to nodes with the contention they will meet there.

    \b
    Examples:
      pilotfish plan dag.yaml --cluster lab.yaml
      pilotfish plan dag.yaml --cluster lab.yaml --compare
      pilotfish run dag.yaml
    """


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (default: this process's) and return its exit code."""
    attach()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run(argv)
    except BrokenPipeError:
        code = UNHEARD
    try:
        sys.stdout.flush()
    except OSError as error:
        forget(sys.stdout)
        return code or (UNHEARD if isinstance(error, BrokenPipeError) else _unwritten(error))
    return code


def _run(argv: Sequence[str] | None) -> int:
    try:
        command = typer.main.get_command(app)
        result = command.main(
            None if argv is None else list(argv), prog_name="pilotfish", standalone_mode=False
        )
    except _UsageError as error:
        error.show()
        return USAGE
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except SystemExit as stop:  # click's own answer to a closed pipe, and to completion requests
        if isinstance(stop.__context__, BrokenPipeError):
            raise stop.__context__ from None
        return stop.code if isinstance(stop.code, int) else FAILED
    except InvariantError as error:
        return _our_bug(error)
    except PilotfishError as error:
        return _say(f"error: {error}", FAILED)
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is None:
            return _unwritten(error) if error.errno in _FULL else _our_bug(error)
        return _say(f"error: {error.filename}: {error.strerror}", FAILED)
    except MemoryError as error:
        return _say(f"error: there is not enough memory for this{f': {error}' if str(error) else ''}", FAILED)
    except Exception as error:
        return _our_bug(error)
    return result if isinstance(result, int) else 0


def _say(text: str, code: int) -> int:
    tell(f"pilotfish: {text}")
    return code


def _unwritten(error: OSError) -> int:
    return _say(f"error: the output cannot be written: {error.strerror}", FAILED)


def _our_bug(error: Exception) -> int:
    if os.environ.get("PILOTFISH_DEBUG") == "1":
        import traceback

        traceback.print_exception(error)
    what = f"{type(error).__name__}: {error}"
    return _say(
        f"error: unexpected {what} (please report this; PILOTFISH_DEBUG=1 shows where it happened)", FAILED
    )


if __name__ == "__main__":
    sys.exit(main())
