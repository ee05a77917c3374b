"""`pilotfish daemon` and its clients: submit, status, cancel, explain.

Rule: the clients only ask and show; every answer comes from the daemon, and a daemon that is not there is
one line. Who waits for a workflow's end outlasts a daemon that is started anew, and never takes its absence for an end.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import inputs

if TYPE_CHECKING:
    from ..login.model import Settings

SOCKET = Annotated[
    str | None,
    typer.Option("--socket", metavar="PATH", help="The daemon's socket, if it is not at the usual place."),
]
ADAPTER = Annotated[
    str | None,
    typer.Option("--adapter", metavar="NAME", help="slurm: over Slurm itself, without the daemon. Default: daemon."),
]
JSON = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]
_POLL_S = (0.2, 2.0)
_ANSWER_S = 10.0
#: The exit code of a wait whose end nobody could tell (EX_TEMPFAIL of sysexits.h); a workflow's own is 0 or 1.
NOT_KNOWN = 75


def daemon(
    config: Annotated[
        Path, typer.Option("--config", metavar="FILE", help="The daemon's configuration (YAML).")
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Decide and print, but start nothing and write nothing.")
    ] = False,
    show_commands: Annotated[
        bool, typer.Option("--show-commands", help="In a dry run: also print the commands that it would run.")
    ] = False,
) -> int:
    """Start the service: it maps what is submitted to nodes, starts it, and watches what comes true.

    \b
    Examples:
      pilotfish daemon --config pilotfish.yaml --dry-run
      pilotfish daemon --config /etc/pilotfish/pilotfish.yaml
    """
    from ..service import Service

    return Service(config, dry_run=dry_run, show_commands=show_commands).run()


def submit(
    workflow: inputs.WorkflowFile,
    key: Annotated[
        str | None, typer.Option("--key", help="The same key with the same workflow is taken only once.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for its end; exit with its exit code.")] = False,
    patience: Annotated[
        float,
        typer.Option("--patience", metavar="SECONDS", min=0.0, help="How long --wait asks for an absent daemon."),
    ] = 300.0,
    no_hold: Annotated[
        bool, typer.Option("--no-hold", help="Over Slurm: let it start jobs at once, without waiting for pilotfish.")
    ] = False,
    store: inputs.Store = None,
    adapter: ADAPTER = None,
    socket: SOCKET = None,
) -> int:
    """Hand a workflow to the service, or over Slurm itself, whole or not at all, and print the id that it got.

    --wait ends with 0 if every job completed, 1 if one did not, and 75 if the end could not be learned. A daemon
    that is started anew meanwhile is waited for.

    \b
    Examples:
      pilotfish submit dag.yaml
      pilotfish submit dag.yaml --wait
      pilotfish submit dag.yaml --key nightly-2026-02-03
      pilotfish submit dag.yaml --adapter slurm
    """
    if (to := _over(adapter, socket)) is not None:
        from . import login

        return login.submit(to, workflow, store, key=key, hold=not no_hold, wait=wait, patience=patience)
    if no_hold:
        raise inputs.bad("--no-hold", "it goes with --adapter slurm")
    from ...simulate.formats.workflow import read_workflow
    from ..codec import encode

    flow = read_workflow(workflow, inputs.Profiles(store))
    for warning in flow.warnings:
        inputs.warn(warning)
    text, directory = encode(flow), str(inputs.working_directory())
    reply = ask_daemon(socket, "submit", timeout_s=60.0, workflow=text, directory=directory, key=key)
    print(reply["id"], flush=True)
    if not wait:
        return 0
    code = _wait_for(socket, reply["id"], patience)
    if code not in (0, NOT_KNOWN):
        _tell_failures(socket, reply["id"])
    return code


def status(
    workflow: Annotated[
        str | None, typer.Argument(help="Show this workflow only, with all its jobs.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Show every workflow and every job, however many there are.")
    ] = False,
    as_json: JSON = False,
    adapter: ADAPTER = None,
    socket: SOCKET = None,
) -> int:
    """Show workflows and jobs, with forecasts against what came true.

    Those that have ended, the latest 20, have a line each; those that go on have their jobs below.

    \b
    Examples:
      pilotfish status
      pilotfish status dag-1.k3x9a2
      pilotfish status --json
    """
    if (to := _over(adapter, socket)) is not None:
        from . import login

        return login.status(to, workflow, everything=everything, as_json=as_json)
    reply = ask_daemon(socket, "status", workflow=workflow)
    if as_json:
        print(json.dumps(reply, indent=1))
    else:
        from ..render.service import show_status

        show_status(reply, everything=everything or workflow is not None)
    return 0


def cancel(
    target: Annotated[str, typer.Argument(metavar="WORKFLOW|WORKFLOW/JOB", help="What to cancel.")],
    adapter: ADAPTER = None,
    socket: SOCKET = None,
) -> int:
    """Cancel a workflow or one job: what waits never starts, what runs is ended.

    \b
    Examples:
      pilotfish cancel dag-1.k3x9a2
      pilotfish cancel dag-1.k3x9a2/align
    """
    if (to := _over(adapter, socket)) is not None:
        from . import login

        return login.cancel(to, target)
    reply = ask_daemon(socket, "cancel", target=target)
    print(f"{reply['cancelled']} cancelled, {reply['ending']} being ended")
    if reply["warning"]:
        inputs.warn(f"the running ones are ended later: {reply['warning']}")
    return 0


def explain(
    job: Annotated[str, typer.Argument(metavar="JOB|WORKFLOW/JOB", help="The job; the newest of that name.")],
    as_json: JSON = False,
    adapter: ADAPTER = None,
    socket: SOCKET = None,
) -> int:
    """Tell a job's story: what was chosen, the runner-up, what was foretold and what came true.

    \b
    Examples:
      pilotfish explain align
      pilotfish explain dag-1.k3x9a2/align --json
    """
    if (to := _over(adapter, socket)) is not None:
        from . import login

        return login.explain(to, job, as_json=as_json)
    reply = ask_daemon(socket, "explain", job=job)
    if as_json:
        print(json.dumps(reply, indent=1))
    else:
        from ..render.service import show_story

        show_story(reply)
    return 0


def _over(adapter: str | None, socket: str | None) -> Settings | None:
    """The settings of a login node, None where the daemon is to be asked. Raises ConfigError."""
    from ..login.settings import ADAPTERS, chosen

    if adapter is not None and adapter not in ADAPTERS:
        raise inputs.not_among("--adapter", adapter, "a way to submit", ADAPTERS)
    return chosen(adapter, socket)


def ask_daemon(socket: str | None, do: str, *, timeout_s: float = 30.0, **arguments: Any) -> dict[str, Any]:
    from ..paths import runtime_socket
    from ..wire import ask

    endpoint = f"ipc://{Path(socket).absolute()}" if socket else runtime_socket()
    return ask(endpoint, do, timeout_s=timeout_s, **arguments)


def _tell_failures(socket: str | None, workflow: str) -> None:
    """Name the jobs that failed, and the files of what they said."""
    from ..render.service import failure_lines

    (found,) = ask_daemon(socket, "status", workflow=workflow)["workflows"]
    for line in failure_lines(found):
        inputs.note(line)


def _wait_for(socket: str | None, workflow: str, patience_s: float) -> int:
    """The workflow's exit code once it has ended; NOT_KNOWN where the daemon cannot tell, or stays away."""
    from ..wire import AbsentError, WireError

    pause, longest = _POLL_S
    away: float | None = None
    while True:
        try:
            code = _exit_code(socket, workflow, min(_ANSWER_S, max(1.0, patience_s)))
            away = None
        except AbsentError as error:
            code, now = None, time.monotonic()
            if away is None:
                away = now
                inputs.note(f"{error}; {workflow} is asked for again for {patience_s:g} s")
            if now - away >= patience_s:
                return _give_up(workflow, f"the daemon was away for {patience_s:g} s")
        except WireError as error:
            return _give_up(workflow, str(error))
        if code is not None:
            return code
        time.sleep(pause)
        pause = min(1.2 * pause, longest)


def _exit_code(socket: str | None, workflow: str, timeout_s: float) -> int | None:
    """None while the workflow goes on. Raises WireError as `ask`, and where it goes on for ever."""
    reply = ask_daemon(socket, "status", timeout_s=timeout_s, workflow=workflow)
    (found,) = reply["workflows"]
    if reply.get("mode") == "dry-run" and found["exit_code"] is None:
        from ..wire import WireError

        raise WireError("the daemon is in dry run, and starts nothing")
    return None if found["exit_code"] is None else int(found["exit_code"])


def _give_up(workflow: str, why: str) -> int:
    inputs.note(f"error: how {workflow} ends is not known: {why} (`pilotfish status {workflow}` asks again)")
    return NOT_KNOWN
