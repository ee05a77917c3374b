"""The sections of the daemon's configuration: the keys of each, their types, bounds and defaults.

Rule: `systemd/pilotfish.yaml` explains every key. A path is relative to the configuration's folder.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo

from ..adapters import DEFAULT
from ..adapters.batsim.endpoints import service_endpoint
from ..formats.entry_points import MAPPING_POLICIES, plug_ins, spelled_out
from ..simulate.errors import ConfigError
from .paths import LONGEST_SOCKET_PATH

#: Mapping policies of the planner, which is not imported to check a configuration.
BUILT_IN_POLICIES = ("lookahead", "mom", "let", "slf", "loadavg")


def _known_policy(name: str) -> str:
    """Return the name of a mapping policy, built in or a plug-in's. Raises ValueError(what is allowed)."""
    names = (*BUILT_IN_POLICIES, *plug_ins(MAPPING_POLICIES))
    if name not in names:
        raise ValueError(", ".join(map(repr, names)))
    return name


def any_policy(text: str, info: ValidationInfo) -> str:
    """Return a mapping policy, or the SPEC of a queue policy with an absolute path. Raises ValueError."""
    from ..simulate.queue_policies.loaded_policies import Own
    from ..simulate.queue_policies.policy_specs import COMPONENT, is_queue_policy, parse_planned

    if text.startswith(COMPONENT):
        try:
            folder = info.context["base"] if info.context else Path.cwd()
            kind, _, endpoint = text.partition(":")
            return f"{kind}:{service_endpoint(endpoint, folder)}"
        except ConfigError as error:
            raise ValueError(error.allowed) from None
    text = spelled_out(text)
    if not is_queue_policy(text) or text in plug_ins(MAPPING_POLICIES):
        return _known_policy(text)
    try:
        policy = parse_planned(text, service=True)
    except ConfigError as error:
        raise ValueError(str(error)) from error
    if isinstance(policy, Own) and policy.is_file:
        return str(replace(policy, where=_resolved(policy.where, info)))
    return text


PolicyName = Annotated[str, AfterValidator(_known_policy), Field(json_schema_extra={"enum": [*BUILT_IN_POLICIES]})]


class Section(BaseModel):
    """A mapping of the file; no key is unknown, and no value is converted."""

    model_config = ConfigDict(extra="forbid", defer_build=True, strict=True, frozen=True, allow_inf_nan=False)


def _resolved(path: str, info: ValidationInfo) -> str:
    """Return an absolute path; it is relative to the configuration's folder."""
    return str((info.context["base"] if info.context else Path.cwd()) / Path(path).expanduser())


def _path_of(kind: str) -> AfterValidator:
    """Return the check that makes a path absolute, relative to the configuration's folder; `kind` is for people."""

    def absolute(value: str, info: ValidationInfo) -> str:
        if value and "\0" not in value:
            path = Path(_resolved(value, info))
            if info.field_name != "cluster" or not path.is_dir():
                return str(path)
        raise ValueError(f"the path of a {kind}")

    return AfterValidator(absolute)


def _short(path: str) -> str:
    """Return a path that a socket can have. Raises ValueError."""
    if len(os.fsencode(path)) > LONGEST_SOCKET_PATH:
        raise ValueError(f"at most {LONGEST_SOCKET_PATH} bytes, its folder included")
    return path


FilePath = Annotated[str, _path_of("file")]
FolderPath = Annotated[str, _path_of("folder")]
SocketPath = Annotated[
    str, AfterValidator(lambda path: path.removeprefix("ipc://")), _path_of("socket"), AfterValidator(_short)
]


class AdapterConfig(Section):
    """The adapter of the resource manager, and its options."""

    name: str = DEFAULT
    options: dict[str, Any] = Field(default_factory=dict)


class SocketConfig(Section):
    """The socket for clients, and its permissions."""

    path: SocketPath | None = None
    mode: Literal["0600", "0660"] = "0600"
    group: str | None = None


UserName = str | Annotated[int, Field(ge=0)]


class EventsConfig(Section):
    """The socket on which the resource manager reports the end of a job; it exists only if users are named."""

    users: list[UserName] = Field(default_factory=list)
    path: SocketPath | None = None


class AccessConfig(Section):
    """Rights over the socket, beyond the permissions of the socket file."""

    submit: bool | None = None
    see: Literal["everybody", "own"] = "everybody"
    admins: list[UserName] = Field(default_factory=list)
    viewers: list[UserName] = Field(default_factory=list)
    admin_group: str | None = None
    root: bool = False


class QuotaConfig(Section):
    """The most that one user may have at once, and all users together."""

    workflows: int = Field(default=1000, ge=1)
    jobs: int = Field(default=100_000, ge=1)
    workflow_jobs: int = Field(default=10_000, ge=1)
    dependencies: int = Field(default=300_000, ge=1)
    journal_mib: int = Field(default=512, ge=1)
    total_journal_mib: int = Field(default=4096, ge=1)
    connections: int = Field(default=64, ge=1, le=512)


class MetricsConfig(Section):
    """The HTTP server for metrics and health."""

    enabled: bool = True
    address: str = "127.0.0.1"
    port: int = Field(default=9836, ge=0, le=65535)


class GuardConfig(Section):
    """Limits of forecast errors at which the guard overrules the policy."""

    enabled: bool = True
    window: int = Field(default=20, ge=1, le=1000)
    max_median_error: float = Field(default=0.5, gt=0)
    policy: PolicyName = "slf"


def _share(value: object) -> object:
    """Return a share as a number; `10%` and 0.1 are the same. Raises ValueError(what is allowed)."""
    allowed = "a share from 0% to 100%, such as 10% or 0.1"
    number: object = value
    if isinstance(value, str) and value.strip().endswith("%"):
        try:
            number = float(value.strip()[:-1]) / 100.0
        except ValueError:
            raise ValueError(allowed) from None
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0.0 <= number <= 1.0:
        raise ValueError(allowed)
    return float(number)


class HandoverConfig(Section):
    """The canary: the random share of the eligible jobs that is handed over, and whether the others are compared."""

    share: Annotated[float, BeforeValidator(_share)] = 1.0
    partitions: list[str] = Field(default_factory=list)
    control: bool = True

    @property
    def canary(self) -> HandoverConfig | None:
        """The section if it leaves jobs to the resource manager, else None."""
        return self if self.share < 1.0 or self.partitions else None


class RelearnConfig(Section):
    """Limits of forecast errors at which a profile is learned again."""

    enabled: bool = True
    window: int = Field(default=5, ge=1, le=1000)
    max_median_error: float = Field(default=0.25, gt=0)


class AccountingConfig(Section):
    """Reading of the usage of ended jobs from the resource manager's accounting: whether and how often."""

    enabled: bool = True
    delay_seconds: float = Field(default=30.0, ge=0, le=86400)
    every_seconds: float = Field(default=60.0, ge=1, le=86400)


class PowerConfig(Section):
    """Powering down of idle nodes; the resource manager wakes them."""

    save: bool = False
    idle_seconds: float = Field(default=600.0, ge=1)
    spare_nodes: int = Field(default=1, ge=0)


class CalibrationConfig(Section):
    """Place of the recorded calibrations of nodes, and the change between two of them that counts."""

    folder: FolderPath | None = None
    bound: float = Field(default=0.1, ge=0.001, le=10)


class RecordConfig(Section):
    """The record of what the daemon sees, for `pilotfish replay`; bounded in size and age."""

    enabled: bool = False
    folder: FolderPath | None = None
    max_mib: int = Field(default=500, ge=1)
    keep_days: float = Field(default=30.0, gt=0)


class ScoreConfig(Section):
    """The card of the service as metrics."""

    enabled: bool = True
    every_hours: float = Field(default=24.0, ge=0.01, le=8760.0)


class LogConfig(Section):
    """The log on stderr."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["plain", "json"] = "plain"
