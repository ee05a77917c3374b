"""A case of a rule: a few jobs on nodes of their own, made such that the rule decides who starts when, and where.

Rule: the jobs of all cases of a site are submitted while gates hold their nodes; then the gates open. The twin follows
what really happened, makes the same decisions, and makes others without the rule.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pilotfish.simulate.slurm.site import Site, SiteJob, SiteLimits
from pilotfish.simulate.slurm.site_tables import Phases
from pilotfish.simulate.slurm.twin import history_steps, replay_site

#: A site in which a rule does not hold.
Change = Callable[[Site], Site]
CORES = "CPUs=4 RealMemory=4000"
#: Seconds between two starts from which on their order is not by chance: a pass of each kind, and its delay.
APART_S = 35.0
SEEDS = (1, 2, 3)


@dataclass(frozen=True)
class Submission:
    """A job of a case: its name, options of sbatch, and what it runs.

    Args:
        name: within the case; others refer to its id as `$name` in their options.
        options: of sbatch; `{n1}` is the first node of the case. Without `-p` it goes to the partition of the case.
        runs: how long it sleeps, seconds, or a shell line. With a `+` it is a gate: it begins to sleep when the gates open.
        user: who submits it.
        after: seconds after the gates open at which it is submitted; 0: before.
        never_starts: it waits until the end.
    """

    name: str
    options: str
    runs: str
    user: str = "games"
    after: int = 0
    never_starts: bool = False

    @property
    def is_gate(self) -> bool:
        """Whether it waits until the gates open."""
        return self.runs.startswith("+")


@dataclass(frozen=True)
class Case:
    """Jobs in partitions of their own, and what is another outcome.

    Args:
        name: of the case, and of its partition.
        jobs: its jobs in the order of submission.
        without: what is taken away -> the site without it; each changes what the twin decides.
        nodes: shape of each of its nodes.
        partitions: what its partitions have in slurm.conf besides name and nodes; `""` is named as the case, others with
            `_SUFFIX` behind it.
        accounts: commands of sacctmgr.
        commands: (seconds after the gates open, or 0 for before; arguments of scontrol).
    """

    name: str
    jobs: Sequence[Submission]
    without: Mapping[str, Change]
    nodes: Sequence[str] = (CORES,)
    partitions: Mapping[str, str] = field(default_factory=lambda: {"": ""})
    accounts: Sequence[str] = ()
    commands: Sequence[tuple[int, str]] = ()

    def words(self, first: int) -> dict[str, str]:
        """Return what options of its jobs refer to; `first` is the number of its first node."""
        return {f"n{number}": f"n{first + number - 1}" for number in range(1, len(self.nodes) + 1)}

    def conf(self, first: int) -> Iterator[str]:
        """Yield the lines of its partitions."""
        nodes = ",".join(self.words(first).values())
        for suffix, attributes in self.partitions.items():
            line = attributes.format(**self.words(first))
            line = line if "Nodes=" in line else f"Nodes={nodes} {line}"
            yield f"PartitionName={self.partition(suffix)} {line}".strip()

    def partition(self, suffix: str = "") -> str:
        """Return the name of one of its partitions."""
        return f"{self.name}_{suffix}" if suffix else self.name

    def command(self, job: Submission, variable: str, first: int, gate: Path) -> str:
        """Return the shell line that submits a job and keeps its id in a variable; "" if Slurm refuses it."""
        options = re.sub(r"\$(\w+)", rf"${{{self.name}__\1}}", job.options.format(**self.words(first)))
        if not {"-p", "--partition"} & {word.partition("=")[0] for word in options.split()}:
            options = f"-p {self.name} {options}"
        sleep = job.runs.lstrip("+")
        line = f"sleep {sleep}" if sleep.isdigit() else sleep
        line = f"read _ <{gate}; {line}" if job.is_gate else line
        words = f"--uid={job.user} -J {self.name}.{job.name} -o /dev/null -D /tmp {options}"
        return f"{variable}=$(sbatch --parsable {words} --wrap={shlex.quote(line)})"


Start = tuple[float, str, tuple[str, ...]]  # when, which pass, nodes


def decisions(
    site: Site, case: str, phases: Phases | None = None
) -> Iterator[tuple[float, dict[str, Start], dict[str, Start]]]:
    """Yield (time, real starts, the twin's starts in the same second) of the jobs of a case."""
    for step in history_steps(site, phases):
        real, twin = (
            {
                label(site.jobs[one.job]): (step.time, one.by, one.nodes)
                for one in starts
                if belongs(site.jobs[one.job], case)
            }
            for starts in (step.real, step.twin)
        )
        if real or twin:
            yield step.time, real, twin


def differences(site: Site, case: str, phases: Phases | None = None) -> list[str]:
    """Return in what the twin differs from the record of a case: step by step, and in the order of free replays.

    Args:
        site: what the twin gets.
        case: name of the case.
        phases: of the clocks in the record.
    """
    lines = list[str]()
    for time, real, twin in decisions(site, case, phases):
        for name in sorted(real.keys() | twin.keys()):
            if real.get(name) != twin.get(name):
                lines.append(f"{time:.0f}: {name}: real {shown(real.get(name))}, twin {shown(twin.get(name))}")
    record = {label(job): _first_run(job) for job in site.jobs if belongs(job, case)}
    for seed in SEEDS:
        lines += [f"seed {seed}: {line}" for line in _order(record, _free(site, case, seed))]
    return lines


def _order(real: Mapping[str, float | None], twin: Mapping[str, float | None]) -> Iterator[str]:
    for name, start in real.items():
        if (start is None) != (twin.get(name) is None):
            yield f"{name}: {'never starts' if start is None else 'starts'} in the record only"
    started = [(start, name) for name, start in real.items() if start is not None and twin.get(name) is not None]
    for start, name in started:
        for other_start, other in started:
            if other_start - start >= APART_S and (twin[name] or 0.0) > (twin[other] or 0.0):
                yield f"{name} starts {other_start - start:.0f} s before {other} in the record, after it in the twin"


def _first_run(job: SiteJob) -> float | None:
    return min((run.start for run in job.runs if run.start is not None), default=None)


def _free(site: Site, case: str, seed: int) -> dict[str, float | None]:
    starts = dict[str, float | None]()
    for one in replay_site(site, seed).starts:
        if belongs(job := site.jobs[one.job], case):
            starts.setdefault(label(job), one.start)
    return starts


def belongs(job: SiteJob, case: str) -> bool:
    """Whether a job is one of a case."""
    return job.name.startswith(f"{case}.")


def label(job: SiteJob) -> str:
    """Return what a job is called in messages."""
    return job.name if job.task < 0 else f"{job.name}_{job.task}"


def shown(start: Start | None) -> str:
    """Return a start as words."""
    return f"starts it by {start[1] or '?'} on {','.join(start[2])}" if start else "does not start it"


def jobs_changed(case: str, *names: str, **values: object) -> Change:
    """Return what changes jobs of a case."""
    labels = {f"{case}.{name}" for name in names}

    def change(site: Site) -> Site:
        jobs = [replace(job, **values) if job.name in labels else job for job in site.jobs]  # type: ignore[arg-type]
        return replace(site, jobs=jobs)

    return change


def qos_unlimited(*names: str) -> Change:
    """Return what takes all limits from QOS."""
    return lambda site: replace(
        site, qos=tuple(replace(qos, limits=SiteLimits()) if qos.name in names else qos for qos in site.qos)
    )


def scheduler(**values: object) -> Change:
    """Return what sets words of SchedulerParameters."""
    return lambda site: replace(
        site,
        rules=replace(site.rules, scheduler=replace(site.rules.scheduler, **values)),  # type: ignore[arg-type]
    )


def priority(**values: object) -> Change:
    """Return what sets weights of the priority."""
    return lambda site: replace(
        site,
        rules=replace(site.rules, priority=replace(site.rules.priority, **values)),  # type: ignore[arg-type]
    )


def partition(name: str, **values: object) -> Change:
    """Return what changes a partition."""
    return lambda site: replace(
        site,
        partitions=tuple(replace(one, **values) if one.name == name else one for one in site.partitions),  # type: ignore[arg-type]
    )
