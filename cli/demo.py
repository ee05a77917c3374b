"""`pilotfish demo`: a folder with something to try out."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer


def demo(
    directory: Annotated[Path, typer.Argument(metavar="[DIR]", help="Where to write it.")] = Path(
        "pilotfish-demo"
    ),
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that were changed.")] = False,
) -> None:
    """Write a small workflow of real programs, and the two nodes of this machine that it can run on.

    Its 15 jobs compute, stream through memory or sleep for about a second each. Nothing is started but a
    short measurement of this machine's memory.

    \b
    Examples:
      pilotfish demo
      pilotfish demo /tmp/try --force
    """
    from ...profiles.demo import choose_cpus, write_demo
    from ..render.text import clean

    names = write_demo(directory, force=force)
    if len(choose_cpus()) == 1:
        print(
            "pilotfish: there is one CPU that we may use, so the demo has one node; its jobs share it",
            file=sys.stderr,
        )
    print(f"Wrote {', '.join(names)} into {clean(str(directory))}. Now type:\n")
    print(f"  cd {clean(shlex.quote(str(directory)))}")
    for line, says in (
        ("sh measure.sh", "measure them"),
        ("pilotfish plan workflow.yaml --cluster cluster.yaml --compare", "simulate"),
        ("pilotfish run workflow.yaml --cluster cluster.yaml", "run, compare"),
    ):
        print(f"  {line:<61}  # {says}")
