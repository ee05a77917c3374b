"""Trainings of networks where the files cannot be seen: from the jobs that were sent, to the bit the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pilotfish.api import lublin
from pilotfish.cli.learning.pair_tasks import PairInput, TrainingTask, training_task
from pilotfish.cli.learning.rule_tasks import RuleInput, RuleTrainingTask, rule_training_task
from pilotfish.formats.replays.machines import read_machine
from pilotfish.learning.agents.pair_training import TrainingOptions
from pilotfish.learning.agents.rule_agents import RuleTraining
from pilotfish.learning.environments.pairs import PairNode
from pilotfish.simulate.world.rule_options import VOID, RuleOptions
from tests.support.rule_models import lab_files


def test_pairs_are_learned_from_jobs_that_were_sent(tmp_path: Path) -> None:
    jobs, path = lublin(400, 16, seed=1), tmp_path / "a.swf"
    rows = zip(jobs.submit_time, jobs.run_time, jobs.size, jobs.walltime, strict=True)
    path.write_text(
        "".join(
            f"{number} {submit:.0f} -1 {run:.0f} {size} -1 -1 {size} {wall:.0f}" + " -1" * 9 + "\n"
            for number, (submit, run, size, wall) in enumerate(rows, 1)
        )
    )
    source = PairInput.of(path, (PairNode(16, 1e9), PairNode(16, 2e9)))
    task = TrainingTask(source, "bsld", TrainingOptions(epochs=1), seed=3, until=1)
    near, sent = training_task(task), source.portable()
    path.unlink()
    assert training_task(replace(task, source=replace(source, path="elsewhere")), sent) == near


def test_rules_are_learned_from_jobs_that_were_sent(tmp_path: Path) -> None:
    cluster, path = lab_files(tmp_path, 120)
    source = RuleInput.of(path, read_machine(cluster))
    choices = RuleOptions("energy", "minimal", (("first", "high_gflops"), ("shortest", "low_power"), VOID))
    task = RuleTrainingTask(source, choices, 12, RuleTraining(4, paired=True), seed=3, until=4)
    near, sent = rule_training_task(task), source.portable()
    path.unlink()
    assert rule_training_task(replace(task, source=replace(source, path="elsewhere")), sent) == near
