"""The options of `pilotfish simulate`.

Rule: what an option is called and what is said of it; what it means is for who reads it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Workloads = Annotated[
    list[Path],
    typer.Option("--workload", "-w", metavar="FILE", help="SWF, JSON of Batsim or IRMaSim (also .gz); again."),
]
Procs = Annotated[int | None, typer.Option("--procs", metavar="N", help="Processors of the machine.")]
Cluster = Annotated[
    Path | None,
    typer.Option("--cluster", "-c", metavar="FILE", help="Or a cluster file, SimGrid's, IRMaSim's. Else: as -w says."),
]
Resource = Annotated[
    str, typer.Option("--resource", metavar="KIND", help="What jobs ask for of a cluster file: core, or node.")
]
Policy = Annotated[
    str, typer.Option("--policy", "-p", metavar="SPEC", help="easy, ..., ./mine.py:Class; see `policies`.")
]
DecisionTime = Annotated[
    str,
    typer.Option(
        "--decision-time", metavar="S", help="What each decision takes: ignore, seconds, measured (of ./mine.py:Class)."
    ),
]
Out = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="DIR", help="Write jobs.csv, schedule.csv, summary.json.")
]
Begin = Annotated[
    float | None, typer.Option("--from", metavar="S", help="Jobs submitted at S seconds of the trace or later.")
]
End = Annotated[float | None, typer.Option("--until", metavar="S", help="Jobs submitted before S.")]
Users = Annotated[
    list[int] | None, typer.Option("--user", metavar="ID", help="Jobs of this user; may be given again.")
]
Least = Annotated[int | None, typer.Option("--min-size", metavar="N", help="Jobs of N processors or more.")]
Most = Annotated[int | None, typer.Option("--max-size", metavar="N", help="Jobs of N processors or fewer.")]
Load = Annotated[float, typer.Option("--load", metavar="X", help="Let jobs arrive X times as fast.")]
SkipInvalid = Annotated[
    bool, typer.Option("--skip-invalid", help="Leave out, and count, what is no job or cannot be replayed.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")]
