"""`pilotfish accuracy`: the forecasts of jobs compared with their outcomes.

Rule: it changes nothing; the file of a journal is copied and the copy is read, so that a daemon may use it meanwhile.
"""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ...formats.documents.atomic_write import write_whole
from ...formats.text import count
from ...simulate.errors import ConfigError
from ...trust import as_account, owner_of
from .. import options
from ..charts import picture_files
from ..inputs import check_output
from ..options import option
from ..output.documents import print_json
from ..streams import note, warn
from ..usage_errors import bad
from .daemon_client import ask_daemon

if TYPE_CHECKING:
    from ...daemon.state.recorded_outcome import ForecastOutcome, QueueRecord


def accuracy(
    journal: Annotated[Path | None, option("FILE", "Read the journal.sqlite of a daemon, running or not.")] = None,
    out: Annotated[Path | None, option("FILE", "Write all jobs to FILE.csv.", "--out", "-o")] = None,
    plot: picture_files.PlotFile = None,
    user: options.OfUser = None,
    everything: options.All = False,
    as_json: options.Json = False,
    socket: options.Socket = None,
) -> None:
    """Compare the forecasts of completed jobs with their outcomes.

    By contention model, source of profiles, policy, class, user, command and profile: the median and the 90 % quantile
    of the factors by which run times were off (2.0x: twice or half as long as forecast); the bias, the median of actual
    / forecast; the trend of the factors from the earlier half of the jobs to the later; the share of jobs inside their
    prediction interval, which should be 80 %; and the median width of the intervals, longest over shortest run time.
    With Slurm and OAR also the starts: the share of jobs that began within 1 and 10 minutes of the first forecast, that
    of the daemon and that of the resource manager. Asks the daemon, or reads its journal, for the latest 10,000 jobs.

    \b
    Examples:
      pilotfish accuracy
      pilotfish accuracy --plot accuracy.html
      pilotfish accuracy --out accuracy.csv
      pilotfish accuracy --journal /var/lib/pilotfish/journal.sqlite --json
    """
    from ...daemon.report.accuracy import to_csv, to_dict
    from ...daemon.report.selection import Chosen
    from ...daemon.report.start_accuracy import starts_to_dict
    from ...daemon.state.users import user_name

    if journal is not None and socket is not None:
        raise bad("--socket", "not with --journal, which reads a file")
    if out is not None:
        check_output(out.with_suffix(out.suffix.lower()), (".csv", *picture_files.PACKAGES))
    drawn = {plot: "--plot"} if plot is not None else {}
    if out is not None and out.suffix.lower() in picture_files.PACKAGES:
        drawn[out], out = "--out", None
    for target, option_name in drawn.items():
        picture_files.check(target, option_name)
    jobs, starts = records_of(read_journal(journal) if journal else ask_daemon(socket, "accuracy"))
    chosen = Chosen(user)
    jobs = [job for job in jobs if chosen.owned(None if job.user is None else user_name(job.user))]
    starts = [start for start in starts if chosen.owned(None if start.owner is None else user_name(start.owner))]
    if out is not None:
        write_whole(out, to_csv(jobs))
        note(f"{count(len(jobs), 'job is', 'jobs are')} in {out}")
    for target in drawn:
        from ..charts.forecast_figure import forecast_accuracy

        picture_files.save(forecast_accuracy(jobs), target)
    if as_json:
        print_json("accuracy", to_dict(jobs) | {"starts": starts_to_dict(starts)})
    else:
        from ..output.status import show_accuracy

        show_accuracy(jobs, starts, everything=everything)


def records_of(reply: dict[str, Any]) -> tuple[list[ForecastOutcome], list[QueueRecord]]:
    """Return the forecasts of run times and of starts in a reply."""
    from ...daemon.state.recorded_outcome import ForecastOutcome, QueueRecord

    return [ForecastOutcome(*job) for job in reply["jobs"]], [QueueRecord(*job) for job in reply["starts"]]


def read_journal(path: Path) -> dict[str, Any]:
    """Return the forecasts of run times and of starts in a journal, and what the service has cost.

    Root reads with the rights of its owner.
    """
    from contextlib import closing

    from ...daemon.report.accuracy import LATEST
    from ...daemon.report.running_cost import KEPT
    from ...daemon.state.journal import Journal

    if not path.is_file():
        raise ConfigError(str(path), "", "there is no such file", "journal.sqlite in the state_dir of a daemon")

    with as_account(owner_of(path)), closing(Journal(path, in_memory=True)) as journal:
        starts = [record for record in journal.queued(LATEST) if record.start_time is not None]
        outcomes = journal.forecasts(LATEST)
        cost, damaged = journal.kept(KEPT), journal.damage.number()
    for table, number in sorted(damaged.items()):
        warn(f"{path}: left out {count(number, 'row')} of the table {table} that cannot be read")
    return {"jobs": list(map(astuple, outcomes)), "starts": list(map(astuple, starts)), "cost": cost}
