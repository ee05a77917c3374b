"""`pilotfish convert`: a file from one format to another, and what the other cannot say."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...simulate.errors import ConfigError
from . import inputs

if TYPE_CHECKING:
    from ...simulate.formats.converted import Converted


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the command line says of a conversion."""

    source: Path
    procs: int | None
    cluster: Path | None
    skip_invalid: bool


def convert(
    source: Annotated[
        Path, typer.Argument(metavar="IN", help="SWF, Batsim's JSON; a cluster file, a platform of SimGrid.")
    ],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The other of the two: .json, .swf; .xml, .yaml.")],
    procs: Annotated[
        int | None, typer.Option("--procs", metavar="N", min=1, help="Processors of the machine. Else: as IN says.")
    ] = None,
    cluster: Annotated[
        Path | None, typer.Option("--cluster", "-c", metavar="FILE", help="Its speed tells how long flops take.")
    ] = None,
    skip_invalid: Annotated[
        bool, typer.Option("--skip-invalid", help="Leave out, and count, what is no job or cannot be replayed.")
    ] = False,
) -> None:
    """Write a workload or a machine in another format. What that cannot say is told, and counted.

    A replay of OUT is the replay of IN, unless what is told says otherwise. OUT is written whole or not at all; .gz
    is packed.

    \b
    Examples:
      pilotfish convert trace.swf.gz workload.json
      pilotfish convert workload.json trace.swf --cluster platform.xml
      pilotfish convert platform.xml lab.yaml
    """
    kind, end = _ending(source), Path(target.name.removesuffix(".gz")).suffix
    if (kind, end) not in WAYS:
        ends = ", ".join(to for of, to in WAYS if of == kind)
        raise inputs.bad("OUT", f"{target.name!r} is not what {source.name} can become (allowed: {ends})")
    if kind not in (".swf", ".json") and (procs is not None or cluster is not None or skip_invalid):
        raise inputs.bad("--procs, --cluster, --skip-invalid", "these are for workloads")
    from ...simulate.formats.writing import write_whole

    made = WAYS[kind, end](Wishes(source, procs, cluster, skip_invalid))
    write_whole(target, made.text)
    inputs.note(f"{target}: {made.what}")
    for what, counts in (("left out", made.left_out), ("not in it any more", made.lost)):
        if counts:
            inputs.note(f"{what}: {_counted(counts)}")


def _ending(source: Path) -> str:
    """The ending of a file's format, whatever its name."""
    from ...simulate.formats.workloads import format_of

    end = Path(source.name.removesuffix(".gz")).suffix
    return {".yml": ".yaml"}.get(end, end) if end in (".yaml", ".yml", ".xml") else format_of(source).suffix


def _swf_to_batsim(wishes: Wishes) -> Converted:
    from ...simulate.formats.convert_workloads import swf_to_batsim
    from ...simulate.formats.swf import read_swf

    if wishes.cluster is not None:
        raise inputs.bad("--cluster", "SWF has run times, no flops (allowed: beside Batsim's JSON)")
    inputs.load_kernels("batch.swf")
    jobs = read_swf(wishes.source, skip_invalid=wishes.skip_invalid)
    if wishes.procs is None and jobs.machine is None:
        raise ConfigError(str(wishes.source), "MaxProcs", "missing: how large the machine is", "that, or --procs")
    return swf_to_batsim(dataclasses.replace(jobs, machine=wishes.procs or jobs.machine), _origin(wishes.source))


def _batsim_to_swf(wishes: Wishes) -> Converted:
    from ...simulate.batch.machine import speeds_of
    from ...simulate.formats.batsim_jobs import load_batsim, workload_of
    from ...simulate.formats.convert_workloads import batsim_to_swf

    speeds = speeds_of(None if wishes.cluster is None else inputs.read_machine(wishes.cluster))
    given = load_batsim(wishes.source)
    jobs = workload_of(given, wishes.source, speeds=speeds, skip_invalid=wishes.skip_invalid)
    return batsim_to_swf(
        given, dataclasses.replace(jobs, machine=wishes.procs or jobs.machine), _origin(wishes.source)
    )


def _platform_to_cluster(wishes: Wishes) -> Converted:
    from ...simulate.formats.convert_platforms import simgrid_to_cluster
    from ...simulate.formats.simgrid import read_platform

    return simgrid_to_cluster(read_platform(wishes.source), (_origin(wishes.source),))


def _cluster_to_platform(wishes: Wishes) -> Converted:
    from ...simulate.formats.convert_platforms import cluster_to_simgrid

    return cluster_to_simgrid(inputs.read_cluster(wishes.source))


#: Endings of IN and OUT -> what makes the one of the other.
WAYS: dict[tuple[str, str], Callable[[Wishes], Converted]] = {
    (".swf", ".json"): _swf_to_batsim,
    (".json", ".swf"): _batsim_to_swf,
    (".xml", ".yaml"): _platform_to_cluster,
    (".xml", ".yml"): _platform_to_cluster,
    (".yaml", ".xml"): _cluster_to_platform,
}


def _origin(source: Path) -> str:
    from ... import __version__

    return f"converted from {source.name} by pilotfish {__version__}"


def _counted(counts: Mapping[str, int]) -> str:
    """What there is how often, together where it is as often."""
    names: dict[int, list[str]] = {}
    for name, count in counts.items():
        names.setdefault(count, []).append(name)
    return "; ".join(f"{', '.join(alike)} ({count:,})" for count, alike in names.items())
