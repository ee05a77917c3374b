"""`pilotfish demo`: a folder with an example to try."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ...formats.text import shell_words
from ..options import argument, flag
from ..streams import note, show


def demo(
    directory: Annotated[Path, argument("DIR", "Folder to write.")] = Path("pilotfish-demo"),
    force: Annotated[bool, flag("--force", "Overwrite files that were changed.")] = False,
) -> None:
    """Write a small workflow of real programs, and a cluster file of two nodes of this machine to run it on.

    Its 15 jobs compute, stream through memory or sleep for about a second each. The demo starts nothing, except a
    short measurement of the memory bandwidth. Each node is one CPU and named after it (cpu0).

    \b
    Examples:
      pilotfish demo
      pilotfish demo /tmp/try --force
    """
    from ...profiles.demo_folder import choose_cpus, write_demo

    names = write_demo(directory, force=force)
    if len(choose_cpus()) == 1:
        note("only one CPU is usable, so the demo has one node; its jobs share it")
    show(f"Wrote {', '.join(names)} into {directory}. Now type:", "", f"  cd {shell_words([str(directory)])}")
    for line, purpose in (
        ("sh measure.sh", "first: measure them"),
        ("pilotfish plan workflow.yaml --cluster cluster.yaml --compare", "simulate"),
        ("pilotfish run workflow.yaml --cluster cluster.yaml", "run, compare"),
    ):
        show(f"  {line:<61}  # {purpose}")
