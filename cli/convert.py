"""`pilotfish convert`: write a file in another format, and report what that format cannot express."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ..simulate.errors import ConfigError
from . import options
from .inputs import Profiles, check_files, read_cluster, read_machine
from .kernel_loading import load_kernels
from .options import argument
from .output.documents import print_json
from .streams import note
from .usage_errors import bad

if TYPE_CHECKING:
    from ..formats.convert import Converted
    from ..formats.workflow_tasks import Tasks


@dataclass(frozen=True, slots=True)
class Conversion:
    """A conversion, as the command line requests it.

    Args:
        source: file to read.
        procs: processors of the machine; None = as the file says.
        cluster: machine whose speed turns operations into seconds.
        skip_invalid: leave out jobs that cannot be replayed.
    """

    source: Path
    procs: int | None
    cluster: Path | None
    skip_invalid: bool


def convert(
    source: Annotated[
        Path, argument("IN", "SWF or Batsim trace; WfFormat, DAX or pilotfish workflow; cluster file or platform.")
    ],
    target: Annotated[Path, argument("OUT", "Its ending is the format: .json, .swf, .dax, .yaml, .xml (.gz).")],
    procs: options.Procs = None,
    cluster: options.ClusterFile = None,
    skip_invalid: options.SkipInvalid = False,
    as_json: options.Json = False,
) -> None:
    """Write a workload, a workflow or a machine in another format; report what is lost.

    A replay of OUT equals the replay of IN, unless a loss is reported. OUT is written whole or not at all. With a
    Batsim trace, --cluster gives the speed that turns operations into seconds.

    \b
    Examples:
      pilotfish convert trace.swf.gz workload.json
      pilotfish convert workload.json trace.swf --cluster platform.xml
      pilotfish convert workflow.json workflow.dax
      pilotfish convert platform.xml lab.yaml
    """
    if procs is not None and procs < 1:
        raise bad("--procs", f"{procs} (allowed: 1 or more)")
    check_files(source, cluster)
    kind, end = _kind(source), Path(target.name.removesuffix(".gz")).suffix
    if (kind, end) not in WAYS:
        ends = ", ".join(to for of, to in WAYS if of == kind)
        raise bad("OUT", f"{source.name} cannot be converted to {target.name!r} (allowed: {ends})")
    if (kind in MACHINES or (kind in WORKFLOWS and end != ".swf")) and (procs or cluster or skip_invalid):
        raise bad("--procs, --cluster, --skip-invalid", "only for workloads")
    from ..formats.atomic_write import write_whole

    made = WAYS[kind, end](Conversion(source, procs, cluster, skip_invalid))
    write_whole(target, made.text)
    if as_json:
        found = {"file": str(target), "content": made.what, "left_out": made.left_out, "lost": made.lost}
        print_json(
            "conversion", {key: dict(value) if isinstance(value, Mapping) else value for key, value in found.items()}
        )
        return
    note(f"{target}: {made.what}")
    for what, counts in (("left out", made.left_out), ("not in it any more", made.lost)):
        if counts:
            note(f"{what}: {_counted(counts)}")


def _kind(source: Path) -> str:
    """Return the kind of a file, by its name and its content."""
    from ..formats.files import read_bytes, unpacked
    from ..formats.workloads import format_of, json_kind

    name, source_name = format_of(source).name, str(source)
    if name == "SWF":
        return "SWF"
    data = unpacked(read_bytes(source), source_name)
    if name == "JSON":
        return json_kind(data, source_name)
    if name == "DAX":
        return "DAX" if re.search(rb"<(\w+:)?adag\b", data) else "platform"
    return "workflow" if re.search(rb"^[^#\n]*\bpilotfish/workflow/", data, re.MULTILINE) else "cluster"


def _swf_to_batsim(request: Conversion) -> Converted:
    from ..formats.convert import swf_to_batsim
    from ..formats.swf import read_swf

    if request.cluster is not None:
        raise bad("--cluster", "SWF has run times, no operations (allowed: with a Batsim trace)")
    load_kernels("swf.parser")
    jobs = read_swf(request.source, skip_invalid=request.skip_invalid)
    if request.procs is None and jobs.machine is None:
        raise ConfigError(str(request.source), "MaxProcs", "missing: the size of the machine", "that, or --procs")
    return swf_to_batsim(dataclasses.replace(jobs, machine=request.procs or jobs.machine), _origin(request.source))


def _batsim_to_swf(request: Conversion) -> Converted:
    from ..formats.batsim.workload import load_batsim, workload_of
    from ..formats.convert import batsim_to_swf
    from ..simulate.replay.machine import speeds_of

    speeds = speeds_of(read_machine(request.cluster))
    given = load_batsim(request.source)
    jobs = workload_of(given, request.source, speeds=speeds, skip_invalid=request.skip_invalid)
    return batsim_to_swf(
        given, dataclasses.replace(jobs, machine=request.procs or jobs.machine), _origin(request.source)
    )


def _platform_to_cluster(request: Conversion) -> Converted:
    from ..formats.convert import simgrid_to_cluster
    from ..formats.simgrid.platform import read_platform

    return simgrid_to_cluster(read_platform(request.source), (_origin(request.source),))


def _cluster_to_platform(request: Conversion) -> Converted:
    from ..formats.convert import cluster_to_simgrid

    return cluster_to_simgrid(read_cluster(request.source))


def _to_wfcommons(request: Conversion) -> Converted:
    from ..formats.convert import to_wfcommons

    return to_wfcommons(_tasks(request), _origin(request.source))


def _to_dax(request: Conversion) -> Converted:
    from ..formats.convert import to_dax

    return to_dax(_tasks(request), _origin(request.source))


def _to_workflow(request: Conversion) -> Converted:
    from ..formats.convert import to_workflow
    from ..formats.workflow import read_workflow

    return to_workflow(_tasks(request), read_workflow(request.source), _origin(request.source))


def _workflow_to_swf(request: Conversion) -> Converted:
    from ..formats.convert import to_swf

    if request.cluster is not None:
        raise bad("--cluster", "tasks have run times, no operations (allowed: with a Batsim trace)")
    return to_swf(_tasks(request), request.procs, _origin(request.source), skip_invalid=request.skip_invalid)


def _tasks(request: Conversion) -> Tasks:
    from ..formats.workflow import read_tasks

    return read_tasks(request.source, Profiles(None))


#: Kinds of files that are not workloads.
WORKFLOWS, MACHINES = ("WfFormat", "DAX", "workflow"), ("platform", "cluster")
_Way = Callable[[Conversion], "Converted"]
_TO: dict[str, dict[str, _Way]] = {
    "WfFormat": {".dax": _to_dax, ".yaml": _to_workflow, ".swf": _workflow_to_swf},
    "DAX": {".json": _to_wfcommons, ".yaml": _to_workflow, ".swf": _workflow_to_swf},
    "workflow": {".json": _to_wfcommons, ".dax": _to_dax, ".swf": _workflow_to_swf},
    "SWF": {".json": _swf_to_batsim},
    "Batsim": {".swf": _batsim_to_swf},
    "platform": {".yaml": _platform_to_cluster},
    "cluster": {".xml": _cluster_to_platform},
}
#: Kind of IN and ending of OUT -> the function that converts.
WAYS = {(kind, end): way for kind, ways in _TO.items() for end, way in ways.items()}
WAYS |= {(kind, ".yml"): way for (kind, end), way in WAYS.items() if end == ".yaml"}


def _origin(source: Path) -> str:
    from .. import __version__

    return f"converted from {source.name} by pilotfish {__version__}"


def _counted(counts: Mapping[str, int]) -> str:
    """Return names with their counts; names with equal counts are grouped."""
    names: dict[int, list[str]] = {}
    for name, count in counts.items():
        names.setdefault(count, []).append(name)
    return "; ".join(f"{', '.join(alike)} ({count:,})" for count, alike in names.items())
