"""`pilotfish simulate`: a trace replayed under a queue policy, as fast as the machine can."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shlex
import sys
import time
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...simulate.errors import ConfigError
from . import inputs

if TYPE_CHECKING:
    from ...simulate.batch.replay import Replayed
    from ...simulate.batch.spec import Policy
    from ...simulate.formats.workloads import Format
    from ...simulate.platform import Cluster
    from ...simulate.workload import Workload


def simulate(
    workload: Annotated[
        Path,
        typer.Option("--workload", "-w", metavar="FILE", help="The trace: SWF, or Batsim's JSON (also .gz)."),
    ],
    procs: Annotated[int | None, typer.Option("--procs", metavar="N", help="Processors of the machine.")] = None,
    cluster: Annotated[
        Path | None,
        typer.Option(
            "--cluster", "-c", metavar="FILE", help="Or a cluster file's cores, SimGrid's hosts. Else: as -w says."
        ),
    ] = None,
    policy: Annotated[
        str, typer.Option("--policy", "-p", metavar="SPEC", help="easy, easy:order=sjf, strict; see `policies`.")
    ] = "easy",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="Write jobs.csv, schedule.csv, summary.json.")
    ] = None,
    seed: inputs.Seed = 0,
    begin: Annotated[
        float | None, typer.Option("--from", metavar="S", help="Jobs submitted at S seconds of the trace or later.")
    ] = None,
    end: Annotated[float | None, typer.Option("--until", metavar="S", help="Jobs submitted before S.")] = None,
    user: Annotated[
        list[int] | None, typer.Option("--user", metavar="ID", help="Jobs of this user; may be given again.")
    ] = None,
    least: Annotated[int | None, typer.Option("--min-size", metavar="N", help="Jobs of N processors or more.")] = None,
    most: Annotated[int | None, typer.Option("--max-size", metavar="N", help="Jobs of N processors or fewer.")] = None,
    load: Annotated[float, typer.Option("--load", metavar="X", help="Let jobs arrive X times as fast.")] = 1.0,
    skip_invalid: Annotated[
        bool, typer.Option("--skip-invalid", help="Leave out, and count, what is no job or cannot be replayed.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Replay a trace of rigid jobs under a queue policy, and print what it would have been like.

    Exact: at each instant all ends, then all submissions, then one pass; lowest-numbered processors first.

    \b
    Examples:
      pilotfish simulate -w trace.swf.gz
      pilotfish simulate -w trace.swf --procs 1024 -p easy:order=sjf --out run
    """
    chosen = _policy(policy)
    if procs is not None and cluster is not None:
        raise inputs.bad("--procs", "not beside --cluster")
    if procs is not None and procs < 1:
        raise inputs.bad("--procs", f"{procs} (allowed: 1 or more)")
    if not 0.0 < load < float("inf"):
        raise inputs.bad("--load", f"{load:g} (allowed: a number above 0)")
    from ...simulate.batch.select import Select
    from ...simulate.formats.workloads import format_of

    kind, found = format_of(workload), None if cluster is None else inputs.read_machine(cluster)
    inputs.load_kernels(*kind.kernels, "batch.conservative" if policy.startswith("conservative") else "batch.easy")
    select = Select(begin, end, tuple(user or ()), least, most, load)
    jobs = select.of(kind.read(workload, speeds=inputs.speeds(found), skip_invalid=skip_invalid))
    machine, whose = _machine(jobs, workload, kind, procs, found)
    groups = _groups(found) if found is not None and getattr(chosen, "allocation", "").endswith("local") else []
    if not len(jobs):
        raise ConfigError(str(workload), "", f"no jobs to replay{_left_out(jobs)}")
    from ...simulate.batch.metrics import summarise

    replayed = _replay(jobs, machine, chosen, seed, groups)
    summary = summarise(replayed)
    about = _about(workload, cluster, chosen, seed, machine, jobs)
    if out is not None:
        from ...simulate.formats.results import write_results

        write_results(out, replayed, summary, about)
    if as_json:
        print(json.dumps({**about, **dataclasses.asdict(summary)}, indent=1))
        return
    from ..render.replay import show
    from ..render.screen import Screen

    show(Screen(), replayed, summary, str(about["policy"]), whose)
    if out is not None:
        inputs.note(f"jobs.csv, schedule.csv and summary.json are in {out}")


def policies() -> None:
    """List the queue policies, with their options, defaults and sources.

    \b
    Examples:
      pilotfish policies
      pilotfish simulate -w trace.swf -p easy:order=sjf
    """
    from ..render.replay import show_policies
    from ..render.screen import Screen

    show_policies(Screen())


def _policy(text: str) -> Policy:
    from ...simulate.batch.spec import parse

    try:
        return parse(text)
    except ConfigError as error:
        raise inputs.bad(
            "--policy", f"{error.key}: {error.problem} (allowed: {error.allowed})".removeprefix(": ")
        ) from None


def _machine(
    jobs: Workload, path: Path, kind: Format, procs: int | None, cluster: Cluster | None
) -> tuple[int, str]:
    """Processors, and who says so."""
    if procs is not None:
        return procs, "--procs"
    if cluster is not None:
        cores = sum(node.type.cores for node in cluster.nodes)
        what = "cores" if cores > len(cluster.nodes) else "nodes"
        return cores, f"the {what} of {Path(cluster.source).name}"
    if jobs.machine is None:
        why = "missing: how large the machine is"
        raise ConfigError(str(path), kind.size, why, "that, or --procs, or --cluster")
    return jobs.machine, f"{kind.size} of {path.name}"


def _groups(cluster: Cluster) -> list[tuple[int, int]]:
    """First and last core of each group of nodes, cores being numbered node by node."""
    first = [0, *accumulate(node.type.cores for node in cluster.nodes)]
    found = []
    for name, members in cluster.groups.items():
        places = sorted(cluster.index[member] for member in members)
        if places[-1] - places[0] != len(places) - 1:
            raise ConfigError(cluster.source, f"clusters.{name}", "its nodes do not stand side by side", "neighbours")
        found.append((first[places[0]], first[places[-1] + 1] - 1))
    return sorted(found)


def _replay(
    jobs: Workload, machine: int, policy: Policy, seed: int, groups: list[tuple[int, int]]
) -> Replayed:
    from ...simulate.batch.replay import replay
    from ..render.replay import Progress

    with Progress(jobs) as progress:
        return replay(jobs, machine, policy, seed=seed, groups=groups, progress=progress.at, clock=time.perf_counter)


def _about(
    workload: Path, cluster: Path | None, policy: Policy, seed: int, machine: int, jobs: Workload
) -> dict[str, Any]:
    """Where a summary's numbers come from."""
    from ... import __version__
    from ...simulate.batch.spec import text_of

    files = [path for path in (workload, cluster) if path is not None]
    return {
        "schema": "pilotfish/replay/v1",
        "version": __version__,
        "command": shlex.join(["pilotfish", *sys.argv[1:]]),
        "inputs": {str(path): f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}" for path in files},
        "policy": text_of(policy),
        "seed": seed,
        "machine": machine,
        "left_out": dict(jobs.left_out),
    }


def _left_out(jobs: Workload) -> str:
    words = ", ".join(f"{count:,} {why}" for why, count in jobs.left_out.items())
    return f"; left out: {words}" if words else ""
