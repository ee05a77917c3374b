"""`pilotfish simulate`: a trace replayed under a queue policy, as fast as the machine can."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import shlex
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...simulate.errors import ConfigError
from . import inputs

if TYPE_CHECKING:
    from ...simulate.batch.custom import OwnPolicy
    from ...simulate.batch.energy import Array, Limited, Track
    from ...simulate.batch.machine import Machine
    from ...simulate.batch.pairs import Contending
    from ...simulate.batch.replay import Replayed
    from ...simulate.batch.spec import Policy
    from ...simulate.formats.workloads import Format
    from ...simulate.platform import Cluster
    from ...simulate.workload import Workload
    from ..own_policy import Named


def simulate(
    workload: Annotated[
        list[Path],
        typer.Option("--workload", "-w", metavar="FILE", help="SWF, Batsim, IRMaSim, a workflow (also .gz); again."),
    ],
    procs: Annotated[int | None, typer.Option("--procs", metavar="N", help="Processors of the machine.")] = None,
    cluster: Annotated[
        Path | None,
        typer.Option(
            "--cluster", "-c", metavar="FILE", help="Or a cluster file, SimGrid's, IRMaSim's. Else: as -w says."
        ),
    ] = None,
    resource: Annotated[
        str, typer.Option("--resource", metavar="KIND", help="What jobs ask for of a cluster file: core, or node.")
    ] = "core",
    policy: Annotated[
        str, typer.Option("--policy", "-p", metavar="SPEC", help="easy, ..., ./mine.py:Class; see `policies`.")
    ] = "easy",
    decision_time: Annotated[
        str,
        typer.Option(
            "--decision-time", metavar="S", help="What a call to ./mine.py:Class takes: ignore, measured, seconds."
        ),
    ] = "ignore",
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
    from ...simulate.batch.pairs import Contending

    takes, chosen = _seconds(decision_time), _policy(policy, seed)
    if takes != 0.0 and chosen.compiled:
        raise inputs.bad("--decision-time", f"{chosen.text} decides in no time (allowed: with ./mine.py:Class)")
    if procs is not None and cluster is not None:
        raise inputs.bad("--procs", "not beside --cluster")
    if procs is not None and procs < 1:
        raise inputs.bad("--procs", f"{procs} (allowed: 1 or more)")
    if resource not in ("core", "node"):
        raise inputs.not_among("--resource", resource, "a kind of resource", ("core", "node"))
    if not 0.0 < load < float("inf"):
        raise inputs.bad("--load", f"{load:g} (allowed: a number above 0)")
    if isinstance(chosen.policy, Contending) and (cluster is None or resource != "core"):
        raise inputs.bad("--policy", f"{policy} chooses among the cores of nodes (needed: --cluster, resource core)")
    from ...simulate.batch.select import Select
    from ...simulate.formats.workloads import format_of
    from ...simulate.workload import joined

    kinds, nodes = [format_of(path) for path in workload], None if cluster is None else inputs.read_machine(cluster)
    inputs.load_replay([chosen.policy], {kernel for kind in kinds for kernel in kind.kernels})
    select, speeds = Select(begin, end, tuple(user or ()), least, most, load), inputs.speeds(nodes)
    how = {"speeds": speeds, "skip_invalid": skip_invalid, "profiles": inputs.Profiles(None)}
    each = [kind.read(path, **how) for path, kind in zip(workload, kinds, strict=True)]
    jobs = select.of(joined(each))
    machine, whose = _machine(each, workload, kinds, procs, nodes, resource)
    if not len(jobs):
        raise ConfigError(_names(workload), "", f"no jobs to replay{_left_out(jobs)}")
    from ...simulate.batch.metrics import summarise

    replayed = _replay(jobs, machine, nodes, chosen.policy, seed, takes)
    found, joules, limit = _drawn(replayed, machine, chosen.policy)
    summary = summarise(replayed, machine.powers)
    about = _about((*workload, cluster, chosen.file), chosen.text, seed, machine.processors, jobs)
    if not chosen.compiled:
        about["decision_time"] = "measured" if takes is None else takes
    if limit:
        about["limit"] = dataclasses.asdict(limit)
    if out is not None:
        from ...simulate.formats.results import write_results

        write_results(out, replayed, summary, about, found, joules)
    if as_json:
        print(json.dumps({**about, **dataclasses.asdict(summary)}, indent=1))
        return
    from ..render.replay import show
    from ..render.screen import Screen

    has_limit = getattr(chosen.policy, "limit", None) is not None
    show(Screen(), replayed, summary, chosen.text, whose, limit, has_limit=has_limit, assumed=cluster is None)
    if out is not None:
        inputs.note(f"the results are in {out}")


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


def _seconds(text: str) -> float | None:
    """Simulated seconds that each call of a policy takes; None: as many as it does."""
    if text in ("ignore", "measured"):
        return 0.0 if text == "ignore" else None
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0.0 <= found < math.inf:
        raise inputs.bad("--decision-time", f"{text!r} (allowed: ignore, measured, or seconds, 0 or more)")
    return found


def _policy(text: str, seed: int) -> Named:
    from ...simulate.batch.own import is_own, parse_own
    from ...simulate.batch.spec import parse, text_of
    from ..own_policy import Named, make, traced

    try:
        if is_own(text):
            with traced():
                return make(parse_own(text), seed)
        policy = parse(text)
        return Named(policy, text_of(policy))
    except ConfigError as error:
        if error.source != "policy":
            raise
        raise inputs.bad(
            "--policy", f"{error.key}: {error.problem} (allowed: {error.allowed})".removeprefix(": ")
        ) from None


def _machine(
    each: list[Workload], paths: list[Path], kinds: list[Format], procs: int | None, cluster: Cluster | None,
    resource: str,
) -> tuple[Machine, str]:  # fmt: skip
    """The machine, and who says so."""
    from ...simulate.batch.machine import Machine, machine_of

    if procs is not None:
        return Machine(procs), "--procs"
    if cluster is not None:
        found = machine_of(cluster, whole_nodes=resource == "node")
        what = "nodes" if found.processors == len(cluster.nodes) else "cores"
        return found, f"the {what} of {Path(cluster.source).name}"
    told = [(one.machine, kind.size, path.name) for one, kind, path in zip(each, kinds, paths, strict=True)
            if one.machine is not None]  # fmt: skip
    if not told:
        key = next((kind.size for one, kind in zip(each, kinds, strict=True) if one.dependencies is None), "")
        why, allowed = "missing: how large the machine is", "--procs, or --cluster"
        raise ConfigError(_names(paths), key, why, f"that, or {allowed}" if key else allowed)
    return Machine(max(told)[0]), f"{told[0][1]} of {_names(name for *_, name in told)}"


def _replay(
    jobs: Workload, machine: Machine, cluster: Cluster | None, policy: Policy | Contending | OwnPolicy, seed: int,
    decision_time: float | None,
) -> Replayed:  # fmt: skip
    from ...simulate.batch.contended import replay_contended
    from ...simulate.batch.pairs import Contending
    from ...simulate.batch.replay import replay
    from ..own_policy import traced
    from ..render.replay import Progress

    with traced(), Progress(jobs) as progress:
        if isinstance(policy, Contending):
            assert cluster is not None
            return replay_contended(jobs, cluster, policy, seed=seed, progress=progress.at, clock=time.perf_counter)
        return replay(
            jobs, machine.processors, policy, seed=seed, groups=machine.groups, powers=machine.powers,
            decision_time=decision_time, progress=progress.at, clock=time.perf_counter,
        )  # fmt: skip


def _names(paths: Iterable[object]) -> str:
    return ", ".join(map(str, paths))


def _drawn(
    replayed: Replayed, machine: Machine, policy: object
) -> tuple[Track | None, Array | None, Limited | None]:
    """What the machine drew, what each job took, and what became of a limit, where that is known."""
    from ...simulate.batch import energy
    from ...simulate.batch.contended import Contended
    from ...simulate.batch.contended_track import contended_track

    if isinstance(replayed, Contended):
        found = contended_track(replayed)
        return found, None if found is None else replayed.jobs_joules, None
    if (powers := machine.powers) is None:
        return None, None, None
    found = energy.track(replayed, powers)
    return found, energy.jobs_joules(replayed, powers), energy.limited(replayed, policy, powers, found)


def _about(
    files: Iterable[Path | None], policy: str, seed: int, machine: int, jobs: Workload
) -> dict[str, Any]:
    """Where a summary's numbers come from."""
    from ... import __version__

    return {
        "schema": "pilotfish/replay/v1",
        "version": __version__,
        "command": shlex.join(["pilotfish", *sys.argv[1:]]),
        "inputs": {str(path): f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}" for path in files if path},
        "policy": policy,
        "seed": seed,
        "machine": machine,
        "left_out": dict(jobs.left_out),
    }


def _left_out(jobs: Workload) -> str:
    words = ", ".join(f"{count:,} {why}" for why, count in jobs.left_out.items())
    return f"; left out: {words}" if words else ""
