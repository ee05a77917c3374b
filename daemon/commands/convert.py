"""`pilotfish convert`: a file from one format to another, and what the other cannot say."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...simulate.errors import ConfigError
from . import inputs

if TYPE_CHECKING:
    from ...simulate.formats.convert import Converted


def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="SWF or Batsim's JSON, also .gz.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The other: .json or .swf, also .gz.")],
    procs: Annotated[
        int | None, typer.Option("--procs", metavar="N", min=1, help="Processors of the machine. Else: as IN says.")
    ] = None,
    cluster: Annotated[
        Path | None, typer.Option("--cluster", "-c", metavar="FILE", help="Its speed tells how long flops take.")
    ] = None,
) -> None:
    """Write a workload in another format. What that format cannot say is told, and counted.

    A replay of OUT is the replay of IN, start by start. OUT is written whole or not at all.

    \b
    Examples:
      pilotfish convert trace.swf.gz workload.json
      pilotfish convert workload.json trace.swf --cluster lab.yaml
    """
    end = Path(target.name.removesuffix(".gz")).suffix
    if end not in WAYS:
        raise inputs.bad("OUT", f"{target.name!r} has another ending (allowed: {', '.join(WAYS)}, also .gz)")
    from ...simulate.formats.workloads import format_of
    from ...simulate.formats.writing import write_whole

    kind = format_of(source)
    if kind.suffix == end:
        raise inputs.bad("OUT", f"{source.name} is {kind.name} already")
    inputs.load_kernels(*kind.kernels)
    made = WAYS[end](source, procs, cluster)
    write_whole(target, made.text)
    inputs.note(f"{target}: {made.what}")
    for what, counts in (("left out", made.left_out), ("not in it any more", made.lost)):
        if counts:
            inputs.note(f"{what}: {_counted(counts)}")


def _to_batsim(source: Path, procs: int | None, cluster: Path | None) -> Converted:
    from ...simulate.formats.convert import swf_to_batsim
    from ...simulate.formats.swf import read_swf

    if cluster is not None:
        raise inputs.bad("--cluster", "SWF has run times, no flops (allowed: beside Batsim's JSON)")
    jobs = read_swf(source)
    if procs is None and jobs.machine is None:
        raise ConfigError(str(source), "MaxProcs", "missing: how large the machine is", "that, or --procs")
    return swf_to_batsim(dataclasses.replace(jobs, machine=procs or jobs.machine), _origin(source))


def _to_swf(source: Path, procs: int | None, cluster: Path | None) -> Converted:
    from ...simulate.formats.batsim_jobs import load_batsim, workload_of
    from ...simulate.formats.convert import batsim_to_swf

    speeds = inputs.speeds(None if cluster is None else inputs.read_cluster(cluster))
    given = load_batsim(source)
    jobs = workload_of(given, source, speeds=speeds)
    return batsim_to_swf(given, dataclasses.replace(jobs, machine=procs or jobs.machine), _origin(source))


#: What OUT's name ends with -> what makes that of the other.
WAYS: dict[str, Callable[[Path, int | None, Path | None], Converted]] = {".json": _to_batsim, ".swf": _to_swf}


def _origin(source: Path) -> str:
    from ... import __version__

    return f"converted from {source.name} by pilotfish {__version__}"


def _counted(counts: Mapping[str, int]) -> str:
    """What there is how often, together where it is as often."""
    names: dict[int, list[str]] = {}
    for name, count in counts.items():
        names.setdefault(count, []).append(name)
    return "; ".join(f"{', '.join(alike)} ({count:,})" for count, alike in names.items())
