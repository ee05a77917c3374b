"""`pilotfish profile corun`: score how a program and the memory traffic of others slow each other.

`pilotfish profile pairs` shows what the scores imply for two programs on a node.

Rule: scores are relative and say so; they go to stdout, progress to stderr.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from ...formats.text import count
from ...machine_share import affinity
from ...simulate.errors import ConfigError
from .. import options
from ..inputs import Profiles, allowed_cpus, checked_name, profile_name
from ..options import argument, option
from ..output.documents import print_json
from ..streams import note
from ..usage_errors import bad


def corun(
    command: options.Command,
    name: options.ProfileOption = None,
    rounds: Annotated[int, option("N", "Measure it N times, alone and under each pressure.", min=1)] = 3,
    cpus: options.Cpus = None,
    node_type: options.NodeType = None,
    store: options.Store = None,
    as_json: options.Json = False,
) -> int:
    """Score how COMMAND and memory traffic slow each other.

    COMMAND runs alone, and next to a memory streamer at three pressures: six runs in each round. This is for machines
    without hardware counters. The output of COMMAND goes to standard error. The scores are relative to that streamer on
    this machine. They are kept in the profile store; plans use them for programs whose memory bandwidth is unknown. The
    last lines that it prints are for a node type of a cluster file. By default COMMAND may use all CPUs except the
    last, which is the streamer's.

    \b
    Examples:
      pilotfish profile corun --name align -- ./align.sh reads.fastq
    """
    from ...profiles.interference.score_runs import co_run
    from ...profiles.measure.command import CommandError

    allowed, chosen = allowed_cpus(cpus), profile_name(command, name)
    if node_type is not None:
        checked_name(node_type, "--node-type")
    if allowed is not None and set(allowed) >= set(affinity()):
        raise bad("--cpus", f"{cpus} leaves no CPU for the streamer")
    try:
        scores = co_run(chosen, command, rounds=rounds, cpus=allowed, stdout=sys.stderr, progress=note)
    except CommandError as error:
        note(str(error))
        return error.exit_code
    scores = replace(scores, node_type=node_type)
    Profiles(store).store.put_scores(scores)
    if as_json:
        print_json("corun", scores.to_dict())
    else:
        from ..output.profiles import show_scores

        show_scores(scores)
    return 0


def pairs(
    files: Annotated[
        list[Path] | None, argument("SCORES", "What `profile corun --json` printed.", default="all scores in the store")
    ] = None,
    store: options.Store = None,
    as_json: options.Json = False,
) -> None:
    """Print the slowdown of each pair of programs, for a node type.

    A program next to another is assumed to slow down as next to a memory streamer of the same pressure. Plans take this
    from the store by themselves.

    \b
    Examples:
      pilotfish profile pairs
      pilotfish profile corun --name align --json -- ./align.sh > align.json
      pilotfish profile pairs align.json sort.json
    """
    from ...profiles.interference.scores import co_run_inflation, read_scores
    from ..output.profiles import show_pairs

    keep = Profiles(store).store
    scores = [read_scores(file) for file in files] if files else list(keep.scores())
    if not scores:
        raise ConfigError(str(keep.path), "", "it has no scores; `pilotfish profile corun` makes them")
    dates = sorted(score.date[:10] for score in scores)
    inflation = co_run_inflation(scores)
    most = [score.name for score in scores if score.pressure is None]
    note(*(f"{name} presses more than the streamer: its effect on others is a lower bound" for name in most))
    if as_json:
        print_json("pairs", {"from": dates[0], "to": dates[-1], "co_run_inflation": inflation})
        return
    show_pairs(inflation, f"{count(len(scores), 'program')}, {' to '.join(dict.fromkeys((dates[0], dates[-1])))}")
