"""likwid-perfctr's CSV over the generations."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.profiles.probes.likwid import Likwid, conclude, parse

FIVE = """\
STRUCT,Info,3,,
CPU name:,Intel(R) Xeon(R) Platinum 8360Y CPU @ 2.40GHz,,,
CPU type:,Intel Icelake SP processor,,,
CPU clock:,2.39 GHz,,,
TABLE,Group 1 Raw,MEM,4,
Event,Counter,HWThread 0,HWThread 1,
INSTR_RETIRED_ANY,FIXC0,3000,1000,
CPU_CLK_UNHALTED_CORE,FIXC1,1500,500,
CAS_COUNT_RD,MBOX0C0,100,0,
CAS_COUNT_WR,MBOX0C1,50,0,
TABLE,Group 1 Raw STAT,MEM,1,,
Event,Counter,Sum,Min,Max,Avg
INSTR_RETIRED_ANY STAT,FIXC0,4000,1000,3000,2000
TABLE,Group 1 Metric,MEM,3,
Metric,HWThread 0,HWThread 1,
Runtime (RDTSC) [s],2.0,2.0,
Memory bandwidth [MBytes/s],1500,0,
Memory data volume [GBytes],3.5,0,
TABLE,Group 1 Metric STAT,MEM,1,,
Metric,Sum,Min,Max,Avg
Memory data volume [GBytes] STAT,3.5,0,3.5,1.75
"""
FOUR = """\
TABLE,Region triad,Group 1 Raw,MEM,1,
Event,Counter,Core 0,Core 10,
INSTR_RETIRED_ANY,FIXC0,3000,1000,
TABLE,Region triad,Group 1 Metric,MEM,2,
Metric,Core 0,Core 10,
Runtime (RDTSC) [s],2.0,2.0,
Memory data volume [GBytes],1.25,2.25,
"""
THREE = """\
Event,core 0,core 1
INSTR_RETIRED_ANY,3000,1000
CPU_CLK_UNHALTED_CORE,4000,nan
Metric,core 0,core 1
Runtime (RDTSC) [s],2.0,2.0
Memory data volume [GBytes],3.5,-
"""


def test_the_newest_format():
    found = conclude(FIVE)
    assert (found.moved_bytes, found.ipc, found.problem) == (3.5e9, 2.0, "")


def test_sockets_and_regions_are_added_up():
    assert conclude(FOUR).moved_bytes == 3.5e9
    assert conclude(FOUR + FOUR).moved_bytes == 7e9
    assert conclude(FOUR).ipc is None


def test_the_oldest_format_and_invalid_numbers():
    found = conclude(THREE)
    assert (found.moved_bytes, found.instructions, found.cycles) == (3.5e9, 4000, 4000)


def test_statistics_do_not_count_twice():
    values, complete = parse(FIVE)
    assert values["INSTR_RETIRED_ANY"] == [3000, 1000] and complete
    assert not [name for name in values if name.endswith("STAT")]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it did not count: it printed nothing"),
        ("ERROR: Counter register FIXC0 is in use\n", "it did not count: ERROR: Counter register FIXC0"),
        (FIVE.partition("Memory bandwidth")[0], "LIKWID's output was cut short"),
        (FIVE.partition("CAS_COUNT_WR")[0], "LIKWID's output was cut short"),
    ],
)
def test_output_without_memory_volume_is_unknown(text, problem):
    found = conclude(text)
    assert found.moved_bytes is None and found.problem.startswith(problem)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(FIVE)), st.text(alphabet="TABLE,Event\n0123456789.-", max_size=30))
def test_garbage_never_raises(cut, rubbish):
    found = conclude(FIVE[:cut] + rubbish)
    assert (found.moved_bytes is None) == bool(found.problem)


@pytest.mark.real
def test_the_command_counts_until_stop(tmp_path, monkeypatch):
    """A substitute for likwid-perfctr: it has group MEM, runs its command, and then prints."""
    (tmp_path / "out.csv").write_text(FIVE)
    tool = tmp_path / "likwid-perfctr"
    tool.write_text(
        "#!/bin/sh\n"
        f'if [ "$1" = -a ]; then echo "  MEM  Memory bandwidth"; exit; fi\necho "$@" > {tmp_path}/asked\n'
        f"shift 5; test $1 = cat && $1 && exec /bin/cat {tmp_path}/out.csv\n"
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    (tmp_path / "sys/devices/system/cpu").mkdir(parents=True)
    (tmp_path / "sys/devices/system/cpu/online").write_text("0-3,8\n")
    from pilotfish.profiles.probes.process_tree import ProcessTree

    likwid, tree = Likwid(tmp_path), ProcessTree(1)
    assert likwid.available() is None
    likwid.start(tree, 0.0)
    assert likwid.stop().moved_bytes == 3.5e9
    assert (tmp_path / "asked").read_text() == "-O -g MEM -c 0-3,8 cat\n"


@pytest.mark.real
def test_an_unavailable_probe_says_why(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "no likwid-perfctr command" in Likwid().available()
    (tmp_path / "likwid-perfctr").write_text("#!/bin/sh\necho 'ERROR: Unsupported processor' >&2; exit 1\n")
    (tmp_path / "likwid-perfctr").chmod(0o755)
    assert Likwid().available() == "LIKWID has no group MEM for this processor: ERROR: Unsupported processor"
