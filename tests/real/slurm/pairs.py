"""Whether a dry run and a live daemon decide the same on the same answers of a real Slurm.

Rule: both read the same answers: what the dry run was told is told to the live daemon again, until it writes for the
first time. From then on Slurm itself answers, because a job that is held back for nodes is read again. A preview of the
same configuration (`pilotfish plan --config`) is told the same, too.

    python tests/real/slurm/pairs.py --pairs 100 --seed 7
"""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(folder) for folder in (HERE, HERE.parent, HERE.parents[1]) if str(folder) not in sys.path]

import guardian
from slurm_cluster import SlurmCluster

from pilotfish.adapters.slurm.adapter import SlurmAdapter
from pilotfish.adapters.slurm.handed_over.ownership import SlurmSelection
from pilotfish.adapters.slurm.transport.command_transport import CommandTransport
from pilotfish.adapters.slurm.transport.runner import CommandRunner
from pilotfish.daemon.apply import Live, Recording
from pilotfish.daemon.assembly import assemble, decided_by
from pilotfish.daemon.config import DaemonConfig
from pilotfish.daemon.learning.profile_learning import LearnedProfiles
from pilotfish.daemon.one_off import preview_queue
from pilotfish.daemon.report.metrics import Metrics
from pilotfish.daemon.state.applied import describe
from pilotfish.daemon.state.journal import Journal
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType

NODES, CPUS = 4, 4
#: What ends each row of a table, another one in each process.
MARK = re.compile("@[0-9a-f]{16}@")
KINDS = ("held", "held", "held", "free", "wide", "foreign")
#: Each action in words, with its nodes.
Decided = frozenset[str]


class Answers:
    """Answers of Slurm's commands: the first to each command is kept, and given again until something is written."""

    def __init__(self, run: Callable[[Sequence[str]], str]) -> None:
        self._run, self._kept = run, dict[tuple[str, ...], str]()
        self.written = 0

    def __call__(self, argv: Sequence[str]) -> str:
        """Return the output of a command."""
        self.written += argv[:2] == ["scontrol", "update"]
        if self.written:
            return self._run(argv)
        mark, asked = MARK.search(" ".join(argv)), tuple(MARK.sub("@", word) for word in argv)
        if asked not in self._kept:
            self._kept[asked] = MARK.sub("@@", self._run(argv))
        return self._kept[asked].replace("@@", mark[0]) if mark else self._kept[asked]


@dataclass(frozen=True, slots=True)
class Pair:
    """The decisions of a dry run, of a live daemon and of a preview on the same queue."""

    dry: Decided
    live: Decided
    preview: Decided
    refused: tuple[str, ...]  #: what Slurm, or the adapter, refused to the live daemon
    written_dry: int  #: commands of the dry run and of the preview that would have changed something

    @property
    def equal(self) -> bool:
        """True if all three decided the same, and only the live daemon wrote."""
        return self.dry == self.live == self.preview and not self.written_dry


def fill(slurm: SlurmCluster, draw: random.Random) -> None:
    """Let users submit jobs: some run, some wait, some are handed over."""
    users = ("games", "news")
    for number in range(draw.randint(4, 14)):
        kind, walltime = draw.choice(KINDS), draw.randint(1, 9)
        options = [f"--cpus-per-task={draw.randint(1, CPUS)}", f"--time={walltime}", f"--job-name=j{number % 4}"]
        options += ["--nodes=2"] * (kind == "wide")
        if kind in ("held", "wide"):
            options += ["--begin=now+600", "--comment=pilotfish:hold=600"]
        elif kind == "free":
            options += ["--comment=pilotfish", "--exclude=n1"] if draw.random() < 0.5 else ["--comment=pilotfish"]
        slurm.submit(f"sleep {draw.randint(20, 60)}", *options, user=draw.choice(users))


def pair(slurm: SlurmCluster, folder: Path, draw: random.Random) -> Pair:
    """Fill the queue, and return what a dry run, a live daemon and a preview decide about it."""
    fill(slurm, draw)
    time.sleep(draw.uniform(0.2, 2.0))
    config = DaemonConfig(
        cluster=str(folder / "cluster.yaml"), policy=draw.choice(("lookahead", "lookahead", "let", "easy:order=sjf")),
        without_gain=draw.choice(("release", "place")), time_limit=None, budget=300,
    )  # fmt: skip
    cluster = Cluster("pilot", tuple(Node(f"n{k + 1}", NodeType("t", CPUS, 2.0**32, 1e10)) for k in range(NODES)))
    answers = Answers(CommandRunner())

    def adapter(name: str) -> SlurmAdapter:
        made = SlurmAdapter(cluster, CommandTransport(answers), SlurmSelection())
        made.keep_state(folder / name, read_only=name != "live")
        return made

    def decide(name: str, *, live: bool) -> tuple[Decided, tuple[str, ...]]:
        manager, journal = adapter(name), Journal(folder / "none", in_memory=True)
        journal.keep_handed_over("slurm", time.time())
        applier = Live(manager) if live else Recording(lambda line: None)
        profiles = LearnedProfiles(folder / f"{name}.sqlite")
        deciding = decided_by(config, journal)
        with closing(journal):
            cycle = assemble(manager, applier, journal, Metrics(), deciding, time.monotonic, profiles=profiles)
            report = cycle.run()
        errors = tuple(str(each.error) for each in report.applied if each.error)
        return frozenset(describe(each.action) for each in report.applied), errors

    dry, _ = decide("dry", live=False)
    journal = Journal(folder / "none", in_memory=True)
    options = decided_by(config, journal).options
    seen = preview_queue(adapter("preview"), options, folder / "preview.sqlite", (config, journal))
    before = answers.written
    live, refused = decide("live", live=True)
    return Pair(dry, live, frozenset(seen.actions), refused, before)


def main() -> int:
    """Compare pairs on a Slurm of its own; 1 if one was not equal."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    guardian.start()
    different, starts, releases, refused = 0, 0, 0, 0
    with tempfile.TemporaryDirectory(dir=guardian.folder(), ignore_cleanup_errors=True) as name:
        slurm = SlurmCluster(Path(name) / "slurm", nodes=NODES, cpus=CPUS)
        os.environ |= slurm.environment
        try:
            slurm.up()
            for number in range(given.pairs):
                (folder := Path(name) / f"pair-{number}").mkdir()
                found = pair(slurm, folder, random.Random(f"{given.seed} {number}"))
                slurm.clear()
                starts += sum(line.startswith("start") for line in found.live)
                releases += sum(line.startswith("release") for line in found.live)
                refused += len(found.refused)
                if not found.equal:
                    different += 1
                    print(f"pair {number}: dry run {sorted(found.dry)}, live {sorted(found.live)}, "
                          f"preview {sorted(found.preview)}, {found.written_dry} written before", flush=True)  # fmt: skip
        finally:
            slurm.down()
    print(
        f"{given.pairs} pairs, {given.pairs - different} equal; {starts} placements, {releases} releases, {refused} refused"
    )
    return bool(different)


if __name__ == "__main__":
    sys.exit(main())
