"""`pilotfish profile corun`: how sensitive a program is to others' memory traffic, and how much it presses on theirs;
`pilotfish profile pairs`: what that means for two of them together.

Rule: scores are relative and say so; they go to stdout, what is being done to stderr.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ...simulate.errors import ConfigError
from . import inputs


def corun(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND...", help="The command to run.")],
    name: Annotated[
        str | None, typer.Option(help="Its profile's name (default: one made from the command).")
    ] = None,
    rounds: Annotated[
        int, typer.Option(min=1, metavar="K", help="Run it K times alone and beside each pressure.")
    ] = 3,
    cpus: Annotated[
        str | None, typer.Option(metavar="LIST", help="CPUs it may use (default: all but the last).")
    ] = None,
    node_type: Annotated[
        str | None, typer.Option(metavar="TYPE", help="This machine's node type in your cluster file.")
    ] = None,
    store: inputs.Store = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")] = False,
) -> None:
    """Score how COMMAND and memory traffic slow each other.

    COMMAND is run alone, and beside a streamer of memory at three pressures: six times in each round. It is
    for machines without counters. Its standard output goes to standard error. The scores are relative to that
    streamer on this machine. They are kept in the profile store: what programs scored so cost each other, plans count
    from then on, where the bandwidth of one of them is not known. The last lines are for a node type.

    \b
    Example:
      pilotfish profile corun --name align -- ./align.sh reads.fastq
    """
    from ...profiles.corun import CoRunError, co_run
    from ...profiles.measure import CommandError
    from .profile import allowed_cpus, chosen_name

    allowed, chosen = allowed_cpus(cpus), chosen_name(command, name)
    if node_type is not None:
        chosen_name([], node_type, "--node-type")
    if allowed is not None and set(allowed) >= os.sched_getaffinity(0):
        raise inputs.bad("--cpus", f"{cpus} leaves no CPU for the streamer")
    try:
        scores = co_run(chosen, command, rounds=rounds, cpus=allowed, stdout=sys.stderr, tell=inputs.note)
    except (CommandError, CoRunError) as error:
        inputs.note(str(error))
        raise typer.Exit(error.exit_code) from None
    scores = replace(scores, node_type=node_type)
    inputs.Profiles(store).store.put_scores(scores)
    if as_json:
        from .profile import print_json

        print_json("corun", **scores.to_dict())
        return
    from ..render.corun import show_scores

    show_scores(scores)


def pairs(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[SCORES...]", help="What `profile corun --json` printed; default: the store's scores."),
    ] = None,
    store: inputs.Store = None,
) -> None:
    """Say what scored programs cost each other, for a node type.

    A program beside another one is taken to fare as beside a streamer of memory that presses as much. Plans count it
    without this, from the store.

    \b
    Examples:
      pilotfish profile pairs
      pilotfish profile corun --name align --json -- ./align.sh > align.json
      pilotfish profile pairs align.json sort.json
    """
    from ...profiles.pairs import co_run_inflation, read_scores
    from ..render.corun import show_pairs
    from ..render.text import count

    keep = inputs.Profiles(store).store
    scores = [read_scores(file) for file in files] if files else list(keep.scores())
    if not scores:
        raise ConfigError(str(keep.path), "", "no program is scored; see pilotfish profile corun")
    dates = sorted(one.date[:10] for one in scores)
    found = co_run_inflation(scores)
    for one in scores:
        if one.pressure is None:
            inputs.note(f"{one.name} presses more than the streamer: what it costs others is at least this")
    show_pairs(found, f"{count(len(scores), 'program')}, {' to '.join(dict.fromkeys((dates[0], dates[-1])))}")
