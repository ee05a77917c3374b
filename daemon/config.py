"""The daemon's configuration: one YAML file, checked whole before anything starts.

Rule: every key is named in `systemd/pilotfish.yaml` with its meaning; an unknown key or a wrong value is one
ConfigError that names file and key.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from ..profiles.counters import KINDS
from ..simulate.errors import ConfigError
from ..simulate.formats.reading import check_schema, config_error, read_document
from . import paths

#: Keys that a reload can change; the others need a restart.
RELOADABLE = frozenset(
    {
        "policy",
        "objective",
        "budget",
        "time_limit",
        "seed",
        "cycle_seconds",
        "guard",
        "relearn",
        "log",
        "keep_days",
    }
)
PolicyName = Literal["lookahead", "mom", "let", "slf", "loadavg"]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


def _absolute(value: str | None, info: ValidationInfo, what: str) -> str | None:
    """A path of the file, from its folder. Raises ValueError: it is none; `what` is allowed."""
    if value is None:
        return None
    if not value or "\0" in value:
        raise ValueError(what)
    return str((info.context["base"] if info.context else Path.cwd()) / Path(value).expanduser())


class AdapterConfig(_Section):
    """The resource manager: its name, and options that its adapter knows."""

    name: str = "local"
    options: dict[str, Any] = Field(default_factory=dict)


class SocketConfig(_Section):
    """Where clients find the daemon, and who may."""

    path: str | None = None
    mode: Literal["0600", "0660"] = "0600"
    group: str | None = None


class MetricsConfig(_Section):
    """The metrics server."""

    enabled: bool = True
    address: str = "127.0.0.1"
    port: int = Field(default=9836, ge=0, le=65535)


class GuardConfig(_Section):
    """When forecasts are no longer trusted."""

    enabled: bool = True
    window: int = Field(default=20, ge=1, le=1000)
    max_median_error: float = Field(default=0.5, gt=0)
    policy: PolicyName = "slf"


class RelearnConfig(_Section):
    """When what is known of a profile has aged."""

    enabled: bool = True
    window: int = Field(default=5, ge=1, le=1000)
    max_median_error: float = Field(default=0.25, gt=0)


class BooksConfig(_Section):
    """Whether and how often the resource manager's accounting is asked what ended jobs used."""

    enabled: bool = True
    delay_seconds: float = Field(default=30.0, ge=0, le=86400)
    every_seconds: float = Field(default=60.0, ge=1, le=86400)


class PowerConfig(_Section):
    """Whether idle nodes are powered down; the resource manager wakes them."""

    save: bool = False
    idle_seconds: float = Field(default=600.0, ge=1)
    spare_nodes: int = Field(default=1, ge=0)


class CalibrationConfig(_Section):
    """Where the nodes' calibrations are recorded, and when one differs from the one before."""

    folder: str | None = None
    bound: float = Field(default=0.1, ge=0.001, le=10)

    @field_validator("folder")
    @classmethod
    def _folder(cls, value: str | None, info: ValidationInfo) -> str | None:
        return _absolute(value, info, "the path of a folder")


class LogConfig(_Section):
    """What is said on stderr."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["plain", "json"] = "plain"


class DaemonConfig(_Section):
    """The whole file. Paths are absolute once it has been read."""

    cluster: str
    adapter: AdapterConfig = AdapterConfig()
    policy: PolicyName = "lookahead"
    objective: str = "makespan"
    budget: int | None = Field(default=None, ge=1)
    time_limit: float | None = Field(default=10.0, gt=0)
    seed: int = Field(default=0, ge=0, lt=2**32)
    cycle_seconds: float = Field(default=1.0, ge=0.05, le=600)
    state_dir: str | None = None
    profiles: str | None = None
    keep_days: float = Field(default=30.0, gt=0)
    dry_run: bool = False
    socket: SocketConfig = SocketConfig()
    metrics: MetricsConfig = MetricsConfig()
    guard: GuardConfig = GuardConfig()
    relearn: RelearnConfig = RelearnConfig()
    books: BooksConfig = BooksConfig()
    power: PowerConfig = PowerConfig()
    counters: str | list[str] = "auto"
    calibration: CalibrationConfig = CalibrationConfig()
    log: LogConfig = LogConfig()

    @field_validator("cluster", "state_dir", "profiles")
    @classmethod
    def _paths(cls, value: str | None, info: ValidationInfo) -> str | None:
        kind = "folder" if info.field_name == "state_dir" else "file"
        path = _absolute(value, info, f"the path of a {kind}")
        if path is not None and info.field_name == "cluster" and Path(path).is_dir():
            raise ValueError("the path of a file")
        return path

    @field_validator("objective")
    @classmethod
    def _objective(cls, value: str) -> str:
        from ..simulate.objective import Objective

        try:
            Objective.parse(value)
        except ConfigError as error:
            raise ValueError(error.allowed or error.problem) from None
        return value

    @field_validator("counters", mode="before")
    @classmethod
    def _counters(cls, value: object) -> object:
        names = value if isinstance(value, list) else []
        if value in ("auto", "none") or (names and all(name in KINDS for name in names)):
            return value
        raise ValueError(f"auto, none, or a list of {', '.join(KINDS)}")

    @property
    def journal(self) -> Path:
        """The journal's file."""
        return Path(self.state_dir or paths.state_dir()) / "journal.sqlite"

    @property
    def calibrations(self) -> Path:
        """The folder of recorded calibrations."""
        return Path(self.calibration.folder or Path(self.state_dir or paths.state_dir()) / "calibrations")

    @property
    def endpoint(self) -> str:
        """The ZeroMQ endpoint of the socket."""
        return f"ipc://{Path(self.socket.path).expanduser()}" if self.socket.path else paths.runtime_socket()

    @property
    def profile_store(self) -> Path:
        """The file of the profile store."""
        if self.profiles:
            return Path(self.profiles)
        return Path(self.state_dir) / "profiles.sqlite" if self.state_dir else paths.profile_store_path()


def load_config(path: str | Path) -> DaemonConfig:
    """Read and check a configuration; paths in it are relative to its folder.

    Raises:
        ConfigError: the file cannot be read, is not YAML, or has a key or value that is not allowed.
    """
    document = check_schema(read_document(path), "daemon", str(path))
    try:
        return DaemonConfig.model_validate(document, context={"base": Path(path).absolute().parent})
    except ValidationError as error:
        raise config_error(error, str(path), DaemonConfig) from None


@contextmanager
def adapter_of(path: str | Path) -> Iterator[None]:
    """Errors about the adapter or its options name the configuration that chose them, and the key there."""
    try:
        yield
    except ConfigError as error:
        if error.source.partition(" ")[0] != "adapter":
            raise
        key = "adapter.name" if error.source == "adapter" else f"adapter.options.{error.key}"
        raise ConfigError(str(path), key, error.problem, error.allowed) from None


def changed_keys(old: DaemonConfig, new: DaemonConfig) -> set[str]:
    """Top-level keys whose values differ."""
    return {name for name in DaemonConfig.model_fields if getattr(old, name) != getattr(new, name)}
