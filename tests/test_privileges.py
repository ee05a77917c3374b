"""Every listener and every privilege of the product, listed: what is not in a list here is not in the source."""

from __future__ import annotations

import ast
import stat
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from pilotfish import trust
from pilotfish.daemon.config import DaemonConfig
from tests.support.sources import tree_of

pytestmark = pytest.mark.xdist_group("sources")  # one process reads them
ROOT = Path(trust.__file__).parent
ROOMS = ("adapters", "cli", "daemon", "formats", "profiles", "simulate", "web")
#: Files that listen, and where.
LISTENERS = {
    "adapters/batsim/sockets.py": "`pilotfish edc` answers a Batsim where its user says, 127.0.0.1 by default",
    "daemon/socket/socket_server.py": "the Unix socket, mode 0600 by default, in a folder that is trusted",
    "daemon/socket/event_socket.py": "datagrams that only wake the daemon; anybody may write, root and users named are heard",
    "cli/service/web.py": "`pilotfish web` shows pages, read only, at 127.0.0.1 by default, or at a Unix socket, mode 0660; at another "
    "address only encrypted (TLS), and only for who has a token",
    "daemon/report/exporter.py": "metrics and health, read only, at 127.0.0.1 by default",
}
LISTENING = {
    "bind", "listen", "create_server", "start_server", "serve_forever", "bind_to_random_port", "HTTPServer",
    "ThreadingHTTPServer", "TCPServer", "UnixStreamServer", "LocalCluster", "Scheduler",
}  # fmt: skip
#: Files that change what a process may do, or whose a file is, and why.
PRIVILEGED = {
    "trust.py": "doctor, as root, sees with the eyes of the account of the service: it gives up rights for a while",
    "daemon/compilation.py": "processes that compile end with their parent: PR_SET_PDEATHSIG needs no right",
    "daemon/socket/socket_server.py": "gives the socket to the group that the configuration names",
    "adapters/local/keeper.py": "a keeper adopts what its job leaves behind: PR_SET_CHILD_SUBREAPER needs no right",
    "profiles/measure/command.py": "likewise",
    "cli/sweeps/workers.py": "workers end with their parent: PR_SET_PDEATHSIG needs no right",
}
CHANGING = {
    "setuid", "seteuid", "setreuid", "setresuid", "setgid", "setegid", "setregid", "setresgid", "setgroups",
    "initgroups", "chroot", "unshare", "setns", "prctl", "capset", "chown", "fchown", "lchown", "pivot_root",
}  # fmt: skip
#: Programs that run others with more rights; the product starts none of them.
RAISING = {"sudo", "su", "doas", "pkexec", "setpriv", "runuser", "machinectl", "newgrp", "sg", "capsh"}


def calls(nodes: list[ast.AST], names: set[str]) -> Iterator[str]:
    """Names of these that are used, as functions or as base classes."""
    for node in nodes:
        used: list[ast.expr] = []
        if isinstance(node, ast.Call):
            used = [node.func]
        elif isinstance(node, ast.ClassDef):
            used = node.bases
        yield from {each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "") for each in used} & names


def programs(nodes: list[ast.AST]) -> Iterator[str]:
    """Programs that raise rights, as a word of an argv."""
    for node in nodes:
        if isinstance(node, (ast.List, ast.Tuple)) and node.elts and isinstance(node.elts[0], ast.Constant):
            yield from {str(node.elts[0].value).rpartition("/")[2]} & RAISING


@cache
def nodes() -> dict[str, list[ast.AST]]:
    """The nodes of each file that matter here."""
    paths = [
        ROOT / "trust.py",
        ROOT / "machine_share.py",
        ROOT / "api.py",
        *(path for room in ROOMS for path in (ROOT / room).rglob("*.py")),
    ]
    kinds = (ast.Call, ast.ClassDef, ast.List, ast.Tuple)
    trees = {str(path.relative_to(ROOT)): tree_of(path) for path in paths}
    return {name: [node for node in ast.walk(tree) if isinstance(node, kinds)] for name, tree in trees.items()}


def found(search: Callable[[list[ast.AST]], Iterator[str]]) -> dict[str, list[str]]:
    every = {name: [*search(those)] for name, those in nodes().items()}
    return {name: names for name, names in every.items() if names}


def test_what_listens_is_listed() -> None:
    assert set(found(lambda nodes: calls(nodes, LISTENING))) == set(LISTENERS)
    config = DaemonConfig(cluster="x")
    assert (config.metrics.address, config.socket.mode, config.socket.group) == ("127.0.0.1", "0600", None)


def test_what_changes_rights_is_listed() -> None:
    assert set(found(lambda nodes: calls(nodes, CHANGING))) == set(PRIVILEGED)
    assert found(programs) == {}


def test_no_file_gives_its_user_rights() -> None:
    for path in ROOT.rglob("*"):
        if not ({".venv", ".git", "build"} & set(path.relative_to(ROOT).parts)) and path.is_file():
            assert not path.lstat().st_mode & (stat.S_ISUID | stat.S_ISGID), path


@pytest.mark.parametrize(
    ("name", "account", "groups"),
    [
        ("pilotfishd.service", "pilotfish", None),
        ("pilotfish-reap.service", "pilotfish", None),
        ("pilotfish-web.service", "pilotfish-web", "pilotfish"),  # by which it connects to the socket of the service
    ],
)
def test_the_services_need_no_privilege(name: str, account: str, groups: str | None) -> None:
    """No capability, no root, no group that is not needed; what they run is the program alone."""
    lines = [line.partition("=")[::2] for line in (ROOT / "systemd" / name).read_text().splitlines() if "=" in line]
    unit = dict(lines)
    assert (unit["User"], unit["Group"], unit["CapabilityBoundingSet"]) == (account, account, "")
    assert unit["NoNewPrivileges"] == unit["RestrictSUIDSGID"] == "yes" and unit["UMask"] == "0077"
    assert not {"AmbientCapabilities", "PermissionsStartOnly", "DynamicUser"} & unit.keys()
    assert unit.get("SupplementaryGroups") == groups
    starts = [value.removeprefix("-") for key, value in lines if key.startswith("Exec")]
    assert all(value.startswith(("/usr/bin/pilotfish ", "/bin/sh -c ")) for value in starts), "no '+' and no '!'"
    users = [line for line in (ROOT / "systemd/pilotfish.sysusers.conf").read_text().splitlines() if line[:2] == "u "]
    assert [user.split()[:2] for user in users] == [["u", "pilotfish"], ["u", "pilotfish-web"]]
    assert not any("-:" in user for user in users)
