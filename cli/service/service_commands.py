"""`pilotfish daemon` and its clients: submit, status, cancel, explain; with a daemon, or with Slurm or OAR alone.

Rule: clients only ask and print. `--wait` survives a restart of the daemon, and never takes its absence for the end of
a workflow.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from ...simulate.errors import ConfigError, did_you_mean
from .. import options
from ..inputs import config_file
from ..options import argument, flag, option
from ..output.documents import print_json
from ..streams import note, show, warn
from ..usage_errors import bad, not_among
from .daemon_client import DaemonClient, EndUnknownError, UnreachableError, administers_system_daemon, settings_files

if TYPE_CHECKING:
    from ..user_client.client import UserClient
    from ..user_client.settings import SubmissionSettings

    Client = DaemonClient | UserClient

#: Ways to submit.
ADAPTERS = ("daemon", "slurm", "oar")
#: Exit code of a wait for an end that could not be learned (EX_TEMPFAIL of sysexits.h); a workflow's own is 0 or 1.
END_UNKNOWN = 75

Adapter = Annotated[
    str | None,
    option(
        "NAME",
        "Ask Slurm or OAR itself, or the service (daemon).",
        words=ADAPTERS,
        default="daemon, or as in client.yaml",
    ),
]


def daemon(
    config: options.ConfigFile = None, dry_run: options.DryRun = False, show_commands: options.ShowCommands = False
) -> int:
    """Start the service: it maps submitted workflows to nodes, starts their jobs, and compares forecast and outcome.

    \b
    Examples:
      pilotfish daemon --config pilotfish.yaml --dry-run
      pilotfish daemon
    """
    from ...daemon.failed_starts import FailedStarts

    file, starts = config_file(config), FailedStarts()
    if not starts.wait(file):
        return 0
    with starts:
        from ...daemon.service import Service

        service = Service(file, dry_run=dry_run, show_commands=show_commands, show=show, started=starts.clear)
        return service.run()


def submit(
    workflow: options.WorkflowFile,
    key: Annotated[str | None, option("KEY", "Submit the same workflow under a key only once.")] = None,
    wait: Annotated[bool, flag("--wait", "Wait for the end; exit with the workflow's exit code.")] = False,
    patience: Annotated[float, option("SECONDS", "How long --wait retries if the daemon is away.", min=0.0)] = 300.0,
    no_hold: Annotated[bool, flag("--no-hold", "On Slurm: let Slurm start jobs at once, without pilotfish.")] = False,
    store: options.Store = None,
    as_json: options.Json = False,
    adapter: Adapter = None,
    socket: options.Socket = None,
    export: Annotated[
        str | None,
        option(
            "NAMES",
            "Your variables that the jobs get: ALL, NONE, or names such as A,B=1; ALL,B=1 adds one.",
            words=("ALL", "NONE"),
            default="ALL",
        ),
    ] = None,
) -> int:
    """Submit a workflow to the service, or to Slurm or OAR itself, whole or not at all; print its id.

    --wait exits with 0 if every job completed, 1 if one did not, and 75 if the result is unknown. It continues when the
    daemon is restarted. On one machine the jobs get your environment, as with sbatch; a variable of the workflow file
    takes precedence.

    \b
    Examples:
      pilotfish submit dag.yaml
      pilotfish submit dag.yaml --export NONE,OMP_NUM_THREADS=4
      pilotfish submit dag.yaml --wait
      pilotfish submit dag.yaml --key nightly-2026-02-03
      pilotfish submit dag.yaml --adapter slurm
    """
    client = _client(adapter, socket)
    if no_hold and (isinstance(client, DaemonClient) or not client.own.begins):
        raise bad("--no-hold", "only with --adapter slurm")
    if export is not None and not isinstance(client, DaemonClient):
        raise bad("--export", f"only with the service: {client.own.manager} sets the environment of its jobs")
    try:
        id = client.submit(workflow, store, key, hold=not no_hold, export=export)
    except EndUnknownError as error:
        note(f"error: {error}")
        return END_UNKNOWN
    if not as_json:
        show(id)
    code = _wait(client, id, patience) if wait else 0
    if as_json:
        print_json("submitted", {"id": id, **({"exit_code": code} if wait else {})})
    return code


def status(
    workflow: Annotated[
        str | None, argument("WORKFLOW", "Show only this workflow, with all its jobs.", words=options.workflow_ids)
    ] = None,
    everything: options.All = False,
    as_json: options.Json = False,
    adapter: Adapter = None,
    socket: options.Socket = None,
    user: options.OfUser = None,
    state: Annotated[
        str | None, option("STATE", "Show only what is in this state.", words=options.job_states, default="all")
    ] = None,
    of_workflow: options.OfWorkflow = None,
    partition: Annotated[
        str | None, option("NAME", "Only jobs of this partition of Slurm or queue of OAR.", default="all")
    ] = None,
    name: Annotated[
        str | None, option("PATTERN", "Show only jobs of this name, such as 'align*'.", default="all")
    ] = None,
    watch: options.Watch = None,
) -> None:
    """Show workflows and jobs, with forecasts and actual times.

    Ended workflows (the latest 20) have one line each; the others list their jobs. Administrators of the service on
    this machine see the jobs of all users, even if client.yaml sends other users to Slurm or OAR.

    \b
    Examples:
      pilotfish status
      pilotfish status dag-1.k3x9a2
      pilotfish status --state failed --user alice
      pilotfish status --partition short --name 'align*'
      pilotfish status --watch 5
      pilotfish status --json
    """
    from ...daemon.report.selection import Chosen

    if state is not None and state not in options.job_states():
        raise not_among("--state", state, "a state of jobs", options.job_states())
    client, chosen = _asking(adapter, socket), Chosen(user, state, of_workflow, partition, name)
    all_jobs = everything or workflow is not None or state is not None

    def show(reply: dict[str, Any]) -> None:
        from ..output.status import show_status

        show_status(reply, everything=all_jobs)

    _print("status", lambda: client.status(workflow, chosen), show, watch, as_json=as_json)


def nodes(
    as_json: options.Json = False,
    socket: options.Socket = None,
    user: options.OfUser = None,
    state: Annotated[
        str | None, option("STATE", "Show only what is in this state.", words=options.node_states, default="all")
    ] = None,
    of_workflow: options.OfWorkflow = None,
    watch: options.Watch = None,
) -> None:
    """Show the nodes of the service: their state and load, and the jobs that run there.

    LOAD is threads per core. BANDWIDTH is the memory traffic that the jobs would have alone, of the bandwidth of the
    node. POWER is the value of the power model for that many busy cores. `-` means unknown.

    \b
    Examples:
      pilotfish nodes
      pilotfish nodes --state drained
      pilotfish nodes --workflow dag-1 --watch
      pilotfish nodes --json
    """
    from ...daemon.report.selection import Chosen
    from ..output.status import show_nodes

    if state is not None and state not in options.node_states():
        raise not_among("--state", state, "a state of nodes", options.node_states())
    chosen = Chosen(user, state, of_workflow)
    _print("nodes", lambda: DaemonClient(socket).nodes(chosen), show_nodes, watch, as_json=as_json)


def _print(
    kind: str,
    ask: Callable[[], dict[str, Any]],
    show: Callable[[dict[str, Any]], None],
    watch: float | None,
    *,
    as_json: bool,
) -> None:
    """Ask and show the reply, again and again with `watch` seconds between; or print it as a document of a kind."""
    if as_json and watch is not None:
        raise bad("--watch", "not with --json, which is one document")
    if as_json:
        print_json(kind, ask())
    elif watch is None:
        show(ask())
    else:
        from .redraw import redraw

        redraw(ask, show, watch)


def cancel(
    target: Annotated[str, argument("WORKFLOW[/JOB]", "The workflow or job to cancel.", words=options.workflow_ids)],
    as_json: options.Json = False,
    adapter: Adapter = None,
    socket: options.Socket = None,
) -> None:
    """Cancel a workflow or one job: waiting jobs never start, running jobs are ended.

    \b
    Examples:
      pilotfish cancel dag-1.k3x9a2
      pilotfish cancel dag-1.k3x9a2/align
    """
    reply = _asking(adapter, socket).cancel(target)
    if as_json:
        print_json("cancelled", reply)
    else:
        show(f"{reply['cancelled']} cancelled, {reply['ending']} being ended")
    if reply["warning"]:
        warn(f"running jobs are ended later: {reply['warning']}")


def explain(
    job: Annotated[
        str,
        argument("[WORKFLOW/]JOB", "The job; without a workflow, the newest of that name.", words=options.job_names),
    ],
    as_json: options.Json = False,
    adapter: Adapter = None,
    socket: options.Socket = None,
) -> None:
    """Explain a job: the chosen nodes, the runner-up, the forecast and the outcome.

    \b
    Examples:
      pilotfish explain align
      pilotfish explain dag-1.k3x9a2/align --json
    """
    reply = _asking(adapter, socket).explain(job)
    if as_json:
        print_json("job", reply)
    else:
        from ..output.status import show_job_log

        show_job_log(reply)


def chosen(adapter: str | None, socket: str | None) -> SubmissionSettings | None:
    """Return the settings for workflows without a daemon, or None for the daemon.

    The command line takes precedence over PILOTFISH_ADAPTER, that over a given socket, that over the user's file, and
    that, key by key, over the site's.

    Args:
        adapter: `--adapter` of the command line; None = not given.
        socket: `--socket` of the command line; None = not given.

    Raises:
        ConfigError: an unknown adapter, or a wrong file.
    """
    adapter_name = adapter or (None if socket else os.environ.get("PILOTFISH_ADAPTER")) or None
    if adapter_name is not None and adapter_name not in ADAPTERS:
        source = "--adapter" if adapter else "PILOTFISH_ADAPTER"
        raise ConfigError(
            source, "", f"found {adapter_name!r}{did_you_mean(adapter_name, ADAPTERS)}", ", ".join(ADAPTERS)
        )
    if adapter_name == "daemon" or (adapter_name is None and (socket or os.environ.get("PILOTFISH_SOCKET"))):
        return None
    files = settings_files()
    if adapter_name is None and not files:
        return None
    from ..user_client.settings import read

    settings = read(files, adapter_name)
    return None if settings.adapter == "daemon" else settings


def _client(adapter: str | None, socket: str | None) -> Client:
    """Return the client of the service, or of a resource manager. Raises ConfigError, typer.BadParameter."""
    if adapter is not None and adapter not in ADAPTERS:
        raise not_among("--adapter", adapter, "a way to submit", ADAPTERS)
    settings = chosen(adapter, socket)
    if settings is None:
        return DaemonClient(socket)
    from ..user_client.client import UserClient

    return UserClient(settings)


def _asking(adapter: str | None, socket: str | None) -> Client:
    """Return the client that a question or a cancellation is for, see `chosen`; raises as `_client`.

    The settings of all users do not keep an administrator of the system's daemon on this machine from asking it.
    """
    client = _client(adapter, socket)
    explicit = adapter or os.environ.get("PILOTFISH_ADAPTER") or os.environ.get("PILOTFISH_CLIENT")
    if explicit or isinstance(client, DaemonClient) or not administers_system_daemon():
        return client
    return DaemonClient(None)


def _wait(client: Client, workflow: str, patience_s: float) -> int:
    """Return the exit code of a workflow once it has ended, or END_UNKNOWN."""
    from ..output.status import failure_lines

    pause, longest = client.poll_s
    since: float | None = None
    while True:
        try:
            flow = client.poll(workflow, patience_s)
            since = None
        except UnreachableError as error:
            now = time.monotonic()
            if since is None:
                since = now
                note(f"{error}; asking again about {workflow} for {patience_s:g} s")
            if now - since >= patience_s:
                reason = f"no answer for {patience_s:g} s: {error}"
                break
        except EndUnknownError as error:
            reason = str(error)
            break
        else:
            if flow["exit_code"] is not None:
                note(*failure_lines(flow))
                return int(flow["exit_code"])
        time.sleep(pause)
        pause = min(1.2 * pause, longest)
    note(f"error: the end of {workflow} is unknown: {reason} (`pilotfish status {workflow}` asks again)")
    return END_UNKNOWN
