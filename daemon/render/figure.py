"""A figure of matplotlib in a file, whole or not at all; the same figure, the same bytes."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from ...simulate.formats.writing import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save(figure: Figure, path: Path) -> None:
    """Write it as the name's ending says, .svg or .png. Raises OSError."""
    kind, drawn = path.suffix.lower().removeprefix("."), BytesIO()
    figure.savefig(drawn, format=kind, metadata={"Date": None} if kind == "svg" else {})
    write_whole(path, drawn.getvalue())
