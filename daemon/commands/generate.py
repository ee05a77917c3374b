"""`pilotfish generate`: workloads from models of the field, so that nothing from outside is needed to try things.

Rule: what is written says how to make it again; the file is there whole or not at all, or goes to stdout (`-`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...simulate.errors import ConfigError
from ..render.text import count
from . import inputs
from .communication import communication
from .made_up import Jobs, Procs, Seed, check_ending, origin, pair, write

if TYPE_CHECKING:
    from ...simulate.generate.walltimes import Walltimes
    from ...simulate.workload import Workload

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Make up a workload: models of rigid jobs, workflows, communication.",
)

TRACES = (".swf", ".swf.gz")
MOST_WORKFLOW = 100_000
LEAST_LOAD, MOST_LOAD = 0.001, 1000.0

Load = Annotated[
    float | None,
    typer.Option(
        metavar="X", help="Work that arrives / what the machine can do by then, such as 0.9; else as the model has it."
    ),
]
Limit = Annotated[
    str,
    typer.Option(
        "--walltime",
        metavar="SPEC",
        help="exact (the run time), factor:A:B (times a factor from A to B), or round (10 to 100 % of it is used, "
        "and it is a round value, as people type it).",
    ),
]
Trace = Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="A .swf or .swf.gz file; - = stdout.")]


@app.command()
def lublin(
    out: Trace,
    jobs: Jobs = 10_000,
    procs: Procs = 128,
    kind: Annotated[
        str, typer.Option(metavar="KIND", help="both (batch and interactive), batch, interactive, or untyped.")
    ] = "both",
    load: Load = None,
    walltime: Limit = "round",
    seed: Seed = 0,
) -> None:
    """Rigid jobs, by the model of Lublin and Feitelson.

    Sizes, run times that depend on them, and a daily cycle of arrivals; the constants are those of 2003.

    \b
    Examples:
      pilotfish generate lublin --procs 256 --load 0.8 -o trace.swf.gz
      pilotfish generate lublin --kind batch --walltime factor:1:5 -o - | less
    """
    from ...simulate.generate.lublin import KINDS
    from ...simulate.generate.lublin import lublin as model

    if kind not in KINDS:
        raise inputs.not_among("--kind", kind, "a kind of jobs", KINDS)
    limits = _before(out, load, walltime)
    made = model(jobs, procs, kind=kind, load=load, walltimes=limits, seed=seed)
    _write_trace(out, made, "lublin", jobs=jobs, procs=procs, kind=kind, load=load, walltime=limits, seed=seed)


@app.command()
def thesis(
    out: Trace,
    jobs: Jobs = 800,
    procs: Procs = 32,
    gap: Annotated[
        str, typer.Option(metavar="K:L", help="Shape and scale (s) of Weibull times between arrivals.")
    ] = "2:15",
    size: Annotated[
        str, typer.Option(metavar="M:S", help="2^floor(u) processors: mean and deviation of log u.")
    ] = "0.25:0.5",
    run_time: Annotated[
        str, typer.Option(metavar="M:S", help="Mean and deviation of the log of run times (s).")
    ] = "4.18:1.3",
    load: Load = None,
    walltime: Limit = "round",
    seed: Seed = 0,
) -> None:
    """Rigid jobs, as in Poquet's thesis (2017).

    Weibull arrivals and sizes that are powers of two are his; run times, which he took from NAS benchmarks, are
    lognormal, by default as his were.

    \b
    Examples:
      pilotfish generate thesis --seed 3 -o batsim.swf
      pilotfish generate thesis --procs 128 --gap 1:40 --size 1:0.4 -o - | less
    """
    from ...simulate.generate.thesis import thesis as model

    limits = _before(out, load, walltime)
    pairs = {name: pair(f"--{name.replace('_', '-')}", text) for name, text in
             (("gap", gap), ("size", size), ("run_time", run_time))}  # fmt: skip
    try:
        made = model(jobs, procs, **pairs, load=load, walltimes=limits, seed=seed)
    except ConfigError as error:
        raise inputs.bad_value(f"--{error.key.replace('_', '-')}", error) from None
    options = {"jobs": jobs, "procs": procs, "gap": gap, "size": size, "run_time": run_time}
    _write_trace(out, made, "thesis", **options, load=load, walltime=limits, seed=seed)


@app.command()
def stream(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="A .yaml file; - = stdout.")],
    jobs: Annotated[int, typer.Option(min=1, max=MOST_WORKFLOW, metavar="N", help="How many jobs.")] = 50,
    shape: Annotated[
        str,
        typer.Option(
            metavar="SHAPE", help="layered, wide, diamonds, random, shallow; as applications have it: 1000genome, "
            "montage, blast, epigenomics."
        ),
    ] = "layered",
    seed: Seed = 0,
) -> None:
    """A workflow of STREAM jobs, which contend for memory.

    Its jobs are drawn from 36 of 4 to 28 threads at 3.6 to 10.5 GB/s a thread (Chahal et al., ICPE 2019), meant for
    nodes of 56 cores and 80 GB/s.

    \b
    Examples:
      pilotfish generate stream --jobs 100 -o dag-2.yaml
      pilotfish generate stream --shape montage --seed 3 -o montage.yaml
    """
    from ...simulate.formats.workflow_write import dump_workflow
    from ...simulate.generate.published import SHAPES as PUBLISHED
    from ...simulate.generate.stream import SHAPES
    from ...simulate.generate.stream import stream as model

    if shape not in SHAPES and shape not in PUBLISHED:
        raise inputs.not_among("--shape", shape, "a shape", [*SHAPES, *PUBLISHED])
    check_ending(out, (".yaml", ".yml"))
    made = model(jobs, shape=shape, seed=seed)
    text = dump_workflow(made, (origin("stream", {"jobs": jobs, "shape": shape, "seed": seed}),))
    write(out, text, count(len(made.jobs), "job"))


app.command()(communication)


def _before(out: Path, load: float | None, walltime: str) -> Walltimes:
    """Check what options of models have in common, before anything is drawn."""
    from ...simulate.generate.walltimes import parse_walltimes

    check_ending(out, TRACES)
    if load is not None and not LEAST_LOAD <= load <= MOST_LOAD:
        raise inputs.bad("--load", f"{load:g} (allowed: {LEAST_LOAD:g} to {MOST_LOAD:g})")
    try:
        return parse_walltimes(walltime)
    except ConfigError as error:
        raise inputs.bad_value("--walltime", error) from None


def _write_trace(out: Path, made: Workload, model: str, **options: Any) -> None:
    from ...simulate.formats.swf_write import dump_swf
    from ...simulate.formats.units import format_duration

    last, work = float(made.submit_time[-1]), float((made.size * made.run_time).sum())
    load = f", offered load {work / (last * made.machine):.2f}" if last and made.machine else ""
    text = dump_swf(made, [origin(model, options)])
    write(out, text, f"{count(len(made), 'job')} in {format_duration(last)} for {made.machine:,} processors{load}")
