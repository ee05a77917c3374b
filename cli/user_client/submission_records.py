"""Records of submissions: one file for each workflow, in its user's state directory.

Rule: the intent is on disk before the first job is submitted; later facts are appended line by line, so that a killed
process loses nothing that it had written. The jobs in a record are submitted, so only trusted records are read. The
keys of the jobs in the queue take precedence over the record.
Format: JSON lines (schema pilotfish/submission/v1): the intent, then {job, id}, {stage}, {ended, ...}.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from ...adapters.keys import plain_name
from ...adapters.start_claim import NO_JOB, claim
from ...daemon.state.codec import decode, encode
from ...simulate.errors import ConfigError, InvalidJobError, PilotfishError
from ...simulate.model.job import Workflow
from ...trust import make_folder, open_file, problem_of

SCHEMA = "pilotfish/submission/v1"
#: Stages of a submission: not finished, whole, or taken back because a job was refused.
BEGUN, WHOLE, TAKEN_BACK = "begun", "whole", "taken back"


@dataclass(slots=True)
class SubmissionRecord:
    """A submitted workflow.

    Args:
        id: of the workflow.
        key: the same workflow is submitted only once under a key.
        workflow: the jobs.
        time: of the submission, epoch seconds of this machine.
        outputs: folder of stdout and stderr.
        hold: job -> seconds from its submission to its begin time; empty = without holds.
        forecast: job -> start and run time (seconds, from the submission), slowdown, nodes and class, if it was
            planned.
        ids: job -> its id, of jobs known to be submitted.
        earlier: number of submissions of the workflow before this one, which were taken back.
        stage: BEGUN, WHOLE or TAKEN_BACK.
        ended: job -> how it ended.
        path: file of the record.
    """

    id: str
    key: str
    workflow: Workflow
    time: float
    outputs: Path
    hold: dict[str, int] = field(default_factory=dict)
    forecast: dict[str, dict[str, Any]] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)
    stage: str = BEGUN
    ended: dict[str, dict[str, Any]] = field(default_factory=dict)
    earlier: int = 0
    path: Path = Path()

    def key_of(self, job: str) -> str:
        """Return the key of a job in this submission: `ID/JOB`, or `ID~1/JOB` after one that was taken back."""
        return f"{self.id}{f'~{self.earlier}' if self.earlier else ''}/{job}"

    def create(self, folder: Path) -> None:
        """Write the intent, whole or not at all. Raises ConfigError."""
        self.path = folder / f"{self.id}.jsonl"
        intent = {
            "schema": SCHEMA, "id": self.id, "key": self.key, "time": self.time, "outputs": str(self.outputs),
            "hold": self.hold, "forecast": self.forecast, "workflow": json.loads(encode(self.workflow)),
            "earlier": self.earlier,
        }  # fmt: skip
        part = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            with _opened(part, os.O_WRONLY | os.O_CREAT) as file:
                file.truncate(0)
                file.write(json.dumps(intent) + "\n")
                file.flush()
                os.fsync(file.fileno())
            part.replace(self.path)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise ConfigError(str(self.path), "", f"cannot be written: {problem_of(error, self.path)}") from None

    def submitted(self, job: str, number: int) -> None:
        """Record the id of a submitted job."""
        if self.ids.get(job) != number:
            self.ids[job] = number
            self._add({"job": job, "id": number})

    @property
    def claims(self) -> Path:
        """Return the folder of links that name the one job that may run under each key; each submission has its own."""
        return self.outputs / f".jobs-{round(self.time * 1e3):x}"

    def claim(self, job: str, number: int) -> int:
        """Claim a job's key; see `start_claim.claim`."""
        return claim(self.claims / plain_name(job), number)

    def reached(self, stage: str) -> None:
        """Record the stage of the submission. After TAKEN_BACK nothing that starts late does any work."""
        if stage == TAKEN_BACK:
            for job in self.workflow.jobs:
                self.claim(job.id, NO_JOB)
        if self.stage != stage:
            self.stage = stage
            self._add({"stage": stage})

    def has_ended(self, job: str, how: dict[str, Any]) -> None:
        """Record how a job ended."""
        self.ended[job] = how
        self._add({"ended": job, **how})

    def _add(self, line: dict[str, Any]) -> None:
        """Append a line; if it cannot be written, the same is later read from the queue again."""
        with suppress(OSError), _opened(self.path, os.O_WRONLY | os.O_APPEND) as file:
            file.write(json.dumps(line) + "\n")


def parts_of(key: str) -> tuple[str, int, str]:
    """Return the workflow, the number of earlier submissions, and the job in a key, see `SubmissionRecord.key_of`."""
    submission, _, job = key.partition("/")
    workflow, _, earlier = submission.partition("~")
    return workflow, int(earlier) if earlier.isdecimal() else 0, job


def _opened(path: Path, flags: int) -> IO[str]:
    mode = "r" if flags == os.O_RDONLY else "w"
    return os.fdopen(open_file(path, flags), mode, encoding="utf-8", errors="surrogatepass")


def read(path: Path) -> SubmissionRecord:
    """Read a record; ignore an incomplete last line. Raises ConfigError."""
    try:
        with _opened(path, os.O_RDONLY) as file:
            lines = file.read().split("\n")
        intent = json.loads(lines[0])
        if intent.get("schema") != SCHEMA:
            raise ConfigError(str(path), "schema", f"found {intent.get('schema')!r}", SCHEMA)
        workflow = decode(json.dumps(intent["workflow"]))
        names = ("id", "key", "time", "hold", "forecast")
        record = SubmissionRecord(
            **{name: intent[name] for name in names},
            workflow=workflow,
            outputs=Path(intent["outputs"]),
            earlier=intent.get("earlier", 0),
        )
        record.path = path
        for line in lines[1:]:
            _apply(record, line)
    except OSError as error:
        raise ConfigError(str(path), "", f"cannot be read: {problem_of(error, path)}") from None
    except (ValueError, KeyError, TypeError, AttributeError, InvalidJobError) as error:
        raise ConfigError(str(path), "", f"not a record of a submission ({type(error).__name__})") from None
    return record


def _apply(record: SubmissionRecord, line: str) -> None:
    try:
        entry = json.loads(line) if line else {}
    except ValueError:
        return  # cut off by a kill
    if "job" in entry:
        record.ids[entry["job"]] = entry["id"]
    elif "stage" in entry:
        record.stage = entry["stage"]
    elif "ended" in entry:
        record.ended[entry.pop("ended")] = entry


def folder(state: Path) -> Path:
    """Return the folder of the records, made if missing. Raises ConfigError."""
    records_folder = state / "workflows"
    try:
        make_folder(records_folder)
    except OSError as error:
        raise ConfigError(str(records_folder), "", f"cannot be made: {error.strerror}") from None
    return records_folder


def known(state: Path, report: Callable[[str], None]) -> list[SubmissionRecord]:
    """Return every record in the state directory, the oldest first; report each that cannot be read."""
    submissions = []
    for path in sorted((state / "workflows").glob("*.jsonl")):
        try:
            submissions.append(read(path))
        except ConfigError as error:
            report(str(error))
    return sorted(submissions, key=lambda record: record.time)


def forget(state: Path, keep: int) -> None:
    """Remove all records but those changed last, `keep` of them: a clock that steps forgets nothing."""
    files = []
    for path in (state / "workflows").glob("*.jsonl"):
        with suppress(OSError):
            files.append((path.stat().st_mtime_ns, path))
    for _, path in sorted(files, reverse=True)[keep:]:
        with suppress(OSError):
            path.unlink()


@contextmanager
def alone(state: Path, id: str) -> Iterator[None]:
    """Lock a workflow's submission on all machines that share the state directory. Raises PilotfishError: locked."""
    path = folder(state) / f"{id}.lock"
    with _opened(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PilotfishError(f"{id} is being submitted by another process at this moment") from None
        except OSError:
            pass  # a file system without locks
        if not os.fstat(file.fileno()).st_nlink:
            raise PilotfishError(f"{id} was submitted by another process just now")
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
