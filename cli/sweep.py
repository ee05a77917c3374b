"""`pilotfish sweep`: a trace, or many, replayed under many policies, machines and loads, side by side."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...simulate.errors import ConfigError
from . import inputs

if TYPE_CHECKING:
    from ..sweep.crew import Crew
    from ..sweep.prepared import Prepared
    from ..sweep.table import Row
    from ..sweep.task import Task

JOURNAL, RESULTS, ABOUT = "journal.jsonl", "results.csv", "sweep.json"
#: Different errors that are printed; all are in the results.
MOST_WHYS = 3


def sweep(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What is varied (YAML).")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Where results.csv goes; default: FILE's name and .results."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", metavar="N", min=1, help="Processes; default: one for each CPU.")
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option("--dask", metavar="ADDRESS", help="Instead of processes: the Dask cluster there, tcp://HOST:8786."),
    ] = None,
    parquet: Annotated[bool, typer.Option("--parquet", help="Write results.parquet, too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print all rows and what is best as JSON.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything, print the runs, run none.")] = False,
) -> None:
    """Replay every combination of workloads, machines, policies and seeds: one row of numbers for each.

    A sweep that was stopped, however it was, goes on when it is started again. What differs from one start to the
    next with the same files is the column simulation_time and nothing else, with any number of workers.

    \b
    Examples:
      pilotfish sweep study.yaml --dry-run
      pilotfish sweep study.yaml --workers 8 --out study
      pilotfish sweep study.yaml --dask tcp://head:8786
    """
    found = _crew(workers, dask)
    if parquet:
        from ..sweep.parquet import demand_pyarrow

        demand_pyarrow()
    from ..own_policy import traced
    from ..sweep.journal import read_journal
    from ..sweep.prepared import check, prepare

    with traced():
        made = prepare(file)
    folder = out or Path(f"{file.stem}.results")
    todo = made.todo(read_journal(folder / JOURNAL))
    here = bool(todo) and dask is None  # kernels are made once, before the processes need them
    if here:
        inputs.load_kernels(*sorted(made.reading))
    with found as crew:
        kinds = check(made, todo, crew)
        if dry_run:
            _show_runs(made, todo, as_json)
            return
        for kind in kinds if here else ():
            inputs.load_replay(made.sweep.policies, networked=kind.networked, rich=kind.rich)
        rows = _carry_out(made, crew, folder, parquet)
    _report(made, rows, folder, as_json)
    if any(row["status"] != "done" for row in rows):
        raise typer.Exit(1)


def _crew(workers: int | None, dask: str | None) -> Crew:
    """Who carries out the runs: found before any file is read."""
    if dask is None:
        from ..sweep.crew import Processes

        return Processes(workers or len(os.sched_getaffinity(0)))
    if workers is not None:
        raise inputs.bad("--workers", "not beside --dask: the cluster has its own")
    from ..sweep.dask_crew import OnDask

    try:
        return OnDask(dask)
    except ConfigError as error:
        raise inputs.bad_value("--dask", error) from None


def _carry_out(made: Prepared, crew: Crew, folder: Path, parquet: bool) -> list[Row]:
    """Run what is not done yet; returns all rows."""
    from ...simulate.formats.writing import write_whole
    from ..render.sweep import Progress
    from ..sweep.conduct import conduct, known_rows
    from ..sweep.journal import Journal, read_journal
    from ..sweep.table import Table

    with Journal(folder / JOURNAL) as journal:
        table = Table(folder / RESULTS, made.columns, known_rows(made, journal.done))
        write_whole(folder / ABOUT, json.dumps(_about(made), indent=1) + "\n")
        done = len(table.rows)
        if done:
            inputs.note(f"{done:,} of {len(made.runs):,} runs are done already: {folder / JOURNAL}")
        try:
            with Progress(len(made.runs) - done) as progress:
                conduct(made, crew, journal, table, progress.ended)
        except KeyboardInterrupt:
            table.add(known_rows(made, read_journal(folder / JOURNAL)))  # also what ended at that very moment
            inputs.note(f"{len(table.rows):,} of {len(made.runs):,} runs have ended; the same command goes on")
            raise
        finally:
            table.write()
    if parquet:
        from ..sweep.parquet import write_parquet

        write_parquet(folder / "results.parquet", table.rows, made.columns)
    return table.rows


def _about(made: Prepared) -> dict[str, Any]:
    """Where the numbers come from."""
    from ... import __version__

    return {
        "schema": "pilotfish/sweep-results/v1",
        "version": __version__,
        "command": shlex.join(["pilotfish", *sys.argv[1:]]),
        "sweep": made.sweep.source,
        "inputs": {name: f"sha256:{digest}" for name, digest in made.contents.items()},
    }


def _report(made: Prepared, rows: list[Row], folder: Path, as_json: bool) -> None:
    failed = [row for row in rows if row["status"] != "done"]
    if as_json:
        print(json.dumps({**_about(made), "cases": _cases(made, rows), "runs": rows}, indent=1))
    else:
        from ..render.screen import Screen
        from ..render.sweep import show

        show(Screen(), rows, made.same)
    for why in list(dict.fromkeys(row["error"] for row in failed))[:MOST_WHYS]:
        inputs.warn(f"run {next(row['run'] for row in failed if row['error'] == why)} failed: {why}")
    ended = f", {len(failed):,} of them failed (the next start tries them again)" if failed else ""
    inputs.note(f"{folder / RESULTS} has {len(rows):,} runs{ended}")


def _cases(made: Prepared, rows: list[Row]) -> list[dict[str, Any]]:
    """What is best in each case, by the numbers of the runs."""
    from ...simulate.sweep.best import cases, worth

    found = []
    for case in cases([row for row in rows if row["status"] == "done"], made.same):
        judged = worth(case)
        found.append({
            **{name: case[0][name] for name in made.same},
            "best": {objective.column: case[place]["run"] for objective, place in judged.best.items()},
            "pareto": {
                "of": [objective.column for objective in judged.two],
                "runs": [case[place]["run"] for place in judged.front],
            },
        })  # fmt: skip
    return found


def _show_runs(made: Prepared, todo: list[Task], as_json: bool) -> None:
    from ...simulate.sweep.grid import described

    rows = [described(run, made.varied) for run in made.runs]
    if as_json:
        print(json.dumps({**_about(made), "runs": rows}, indent=1))
        return
    from ..render.screen import Screen
    from ..render.sweep import show_runs

    show_runs(Screen(), rows)
    left = {task.identity for task in todo}
    done = sum(task.identity not in left for task in made.tasks)
    inputs.note(f"{len(rows):,} runs, {done:,} of them done already; nothing was run")
