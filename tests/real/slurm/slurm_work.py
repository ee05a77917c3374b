"""Work for the real Slurm: jobs as users hand them over, the trail that each run leaves, and how all of it ended.

Rule: that a job ran, when and how often is told by the job itself, not by Slurm nor by us.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from real_world import eventually
from slurm_cluster import SlurmCluster

ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a job: when it began (epoch seconds), and on which node its first shell ran."""

    job: int
    began: float
    node: str


def hand_over(slurm: SlurmCluster, line: str, *options: str, grace_s: int = 600, tags: str = "") -> int:
    """Submit a job as its user would for pilotfish: held by a begin time that says for whom."""
    return slurm.submit(line, f"--begin=now+{grace_s}", f"--comment=pilotfish:hold={grace_s}{tags}", *options)


def all_ended(slurm: SlurmCluster, jobs: Collection[int]) -> bool:
    """Whether Slurm says so of every one."""
    found = slurm.jobs()
    return all(found[job][0] in ENDED for job in jobs)


def states(slurm: SlurmCluster, jobs: Collection[int]) -> set[str]:
    """In which states they are."""
    found = slurm.jobs()
    return {found[job][0] for job in jobs}


@dataclass
class Work:
    """Jobs of one test; `submitted` is when each was handed over."""

    slurm: SlurmCluster
    trail: Path
    submitted: dict[int, float] = field(default_factory=dict)

    @classmethod
    def of(cls, slurm: SlurmCluster, name: str) -> Work:
        """With an empty trail of that name."""
        trail = slurm.shared() / name
        trail.unlink(missing_ok=True)
        return cls(slurm, trail)

    def add(self, line: str, *options: str, grace_s: int = 600, tags: str = "") -> int:
        """Hand a job over."""
        return self._noted(line, lambda marked: hand_over(self.slurm, marked, *options, grace_s=grace_s, tags=tags))

    def add_plain(self, line: str, *options: str) -> int:
        """Submit a job without a begin time."""
        return self._noted(line, lambda marked: self.slurm.submit(marked, *options))

    def _noted(self, line: str, submit: Callable[[str], int]) -> int:
        now = time.time()
        job = submit(f"echo $SLURM_JOB_ID $(date +%s.%N) $SLURMD_NODENAME >> {self.trail}; {line}")
        self.submitted[job] = now
        return job

    @property
    def jobs(self) -> list[int]:
        """In the order of submission."""
        return list(self.submitted)

    def runs(self) -> dict[int, list[Run]]:
        """The runs of each job, in order."""
        found: dict[int, list[Run]] = {job: [] for job in self.submitted}
        for line in self.trail.read_text().splitlines() if self.trail.exists() else ():
            job, began, node = line.split()
            found[int(job)].append(Run(int(job), float(began), node))
        return found

    def ended(self) -> bool:
        """Whether all have."""
        return all_ended(self.slurm, self.submitted)

    def wait(self, also: Callable[[], object] = lambda: True) -> None:
        """Until all have ended."""
        eventually(lambda: self.ended() and also(), "the end of all jobs")

    def each_ran_once(self, *, but: Collection[int] = ()) -> None:
        """Fail unless each but these completed, after exactly one run."""
        others = [job for job in self.submitted if job not in but]
        assert states(self.slurm, others) == {"COMPLETED"}
        counts = {job: len(runs) for job, runs in self.runs().items() if job not in but}
        assert set(counts.values()) == {1}, {job: count for job, count in counts.items() if count != 1}
