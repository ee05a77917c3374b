"""`pilotfish cluster`: a cluster file to begin with, of what a resource manager knows of its nodes."""

from __future__ import annotations

from typing import Annotated

import typer

from . import inputs


def cluster(
    adapter: Annotated[
        str, typer.Option("--adapter", metavar="NAME", help="Who is asked: slurm, or local (this machine).")
    ] = "local",
) -> None:
    """Print a cluster file of the nodes that a resource manager knows. What it does not know is assumed, and said.

    \b
    Examples:
      pilotfish cluster --adapter slurm > cluster.yaml
      pilotfish cluster > here.yaml
    """
    import yaml

    from ...adapters import registry
    from ...simulate.formats.cluster import dump_cluster

    with inputs.adapter_of(None):
        found, assumed = registry.discover(adapter)
    print(*(f"# {text}\n" for text in assumed), sep="", end="")
    print(yaml.safe_dump(dump_cluster(found), sort_keys=False), end="")
    for text in assumed:
        inputs.note(text)
