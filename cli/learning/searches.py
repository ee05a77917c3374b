"""The searches of one command: on all cores, and with a journal if they are to go on after an interruption."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from ...formats.text import count
from ...simulate.errors import ConfigError
from ..output.sweep import SweepProgress
from ..streams import warn
from ..sweeps.run_journal import JournalKind, RunJournal
from ..sweeps.tasks import Failure, digest_of
from ..sweeps.workers import PoolLostError
from ..worker_options import worker_pool
from .learning_tasks import SearchTask, search_task


def answers_of(
    tasks: Sequence[SearchTask], workers: int | None, journal_file: Path | None, dask: str | None = None
) -> dict[str, dict[str, Any]]:  # fmt: skip
    """Carry out searches, and return those that ended, by their identities in the order of the tasks.

    Args:
        tasks: the searches.
        workers: processes; None: as many as there are cores.
        journal_file: keeps those that ended; None: nothing does.
        dask: address of a Dask cluster, in place of processes.

    Raises:
        ConfigError: none ended, or the journal is of other inputs.
        PilotfishError: there is no such cluster, or it was lost before any ended.
        OSError: the journal cannot be written.
    """
    ended, failures = dict[str, dict[str, Any]](), list[str]()
    shared = list(dict.fromkeys(task.shared_identity for task in tasks))
    kind = JournalKind("train", shared[0] if len(shared) == 1 else digest_of("".join(shared).encode())[:32])
    with nullcontext() if journal_file is None else RunJournal(journal_file, kind) as journal:
        if journal is not None:
            ended |= journal.done
        waiting = [task for task in tasks if task.identity not in ended]
        try:
            with SweepProgress(len(waiting)) as progress, worker_pool(workers, dask, len(waiting)) as crew:
                for batch in crew.each(search_task, waiting) if waiting else ():
                    good = {task.identity: answer for task, answer in batch if not isinstance(answer, Failure)}
                    failures += [answer.why for _, answer in batch if isinstance(answer, Failure)]
                    ended |= good
                    if journal is not None and good:
                        journal.add(good)
                    progress.ended([{"status": "done" if task.identity in good else "failed"} for task, _ in batch])
        except (KeyboardInterrupt, PoolLostError) as error:
            if not ended and isinstance(error, PoolLostError):
                raise
            warn(f"{str(error) or 'interrupted'}: {len(ended)} of {count(len(tasks), 'search', 'searches')} ended")
    if not ended:
        raise ConfigError("train", "", failures[0] if failures else "no search ended", "at least one")
    if failures:
        warn(f"{count(len(failures), 'search', 'searches')} failed: {failures[0]}")
    return {task.identity: ended[task.identity] for task in tasks if task.identity in ended}
