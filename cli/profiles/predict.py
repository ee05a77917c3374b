"""`pilotfish predict`: the needs of jobs that were never measured, and the errors of the predictors.

Rule: every predictor gets the same jobs in the same order, and knows only what a scheduler would know at that time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ...formats.text import count
from ...simulate.errors import ConfigError
from .. import options
from ..inputs import Profiles, check_files, input_sizes
from ..kernel_loading import load_kernels
from ..lazy import CommandGroup
from ..options import argument, option
from ..output.documents import print_json
from ..streams import note
from ..usage_errors import bad, check_positive, not_among

_PREDICTORS = ("estimate", "last-two", "history")
app = CommandGroup(
    """Predict what jobs need from jobs that have ended; measure the errors.

    \b
    Examples:
      pilotfish predict evaluate trace.swf.gz
      pilotfish predict command -- ./align.sh -n 8 reads.fastq
      pilotfish predict classes
    """
)


@app.command()
def evaluate(
    trace: Annotated[Path, argument("TRACE", "Trace with users and estimates (.swf, .swf.gz).")],
    need: Annotated[
        str, option("NEED", "What to predict: run-time or memory.", words=("run-time", "memory"))
    ] = "run-time",
    predictor: Annotated[
        list[str] | None,
        option("NAME", "Predictor: estimate, last-two or history; may be repeated.", words=_PREDICTORS, default="all"),
    ] = None,
    quantile: Annotated[
        float | None, option("Q", "Quantile that history predicts, such as 0.5 or 0.9.", default="0.7")
    ] = None,
    skip_invalid: options.SkipInvalid = False,
    as_json: options.Json = False,
) -> None:
    """Predict the jobs of a trace and compare with what they needed.

    Each job is predicted at its submission from the jobs that had ended by then.

    \b
    Examples:
      pilotfish predict evaluate trace.swf.gz
      pilotfish predict evaluate trace.swf.gz --need memory --quantile 0.95
    """
    from dataclasses import asdict, replace

    from ...formats.replays.swf import read_swf
    from ...profiles.prediction.evaluate import NEEDS, PREDICTORS, evaluate, traced
    from ...profiles.prediction.predictors import QUANTILE

    if need not in NEEDS:
        raise not_among("--need", need, "a need", NEEDS)
    names = list(dict.fromkeys(predictor or PREDICTORS))
    for name in names:
        if name not in PREDICTORS:
            raise not_among("--predictor", name, "a predictor", PREDICTORS)
    if quantile is not None and not 0 < quantile < 1:
        raise bad("--quantile", f"{quantile:g} (allowed: above 0 and below 1)")
    if trace.suffixes[-2:] != [".swf", ".gz"] and trace.suffix != ".swf":
        raise bad("TRACE", f"{trace.name!r} has no known ending (allowed: .swf, .swf.gz)")
    check_files(trace)
    load_kernels("swf.parser")
    jobs = traced(replace(read_swf(trace, skip_invalid=skip_invalid), name=str(trace)), need)
    evaluation = evaluate(jobs, names, QUANTILE if quantile is None else quantile)
    if not evaluation.jobs:
        raise ConfigError(str(trace), "", f"no job's {need} can be predicted by {', '.join(names)}")
    if evaluation.silent:
        note(f"this trace has no data for: {', '.join(evaluation.silent)}")
    if evaluation.unknown_waits:
        note(f"{count(evaluation.unknown_waits, 'job')} of unknown waiting time, taken as 0 s")
    if as_json:
        print_json("prediction-scores", {"workload": str(trace), "need": need, **asdict(evaluation)})
        return
    from ..output.replay import show_evaluation
    from ..output.text import Screen

    show_evaluation(Screen(), trace.name, need, evaluation)


@app.command()
def classes(
    cluster: options.ClusterFile = None,
    store: options.Store = None,
    as_json: options.Json = False,
) -> None:
    """Compare guesses of class and power with first runs.

    Each command of the store is guessed from earlier runs of other commands. F1 is the mean over the classes. A cluster
    file gives the nodes on which the commands ran.

    \b
    Examples:
      pilotfish predict classes
    """
    from dataclasses import asdict

    from ...profiles.prediction.first_runs import first_runs
    from ..inputs import classifier

    report = first_runs(Profiles(store).store.runs(), classifier(cluster))
    if as_json:
        print_json("first-runs", asdict(report))
        return
    from ..output.profiles import show_first_runs

    show_first_runs(report)


@app.command(context_settings={"allow_interspersed_args": False})
def command(
    words: options.Command,
    nodes: Annotated[int, option("N", "Number of nodes of the job.", min=1)] = 1,
    walltime: Annotated[float | None, option("SECONDS", "Limit of the job; no longer run is predicted.")] = None,
    store: options.Store = None,
    as_json: options.Json = False,
) -> None:
    """Show what COMMAND needs, measured or predicted.

    COMMAND is not run. The prediction rests on runs of the same program with other arguments. Plans use it for a job
    with this command and no profile of its own.

    \b
    Examples:
      pilotfish predict command -- ./align.sh -n 8 reads.fastq
      pilotfish predict command --walltime 600 --json -- ./align.sh -n 8
    """
    from ...formats.command_words import program_words
    from ...profiles.classes import class_fields, classify_there
    from ...simulate.model.job import DEFAULT_PROFILE, Job

    check_positive("--walltime", walltime)
    keep = Profiles(store).store
    job = Job("job", DEFAULT_PROFILE, nodes=nodes, walltime=walltime, command=tuple(words), inputs=input_sizes(words))
    profile = keep.expected(job)
    if profile is None:
        default = "a plan takes one thread for a minute"
        raise ConfigError(str(keep.path), "", f"no run of {program_words(words)[0][0]!r} is recorded: {default}")
    if as_json:
        from ...profiles.profiles_file import dump_entry

        profiles = {profile.name: dump_entry(profile)}
        print_json("profiles", {"profiles": profiles, **class_fields(classify_there(profile))})
        return
    from ..output.profiles import show_profile

    show_profile(profile, keep.statistics(profile.name), classify_there(profile))
