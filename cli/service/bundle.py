"""`pilotfish bundle`: what helps others to find a fault of a service, in one file that its sender can read before.

Rule: what goes in is shown first, by part and size. Each part stands alone: one that cannot be had holds the reason.
No part has a secret of the configuration; which parts have names of users and jobs is said.
"""

from __future__ import annotations

import io
import os
import platform
import shutil
import sys
import tarfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ...simulate.errors import ConfigError, PilotfishError
from .. import options
from ..inputs import config_file
from ..options import argument, option
from ..streams import note, show
from ..usage_errors import not_among

if TYPE_CHECKING:
    from ...daemon.config import DaemonConfig

#: Most characters of a part (the end of a longer one is kept), and seconds that a command may take.
MOST_CHARACTERS, LONGEST_S = 2 * 2**20, 60.0
#: Lines of the service's log in systemd's journal, and the age of the lines of the audit.
_LOG_LINES, _AUDIT_AGE = 5000, "2d"


@dataclass(frozen=True)
class BundlePart:
    """A file of the bundle: what it holds, whether it names users and jobs, and how to make it."""

    about: str
    names: bool
    make: Callable[[], str]


def bundle(
    file: Annotated[Path | None, argument("FILE", "The bundle, a tar archive that gzip has compressed.")] = None,
    config: options.ConfigFile = None,
    without: Annotated[list[str] | None, option("PART", "Leave a part out, such as status.json; repeatable.")] = None,
    socket: options.Socket = None,
) -> None:
    """Collect what helps to find a fault of a service: findings, configuration, versions, metrics, the latest log.

    Without FILE, only show what would be in it, by part and size. Secrets of the configuration are taken out. The other
    parts may have names of users, jobs and nodes; the list says which.

    \b
    Examples:
      pilotfish bundle
      pilotfish bundle fault.tar.gz --without status.json --without audit.json
      tar -xzOf fault.tar.gz bundle/doctor.txt
    """
    path = config_file(config)
    parts = _parts(path, socket)
    for name in without or ():
        if name not in parts:
            raise not_among("--without", name, "a part", parts)
    if file is not None and file.exists():
        raise ConfigError(str(file), "", "it exists already", "the name of a new file")
    texts = {name: _text(part) for name, part in parts.items() if name not in (without or ())}
    width = max(map(len, texts))
    for name, text in texts.items():
        names = "; names users and jobs" if parts[name].names else ""
        show(f"{name:{width}}  {len(text) / 1024:7,.1f} KiB  {parts[name].about}{names}")
    if file is None:
        note("nothing was written: name a FILE")
        return
    try:
        _write(file, texts)
    except OSError as error:
        raise ConfigError(str(file), "", f"cannot be written: {error.strerror}", "a file where you may write") from None
    show(f"{file}: {file.stat().st_size / 1024:,.1f} KiB; read it before you send it")


def _parts(path: Path, socket: str | None) -> dict[str, BundlePart]:
    """Return the parts by name."""
    from ...daemon.config import load_config

    try:
        loaded: DaemonConfig | None = load_config(path)
    except ConfigError:
        loaded = None  # `doctor` says why
    program = [sys.executable, "-m", "pilotfish.cli"]
    place = [] if socket is None else ["--socket", socket]
    unit = ["journalctl", "--unit", "pilotfishd", "--lines", str(_LOG_LINES), "--no-pager", "--output", "short-iso"]
    parts = {
        "versions.txt": BundlePart("versions of pilotfish, Python, packages and system", False, _versions),
        "configuration.yaml": BundlePart("the configuration without its secrets", False, lambda: _configuration(path)),
        "doctor.txt": BundlePart(
            "what `pilotfish doctor` finds", False, _command(*program, "doctor", "--config", str(path))
        ),
        "metrics.txt": BundlePart("the metrics of the service", False, lambda: _metrics(loaded)),
        "status.json": BundlePart("jobs and forecasts", True, _command(*program, "status", "--json", *place)),
        "audit.json": BundlePart(
            "what was written and changed", True, _command(*program, "log", "--json", "--since", _AUDIT_AGE, *place)
        ),
        "log.txt": BundlePart(f"the last {_LOG_LINES:,} lines of the log", True, _command(*unit)),
    }
    if loaded is None or loaded.adapter.name == "slurm":
        parts["sdiag.txt"] = BundlePart("the load of slurmctld, by user", True, _command("sdiag"))
    return parts


def _text(part: BundlePart) -> str:
    """Return the text of a part, its end if it is long, or why it cannot be had."""
    try:
        text = part.make()
    except (PilotfishError, OSError) as error:
        return f"not here: {error}\n"
    return text if len(text) <= MOST_CHARACTERS else f"(only the end)\n{text[-MOST_CHARACTERS:]}"


def _command(*argv: str) -> Callable[[], str]:
    """Return what runs a command, and returns all that it prints."""

    def run() -> str:
        from ...adapters.run_command import run_command

        if not os.path.isabs(argv[0]) and shutil.which(argv[0]) is None:
            return f"not here: there is no command {argv[0]}\n"
        ended = run_command(argv, LONGEST_S, os.environ, "the bundle", reads=True)
        end = f"\nexit code {ended.exit_code}\n" if ended.exit_code else ""
        return f"{ended.text}{ended.stderr}{end}".encode(errors="replace").decode()

    return run


def _versions() -> str:
    from ...built_from import full_version

    packages = sorted({f"{package.metadata['Name']} {package.version}" for package in distributions()}, key=str.lower)
    system = (f"pilotfish {full_version()}", f"Python {platform.python_version()}", platform.platform(), *packages)
    return "\n".join(system) + "\n"


def _configuration(path: Path) -> str:
    from ...daemon.state.backup import without_secrets

    return without_secrets(path.read_text())


def _metrics(config: DaemonConfig | None) -> str:
    import requests

    if config is None or not config.metrics.enabled:
        return "not here: the service has no metrics\n"
    try:
        answer = requests.get(f"http://{config.metrics.address}:{config.metrics.port}/metrics", timeout=LONGEST_S)
    except requests.RequestException as error:
        return f"not here: {type(error).__name__}\n"
    return answer.text


def _write(file: Path, texts: Mapping[str, str]) -> None:
    """Write the archive, for its owner alone, complete or not at all."""
    from ...trust import new_file

    part = file.with_name(f"{file.name}.part")
    try:
        with new_file(part) as raw, tarfile.open(fileobj=raw, mode="w:gz") as archive:
            for name, text in texts.items():
                data = text.encode()
                member = tarfile.TarInfo(f"bundle/{name}")
                member.size, member.mtime, member.mode = len(data), int(time.time()), 0o600
                archive.addfile(member, io.BytesIO(data))
        os.rename(part, file)
    except OSError:
        part.unlink(missing_ok=True)
        raise
