"""The settings of a user's commands (schema pilotfish/client/v1): the service's socket, or Slurm or OAR itself.

Rule: a wrong key is a ConfigError that names its file. The file says which user's daemon is trusted and how jobs are
submitted, so it must be trusted itself. `systemd/client.yaml` explains the keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ...adapters import registry
from ...simulate.errors import ConfigError
from ...trust import check_file, problem_of


def read(files: Iterable[Path], adapter: str | None = None) -> SubmissionSettings:
    """Read settings; a later file overrides an earlier one. Raises ConfigError.

    Args:
        files: The files.
        adapter: How jobs are submitted, whatever the files say; None: as they say.
    """
    from pydantic import ValidationError

    from ...formats.documents.files import check_schema, config_error, read_document

    settings_of_files: dict[str, Any] = {}
    for path in files:
        try:
            check_file(path)
        except OSError as error:
            raise ConfigError(str(path), "", f"cannot be read: {problem_of(error, path)}") from None
        document = check_schema(read_document(path), "client", str(path))
        try:
            SubmissionSettings.model_validate(document)
        except ValidationError as error:
            raise config_error(error, str(path), SubmissionSettings) from None
        if document.get("cluster"):
            document["cluster"] = str(path.absolute().parent / Path(document["cluster"]).expanduser())
        settings_of_files |= document
        if "submit_options" in document:
            options_path = path
    settings = SubmissionSettings.model_validate(settings_of_files | ({"adapter": adapter} if adapter else {}))
    if settings.adapter != "daemon" and settings.submit_options:
        user_jobs = registry.user_jobs(settings.adapter, settings.timeout_seconds)
        if bad := [word for word in settings.submit_options if not user_jobs.takes(word)]:
            allowed = f"options of {settings.adapter} as --name=value, except those that pilotfish sets"
            raise ConfigError(str(options_path), "submit_options", f"found {bad[0]!r}", allowed)
    return settings


class SubmissionSettings(BaseModel):
    """Settings of the submission of workflows; all times in seconds."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    adapter: Literal["daemon", "slurm", "oar"] = "daemon"
    service_user: str = "pilotfish"
    cluster: str | None = None
    grace_seconds: int = Field(default=60, ge=1, le=86_400)
    stagger_seconds: int = Field(default=8, ge=0, le=3_600)
    max_defer_seconds: int = Field(default=3_600, ge=1, le=86_400)
    submit_options: list[str] = Field(default_factory=list)
    output_dir: str | None = None
    timeout_seconds: float = Field(default=15.0, ge=1, le=600)
    patience_seconds: float = Field(default=60.0, ge=0, le=3_600)
