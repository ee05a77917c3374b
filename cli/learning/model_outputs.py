"""The files that `train` writes: checked before any training, and what is said of a model that is written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote

from ...formats.documents.atomic_write import check_file
from ...formats.documents.quantities import format_size
from ...formats.models.verdicts import in_training
from ...simulate.queue_policies.learned_order import MODEL_SUFFIX
from ..charts import picture_files
from ..streams import hint, note
from ..usage_errors import bad
from .learning_tasks import PARTS


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
    check_file(out)
    if resume is not None:
        check_file(resume, makes_folder=True)
        if resume.resolve() == out.resolve():
            raise bad("--resume", f"{resume} is the file of --out (allowed: another file)")
    picture_files.check(picture)


def note_written(out: Path, judge: Sequence[str]) -> None:
    """Print that a model is written, and the command that judges it.

    Args:
        out: its file.
        judge: words of the command after `pilotfish evaluate`.
    """
    note(f"{out}: {format_size(out.stat().st_size)}; judge it on other jobs:")
    hint("pilotfish evaluate", *judge)


def judging_words(out: Path, traces: Sequence[Path], part: str) -> list[str]:
    """Return words that judge a model on jobs that it has not seen: the other half, or traces that are to be named.

    Args:
        out: its file.
        traces: those of the training.
        part: of them that it learned from, one of PARTS.
    """
    if part == PARTS[0]:
        return [quote(str(out)), "TRACE"]
    other = PARTS[2] if part == PARTS[1] else PARTS[1]
    return [*(quote(str(path)) for path in (out, *traces)), f"--part {other}"]
