"""`pilotfish accuracy`: the forecasts of jobs compared with their outcomes.

Rule: it changes nothing; the file of a journal is copied and the copy is read, so that a daemon may use it meanwhile.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ..formats.atomic_write import write_whole
from ..simulate.errors import ConfigError
from . import options
from .charts import picture_files
from .daemon_client import ask_daemon
from .inputs import check_output
from .options import option
from .output.documents import print_json
from .streams import note
from .usage_errors import bad

if TYPE_CHECKING:
    from ..daemon.report.accuracy import ForecastOutcome


def accuracy(
    journal: Annotated[Path | None, option("FILE", "Read the journal.sqlite of a daemon, running or not.")] = None,
    out: Annotated[Path | None, option("FILE", "Write all jobs to FILE.csv, or draw them.", "--out", "-o")] = None,
    plot: picture_files.PlotFile = None,
    user: options.OfUser = None,
    everything: options.All = False,
    as_json: options.Json = False,
    socket: options.Socket = None,
) -> None:
    """Compare the forecasts of completed jobs with their outcomes.

    By contention model, source of profiles, policy, class, user, command and profile: the median and the 90 % quantile
    of the factors by which run times were off (2.0x: twice or half as long as forecast); the bias, the median of
    actual / forecast; the trend of the factors from the earlier half of the jobs to the later; the share of jobs
    inside their prediction interval, which should be 80 %; and the median width of the intervals, longest over
    shortest run time. Asks the daemon, or reads its journal, for the latest 10,000 jobs.

    \b
    Examples:
      pilotfish accuracy
      pilotfish accuracy --out accuracy.html
      pilotfish accuracy --out accuracy.csv
      pilotfish accuracy --journal /var/lib/pilotfish/journal.sqlite --json
    """
    from ..daemon.ipc import user_name
    from ..daemon.report.accuracy import ForecastOutcome, to_csv, to_dict
    from ..daemon.report.selection import Chosen

    if journal is not None and socket is not None:
        raise bad("--socket", "not with --journal, which reads a file")
    if out is not None:
        check_output(out.with_suffix(out.suffix.lower()), (".csv", *picture_files.PACKAGES))
    drawn = {plot: "--plot"} if plot is not None else {}
    if out is not None and out.suffix.lower() in picture_files.PACKAGES:
        drawn[out], out = "--out", None
    for target, option_name in drawn.items():
        picture_files.check(target, option_name)
    jobs = _read(journal) if journal else [ForecastOutcome(*job) for job in ask_daemon(socket, "accuracy")["jobs"]]
    jobs = [job for job in jobs if Chosen(user).owned(None if job.user is None else user_name(job.user))]
    if out is not None:
        write_whole(out, to_csv(jobs))
        note(f"{len(jobs):,} jobs are in {out}")
    for target in drawn:
        from .charts.forecast_figure import forecast_accuracy

        picture_files.save(forecast_accuracy(jobs), target)
    if as_json:
        print_json("accuracy", to_dict(jobs))
    else:
        from .output.status import show_accuracy

        show_accuracy(jobs, everything=everything)


def _read(path: Path) -> list[ForecastOutcome]:
    from contextlib import closing

    from ..daemon.report.accuracy import LATEST
    from ..daemon.state.journal import Journal

    if not path.is_file():
        raise ConfigError(str(path), "", "there is no such file", "journal.sqlite in the state_dir of a daemon")
    with closing(Journal(path, in_memory=True)) as journal:
        return journal.forecasts(LATEST)
