"""`pilotfish generate communication`: the jobs of a trace, with amounts that they compute and communicate."""

from __future__ import annotations

import hashlib
import math
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..render.text import count
from . import inputs, made_up

if TYPE_CHECKING:
    from ...simulate.workload import Workload

MOST_FACTOR = 1e15


def communication(
    workload: Annotated[Path, typer.Option("--workload", "-w", metavar="FILE", help="As for `simulate`: SWF, JSON.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="A .json file; - = stdout.")],
    cluster: Annotated[
        Path | None,
        typer.Option("--cluster", "-c", metavar="FILE", help="Its speed tells how long jobs of JSON files ran."),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, max=made_up.MOST_JOBS, metavar="N", help="How many to pick.")] = 300,
    bounds: Annotated[str, typer.Option(metavar="A:B", help="Of jobs that ran A to B seconds.")] = "3600:86400",
    largest: Annotated[int, typer.Option(min=1, metavar="N", help="On at most N processors (a cluster's).")] = 16,
    procs: made_up.Procs = 128,
    f_comp: Annotated[float, typer.Option(metavar="X", help="Operations of a processor for each second.")] = 1e6,
    f_comm: Annotated[float, typer.Option(metavar="X", help="Bytes between two processors for each second.")] = 1e7,
    f_w: Annotated[float, typer.Option(metavar="X", help="Walltime for each second, if above what was asked.")] = 1e3,
    arrivals: Annotated[bool, typer.Option("--arrivals", help="Jobs come when the trace says; else all at 0.")] = False,
    matrices: Annotated[
        bool, typer.Option("--matrices", help="Write the amount of each processor and pair (type parallel).")
    ] = False,
    skip_invalid: Annotated[bool, typer.Option("--skip-invalid", help="Leave out what is no job.")] = False,
    seed: made_up.Seed = 0,
) -> None:
    """A trace's jobs, made to compute and communicate.

    As in chapter 5 of Poquet's thesis (2017): of jobs that ran neither short nor long and fit a cluster some are
    picked; amounts follow from how long they ran. The result is a workload for Batsim.

    \b
    Examples:
      pilotfish generate communication -w trace.swf.gz -o comm.json
      pilotfish generate communication -w trace.swf --f-comm 2e8 -o comm.json
    """
    from ...simulate.formats.batsim import batsim_text
    from ...simulate.formats.batsim_write import batsim_communicating
    from ...simulate.formats.shape import from_source
    from ...simulate.generate.communication import Factors, Pick, communicating

    made_up.check_ending(out, (".json",))
    least, most = _checked(bounds, largest, procs, {"--f-comp": f_comp, "--f-comm": f_comm, "--f-w": f_w})
    trace = _read(workload, cluster, skip_invalid=skip_invalid)
    picked = from_source(str(workload), Pick(jobs, least, most, largest).of, trace, seed)
    made = communicating(replace(picked, machine=procs), Factors(f_comp, f_comm, f_w), arrivals=arrivals)
    options = {
        "workload": shlex.quote(str(workload)), "cluster": cluster and shlex.quote(str(cluster)),
        "jobs": jobs, "bounds": bounds, "largest": largest, "procs": procs, "f_comp": f_comp, "f_comm": f_comm,
        "f_w": f_w, "arrivals": arrivals, "matrices": matrices, "skip_invalid": skip_invalid, "seed": seed,
    }  # fmt: skip
    about = {"description": made_up.origin("communication", options), "input": _hash(workload)}
    if cluster is not None:
        about["cluster"] = _hash(cluster)
    text = batsim_text(from_source(str(workload), batsim_communicating, made, about, matrices))
    made_up.write(out, text, f"{len(made):,} of {count(len(trace), 'job')} for {procs:,} processors")


def _read(path: Path, cluster: Path | None, *, skip_invalid: bool) -> Workload:
    """The trace. Raises ConfigError, OSError."""
    from ...simulate.batch.machine import speeds_of
    from ...simulate.formats.workloads import format_of

    form, speeds = format_of(path), speeds_of(None if cluster is None else inputs.read_machine(cluster))
    inputs.load_kernels(*form.kernels)
    return form.read(path, speeds=speeds, skip_invalid=skip_invalid)


def _hash(path: Path) -> str:
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


def _checked(bounds: str, largest: int, procs: int, factors: dict[str, float]) -> tuple[float, float]:
    """The bounds of run times. Raises typer.BadParameter for any of these."""
    for option, factor in factors.items():
        if not 0.0 <= factor <= MOST_FACTOR:
            raise inputs.bad(option, f"{factor:g} (allowed: 0 to {MOST_FACTOR:g})")
    least, most = made_up.pair("--bounds", bounds)
    if not 0.0 <= least <= most < math.inf:
        raise inputs.bad("--bounds", f"{bounds!r} (allowed: A:B with 0 <= A <= B, seconds)")
    if largest > procs:
        raise inputs.bad("--largest", f"{largest} (allowed: up to --procs, {procs})")
    return least, most
