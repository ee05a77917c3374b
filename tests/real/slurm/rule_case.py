"""A case of a rule: a few jobs on nodes of their own, made such that the rule decides who starts when, and where.

Rule: the jobs of all cases of a site are submitted while gates hold their nodes; then the gates open. The twin follows
what really happened, makes the same decisions, and makes others without the rule.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
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
#: Seconds of the fast clock that a pass may take, and until a node is free after the end of its job.
SOON_S = 6.0
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
        is_refused: sbatch does not take it.
    """

    name: str
    options: str
    runs: str
    user: str = "games"
    after: int = 0
    never_starts: bool = False
    is_refused: bool = False

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
    without: Mapping[str, Change] = field(default_factory=dict)
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
            line = line if "DefMem" in line else f"{line} DefMemPerCPU=100"
            line = line.replace("DefMem=none", "")
            line = line if line.startswith("Nodes=") else f"Nodes={nodes} {line}"
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


def of_case(site: Site, case: str) -> Site:
    """Return a site with the jobs of one case: those of others have nodes of their own."""
    return replace(site, jobs=[job for job in site.jobs if job.name.startswith(f"{case}.")])


def differences(site: Site, phases: Phases | None = None, *, has_steps: bool = True) -> list[str]:
    """Return in what the twin differs from the record: step by step, and in the order of free replays.

    Args:
        site: the site with the jobs of one case.
        phases: of the clocks in the record.
        has_steps: whether steps are compared.
    """
    record = {row: _first_run(job) for row, job in enumerate(site.jobs)}
    lines = list[str]()
    for step in history_steps(site, phases) if has_steps else ():
        real, twin = (
            {one.job: (one.by, tuple(sorted(one.nodes))) for one in starts} for starts in (step.real, step.twin)
        )
        for row in sorted(real.keys() | twin.keys()):
            job, start = site.jobs[row], record[row]
            # The pass may have begun before the submission, and be at this job only some seconds later.
            is_chance = row not in real and (
                job.submit >= step.time or (start is not None and step.time <= start <= step.time + SOON_S)
            )
            if real.get(row) != twin.get(row) and not is_chance:
                lines.append(f"{step.time:.0f}: {label(job)}: real {shown(real.get(row))}, twin {shown(twin.get(row))}")
    for seed in SEEDS:
        replayed, numbers = dict[int, float](), Counter[int]()
        for one in replay_site(site, seed).starts:
            replayed.setdefault(one.job, one.start)
            numbers[one.job] += 1
        lines += [f"seed {seed}: {line}" for line in _order(site, record, replayed)]
        for row, job in enumerate(site.jobs):
            if numbers[row] != (starts := sum(run.start is not None for run in job.runs)):
                lines.append(
                    f"seed {seed}: {label(job)} starts {starts} times in the record, {numbers[row]} times in the twin"
                )
    return lines


def _order(site: Site, real: Mapping[int, float | None], twin: Mapping[int, float]) -> Iterator[str]:
    started = sorted((start, row) for row, start in real.items() if start is not None and row in twin)
    for start, row in started:
        for other_start, other in started:
            if other_start - start >= APART_S and twin[row] > twin[other]:
                names = label(site.jobs[row]), label(site.jobs[other])
                yield f"{names[0]} starts {other_start - start:.0f} s before {names[1]} in the record, after it in the twin"


def _first_run(job: SiteJob) -> float | None:
    return min((run.start for run in job.runs if run.start is not None), default=None)


def are_apart(site: Site, name: str, other: str, seed: int | None = None) -> bool:
    """Return whether a job starts a while before another one of its case.

    Args:
        site: the site with the jobs of one case.
        name: of the job within the case.
        other: of the other one.
        seed: of a replay by the twin; None: the record.
    """
    starts = dict[str, float]()
    for one in replay_site(site, seed).starts if seed is not None else ():
        starts.setdefault(site.jobs[one.job].name.partition(".")[2], one.start)
    for job in site.jobs if seed is None else ():
        begin, key = _first_run(job), job.name.partition(".")[2]
        if begin is not None:
            starts[key] = min(begin, starts.get(key, begin))
    return starts[other] - starts[name] >= APART_S


def label(job: SiteJob) -> str:
    """Return what a job is called in messages."""
    return f"{job.name} {job.id}"


def shown(start: tuple[str, tuple[str, ...]] | None) -> str:
    """Return the pass and the nodes of a start as words."""
    return f"starts it by {start[0] or '?'} on {','.join(start[1])}" if start else "does not start it"


def jobs_changed(case: str, *names: str, **values: object) -> Change:
    """Return what sets fields of jobs of a case."""
    labels = {f"{case}.{name}" for name in names}
    return lambda site: replace(
        site,
        jobs=[replace(job, **values) if job.name in labels else job for job in site.jobs],  # type: ignore[arg-type]
    )


def both(first: Change, second: Change) -> Change:
    """Return what makes two changes."""
    return lambda site: second(first(site))


def partition_changed(name: str, **values: object) -> Change:
    """Return what sets fields of a partition."""

    def change(site: Site) -> Site:
        parts = (replace(part, **values) if part.name == name else part for part in site.partitions)  # type: ignore[arg-type]
        return replace(site, partitions=tuple(parts))

    return change


def qos_changed(name: str, **values: object) -> Change:
    """Return what sets fields of a QOS."""
    return lambda site: replace(
        site,
        qos=tuple(replace(qos, **values) if qos.name == name else qos for qos in site.qos),  # type: ignore[arg-type]
    )


def nodes_changed(**values: object) -> Change:
    """Return what sets fields of all nodes."""
    return lambda site: replace(site, nodes=tuple(replace(node, **values) for node in site.nodes))  # type: ignore[arg-type]


def changed_rules(**values: object) -> Change:
    """Return what sets rules of slurm.conf."""
    return lambda site: replace(site, rules=replace(site.rules, **values))  # type: ignore[arg-type]


def scheduler_changed(**values: object) -> Change:
    """Return what sets words of SchedulerParameters."""
    return lambda site: changed_rules(scheduler=replace(site.rules.scheduler, **values))(site)  # type: ignore[arg-type]


def priority_changed(**values: object) -> Change:
    """Return what sets weights of the priority."""
    return lambda site: changed_rules(priority=replace(site.rules.priority, **values))(site)  # type: ignore[arg-type]


def no_limits(qos: str = "", account: str = "", user: str = "") -> Change:
    """Return what takes all limits from a QOS, from an account, or from a user's association."""

    def change(site: Site) -> Site:
        associations = tuple(
            replace(one, limits=SiteLimits())
            if one.user == user and (account or one.account) == one.account and (account or user)
            else one
            for one in site.associations
        )
        return replace(qos_changed(qos, limits=SiteLimits())(site), associations=associations)

    return change


def no_reservations(site: Site) -> Site:
    """Return a site without its reservations."""
    return replace(site, reservations=(), jobs=[replace(job, reservation="") for job in site.jobs])
