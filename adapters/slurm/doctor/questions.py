"""What the doctor asks of Slurm, and the answers.

Rule: every question is one command that changes nothing, or a file beside slurm.conf; one that fails leaves its error
in the place of its answer.
Source: scontrol(1), sacctmgr(1), sdiag(1) of Slurm 22.05; `Asked.setting` also of newer releases, which add keys.
"""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from ...base import AdapterError
from .. import scontrol
from ..records import SlurmJob, SlurmNode
from ..runner import Runner
from ..transport import ByCommands

_LINE = re.compile(r"^[ \t]*(\w+(?:\[\d+\])?) *= ?(.*?)[ \t]*$", re.MULTILINE)
_VERSION = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")
_SOCKET = re.compile(r"^\s*AuthInfo\s*=\s*(?:\S*,)?socket=([^,\s]+)", re.MULTILINE | re.IGNORECASE)
_NOTHING = frozenset(("(null)", "n/a", "none", "(none)"))
#: files beside slurm.conf that tell more than Slurm does
FILES = ("cgroup.conf", "job_submit.lua")
Answer = TypeVar("Answer")


@dataclass(slots=True)
class Asked:
    """The answers; a question that failed has its error in `errors`, under its name.

    Args:
        client: version of the commands, (0, 0) where unknown.
        config: `scontrol show config`, key -> value.
        ahead_s: the controller's clock minus this machine's, seconds.
        level: the account's rights in accounting, `None`, `Operator` or `Administrator`; "" where it is not known.
        accounts: the accounts in which it may submit.
        pings: what `scontrol ping` says of each controller, where there are several.
        files: text of the files beside slurm.conf that are there and may be read.
        errors: also `munge`, which is asked only where Slurm does not answer.
        unread: those that may not be read.
        at_controller: slurmctld runs on this machine, so a file that is absent here is absent.
    """

    user: str
    client: tuple[int, int] = (0, 0)
    config: dict[str, str] = field(default_factory=dict)
    partitions: list[dict[str, str]] = field(default_factory=list)
    nodes: list[SlurmNode] = field(default_factory=list)
    jobs: list[SlurmJob] = field(default_factory=list)
    ahead_s: float = 0.0
    answer_s: float = 0.0
    now: float = 0.0
    level: str = ""
    accounts: tuple[str, ...] = ()
    pings: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()
    at_controller: bool = False
    errors: dict[str, AdapterError] = field(default_factory=dict)

    def setting(self, name: str) -> str:
        """A setting of the controller's, "" where there is none."""
        value = self.config.get(name, "")
        return "" if value.lower() in _NOTHING else value

    def words(self, name: str) -> list[str]:
        """A setting that is a list."""
        return [word for word in self.setting(name).replace(" ", "").split(",") if word]

    def seconds(self, name: str, otherwise: float) -> float:
        """A setting such as `300 sec` or `7-00:00:00`."""
        text = self.setting(name).removesuffix(" sec").strip()
        days, _, clock = text.rpartition("-")
        parts = clock.split(":")
        if not all(part.isdigit() for part in parts):
            return otherwise
        total = 0.0
        for part in parts:
            total = 60 * total + int(part)
        return total + 86400.0 * int(days) if days.isdigit() else total

    def parameter(self, name: str) -> str | None:
        """One of SchedulerParameters: its value, "" if it has none, None if it is not set."""
        options = dict(word.partition("=")[::2] for word in self.words("SchedulerParameters"))
        return options.get(name)

    def number(self, name: str, otherwise: int) -> int:
        """One of SchedulerParameters that is a number; `otherwise` is Slurm's own default."""
        value = self.parameter(name)
        return int(value) if value and value.isdigit() and int(value) else otherwise

    @property
    def controller(self) -> tuple[int, int]:
        """Version of the controller, (0, 0) where unknown."""
        return version(self.setting("SLURM_VERSION"))

    @property
    def slurm_user(self) -> str:
        """Slurm's own user."""
        return self.setting("SlurmUser").partition("(")[0]

    @property
    def has_accounting(self) -> bool:
        """There is a slurmdbd, whether or not it answers."""
        return self.setting("AccountingStorageType").endswith("slurmdbd")

    @property
    def rules_all(self) -> bool:
        """The account may do everything: it is root or Slurm's own."""
        return self.user in ("root", self.slurm_user)


def version(text: str) -> tuple[int, int]:
    """The release in `slurm-wlm 22.05.8` or `23.11.4`, as two numbers."""
    found = _VERSION.search(text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def rights(text: str, user: str) -> tuple[str, tuple[str, ...]]:
    """AdminLevel and accounts of a user, from lines `user|level|account`."""
    rows = [line.split("|") for line in text.splitlines() if line.startswith(f"{user}|")]
    level = next((row[1] for row in rows if len(row) > 1), "")
    return level, tuple(dict.fromkeys(row[2] for row in rows if len(row) > 2 and row[2]))


def _version(run: Runner) -> str:
    """What the commands say of themselves; they need a slurm.conf even for that, and look for one for long."""
    named = os.environ.get("SLURM_CONF")
    if named and not Path(named).exists():
        raise AdapterError(f"SLURM_CONF names {named}, which is not there", kind="refused")
    return run(["squeue", "--version"])


def munge_command() -> list[str]:
    """The argv that asks munge to vouch for us, at the socket that slurm.conf names."""
    try:
        text = Path(os.environ.get("SLURM_CONF") or "/etc/slurm/slurm.conf").read_text(errors="replace")
    except OSError:
        text = ""
    found = _SOCKET.search(text)
    return ["munge", "--no-input", *([f"--socket={found[1]}"] if found else [])]


def ask(run: Runner, user: str, clock: Callable[[], float] = time.time) -> Asked:
    """Ask everything. Never raises AdapterError: see `Asked.errors`."""
    asked, transport = Asked(user), ByCommands(run)

    def attempt(name: str, question: Callable[[], Answer], otherwise: Answer) -> Answer:
        try:
            return question()
        except AdapterError as error:
            asked.errors[name] = error
            return otherwise

    asked.client = version(attempt("version", lambda: _version(run), ""))
    if "version" in asked.errors:
        return asked
    began = time.perf_counter()
    asked.config = dict(_LINE.findall(attempt("config", lambda: run(["scontrol", "show", "config"]), "")))
    asked.answer_s = time.perf_counter() - began
    if "config" in asked.errors:
        attempt("munge", lambda: run(munge_command()), "")
        return asked
    before = clock()
    asked.now = attempt("time", transport.time, before)
    asked.ahead_s = asked.now - before if "time" not in asked.errors else 0.0
    if "SlurmctldHost[1]" in asked.config:
        asked.pings = attempt("ping", lambda: run(["scontrol", "ping"]), "").splitlines()
    shown = attempt("partitions", lambda: run(scontrol.command("partition")), "")
    asked.partitions = attempt("partitions", lambda: [*scontrol.lines(shown, "PartitionName")], [])
    asked.nodes = attempt("nodes", transport.nodes, [])
    asked.jobs = attempt("jobs", transport.jobs, [])
    if asked.has_accounting:
        wanted = ("show", "user", f"name={user}", "withassoc", "format=User,AdminLevel,Account")
        argv = ["sacctmgr", "--noheader", "--parsable2", *wanted]
        asked.level, asked.accounts = rights(attempt("accounting", lambda: run(argv), ""), user)
    _read_files(asked)
    return asked


def _read_files(asked: Asked) -> None:
    host = socket.gethostname().partition(".")[0]
    hosts = [value for key, value in asked.config.items() if key.startswith("SlurmctldHost")]
    asked.at_controller = host in {value.partition("(")[0].partition(".")[0] for value in hosts}
    folder, unread = Path(asked.setting("SLURM_CONF") or "/etc/slurm/slurm.conf").parent, set()
    for name in FILES:
        try:
            asked.files[name] = (folder / name).read_text(errors="replace")
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            unread.add(name)
    asked.unread = frozenset(unread)
