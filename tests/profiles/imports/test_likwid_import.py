"""CSV of likwid-perfctr becomes a profile, with or without marked regions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.profiles.imports import likwid_import
from pilotfish.simulate.errors import ConfigError

HEAD = """STRUCT,Info,3,,
CPU name:,Intel(R) Core(TM) i5-7500 CPU @ 3.40GHz,,,
CPU type:,Intel Kabylake processor,,,
CPU clock:,3.4,,,
"""
TABLES = """TABLE,{0}Group 1 Raw,MEM,4,
Event,Counter,HWThread 0,HWThread 1,HWThread 2
INSTR_RETIRED_ANY,FIXC0,6800000000,3400000000,1000
CPU_CLK_UNHALTED_CORE,FIXC1,6800000000,3400000000,2000
DRAM_READS,MBOX0C1,100,0,0
TABLE,{0}Group 1 Raw STAT,MEM,4,
Event,Counter,Sum,Min,Max,Avg
INSTR_RETIRED_ANY STAT,FIXC0,99,1,1,1
TABLE,{0}Group 1 Metric,MEM,4,
Metric,HWThread 0,HWThread 1,HWThread 2,
Runtime (RDTSC) [s],2.0,2.0,2.0,
Runtime unhalted [s],2.0,1.0,0.0,
Clock [MHz],3400,3400,-,
CPI,1.0,1.0,2.0,
Memory bandwidth [MBytes/s],3000,0,nil,
TABLE,{0}Group 1 Metric STAT,MEM,4,
Metric,Sum,Min,Max,Avg
Runtime (RDTSC) [s] STAT,6.0,2.0,2.0,2.0
"""
WHOLE = HEAD + TABLES.format("")


def test_a_whole_run():
    (found,) = likwid_import.parse(WHOLE, "x").runs
    (group,) = found.run.groups
    assert (found.name, group.count, group.demand, group.utilisation) == ("x", 2, 1.5, 0.75), "an idle thread is none"
    assert found.run.bandwidth == pytest.approx(3000e6 * 2.0 / 3.0), "of a thread while it runs"
    assert found.run.ipc == pytest.approx(1.0, rel=1e-6) and found.run.cpu_model.startswith("Intel(R) Core(TM) i5-7500")


def test_each_marked_region_is_a_run():
    text = HEAD + TABLES.format("Region solve,") + TABLES.format("Region write,").replace("3000,", "30,")
    solve, write = likwid_import.parse(text, "x").runs
    assert (solve.name, write.name) == ("x solve", "x write")
    assert solve.run.bandwidth == pytest.approx(100 * write.run.bandwidth)


def test_without_counts_the_threads_are_busy_and_the_traffic_unknown():
    text = "TABLE,Group 1 Metric,BRANCH,2,\nMetric,Core 0,Core 1\nRuntime (RDTSC) [s],4,4\nCPI,0.5,0.5\n"
    (found,) = likwid_import.parse(text, "x").runs
    assert (found.run.threads, found.run.groups[0].demand, found.run.ipc) == (2, 4.0, 2.0)
    assert found.run.bandwidth is None and found.run.instructions is None and "bandwidth unknown" in found.note


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n", "no table of metrics"),
        (HEAD, "no table of metrics"),
        (WHOLE.replace("Runtime (RDTSC) [s],2.0,2.0,2.0", "Runtime (RDTSC) [s],0,0,0"), "its run time is 0"),
        (WHOLE.replace("CPI,1.0", "CPI,fast"), "line 18: found 'fast'"),
        (WHOLE.replace("CPI,1.0,1.0,2.0,", "CPI,"), "no values of 'CPI'"),
        (WHOLE.replace("6800000000", "6" * 400), "a number of 0 or more"),
        (WHOLE.replace("2.0,2.0,2.0", "2,0,2,0,2,0"), "line 15: more values than the 3 of its header"),
        (WHOLE.replace("FIXC0,6800000000", "FIXC0,6800000000,5"), "line 7: more values than the 3 of its header"),
    ],
)
def test_malformed_files_are_rejected(text, said):
    with pytest.raises(ConfigError) as error:
        likwid_import.parse(text, "x")
    assert said in str(error.value)


@given(st.integers(0, len(WHOLE)), st.text(max_size=20))
def test_a_truncated_file_is_a_run_or_one_error(cut, more):
    try:
        assert all(found.run.cpu_s > 0 for found in likwid_import.parse(WHOLE[:cut] + more, "x").runs)
    except ConfigError as error:
        assert error.problem
