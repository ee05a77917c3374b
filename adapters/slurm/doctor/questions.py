"""The requests that the doctor sends to Slurm, and the answers.

Rule: every request is one command that changes nothing, or a file next to slurm.conf; a failed request leaves its error
in place of its answer.
Source: scontrol(1), sacctmgr(1), sdiag(1) of Slurm 22.05; `Answers.setting` also of newer releases, which add keys.
"""

from __future__ import annotations

import os
import pwd
import re
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from ...base import AdapterError
from ..allocation import usable
from ..records import SlurmJob, SlurmNode
from ..transport import scontrol
from ..transport.command_transport import CommandTransport
from ..transport.parsing import span
from ..transport.runner import Runner
from .check_clocks import login_nodes

_SOCKET = re.compile(r"^\s*AuthInfo\s*=\s*(?:\S*,)?socket=([^,\s]+)", re.MULTILINE | re.IGNORECASE)
_LOOKS = re.compile(r'^local ALIVE = "([^"]+)"', re.MULTILINE)
#: Files next to slurm.conf with settings that Slurm does not show.
FILES = ("cgroup.conf", "job_submit.lua")
#: Where packages and sites put slurm.conf, the most frequent first.
SLURM_CONFS = tuple(
    f"{folder}/slurm.conf"
    for folder in ("/etc/slurm", "/etc/slurm-llnl", "/usr/local/etc", "/opt/slurm/etc", "/run/slurm/conf")
)
Answer = TypeVar("Answer")


@dataclass(slots=True)
class Answers:
    """The answers; the error of a failed request is in `errors`, under the name of the answer."""

    user: str  #: account of the daemon
    uid: int | None = None  #: its Unix user id on this machine; None: there is no such user
    slurm_uid: int | None = None  #: its user id as slurmctld knows it; None: not shown
    client: tuple[int, int] = (0, 0)  #: version of the commands, (0, 0) if unknown
    config: scontrol.Configuration = field(default_factory=scontrol.Configuration)
    partitions: list[dict[str, str]] = field(default_factory=list)
    nodes: list[SlurmNode] = field(default_factory=list)
    jobs: list[SlurmJob] = field(default_factory=list)
    pins_unread: str = ""  #: why our pins are not known; "": they are
    login_nodes: dict[int, str] = field(default_factory=dict)  #: waiting job -> machine that submitted it
    ahead_s: float = 0.0  #: controller's clock minus this machine's, seconds
    answer_s: float = 0.0
    now: float = 0.0
    level: str = ""  #: rights in accounting, `None`, `Operator` or `Administrator`; "" if unknown
    accounts: tuple[str, ...] = ()  #: accounts in which it may submit
    pings: list[str] = field(default_factory=list)  #: what `scontrol ping` prints for each of several controllers
    files: dict[str, str] = field(default_factory=dict)  #: text of the readable files next to slurm.conf
    unread: frozenset[str] = frozenset()  #: names of the files that are not readable
    looked_for: str = ""  #: the heartbeat without which job_submit.lua holds nothing; "": it does not look
    heartbeat_there: bool = False  #: that heartbeat exists on this machine
    at_controller: bool = False  #: slurmctld runs on this machine, so a file that is missing here does not exist
    sees_all: bool = True  #: the current user is root, from whom Slurm hides nothing
    slurm_confs: tuple[str, ...] = ()  #: files of that name here, looked for only if the commands find no Slurm
    errors: dict[str, AdapterError] = field(default_factory=dict)  #: `munge` is asked only if Slurm does not answer

    def seconds(self, name: str, otherwise: float) -> float:
        """Return a setting such as `300 sec` or `7-00:00:00` in seconds."""
        text = self.config[name].removesuffix(" sec").strip()
        try:
            seconds = float(text) if text.isdigit() else span(text)
        except ValueError:
            seconds = None
        return otherwise if seconds is None else seconds

    @property
    def controller(self) -> tuple[int, int]:
        """Version of the controller, (0, 0) if unknown."""
        return scontrol.version(self.config["SLURM_VERSION"])

    @property
    def slurm_user(self) -> str:
        """Slurm's own user."""
        return self.config["SlurmUser"].partition("(")[0]

    @property
    def has_accounting(self) -> bool:
        """True if a slurmdbd is configured."""
        return self.config["AccountingStorageType"].endswith("slurmdbd")

    @property
    def rules_all(self) -> bool:
        """True if the account is root or Slurm's own, which may do everything."""
        return self.user in ("root", self.slurm_user)


def rights(text: str, user: str) -> tuple[str, tuple[str, ...]]:
    """Return AdminLevel and accounts of a user, from lines `user|level|account`."""
    rows = [line.split("|") for line in text.splitlines() if line.startswith(f"{user}|")]
    level = next((row[1] for row in rows if len(row) > 1), "")
    return level, tuple(dict.fromkeys(row[2] for row in rows if len(row) > 2 and row[2]))


def _version(run: Runner) -> str:
    """Return what the commands print as their version; for this they search a slurm.conf, for a long time."""
    config_file = os.environ.get("SLURM_CONF")
    if config_file and not Path(config_file).exists():
        raise AdapterError(f"SLURM_CONF names {config_file}, which does not exist", kind="refused")
    return run(["squeue", "--version"])


def munge_command() -> list[str]:
    """Return the argv that asks munge for a credential, at the socket that slurm.conf names."""
    try:
        text = Path(os.environ.get("SLURM_CONF") or "/etc/slurm/slurm.conf").read_text(errors="replace")
    except OSError:
        text = ""
    match = _SOCKET.search(text)
    return ["munge", "--no-input", *([f"--socket={match[1]}"] if match else [])]


def _uid_of(user: str) -> int | None:
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        return None


def ask(run: Runner, user: str, clock: Callable[[], float] = time.time) -> Answers:
    """Send all requests. Never raises AdapterError: see `Answers.errors`.

    Args:
        run: Runs a command and returns what it printed.
        user: Account of the daemon.
        clock: This machine's clock, epoch seconds.
    """
    answers, transport = Answers(user, _uid_of(user)), CommandTransport(run)
    answers.sees_all = os.geteuid() == 0

    def attempt(name: str, question: Callable[[], Answer], otherwise: Answer) -> Answer:
        try:
            return question()
        except AdapterError as error:
            answers.errors[name] = error
            return otherwise

    answers.client = scontrol.version(attempt("version", lambda: _version(run), ""))
    if "version" in answers.errors:
        answers.slurm_confs = tuple(path for path in SLURM_CONFS if Path(path).exists())
        return answers
    began = time.perf_counter()
    answers.config = scontrol.Configuration(attempt("config", lambda: run(["scontrol", "show", "config"]), ""))
    answers.answer_s = time.perf_counter() - began
    if "config" in answers.errors:
        attempt("munge", lambda: run(munge_command()), "")
        return answers
    before = clock()
    answers.now = attempt("time", transport.time, before)
    middle = (before + clock()) / 2
    answers.ahead_s = answers.now + 0.5 - middle if "time" not in answers.errors else 0.0  # Slurm says whole seconds
    if "SlurmctldHost[1]" in answers.config:
        answers.pings = attempt("ping", lambda: run(["scontrol", "ping"]), "").splitlines()
    output = attempt("partitions", lambda: run(scontrol.command("partition")), "")
    answers.partitions = attempt("partitions", lambda: [*scontrol.lines(output, "PartitionName")], [])
    answers.nodes = attempt("nodes", lambda: usable(transport.nodes(), transport.system_shares()), [])
    answers.jobs = attempt("jobs", transport.jobs, [])
    answers.login_nodes = attempt("login nodes", lambda: login_nodes(run), {})
    if answers.has_accounting:
        query = ("show", "user", f"name={user}", "withassoc", "format=User,AdminLevel,Account")
        argv = ["sacctmgr", "--noheader", "--parsable2", *query]
        answers.level, answers.accounts = rights(attempt("accounting", lambda: run(argv), ""), user)
        output = attempt("users", lambda: run(["scontrol", "show", "assoc_mgr", f"users={user}", "flags=users"]), "")
        if match := re.search(rf"^\s*UserName={re.escape(user)}\((\d+)\)", output, re.MULTILINE):
            answers.slurm_uid = int(match[1])
    _read_files(answers)
    return answers


def _read_files(answers: Answers) -> None:
    host = socket.gethostname().partition(".")[0]
    hosts = [value for key, value in answers.config.items() if key.startswith("SlurmctldHost")]
    answers.at_controller = host in {value.partition("(")[0].partition(".")[0] for value in hosts}
    folder, unread = Path(answers.config["SLURM_CONF"] or "/etc/slurm/slurm.conf").parent, set()
    for name in FILES:
        try:
            answers.files[name] = (folder / name).read_text(errors="replace")
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            unread.add(name)
    answers.unread = frozenset(unread)
    if looks := _LOOKS.search(answers.files.get("job_submit.lua", "")):
        answers.looked_for, answers.heartbeat_there = looks[1], os.path.exists(looks[1])
