"""`pilotfish sweep`: replay traces under many policies, machines, loads and seeds, and compare the results."""

from __future__ import annotations

import json
import shlex
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ... import __version__
from ...formats.documents.atomic_write import check_folder, write_whole
from ...formats.text import count
from .. import options
from ..kernel_loading import load_kernels
from ..options import argument, flag, option
from ..output.documents import print_json
from ..output.model_decisions import MOSTLY, doubts_of_run_times
from ..streams import note, print_policy_traceback, warn
from ..worker_options import worker_pool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..sweeps.prepare import Prepared
    from ..sweeps.results import Row
    from ..sweeps.tasks import SweepTask
    from ..sweeps.workers import WorkerPool

JOURNAL, RESULTS, ABOUT = "journal.jsonl", "results.csv", "sweep.json"
#: Different errors that are printed; all are in the results.
MOST_WHYS = 3


def sweep(
    file: Annotated[Path, argument("FILE", "The study: what is varied (YAML).")],
    out: Annotated[
        Path | None, option("DIR", "Write results.csv and sweep.json.", "--out", "-o", default="FILE.results")
    ] = None,
    workers: options.Workers = None,
    dask: options.Dask = None,
    parquet: Annotated[bool, flag("--parquet", "Also write results.parquet.")] = False,
    as_json: options.Json = False,
    dry_run: options.DryRun = False,
) -> int:
    """Replay every combination of workloads, machines, policies and seeds; write one row of numbers for each.

    The same command continues an interrupted sweep. With the same files, the results differ from one sweep to the next
    only in the column simulation_time, with any number of workers. --dry-run checks all files and lists the runs; it
    executes no policy of yours, and so does not check its options.

    \b
    Examples:
      pilotfish sweep study.yaml --dry-run
      pilotfish sweep study.yaml --workers 8 --out study
      pilotfish sweep study.yaml --dask tls://head:8786
    """
    folder = out or Path(f"{file.stem}.results")
    if not dry_run:
        check_folder(folder)
    pool = worker_pool(workers, dask)
    if parquet:
        from ..sweeps.results import demand_pyarrow

        demand_pyarrow()
    from ..sweeps.prepare import check, prepare
    from ..sweeps.run_journal import read_journal

    with print_policy_traceback():
        prepared = prepare(file, execute=not dry_run)
    todo = prepared.todo(read_journal(folder / JOURNAL))
    is_local = bool(todo) and dask is None  # compile once, before the processes need the kernels
    if is_local:
        load_kernels(*sorted(prepared.reading))
    with pool as crew:
        kinds = check(prepared, todo, crew)
        if dry_run:
            _show_runs(prepared, todo, as_json)
            return 0
        if is_local:
            load_kernels(*sorted(prepared.kernels(kinds)))
        rows = _carry_out(prepared, crew, folder, parquet)
    _report(prepared, rows, folder, as_json)
    return int(any(row["status"] != "done" for row in rows))


def _carry_out(prepared: Prepared, crew: WorkerPool, folder: Path, parquet: bool) -> list[Row]:
    """Replay the runs that are not done yet; return all rows."""
    from ..output.sweep import SweepProgress
    from ..sweeps.results import ResultsTable, conduct, known_rows
    from ..sweeps.run_journal import RunJournal, RunJournalError, read_journal
    from ..sweeps.workers import PoolLostError

    with RunJournal(folder / JOURNAL) as journal:
        table = ResultsTable(folder / RESULTS, prepared.columns, known_rows(prepared, journal.done))
        write_whole(folder / ABOUT, json.dumps(_about(prepared), indent=1) + "\n")
        finished = len(table.rows)
        if finished:
            note(f"{finished:,} of {count(len(prepared.runs), 'run is', 'runs are')} done already: {folder / JOURNAL}")
        try:
            with SweepProgress(len(prepared.runs) - finished) as progress:
                conduct(prepared, crew, journal, table, progress.ended)
        except (KeyboardInterrupt, PoolLostError, RunJournalError):
            table.add(known_rows(prepared, read_journal(folder / JOURNAL)))  # runs that ended just now, too
            runs = count(len(prepared.runs), "run has", "runs have")
            note(f"{len(table.rows):,} of {runs} ended; the same command continues")
            raise
        finally:
            table.write()
    if parquet:
        from ..sweeps.results import write_parquet

        write_parquet(folder / "results.parquet", table.rows, prepared.columns)
    return table.rows


def _about(prepared: Prepared) -> dict[str, Any]:
    """Return the origin of the numbers."""
    return {
        "schema": "pilotfish/sweep-results/v1",
        "version": __version__,
        "command": shlex.join(["pilotfish", *sys.argv[1:]]),
        "sweep": prepared.sweep.source,
        "inputs": {name: f"sha256:{digest}" for name, digest in prepared.contents.items()},
    }


def _report(prepared: Prepared, rows: list[Row], folder: Path, as_json: bool) -> None:
    failed = [row for row in rows if row["status"] != "done"]
    if as_json:
        print_json("sweep-results", {**_about(prepared), "cases": _cases(prepared, rows), "runs": rows})
    else:
        from ..output.sweep import show_sweep
        from ..output.text import Screen

        show_sweep(Screen(), rows, prepared.same)
    rarely = Counter(row["policy"] for row in rows if row["model_share"] is not None and row["model_share"] < MOSTLY)
    for policy, number in rarely.items():
        runs = count(sum(row["policy"] == policy for row in rows), "run")
        problem = f"its baseline took most decisions in {number:,} of {runs} (column model_share)"
        warn(f"{policy}: {problem}; `pilotfish simulate` says why")
    warn(*_doubts_of_run_times(prepared))
    for reason in list(dict.fromkeys(row["error"] for row in failed))[:MOST_WHYS]:
        warn(f"run {next(row['run'] for row in failed if row['error'] == reason)} failed: {reason}")
    ended = f", {len(failed):,} of them failed (the same command tries them again)" if failed else ""
    note(f"{folder / RESULTS} has {count(len(rows), 'run')}{ended}")


def _doubts_of_run_times(prepared: Prepared) -> Iterator[str]:
    """Yield a warning for each model of whose training no run has the run times. Raises ConfigError."""
    from ...formats.model_file import parse_model

    for policy, source in {task.policy: task.source for run, task in prepared.pairs if run.policy.is_model}.items():
        trained = getattr(parse_model(source or b"", policy), "run_times", None)
        yield from doubts_of_run_times(policy, trained, prepared.sweep.runtimes, "runtimes:")


def _cases(prepared: Prepared, rows: list[Row]) -> list[dict[str, Any]]:
    """Return the best runs of each case by their numbers."""
    from ...simulate.sweep import cases, worth

    documents = []
    for case in cases([row for row in rows if row["status"] == "done"], prepared.same):
        judged = worth(case)
        documents.append({
            **{name: case[0][name] for name in prepared.same},
            "best": {objective.column: case[place]["run"] for objective, place in judged.best.items()},
            "pareto": {
                "of": [objective.column for objective in judged.two],
                "runs": [case[place]["run"] for place in judged.front],
            },
        })  # fmt: skip
    return documents


def _show_runs(prepared: Prepared, todo: list[SweepTask], as_json: bool) -> None:
    from ...simulate.sweep import described

    rows = [described(run, prepared.varied) for run in prepared.runs]
    if as_json:
        print_json("sweep-results", {**_about(prepared), "runs": rows})
        return
    from ..output.sweep import show_runs
    from ..output.text import Screen

    show_runs(Screen(), rows)
    pending = {task.identity for task in todo}
    finished = sum(task.identity not in pending for task in prepared.tasks)
    unloaded = sorted({task.policy for task in prepared.tasks if task.source is not None})
    unread = f"; not loaded, and so not checked: {', '.join(unloaded)}" if unloaded else ""
    note(f"{count(len(rows), 'run')}, {finished:,} of them done already; nothing was run{unread}")
