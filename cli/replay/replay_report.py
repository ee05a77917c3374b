"""Carry out a replay of the command line, and report it.

Rule: a summary names its inputs and the command that made it.
"""

from __future__ import annotations

import math
import shlex
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ... import __version__
from ...formats.text import count
from ...simulate.arrays import Array
from ...simulate.model.machine import TAURUS_POWERS
from ...simulate.replay import energy
from ...simulate.replay.energy import LimitOutcome, Track
from ...simulate.replay.metrics import summarise
from ...simulate.replay.replay import Replayed
from ...simulate.world.known_run_times import PREDICTED
from ..inputs import file_hash
from ..output.documents import print_json
from ..output.model_decisions import doubts_of, doubts_of_run_times, run_times_of, use_document
from ..output.replay import ReplayProgress, runtimes_line, show_replay
from ..output.text import Screen
from ..streams import note, print_policy_traceback, warn
from .replay_options import OutputOptions
from .replay_request import ReplayInput, ReplayRequest, read_replay

if TYPE_CHECKING:
    from ...daemon.trace_run import DaemonReplay
    from ...profiles.prediction.online_run_times import OnlineRunTimes


def run_replay(request: ReplayRequest, output: OutputOptions) -> None:
    """Read the files of a replay, replay it, and write and print the results.

    Args:
        request: the replay.
        output: where the results go.

    Raises:
        ConfigError, PolicyError, OSError: it cannot be replayed, or the results cannot be written.
    """
    replay_input, decider = read_replay(request), request.decider
    predictor = None
    if decider.runtimes == PREDICTED:
        from ...profiles.prediction.online_run_times import OnlineRunTimes

        predictor = OnlineRunTimes(replay_input.jobs)
        if predictor.unasked:
            problem = "no requested time; its run time is its walltime, which bounds its prediction"
            note(f"{count(predictor.unasked, 'job')} with {problem}")
    log_power = output.out is not None and replay_input.machine.powers is not None
    with print_policy_traceback(), ReplayProgress(replay_input.jobs) as progress:
        replayed, service = decider.replay(request, replay_input, predictor, progress.at, log_power=log_power)
    power = _power(request, replay_input, replayed, output)
    _report(request, replay_input, replayed, service, power, predictor, output)


#: Power of the machine over time, energy of each job, and use of the policy's energy or power limit, as far as known.
_Power = tuple[Track | None, Array | None, LimitOutcome | None]


def _power(request: ReplayRequest, replay_input: ReplayInput, replayed: Replayed, output: OutputOptions) -> _Power:
    """Return power and energy, counted from where the output says. O(n log n) for n changes of power."""
    begin = 0.0 if output.as_batsim else math.inf
    if replayed.contends:
        from ...simulate.replay.worlds.contended import contended_track

        contended: Any = replayed
        track = contended_track(contended, begin)
        return track, contended.jobs_joules if contended.processors.powered else None, None
    powers = replay_input.machine.powers
    if powers is None and output.out is None:
        return None, None, None
    track = energy.track(replayed, powers or TAURUS_POWERS, begin)  # the states are the same for any power
    if powers is None:
        return track, None, None
    limit = energy.limited(replayed, request.decider.policy, powers, track)
    return track, energy.jobs_joules(replayed, powers), limit


def _report(
    request: ReplayRequest, replay_input: ReplayInput, replayed: Replayed, service: DaemonReplay | None, power: _Power,
    predictor: OnlineRunTimes | None, output: OutputOptions,
) -> None:  # fmt: skip
    """Write the results into the folder, if there is one, and print the summary. Raises OSError."""
    track, joules, limit = power
    summary, about = summarise(replayed, replay_input.machine.powers), _about(request, replay_input, limit)
    if limit is not None:
        policy, powers = request.decider.policy, replay_input.machine.powers
        warn(*filter(None, (energy.refusal_of(policy, powers, replayed.machine, limit),)))
    if service is not None:
        about["daemon"] = service.counts()
    if (use := replayed.model_use) is not None:
        about["model_use"] = use_document(use)
        warn(*doubts_of(request.decider.text, use))
    trained, runtimes = run_times_of(request.decider.policy), request.decider.runtimes
    warn(*doubts_of_run_times(request.decider.text, trained, [runtimes], "--runtimes"))
    accuracies = None if predictor is None else predictor.compared(~replayed.rejected)
    about["runtimes"] = request.decider.runtimes
    if accuracies is not None:
        about["accuracy"] = {
            name: None if accuracy is None else asdict(accuracy) for name, accuracy in accuracies.items()
        }
    if output.out is not None and track is not None:
        from ...formats.batsim.machine_description import state_numbers
        from ...formats.replays.results_write import BY_END, BY_SUBMISSION, write_results

        states = state_numbers(replay_input.machine.cluster)
        order = BY_END if output.as_batsim else BY_SUBMISSION
        write_results(output.out, replayed, summary, about, track, joules, order=order, states=states)
    if output.as_json:
        print_json("replay", {**about, **asdict(summary)})
        return
    lines = service.lines() if service else ()
    has_limit, assumed = (
        getattr(request.decider.policy, "limit", None) is not None,
        replay_input.machine.cluster is None,
    )
    show_replay(
        Screen(), replayed, summary, request.decider.text, replay_input.size_from, limit, has_limit=has_limit,
        assumed=assumed, runtimes=runtimes_line(request.decider.runtimes, accuracies), daemon=lines,
    )  # fmt: skip
    if output.out is not None:
        note(f"the results are in {output.out}")


def _about(request: ReplayRequest, replay_input: ReplayInput, limit: LimitOutcome | None) -> dict[str, Any]:
    """Return the origin of a summary's numbers."""
    files = [path for path in (*request.jobs.traces, request.machine.cluster, request.decider.file) if path]
    about = {
        "schema": "pilotfish/replay/v1",
        "version": __version__,
        "command": shlex.join(["pilotfish", *sys.argv[1:]]),
        "inputs": {str(path): file_hash(path) if path.is_file() else None for path in files},  # None: a pipe
        "policy": request.decider.text,
        "seed": request.decider.seed,
        "machine": replay_input.machine.processors,
        "epoch": replay_input.jobs.epoch,
        "left_out": dict(replay_input.jobs.left_out),
    }
    if request.decider.is_timed or request.decider.decision_time != 0.0:
        about["decision_time"] = "measured" if request.decider.decision_time is None else request.decider.decision_time
    if limit:
        about["limit"] = asdict(limit)
    return about
