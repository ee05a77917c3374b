"""The settings of a user's commands (schema pilotfish/client/v1): the service's socket, or Slurm itself.

Rule: a wrong key is a ConfigError that names its file. A file says whose daemon is trusted and how jobs are submitted,
so it must be trusted itself. `systemd/client.yaml` explains the keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from ...simulate.errors import ConfigError
from ...trust import check_file


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
