"""TimeMin of jobs that are given to Slurm: only where it is a soft limit, never above the user's, never looser."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.findings import OK, PROBLEM
from pilotfish.adapters.slurm import _refuse_hard_time_min
from pilotfish.adapters.slurm.adapter import SlurmAdapter
from pilotfish.adapters.slurm.doctor.check_queue import time_min_findings
from pilotfish.adapters.slurm.doctor.questions import Answers
from pilotfish.adapters.slurm.handed_over.job_update import let_go_fields
from pilotfish.adapters.slurm.rest.client import Client
from pilotfish.adapters.slurm.rest.failover import FailoverTransport
from pilotfish.adapters.slurm.rest.transport import RestTransport
from pilotfish.adapters.slurm.transport.command_transport import CommandTransport
from pilotfish.adapters.slurm.transport.scontrol import Configuration, hard_time_min, parse_settings
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.plan import Release
from tests.adapters.slurm.handed_over.test_job_update import JOB
from tests.adapters.slurm.rest.test_client import Always, body
from tests.adapters.slurm.rest.test_forms import ALL, number, offers
from tests.adapters.slurm.test_users_text import CLUSTER, HELD, NODE, NOW, SELECTION, SITE, Slurm, form_of, transport_of
from tests.support.slurm_rest_fake import FakeRest

SOFT = "SchedulerParameters     = bf_continue,time_min_as_soft_limit"


def config(version: str, parameters: str = SOFT) -> str:
    return f"{SITE['config']}\nSLURM_VERSION           = {version}\n{parameters}\n"


class Versioned(Slurm):
    """Slurm's commands of a version."""

    def __init__(self, text: str, *rows: Any) -> None:
        super().__init__(*rows)
        self.text = text

    def __call__(self, argv: Sequence[str]) -> str:
        return self.text if list(argv) == ["scontrol", "show", "config"] else super().__call__(argv)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (config("22.05.8"), "Slurm 22.05.8 cuts the time limits of such jobs for good"),
        (config("23.02.7"), "Slurm 23.02.7 cuts"),
        (config("23.11.1", "SchedulerParameters     = bf_continue"), "has no time_min_as_soft_limit"),
        (SITE["config"], "an unknown version"),
        (config("23.11.1"), ""),
        (config("25.05.3"), ""),
    ],
)
def test_it_is_soft_from_a_version_on_and_with_a_word(text: str, words: str) -> None:
    why = hard_time_min(Configuration(text))
    assert (words in why) if words else why == ""
    assert parse_settings(text).hard_time_min == why
    (finding,) = time_min_findings(Answers("pilotfish", config=Configuration(text)), is_wanted=True)
    assert (finding.level, why in finding.says) == (PROBLEM if words else OK, True)
    assert time_min_findings(Answers("pilotfish", config=Configuration(text)), is_wanted=False) == []


@pytest.mark.parametrize(
    ("changes", "expected_s", "time_min"),
    [
        ({"time_limit": 7200.0}, 600.0, "15"),
        ({"time_limit": 7200.0}, 0.0, "1"),
        ({"time_limit": 7200.0}, None, None),
        ({"time_limit": None}, 600.0, None),
        ({"time_limit": 900.0}, 600.0, None),
        ({"time_limit": 7200.0, "special": "a minimum time limit"}, 600.0, None),
    ],
)
def test_it_is_the_prediction_with_a_margin_below_the_limit(
    changes: dict[str, Any], expected_s: float | None, time_min: str | None
) -> None:
    fields = let_go_fields(replace(JOB, **changes), expected_s)
    assert fields == {"StartTime": "now", **({} if time_min is None else {"TimeMin": time_min})}


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    ("version", "wanted", "written"),
    [("23.11.1", True, True), ("23.11.1", False, False), ("22.05.8", True, False)],
)
def test_a_released_job_gets_it_in_the_same_command(version: str, wanted: bool, written: bool, read_only: bool) -> None:
    slurm = Versioned(config(version), HELD)
    transport = transport_of("squeue", slurm, [], [0.0])
    adapter = SlurmAdapter(CLUSTER, transport, SELECTION, clock=lambda: 0.0, time_min=wanted)
    for _ in range(8):  # a snapshot reads one thing that changes rarely
        adapter.snapshot()
    release = Release("slurm/8", "it gains nothing", 60.0)
    if read_only:
        lines = adapter.preview(release)
        assert slurm.updates == [] and any("TimeMin=2" in line for line in lines) is written
        return
    adapter.apply(release)
    assert slurm.updates == [("8", ("StartTime=now", *(["TimeMin=2"] if written else [])))]


@pytest.mark.parametrize(
    ("version", "changes", "sent", "by_command"),
    [
        (44, {}, {"begin_time": number(NOW - 1), "time_minimum": number(2)}, []),
        (44, {"time_minimum": number(5)}, {"begin_time": number(NOW - 1)}, []),  # its user's own
        (38, {}, None, [("8", ("StartTime=now", "TimeMin=2"))]),  # what REST cannot write, scontrol writes
    ],
)
def test_over_rest_it_is_one_request(
    real: None, version: int, changes: dict[str, Any], sent: dict[str, Any] | None, by_command: list[Any]
) -> None:
    slurm, base = Versioned(config("23.11.1"), HELD), f"/slurm/v0.0.{version}"
    form = form_of(HELD) | {"time_limit": number(10)} | changes
    with closing(FakeRest()) as fake:
        fake.answers |= {
            "/openapi/v3": (200, json.dumps(offers(version, takes=ALL)).encode()),
            f"{base}/diag": body(statistics={"req_time": NOW}),
            f"{base}/jobs": body(jobs=[form]),
            f"{base}/nodes": body(nodes=[NODE | {"name": name} for name in ("n1", "n2", "n3")]),
        }
        fake.answers[f"{base}/job/8"] = fake.answers[f"{base}/jobs"]
        rest = RestTransport(Client(fake.url, "backup", Always(), 5.0), lambda: 0.0)
        commands = CommandTransport(slurm, clock=lambda: 0.0, wall=lambda: NOW)
        adapter = SlurmAdapter(
            CLUSTER, FailoverTransport(rest, commands), SELECTION, clock=lambda: 0.0, time_min=True
        )  # fmt: skip
        for _ in range(8):  # a snapshot reads one thing that changes rarely
            adapter.snapshot()
        adapter.apply(Release("slurm/8", "it gains nothing", 60.0))
        posted = [json.loads(text) for method, _, _, text in fake.asked if method == "POST"]
    assert posted == ([] if sent is None else [sent]) and slurm.updates == by_command


def test_a_daemon_does_not_start_where_limits_would_be_cut() -> None:
    with pytest.raises(ConfigError, match=r"time_min: Slurm 22\.05\.8 cuts .*allowed: false; or Slurm 23\.11 or newer"):
        _refuse_hard_time_min(transport_of("squeue", Versioned(config("22.05.8")), [], [0.0]))
    _refuse_hard_time_min(transport_of("squeue", Versioned(config("23.11.1")), [], [0.0]))

    class Silent(Versioned):
        def __call__(self, argv: Sequence[str]) -> str:
            raise AdapterError("no answer", transient=True)

    _refuse_hard_time_min(transport_of("squeue", Silent(""), [], [0.0]))  # then none is written
