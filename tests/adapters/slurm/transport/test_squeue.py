"""Parsing of squeue and sinfo: no text of a user passes for a field, and nothing unknown for a number."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.adapters.base import ParseError
from pilotfish.adapters.slurm import cluster_of
from pilotfish.adapters.slurm.records import SlurmNode
from pilotfish.adapters.slurm.transport import squeue
from pilotfish.adapters.slurm.transport.command_transport import CommandTransport
from pilotfish.adapters.slurm.transport.parsing import (
    JOB_STATES,
    SEPARATOR,
    IncrementalTable,
    count,
    draw_mark,
    format_of,
    job_state,
    moment,
    node_state,
    size,
    span,
    tres,
)
from pilotfish.adapters.slurm.transport.rows import Unreadable
from pilotfish.simulate.model.snapshot import JobState, NodeState

MARK = "@00ff@"
#: Output of Slurm 22.05, in the order of squeue.FIELDS.
PRINTED = {
    "JobID": "309", "JobArrayID": "309", "HetJobID": "N/A", "State": "PENDING", "Reason": "BeginTime", "UserID": "5",
    "Account": "research", "QOS": "normal", "Partition": "shared", "NumNodes": "1", "NumCPUs": "2",
    "tres-alloc": "cpu=2,mem=512M,node=1,billing=2", "MinMemory": "256M", "TimeLimit": "10:00",
    "SubmitTime": "2026-11-21T03:33:30", "EligibleTime": "2026-11-21T03:38:30", "StartTime": "2026-11-21T03:38:30",
    "EndTime": "2026-11-21T03:48:30", "DeadLine": "N/A", "NodeList": "", "ReqNodes": "n2", "Dependency": "(null)",
    "Feature": "(null)", "Reservation": "(null)", "OverSubscribe": "YES", "PriorityLong": "26187", "RestartCnt": "0",
    "exit_code": "0", "Name": "wrap", "Comment": "pilotfish",
    "SchedNodes": "(null)", "NumTasks": "1", "cpus-per-task": "2", "NTPerNode": "0", "MinCpus": "2", "MaxNodes": "1",
    "Licenses": "(null)",
    "tres-per-node": "N/A", "tres-per-job": "N/A", "tres-per-socket": "N/A", "tres-per-task": "N/A", "Contiguous": "0",
    "CoreSpec": "N/A", "reqswitch": "0", "MinTmpDisk": "0", "ntpersocket": "N/A", "NTPerCore": "N/A",
    "Sockets": "*", "Cores": "*", "Threads": "*", "prefer": "(null)", "ClusterFeature": "(null)",
    "MinTime": "0:00", "BurstBuffer": "(null)",
}  # fmt: skip


def printed(**changed: str) -> str:
    """Return one row of the queue."""
    return f"{SEPARATOR.join((PRINTED | changed)[field] for field in squeue.FIELDS)}{MARK}\n"


def test_the_recorded_row_has_every_field() -> None:
    assert sorted(PRINTED) == sorted(squeue.FIELDS)


def test_a_waiting_job() -> None:
    (job,) = squeue.queue().parse(printed(), MARK)
    assert (job.id, job.state, job.reason, job.uid, job.part) == (309, JobState.PENDING, "BeginTime", 5, False)
    assert (job.nodes, job.cpus, job.memory, job.time_limit) == (1, 2, 512 * 2**20, 600.0)
    assert (job.begin, job.submit) == (job.submit + 300.0 if job.submit else None, 1795232010.0)
    assert (job.wanted, job.placed, job.dependency, job.deadline) == (("n2",), (), "", None)


@pytest.mark.parametrize(
    ("changed", "field", "value"),
    [
        ({"exit_code": "768", "State": "FAILED"}, "exit_code", 3),
        ({"exit_code": "15", "State": "CANCELLED"}, "signal", 15),
        ({"State": "CANCELLED by 5"}, "state", JobState.CANCELLED),
        ({"JobArrayID": "309_4"}, "part", True),
        ({"JobArrayID": "309_4"}, "array", 309),
        ({"JobArrayID": "309_[4]"}, "tasks", 1),
        ({"JobArrayID": "309_[0-9%2]"}, "tasks", 10),
        ({"JobArrayID": "309_[0-9%2]"}, "tasks_at_once", 2),
        ({"JobArrayID": "309_[1,3,10-20:5]"}, "tasks", 5),
        ({"JobArrayID": "309_[1,3,...]"}, "tasks", 0),
        ({"JobArrayID": "309_[9-1:0]"}, "tasks", 1),
        ({"HetJobID": "309"}, "tasks", 0),
        ({"JobArrayID": "309_[1-9]"}, "part", True),
        ({"HetJobID": "300"}, "part", True),
        ({"NodeList": "n[1-2]"}, "placed", ("n1", "n2")),
        ({"NumNodes": "2-4", "tres-alloc": "cpu=4,mem=1G,node=2"}, "memory", 2.0**29),
        # as many nodes as its tasks need: `tres-alloc` counts one, for a core or for a node
        (
            {
                "NumNodes": "2",
                "NumCPUs": "6",
                "NumTasks": "6",
                "cpus-per-task": "1",
                "MinMemory": "128M",
                "tres-alloc": "cpu=6,mem=768M,node=1",
            },
            "memory",
            3 * 128 * 2.0**20,
        ),
        (
            {
                "NumNodes": "3",
                "NumCPUs": "9",
                "NumTasks": "9",
                "cpus-per-task": "1",
                "MinMemory": "100M",
                "tres-alloc": "cpu=9,mem=100M,node=1",
            },
            "memory",
            100 * 2.0**20,
        ),
        ({"MinMemory": "0", "tres-alloc": "cpu=2,mem=4G,node=1"}, "memory", 4 * 2.0**30),  # --mem=0: all of a node
        ({"NumNodes": "2", "NumCPUs": "6", "NumTasks": "3", "cpus-per-task": "2", "MinCpus": "2"}, "threads", 4),
        (
            {"NumNodes": "2", "NumCPUs": "4", "NumTasks": "4294967294", "NTPerNode": "3", "cpus-per-task": "1"},
            "threads",
            3,
        ),
        ({"State": "RUNNING", "NumNodes": "2", "NumCPUs": "5"}, "threads", 3),
        ({"State": "PENDING", "SchedNodes": "n[6-8]"}, "planned", ("n6", "n7", "n8")),
        ({"State": "CANCELLED", "SchedNodes": "n[6-8]"}, "planned", ()),
        ({"State": "RUNNING", "SchedNodes": "n[6-8]"}, "planned", ()),
        ({"Licenses": "matlab:2"}, "special", "licenses"),
        ({"tres-per-node": "gres:gpu:1"}, "special", "generic resources"),
        ({"Contiguous": "1"}, "special", "contiguous nodes"),
        ({"CoreSpec": "1"}, "special", "specialised cores"),
        ({"reqswitch": "1"}, "special", "a number of switches"),
        ({"Threads": "2"}, "special", "threads for each core"),
        ({"Threads": "1"}, "special", ""),
        ({"Threads": "1"}, "own_core", "cpu"),
        ({"NTPerCore": "1"}, "own_core", "task"),
        ({"NTPerCore": "2"}, "special", "tasks for each core"),
        ({"NTPerCore": "2"}, "own_core", ""),
        ({"MinMemory": "512M", "tres-alloc": "cpu=2,mem=1G,node=1"}, "memory_per_cpu", 2.0**29),
        ({"MinMemory": "512M", "tres-alloc": "cpu=2,mem=512M,node=1"}, "memory_per_cpu", 0.0),
        ({"MinTime": "2:00"}, "special", "a minimum time limit"),
        ({"BurstBuffer": "capacity=1G"}, "special", "a burst buffer"),
        ({}, "special", ""),
        ({"tres-alloc": "", "MinMemory": "3G"}, "memory", 3 * 2.0**30),
        ({"TimeLimit": "UNLIMITED"}, "time_limit", None),
        ({"StartTime": "Unknown"}, "start", None),
        ({"Dependency": "afterok:300(unfulfilled)"}, "dependency", "afterok:300(unfulfilled)"),
    ],
)
def test_one_field(changed: dict[str, str], field: str, value: object) -> None:
    (job,) = squeue.queue().parse(printed(**changed), MARK)
    assert getattr(job, field) == value


#: Recorded from Slurm 22.05 on nodes of 4 cores: options -> NumNodes, MaxNodes, NumCPUs, NumTasks, cores per task, nodes
#: in `tres`, and what is unusual in the job's size.
RANGE, TOO_FEW = "a range of nodes", "more tasks than cores"
SIZES = {
    "": (1, 1, 1, 1, 1, 1, ""), "-c2": (1, 1, 2, 1, 2, 1, ""), "-N2": (2, 2, 2, 2, 1, 2, ""),
    "-n6": (2, 2, 6, 6, 1, 1, ""), "-n6 -c2": (3, 3, 12, 6, 2, 1, ""), "-n40": (10, 10, 40, 40, 1, 1, ""),
    "-n6 --ntasks-per-node=2": (3, 3, 6, 6, 1, 1, ""), "-N2 -n5": (2, 2, 5, 5, 1, 2, ""),
    "-n2 -c3": (2, 2, 6, 2, 3, 1, ""), "-N3 -n3 -c4": (3, 3, 12, 3, 4, 3, ""), "--mincpus=3": (1, 1, 1, 1, 1, 1, ""),
    "-n4 --mem-per-cpu=2000": (2, 2, 4, 4, 1, 1, ""), "-w n1,n2": (2, 2, 2, 2, 1, 2, ""),
    "-n4 --spread-job": (4, 4, 4, 4, 1, 1, ""), "-n6 --use-min-nodes": (2, 2, 6, 6, 1, 1, ""),
    "-N1-2 -n3": (2, 2, 3, 3, 1, 1, ""), "-N1-8 -n3": (3, 3, 3, 3, 1, 1, ""),
    "-N2-3": (3, 3, 1, 2, 1, 2, RANGE), "-N2-3 -n5": (3, 3, 5, 5, 1, 2, RANGE),
    "-N2-3 --use-min-nodes": (2, 3, 1, 2, 1, 2, RANGE), "-N1-2": (2, 2, 1, 1, 1, 1, RANGE),
    "-N1-2 -c4": (2, 2, 4, 1, 4, 1, RANGE), "-N2-4 -n4 --spread-job": (4, 4, 4, 4, 1, 2, RANGE),
    "-O": (1, 1, 1, 1, 1, 1, ""), "-O -n8": (1, 1, 1, 8, 1, 1, TOO_FEW), "-O -n8 -N2": (2, 2, 2, 8, 1, 2, TOO_FEW),
    "-O -n4 -c2": (1, 1, 1, 4, 2, 1, TOO_FEW), "-O -c2": (1, 1, 1, 1, 2, 1, TOO_FEW),
}  # fmt: skip


@pytest.mark.parametrize("options", SIZES)
def test_only_an_unusual_size_is_left_to_slurm(options: str) -> None:
    node_count, largest, cpus, tasks, per_task, least, unusual = SIZES[options]
    fields = {
        "NumNodes": node_count,
        "MaxNodes": largest,
        "NumCPUs": cpus,
        "NumTasks": tasks,
        "cpus-per-task": per_task,
    }
    row = printed(**{name: str(value) for name, value in fields.items()}, **{"tres-alloc": f"cpu={cpus},node={least}"})
    (job,) = squeue.queue().parse(row, MARK)
    assert job.special == unusual
    (job,) = squeue.queue().parse(row.replace("PENDING", "RUNNING"), MARK)
    assert job.special == ""


@pytest.mark.parametrize(
    "changed", [{"JobID": "x"}, {"NodeList": "n[1-"}, {"TimeLimit": "soon"}, {"SubmitTime": "now"}]
)
def test_nothing_is_known_of_an_unreadable_job_and_all_of_the_others(changed: dict[str, str]) -> None:
    report, plain_row = Unreadable(), printed(JobID="310")
    *unknown, last = squeue.queue(report).parse(printed(**changed) + plain_row, MARK)
    assert [last] == squeue.queue().parse(plain_row, MARK) and report.now == {"job": 1}
    assert [(job.id, job.state) for job in unknown] == ([] if "JobID" in changed else [(309, JobState.UNKNOWN)])
    assert all((job.comment, job.wanted) == ("", ()) for job in unknown)


def test_an_unreadable_job_is_on_its_nodes_while_it_may_run() -> None:
    bad, running = {"EligibleTime": "10240-08-12T09:21:02"}, {"State": "RUNNING", "NodeList": "n[1-2]", "NumNodes": "2"}
    (job,) = squeue.queue().parse(printed(**bad, **running), MARK)
    assert (job.state, job.placed, job.cpus, job.shares) == (JobState.UNKNOWN, ("n1", "n2"), 2, "")
    (job,) = squeue.queue().parse(printed(**bad, **running | {"NumCPUs": "x"}), MARK)
    assert (job.placed, job.shares) == (("n1", "n2"), "NO"), "without a number of cores it has its nodes for itself"
    for state in ("COMPLETED", "PENDING"):
        (job,) = squeue.queue().parse(printed(**bad, **running | {"State": state}), MARK)
        assert (job.state, job.placed) == (JobState.UNKNOWN, ())


def test_an_unreadable_row_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    table, bad = squeue.queue(), printed(EligibleTime="10240-08-12T09:21:02")
    for text in (bad, bad, bad + printed(JobID="310"), bad):
        table.parse(text, MARK)
    (record,) = caplog.records
    assert "job 309" in record.getMessage() and "10240" in record.getMessage()
    table.parse(printed(), MARK)
    table.parse(bad, MARK)
    assert len(caplog.records) == 2


def test_a_node_list_is_read_up_to_the_number_of_nodes() -> None:
    report = Unreadable()
    report.bound(4)
    for text, is_readable in (("n[1-1024]", True), ("n[1-1025]", False), ("n" * 10**6, False), ("n1,n1", False)):
        (job,) = squeue.queue(report).parse(printed(ReqNodes=text), MARK)
        assert (job.state is JobState.PENDING) is is_readable


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n[98-101]", ("n98", "n99", "n100", "n101")),
        ("n[09-100]", (*(f"n{number:02}" for number in range(9, 101)),)),
        ("n[099-100],m[2,1]", ("n099", "n100", "m2", "m1")),
    ],
)
def test_a_running_job_is_on_the_nodes_that_slurm_folded(text: str, names: tuple[str, ...]) -> None:
    (job,) = squeue.queue().parse(printed(State="RUNNING", NodeList=text), MARK)
    assert job.state is JobState.RUNNING and job.placed == names


PRINTABLE = st.text(st.characters(codec="utf-8", exclude_characters="\0"))  # as C can keep it


@given(PRINTABLE, PRINTABLE)
def test_names_and_comments_cannot_pass_for_fields(name: str, comment: str) -> None:
    if MARK in name + comment:
        return
    records = squeue.queue().parse(printed(Name=name, Comment=comment) + printed(JobID="310"), MARK)
    assert [job.id for job in records] == [309, 310]
    readable = SEPARATOR not in name + comment
    assert records[0].state is (JobState.PENDING if readable else JobState.UNKNOWN)


@given(st.integers(1, len(printed()) - 2))
def test_a_table_that_was_cut_off_is_an_error_or_whole_rows(cut: int) -> None:
    text = printed() + printed(JobID="310")
    with pytest.raises(ParseError):
        squeue.queue().parse(text[: len(printed()) + cut], MARK)


def test_no_jobs_is_an_empty_text_only() -> None:
    assert squeue.queue().parse("", MARK) == [] and squeue.queue().parse("\n", MARK) == []
    with pytest.raises(ParseError, match="cut off or garbled"):
        squeue.queue().parse("slurm_load_jobs error: Unable to contact slurm controller\n", MARK)


def test_marks_differ_and_mean_nothing_in_a_format() -> None:
    assert draw_mark() != draw_mark() and not set(draw_mark()) & set(",:%.")
    assert IncrementalTable("x", ("a", "b"), dict, "row").parse("1\x1f2 @\n", "@") == [{"a": "1", "b": "2"}]
    assert format_of(("a", "b"), "@") == ["--Format=a:0\x1f,b:0@"]


def test_excluded_nodes() -> None:
    text = f"309|n1{MARK}\n310|(null){MARK}\n311|{MARK}\n312|n[3-4]{MARK}\n".replace("|", SEPARATOR)
    transport = CommandTransport(lambda argv: text.replace(MARK, argv[-1].partition("%x")[2]))
    assert transport.excluded() == {309: ("n1",), 312: ("n3", "n4")}
    assert [job for job, _ in squeue.excluded().parse(text.replace("310", "x"), MARK)] == [309, 311, 312]
    assert (309, None) in squeue.excluded().parse(text.replace("n1", "cpu1,gpu1,cpu1"), MARK)


def test_nodes_of_several_partitions_are_one() -> None:
    row = ("n1", "idle+drain", "4", "4096", "virt,ssd", "main", "x\ny State=IDLE", "1/3/0/4", "512", "1", "2")
    text = "".join(f"{SEPARATOR.join((*row[:5], p, *row[6:]))}{MARK}\n" for p in ("main", "shared"))
    (node,) = squeue.merged(squeue.node_table().parse(text, MARK))
    assert (node.name, node.state, node.cpus, node.memory) == ("n1", NodeState.DRAINED, 4, 4 * 2.0**30)
    assert (node.idle, node.free, node.core, node.socket) == (3, 3.5 * 2.0**30, 2, 4)
    assert (node.features, node.partitions) == (frozenset({"virt", "ssd"}), frozenset({"main", "shared"}))


def test_assumed_memory_bandwidth_is_reported() -> None:
    """Slurm reports cores and memory of its nodes, but neither instructions per cycle nor bandwidth."""
    nodes = [SlurmNode(name, NodeState.UP, 4, 4 * 2.0**30) for name in ("n1", "n2")]
    cluster, notes = cluster_of([*nodes, SlurmNode("future", NodeState.DOWN, 0, 0.0)], "mesocentre")
    assert cluster.name == "mesocentre"
    assert [(node.name, node.type.cores) for node in cluster.nodes] == [("n1", 4), ("n2", 4)]
    assert notes == ("memory bandwidth of nodes like c4-4GiB is unknown to Slurm: 10 GB/s assumed",)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10:00", 600), ("30", 1800), ("1:00:00", 3600), ("1-00:00:00", 86400), ("2-12", 216000), ("1-1:30", 91800),
     ("UNLIMITED", None), ("N/A", None), ("00:05", 5)],
)  # fmt: skip
def test_spans(text: str, seconds: float | None) -> None:
    assert span(text) == seconds


@pytest.mark.parametrize(
    ("text", "value"), [("256M", 2.0**28), ("4G", 2.0**32), ("1.50T", 1.5 * 2**40), ("512", 2.0**29), ("128K", 2.0**17),
                        ("256Mc", 2.0**28), ("N/A", None)]
)  # fmt: skip
def test_sizes(text: str, value: float | None) -> None:
    assert size(text) == value


@pytest.mark.parametrize(("text", "value"), [("4", 4), ("2-4", 2), ("2K", 2048), ("UNLIMITED", None), ("(null)", None)])
def test_counts(text: str, value: int | None) -> None:
    assert count(text) == value


@pytest.mark.parametrize("read", [span, size, count, moment])
@given(st.text())
def test_any_text_is_a_number_none_or_a_value_error(read: object, text: str) -> None:
    try:
        value = read(text)
    except ValueError:
        return
    assert value is None or value >= 0 or read is moment


def test_tres() -> None:
    assert tres("cpu=2,gres/gpu:a100=1") == {"cpu": "2", "gres/gpu:a100": "1"} and tres("") == {}


@pytest.mark.parametrize(
    ("words", "state"),
    [(word, state) for word, state in JOB_STATES.items()]
    + [("CANCELLED by 1000", JobState.CANCELLED), ("COMPLETED,COMPLETING", JobState.RUNNING),
       ("RUNNING+CONFIGURING", JobState.CONFIGURING), ("PENDING,REQUEUED", JobState.PENDING), ("", JobState.UNKNOWN),
       ("BRAND_NEW", JobState.UNKNOWN), ("RUNNING+BRAND_NEW", JobState.UNKNOWN), ("completed", JobState.COMPLETED)],
)  # fmt: skip
def test_states_of_jobs(words: str, state: JobState) -> None:
    assert job_state(words) is state


@pytest.mark.parametrize(
    ("words", "state"),
    [("idle", NodeState.UP), ("mixed", NodeState.UP), ("allocated+planned", NodeState.UP), ("IDLE+CLOUD", NodeState.UP),
     ("idle+drain", NodeState.DRAINED), ("drained*", NodeState.DRAINED), ("down*", NodeState.DOWN),
     ("down", NodeState.DOWN), ("idle~", NodeState.ASLEEP), ("idle%", NodeState.DOWN),
     ("IDLE+NOT_RESPONDING+POWERED_DOWN", NodeState.ASLEEP),
     ("idle+drain~", NodeState.DRAINED), ("idle#", NodeState.UP), ("unk*", NodeState.UNKNOWN),
     ("idle+maint", NodeState.DRAINED), ("reserved", NodeState.DRAINED), ("never_seen", NodeState.UNKNOWN),
     ("unk", NodeState.UNKNOWN), ("idle*", NodeState.UNKNOWN), ("alloc*", NodeState.UNKNOWN),
     ("", NodeState.UNKNOWN), ("MIXED+NOT_RESPONDING", NodeState.UNKNOWN), ("reboot^", NodeState.DOWN)],
)  # fmt: skip
def test_states_of_nodes(words: str, state: NodeState) -> None:
    assert node_state(words) is state


def test_a_text_that_is_too_long_for_its_nodes_is_not_expanded() -> None:
    """Whatever it names: the work on a text is bounded by what may be true."""
    assert (
        squeue.nodes("n" * 64, 1) == ("n" * 64,)
        and len(squeue.nodes(",".join(f"{'n' * 62}{i}" for i in "123"), 3)) == 3
    )
    for text in ("n" * 65, "n1," * 40):
        with pytest.raises(ValueError, match=r"a node list of [0-9]+ characters"):
            squeue.nodes(text, 1)
