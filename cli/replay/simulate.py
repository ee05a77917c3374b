"""`pilotfish simulate`: replay a trace under a policy.

Rule: a summary names its inputs and the command that made it.
"""

from __future__ import annotations

import math
import shlex
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ... import __version__
from ...formats.documents.atomic_write import check_folder
from ...formats.entry_points import spelled_out
from ...formats.replays.results_write import BY_SUBMISSION, ORDERS, write_results
from ...formats.text import count
from ...simulate.arrays import Array
from ...simulate.model.machine import TAURUS_POWERS
from ...simulate.model.network import SOLVERS
from ...simulate.queue_policies.policy_specs import ON_NODES, is_queue_policy
from ...simulate.replay import energy
from ...simulate.replay.energy import LimitOutcome, Track
from ...simulate.replay.metrics import summarise
from ...simulate.replay.replay import Replayed
from ...simulate.replay.select import Select
from ...simulate.replay.worlds.any_policy import replay_under
from ...simulate.replay.worlds.contended import ContendedReplay, contended_track
from ...simulate.world.known_run_times import PREDICTED, RUNTIMES, WALLTIME
from .. import options
from ..inputs import file_hash
from ..options import flag, option
from ..output.documents import print_json
from ..output.replay import ReplayProgress, runtimes_line, show_replay
from ..output.text import Screen
from ..streams import note, print_policy_traceback, warn
from ..usage_errors import bad, given_options, not_among, refuse
from .daemon_policy import DaemonPolicy
from .edc_replay import ComponentPolicy, component_policy, replay_component
from .replay_request import RESOURCES, ReplayInput, ReplayRequest, read_replay

if TYPE_CHECKING:
    from ...daemon.trace_run import DaemonReplay
    from ...profiles.prediction.online_run_times import OnlineRunTimes


#: Where the states and the energy of the machine begin: at the first submission, or at second 0.
ORIGINS = ("submission", "zero")
#: Orders of the ids of jobs that are submitted at one instant: 10 before 2, as Batsim has it, or 2 before 10.
TIES = ("text", "natural")
#: Parameters that have no meaning with --daemon, and with --edc.
_INSTEAD = ("policy", "contention", "procs", "resource", "seed", "network_solver")
_NOT_WITH_COMPONENT = ("policy", "daemon", "decision_time", "runtimes", "seed")


def simulate(
    context: typer.Context,
    traces: options.Traces = None,
    workload: options.MoreTraces = None,
    procs: options.Procs = None,
    cluster: options.ClusterFile = None,
    resource: Annotated[str, option("KIND", "What jobs request of a cluster: core or node.", words=RESOURCES)] = "core",
    policy: options.QueuePolicy = "easy",
    decision_time: Annotated[
        str, option("TIME", "Simulated time of each decision: ignore, seconds, or measured (./mine.py:Class).")
    ] = "ignore",
    contention: Annotated[
        bool, flag("--contention", "Jobs on one node slow each other down, as the cluster file says.")
    ] = False,
    network_solver: Annotated[
        str | None,
        option("KIND", "How jobs share links: max-min, or simgrid (as its solver).", words=SOLVERS, default=SOLVERS[0]),
    ] = None,
    daemon: Annotated[
        Path | None, option("FILE", "Configuration of the service (YAML), whose control loop decides instead.")
    ] = None,
    runtimes: Annotated[
        str, option("KIND", "Run times that the policy knows: walltime, predicted or actual.", words=RUNTIMES)
    ] = WALLTIME,
    edc: Annotated[str | None, option("ENDPOINT", "Let a decision component of Batsim decide; it binds here.")] = None,
    edc_command: Annotated[
        str | None, option("COMMAND", "Start the component, by default at tcp://127.0.0.1:28000.")
    ] = None,
    edc_timeout: Annotated[float, option("SECONDS", "Longest wait for a reply of the component.")] = 60.0,
    edc_config: Annotated[
        list[str] | None, option("KEY=VALUE", "Batsim's configuration, such as dynamic-jobs-enabled=true; repeatable.")
    ] = None,
    edc_protocol: Annotated[int, option("VERSION", "Version of Batsim's protocol that it speaks: 4 or 5.")] = 4,
    out: Annotated[Path | None, option("DIR", "Write jobs.csv, schedule.csv, summary.json.", "--out", "-o")] = None,
    ties: Annotated[
        str, option("ORDER", "Order of a Batsim workload's jobs of one instant: ids as text, or natural.", words=TIES)
    ] = TIES[0],
    jobs_order: Annotated[
        str, option("ORDER", "Order of the rows of jobs.csv: submission, or end as Batsim's.", words=ORDERS)
    ] = BY_SUBMISSION,
    origin: Annotated[
        str, option("WHEN", "Where states and energy begin: the first submission, or zero.", words=ORIGINS)
    ] = ORIGINS[0],
    seed: options.Seed = 0,
    begin: options.Begin = None,
    end: options.End = None,
    user: Annotated[list[int] | None, option("ID", "Only jobs of this user; may be repeated.")] = None,
    least: Annotated[int | None, option("N", "Only jobs of N processors or more.", "--min-size")] = None,
    most: Annotated[int | None, option("N", "Only jobs of N processors or fewer.", "--max-size")] = None,
    load: Annotated[float, option("X", "Let jobs arrive X times as fast.")] = 1.0,
    skip_invalid: options.SkipInvalid = False,
    store: options.Store = None,
    as_json: options.Json = False,
) -> None:
    """Replay traces of jobs under a policy, and print waiting time, slowdown, utilisation and energy.

    The replay is exact: at each instant all ends come first, then all submissions, then one pass of the policy. Jobs
    get the processors with the lowest numbers. Several traces are joined. A job of a workflow without a
    profile has that of its past runs, from the profile store.

    \b
    Examples:
      pilotfish simulate trace.swf.gz
      pilotfish simulate trace.swf --procs 1024 -p easy:order=sjf --out run
      pilotfish simulate trace.swf -c lab.yaml -p easy:share=1.1
      pilotfish simulate trace.swf --daemon /etc/pilotfish/pilotfish.yaml
      pilotfish simulate trace.swf --edc-command 'batsched -v easy_bf'
    """
    if out is not None:
        check_folder(out)
    select = Select(begin, end, tuple(user or ()), least, most, load)
    files = [*(traces or ()), *(workload or ())]
    option_names, decides = given_options(context), cast(str | DaemonPolicy | ComponentPolicy, policy)
    if runtimes not in RUNTIMES:
        raise not_among("--runtimes", runtimes, "a kind of run time", RUNTIMES)
    if jobs_order not in ORDERS:
        raise not_among("--jobs-order", jobs_order, "an order", ORDERS)
    if ties not in TIES:
        raise not_among("--ties", ties, "an order of ids", TIES)
    if origin not in ORIGINS:
        raise not_among("--origin", origin, "an origin", ORIGINS)
    if edc is not None or edc_command is not None:
        refuse(_NOT_WITH_COMPONENT, option_names, "not together with --edc, whose component decides")
        decides = component_policy(edc, edc_command, edc_timeout, edc_config or [], edc_protocol)
    elif daemon is not None:
        refuse(_INSTEAD, option_names, "not together with --daemon")
        from .daemon_replay import read_daemon

        decides = service = read_daemon(daemon, runtimes)
        seed, cluster = service.config.seed, cluster or Path(service.config.cluster)
    elif not _replays(policy) and policy in options.mapping_policy_names():
        refuse(("procs",), option_names, f"not together with {policy}, which plans the queue of a service")
        if cluster is None or resource == "node":
            raise bad("--policy", f"{policy} chooses among nodes (needed: --cluster, resource core)")
        from .daemon_replay import with_policy

        decides = with_policy(policy, cluster, seed, runtimes)
    request = ReplayRequest(files, decides, select, seed, procs, cluster, resource, decision_time, skip_invalid,
                            contention, runtimes, network_solver, natural=ties == "natural", store=store)  # fmt: skip
    replay_input = read_replay(request)
    predictor = _predictor(replay_input) if runtimes == PREDICTED else None
    if predictor and predictor.unasked:
        problem = "no requested time; its run time is its walltime, which bounds its prediction"
        note(f"{count(predictor.unasked, 'job')} with {problem}")
    log_power = out is not None and replay_input.machine.powers is not None
    replayed, did = _replay(request, replay_input, predictor, log_power=log_power)
    power = _power(request, replay_input, replayed, 0.0 if origin == "zero" else math.inf, tracked=out is not None)
    _report(request, replay_input, replayed, did, power, predictor, out, jobs_order, as_json=as_json)


def _predictor(replay_input: ReplayInput) -> OnlineRunTimes:
    from ...profiles.prediction.online_run_times import OnlineRunTimes

    return OnlineRunTimes(replay_input.jobs)


def _replays(policy: str) -> bool:
    """Return whether a policy replays traces by itself; the names of others take long to import."""
    return policy in ON_NODES or is_queue_policy(spelled_out(policy))


def _replay(
    request: ReplayRequest, replay_input: ReplayInput, predictor: OnlineRunTimes | None, *, log_power: bool
) -> tuple[Replayed, DaemonReplay | None]:
    """Replay the jobs and show the progress; also return what the daemon did. Raises ConfigError, PolicyError."""
    jobs, machine, policy = replay_input.jobs, replay_input.machine, request.policy.policy
    with print_policy_traceback(), ReplayProgress(jobs) as progress:
        if isinstance(policy, DaemonPolicy):
            from .daemon_replay import replay_daemon

            assert replay_input.cluster is not None
            outcome = replay_daemon(policy, jobs, replay_input.cluster, progress.at, predictor, request.decision_time)
            return outcome.replayed, outcome
        if isinstance(policy, ComponentPolicy):
            return replay_component(
                policy, request.workloads, replay_input, contention=request.contention, natural=request.natural,
                log_power=log_power, progress=progress.at, clock=time.perf_counter,
            ), None  # fmt: skip
        return replay_under(
            policy, jobs, machine, replay_input.cluster, seed=request.seed, decision_time=request.decision_time,
            contention=request.contention, run_times=predictor or request.runtimes, log_power=log_power,
            progress=progress.at, clock=time.perf_counter,
        ), None  # fmt: skip


#: Power of the machine over time, energy of each job, and use of the policy's energy or power limit, as far as known.
_Power = tuple[Track | None, Array | None, LimitOutcome | None]


def _power(
    request: ReplayRequest, replay_input: ReplayInput, replayed: Replayed, begin: float, *, tracked: bool
) -> _Power:
    """Return power and energy, from a time on. O(n log n) for n changes of power."""
    if isinstance(replayed, ContendedReplay):
        track = contended_track(replayed, begin)
        return track, replayed.jobs_joules if replayed.processors.powered else None, None
    powers = replay_input.machine.powers
    if powers is None and not tracked:
        return None, None, None
    track = energy.track(replayed, powers or TAURUS_POWERS, begin)  # the states are the same for any power
    if powers is None:
        return track, None, None
    limit = energy.limited(replayed, request.policy.policy, powers, track)
    return track, energy.jobs_joules(replayed, powers), limit


def _report(
    request: ReplayRequest, replay_input: ReplayInput, replayed: Replayed, did: DaemonReplay | None, power: _Power,
    predictor: OnlineRunTimes | None, out: Path | None, order: str, *, as_json: bool,
) -> None:  # fmt: skip
    """Write the results into `out`, if given, and print the summary. Raises OSError."""
    track, joules, limit = power
    summary, about = summarise(replayed, replay_input.machine.powers), _about(request, replay_input, limit)
    if limit is not None:
        policy, powers = request.policy.policy, replay_input.machine.powers
        warn(*filter(None, (energy.refusal_of(policy, powers, replayed.machine, limit),)))
    if did is not None:
        about["daemon"] = did.counts()
    accuracies = None if predictor is None else predictor.compared(~replayed.rejected)
    about["runtimes"] = request.runtimes
    if accuracies is not None:
        about["accuracy"] = {
            name: None if accuracy is None else asdict(accuracy) for name, accuracy in accuracies.items()
        }
    if out is not None and track is not None:
        from ...formats.batsim.machine_description import state_numbers

        states = state_numbers(replay_input.cluster)
        write_results(out, replayed, summary, about, track, joules, order=order, states=states)
    if as_json:
        print_json("replay", {**about, **asdict(summary)})
        return
    has_limit, assumed = getattr(request.policy.policy, "limit", None) is not None, replay_input.cluster is None
    show_replay(
        Screen(), replayed, summary, request.policy.text, replay_input.size_from, limit, has_limit=has_limit,
        assumed=assumed, runtimes=runtimes_line(request.runtimes, accuracies), daemon=did.lines() if did else (),
    )  # fmt: skip
    if out is not None:
        note(f"the results are in {out}")


def _about(request: ReplayRequest, replay_input: ReplayInput, limit: LimitOutcome | None) -> dict[str, Any]:
    """Return the origin of a summary's numbers."""
    files = [path for path in (*request.workloads, request.cluster, request.policy.file) if path]
    about = {
        "schema": "pilotfish/replay/v1",
        "version": __version__,
        "command": shlex.join(["pilotfish", *sys.argv[1:]]),
        "inputs": {str(path): file_hash(path) if path.is_file() else None for path in files},  # None: a pipe
        "policy": request.policy.text,
        "seed": request.seed,
        "machine": replay_input.machine.processors,
        "epoch": replay_input.jobs.epoch,
        "left_out": dict(replay_input.jobs.left_out),
    }
    if not request.policy.compiled or request.decision_time != 0.0:
        about["decision_time"] = "measured" if request.decision_time is None else request.decision_time
    if limit:
        about["limit"] = asdict(limit)
    return about
