"""Findings about the service itself: whether its daemon answers, and whether its account can do what is configured.

Rule: an alarm states only what was examined, and its remedy helps in the state that was found: a daemon that hangs is
restarted, and only the site's configuration belongs to the unit.
"""

from __future__ import annotations

import getpass
import grp
import os
import pwd
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..adapters.findings import NOTE, OK, PROBLEM, WARNING, Finding, ServiceState
from ..daemon import paths
from ..simulate.errors import ConfigError
from ..trust import UntrustedError, as_account, check_file, check_folder

if TYPE_CHECKING:
    from ..daemon.config import DaemonConfig
    from ..simulate.model.cluster import Cluster

UNIT = "pilotfishd.service"


def current_user() -> str:
    """Return the name of the current user, "" without one."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def is_known(user: str) -> bool:
    """Return whether this machine has a user of that name; a container may run as a user without one ("")."""
    try:
        return not user or pwd.getpwnam(user).pw_uid >= 0
    except KeyError:
        return False


def settings_account() -> str:
    """Return the account of the service as the settings of clients name it."""
    from .service.daemon_client import settings_files
    from .user_client.settings import read

    return read(settings_files()).service_user


def endpoint_of(config: DaemonConfig) -> str:
    """Return where the daemon of a configuration listens; without a path in it, where clients look."""
    return config.endpoint if config.socket.path else paths.client_socket()


def service_state(config: DaemonConfig | None) -> tuple[ServiceState, list[Finding]]:
    """Return the state of the service of this configuration (None: at the default socket), and findings about it."""
    from ..daemon.socket.ipc import DaemonError, NoDaemonError, SilentDaemonError, ask
    from .service.daemon_client import expected_server

    shadow, power = (not config.run_mode.acts, config.power.save) if config else (False, False)
    endpoint = endpoint_of(config) if config else paths.client_socket()
    mode: str | None = ""
    hangs = False
    try:
        mode = str(ask(endpoint, "status", timeout_s=5.0, trusted=expected_server).get("mode", "unknown"))
        finding = Finding(OK, "service", f"the daemon answers at {endpoint}; mode {mode}")
    except NoDaemonError as error:
        finding, hangs = Finding(NOTE, "service", str(error)), isinstance(error, SilentDaemonError)
        if config is not None:
            text = "it is busy or hangs" if hangs else "the resource manager starts all jobs itself"
            status = "" if hangs else _property("StatusText")  # of a unit that is up, or that tries to start
            text = f"{text}; systemd: {status}" if status else text
            remedy = (f"systemctl {'restart' if hangs or status else 'start'} pilotfishd",) if _by_unit() else ()
            finding = Finding(NOTE if shadow else WARNING, "service", f"{error}: {text}", remedy)
    except DaemonError as error:
        mode, finding = None, Finding(NOTE, "service", f"the state of the service is unknown: {error}")
    state = config.adapter_state if config else None
    has_socket = os.path.exists(endpoint.removeprefix("ipc://"))
    return ServiceState(mode, shadow, power, state, hangs=hangs, socket=endpoint if has_socket else ""), [finding]


def _by_unit() -> bool:
    """Return whether systemd has the unit of the service."""
    return _property("LoadState") == "loaded"


def _property(name: str) -> str:
    """Return a property of the unit; "" without systemd."""
    argv = ["systemctl", "show", "--value", f"--property={name}", UNIT]
    try:
        process = subprocess.run(argv, capture_output=True, text=True, timeout=10.0, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return process.stdout.strip() if process.returncode == 0 else ""


def group_findings(config: DaemonConfig, account: str) -> list[Finding]:
    """Return why the account of the service, or its unit, cannot give the socket to the configured group."""
    name = config.socket.group
    if name is None or not is_known(account) or account == "root":
        return []
    try:
        group = grp.getgrnam(name)
    except KeyError:
        text = f"socket.group: there is no group {name!r}, so the daemon does not start"
        return [Finding(PROBLEM, "socket", text, (f"groupadd {name}",))]
    if group.gr_gid not in os.getgrouplist(account, pwd.getpwnam(account).pw_gid):
        text = f"socket.group: {account} is not a member of {name}, so the daemon does not start"
        remedy = (f"usermod --append --groups {name} {account}", "systemctl restart pilotfishd")
        return [Finding(PROBLEM, "socket", text, remedy)]
    calls = _property("SystemCallFilter").split()
    denied = bool(calls) and calls[0].startswith("~")
    listed = {call.lstrip("~").partition(":")[0] for call in calls}
    if calls and not all((call in listed) != denied for call in ("chown", "fchownat")):
        text = f"socket.group: {UNIT} forbids chown (SystemCallFilter), so the daemon does not start"
        return [
            Finding(PROBLEM, "socket", text, (f"systemctl edit {UNIT}   # [Service] SystemCallFilter=chown fchownat",))
        ]
    return [Finding(OK, "socket", f"members of {name} may use the socket, if socket.mode is 0660")]


def root_findings(config: DaemonConfig, account: str) -> list[Finding]:
    """Return a finding if the account is root, as which the service does not start unless its configuration says so."""
    if account != "root" or config.access.root:
        return []
    text = "as root the daemon does not start, because access.root is false: examine the account that will run it"
    return [Finding(WARNING, "account", text, ("pilotfish doctor --config FILE --user ACCOUNT",))]


def policy_findings(config: DaemonConfig, path: Path, cluster: Cluster) -> list[Finding]:
    """Return a finding if the power of the nodes does not allow the objective or the policy."""
    from ..daemon.config import check_objective

    try:
        check_objective(config, path, cluster, time.time())
    except ConfigError as error:
        return [Finding(PROBLEM, "policy", str(error))]
    return []


def file_findings(path: Path, config: DaemonConfig, account: str) -> list[Finding]:
    """Return which files and folders of the service another user controls, as its account sees them."""
    if not is_known(account):
        return [Finding(NOTE, "files", f"not examined, because {account} does not exist here")]
    if os.geteuid() and account != current_user():
        return [Finding(NOTE, "files", f"not examined: only root can check it as {account}")]
    socket, wrong = Path(config.endpoint).parent, dict[str, Finding]()  # by what is said: a folder is named once
    checks: dict[Path, Callable[[Path], object]] = {socket: partial(check_folder, sticky=True)}
    checks |= dict.fromkeys((config.profile_store.parent, config.journal.parent, config.adapter_state), check_folder)
    checks |= dict.fromkeys((path, Path(config.cluster), config.journal, config.profile_store), check_file)
    with as_account(account):
        for target, check in checks.items():
            try:
                check(target)
            except FileNotFoundError:
                continue  # the service makes it
            except OSError as error:
                text = str(error.strerror) if isinstance(error, UntrustedError) else f"{target}: {error.strerror}"
                wrong[text] = Finding(PROBLEM, "files", text)
    return [*wrong.values()] or [Finding(OK, "files", f"no other user controls the files and folders of {account}")]
