"""The stages of a job in the queue, and the moves between them.

Rule: a job is in one stage, and `MOVES` names every move. ENDED and LET_GO are final: such a job is never started,
placed or cancelled by us. Its state (`JobState`) is another thing: what the resource manager shows, and what users see.
A stage allows only the states in `STATES`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from enum import StrEnum

from ...simulate.model.snapshot import JobState

log = logging.getLogger("pilotfish.cycle")


class JobStage(StrEnum):
    """Distance that a job has come between us and the resource manager."""

    WAITING = "waiting"  # it is ours to start; one that was handed over waits in the resource manager's queue
    AHEAD = "ahead"  # the resource manager has a job of our own, submitted ahead, and it waits there for our start
    UNSETTLED = "unsettled"  # an intent to start it or to submit it ahead is in the journal, without an outcome
    HANDED = "handed"  # the resource manager has taken it, and it has not begun
    RUNNING = "running"  # it has nodes, or they are prepared for it
    SUSPENDED = "suspended"  # it is stopped and keeps its nodes
    LOST = "lost"  # the resource manager had taken it, and does not show it: it may run
    LET_GO = "let go"  # it was handed over, and the resource manager alone decides about it again
    ENDED = "ended"  # it will never run again


#: The stages in which the resource manager has taken our start, or began the job by itself.
TAKEN = frozenset((JobStage.HANDED, JobStage.RUNNING, JobStage.SUSPENDED, JobStage.LOST))
#: The stages in which a job is ours to start.
OURS = frozenset((JobStage.WAITING, JobStage.AHEAD))
#: The stages that allow no move.
FINAL = frozenset((JobStage.LET_GO, JobStage.ENDED))
#: What each stage allows as the next one. A job stays in its stage while only its state, nodes or times change.
MOVES: Mapping[JobStage, frozenset[JobStage]] = {
    JobStage.WAITING: TAKEN | {JobStage.AHEAD, JobStage.UNSETTLED, JobStage.LET_GO, JobStage.ENDED},
    JobStage.AHEAD: TAKEN | {JobStage.WAITING, JobStage.UNSETTLED, JobStage.ENDED},
    JobStage.UNSETTLED: TAKEN | OURS | {JobStage.ENDED},
    **dict.fromkeys(TAKEN, TAKEN | OURS | {JobStage.ENDED}),
    JobStage.LET_GO: frozenset(),
    JobStage.ENDED: frozenset(),
}
#: The stage of a job that the resource manager has taken, by its state.
STAGE_OF: Mapping[JobState, JobStage] = {
    JobState.PENDING: JobStage.HANDED,
    JobState.CONFIGURING: JobStage.RUNNING,
    JobState.RUNNING: JobStage.RUNNING,
    JobState.SUSPENDED: JobStage.SUSPENDED,
    JobState.RESUMING: JobStage.SUSPENDED,
    JobState.UNKNOWN: JobStage.LOST,
    **{state: JobStage.ENDED for state in JobState if state.ended},
}
#: The states that each stage allows. An intent without an outcome may belong to a job that is not shown any more.
STATES: Mapping[JobStage, frozenset[JobState]] = {
    JobStage.WAITING: frozenset((JobState.PENDING,)),
    JobStage.AHEAD: frozenset((JobState.PENDING,)),
    JobStage.UNSETTLED: frozenset((JobState.PENDING, JobState.UNKNOWN)),
    JobStage.LET_GO: frozenset(JobState),
    **{
        stage: frozenset(state for state, other in STAGE_OF.items() if other is stage)
        for stage in (*TAKEN, JobStage.ENDED)
    },
}


def _log_fault(text: str) -> None:
    log.error("please report this fault of pilotfish: %s", text)


#: Called with what is wrong with an illegal move. The tests replace it by one that raises an error.
report_fault: Callable[[str], None] = _log_fault


def next_stage(key: str, before: JobStage, wanted: JobStage, state: JobState) -> JobStage:
    """Return the stage after a move; report a move that is not in the table.

    An illegal move is made nevertheless, because the resource manager is right about its jobs. A final stage stays.

    Args:
        key: of the job.
        before: its stage.
        wanted: the stage to move to.
        state: its state in that stage.
    """
    if wanted is not before and wanted not in MOVES[before]:
        report_fault(f"{key} moves from {before} to {wanted}")
        return before if before in FINAL else wanted
    if state not in STATES[wanted]:
        report_fault(f"{key} is {wanted} and {state}")
    return wanted
