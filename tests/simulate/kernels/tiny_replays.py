"""Something small from each kernel, as text; run as a program, it also prints which kernels were loaded."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from pilotfish.formats.replays.swf import read_swf
from pilotfish.formats.site.site_folder import read_accounting
from pilotfish.learning.environments import irmasim
from pilotfish.learning.environments.orders import OrderEnvironment, OrderOptions
from pilotfish.learning.environments.pairs import PairEnvironment, PairNode, PairOptions
from pilotfish.learning.environments.rule_choice import RuleChoiceEnvironment
from pilotfish.simulate.kernels import object_cache
from pilotfish.simulate.kernels.object_cache import KERNELS
from pilotfish.simulate.learned.pair_network import KERNEL, PairNetwork
from pilotfish.simulate.model.workload import Dependencies
from pilotfish.simulate.replay.node_classes import node_classes
from pilotfish.simulate.slurm.twin import replay_site
from tests.cli.replay.test_what_goes_together import MINE, WORLDS, replayed
from tests.simulate.slurm import small_sites

#: SPEC, and the title of a world.
CELLS = (
    ("easy", "processors"), ("easy:order=wfp3", "dependencies"), ("easy", "predicted run times"),
    ("conservative:allocation=contiguous", "dependencies"), ("easy+energybud:budget=70%", "processors"),
    ("easy+inertial", "dependencies"), ("easy", "network, decisions take time"),
    ("conservative", "network, dependencies"), ("easy+opportunistic", "network"), ("./mine.py:Mine", "network"), ("./mine.py:Mine", "dependencies"),
    ("pairs", "shared nodes"), ("pairs", "shared nodes, decisions take time"), ("mom", "shared nodes, dependencies"),
    ("easy:share=1.1", "shared nodes"), ("let", "shared nodes, network"),
)  # fmt: skip
TRACE = "; a comment\n1 0 -1 70 4 -1 -1 4 90 -1 1 3 -1 -1 -1 -1 -1 -1\n2 12.5 3 250 2 -1 -1 2 255 -1 1 3 -1 -1 -1 -1 -1 -1\n"


def results() -> list[str]:
    """Return the schedules, and what else kernels compute, to the last bit."""
    worlds = {world.title: world for world in WORLDS}
    found = list[str]()
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "mine.py").write_text(MINE)
        (folder / "lab.yaml").write_text("schema: pilotfish/cluster/v1\n")
        (folder / "tiny.swf").write_text(TRACE)
        for policy, world in CELLS:
            done, _ = replayed(policy, worlds[world], folder)
            found.append(
                f"{policy}, {world}: {done.start_time.tolist()} {done.finish_time.tolist()} {done.pieces.tolist()}"
            )
        jobs = read_swf(folder / "tiny.swf")
        (folder / "sacct.psv").write_text("JobID|Submit|Start|End\n7|1970-01-01T00:00:09|Unknown|None\n")
        records, _ = read_accounting(folder / "sacct.psv")
    found.append(f"trace: {jobs.submit_time.tolist()} {jobs.run_time.tolist()} {jobs.size.tolist()}")
    found.append(f"accounting: {[(job.id, job.submit) for job in records]}")
    two, one = frozenset("ab"), frozenset("b")
    times = np.array([3.0, 5.0, 8.0, 2.0])
    classes = node_classes({"a": 2, "b": 1}, [(one, 1)], [two, one, two])
    links = Dependencies(np.array([0]), np.array([3]))
    found.append(f"classes of nodes: {classes.start_times([1, 3, 1, 2], np.zeros(4), times, times, links).tolist()}")
    pairs = PairEnvironment([jobs], [PairNode(2, 1.0), PairNode(4, 2.0)], PairOptions(episode=2))
    pairs.step([1])
    found.append(f"pairs: {pairs.jobs[0, :2].tolist()} {pairs.nodes.tolist()} {pairs.reward.tolist()}")
    layers = (((0.5,) * 4,) * 7, (0.25,) * 4), (((1.0,),) * 4, (0.0,))
    object_cache.load(KERNEL)
    scores = PairNetwork(layers).scores(np.arange(7.0 * 65).reshape(65, 7))
    found.append(f"scores: {scores[[0, 64]].tolist()}")
    choices = RuleChoiceEnvironment([irmasim.spread()[0]], irmasim.spread()[1])
    choices.step([3])
    found.append(f"choices: {choices.state[0, -21:].tolist()} {choices.reward.tolist()}")
    orders = OrderEnvironment([jobs], 4, OrderOptions(episode=2))
    orders.step([0])
    found.append(f"orders: {orders.jobs[0, :2].tolist()} {orders.machine.tolist()} {orders.reward.tolist()}")
    starts = replay_site(small_sites.site([small_sites.job(id=str(i), tasks=9 + i) for i in range(8)])).starts
    found.append(f"Slurm's rules: {[(start.job, start.start, start.nodes, start.by) for start in starts]}")
    return found


if __name__ == "__main__":
    print("\n".join(results()))
    print(sorted(KERNELS.keys() - object_cache._loaded.keys()), "were not loaded")
