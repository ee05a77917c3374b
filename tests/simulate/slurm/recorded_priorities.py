"""Follow a recorded run of a real Slurm, and compare its usage, shares and priorities with those of the kernels.

Rule: jobs are submitted, start and end as sacct says; only the thread that books usage runs by its own clock.
"""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pilotfish.formats.site.site_folder import read_site
from pilotfish.simulate.kernels.interpreted import Tables
from pilotfish.simulate.kernels.slurm import fair_shares, priority
from pilotfish.simulate.kernels.slurm.tables import FAIR_TREE, GONE, HELD, PENDING, RUNNING, Slurm
from pilotfish.simulate.slurm.site import JobRecord, SiteJob
from pilotfish.simulate.slurm.site_tables import Phases, completed, site_block
from tests.support.slurm_recordings import Run

#: Order of what happens in one second.
END, SUBMIT, RUN, START, SAMPLE = range(5)


class Followed:
    """A recorded run that is followed; `hits`: how often a kind of number was right, `total`: how often it was there."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.site = completed(read_site(run.folder.parent, run.folder / "sacct.psv.gz"))
        self.first = int(run.first_calculation)
        self.period = int(self.site.rules.priority.period_s)
        self.block: Any = site_block(self.site, Phases(0.0, 0.0, 0.0, 0, 0.0))
        self.world: Any = Tables(Slurm, self.block.address)
        self.nodes = {node.name: row for row, node in enumerate(self.site.nodes)}
        self.parts = {part.name: row for row, part in enumerate(self.site.partitions)}
        self.hits, self.total = Counter[str](), Counter[str]()
        self.waiting: dict[int, JobRecord] = {}
        self.ids = dict[str, int]()
        self.submitted: dict[int, list[int]] = {}
        self.arrays: dict[str, float] = {}  # since when the tasks of an array are eligible
        for job in self.site.jobs:
            if job.array and job.runs and job.runs[0].eligible is not None:
                self.arrays[job.array] = min(self.arrays.get(job.array, job.runs[0].eligible), job.runs[0].eligible)

    def share(self, kind: str) -> float:
        """Return the share of numbers of a kind that were right."""
        return self.hits[kind] / max(self.total[kind], 1)

    def follow(self) -> None:
        """Follow the run to its end."""
        for time, kind, subject in sorted(self._events(), key=lambda event: event[:2]):
            if kind == RUN:
                self._run(time)
            elif kind == SAMPLE:
                self._compare_sample(time, subject)
            elif kind == SUBMIT:
                row, record = subject
                self._submit(row, record, time)
            elif kind == START:
                row, record = subject
                self._start(row, record, time)
            else:
                priority.book_end(self.world, subject[0], time)
                self.world.jobs[subject[0]].state = GONE

    def _events(self) -> Iterator[tuple[int, int, Any]]:
        last = 0
        for row, job in enumerate(self.site.jobs):
            submit = job.submit
            for record in job.runs:
                yield int(submit), SUBMIT, (row, record)
                if record.start is not None and record.end is not None:
                    yield int(record.start), START, (row, record)
                    yield int(record.end), END, (row,)
                    submit, last = record.end + 1, max(last, int(record.end))
        for number in range(1 + (last - self.first) // self.period):
            yield self.first + number * self.period, RUN, None
        for seconds, tables in samples(self.run.folder):
            yield int(self.run.t0) + seconds, SAMPLE, tables

    def _priorities(self, row: int) -> list[int]:
        job = self.world.jobs[row]
        return [int(value) for value in self.block.part_priority[job.part0 : job.part0 + job.parts]]

    def _note(self, kind: str, is_right: bool) -> None:
        self.total[kind] += 1
        self.hits[kind] += is_right

    def _submit(self, row: int, record: JobRecord, time: int) -> None:
        job = self.world.jobs[row]
        job.state = HELD if job.state == HELD else PENDING
        job.accrue, job.submit = 0, time
        if record == self.site.jobs[row].runs[0]:
            priority.set_priority(self.world, row, time)
        else:
            priority.list_job(self.world, row)
        self.waiting[row], self.ids[self.site.jobs[row].id] = record, row
        self.submitted[row] = self._priorities(row)

    def _run(self, time: int) -> None:
        for row, record in self.waiting.items():
            job, eligible = self.world.jobs[row], self._eligible(self.site.jobs[row], record)
            if eligible is None or eligible > time:
                continue
            job.state, job.accrue = PENDING, int(eligible)
            if job.exclusive and eligible + 3 <= time:  # a pass has tested it
                job.counted_cpus = job.min_nodes * self.site.nodes[0].cpus
        if self.world.count.last_period == 0:
            priority.start_priorities(self.world, time)
        else:
            priority.calculate_priorities(self.world, time)

    def _eligible(self, job: SiteJob, record: JobRecord) -> float | None:
        return self.arrays.get(job.array, record.eligible)

    def _start(self, row: int, record: JobRecord, time: int) -> None:
        job, world = self.world.jobs[row], self.world
        if job.state == HELD:  # it was released, and started before the next run
            job.state = PENDING
            priority.set_priority(world, row, time)
        values = [*self._priorities(row), *self.submitted[row]]
        self._note("priority of sacct", any(abs(value - (record.priority or 0)) <= 2 for value in values))
        del self.waiting[row]
        job.state, job.start, job.part = RUNNING, time, self.parts[record.partition]
        job.piece0, job.pieces = world.count.pieces, len(record.nodes)
        cpus, more = divmod(record.cpus, len(record.nodes))
        for number, node in enumerate(record.nodes):
            piece = world.pieces[world.count.pieces]
            piece.node, piece.cpus = self.nodes[node], cpus + (number < more)
            piece.memory = job.memory * (piece.cpus if job.memory_per_cpu else 1)
            world.count.pieces += 1
        job.billing = priority.billing_of(world, row)

    def _compare_sample(self, time: int, tables: dict[str, list[list[str]]]) -> None:
        if (time - self.first + 4) % self.period < 8:
            return  # the thread ran at about this time: before or after
        rows = {(row.account, row.user): number for number, row in enumerate(self.site.associations)}
        is_fair_tree = self.block.rules["priority_flags"] & FAIR_TREE
        for account, user, _, _, usage, _, _, factor, level in tables["sshare"]:
            row = rows[account.strip(), user]
            association = self.world.associations[row]
            self._note("usage", abs(association.usage - float(usage)) <= max(2.0, 0.001 * float(usage)))
            if user:
                share = fair_shares.fair_share_factor(self.world, row)
                self._note("factor", abs(share - float(factor)) <= (1e-6 if is_fair_tree else 1e-3))
            if is_fair_tree and account != "root":
                self._note(
                    "level", association.level == float(level) or abs(association.level / float(level) - 1) <= 2e-3
                )
        for job, value, age, _, fair_share, size, _, qos, _ in tables["sprio"]:
            if self.ids.get(job) not in self.waiting:
                continue
            row = self.ids[job]
            self._note("age", abs(priority._age_points(self.world, row, self.world.count.last_period) - int(age)) <= 1)
            self._note("shares", abs(priority._share_points(self.world, row) - int(fair_share) - int(qos)) <= 1)
            if not self.world.jobs[row].exclusive:
                self._note("size", abs(priority._size_points(self.world, row) - int(size)) <= 1)
                self._note("priority", any(abs(points - int(value)) <= 2 for points in self._priorities(row)))


def samples(folder: Path) -> Iterator[tuple[int, dict[str, list[list[str]]]]]:
    """Yield the seconds after t0 and the rows of the tables of each sample."""
    with gzip.open(folder / "samples.txt.gz", "rt") as lines:
        parts = re.split(r"^# t=([\d.]+)\n", lines.read(), flags=re.MULTILINE)
    for seconds, text in zip(parts[1::2], parts[2::2], strict=True):
        tables: dict[str, list[list[str]]] = {"sshare": [], "sprio": []}
        for table in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
            title, *rows = table.rstrip("\n").split("\n")
            name = title.split()[0]
            if name in tables:
                tables[name] = [row.split("|") for row in rows if not row.startswith("Account|")]
        yield int(float(seconds)), tables
