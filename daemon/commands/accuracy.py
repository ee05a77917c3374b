"""`pilotfish accuracy`: what was foretold of jobs against what came true.

Rule: it changes nothing; a journal's file is copied and the copy is read, so that a daemon may be using it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...simulate.errors import ConfigError
from . import inputs

if TYPE_CHECKING:
    from ..accuracy import Foretold

_ENDINGS = (".svg", ".png", ".csv")


def accuracy(
    journal: Annotated[
        Path | None, typer.Option("--journal", metavar="FILE", help="A daemon's journal.sqlite, with or without it.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="A picture, FILE.svg or .png, or all jobs: FILE.csv."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Show every profile, however many there are.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON, with every job.")] = False,
    socket: Annotated[
        str | None,
        typer.Option("--socket", metavar="PATH", help="The daemon's socket, if it is not at the usual place."),
    ] = None,
) -> int:
    """Compare what was foretold of the jobs that completed with what came true.

    By contention model, source of profiles, policy and profile: the median and the 90 % quantile of the absolute errors
    of run times, (actual - forecast) / actual; the bias (above 0: jobs take longer than foretold); the trend, in points
    from the earlier half of the jobs to the later; and the share that ran as long as their interval said, which should
    be 80 %. The daemon is asked, or its journal read, of which the latest 10,000 jobs.

    \b
    Examples:
      pilotfish accuracy
      pilotfish accuracy --out accuracy.svg
      pilotfish accuracy --out accuracy.csv
      pilotfish accuracy --journal /var/lib/pilotfish/journal.sqlite --json
    """
    _check(journal, out, socket)
    jobs = _asked(socket) if journal is None else _read(journal)
    if out is not None and out.suffix.lower() == ".csv":
        from ...simulate.formats.writing import write_whole
        from ..accuracy import to_csv

        write_whole(out, to_csv(jobs))
        inputs.note(f"{len(jobs):,} jobs are in {out}")
    elif out is not None:
        from ..plot import sheet
        from ..plot.accuracy import picture

        sheet.draw(picture(jobs), out)
        inputs.note(f"the picture is in {out}")
    if as_json:
        from ..accuracy import to_dict

        print(json.dumps(to_dict(jobs), indent=1, allow_nan=False))
    else:
        from ..render.accuracy import show

        show(jobs, everything=everything)
    return 0


def _check(journal: Path | None, out: Path | None, socket: str | None) -> None:
    if journal is not None and socket is not None:
        raise inputs.bad("--socket", "it goes without --journal: the file is read, no daemon is asked")
    if out is None:
        return
    if out.suffix.lower() not in _ENDINGS:
        raise inputs.bad("--out", f"{out.name!r} has no known ending (allowed: {', '.join(_ENDINGS)})")
    if not out.parent.is_dir():
        raise ConfigError(str(out), "", "cannot be written: there is no such folder")
    if out.suffix.lower() == ".csv":
        return
    from ..render.extras import demand

    demand("matplotlib", f"a {out.suffix.lower()}")


def _asked(socket: str | None) -> list[Foretold]:
    from ..accuracy import Foretold
    from .service import ask_daemon

    return [Foretold(*job) for job in ask_daemon(socket, "accuracy")["jobs"]]


def _read(path: Path) -> list[Foretold]:
    from contextlib import closing

    from ..accuracy import LATEST
    from ..journal import Journal

    if not path.is_file():
        raise ConfigError(str(path), "", "there is no such file", "the journal.sqlite of a daemon's state_dir")
    with closing(Journal(path, in_memory=True)) as journal:
        return journal.foretold(LATEST)
