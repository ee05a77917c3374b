"""The queue of a running Slurm 22.05, as `scontrol -ao show job` printed it, as the jobs of a site."""

from __future__ import annotations

import random
from pathlib import Path

from pilotfish.formats.site.site_folder import read_site
from pilotfish.simulate.slurm.site import Site
from tests.support.slurm_queue_lines import RUNNING, SUBMIT, WAITING, line
from tests.support.slurm_site_files import FILES, write_site


def site_now(tmp_path: Path, *lines: str, **changes: str) -> Site:
    texts = {name: text for name, text in FILES.items() if name not in ("sacct.psv", "events.psv", "slurm.conf")}
    texts["scontrol_config.txt"] = "\n".join(FILES["slurm.conf"].replace("=", " = ", 1).split("\n")[:1])
    texts["scontrol_node.txt"] = "".join(f"NodeName=n{i} CPUTot=8 RealMemory=16000 State=IDLE\n" for i in range(1, 5))
    texts["scontrol_part.txt"] = "PartitionName=main Nodes=n[1-4] Default=YES\nPartitionName=fast Nodes=n[1-2]\n"
    return read_site({**texts, "scontrol_job.txt": "".join(lines), **changes})


def test_a_waiting_job_has_no_start_and_a_running_one_no_end(tmp_path: Path) -> None:
    waiting, running = site_now(tmp_path, line(3, WAITING), line(4, RUNNING)).jobs
    assert (waiting.runs[0].start, waiting.runs[0].end, waiting.runs[0].nodes) == (None, None, ())
    assert (running.runs[0].start, running.runs[0].end) == (SUBMIT + 3600, None)
    assert running.runs[0].nodes == ("n1", "n2") and running.runs[0].started_by == "backfill"
    assert waiting.limit_min == running.limit_min == 20 and waiting.submit == SUBMIT
    assert (waiting.user, waiting.account, waiting.qos, waiting.partitions) == ("ann", "lab", "high", ("main",))


def test_nodes_of_a_waiting_job_are_those_that_it_requests_and_not_an_estimate(tmp_path: Path) -> None:
    estimated, ranged = site_now(tmp_path, line(3, WAITING), line(4, WAITING, count="1-3")).jobs
    assert (estimated.min_nodes, estimated.max_nodes, estimated.tasks) == (1, None, 4)
    assert (ranged.min_nodes, ranged.max_nodes) == (1, 3)


def test_every_request_becomes_the_option_that_made_it(tmp_path: Path) -> None:
    (job,) = site_now(
        tmp_path,
        line(
            5, WAITING, name="a b|c", after="afterok:3(unfulfilled),singleton(failed)", nice=10, requeue=0, least="00:05:00",
            deadline="2026-03-03T06:00:00", part="fast,main", required="n2", excluded="n[3-4]", tasks="6", each="2", per="3",
            memory="MinMemoryNode=1000M", features="a&b", shared="NO", whole="1", licences="matlab:2",
            more="TresPerNode=gres:gpu:2 ", reason="Dependency", count="2-2",
        ),
    ).jobs  # fmt: skip
    assert (job.name, job.partitions, job.dependency) == ("a b|c", ("fast", "main"), "afterok:3,singleton")
    assert (job.tasks, job.cpus_per_task, job.tasks_per_node, job.min_nodes, job.max_nodes) == (6, 2, 3, 2, 2)
    assert (job.memory_per_node_mib, job.gpus_per_node, job.time_min_min) == (1000, 2, 5)
    assert (job.required_nodes, job.excluded_nodes, job.constraint) == (("n2",), ("n3", "n4"), "a&b")
    assert job.is_exclusive and job.is_contiguous and not job.is_requeued and job.nice == 10
    assert job.deadline == SUBMIT + 86_400 and job.licences == {"matlab": 2}


def test_begin_hold_and_the_rest_of_an_array(tmp_path: Path) -> None:
    later = line(4, WAITING, array="ArrayJobId=4 ArrayTaskId=1-2%1 ArrayTaskThrottle=1 ", reason="BeginTime",
                 eligible="2026-03-02T08:00:00")  # fmt: skip
    held = line(7, WAITING, reason="JobHeldUser", priority=0, eligible="Unknown")
    site = site_now(tmp_path, later, held)
    assert [(job.id, job.begin, job.array_limit) for job in site.jobs[:2]] == [
        ("4_1", SUBMIT + 7200, 1),
        ("4_2", SUBMIT + 7200, 1),
    ]
    released = site.jobs[2].released
    assert released is not None and released > SUBMIT + 3 * 365 * 86_400


def test_nodes_that_take_no_jobs_now(tmp_path: Path) -> None:
    states = ("IDLE", "MIXED+DRAIN", "DOWN*", "ALLOCATED+COMPLETING")
    nodes = "".join(f"NodeName=n{i} CPUTot=8 State={state}\n" for i, state in enumerate(states, start=1))
    events = site_now(tmp_path, line(3, WAITING), **{"scontrol_node.txt": nodes}).events
    assert [(event.node, event.end, event.kills) for event in events] == [("n2", None, False), ("n3", None, True)]


def test_jobs_that_accounting_does_not_have_yet_are_added_to_a_folder(tmp_path: Path) -> None:
    write_site(tmp_path)
    before = [job.id for job in read_site(tmp_path).jobs]
    (tmp_path / "scontrol_job.txt").write_text(line(1, RUNNING) + line(900, WAITING))
    assert [job.id for job in read_site(tmp_path).jobs] == sorted([*before, "900"], key=int)


def test_damaged_lines_are_jobs_or_counted(tmp_path: Path) -> None:
    text, draw = line(3, WAITING) + line(4, RUNNING), random.Random(1)
    for _ in range(300):
        characters = list(text)
        for _ in range(draw.randint(1, 20)):
            characters[draw.randrange(len(characters))] = draw.choice("=\n|,-[]%():9 \0Aé")
        site = site_now(tmp_path, "".join(characters), line(5, WAITING))
        assert "5" in {job.id for job in site.jobs}
