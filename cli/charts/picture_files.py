"""Pictures in files: the option `--plot FILE`, the endings that are known, and the packages that they need.

Rule: a wrong name or a missing package is found before anything is simulated or measured.
"""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...formats.documents.atomic_write import check_file
from ...simulate.errors import PilotfishError
from ...trust import private_umask
from ..streams import note

if TYPE_CHECKING:
    from .figure import Figure

#: The package that draws each ending.
PACKAGES = {".svg": "matplotlib", ".png": "matplotlib", ".pdf": "matplotlib", ".html": "bokeh"}

PlotFile = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Draw the picture into FILE.svg, .png, .pdf or .html.")
]


def check(target: Path | None, option: str = "--plot") -> None:
    """Check the value of an option, if given.

    Args:
        target: the file to draw.
        option: its name.

    Raises:
        typer.BadParameter: the ending is unknown.
        ConfigError: the file cannot be written.
        PilotfishError: the package that draws it is not installed.
    """
    if target is None:
        return
    ending = target.suffix.lower()
    if ending not in PACKAGES:
        problem = f"{target.name!r} has no known ending (allowed: {', '.join(PACKAGES)})"
        raise typer.BadParameter(problem, param_hint=f"'{option}'")
    check_file(target)
    if importlib.util.find_spec(PACKAGES[ending]) is None:
        raise PilotfishError(f"a {ending} file needs {PACKAGES[ending]}: pip install 'pilotfish[plot]'")


def columns(target: Path | None, cells: int) -> int:
    """Return how many columns a time axis has in a file, or in a terminal of so many cells."""
    return _backend(target).COLUMNS if target else cells


def save(figure: Figure, target: Path) -> None:
    """Write a figure into a file, in the form of the file's ending, and say where it is. Raises OSError."""
    from ...formats.documents.atomic_write import write_whole

    backend, form = _backend(target), target.suffix.lower().removeprefix(".")
    write_whole(target, backend.page(figure) if form == "html" else backend.picture(figure, form))
    note(f"the picture is in {target}")


def _backend(target: Path) -> Any:
    """Return the module that draws a file; importing it imports the package, which makes files for itself."""
    with private_umask():
        return importlib.import_module(f".{PACKAGES[target.suffix.lower()]}_backend", __package__)
