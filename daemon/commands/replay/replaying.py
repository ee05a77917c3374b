"""The replay that was asked for, and what the machine drew meanwhile.

Rule: policies whose tasks contend are given the nodes, all others resources that are alike.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from ....simulate.batch import energy
from ....simulate.batch.contended import Contended, replay_contended
from ....simulate.batch.contended_track import contended_track
from ....simulate.batch.energy import Array, Limited, Track
from ....simulate.batch.pairs import Contending
from ....simulate.batch.replay import Replayed, replay
from ...own_policy import traced
from ...render.replay import Progress
from .asked import Asked
from .reading import Scene


@dataclass(frozen=True, slots=True)
class Drawn:
    """What the machine drew, what each job took, and what became of a limit, where that is known."""

    track: Track | None = None
    joules: Array | None = None
    limit: Limited | None = None


def replay_scene(asked: Asked, scene: Scene) -> Replayed:
    """What becomes of the jobs; how far it has come is shown. Raises ConfigError, PolicyError."""
    jobs, machine, policy = scene.jobs, scene.machine, asked.chosen.policy
    with traced(), Progress(jobs) as progress:
        if isinstance(policy, Contending):
            assert scene.cluster is not None
            return replay_contended(
                jobs, scene.cluster, policy, seed=asked.seed, progress=progress.at, clock=time.perf_counter
            )
        return replay(
            jobs, machine.processors, policy, seed=asked.seed, groups=machine.groups, powers=machine.powers,
            network=machine.network, decision_time=asked.decision_time, progress=progress.at, clock=time.perf_counter,
        )  # fmt: skip


def drawn(asked: Asked, scene: Scene, replayed: Replayed) -> Drawn:
    """See above. O(changes log changes)."""
    if isinstance(replayed, Contended):
        found = contended_track(replayed)
        return Drawn(found, None if found is None else replayed.jobs_joules)
    if (powers := scene.machine.powers) is None:
        return Drawn()
    found = energy.track(replayed, powers)
    limit = energy.limited(replayed, asked.chosen.policy, powers, found)
    return Drawn(found, energy.jobs_joules(replayed, powers), limit)
