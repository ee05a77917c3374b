"""The settings of a user's commands (schema pilotfish/client/v1): the service's socket, or Slurm itself.

Rule: the command line takes precedence over PILOTFISH_ADAPTER, that over a given socket, that over the user's file, and
that, key by key, over the site's. A wrong key is a ConfigError that names its file. A file says whose daemon is trusted
and how jobs are submitted, so it must be trusted itself. `systemd/client.yaml` explains the keys.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from ...daemon.paths import client_files
from ...simulate.errors import ConfigError, did_you_mean
from ...trust import check_file

ADAPTERS = ("daemon", "slurm")


def chosen(adapter: str | None, socket: str | None) -> Settings | None:
    """Return the settings for workflows over Slurm, or None for the daemon.

    Args:
        adapter: `--adapter` of the command line; None = not given.
        socket: `--socket` of the command line; None = not given.

    Raises:
        ConfigError: an unknown adapter, or a wrong file.
    """
    way = adapter or (None if socket else os.environ.get("PILOTFISH_ADAPTER")) or None
    if way is not None and way not in ADAPTERS:
        source = "--adapter" if adapter else "PILOTFISH_ADAPTER"
        raise ConfigError(source, "", f"found {way!r}{did_you_mean(way, ADAPTERS)}", ", ".join(ADAPTERS))
    if way == "daemon" or (way is None and (socket or os.environ.get("PILOTFISH_SOCKET"))):
        return None
    files = settings_files()
    if way is None and not files:
        return None
    settings = read(files)
    return settings if (way or settings.adapter) == "slurm" else None


def settings_files() -> list[Path]:
    """Return the files of settings that exist, or the one that PILOTFISH_CLIENT names."""
    return [path for path in client_files() if os.path.exists(path) or os.environ.get("PILOTFISH_CLIENT")]


def read(files: Iterable[Path]) -> Settings:
    """Read settings; a later file overrides an earlier one. Raises ConfigError."""
    from pydantic import ValidationError

    from ...formats.files import check_schema, config_error, read_document

    found: dict[str, Any] = {}
    for path in files:
        try:
            check_file(path)
        except OSError as error:
            raise ConfigError(str(path), "", f"cannot be read: {error.strerror}") from None
        document = check_schema(read_document(path), "client", str(path))
        try:
            Settings.model_validate(document)
        except ValidationError as error:
            raise config_error(error, str(path), Settings) from None
        if document.get("cluster"):
            document["cluster"] = str(path.absolute().parent / Path(document["cluster"]).expanduser())
        found |= document
    return Settings.model_validate(found)


#: Options of sbatch that pilotfish sets: long ones, and the letters of short ones.
_OURS = frozenset({
    "array", "begin", "chdir", "clusters", "comment", "dependency", "error", "export", "export-file", "hold",
    "job-name", "kill-on-invalid-dep", "output", "parsable", "test-only", "wait", "wrap",
})  # fmt: skip
_LETTERS = frozenset("abcdDeHJMoW")


class Settings(BaseModel):
    """How workflows are submitted; all times in seconds."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    adapter: Literal["daemon", "slurm"] = "daemon"
    service_user: str = "pilotfish"
    cluster: str | None = None
    grace_seconds: int = Field(default=60, ge=1, le=86_400)
    stagger_seconds: int = Field(default=8, ge=0, le=3_600)
    max_defer_seconds: int = Field(default=3_600, ge=1, le=86_400)
    submit_options: list[str] = Field(default_factory=list)
    output_dir: str | None = None
    timeout_seconds: float = Field(default=15.0, ge=1, le=600)
    patience_seconds: float = Field(default=60.0, ge=0, le=3_600)

    @field_validator("submit_options")
    @classmethod
    def _not_ours(cls, value: list[str]) -> list[str]:
        for word in value:
            name = word.removeprefix("--").partition("=")[0]
            taken = name in _OURS if word.startswith("--") else word[:1] == "-" and word[1:2] in _LETTERS
            if taken or not word.startswith("-"):
                raise ValueError(
                    f"options of sbatch as --name=value, except those that pilotfish sets ({word!r} is one)"
                )
        return value
