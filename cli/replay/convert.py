"""`pilotfish convert`: write a file in another format, and report what that format cannot express."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ... import __version__
from ...formats.documents.atomic_write import check_file, write_whole
from ...simulate.errors import ConfigError
from .. import options
from ..inputs import Profiles, check_files, read_cluster, read_machine
from ..kernel_loading import load_kernels
from ..options import argument
from ..output.documents import print_json
from ..streams import note, warn
from ..usage_errors import bad

if TYPE_CHECKING:
    from ...formats.convert import Converted


#: Kind of IN -> endings of OUT.
TO = {
    "WfFormat": (".dax", ".yaml", ".swf", ".yml"),
    "DAX": (".json", ".yaml", ".swf", ".yml"),
    "workflow": (".json", ".dax", ".swf"),
    "SWF": (".json",),
    "Batsim": (".swf",),
    "platform": (".yaml", ".yml"),
    "cluster": (".xml",),
    "site": (".json", ".swf"),
}
#: Kinds of files that are not workloads.
WORKFLOWS, MACHINES = ("WfFormat", "DAX", "workflow"), ("platform", "cluster")


def convert(
    source: Annotated[
        Path,
        argument(
            "IN",
            "SWF or Batsim trace; WfFormat, DAX or pilotfish workflow; cluster file or platform; folder of a Slurm"
            " site, or its sacct.psv.",
        ),
    ],
    target: Annotated[Path, argument("OUT", "Its ending is the format: .json, .swf, .dax, .yaml, .xml (.gz).")],
    procs: options.Procs = None,
    cluster: options.ClusterFile = None,
    skip_invalid: options.SkipInvalid = False,
    store: options.Store = None,
    as_json: options.Json = False,
) -> None:
    """Write a workload, a workflow or a machine in another format; report what is lost.

    A replay of OUT equals the replay of IN, unless a loss is reported. OUT is written whole or not at all. With a
    Batsim trace, --cluster gives the speed that turns operations into seconds. A job of a workflow without a profile
    has that of its past runs, from the profile store.

    \b
    Examples:
      pilotfish convert trace.swf.gz workload.json
      pilotfish convert workload.json trace.swf --cluster platform.xml
      pilotfish convert workflow.json workflow.dax
      pilotfish convert platform.xml lab.yaml
      pilotfish convert site trace.swf.gz
    """
    if procs is not None and procs < 1:
        raise bad("--procs", f"{procs} (allowed: 1 or more)")
    check_files(None if source.is_dir() else source, cluster)
    kind, end = _kind(source), Path(target.name.removesuffix(".gz")).suffix
    if end not in TO.get(kind, ()):
        ends = ", ".join(TO.get(kind, ()))
        raise bad("OUT", f"{source.name} cannot be converted to {target.name!r} (allowed: {ends})")
    if (kind in MACHINES or (kind in WORKFLOWS and end != ".swf")) and (procs or cluster or skip_invalid):
        raise bad("--procs, --cluster, --skip-invalid", "only for workloads")
    check_file(target)
    converted = _converted(source, kind, end, procs, cluster, skip_invalid, Profiles(store))
    write_whole(target, converted.text)
    if as_json:
        losses = {"left_out": dict(converted.left_out), "lost": dict(converted.lost)}
        print_json("conversion", {"file": str(target), "content": converted.what, **losses})
        return
    missing = (("left out", converted.left_out), ("not in it any more", converted.lost))
    note(f"{target}: {converted.what}", *(f"{heading}: {_counted(counts)}" for heading, counts in missing if counts))


def _kind(source: Path) -> str:
    """Return the kind of a file, by its name and its content."""
    from ...formats.documents.files import read_bytes
    from ...formats.documents.unpack import unpacked
    from ...formats.replays.workloads import format_of, json_kind

    if source.is_dir() or source.name.removesuffix(".gz").endswith(".psv"):
        return "site"
    name, source_name = format_of(source).name, str(source)
    if name == "SWF":
        return "SWF"
    data = unpacked(read_bytes(source), source_name)
    if name == "JSON":
        return json_kind(data, source_name)
    if name == "DAX":
        return "DAX" if re.search(rb"<(\w+:)?adag\b", data) else "platform"
    return "workflow" if re.search(rb"^[^#\n]*\bpilotfish/workflow/", data, re.MULTILINE) else "cluster"


def _converted(
    source: Path, kind: str, end: str, procs: int | None, cluster: Path | None, skip_invalid: bool, profiles: Profiles
) -> Converted:
    """Convert a file of this kind to the format of an ending. Raises ConfigError, typer.BadParameter."""
    from ...formats import convert as formats

    origin = f"converted from {source.name} by pilotfish {__version__}"
    if kind == "cluster":
        return formats.cluster_to_simgrid(read_cluster(source))
    if kind == "platform":
        from ...formats.simgrid.platform import read_platform

        return formats.simgrid_to_cluster(read_platform(source), (origin,))
    if kind == "Batsim":
        from ...formats.batsim.workload import load_batsim, workload_of
        from ...simulate.model.machine import speeds_of

        speeds, batsim = speeds_of(read_machine(cluster)), load_batsim(source)
        jobs = workload_of(batsim, source, speeds=speeds, skip_invalid=skip_invalid)
        return formats.batsim_to_swf(batsim, replace(jobs, machine=procs or jobs.machine), origin)
    if cluster is not None:
        subject = {"SWF": "SWF has", "site": "jobs of a site have"}.get(kind, "tasks have")
        raise bad("--cluster", f"{subject} run times, no operations (allowed: with a Batsim trace)")
    if kind == "site":
        from ...formats.site_conversion import trace_of

        load_kernels("bars.columns")
        trace = trace_of(source, procs)
        if end == ".json" and trace.workload.machine is None:
            raise ConfigError(str(source), "", "it does not say how large the machine is", "a folder, or --procs")
        return trace.swf(origin) if end == ".swf" else trace.batsim(origin)
    if kind == "SWF":
        from ...formats.replays.swf import read_swf

        load_kernels("swf.parser")
        jobs = read_swf(source, skip_invalid=skip_invalid)
        if procs is None and jobs.machine is None:
            raise ConfigError(str(source), "MaxProcs", "missing: the size of the machine", "that, or --procs")
        return formats.swf_to_batsim(replace(jobs, machine=procs or jobs.machine), origin)
    from ...formats.workflows.workflow import read_tasks, read_workflow

    tasks = read_tasks(source, profiles)
    warn(*tasks.doubts)
    if end == ".swf":
        return formats.to_swf(tasks, procs, origin, skip_invalid=skip_invalid)
    if end in (".yaml", ".yml"):
        return formats.to_workflow(tasks, read_workflow(source), origin)
    return (formats.to_dax if end == ".dax" else formats.to_wfcommons)(tasks, origin)


def _counted(counts: Mapping[str, int]) -> str:
    """Return names with their counts; names with equal counts are grouped."""
    names: dict[int, list[str]] = {}
    for name, count in counts.items():
        names.setdefault(count, []).append(name)
    return "; ".join(f"{', '.join(alike)} ({count:,})" for count, alike in names.items())
