"""What a command line asks `simulate` for.

Rule: a wrong option is a usage error and is found here, before any file of a workload or a machine is read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from ....simulate.batch.own import is_own, parse_own
from ....simulate.batch.pairs import Contending
from ....simulate.batch.replay import LARGEST, takes_time
from ....simulate.batch.select import Select
from ....simulate.batch.spec import parse, text_of
from ....simulate.errors import ConfigError
from ....simulate.workload import LONGEST
from ...own_policy import Named, make, traced
from .. import inputs


@dataclass(frozen=True, slots=True)
class Asked:
    """A replay as it was asked for.

    Args:
        workloads: files, joined.
        chosen: the policy.
        select: which jobs, and how close together.
        procs: processors; None = those of `cluster`, or else as the workloads say.
        cluster: the machine's file.
        whole_nodes: jobs ask for its nodes, not for its cores.
        decision_time: simulated seconds that each decision takes; None: as many as it does.
    """

    workloads: tuple[Path, ...]
    chosen: Named
    select: Select
    seed: int
    procs: int | None
    cluster: Path | None
    whole_nodes: bool
    decision_time: float | None
    skip_invalid: bool


def asked(
    workloads: list[Path], policy: str, select: Select, *, seed: int, procs: int | None, cluster: Path | None,
    resource: str, decision_time: str, skip_invalid: bool,
) -> Asked:  # fmt: skip
    """Check what was given. Raises typer.BadParameter; ConfigError, PolicyError, OSError: a policy of one's own."""
    takes, chosen = _seconds(decision_time), _policy(policy, seed)
    if chosen.compiled and not takes_time(chosen.policy, takes):
        why = f"{chosen.text} (allowed: ignore; with easy and strict seconds, with ./mine.py:Class also measured)"
        raise inputs.bad("--decision-time", f"{decision_time}, with {why}")
    if procs is not None and cluster is not None:
        raise inputs.bad("--procs", "not beside --cluster")
    if procs is not None and not 1 <= procs <= LARGEST:
        raise inputs.bad("--procs", f"{procs} (allowed: 1 to {LARGEST})")
    if resource not in ("core", "node"):
        raise inputs.not_among("--resource", resource, "a kind of resource", ("core", "node"))
    if not 0.0 < select.load < math.inf:
        raise inputs.bad("--load", f"{select.load:g} (allowed: a number above 0)")
    _check_select(select)
    whole_nodes = resource == "node"
    if isinstance(chosen.policy, Contending) and (cluster is None or whole_nodes):
        raise inputs.bad("--policy", f"{policy} chooses among the cores of nodes (needed: --cluster, resource core)")
    return Asked(tuple(workloads), chosen, select, seed, procs, cluster, whole_nodes, takes, skip_invalid)


def _check_select(select: Select) -> None:
    for option, value in (("--from", select.begin), ("--until", select.end)):
        if value is not None and math.isnan(value):
            raise inputs.bad(option, f"{value:g} (allowed: seconds)")
    if select.begin is not None and select.end is not None and select.begin >= select.end:
        raise inputs.bad("--until", f"{select.end:g} (allowed: more than --from, {select.begin:g})")
    if select.least is not None and select.most is not None and select.least > select.most:
        raise inputs.bad("--max-size", f"{select.most} (allowed: --min-size, {select.least}, or more)")


def _seconds(text: str) -> float | None:
    """Simulated seconds that each call of a policy takes; None: as many as it does."""
    if text in ("ignore", "measured"):
        return 0.0 if text == "ignore" else None
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0.0 <= found <= LONGEST:
        raise inputs.bad("--decision-time", f"{text!r} (allowed: ignore, measured, or seconds from 0 to {LONGEST:g})")
    return found


def _policy(text: str, seed: int) -> Named:
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
