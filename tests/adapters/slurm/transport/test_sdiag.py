"""What is read from `sdiag`: what somebody else only reads moves no count, and whatever may matter moves one."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.adapters.base import ParseError
from pilotfish.adapters.slurm.transport.sdiag import activity, time_of

#: Slurm 22.05.8, with what it prints about scheduling cut short.
RECORDED = """*******************************************************
sdiag output at Mon Nov 23 08:56:14 2026 (1795424174)
Data since      Mon Nov 23 08:56:01 2026 (1795424161)
*******************************************************
Server thread count:  3
Agent queue size:     0
Agent count:          0
Agent thread count:   0
DBD Agent queue size: 0

Jobs submitted: 4
Jobs started:   3
Jobs completed: 0
Jobs canceled:  0
Jobs failed:    0

Job states ts:  Mon Nov 23 08:56:01 2026 (1795424161)
Jobs pending:   0
Jobs running:   0

Main schedule statistics (microseconds):
	Last cycle:   11
	Total cycles: 4

Backfilling stats
	Total backfilled jobs (since last slurm start): 3
	Last cycle when: N/A

Latency for 1000 calls to gettimeofday(): 16 microseconds

Remote Procedure Call statistics by message type
	MESSAGE_NODE_REGISTRATION_STATUS        ( 1002) count:4      ave_time:237    total_time:950
	REQUEST_SUBMIT_BATCH_JOB                ( 4003) count:4      ave_time:1033   total_time:4133
	REQUEST_STATS_INFO                      ( 2035) count:2      ave_time:185    total_time:370
	REQUEST_NODE_INFO                       ( 2007) count:1      ave_time:183    total_time:183
	REQUEST_PING                            ( 1008) count:1      ave_time:279    total_time:279
	REQUEST_PARTITION_INFO                  ( 2009) count:1      ave_time:154    total_time:154

Remote Procedure Call statistics by user
	root            (       0) count:10     ave_time:267    total_time:2675
	REQUEST_X       (       5) count:3      ave_time:1131   total_time:3394

Pending RPC statistics
	No pending RPCs
"""
#: As slurmctld with `enable_rpc_queue` prints its rows, in 23.11 and later.
QUEUED = re.sub(r"(total_time:\d+)", r"\1 queued:0 cycle_last:1 cycle_max:4", RECORDED)
ROW = "\t{:<40}({:5}) count:{:<6} ave_time:1      total_time:1\n"
TABLE = "by message type\n"


def with_row(name: str, count: int = 1, text: str = RECORDED) -> str:
    """The answer with one more kind of request."""
    return text.replace(TABLE, TABLE + ROW.format(name, 9999, count))


@pytest.mark.parametrize("text", [RECORDED, QUEUED], ids=["22.05", "23.11"])
def test_clock_and_counts_are_read(text: str) -> None:
    assert time_of(text) == 1795424174.0
    counts = activity(text)
    assert ("submitted", "4") in counts.arrivals and ("started", "3") in counts.others
    assert ("MESSAGE_NODE_REGISTRATION_STATUS", "4") in counts.nodes
    assert counts == activity(RECORDED)


@pytest.mark.parametrize(
    "name",
    ["REQUEST_JOB_INFO", "REQUEST_JOB_INFO_SINGLE", "REQUEST_JOB_USER_INFO", "REQUEST_NODE_INFO_SINGLE", "REQUEST_JOB_READY",
     "REQUEST_BUILD_INFO", "REQUEST_ASSOC_MGR_INFO", "REQUEST_JOB_STEP_CREATE", "REQUEST_STEP_COMPLETE", "REQUEST_CONFIG",
     "REQUEST_JOB_WILL_RUN", "REQUEST_AUTH_TOKEN", "REQUEST_HET_JOB_ALLOC_INFO"],
)  # fmt: skip
def test_reads_of_others_wake_nobody(name: str) -> None:
    assert activity(with_row(name)) == activity(with_row(name, 7)) == activity(RECORDED)


@pytest.mark.parametrize("name", ["REQUEST_UPDATE_JOB", "REQUEST_JOB_REQUEUE"])
def test_a_changed_job_may_have_been_handed_over(name: str) -> None:
    assert activity(with_row(name)).arrivals != activity(RECORDED).arrivals
    assert activity(with_row(name)).arrivals != activity(with_row(name, 2)).arrivals


@pytest.mark.parametrize(
    "name",
    ["MESSAGE_EPILOG_COMPLETE", "REQUEST_COMPLETE_BATCH_SCRIPT", "REQUEST_COMPLETE_JOB_ALLOCATION", "REQUEST_KILL_JOB",
     "REQUEST_CANCEL_JOB_STEP", "REQUEST_UPDATE_NODE", "REQUEST_UPDATE_PARTITION", "REQUEST_CREATE_RESERVATION",
     "REQUEST_RECONFIGURE", "REQUEST_SUSPEND", "ACCOUNTING_UPDATE_MSG", "REQUEST_OF_A_LATER_SLURM"],
)  # fmt: skip
def test_what_may_free_or_take_nodes_counts(name: str) -> None:
    assert activity(with_row(name)).others != activity(RECORDED).others
    assert activity(with_row(name)).arrivals == activity(RECORDED).arrivals


@given(st.sampled_from(["submitted", "started", "completed", "canceled", "failed"]), st.integers(5, 10**9))
def test_each_job_counter_matters(name: str, count: int) -> None:
    moved = activity(re.sub(rf"Jobs {name}: .*", f"Jobs {name}: {count}", RECORDED))
    assert (moved.arrivals == activity(RECORDED).arrivals) == (name != "submitted")
    assert (moved.others == activity(RECORDED).others) == (name == "submitted")


def test_counts_that_were_reset_to_the_same_numbers_have_moved() -> None:
    """By `sdiag --reset`, a restart of the controller, or at midnight."""
    assert activity(RECORDED.replace("(1795424161)\n***", "(1795424170)\n***")).others != activity(RECORDED).others


def test_nodes_that_register_are_told_from_the_rest() -> None:
    counts = activity(RECORDED.replace("( 1002) count:4", "( 1002) count:5"))
    assert (counts.arrivals, counts.others) == (activity(RECORDED).arrivals, activity(RECORDED).others)
    assert counts.nodes != activity(RECORDED).nodes


@pytest.mark.parametrize("text", ["", "slurm_load_ctl: Access denied", RECORDED.partition("Jobs submitted")[0]])
def test_an_answer_without_counts_is_an_error(text: str) -> None:
    with pytest.raises(ParseError):
        activity(text)
