"""`pilotfish generate`: workloads from published models.

Rule: the output names the command that makes the same bytes again, with every option written out. A file is written
whole or not at all; `-` is stdout.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ... import __version__
from ...formats.documents.atomic_write import check_folder, write_together, write_whole
from ...formats.documents.document_errors import from_source
from ...formats.documents.quantities import format_duration
from ...formats.text import count
from ...simulate.errors import ConfigError
from ...trust import make_folders
from .. import options
from ..inputs import check_files, check_output, file_hash, read_machine
from ..kernel_loading import load_kernels
from ..lazy import CommandGroup
from ..options import argument, flag, option
from ..output.documents import print_json
from ..streams import note, show_document
from ..usage_errors import bad, bad_value, not_among, value_of

if TYPE_CHECKING:
    from ...simulate.generate.models import Walltimes
    from ...simulate.model.workload import Workload

app = CommandGroup(
    """Generate a workload: models of rigid jobs, workflows, communication.

    \b
    Examples:
      pilotfish generate lublin --load 0.9 -o trace.swf.gz
      pilotfish generate stream --shape wide -o workflow.yaml
      pilotfish generate communication trace.swf -o workload.json
    """
)

TRACES = (".swf", ".swf.gz")
LEAST_LOAD, MOST_LOAD = 0.001, 1000.0
MOST_WORKFLOW = 100_000
MOST_FACTOR = 1e15
MOST_DAYS = 3660
KINDS = ("both", "batch", "interactive", "untyped")

Load = Annotated[
    float | None,
    option("X", "Offered load: arriving work / capacity of the machine, such as 0.9.", default="of the model"),
]
Limit = Annotated[
    str,
    option(
        "SPEC",
        "Walltime: exact (the run time), factor:A:B (times a factor from A to B), or round (10 to 100 % of it is used; "
        "a round value, as people type it).",
    ),
]
Out = Annotated[Path, option("FILE", "File to write (.swf, .swf.gz); - is stdout.", "--out", "-o")]


@app.command()
def lublin(
    out: Out,
    jobs: options.Jobs = 10_000,
    procs: options.Processors = 128,
    kind: Annotated[
        str, option("KIND", "Jobs: both (batch and interactive), batch, interactive, or untyped.", words=KINDS)
    ] = "both",
    load: Load = None,
    walltimes: Limit = "round",
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Rigid jobs, by the model of Lublin and Feitelson.

    Sizes, run times that depend on them, and a daily cycle of arrivals; the constants are those of 2003.

    \b
    Examples:
      pilotfish generate lublin --procs 256 --load 0.8 -o trace.swf.gz
      pilotfish generate lublin --kind batch --walltimes factor:1:5 -o - | less
    """
    from ...simulate.generate.models import lublin as model

    if kind not in KINDS:
        raise not_among("--kind", kind, "a kind of jobs", KINDS)
    limits = _checked_walltimes(out, as_json, load, walltimes)
    trace = model(jobs, procs, kind=kind, load=load, walltimes=limits, seed=seed)
    _write_trace(
        out, as_json, trace, "lublin", jobs=jobs, procs=procs, kind=kind, load=load, walltimes=limits, seed=seed
    )


@app.command()
def thesis(
    out: Out,
    jobs: options.Jobs = 800,
    procs: options.Processors = 32,
    gap: Annotated[str, option("K:L", "Shape and scale (s) of Weibull times between arrivals.")] = "2:15",
    size: Annotated[str, option("M:S", "Sizes 2^floor(u): mean and deviation of log u.")] = "0.25:0.5",
    run_time: Annotated[str, option("M:S", "Mean and deviation of the log of run times (s).")] = "4.18:1.3",
    load: Load = None,
    walltimes: Limit = "round",
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Rigid jobs, as in Poquet's thesis (2017).

    Weibull arrivals and sizes that are powers of two, as in the thesis; lognormal run times, by default fitted to the
    NAS benchmarks that it used.

    \b
    Examples:
      pilotfish generate thesis --seed 3 -o batsim.swf
      pilotfish generate thesis --procs 128 --gap 1:40 --size 1:0.4 -o - | less
    """
    from ...simulate.generate.thesis import thesis as model

    limits = _checked_walltimes(out, as_json, load, walltimes)
    texts = {"gap": gap, "size": size, "run_time": run_time}
    pairs = {name: _pair(_option(name, True), text) for name, text in texts.items()}
    try:
        trace = model(jobs, procs, **pairs, load=load, walltimes=limits, seed=seed)
    except ConfigError as error:
        raise bad_value(_option(error.key, True), error) from None
    _write_trace(out, as_json, trace, "thesis", jobs=jobs, procs=procs, **texts, load=load, walltimes=limits, seed=seed)


def _shapes() -> list[str]:
    from ...simulate.generate.published_workflows import SHAPES as PUBLISHED
    from ...simulate.generate.workflows import SHAPES

    return [*SHAPES, *PUBLISHED]


@app.command()
def stream(
    out: Annotated[Path, option("FILE", "File to write (.yaml); - is stdout.", "--out", "-o")],
    jobs: Annotated[int, option("N", "Number of jobs.", min=1, max=MOST_WORKFLOW)] = 50,
    shape: Annotated[
        str,
        option(
            "SHAPE",
            "Shape: layered, wide, diamonds, random, shallow; of applications: 1000genome, montage, blast, "
            "epigenomics.",
            words=_shapes,
        ),
    ] = "layered",
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """A workflow of STREAM jobs, which contend for memory.

    Its jobs are drawn from 36 of 4 to 28 threads at 3.6 to 10.5 GB/s a thread (Chahal et al., ICPE 2019), meant for
    nodes of 56 cores and 80 GB/s.

    \b
    Examples:
      pilotfish generate stream --jobs 100 -o dag-2.yaml
      pilotfish generate stream --shape montage --seed 3 -o montage.yaml
    """
    from ...formats.workflows.workflow import dump_workflow
    from ...simulate.generate.workflows import stream as model

    if shape not in (shapes := _shapes()):
        raise not_among("--shape", shape, "a shape", shapes)
    _check_out(out, as_json, (".yaml", ".yml"))
    workflow = model(jobs, shape=shape, seed=seed)
    text = dump_workflow(workflow, (_origin("stream", {"jobs": jobs, "shape": shape, "seed": seed}),))
    _write(out, as_json, text, count(len(workflow.jobs), "job"))


@app.command()
def communication(
    out: Annotated[Path, option("FILE", "File to write (.json); - is stdout.", "--out", "-o")],
    trace: Annotated[Path, argument("TRACE", "Trace of jobs, as for `simulate`: SWF, Batsim.")],
    cluster: options.ClusterFile = None,
    jobs: options.Jobs = 300,
    bounds: Annotated[str, option("A:B", "Pick jobs whose run time is A to B seconds.")] = "3600:86400",
    largest: Annotated[int, option("N", "Pick jobs of at most N processors.", min=1)] = 16,
    procs: options.Processors = 128,
    f_comp: Annotated[float, option("X", "Operations of each processor per second of run time.")] = 1e6,
    f_comm: Annotated[float, option("X", "Bytes between each two processors per second of run time.")] = 1e7,
    f_w: Annotated[float, option("X", "Walltime per second of run time, if above the request.")] = 1e3,
    arrivals: Annotated[bool, flag("--arrivals", "Keep the submission times; otherwise all are 0.")] = False,
    matrices: Annotated[
        bool, flag("--matrices", "Write the amounts of each processor and pair (type parallel).")
    ] = False,
    skip_invalid: options.SkipInvalid = False,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """A trace's jobs, made to compute and communicate.

    As in chapter 5 of Poquet's thesis (2017): some jobs of medium run time that fit a cluster are picked; their amounts
    of computation and communication follow from their run times. The result is a workload for Batsim. --cluster gives
    the speed of the machine on which a Batsim trace ran.

    \b
    Examples:
      pilotfish generate communication trace.swf.gz -o comm.json
      pilotfish generate communication trace.swf --f-comm 2e8 -o comm.json
    """
    from ...formats.batsim.write import batsim_communicating, batsim_text
    from ...formats.replays.workloads import format_of
    from ...simulate.generate.communication import Factors, JobSelection, communicating
    from ...simulate.model.machine import speeds_of

    _check_out(out, as_json, (".json",))
    for name, factor in {"--f-comp": f_comp, "--f-comm": f_comm, "--f-w": f_w}.items():
        if not 0.0 <= factor <= MOST_FACTOR:
            raise bad(name, f"{factor:g} (allowed: 0 to {MOST_FACTOR:g})")
    least, most = _pair("--bounds", bounds)
    if not 0.0 <= least <= most < math.inf:
        raise bad("--bounds", f"{bounds!r} (allowed: A:B with 0 <= A <= B, seconds)")
    if largest > procs:
        raise bad("--largest", f"{largest} (allowed: up to --procs, {procs})")
    check_files(trace, cluster)
    form, speeds = format_of(trace), speeds_of(read_machine(cluster))
    load_kernels(*form.kernels)
    recorded = form.read(trace, speeds=speeds, skip_invalid=skip_invalid)
    picked = from_source(str(trace), JobSelection(jobs, least, most, largest).of, recorded, seed)
    communicating_jobs = communicating(replace(picked, machine=procs), Factors(f_comp, f_comm, f_w), arrivals=arrivals)
    arguments = {
        "cluster": cluster and shlex.quote(str(cluster)),
        "jobs": jobs, "bounds": bounds, "largest": largest, "procs": procs, "f_comp": f_comp, "f_comm": f_comm,
        "f_w": f_w, "arrivals": arrivals, "matrices": matrices, "skip_invalid": skip_invalid, "seed": seed,
    }  # fmt: skip
    about = {"description": _origin(f"communication {shlex.quote(str(trace))}", arguments), "input": file_hash(trace)}
    if cluster is not None:
        about["cluster"] = file_hash(cluster)
    text = batsim_text(from_source(str(trace), batsim_communicating, communicating_jobs, about, matrices))
    _write(
        out,
        as_json,
        text,
        f"{len(communicating_jobs):,} of {count(len(recorded), 'job')} for {count(procs, 'processor')}",
    )


def _site_models() -> list[str]:
    from ...simulate.generate.site_models import MODELS

    return list(MODELS)


@app.command()
def site(
    name: Annotated[
        str, argument("NAME", "Model of a site: archer2, peta4, gpu (4 GPUs a node) or university.", words=_site_models)
    ],
    out: Annotated[Path, option("DIR", "New or empty folder to write.", "--out", "-o")],
    jobs: Annotated[
        int | None, option("N", "Number of jobs.", min=1, max=10_000_000, default="as many as the model has")
    ] = None,
    days: Annotated[float | None, option("X", "Days of the period, instead of --jobs.")] = None,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """A Slurm site for `whatif`, with its accounting.

    archer2 has the published limits of a real machine, and its jobs by size and run time; peta4 has the published size
    and rate of another. The rest is assumed. The starts in the accounting are those of EASY backfilling or first fit,
    and not of a real Slurm.

    \b
    Examples:
      pilotfish generate site archer2 --jobs 20000 -o archer2
      pilotfish generate site university --days 7 -o university
    """
    from ...formats.site.recording import check_vacant
    from ...formats.site.synthetic_site import site_files
    from ...simulate.generate.site_models import MODELS
    from ...simulate.generate.synthetic_jobs import site_jobs

    if name not in MODELS:
        raise not_among("NAME", name, "a model of a site", MODELS)
    if days is not None and (jobs is not None or not MOST_DAYS >= days > 0):
        raise bad("--days", "give --jobs or --days" if jobs else f"{days:g} (allowed: above 0, to {MOST_DAYS})")
    check_folder(out)
    check_vacant(out)
    model = MODELS[name]
    number = jobs or (model.jobs if days is None else max(1, round(model.jobs * days / model.days)))
    load_kernels(*["queue.easy"] * any(kind.units == 1 for kind in model.nodes))
    drawn = site_jobs(model, number, seed)
    origin = _origin(f"site {name}", {"jobs": number, "seed": seed})
    make_folders(out)
    files = site_files(model, drawn, origin)
    write_together({out / file: text for file, text in files.items()})
    content = f"{count(len(drawn), 'job')} in {format_duration(float(drawn.submit[-1]))}"
    if as_json:
        print_json("generated", {"file": str(out), "content": f"{content}, {model.source}"})
    else:
        note(f"{out}: {content}", f"the model: {model.source}")


def _checked_walltimes(out: Path, as_json: bool, load: float | None, written: str) -> Walltimes:
    """Check the options that the models share, before anything is drawn; return the walltimes."""
    from ...simulate.generate.models import parse_walltimes

    _check_out(out, as_json, TRACES)
    if load is not None and not LEAST_LOAD <= load <= MOST_LOAD:
        raise bad("--load", f"{load:g} (allowed: {LEAST_LOAD:g} to {MOST_LOAD:g})")
    with value_of("--walltimes"):
        return parse_walltimes(written)


def _write_trace(out: Path, as_json: bool, trace: Workload, model: str, **arguments: Any) -> None:
    from ...formats.replays.swf import dump_swf

    last, work = float(trace.submit_time[-1]), float((trace.size * trace.run_time).sum())
    load = f", offered load {work / (last * trace.machine):.2f}" if last and trace.machine else ""
    content = (
        f"{count(len(trace), 'job')} in {format_duration(last)} for {count(trace.machine or 0, 'processor')}{load}"
    )
    _write(out, as_json, dump_swf(trace, [_origin(model, arguments)]), content)


def _check_out(out: Path, as_json: bool, endings: Sequence[str]) -> None:
    """Check --out. Raises typer.BadParameter: wrong ending, or stdout needed twice; ConfigError: no such folder."""
    if str(out) != "-":
        check_output(out, endings, ", or - for stdout")
    elif as_json:
        raise bad("--json", "stdout can hold the JSON document or --out -, not both")


def _pair(name: str, text: str) -> tuple[float, float]:
    """Return the two numbers of A:B. Raises typer.BadParameter."""
    try:
        first, second = map(float, text.split(":"))
    except ValueError:
        raise bad(name, f"{text!r} (allowed: two numbers, such as 2:15)") from None
    return first, second


def _origin(model: str, arguments: dict[str, Any]) -> str:
    """Return the version and the command that makes this workload again."""
    words = [_option(name, value) for name, value in arguments.items() if value is not None and value is not False]
    return f"generated by pilotfish {__version__}: pilotfish generate {model} {' '.join(words)}"


def _option(name: str, value: Any) -> str:
    written = f"--{name.replace('_', '-')}"
    if value is True:
        return written
    return f"{written} {repr(value).removesuffix('.0') if isinstance(value, float) else value}"


def _write(out: Path, as_json: bool, text: str, content: str) -> None:
    """Write the text to a file or to stdout, and report its content."""
    if str(out) == "-":
        show_document(text)
        note(content)
        return
    write_whole(out, text)
    if as_json:
        print_json("generated", {"file": str(out), "content": content})
    else:
        note(f"{out}: {content}")
