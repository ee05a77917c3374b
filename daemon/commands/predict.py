"""`pilotfish predict`: what jobs will need that were never measured, and how well that can be told.

Rule: every predictor is given the same jobs in the same order, and none sees more than a scheduler would have.
"""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...simulate.errors import ConfigError
from . import inputs

if TYPE_CHECKING:
    from ...profiles.prediction.evaluate import Evaluation

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Predict what jobs need from those that have ended; measure how well.",
)


@app.callback()
def predict() -> None:
    """Predict what jobs need from those that have ended; measure how well."""


@app.command()
def evaluate(
    workload: Annotated[
        Path, typer.Option("--workload", "-w", metavar="SWF", help="A trace with users and estimates (.swf, .swf.gz).")
    ],
    need: Annotated[str, typer.Option(metavar="NEED", help="What to predict: run-time or memory.")] = "run-time",
    predictor: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="estimate, last-two or history; may be repeated (default: all)."),
    ] = None,
    quantile: Annotated[
        float | None,
        typer.Option(
            metavar="Q", help="What history predicts: the share of jobs that are to need no more, such as 0.5 or 0.9."
        ),
    ] = None,
    skip_invalid: Annotated[bool, typer.Option("--skip-invalid", help="Leave out what is no job.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")] = False,
) -> None:
    """Predict the jobs of a trace; compare with what they needed.

    Each is predicted at its submission, from those that had ended by then.

    \b
    Examples:
      pilotfish predict evaluate --workload trace.swf.gz
      pilotfish predict evaluate -w trace.swf.gz --need memory --quantile 0.95
    """
    from dataclasses import replace

    from ...profiles.prediction.evaluate import PREDICTORS, evaluate
    from ...profiles.prediction.history import QUANTILE
    from ...profiles.prediction.trace import NEEDS, traced
    from ...simulate.formats.swf import read_swf

    if need not in NEEDS:
        raise inputs.not_among("--need", need, "a need", NEEDS)
    names = list(dict.fromkeys(predictor or PREDICTORS))
    for name in names:
        if name not in PREDICTORS:
            raise inputs.not_among("--predictor", name, "a predictor", PREDICTORS)
    if quantile is not None and not 0 < quantile < 1:
        raise inputs.bad("--quantile", f"{quantile:g} (allowed: above 0 and below 1)")
    if workload.suffixes[-2:] != [".swf", ".gz"] and workload.suffix != ".swf":
        raise inputs.bad("--workload", f"{workload.name!r} has no known ending (allowed: .swf, .swf.gz)")
    inputs.load_kernels("batch.swf")
    trace = traced(replace(read_swf(workload, skip_invalid=skip_invalid), name=str(workload)), need)
    found = evaluate(trace, names, QUANTILE if quantile is None else quantile)
    if not found.jobs:
        raise ConfigError(str(workload), "", f"no job's {need} can be predicted by {', '.join(names)}")
    _tell(found)
    if as_json:
        _print_json(workload, need, found)
        return
    from ..render.predictions import show_evaluation
    from ..render.screen import Screen

    show_evaluation(Screen(), workload.name, need, found)


@app.command(context_settings={"allow_interspersed_args": False})
def command(
    words: Annotated[list[str], typer.Argument(metavar="COMMAND...", help="The command, as a job would have it.")],
    nodes: Annotated[int, typer.Option(min=1, metavar="N", help="Nodes that it is to run on.")] = 1,
    walltime: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="The user's limit; no more than that is predicted.")
    ] = None,
    store: inputs.Store = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")] = False,
) -> None:
    """Tell what COMMAND needs, measured or predicted.

    It is predicted from runs of the same program with other arguments. A job with this command and no profile of its
    own is planned with that; it is not run.

    \b
    Examples:
      pilotfish predict command -- ./align.sh -n 8 reads.fastq
      pilotfish predict command --walltime 600 --json -- ./align.sh -n 8
    """
    from ...profiles.classes import classify_there, told
    from ...profiles.store import ProfileStore
    from ...simulate.job import DEFAULT_PROFILE, Job
    from ..paths import profile_store_path

    if walltime is not None and not 0 < walltime < inf:
        raise inputs.bad("--walltime", f"{walltime:g} (allowed: seconds, above 0)")
    keep = ProfileStore(store or profile_store_path())
    found = keep.expected(Job("job", DEFAULT_PROFILE, nodes=nodes, walltime=walltime, command=tuple(words)))
    if found is None:
        raise ConfigError(
            str(keep.path),
            "",
            f"nothing like {words[0]!r} ever ran as a job or by profile run without --name: a profile that has a name "
            "is given to a job by it",
        )
    if as_json:
        import json

        from ...profiles.schema import dump_entry

        profiles = {found.name: dump_entry(found)}
        document = {"schema": "pilotfish/profiles/v1", "profiles": profiles, **told(classify_there(found))}
        print(json.dumps(document, indent=2, allow_nan=False))
        return
    from ..render.profiles import show_profile

    show_profile(found, keep.statistics(found.name), classify_there(found))


def _tell(found: Evaluation) -> None:
    """What the numbers do not rest on, on stderr."""
    from ..render.text import count

    if found.silent:
        inputs.note(f"nothing to go by in this trace for: {', '.join(found.silent)}")
    if found.unknown_waits:
        jobs = count(found.unknown_waits, "job")
        inputs.note(f"{jobs} without a waiting time: taken to have started when submitted")


def _print_json(workload: Path, need: str, found: Evaluation) -> None:
    import json
    from dataclasses import asdict

    document = {"schema": "pilotfish/prediction-scores/v1", "workload": str(workload), "need": need, **asdict(found)}
    print(json.dumps(document, indent=2, allow_nan=False))
