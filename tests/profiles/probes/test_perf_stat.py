"""The CSV of `perf stat` over the generations, by the shape of a line."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.profiles.probes.imc import conclude as traffic
from pilotfish.profiles.probes.perf import PerfCount, conclude, parse

# Linux 2.6.32 to 3.13: value, event.
OLDEST = """
2015.349211,task-clock
6000000,instructions
3000000,cycles
<not counted>,LLC-load-misses
"""
# Linux 3.14 to 3.x: value, unit, event; then the time it ran and its share (4.x), then a metric.
SKYLAKE = """\
# started on Tue Mar  5 10:00:00 2019

2000.50,msec,task-clock,2000500000,100.00,1.000,CPUs utilized
9000000000,,instructions:u,2000400000,100.00,1.50,insn per cycle
6000000000,,cycles:u,2000400000,100.00,3.000,GHz
1000000,,LLC-load-misses:u,2000400000,100.00,,
500000,,LLC-store-misses:u,2000400000,100.00,,
"""
# Alder Lake (two kinds of cores, each counting for its part of the time), Linux 6.
HYBRID = """\
1000.00,msec,task-clock,1000000000,100.00,0.998,CPUs utilized
3000,,cpu_core/instructions/,600000000,60.00,,
1000,,cpu_atom/instructions/,400000000,40.00,,
2000,,cpu_core/cycles/u,600000000,60.00,,
<not counted>,,cpu_atom/cycles/u,0,0.00,,
"""
SOCKETS = "S0,8,1000,MiB,uncore_imc_0/cas_count_read/,5,100.00,,\nS1-D0,8,5e2,,broken\n" + (
    "S1-D0,8,500,MiB,uncore_imc_0/cas_count_read/,5,100.00,,\n"
)
ONE_CPU = "     1.000111,CPU3,42,,cycles,10,100.00\n"
REPEATED = "120,,cycles,0.50%,1000,100.00,,\n"
SPELT_OUT = "77,,cpu/event=0x3c,umask=0x1/,1000,100.00,,\n88,,r01c2,1000,100.00,,\n"
#: By control group (-G), which stands behind the event.
GROUP = """\
2000.50,msec,task-clock,pilotfish-0/job-1,2000500000,100.00,0.500,CPUs utilized
9000,,instructions,pilotfish-0/job-1,2000400000,100.00,1.50,insn per cycle
6000,,cycles,pilotfish-0/job-1,1200400000,60.00,,
<not counted>,,LLC-load-misses,pilotfish-0/job-1,0,0.00,,
"""
NO_PMU = "0.84,msec,task-clock,837814,100.00,0.552,CPUs utilized\n<not supported>,,instructions,0,100.00,,\n"


def test_the_oldest_format_has_no_units_or_shares():
    found = parse(OLDEST)
    assert found["instructions"] == PerfCount(6e6)
    assert found["LLC-load-misses"] == PerfCount(None, None, "not counted")


def test_units_become_seconds_and_bytes():
    found = parse(SKYLAKE)
    assert found["task-clock"].value == pytest.approx(2.0005)
    assert found["instructions"] == PerfCount(9e9, 1.0, user_only=True)
    assert parse("3,MiB,uncore_imc/data_reads/,9,100.00,,")["data_reads"].value == 3 * 2**20


def test_the_control_group_follows_the_event():
    found = parse(GROUP)
    assert found["task-clock"] == PerfCount(pytest.approx(2.0005), 1.0)
    assert found["instructions"] == PerfCount(9000.0, 1.0) and found["cycles"] == PerfCount(6000.0, 0.6)
    assert found["LLC-load-misses"].problem == "not counted"
    assert parse("5,,cycles,pilotfish-0/job-1\n")["cycles"] == PerfCount(5.0)


def test_hybrid_cores_are_added_up():
    found = parse(HYBRID)
    assert found["instructions"] == PerfCount(4000.0, 1.0)
    assert found["cycles"] == PerfCount(2000.0, 0.6, user_only=True)


def test_prefixes_are_skipped():
    assert parse(SOCKETS)["cas_count_read"].value == 1500 * 2**20
    assert parse(ONE_CPU)["cycles"] == PerfCount(42.0, 1.0)
    assert parse(REPEATED)["cycles"] == PerfCount(120.0, 1.0)


def test_spelled_out_events_keep_their_commas():
    assert parse(SPELT_OUT) == {"event=0x3c,umask=0x1": PerfCount(77.0, 1.0), "r01c2": PerfCount(88.0, 1.0)}


@pytest.mark.parametrize(
    "text", ["", "\n\n", "Error:\nno access\n", "1234", "1234,,", ",,cycles", "0,84,msec,task-clock", "1,5,MiB,cycles"]
)
def test_other_lines_are_not_counts(text):
    assert "cycles" not in parse(text) and parse(text).get("task-clock", PerfCount(None)).value is None


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(SKYLAKE)), st.text(max_size=20))
def test_a_truncated_file_never_raises_and_loses_only_its_end(cut, rubbish):
    whole = {line for line in SKYLAKE[:cut].splitlines(keepends=True) if line.endswith("\n")}
    found = parse(SKYLAKE[:cut] + rubbish)
    complete = [event for event in parse("".join(whole)) if event in parse(SKYLAKE)]
    assert set(complete) <= found.keys()


def test_a_job_on_one_machine():
    found = conclude(SKYLAKE)
    assert (found.cpu_s, found.ipc, found.instructions) == (pytest.approx(2.0005), 1.5, 9e9)
    assert found.miss_bytes == 1.5e6 * 64 and found.problem == ""
    assert found.user_only and not conclude(SKYLAKE.replace(":u", "")).user_only


def test_without_a_pmu_nothing_is_known():
    found = conclude(NO_PMU)
    assert found.ipc is None and found.miss_bytes is None and found.cpu_s == pytest.approx(84e-5)
    assert found.problem == "instructions is not supported"


def test_shared_counters_are_unknown():
    found = conclude(SKYLAKE.replace("6000000000,,cycles:u,2000400000,100.00", "6000000000,,cycles:u,1200240000,60.00"))
    assert found.ipc is None and found.problem == "stepped back: the counters were shared for 40 % of the time"


def test_perf_without_permission_says_why():
    said = "Error:\nAccess to performance monitoring and observability operations is limited.\n"
    assert conclude(said).problem.startswith("it did not count: Access to performance monitoring")


BOTH = "".join(
    f"{n},MiB,uncore_imc_{i}/{event}/,9,100.00,,\n"
    for i in (0, 1)
    for event, n in (("cas_count_read", 30), ("cas_count_write", 10))
)


def test_memory_controllers_of_servers_and_clients():
    assert traffic(BOTH).moved_bytes == 80 * 2**20
    client = "5.5,MiB,uncore_imc/data_reads/,9,100.00,,\n2.5,MiB,uncore_imc/data_writes/,9,100.00,,\n"
    assert traffic(client).moved_bytes == 8 * 2**20


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (BOTH.replace("100.00", "50.00"), "stepped back"),
        (BOTH.replace("30,", "<not counted>,"), "cas_count_read is not counted"),
        ("30,MiB,uncore_imc/data_reads/,9,100.00,,\n", "counted only data_reads"),
        ("", "it did not count: it printed nothing"),
    ],
)
def test_incomplete_traffic_is_unknown(text, problem):
    found = traffic(text)
    assert found.moved_bytes is None and problem in found.problem
