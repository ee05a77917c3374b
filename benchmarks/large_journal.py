"""A journal of years: 2,000,000 jobs of a resource manager that have ended, and what it costs to open, copy and keep.

A site of 5,500 jobs a day has as many after a year, if it keeps them so long (`keep_days`, 30 by default). The first
column is seconds on the wall, with what waits for the disk.
"""

from __future__ import annotations

import json
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from pilotfish.daemon.config import load_config
from pilotfish.daemon.state import backup, journal_db, restore
from pilotfish.daemon.state.journal import Journal

from .show import heading, table
from .show import number as shown

JOBS, QUICK_JOBS = 2_000_000, 20_000
CONFIG = (
    "schema: pilotfish/daemon/v1\ncluster: {folder}/cluster.yaml\nstate_dir: {folder}/state\nadapter: {{name: slurm}}\n"
)
#: What a start reads of a journal, as `assemble` does; in a process of its own, whose peak memory counts.
START = """
import resource, sys, time
from pathlib import Path
from pilotfish.daemon.assembly import QUEUED_JOBS, READ_JOBS
from pilotfish.daemon.state.journal import Journal
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
begin, cpu = time.monotonic(), time.process_time()
journal = Journal(Path(sys.argv[1]))
jobs = journal.forecasts(READ_JOBS)
journal.load(); journal.queued(QUEUED_JOBS); journal.last_mode()
assert len(jobs) >= min(READ_JOBS, int(sys.argv[2])) and jobs[0].profile
assert not journal.damage.number(), journal.damage.number()
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(time.monotonic() - begin, time.process_time() - cpu, (after - before) / 1024, after / 1024)
"""


def fill(path: Path, jobs: int) -> None:
    """Write a journal of jobs that were handed over, each with its place, its story of three lines, and its wait."""
    with closing(Journal(path)) as journal:
        journal.keep_handed_over("slurm", 1.7e9)
        run = journal._db.execute
        run("PRAGMA synchronous=OFF")
        run("BEGIN IMMEDIATE")
        insert_all = journal._db.executemany
        for table_name, columns, rows in (
            ("jobs", _JOBS, _jobs),
            ("queued", _QUEUED, _queued),
            ("story", _STORY, _story),
        ):
            marks = ", ".join("?" * len(columns.split(",")))
            insert_all(f"INSERT INTO {table_name} ({columns}) VALUES ({marks})", rows(jobs))
        run("COMMIT")
        run("PRAGMA wal_checkpoint(TRUNCATE)")


_JOBS = (
    "workflow, job, position, state, nodes, start_time, finish_time, exit_code, forecast_start, forecast_finish,"
    " isolated_run_time, contention_slowdown, owner, about, reason, handed, cancel_wanted, attempts, not_before"
)
_QUEUED = (
    "key, name, owner, account, queue, size, walltime, submit_time, said_time, said_start, start_time, finish_time,"
    " learned, said_guessed"
)
_STORY = "key, time, cycle, kind, text, data"


def _jobs(jobs: int) -> Iterator[tuple[object, ...]]:
    for number in range(jobs):
        start = 1.7e9 + number * 15.8
        about = f'{{"traits": {{"name": "job-{number % 5000}", "account": "a{number % 50}", "queue": "normal"}}}}'
        yield ("slurm", str(number), number, "completed", f'["n{number % 1000}"]', start, start + 3600.0, 0, start,
               start + 3500.0, 3400.0, 1.03, 1000 + number % 300, about, "", 1, 0, 1, 0.0)  # fmt: skip


def _queued(jobs: int) -> Iterator[tuple[object, ...]]:
    for number in range(jobs):
        start = 1.7e9 + number * 15.8
        yield (f"slurm/{number}", f"job-{number % 5000}", 1000 + number % 300, f"a{number % 50}", "normal", 1, 7200.0,
               start - 600.0, start - 600.0, start, start, start + 3600.0, 1, 0)  # fmt: skip


def _story(jobs: int) -> Iterator[tuple[object, ...]]:
    """Yield three records of each job, with the data that the service keeps of its choice."""
    for number in range(jobs):
        data = {
            "policy": "easy:order=sjf", "objective": "", "profile": f"cmd: prog-{number % 500}", "source": "measured",
            "user": 1000 + number % 300, "class": "compute-bound", "model": "max-min", "nodes": [f"n{number % 1000}"],
            "node_speed": 1.0, "run_time": 3500.0, "run_within": [3000.0, 4000.0], "isolated_run_time": 3400.0,
            "contention_slowdown": 1.03, "evaluations": 40,
        }  # fmt: skip
        chosen = "easy:order=sjf chose n1: forecast 58m20s (80 % between 50m00s and 1h06m), slowdown 1.03"
        for kind, text, details in (
            ("chosen", chosen, json.dumps(data)), ("started", "started on n1", None),
            ("completed", "completed after 1h00m, forecast 58m20s", None),
        ):  # fmt: skip
            yield f"slurm/{number}", 1.7e9 + number * 15.8, number // 10, kind, text, details


def _measured(do: Callable[[], object]) -> tuple[float, float]:
    """Return seconds on the wall and CPU seconds."""
    wall, cpu = time.monotonic(), time.process_time()
    do()
    return time.monotonic() - wall, time.process_time() - cpu


def _measured_steps(steps: Iterator[object]) -> list[tuple[float, float]]:
    """Return the seconds of each step, and of the one that finds the end."""
    parts, answers, end = list[tuple[float, float]](), list[object](), object()
    while end not in answers:
        parts.append(_measured(lambda: answers.append(next(steps, end))))
    return parts


def upgrade(path: Path) -> None:
    """Open a journal as a next version would, which adds a column: with a copy of the file before."""
    before = journal_db.VERSION, journal_db.UPGRADES
    journal_db.VERSION = before[0] + 1
    journal_db.UPGRADES = {before[0]: _add_column}
    try:
        Journal(path).close()
    finally:
        journal_db.VERSION, journal_db.UPGRADES = before


def _add_column(database: sqlite3.Connection) -> None:
    database.execute("ALTER TABLE kept ADD COLUMN note TEXT")


def measure(quick: bool) -> None:
    """Print the table."""
    jobs = QUICK_JOBS if quick else JOBS
    heading(f"A journal of {jobs:,} jobs that have ended: one run each")
    with tempfile.TemporaryDirectory(prefix="pilotfish-") as name:
        folder = Path(name)
        (folder / "cluster.yaml").write_text("{}\n")
        config_path = folder / "pilotfish.yaml"
        config_path.write_text(CONFIG.format(folder=folder))
        config, file = load_config(config_path), folder / "backup.tar.gz"
        filled = _measured(lambda: fill(config.journal, jobs))
        size = config.journal.stat().st_size / 2**20
        argv = [sys.executable, "-c", START, str(config.journal), str(jobs)]
        for _ in range(2):  # the first one reads the disk
            text = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
            wall, cpu, more, peak = map(float, text.split())
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        saved = _measured(lambda: backup.write_backup(config, config_path, file, time.time()))
        memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        packed = file.stat().st_size / 2**20
        restored = _measured(lambda: restore.restore(config, file))
        with closing(Journal(config.journal)) as journal:
            parts = _measured_steps(journal.prune_steps(1.7e9 + 86_400.0))
        upgraded = _measured(lambda: upgrade(config.journal))
        rows = (
            ("write it here", filled, f"{size:,.0f} MiB on disk"),
            ("read it at a start", (wall, cpu), f"{more:,.0f} MiB of memory more, {peak:,.0f} MiB in all"),
            ("backup", saved, f"{packed:,.0f} MiB on disk, {memory:,.0f} MiB of memory more"),
            ("restore", restored, ""),
            ("upgrade", upgraded, "with a copy of the file before"),
            (
                "prune the oldest day",
                (sum(wall for wall, _ in parts), sum(cpu for _, cpu in parts)),
                "in steps, one after each cycle",
            ),
            ("the longest of these steps", max(parts), ""),
        )
        table(("", "seconds", "CPU seconds", ""), [(name, shown(a), shown(b), about) for name, (a, b), about in rows])
