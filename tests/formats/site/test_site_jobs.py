"""Jobs: what their commands say, and what records say where the commands do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pilotfish.formats.site.site_folder import read_site
from pilotfish.simulate.slurm.site import Site, SiteJob
from tests.support.slurm_site_files import CONF, records, row, write_site


def site(folder: Path, *rows: str, conf: str = CONF) -> Site:
    return read_site(write_site(folder, slurm_conf=conf, sacct_psv=records(*rows)))


def only(folder: Path, conf: str = CONF, **fields: str) -> SiteJob:
    (job,) = site(folder, row(**fields), conf=conf).jobs
    return job


def of_line(folder: Path, line: str, **fields: str) -> SiteJob:
    return only(folder, SubmitLine=f"sbatch {line} --wrap=x", **fields)


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("-n4 -c2", {"tasks": 4, "cpus_per_task": 2, "min_cpus": 8, "min_nodes": 1, "max_nodes": None}),
        ("-N2-4 -n8", {"min_nodes": 2, "max_nodes": 4, "tasks": 8}),
        ("-N2", {"min_nodes": 2, "max_nodes": 2, "tasks": 2}),
        ("-N4 -n2", {"min_nodes": 2, "tasks": 2}),
        ("-N2 --ntasks-per-node=3", {"tasks": 6, "tasks_per_node": 3, "min_cpus": 6}),
        ("-N2 --exclusive", {"tasks": 2, "is_exclusive": True, "min_cpus": 2}),
        ("-n1 --exclusive=user", {"is_exclusive": False}),
        ("-n2 --mem=4G", {"memory_per_node_mib": 4096, "memory_per_cpu_mib": None}),
        ("-n2 --mem=0", {"memory_per_node_mib": 0}),
        ("-n2 --mem=4G --mem-per-cpu=500", {"memory_per_node_mib": None, "memory_per_cpu_mib": 500}),
        ("-p a,b -n1", {"partitions": ("a", "b")}),
        ("-C thin|fat -n1", {"constraint": "thin|fat"}),
        ("-w n[1-2] -x n3", {"required_nodes": ("n1", "n2"), "excluded_nodes": ("n3",), "min_nodes": 2}),
        ("--begin=now+2hours -n1", {"begin": 1772431200.0 + 7200}),
        ("-b now+60 -n1", {"begin": 1772431260.0}),
        ("--begin=2026-03-02T07:00 -n1", {"begin": 1772434800.0}),
        ("--begin=teatime -n1", {"begin": 1772431200.0}),  # that of the record
        ("--deadline=2026-03-03 -n1", {"deadline": 1772496000.0}),
        ("-n1", {"begin": None, "deadline": None, "released": None, "nice": 0, "is_requeued": True}),
        ("-H -n1", {"released": 1772431200.0}),
        ("--nice -n1", {"nice": 100}),
        ("--nice=-5 -n1", {"nice": -5}),
        ("-L a:2,b -n1", {"licences": {"a": 2, "b": 1}}),
        ("--no-requeue -n1", {"is_requeued": False}),
        ("--no-requeue --requeue -n1", {"is_requeued": True}),
        ("--contiguous -n1", {"is_contiguous": True}),
        ("-d afterok:1?after:2+5 -n1", {"dependency": "afterok:1?after:2+5"}),
        ("--reservation=course -n1", {"reservation": "course"}),
        ("--time-min=5 -t 1:00:00 -n1", {"time_min_min": 5, "limit_min": 60}),
        ("--gres=gpu:a100:2 -n1", {"gpus_per_node": 2}),
        ("-G 4 -N2", {"gpus_per_node": 2}),
        ("--gpus-per-node=a100:3 -n1", {"gpus_per_node": 3}),
    ],
)
def test_options(tmp_path: Path, line: str, values: dict[str, Any]) -> None:
    job = of_line(tmp_path, line)
    assert {name: getattr(job, name) for name in values} == values


def test_a_job_that_was_eligible_sooner_than_its_line_says_begins_then(tmp_path: Path) -> None:
    job = of_line(tmp_path, "--begin=now+60 -n1", Eligible="2026-03-02T06:00:59")
    assert job.begin == 1772431259.0


@pytest.mark.parametrize(
    ("memory", "kind"),
    [
        ("4000Mn", {"memory_per_node_mib": 4000}),
        ("2Gc", {"memory_per_cpu_mib": 2048}),
        ("32000M", {}),  # all of two nodes: Slurm's default
        ("6000M", {"memory_per_node_mib": 3000}),
        ("0", {}),
    ],
)
def test_memory_of_a_record_without_a_command(tmp_path: Path, memory: str, kind: dict[str, int]) -> None:
    job = only(tmp_path, SubmitLine="", ReqMem=memory, ReqNodes="2", ReqCPUS="4", ReqTRES="cpu=4")
    expected = {"memory_per_node_mib": None, "memory_per_cpu_mib": None, **kind}
    assert {name: getattr(job, name) for name in expected} == expected


def test_memory_that_is_not_counted(tmp_path: Path) -> None:
    conf = CONF.replace("CR_Core_Memory", "CR_Core")
    assert only(tmp_path, conf, SubmitLine="", ReqMem="4000Mn").memory_per_node_mib is None


def test_memory_by_default_for_each_cpu(tmp_path: Path) -> None:
    conf = CONF.replace("ClusterName=small", "ClusterName=small\nDefMemPerCPU=500")
    jobs = {
        memory: only(tmp_path, conf, SubmitLine="", ReqMem=memory, ReqCPUS="4", ReqTRES="")
        for memory in ("2000M", "1000M")
    }
    assert (jobs["2000M"].memory_per_node_mib, jobs["2000M"].memory_per_cpu_mib) == (None, None)
    assert jobs["1000M"].memory_per_node_mib == 1000


def test_whole_nodes_are_seen_without_a_command(tmp_path: Path) -> None:
    fields = {"SubmitLine": "", "NodeList": "n[1-2]", "AllocNodes": "2", "ReqNodes": "2", "ReqTRES": "cpu=2"}
    job = only(tmp_path, AllocCPUS="16", ReqCPUS="16", **fields)
    assert (job.is_exclusive, job.tasks, job.min_cpus) == (True, 2, 2)
    assert not only(tmp_path, AllocCPUS="16", ReqCPUS="16", **{**fields, "ReqTRES": "cpu=16"}).is_exclusive
    conf = CONF.replace("Nodes=n[1-4] Default", "OverSubscribe=EXCLUSIVE Nodes=n[1-4] Default")
    assert not only(tmp_path, conf, AllocCPUS="16", ReqCPUS="16", **fields).is_exclusive


def test_cpus_of_a_script_come_from_the_record(tmp_path: Path) -> None:
    job = only(
        tmp_path,
        SubmitLine="sbatch job.sh",
        ReqCPUS="6",
        AllocCPUS="6",
        ReqTRES="cpu=6",
        ReqNodes="2",
        NodeList="n[1-2]",
    )
    assert (job.min_cpus, job.min_nodes, job.max_nodes) == (6, 2, None)


@pytest.mark.parametrize(
    ("text", "line", "limit"),
    [("10", "-t 99", 10), ("", "-t 1-0", 1440), ("", "", None), ("Partition_Limit", "", 240), ("UNLIMITED", "-p fast", 30),
     ("UNLIMITED", "-p other", 525_600), ("UNLIMITED", "-t 0", 240)],
)  # fmt: skip
def test_time_limits(tmp_path: Path, text: str, line: str, limit: int | None) -> None:
    assert of_line(tmp_path, line, TimelimitRaw=text).limit_min == limit


def test_a_held_job_that_was_never_released(tmp_path: Path) -> None:
    waits = {"SubmitLine": "sbatch -H --wrap=x", "Eligible": "Unknown", "Start": "Unknown", "NodeList": "None assigned"}
    cancelled = row(JobID="2", State="CANCELLED by 1", AllocNodes="0", AllocCPUS="0", **waits)
    pending = row(JobID="3", State="PENDING", **{**waits, "End": "Unknown"})
    _, *held = site(tmp_path, row(End="2026-03-02T08:00:00"), cancelled, pending).jobs
    assert [job.released for job in held] == [1772431301.0, 1772438401.0]  # after its end, and that of the dump


def test_a_command_that_the_record_contradicts(tmp_path: Path) -> None:
    result = site(tmp_path, row(), row(JobID="2", ReqCPUS="4", ReqTRES="cpu=4"))
    assert [job.min_cpus for job in result.jobs] == [2, 2]
    assert any(sentence.startswith("1 job with other CPUs in the record") for sentence in result.unknown)
    assert not any("other CPUs" in sentence for sentence in site(tmp_path, row()).unknown)


def test_what_is_not_followed_is_told(tmp_path: Path) -> None:
    lines = ("--switches=1 -n1 --wrap=x", "--exclusive=user --wrap=x", "--frob=3 --wrap=x", "job.sh")
    result = site(tmp_path, *(row(JobID=str(i), SubmitLine=f"sbatch {line}") for i, line in enumerate(lines)))
    assert len(result.jobs) == 4
    for sentence in (
        "--switches: not followed, 1 job", "--exclusive=user: not followed, 1 job", "options that are not known: --frob",
        "1 job submitted as a script: its options are seen only where sacct shows their effect",
    ):  # fmt: skip
        assert sentence in result.unknown


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("--gres=shard:2", "--gres=shard: not followed, 1 job"),
        ("--gres=gpu:a100:2", "--gres with a type of GPU: not followed, 1 job"),
        ("--gpus-per-node=a100:2", "--gpus-per-node with a type of GPU: not followed, 1 job"),
        ("--gres=gpu:2", ""),
        ("--gpus=2", ""),
    ],
)
def test_resources_that_are_not_followed_are_counted(tmp_path: Path, option: str, sentence: str) -> None:
    result = site(tmp_path, row(SubmitLine=f"sbatch {option} --wrap=x"))
    assert [text for text in result.unknown if text.startswith("--")] == [sentence] * bool(sentence)


@pytest.mark.parametrize("year", ["0001", "1970", "9999"])
def test_jobs_of_a_clock_that_was_wrong_are_left_out(year: str, tmp_path: Path) -> None:
    wrong = row(JobID="7", **dict.fromkeys(("Submit", "Eligible", "Start", "End"), f"{year}-01-01T00:00:00"))
    recorded = site(tmp_path, wrong, row(JobID="8"), row(JobID="9"))
    assert [job.id for job in recorded.jobs] == ["8", "9"]
    assert any("1 job submitted more than 10 years before or after most others" in text for text in recorded.unknown)
