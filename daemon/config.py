"""The daemon's configuration: one YAML file, checked completely before anything starts.

Rule: `systemd/pilotfish.yaml` explains every key; an unknown key or a wrong value is one ConfigError that names file
and key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError, field_validator

from ..formats.documents.files import check_schema, config_error, decode, parse_document, read_bytes, read_document
from ..profiles.measure.counters import KINDS
from ..simulate.errors import ConfigError, PolicyError
from ..simulate.model.cluster import Cluster
from ..trust import check_file, problem_of
from . import paths
from .config_sections import (
    AccessConfig,
    AccountingConfig,
    AdapterConfig,
    CalibrationConfig,
    EventsConfig,
    FilePath,
    FolderPath,
    GuardConfig,
    HandoverConfig,
    LogConfig,
    MetricsConfig,
    PowerConfig,
    QuotaConfig,
    RecordConfig,
    RelearnConfig,
    ScoreConfig,
    Section,
    SocketConfig,
    any_policy,
)
from .report.delays import FILE
from .run_modes import RunMode

LIVE, SHADOW = "live", "shadow"
#: Keys that a reload can change. The others need a restart.
RELOADABLE = frozenset((
    "policy", "allow_unproven", "objective", "without_gain", "budget", "time_limit", "seed", "cycle_seconds",
    "longest_cycle_seconds", "guard", "relearn", "log", "keep_days", "mode", "paused", "handover",
))  # fmt: skip


class DaemonConfig(Section):
    """The whole file. Paths are absolute after reading."""

    cluster: FilePath
    adapter: AdapterConfig = AdapterConfig()
    policy: Annotated[str, AfterValidator(any_policy)] = "lookahead"
    allow_unproven: bool = False
    objective: str = "turnaround"
    without_gain: Literal["release", "place"] = "release"
    budget: int | None = Field(default=None, ge=1)
    time_limit: float | None = Field(default=10.0, gt=0)
    seed: int = Field(default=0, ge=0, lt=2**32)
    cycle_seconds: float = Field(default=1.0, ge=0.05, le=600)
    longest_cycle_seconds: float = Field(default=30.0, ge=1, le=600)
    state_dir: FolderPath | None = None
    profiles: FilePath | None = None
    keep_days: float = Field(default=30.0, gt=0)
    mode: Literal["live", "shadow"] = "live"
    paused: bool = False
    handover: HandoverConfig = HandoverConfig()
    socket: SocketConfig = SocketConfig()
    events: EventsConfig = EventsConfig()
    access: AccessConfig = AccessConfig()
    quotas: QuotaConfig = QuotaConfig()
    metrics: MetricsConfig = MetricsConfig()
    guard: GuardConfig = GuardConfig()
    relearn: RelearnConfig = RelearnConfig()
    accounting: AccountingConfig = AccountingConfig()
    power: PowerConfig = PowerConfig()
    counters: str | list[str] = "auto"
    calibration: CalibrationConfig = CalibrationConfig()
    record: RecordConfig = RecordConfig()
    score: ScoreConfig = ScoreConfig()
    log: LogConfig = LogConfig()

    @field_validator("objective")
    @classmethod
    def _objective(cls, value: str) -> str:
        from ..simulate.model.objective import Objective

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
    def run_mode(self) -> RunMode:
        """The mode in which the service is to run."""
        return RunMode(self.mode)

    @property
    def state(self) -> Path:
        """The directory of the state."""
        return Path(self.state_dir or paths.state_dir())

    @property
    def journal(self) -> Path:
        """The journal's file."""
        return self.state / "journal.sqlite"

    @property
    def delays(self) -> Path:
        """The file of the measured delays."""
        return self.state / FILE

    @property
    def card(self) -> Path:
        """The file of the newest card."""
        return self.state / "card.json"

    @property
    def adapter_state(self) -> Path:
        """The directory of the adapter's own state."""
        return self.state / self.adapter.name

    @property
    def calibrations(self) -> Path:
        """The folder of recorded calibrations."""
        return Path(self.calibration.folder or self.state / "calibrations")

    @property
    def record_folder(self) -> Path:
        """The folder of the record."""
        return Path(self.record.folder or self.state / "record")

    @property
    def endpoint(self) -> str:
        """The path of the socket."""
        return self.socket.path or paths.runtime_socket()

    @property
    def event_socket(self) -> Path:
        """The file of the socket for events."""
        return Path(self.events.path or Path(self.endpoint).with_name("events.sock"))

    @property
    def profile_store(self) -> Path:
        """The file of the profile store."""
        if self.profiles:
            return Path(self.profiles)
        return Path(self.state_dir) / "profiles.sqlite" if self.state_dir else paths.profile_store_path()


def load_config(path: str | Path) -> DaemonConfig:
    """Return a checked configuration; paths in it are relative to its folder.

    Raises:
        ConfigError: the file cannot be read, is not YAML, or has a key or value that is not allowed.
    """
    document = check_schema(read_document(path), "daemon", str(path))
    try:
        return DaemonConfig.model_validate(document, context={"base": Path(path).absolute().parent})
    except ValidationError as error:
        raise config_error(error, str(path), DaemonConfig) from None


def with_policy(config: DaemonConfig, policy: str | None) -> DaemonConfig:
    """Return a configuration with another policy; None: with its own. Raises ConfigError: there is no such policy."""
    if policy is None:
        return config
    try:
        return DaemonConfig.model_validate(config.model_dump() | {"policy": policy}, context={"base": Path.cwd()})
    except ValidationError as error:
        raise config_error(error, "--policy", DaemonConfig) from None


def load_service_config(path: str | Path) -> DaemonConfig:
    """Return the configuration of a service, which does what the file says, as the account that it runs as.

    Raises:
        ConfigError: as `load_config`; or a file that is used is not trusted (see `trust`).
    """
    _refuse_untrusted(path)
    config = load_config(path)
    _refuse_untrusted(config.cluster)
    return config


def load_reaper_config(path: str | Path) -> tuple[DaemonConfig, str]:
    """Return what the reaper needs of a configuration, however invalid the rest is, and what is wrong with it, or "".

    Of an invalid file only `adapter`, `state_dir` and `mode` are used, each if it is valid by itself; of one that is no
    YAML, none. It counts as `shadow` unless `mode` is `live` or not named.

    Raises:
        ConfigError: the file cannot be read, or it is not trusted (see `trust`).
    """
    _refuse_untrusted(path)
    try:
        return load_config(path), ""
    except ConfigError as error:
        problem = str(error)
    context, text = {"base": Path(path).absolute().parent}, decode(read_bytes(path), str(path))
    try:
        document = parse_document(text, str(path))
    except ConfigError:
        named = re.findall(r"^[\"']?mode[\"']?[ \t]*:[ \t]*([^ \t\n#]*)", text, re.MULTILINE)
        document = {"mode": LIVE if all(value.strip("\"'") == LIVE for value in named) else SHADOW}
    values: dict[str, Any] = {"cluster": "-", "mode": LIVE if document.get("mode", LIVE) == LIVE else SHADOW}
    for key in ("adapter", "state_dir"):
        with suppress(ValidationError, KeyError):
            DaemonConfig.model_validate({**values, key: document[key]}, context=context)
            values[key] = document[key]
    return DaemonConfig.model_validate(values, context=context), problem


def _refuse_untrusted(path: str | Path) -> None:
    try:
        check_file(path)
    except OSError as error:
        raise ConfigError(str(path), "", f"cannot be read: {problem_of(error, path)}") from None


def load_policy_of(config: DaemonConfig, path: str | Path, *, acts: bool = False) -> None:
    """Load the policy of a configuration, which is executed as the account of the service; read a user's file again.

    Args:
        config: the configuration.
        path: where it was read from.
        acts: what it decides is carried out.

    Raises:
        ConfigError: it cannot be loaded, another user can change its file, or it is an unproven model that would act.
    """
    from .planning.live_component import use_policy

    try:
        if use_policy(config.policy) and acts and not config.allow_unproven:
            problem = (
                f"{config.policy}: no verdict in its file says that it beats its baseline on jobs that it has not seen"
            )
            allowed = "mode: shadow; a model judged with `pilotfish evaluate --save`; or allow_unproven: true"
            raise ConfigError(str(path), "policy", problem, allowed)
    except PolicyError as error:
        raise ConfigError(str(path), "policy", f"{error.policy}: {error.where}: {error.problem}") from error
    except ConfigError as error:
        if error.source == str(path):
            raise
        where = error.key if error.source == "policy" else f"{error.source}: {error.key}"
        raise ConfigError(str(path), "policy", f"{where}: {error.problem}".removeprefix(": "), error.allowed) from error
    except OSError as error:
        raise ConfigError(str(path), "policy", f"{config.policy} cannot be read: {error.strerror}") from error


@contextmanager
def naming_config(path: str | Path) -> Iterator[None]:
    """Let errors about the adapter or its options name the configuration file and the key there."""
    try:
        yield
    except ConfigError as error:
        if error.source.partition(" ")[0] != "adapter":
            raise
        key = "adapter.name" if error.source == "adapter" else f"adapter.options.{error.key}"
        raise ConfigError(str(path), key, error.problem, error.allowed) from None


def changed_keys(old: DaemonConfig, new: DaemonConfig) -> set[str]:
    """Return the top-level keys whose values differ."""
    return {name for name in DaemonConfig.model_fields if getattr(old, name) != getattr(new, name)}


def check_counters(config: DaemonConfig, file: Path, *, here: bool) -> None:
    """Refuse named counters if no job runs on this node. Raises ConfigError.

    Args:
        config: the configuration.
        file: where it was read from.
        here: whether the adapter's jobs run on this node.
    """
    if isinstance(config.counters, list) and not here:
        adapter, names = config.adapter.name, ", ".join(config.counters)
        problem = f"found {names}, but jobs of the adapter {adapter!r} do not run on this node"
        raise ConfigError(str(file), "counters", problem, "auto, none")


def check_objective(config: DaemonConfig, file: str | Path, cluster: Cluster, now: float) -> None:
    """Refuse an objective or a policy that the power of nodes does not allow. Raises ConfigError.

    Args:
        config: the configuration.
        file: where it was read from.
        cluster: the nodes.
        now: seconds of the resource manager's clock.
    """
    from ..simulate.model.objective import Objective

    unknown = [kind.nominal.name for kind in cluster.types if kind.power is None]
    if unknown and Objective.parse(config.objective).needs_energy:
        problem = f"found {config.objective!r}, but the power of node type {unknown[0]!r} is unknown"
        raise ConfigError(config.cluster, "objective", problem, "makespan, or power for every node type")
    check_limit(config, file, cluster, now)


def check_limit(config: DaemonConfig, file: str | Path, cluster: Cluster, now: float) -> None:
    """Refuse a limit of power or energy that is impossible on these nodes, as `check_objective`. Raises ConfigError."""
    from ..simulate.model.machine import Powers, core_powers
    from ..simulate.queue_policies.energy.kept_limit import refuse_limit

    try:
        refuse_limit(config.policy, cluster, now)
    except ConfigError as error:
        source = str(file) if isinstance(core_powers(cluster), Powers) else config.cluster
        problem = f"found {config.policy!r}, but {error.problem}"
        raise ConfigError(source, "policy", problem, error.allowed) from None
