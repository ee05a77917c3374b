"""Counters of a run: the best source, the job's own counts, and the source of each number."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.cli.__main__ import main
from pilotfish.cli.output.profiles import show_run
from pilotfish.profiles.estimate import estimate
from pilotfish.profiles.measure.command import measure
from pilotfish.profiles.measure.counters import Counters, HardwareCounts, conclude
from pilotfish.profiles.measurement import Measurement
from pilotfish.profiles.probes.external_counter import EventCounts, ExternalCounter
from pilotfish.profiles.probes.resctrl import MonitoredTraffic
from pilotfish.simulate.model.job import Profile, ThreadGroup

RUN = Measurement((ThreadGroup(2, 5.0),), wall_s=5.0, isolated_s=5.0, cpu_s=10.0, method="schedstat")
PERF = EventCounts(10.0, 30.0, 20.0, miss_bytes=50.0)
IMC = EventCounts(moved_bytes=200.0)
LIKWID = EventCounts(instructions=9.0, cycles=3.0, moved_bytes=300.0)


def test_without_counters_nothing_is_known():
    assert conclude({}, 10.0, 5.0, alone=True) == HardwareCounts()


def test_the_best_probe_is_used():
    all_of_them = {
        "perf": PERF,
        "perf-imc": IMC,
        "resctrl": MonitoredTraffic(100.0),
        "likwid": LIKWID,
        "hwmon": 250.0,
        "powercap": {"package-0": 400.0, "package-0 dram": 100.0},
    }
    found = conclude(all_of_them, 10.0, 5.0, alone=True)
    assert (found.ipc, found.instructions, found.bandwidth, found.power_watts) == (1.5, 30.0, 10.0, 250.0)
    assert found.sources["bandwidth"] == "resctrl"
    for gone, rate in (("resctrl", 20.0), ("perf-imc", 30.0), ("likwid", 5.0), ("perf", None)):
        del all_of_them[gone]
        assert conclude(all_of_them, 10.0, 5.0, alone=True).bandwidth == rate
    del all_of_them["hwmon"]
    found = conclude(all_of_them, 10.0, 5.0, alone=True)
    assert found.power_watts == 100.0 and "RAPL" in found.sources["power_watts"]


def test_node_counts_are_ignored_if_other_processes_ran():
    node = {"perf-imc": IMC, "likwid": LIKWID, "hwmon": 250.0}
    node["powercap"] = {"package-0": 1.0}
    found = conclude(node, 10.0, 5.0, alone=False)
    assert (found.ipc, found.bandwidth, found.power_watts) == (None, None, None)
    assert found.notes == ("other processes ran too: counts of the whole node are not this job's",)
    assert conclude(node | {"perf": PERF}, 10.0, 5.0, alone=False).bandwidth == 5.0


def test_partial_instructions_are_discarded():
    found = conclude({"perf": replace(PERF, cpu_s=4.0)}, 10.0, 5.0, alone=True)
    assert (found.ipc, found.instructions, found.bandwidth) == (1.5, None, 12.5)
    assert found.notes == ("perf: counted 40 % of the CPU time, too little for instructions",)


def test_user_only_counts_are_labelled():
    assert conclude({"perf": replace(PERF, user_only=True)}, 10.0, 5.0, alone=True).sources["ipc"] == (
        "perf, outside the kernel"
    )


def test_a_probe_that_stepped_back_leaves_a_note():
    found = conclude({"perf": EventCounts(problem="stepped back: emon uses the counters")}, 10.0, 5.0, alone=True)
    assert found == HardwareCounts(notes=("perf: stepped back: emon uses the counters",))


NUMBER = st.none() | st.floats(0, 1e15)


@settings(max_examples=200, deadline=None)
@given(
    st.builds(EventCounts, NUMBER, NUMBER, NUMBER, miss_bytes=NUMBER),
    st.builds(EventCounts, moved_bytes=NUMBER),
    st.booleans(),
    st.floats(0, 1e6),
)
def test_numbers_and_sources_match(perf, traffic, alone, cpu_s):
    found = conclude({"perf": perf, "perf-imc": traffic}, cpu_s, 1.0, alone=alone)
    known = {name for name in ("instructions", "ipc", "bandwidth", "power_watts") if getattr(found, name) is not None}
    assert known == found.sources.keys()


def counted(ipc, source="perf", **more):
    return replace(RUN, ipc=ipc, sources={"ipc": source}, **more)


def test_a_profile_names_the_sources_of_its_numbers():
    profile = estimate("p", [counted(1.0), counted(3.0), counted(1.2)])
    assert profile.ipc == 1.2 and "; IPC by perf" in profile.provenance.note


def test_runs_of_different_sources_are_not_mixed():
    assert estimate("p", [counted(9.0, "LIKWID"), counted(9.0, "LIKWID"), counted(1.2)]).ipc == 1.2
    kept = estimate("p", [counted(1.2), RUN])
    assert kept.ipc == 1.2 and "IPC by perf" in kept.provenance.note


def test_uncounted_values_stay_as_known():
    known = Profile((ThreadGroup(2, 5.0, bandwidth=7.0),), ipc=0.5, instructions=8.0, power_watts=90.0)
    profile = estimate("p", [counted(1.2)], known)
    assert (profile.ipc, profile.instructions, profile.power_watts) == (1.2, 8.0, 90.0)
    assert profile.groups[0].bandwidth == 7.0


def test_counted_bandwidth_is_not_called_given():
    run = replace(RUN, bandwidth=5.0, sources={"bandwidth": "resctrl"})
    profile = estimate("p", [run])
    assert profile.groups[0].bandwidth == 5.0
    assert "bandwidth by resctrl" in profile.provenance.note and "given" not in profile.provenance.note
    assert "bandwidth given by the user" in estimate("p", [replace(run, sources={})]).provenance.note


def test_a_run_survives_json():
    run = counted(1.2, bandwidth=5.0, notes=("perf: no",))
    assert Measurement.from_dict(json.loads(json.dumps(run.to_dict()))) == run
    before = {key: value for key, value in RUN.to_dict().items() if key not in ("sources", "notes", "ipc")}
    assert Measurement.from_dict(before) == RUN


def test_a_run_is_shown_with_its_sources(capsys):
    show_run("p", counted(1.234, power_watts=80.0, notes=("perf: \x1b[1mno",)), None)
    out = capsys.readouterr().out
    assert "IPC: 1.23 (perf)" in out and "power: 80.0 W (source unknown)" in out and "counters: perf: \\x1b[1mno" in out


@pytest.fixture
def perf(tmp_path, monkeypatch):
    """A substitute for perf with counts a little above those of any job here."""
    counts = "9.00,msec,task-clock,1,100.00,,\n900,,instructions,1,100.00,,\n600,,cycles,1,100.00,,\n"
    tool = tmp_path / "perf"
    tool.write_text(f"#!/bin/sh\ncat\nprintf '{counts}' >&2\n".replace("\n900", "\\n900").replace("\n600", "\\n600"))
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    (tmp_path / "sys/bus/event_source/devices/cpu").mkdir(parents=True)
    return tmp_path


@pytest.mark.real
def test_a_counted_command_keeps_its_exit_code(perf, monkeypatch):
    monkeypatch.setattr("pilotfish.profiles.measure.command.Counters", lambda: Counters(perf))
    code, run = measure(["/bin/sh", "-c", "sleep 0.2; exit 3"], counters=True)
    assert (code, run.ipc, run.sources["ipc"]) == (3, 1.5, "perf")
    assert measure(["/bin/true"])[1].ipc is None


@pytest.mark.real
def test_counting_ends_if_observing_fails(perf, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("we were wrong")

    attached = []
    monkeypatch.setattr("pilotfish.profiles.measure.observer.JobObserver.sample", fail)
    monkeypatch.setattr("pilotfish.profiles.measure.command.Counters", lambda: Counters(perf))
    monkeypatch.setattr(
        "pilotfish.profiles.probes.external_counter.ExternalCounter",
        lambda *args: attached.append(ExternalCounter(*args)) or attached[0],
    )
    with pytest.raises(RuntimeError):
        measure(["/bin/sleep", "30"], counters=True)
    assert attached and attached[0].ready


def test_given_values_replace_counted_ones(tmp_path, monkeypatch, capsys):
    run = replace(RUN, bandwidth=5.0, ipc=1.5, sources={"bandwidth": "resctrl", "ipc": "perf"})
    monkeypatch.setattr("pilotfish.profiles.measure.command.measure", lambda *_, **__: (0, run))
    options = ["--store", str(tmp_path / "store.sqlite"), "--name", "p", "--bandwidth", "2GB/s", "--json"]
    assert main(["profile", "run", *options, "--", "true"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["profile"]["bandwidth"] == 2e9 and found["runs"][0]["sources"] == {"ipc": "perf"}
    assert found["profile"]["ipc"] == 1.5
