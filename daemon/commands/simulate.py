"""`pilotfish simulate`: a trace replayed under a queue policy, as fast as the machine can."""

from __future__ import annotations

from . import inputs
from .replay import options


def simulate(
    workload: options.Workloads,
    procs: options.Procs = None,
    cluster: options.Cluster = None,
    resource: options.Resource = "core",
    policy: options.Policy = "easy",
    decision_time: options.DecisionTime = "ignore",
    out: options.Out = None,
    seed: inputs.Seed = 0,
    begin: options.Begin = None,
    end: options.End = None,
    user: options.Users = None,
    least: options.Least = None,
    most: options.Most = None,
    load: options.Load = 1.0,
    skip_invalid: options.SkipInvalid = False,
    as_json: options.AsJson = False,
) -> None:
    """Replay a trace of rigid jobs under a queue policy, and print what it would have been like.

    Exact: at each instant all ends, then all submissions, then one pass; lowest-numbered processors first.

    \b
    Examples:
      pilotfish simulate -w trace.swf.gz
      pilotfish simulate -w trace.swf --procs 1024 -p easy:order=sjf --out run
    """
    from ...simulate.batch.select import Select
    from .replay.asked import asked
    from .replay.reading import read
    from .replay.replaying import drawn, replay_scene
    from .replay.reporting import report

    wanted = asked(
        workload, policy, Select(begin, end, tuple(user or ()), least, most, load), seed=seed, procs=procs,
        cluster=cluster, resource=resource, decision_time=decision_time, skip_invalid=skip_invalid,
    )  # fmt: skip
    scene = read(wanted)
    replayed = replay_scene(wanted, scene)
    report(wanted, scene, replayed, drawn(wanted, scene, replayed), out, as_json=as_json)


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
