"""Recordings of a real Slurm: cases with known submissions, each run several times. They are not in the project.

They are in the folder that SLURM_RECORDINGS names, else in a `data/slurm-real` of a neighbour of the checkout. A case
has `slurm.conf`, `assoc.psv`, `qos.psv` and runs `r1`, `r2`, ... with `sacct.psv.gz`, `run.json` and the commands of
scontrol that were given during the run, `events_done.csv`.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
#: Fits the usage in the recorded samples best, in every case.
FIRST_CALCULATION_S = 0.82


def recordings() -> Path | None:
    """Return the folder of the recordings; None: there is none."""
    if named := os.environ.get("SLURM_RECORDINGS"):
        return Path(named)
    return next(iter(sorted(CHECKOUT.parent.glob("*/data/slurm-real"))), None)


def recorded_case(name: str) -> Path:
    """Return the folder of a recorded case; the test is skipped if it is not there."""
    root = recordings()
    if root and (root / name / "slurm.conf").exists():
        return root / name
    pytest.skip(
        f"NOT compared with the real Slurm: its recording {name} is not in SLURM_RECORDINGS or */data/slurm-real"
    )


@dataclass(frozen=True)
class Run:
    """A recorded run of a case."""

    folder: Path

    @property
    def case(self) -> str:
        """Return the name of the case."""
        return self.folder.parent.name

    def __str__(self) -> str:
        return f"{self.case}-{self.folder.name}"

    @property
    def t0(self) -> float:
        """Return the time of second 0 of the case, seconds since the epoch."""
        return float(json.loads((self.folder / "run.json").read_text())["t0"])

    @property
    def first_calculation(self) -> float:
        """Return when slurmctld first calculated priorities: FIRST_CALCULATION_S of real time after its start."""
        about = json.loads((self.folder / "run.json").read_text())
        return float(self.t0 + about["slurmctld_started"] + FIRST_CALCULATION_S * about["speed"])

    def commands(self) -> Iterator[tuple[float, dict[str, str], str]]:
        """Yield (time, arguments, verb) of each command of scontrol that succeeded, in order."""
        path = self.folder / "events_done.csv"
        if not path.exists():
            return
        with path.open(newline="") as file:
            for row in sorted(csv.DictReader(file), key=lambda row: float(row["t_done"])):
                words = row["command"].split()
                arguments = dict(word.lower().split("=", 1) for word in words if "=" in word)
                if row["rc"] == "0":
                    yield self.t0 + float(row["t_done"]), arguments, " ".join(words[1:3])


def runs(folder: Path | None = None) -> list[Run]:
    """Return the runs of all cases that were recorded as a site has them (without traces of the scheduler)."""
    root = folder or recordings()
    return [Run(path.parent) for path in sorted(root.glob("*/r[0-9]*/run.json"))] if root else []


def cases() -> dict[str, list[Run]]:
    """Return case -> its runs."""
    by_case: dict[str, list[Run]] = {}
    for run in runs():
        by_case.setdefault(run.case, []).append(run)
    return by_case


def site_folder(run: Run, folder: Path) -> Path:
    """Write the site of a run as its operator would have recorded it: configuration, accounting, events, reservations.

    Args:
        run: a recorded run.
        folder: is made; its files are named as `pilotfish whatif` reads them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("slurm.conf", "assoc.psv", "qos.psv", "sacctmgr_dump.cfg"):
        shutil.copy(run.folder.parent / name, folder / name)
    for name in ("sacct.psv.gz", "scontrol_config.txt.gz"):
        shutil.copy(run.folder / name, folder / name)
    _write(folder / "sshare.psv", "Account|User|RawUsage", [("root", "", "0")])  # no usage when the run begins
    _write(folder / "events.psv", "NodeName|TimeStart|TimeEnd|State|Reason", _node_events(run))
    header = "Name|TimeStart|TimeEnd|NodeNames|Flags|Users|Accounts|Created"
    _write(folder / "reservations.psv", header, _reservations(run))
    return folder


def _write(path: Path, header: str, rows: list[tuple[str, ...]]) -> None:
    path.write_text("\n".join([header, *("|".join(row) for row in rows)]) + "\n")


def _node_events(run: Run) -> list[tuple[str, ...]]:
    """Return the times in which nodes took no jobs."""
    rows, since = list[tuple[str, ...]](), dict[str, tuple[float, str]]()
    for time, arguments, _ in run.commands():
        node, state = arguments.get("nodename"), arguments.get("state")
        if node and state == "resume" and node in since:
            begin, old = since.pop(node)
            rows.append((node, _date(begin), _date(time), old.upper(), "recorded"))
        elif node and state and node not in since:
            since[node] = time, state
    return [
        *rows,
        *((node, _date(time), "Unknown", state.upper(), "recorded") for node, (time, state) in since.items()),
    ]


def _reservations(run: Run) -> list[tuple[str, ...]]:
    """Return the reservations that were created."""
    rows = list[tuple[str, ...]]()
    for time, arguments, verb in run.commands():
        if verb == "create reservation":
            start = datetime.fromisoformat(arguments["starttime"].upper()).replace(tzinfo=UTC)
            end = start + timedelta(minutes=int(arguments["duration"]))
            times = (f"{moment:%Y-%m-%dT%H:%M:%S}" for moment in (start, end))
            flags, users, accounts = (arguments.get(key, "") for key in ("flags", "users", "accounts"))
            rows.append(
                (arguments["reservationname"], *times, arguments["nodes"], flags.upper(), users, accounts, _date(time))
            )
    return rows


def _date(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def seconds(text: str) -> float | None:
    """Return the time of sacct and squeue as seconds since the epoch; None: it has none."""
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


@dataclass(frozen=True)
class RecordedStart:
    """The first start of a job, in seconds since the epoch."""

    submit: float
    start: float


def recorded_starts(run: Run) -> Mapping[str, RecordedStart]:
    """Return job name (array task: name_5) -> its first start, straight from sacct's text."""
    starts = dict[str, RecordedStart]()
    with gzip.open(run.folder / "sacct.psv.gz", "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="|", quoting=csv.QUOTE_NONE):
            task = row["JobID"].partition("_")[2]
            name = f"{row['JobName']}_{task}" if task else row["JobName"]
            submit, start = seconds(row["Submit"]), seconds(row["Start"])
            if submit is not None and start is not None and row["NodeList"] not in ("", "None assigned"):
                old = starts.get(name)
                if old is None or start < old.start:
                    starts[name] = RecordedStart(submit, start)
    return starts


@dataclass(frozen=True)
class ExpectedStart:
    """The start of a waiting job as backfill planned it when squeue was asked."""

    asked: float
    job: str  # name
    id: str  # as squeue shows it: 77, 77_[5-10]
    start: float


def expected_starts(run: Run) -> list[ExpectedStart]:
    """Return the planned starts of waiting jobs in all samples of squeue.

    A sample was taken a little later than it is named: not before the last start that it shows.
    """
    expected = list[ExpectedStart]()
    with gzip.open(run.folder / "samples.txt.gz", "rt", encoding="utf-8") as file:
        for sample in file.read().split("# t=")[1:]:
            queue = sample.partition("## squeue")[2].partition("\n## ")[0]
            rows = [cells for line in queue.splitlines()[1:] if len(cells := line.split("|")) >= 8]
            times = [(cells, time) for cells in rows if (time := seconds(cells[6])) is not None]
            last = max((time for cells, time in times if cells[3] == "R"), default=0.0)
            taken_at = max(run.t0 + float(sample.partition("\n")[0]), last)
            expected += [ExpectedStart(taken_at, cells[1], cells[0], time) for cells, time in times if cells[3] == "PD"]
    return expected


@dataclass(frozen=True)
class Moments:
    """When things happened in slurmctld's log, seconds since the epoch with fractions: job id -> its times.

    An array has the id of its first task for its submission, and that of each task for starts. Starts of later runs and
    the ends of tasks are not all in the log.
    """

    submitted: Mapping[str, float]
    ended: Mapping[str, Sequence[float]]
    started: Sequence[float]  # all starts, ascending


_MOMENT = re.compile(r"\[([\d-]+T[\d:]+)\.(\d+)\] (.*)")
_EVENTS = {
    "submitted": re.compile(r"_slurm_rpc_submit_batch_job: JobId=(\S+) InitPrio"),
    "ended": re.compile(r"_job_complete: JobId=(\S+) done"),
    "started": re.compile(r"(?:sched: Allocate|sched/backfill: _start_job: Started) JobId=(\S+)"),
}


def moments(run: Run) -> Moments:
    """Return when slurmctld logged submissions, starts and ends."""
    times: dict[str, dict[str, list[float]]] = {kind: {} for kind in _EVENTS}
    with gzip.open(run.folder / "slurmctld.log.gz", "rt", encoding="utf-8") as file:
        for line in filter(None, map(_MOMENT.match, file)):
            for kind, pattern in _EVENTS.items():
                if event := pattern.match(line[3]):
                    at = (seconds(line[1]) or 0.0) + float(f"0.{line[2]}")
                    times[kind].setdefault(event[1].partition("(")[0], []).append(at)
    started = sorted(time for starts in times["started"].values() for time in starts)
    return Moments({job: min(all_) for job, all_ in times["submitted"].items()}, times["ended"], started)
