"""`whatif --adapter slurm`: the starts of waiting jobs from what a running Slurm prints, as it is and under scenarios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Any

import pytest

from pilotfish.cli.__main__ import main
from pilotfish.cli.output.present_waits import present_document, show_present
from pilotfish.cli.output.text import Screen
from pilotfish.cli.whatif.change_options import ChangeOptions
from pilotfish.cli.whatif.present_queue import present_queue
from pilotfish.cli.whatif.scenarios import CHANGED, Scenario, scenarios_of
from pilotfish.formats.site.site_file_list import PRESENT
from tests.support.slurm_queue_lines import RUNNING, SUBMIT, WAITING, line, present_texts

NOW = SUBMIT + 4200.0
ALL = {**RUNNING, "nodes": "n[1-4]", "count": "4", "cpus": "32", "limit": "01:00:00", "shared": "NO", "name": "sim"}
#: A running job that ends 50 minutes from now at the latest, and one that waits for two of its nodes.
JOBS = (line(1, ALL), line(2, WAITING, shared="NO", count="2-2", tasks="2", cpus="2"))
SACCT = "JobID|JobName|User|Account|QOS|Partition|State|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|ReqNodes|ReqCPUS\n"
#: A job of the same user and name that ran for 20 minutes.
PAST = "9|sim|ann|lab|high|main|COMPLETED|2026-03-01T06:00:00|2026-03-01T06:00:00|2026-03-01T06:00:00|2026-03-01T06:20:00|1200|60|4|32\n"


def texts(*jobs: str, **changes: str) -> dict[str, str]:
    return present_texts(*(jobs or JOBS), **changes)


def starts(files: Mapping[str, str], choices: Sequence[Scenario] = (), draws: int = 3) -> list[list[float]]:
    """Return the median start of each waiting job under each scenario, seconds from now."""
    queue = present_queue(files, choices, "UTC", range(draws))
    assert queue.time == NOW
    return [[float(start - NOW) for start in one.start] for one in queue.scenarios]


def test_without_a_past_jobs_run_until_their_limits() -> None:
    ((start,),) = starts(texts())
    assert 3000 <= start <= 3000 + 120


def test_run_times_are_drawn_from_those_of_like_jobs() -> None:
    files = texts(**{"sacct.psv": SACCT + "".join(f"{number}{PAST}" for number in range(5))})
    ((start,),) = starts(files, draws=9)
    assert 0 <= start <= 1200 * 1.5 - 600 + 120, "it has run for 10 minutes; such jobs took 20"
    queue = present_queue(files, (), "UTC", range(2))
    assert queue.learned == 5 and queue.predicted == 2


def test_nodes_that_are_drained_at_a_time_of_day_delay_the_job_and_let_the_running_one_go_on() -> None:
    choices = scenarios_of(ChangeOptions(drain=["n[1-3]@07:30..10:00"]), (), None)
    queue = present_queue(texts(), choices, "UTC", range(3))
    before, after = (one.start[0] - NOW for one in queue.scenarios)
    assert before < 3200 and 10200 <= after <= 10200 + 120
    (drain,) = queue.scenarios[1].drains
    assert (drain.nodes, drain.start - NOW, drain.running, drain.in_time) == (3, 1200.0, 1, 0)
    assert drain.late == (("1", 1.0),)


@pytest.mark.real  # threads
def test_scenarios_that_go_on_at_the_same_time_change_nothing() -> None:
    drains = [ChangeOptions(drain=[f"n[1-{last}]@07:30..10:00"]) for last in (1, 2, 3, 4)]
    choices = [Scenario(str(number), change) for number, change in enumerate([*drains, ChangeOptions()])]
    queues = [present_queue(texts(), choices, "UTC", range(3), workers) for workers in (1, 4)]
    results = [
        [(one.name, one.start.tolist(), one.early.tolist(), one.drains) for one in queue.scenarios] for queue in queues
    ]
    assert results[0] == results[1] and len({str(result[1]) for result in results[0]}) > 1


def test_seconds_of_a_drain_count_from_now() -> None:
    choices = (Scenario(CHANGED, ChangeOptions(drain=["n1@600..1200"])),)
    (drain,) = present_queue(texts(), choices, "UTC", range(1)).scenarios[1].drains
    assert (drain.start - NOW, drain.end - NOW) == (600.0, 1200.0)


def test_a_setting_is_followed_from_now_on() -> None:
    rest = (
        line(2, WAITING, shared="NO", count="4-4", tasks="4"),
        line(3, WAITING, priority=5, limit="00:05:00", count="1-1"),
    )
    half = {**ALL, "nodes": "n[1-2]", "count": "2", "cpus": "16"}
    choices = scenarios_of(ChangeOptions(), ["none: --set SchedulerType=sched/builtin"], None)
    as_it_is, without = starts(texts(line(1, half), *rest), choices)
    assert as_it_is[1] < 120, "it fits into the hole before the wide job"
    assert without[1] > 2900


@pytest.mark.parametrize(
    "words",
    [{"reason": "JobHeldUser", "priority": 0}, {"reason": "DependencyNeverSatisfied", "after": "afterok:9(failed)"}],
)
def test_a_job_that_does_not_start_by_itself_has_no_start(words: Mapping[str, Any]) -> None:
    assert starts(texts(line(2, WAITING, eligible="Unknown", **words))) == [[float("inf")]]


class Played:
    """Slurm's commands, played: counts the requests."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files, self.asked_for = files, list[list[str]]()

    def __call__(self, argv: Sequence[str]) -> str:
        from pilotfish.formats.site.site_file_list import SITE_FILES

        self.asked_for.append(list(argv))
        since = argv[argv.index("-S") + 1] if "-S" in argv else ""
        until = argv[argv.index("-E") + 1] if "-E" in argv else ""
        return next(
            (text for name, text in self.files.items() if SITE_FILES[name].argv(since, until) == list(argv)), ""
        )


@pytest.fixture
def slurm(monkeypatch: pytest.MonkeyPatch) -> Played:
    from pilotfish.adapters.slurm.transport import runner

    played = Played(texts(*JOBS, line(3, WAITING, reason="JobHeldUser", priority=0, eligible="Unknown")))
    monkeypatch.setattr(runner, "CommandRunner", lambda timeout_s: played)
    return played


def test_the_command_asks_slurm_once_for_each_file_and_changes_nothing(
    slurm: Played, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["whatif", "--adapter", "slurm", "--drain", "n1@08:30..", "--repeat", "2", "--workers", "1"]) == 0
    printed = capsys.readouterr().out
    assert "1 job running, 2 waiting" in printed and "until the time limits" in printed
    assert "80 %: of the draws; no forecast for the past was compared with its start" in printed
    assert "1 node from 03-02 08:30: 1 of 1 running job there ends in time" in printed
    assert "held" in printed and "changed" in printed
    assert len(slurm.asked_for) == len(PRESENT), "sacct, but no switches"
    assert all("show" in argv or argv[0] in ("sshare", "sacct") for argv in slurm.asked_for)


def test_the_report_says_how_many_starts_of_the_past_were_compared(capsys: pytest.CaptureFixture[str]) -> None:
    hours = [(f"{hour:02}:30:00", f"{hour + 1:02}:20:00", f"{hour + 1:02}:50:00") for hour in range(6)]
    past = "".join(
        f"{number}|sim|ann|lab|high|main|COMPLETED|{day}{submit}|{day}{submit}|{day}{start}|{day}{end}|1800|60|4|32\n"
        for day in ("2026-03-01T", "2026-03-02T")
        for number, (submit, start, end) in enumerate(hours, 90)
    )
    queue = present_queue(texts(**{"sacct.psv": SACCT + past}), (), "UTC", range(2))
    assert queue.compared > 0 and present_document(queue)["starts_compared"] == queue.compared
    show_present(Screen(), queue, UTC)
    assert f"widened where forecasts for the past missed ({queue.compared} start" in " ".join(
        capsys.readouterr().out.split()
    )


def test_the_document_has_every_job_and_scenario(slurm: Played, capsys: pytest.CaptureFixture[str]) -> None:
    import json

    assert main(["whatif", "--adapter", "slurm", "--scenario", "a: --add-nodes 2", "--json", "--workers", "1"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in document["scenarios"]] == ["as it is", "a"]
    first, changed = (one["jobs"] for one in document["scenarios"])
    assert first[0]["start"] >= NOW + 3000 and changed[0]["start"] <= NOW + 120
    assert first[1] == {"id": "3", "held": True, "start": None, "start_within": [None, None]}


@pytest.mark.parametrize(
    "words",
    [("site",), ("--sacct", "x"), ("--starts", "x.csv"), ("--scale-load", "2"), ("--resume", "x")],
)
def test_what_belongs_to_a_recorded_site_is_refused(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["whatif", *words, "--adapter", "slurm"]) == 64
    assert words[0].replace("site", "SITE") in capsys.readouterr().err


def test_without_a_site_and_an_adapter_the_error_names_both(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["whatif"]) == 64
    assert "--adapter slurm" in capsys.readouterr().err


def test_another_resource_manager_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["whatif", "--adapter", "oar"]) != 0
    assert "slurm" in capsys.readouterr().err
