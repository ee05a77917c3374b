"""Cached kernels run in a process without numba: they contain everything that they call."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pilotfish.simulate.kernels.object_cache import load
from pilotfish.simulate.queue_policies.policy_specs import parse
from pilotfish.simulate.replay.engines import Feature, engine_for

pytestmark = pytest.mark.real

RUN = """
import sys
import numpy as np
from pilotfish.simulate.replay.replay import replay
from pilotfish.simulate.queue_policies.policy_specs import parse
from pilotfish.simulate.model.workload import Workload

times = np.arange(40.0)
jobs = Workload("w", np.arange(40), times // 3, times % 7, times % 5, np.arange(40) % 9 + 1)
done = replay(jobs, 9, parse(sys.argv[1]))
assert "numba" not in sys.modules
print(int(np.isfinite(done.start_time).sum()))
"""


@pytest.mark.parametrize(
    "text",
    [
        "easy",
        "easy:order=unicep",
        "strict:order=wfp3",
        "conservative",
        "conservative:allocation=contiguous",
        "easy+opportunistic+energybud:budget=70%+inertial",
        "easy+reducepc+proportional",
        "easy+powercap:cap=60%",
        "conservative+powercap:cap=60%",
    ],
)
def test_queue_kernels_run_without_numba(text: str) -> None:
    load(*engine_for(parse(text), ()).kernels)
    done = subprocess.run([sys.executable, "-c", RUN, text], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "40\n"), done.stderr


def test_the_kernel_with_dependencies_runs_without_numba() -> None:
    load(*engine_for(parse("easy"), {Feature.TAKES_TIME}).kernels)
    code = RUN.replace("parse(sys.argv[1])", 'parse("easy"), decision_time=0.5')
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "40\n"), done.stderr


NETWORKED = """
import sys
import numpy as np
from pilotfish.simulate.replay.replay import replay
from pilotfish.simulate.queue_policies.policy_specs import parse
from pilotfish.simulate.model.network import Link, Network, NetworkPlace, NetworkRoute
from pilotfish.simulate.model.programs import Even, ProgramBuilder
from pilotfish.simulate.model.workload import Workload

laying, size = ProgramBuilder(), np.arange(40) % 9 + 1
more = {"program": np.array([laying.add(Even(i, i), q) for i, q in enumerate(size.tolist())])}
times = np.arange(40.0)
jobs = Workload("w", np.arange(40), times // 3, times * np.nan, times + 1, size, more, programs=laying.programs())
network = Network(np.ones(9), np.zeros(9, np.int64), [NetworkPlace("all", 5.0)], [Link("l", 9.0)], [NetworkRoute((0,), 0.1)])
done = replay(jobs, 9, parse(sys.argv[1]), network=lambda: network)
assert "numba" not in sys.modules
print(int(np.isfinite(done.start_time).sum()))
"""


@pytest.mark.parametrize("text", ["easy", "conservative", "easy+opportunistic"])
def test_network_kernels_run_without_numba(text: str) -> None:
    load(*engine_for(parse(text), {Feature.NETWORKED}).kernels)
    done = subprocess.run([sys.executable, "-c", NETWORKED, text], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "40\n"), done.stderr


CONTENDED = """
import sys
import numpy as np
from pilotfish.simulate.queue_policies.policy_specs import parse
from pilotfish.simulate.model.cluster import Cluster, Contention, Node, NodeType, PiecewiseLinear
from pilotfish.simulate.model.machine import machine_of
from pilotfish.simulate.replay.replay import replay
from pilotfish.simulate.model.workload import Workload

times = np.arange(40.0)
jobs = Workload(
    "w", np.arange(40), times // 3, times % 7, times % 9 + 1, np.arange(40) % 4 + 1, more={"volume": times * 1e9}
)
constants = PiecewiseLinear(-1.85e-5, 10.0, 1.75, 3500.0, 45000.0, 3000.0)
kinds = (
    NodeType("p", 4, 8e9, 4e9, contention=Contention.PIECEWISE_LINEAR, piecewise=constants),
    NodeType("m", 4, 8e9, 4e9), NodeType("e", 4, 8e9, 4e9, contention=Contention.EQUAL_SHARE),
)
cluster = Cluster("c", tuple(Node(kind.name, kind) for kind in kinds))
done = replay(jobs, machine_of(cluster), parse(sys.argv[1]))
assert "numba" not in sys.modules
print(int(np.isfinite(done.start_time).sum()))
"""


@pytest.mark.parametrize("text", ["pairs", "pairs:job=random,resource=random", "nodes:rule=random"])
def test_tasks_that_contend_run_without_numba(text: str) -> None:
    load(*engine_for(parse("pairs"), ()).kernels)
    done = subprocess.run([sys.executable, "-c", CONTENDED, text], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "40\n"), done.stderr
