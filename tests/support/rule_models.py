"""Models of the kind `rule-choice` for tests, and IRMaSim's files of a cluster and of jobs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from pilotfish.formats.models.rule_model import RuleModel, inputs_of
from pilotfish.learning.agents.rule_agents import RuleAgent, RuleTraining
from pilotfish.learning.environments import irmasim
from pilotfish.simulate.world.rule_options import VOID, RuleOptions

ACTIONS = (("first", "high_core"), ("shortest", "low_power"), VOID)


def rule_model(observation: str = "minimal", seed: int = 0, actions: Any = ACTIONS, **settings: Any) -> RuleModel:
    """Return an untrained model for a machine of two nodes, of 4 and of 2 cores."""
    options = RuleOptions("energy", observation, tuple(actions), **settings)
    inputs = inputs_of(observation, 2, (4, 2))
    agent = RuleAgent(inputs, len(options.actions), RuleTraining(hidden=5), seed)
    trained = {"agent": "actor-critic", "episode": 20, "epochs": 10, "seed": 1, "part": "first-half"}
    return RuleModel(agent.layers, options, (4, 2), 2, trained, baseline="pairs:resource=low_power")


def lab_files(folder: Path, jobs: int) -> tuple[Path, Path]:
    """Write a platform of three kinds of nodes, and jobs that contend there; return both files."""
    kinds = {3.4: (6.14, 5.59), 2.5: (3.51, 3.20), 1.7: (2.31, 1.59)}
    contention = {"b": -1.85e-05, "c": 32000, "da": 1.75, "db": 3500, "dc": 45000, "dd": 3000}
    nodes = [{"type": f"n{hertz}", "number": 1} for hertz in kinds]
    platform = {
        "platform": {"lab": {"id": "lab", "clusters": [{"id": "a", "nodes": nodes, "local_links": {}}]}},
        "node": {
            f"n{hertz}": {"processors": [{"type": f"p{hertz}"}], "memory": {"type": "DDR4-2400", "capacity": 8}}
            for hertz in kinds
        },
        "processor": {
            f"p{hertz}": {
                "cores": 4, "clock_rate": hertz, "dpflops_per_cycle": 1, "uarch": "x", "pa": core, "pb": common,
                **contention,
            }
            for hertz, (core, common) in kinds.items()
        },
    }  # fmt: skip
    generator, names = np.random.default_rng(3), list(irmasim.NPB)
    submitted = generator.exponential(20.0, jobs).cumsum().tolist()
    workload = {
        "jobs": [
            {"id": f"j{number}", "subtime": time, "res": 1, "profile": names[generator.integers(len(names))]}
            for number, time in enumerate(submitted)
        ],
        "profiles": {
            name: {"req_ops": instructions, "ipc": rate, "req_time": 3000, "mem": 100, "mem_vol": volume / 1e6}
            for name, (instructions, rate, volume) in irmasim.NPB.items()
        },
    }
    files = folder / "lab.json", folder / "jobs.json"
    for file, document in zip(files, (platform, workload), strict=True):
        file.write_text(json.dumps(document))
    return files
