"""A Slurm for one user in memory, behind the commands that the user's `pilotfish` runs;
tests/real/slurm/test_slurm_login.py uses the real one.

`faults` sets what happens at the n-th sbatch: refused, lost (not executed), answer (executed, not answered), late or
`late:SECONDS` (executed some time after the client gave up), killed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.slurm.transport import sacct
from pilotfish.adapters.slurm.transport.parsing import SEPARATOR
from pilotfish.adapters.slurm.transport.squeue import FIELDS
from pilotfish.adapters.slurm.user_client import OwnJobs

UID = 5
LATE_S = 4.0


class Killed(BaseException):
    """The process ends here."""


class FakeSlurm:
    """`jobs` by id, one row of the queue each; `now` is its clock, moved by `sleep`; the user's clock is ahead by
    `skew`.
    """

    def __init__(self, faults: dict[int, str] | None = None, skew: float = 0.0) -> None:
        self.skew = skew
        self.faults, self.calls = faults or {}, 0
        self.now, self.away_until = 1_000_000.0, 0.0
        self.jobs: dict[int, dict[str, Any]] = {}
        self.late: list[tuple[float, Sequence[str], float]] = []
        self.ran: list[Sequence[str]] = []
        self.accounted: dict[int, str] | None = None  #: id -> state, where there is accounting

    def own(self) -> OwnJobs:
        """The jobs of the user, as the commands show them."""
        return OwnJobs(self.run, self.run, UID)

    def clock(self) -> float:
        return self.now

    def wall(self) -> float:
        return self.now + self.skew

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        while self.late and self.late[0][0] <= self.now:
            self._submit(*self.late.pop(0)[1:])

    def run(self, argv: Sequence[str]) -> str:
        """Carry a command out."""
        self.ran.append(argv)
        if self.now < self.away_until:
            raise AdapterError(f"{argv[0]}: Unable to contact slurm controller", transient=True, kind="unreachable")
        return str(getattr(self, f"_{argv[0]}")(argv))

    def alive(self) -> list[str]:
        """Keys of the jobs that have not ended."""
        return sorted(_key(job) for job in self.jobs.values() if job["State"] in ("PENDING", "RUNNING"))

    def begin(self, key: str) -> float:
        """When a job may begin."""
        return next(job["begin"] for job in self.jobs.values() if _key(job) == key and job["State"] == "PENDING")

    def _sdiag(self, argv: Sequence[str]) -> str:
        return f"sdiag output at now ({self.now:.0f})\n"

    def _sbatch(self, argv: Sequence[str]) -> str:
        self.calls += 1
        fault = self.faults.get(self.calls, "")
        if fault == "refused":
            said = "sbatch: error: Batch job submission failed: Invalid qos specification"
            raise AdapterError(f"sbatch: {said}", kind="refused", argv=argv, exit_code=1, stderr_tail=said)
        if fault == "killed before":
            raise Killed
        if fault.startswith("late"):
            self.late.append((self.now + float(fault.partition(":")[2] or LATE_S), argv, self.wall()))
            self.late.sort(key=lambda late: late[0])
        elif fault != "lost":
            number = self._submit(argv, self.wall())
        if fault == "killed after":
            raise Killed
        if fault:
            raise AdapterError("sbatch did not answer within 15 s", transient=True, kind="timeout", argv=argv)
        return f"{number}\n"

    def _submit(self, argv: Sequence[str], asked: float) -> int:
        said = dict(word.removeprefix("--").partition("=")[::2] for word in argv)
        number = len(self.jobs) + 1
        begin = asked + int(said.get("begin", "now+0").removeprefix("now+"))
        self.jobs[number] = {"State": "PENDING", "Comment": said["comment"], "submit": self.now, "begin": begin,
                             "Dependency": said.get("dependency", ""), "Name": said["job-name"],
                             "wrap": said["wrap"]}  # fmt: skip
        return number

    def _squeue(self, argv: Sequence[str]) -> str:
        form = next(word for word in argv if word.startswith("--Format="))
        found = re.search(r":0(@\w+@)", form)
        assert found and f"--user={UID}" in argv
        return "".join(_row(number, job, found[1]) for number, job in self.jobs.items())

    def _sacct(self, argv: Sequence[str]) -> str:
        if self.accounted is None:
            raise AdapterError(f"sacct: {sacct.DISABLED}", kind="refused", argv=argv, stderr_tail=sacct.DISABLED)
        mark = next(word for word in argv if word.startswith("--delimiter=")).partition("=")[2]
        row = dict.fromkeys(sacct.FIELDS, "") | {"DBIndex": "1", "ExitCode": "0:0", "UID": str(UID), "NNodes": "1",
                                                 "Start": _time(self.now), "End": _time(self.now + 1)}  # fmt: skip
        rows = ({**row, "JobIDRaw": str(number), "State": state} for number, state in self.accounted.items())
        return "".join("".join(f"{row[field]}{mark}" for field in sacct.FIELDS) + "\n" for row in rows)

    def _scancel(self, argv: Sequence[str]) -> str:
        for job in (self.jobs[int(number)] for number in argv[1:] if number.isdigit() and int(number) in self.jobs):
            if job["State"] == "PENDING" or ("--state=PENDING" not in argv and job["State"] == "RUNNING"):
                job["State"] = "CANCELLED"
        return ""

    def _scontrol(self, argv: Sequence[str]) -> str:
        if list(argv) == ["scontrol", "show", "config"]:
            return "ClusterName             = mesocentre\nSchedulerType           = sched/backfill\n"
        if argv[-1] == "node":
            return ""
        said = dict(word.partition("=")[::2] for word in argv)
        for number in said["JobId"].split(","):
            self.jobs[int(number)]["begin"] = self.wall() + int(said["StartTime"].removeprefix("now").lstrip("+") or 0)
        return ""


def _key(job: dict[str, Any]) -> str:
    return str(job["Comment"].partition("key=")[2].partition(";")[0])


def _row(number: int, job: dict[str, Any], mark: str) -> str:
    row = dict.fromkeys(FIELDS, "") | {
        "JobID": str(number), "JobArrayID": str(number), "UserID": str(UID), "NumNodes": "1", "NumCPUs": "1",
        "Reason": "None", "State": job["State"], "Comment": job["Comment"], "Dependency": job["Dependency"],
        "SubmitTime": _time(job["submit"]), "EligibleTime": _time(job["begin"]), "PriorityLong": "1",
        "StartTime": _time(job.get("start")), "EndTime": _time(job.get("end")), "NodeList": job.get("nodes", ""),
        "ReqNodes": job.get("wanted", ""),
        "exit_code": str(job.get("status", 0)), "Name": job["Name"],
        **{field: job[field] for field in ("Partition", "PriorityLong") if field in job},
    }  # fmt: skip
    return f"{SEPARATOR.join(row[field] for field in FIELDS)}{mark}\n"


def _time(moment: float | None) -> str:
    return "N/A" if moment is None else datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S")
