"""The service as a client of its commands sees it: one request to the daemon for each question."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...daemon.paths import SYSTEM_SOCKET, client_files, client_socket, runtime_socket
from ...simulate.errors import PilotfishError
from ..inputs import Profiles, refuse_trace, with_input_sizes, working_directory
from ..streams import warn

if TYPE_CHECKING:
    from ...daemon.report.selection import Chosen


class UnreachableError(PilotfishError):
    """No answer now; asking again later may succeed."""


class EndUnknownError(PilotfishError):
    """The end of a workflow cannot be learned."""


def ask_daemon(socket: str | None, do: str, *, timeout_s: float = 30.0, **arguments: Any) -> dict[str, Any]:
    """Send one request to the daemon and return its reply.

    Args:
        socket: path of its socket; None = the default one.
        do: the request, see `daemon.socket.rpc`.
        timeout_s: seconds to wait for the reply.
        arguments: of the request.

    Raises:
        NoDaemonError: no daemon answers.
        DaemonError: the daemon refuses.
    """
    from ...daemon.socket.ipc import NoDaemonError, ask

    endpoint = str(Path(socket).absolute()) if socket else client_socket()
    try:
        return ask(endpoint, do, timeout_s=timeout_s, trusted=expected_server, **arguments)
    except NoDaemonError:
        if os.path.exists(endpoint) or endpoint != runtime_socket():
            raise
        elsewhere = "" if os.environ.get("PILOTFISH_SOCKET") else f", nor at {SYSTEM_SOCKET}"
        asks = f"{do} asks the service: run it on the machine of the service, or name its socket (--socket PATH)"
        raise NoDaemonError(f"no pilotfish daemon listens at {endpoint}{elsewhere}; {asks}") from None


def administers_system_daemon() -> bool:
    """Return whether the user may see everything of the system's daemon on this machine."""
    if not os.access(SYSTEM_SOCKET, os.W_OK):
        return False
    if os.geteuid() == 0:
        return True
    try:
        return bool(ask_daemon(str(SYSTEM_SOCKET), "rights", timeout_s=5.0)["administers"])
    except PilotfishError:
        return False


def expected_server(uid: int) -> bool:
    """Return whether a daemon may run as this user: as oneself, root, or the account that the settings name."""
    from ...daemon.socket.ipc import own_or_root

    if own_or_root(uid):
        return True
    from ..user_client.settings import read

    try:
        return pwd.getpwuid(uid).pw_name == read(settings_files()).service_user
    except KeyError:
        return False


def settings_files() -> list[Path]:
    """Return the files of settings that exist, or the one that PILOTFISH_CLIENT names."""
    return [path for path in client_files() if os.path.exists(path) or os.environ.get("PILOTFISH_CLIENT")]


def _fields(chosen: Chosen) -> dict[str, Any]:
    """Return what is chosen as fields of a request."""
    return {f"of_{name}": getattr(chosen, name) for name in chosen.__slots__}


@dataclass(frozen=True)
class DaemonClient:
    """Client of `submit`, `status`, `cancel` and `explain` for the daemon at `socket` (None = the default one).

    `user_client.client.UserClient` has the same methods; its replies have the shapes of the daemon's.
    """

    socket: str | None
    #: Seconds between two questions about the end of a workflow: at first, at most.
    poll_s = (0.2, 2.0)
    _answer_s = 10.0

    @cached_property
    def endpoint(self) -> str:
        """The path of the socket; the same for all requests, whatever listens where meanwhile."""
        return str(Path(self.socket).absolute()) if self.socket else client_socket()

    def submit(self, path: Path, store: Path | None, key: str | None, *, hold: bool, export: str | None = None) -> str:
        """Submit a workflow and return its id.

        Args:
            path: file of the workflow.
            store: file of the profile store; None = the user's own.
            key: the same workflow is submitted only once under a key; None = no key.
            hold: jobs wait for pilotfish; has no meaning here.
            export: which variables its jobs have, see `exported`; None = ALL.

        Raises:
            PilotfishError: it was refused.
            EndUnknownError: it may have been submitted.
        """
        from ...daemon.state.codec import encode
        from ...formats.workflows.workflow import read_workflow
        from .exported import exported, own_umask

        refuse_trace(path)
        environment = tuple(sorted(exported("ALL" if export is None else export).items()))
        flow = with_input_sizes(read_workflow(path, Profiles(store)))
        flow = replace(flow, base_environment=environment, umask=own_umask())
        text, directory = encode(flow), str(working_directory())
        reply = ask_daemon(self.endpoint, "submit", timeout_s=60.0, workflow=text, directory=directory, key=key)
        if export is not None and not reply.get("exported", True):
            warn("--export: the resource manager of this service sets the environment of jobs")
        warn(*reply.get("warnings", ()))  # of the service, which knows profiles that its user's own store does not
        return str(reply["id"])

    def status(self, workflow: str | None, chosen: Chosen) -> dict[str, Any]:
        """Return the workflows, or one of them, with their jobs.

        Args:
            workflow: id or name of the one; None = all that are chosen.
            chosen: which workflows and jobs of all.
        """
        return ask_daemon(self.endpoint, "status", workflow=workflow, **_fields(chosen))

    def nodes(self, chosen: Chosen) -> dict[str, Any]:
        """Return the nodes, those in the chosen state or with a job of the chosen user or workflow."""
        return ask_daemon(self.endpoint, "nodes", **_fields(chosen))

    def explain(self, job: str) -> dict[str, Any]:
        """Return what happened to a job."""
        return ask_daemon(self.endpoint, "explain", job=job)

    def cancel(self, target: str) -> dict[str, Any]:
        """Cancel a workflow or WORKFLOW/JOB; return the numbers `cancelled` and `ending`."""
        return ask_daemon(self.endpoint, "cancel", target=target)

    def poll(self, workflow: str, patience_s: float) -> dict[str, Any]:
        """Return the workflow as in `status`, after `patience_s` at most. Raises UnreachableError, EndUnknownError."""
        from ...daemon.socket.ipc import DaemonError, NoDaemonError

        timeout_s = min(self._answer_s, max(1.0, patience_s))
        try:
            reply = ask_daemon(self.endpoint, "status", timeout_s=timeout_s, workflow=workflow)
        except NoDaemonError as error:
            raise UnreachableError(str(error)) from None
        except DaemonError as error:
            raise EndUnknownError(str(error)) from None
        (flow,) = reply["workflows"]
        if reply.get("mode") in ("dry-run", "shadow") and flow["exit_code"] is None:
            raise EndUnknownError(f"the daemon is in mode {reply['mode']}, and starts nothing")
        return dict(flow)
