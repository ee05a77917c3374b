"""The files that `train` writes: checked before any training, and what is said of a model that is no better."""

from __future__ import annotations

from pathlib import Path

from ...formats.documents.atomic_write import check_file
from ...formats.models.verdicts import in_training
from ...simulate.queue_policies.learned_order import MODEL_SUFFIX
from ..charts import picture_files
from ..streams import note
from ..usage_errors import bad


def note_if_no_better(value: float, baseline_value: float, baseline: str) -> None:
    """Say so if a model that was written is no better than its baseline on jobs of its training; see `in_training`."""
    if value >= baseline_value:
        note(
            in_training(value, baseline_value, baseline),
            "it was written all the same: the baseline is the safer choice",
        )


def check_outputs(out: Path, resume: Path | None, picture: Path | None) -> None:
    """Check the options --out, --resume and --plot.

    Args:
        out: file of the model.
        resume: journal of the training; None: none.
        picture: of the learning curves; None: none.

    Raises:
        typer.BadParameter: a name has another ending, or two are one file.
        PilotfishError: a package is missing.
        ConfigError: a file cannot be written.
    """
    if not out.name.endswith(MODEL_SUFFIX):
        raise bad("--out", f"{out.name} (allowed: a name that ends with {MODEL_SUFFIX})")
    if resume is not None and resume.resolve() == out.resolve():
        raise bad("--resume", f"{resume} is the file of --out (allowed: another file)")
    if resume is not None:
        check_file(resume, makes_folder=True)
    check_file(out)
    picture_files.check(picture)
