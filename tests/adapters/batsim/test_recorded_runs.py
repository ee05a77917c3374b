"""Recorded runs of the real Batsim, both ways: our engine says what Batsim said, and our component may answer so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pilotfish.adapters.batsim.policy_component import PolicyComponent
from pilotfish.adapters.batsim.replay_under_component import replay_under_component
from pilotfish.cli.inputs import read_machine
from pilotfish.formats.batsim.messages import DECISIONS, intervals_of, read_message
from pilotfish.formats.replays.results_write import BY_END, jobs_csv
from pilotfish.formats.replays.workloads import read_workload
from pilotfish.simulate.model.machine import machine_of, speeds_of, storages_of
from pilotfish.simulate.queue_policies.policy_specs import parse
from pilotfish.simulate.queue_policies.uncompiled import uncompiled
from tests.support.batsim_recordings import recorded, recorded_messages

#: Seconds that a message takes from a host to the master in the recorded platform; what the configuration said.
RUNS: dict[str, tuple[float, dict[str, bool]]] = {
    "floats": (2e-4, {"profiles-forwarded-on-submission": True}),
    "dynamic": (2e-4, {"profiles-forwarded-on-submission": True, "dynamic-jobs-enabled": True,
                       "dynamic-jobs-acknowledged": True}),
    "energy": (1.5e-4, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_our_engine_says_what_batsim_said(name: str) -> None:
    """The recorded scheduler's replies are played back; the first message is compared without the order of profiles."""
    latency_s, config = RUNS[name]
    messages, inputs = recorded_messages(name), recorded(f"protocol_inputs/{name}")
    cluster, workload = read_machine(inputs / "platform.xml"), inputs / "workload.json"
    jobs = read_workload(workload, speeds=speeds_of(cluster), storages=storages_of(cluster))
    sent, at = list[bytes](), 0

    def ask(message: bytes) -> bytes:
        nonlocal at
        sent.append(message)
        at += 2
        return messages[at - 1][1]

    replayed, count = replay_under_component(
        ask, name, jobs, machine_of(cluster), [workload], config=config, latency_s=latency_s
    )
    recording = [text for sender, text in messages if sender == "batsim"]
    begins, real = json.loads(sent[0]), json.loads(recording[0])
    begins["events"][0]["data"]["workloads"] = real["events"][0]["data"]["workloads"]  # the recording has other paths
    assert begins == real and sent[0].startswith(recording[0][: recording[0].index(b'"workloads"')])
    assert sent[1:] == recording[1:] and count == len(recording)
    check_jobs(inputs / "jobs.csv", jobs_csv(replayed, order=BY_END).decode())


def check_jobs(path: Path, written: str) -> None:
    """Compare jobs.csv: the rows in their order, names and texts as they are, numbers to six decimals."""
    lines, expected = written.splitlines(), path.read_text().splitlines()
    assert lines[0] == expected[0]
    names = expected[0].split(",")
    of_ours = {(row[1] == "dynamic", row[0]): row for row in (line.split(",") for line in lines[1:])}
    for row in (line.split(",") for line in expected[1:]):
        values = dict(zip(names, of_ours[row[1] == "dynamic", row[0]], strict=True))
        for name, text in zip(names, row, strict=True):
            if name in ("workload_name", "consumed_energy"):
                continue
            if name in ("job_id", "profile", "final_state", "allocated_resources", "metadata") or not text:
                assert values[name] == text
            else:
                assert float(values[name]) == pytest.approx(float(text), abs=2e-6)


class Watch:
    """What a scheduler may answer: jobs that were submitted, once each, on hosts that are free."""

    def __init__(self) -> None:
        self.waiting: dict[str, int] = {}
        self.held: dict[str, set[int]] = {}
        self.hosts: set[int] = set()

    def hears(self, event: dict[str, Any]) -> None:
        data = event["data"]
        if event["type"] == "SIMULATION_BEGINS":
            self.hosts = set(range(data["nb_compute_resources"]))
        elif event["type"] == "JOB_SUBMITTED":
            self.waiting[data["job_id"]] = data["job"]["res"]
        elif event["type"] == "JOB_COMPLETED":
            self.hosts |= self.held.pop(data["job_id"])

    def answers(self, event: dict[str, Any]) -> None:
        data, kind = event["data"], event["type"]
        assert kind in ("EXECUTE_JOB", "REJECT_JOB", "SET_JOB_METADATA", "CALL_ME_LATER")
        if kind == "EXECUTE_JOB":
            hosts = {host for first, last in intervals_of(data["alloc"]) for host in range(first, last + 1)}
            assert len(hosts) == self.waiting.pop(data["job_id"]) and hosts <= self.hosts
            self.hosts, self.held[data["job_id"]] = self.hosts - hosts, hosts
        elif kind == "REJECT_JOB":
            del self.waiting[data["job_id"]]


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("spec", ["easy", "strict", "conservative"])
def test_our_component_answers_the_recorded_batsim(name: str, spec: str) -> None:
    component, watch = PolicyComponent(uncompiled(parse(spec), 0), spec, needs_walltimes=spec != "strict"), Watch()
    messages = [text for sender, text in recorded_messages(name) if sender == "batsim"]
    for i, text in enumerate(messages):
        message = json.loads(text)
        for event in message["events"]:
            if event["type"] == "JOB_COMPLETED" and event["data"]["job_id"] not in watch.held:
                return  # the recorded scheduler went another way from here on
            watch.hears(event)
        raw, last = component.answer(text)
        reply = json.loads(raw)
        assert read_message(raw, DECISIONS, spec).now == message["now"] == reply["now"]
        for event in reply["events"]:
            assert event["timestamp"] == message["now"]
            watch.answers(event)
        assert last == (i == len(messages) - 1)
    assert not watch.waiting and watch.held.keys() <= {"w0!3"}  # which has no walltime, and was rejected
