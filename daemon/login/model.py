"""The settings of a user's commands (schema pilotfish/client/v1), of the site or of the user.

Rule: every key is named in `systemd/client.yaml` with its meaning.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

#: long options of sbatch that are ours to give, and the letters of the short ones
_OURS = frozenset({
    "array", "begin", "chdir", "clusters", "comment", "dependency", "error", "export", "export-file", "hold",
    "job-name", "kill-on-invalid-dep", "output", "parsable", "test-only", "wait", "wrap",
})  # fmt: skip
_LETTERS = frozenset("abcdDeHJMoW")


class Settings(BaseModel):
    """How workflows are submitted from here; all times in seconds."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    adapter: Literal["daemon", "slurm"] = "daemon"
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
                raise ValueError(f"options of sbatch as --name=value, and none that pilotfish gives ({word!r} is)")
        return value
