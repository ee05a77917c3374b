"""Output of `perf stat -x` of several generations becomes a profile."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.profiles.imports import perf_import
from pilotfish.simulate.errors import ConfigError

#: perf 6: a unit for the duration, modifiers, a metric on a line of its own, a counter that the machine does not have.
NEW = """# started on Tue Feb  3 04:05:06 2026

3801.50,msec,task-clock:u,3801500000,100.00,1.900,CPUs utilized
2000000000,ns,duration_time,2000000000,100.00,,
22809000000,,instructions:u,3801500000,83.30,2.00,insn per cycle
11404500000,,cycles:u,3801500000,83.30,3.000,GHz
,,,,,0.10,stalled cycles per insn
<not supported>,,LLC-load-misses:u,0,100.00,,
<not counted>,,branches:u,0,0.00,,
"""
CONTROLLERS = "".join(
    f"{mib},MiB,uncore_imc_{i}/cas_count_{way}/,2000000000,100.00,,\n"
    for i, (way, mib) in enumerate([("read", 1000.5), ("write", 499.5), ("read", 0)])
)


def one(text):
    (found,) = perf_import.parse(text, "x").runs
    return found


def test_a_whole_run():
    found = one(NEW)
    (group,) = found.run.groups
    assert (group.count, group.demand) == (2, pytest.approx(1.90075)) and found.run.wall_s == 2.0
    assert (found.run.ipc, found.run.instructions, found.run.date) == (2.0, 22809000000, "2026-02-03T04:05:06")
    assert found.run.bandwidth is None and "bandwidth unknown" in found.note


def test_memory_controllers_give_the_bandwidth_of_a_running_thread():
    found = one(NEW + CONTROLLERS)
    assert found.run.bandwidth == pytest.approx(1500 * 2**20 / 3.8015)
    assert "whole machine" in found.note


def test_without_a_duration_the_utilised_cpus_give_it():
    found = one("3801.50;msec;task-clock;1;100.00;1.900;CPUs utilized\n")
    assert found.run.wall_s == pytest.approx(3.8015 / 1.9) and found.run.ipc is None


def test_intervals_and_cpus_add_up():
    text = "".join(f"{t}.000{t},S0,4,500.0,msec,task-clock,1,100\n" for t in (1, 2))
    text += "1.0,1000000000,,duration_time,1,100\n"
    assert (one(text).run.cpu_s, one(text).run.wall_s) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# started on Tue Feb  3 04:05:06 2026\n", "task-clock was not counted"),
        ("<not counted>,msec,task-clock,0,100.00,,\n", "task-clock was not counted"),
        ("100.0,msec,task-clock,1,100.00,,\n", "its duration is missing"),
        ("perf: command not found\n", "line 1: found 'perf: command"),
        (NEW[: NEW.index(",msec") + 5] + "\n", "line 3: 2 fields"),
        ("-5.0,msec,task-clock,1,100\n", "line 1: found '-5.0'"),
        ("100.0,msec,task-clock,1,100.00,many,CPUs utilized\n", "line 1: found 'many'"),
    ],
)
def test_malformed_files_name_the_line(text, said):
    with pytest.raises(ConfigError) as error:
        one(text)
    assert said in str(error.value)


@given(st.integers(0, len(NEW)), st.text(max_size=20))
def test_a_truncated_file_is_a_run_or_one_error(cut, more):
    try:
        assert one(NEW[:cut] + more).run.cpu_s > 0
    except ConfigError as error:
        assert error.problem


def intervals(parts, form="{t:.9f},{value},{unit},{event},1,100.00,,\n"):
    """What `perf stat -I 1000` prints: for each second the CPU seconds and MiB moved."""
    lines = ["#           time,counts,unit,events\n"]
    for t, (cpu_s, mib) in enumerate(parts, 1):
        lines.append(form.format(t=t + 0.000123, value=f"{cpu_s * 1e3:.2f}", unit="msec", event="task-clock"))
        lines.append(form.format(t=t + 0.000123, value=f"{mib:.2f}", unit="MiB", event="uncore_imc/data_reads/"))
    return "".join(lines)


TWO = [(1.0, 500.0)] * 60 + [(1.0, 4000.0)] * 40


def test_traffic_that_changes_between_intervals_makes_phases():
    found = one(intervals(TWO))
    (group,) = found.run.groups
    assert found.run.wall_s == pytest.approx(100.0, abs=0.01) and found.run.cpu_s == pytest.approx(100.0)
    assert [phase.share for phase in group.phases] == pytest.approx([0.6, 0.4], abs=0.02)
    assert [phase.bandwidth for phase in group.phases] == pytest.approx([500 * 2**20, 4000 * 2**20], rel=0.02)
    (parts,) = found.run.to_profile().groups
    moved = sum(phase.share * phase.utilisation * phase.bandwidth for phase in parts.phases)
    assert moved == pytest.approx(1900 * 2**20, rel=0.02)


def test_cpu_time_that_changes_makes_phases_without_any_traffic():
    (group,) = one(intervals([(1.0, 0.0)] * 50 + [(0.2, 0.0)] * 50)).run.groups
    assert [phase.utilisation for phase in group.phases] == pytest.approx([1.0, 0.2], abs=0.02)
    assert one(intervals([(1.0, 500.0)] * 100)).run.groups[0].phases == ()


def test_a_summary_after_the_intervals_is_not_counted_twice():
    text = intervals(TWO) + "             summary,100000.00,msec,task-clock,1,100.00,,\n"
    assert one(text).run.cpu_s == pytest.approx(100.0)
    both = intervals(TWO, "{t:.9f},{value},{unit},{event},1,100.00,,\n").replace("task-clock", "cpu-clock")
    assert one(intervals(TWO) + both).run.cpu_s == pytest.approx(100.0)


def test_numbers_of_another_locale():
    german = one("3801,50;msec;task-clock;3801500000;100,00;1,900;CPUs utilized\n")
    assert german.run.cpu_s == pytest.approx(3.8015) and german.run.wall_s == pytest.approx(3.8015 / 1.9)
    form = "{t:.9f};{value};{unit};{event};1;100,00;;\n"
    series = one(intervals(TWO, form).replace(".", ","))
    assert len(series.run.groups[0].phases) == 2 and series.run.cpu_s == pytest.approx(100.0)


@pytest.mark.parametrize(
    "text",
    [
        "3801,50,msec,task-clock,3801500000,100,00,1,900,CPUs utilized\n",
        "3801,50,msec,task-clock:u,3801500000,100,00,1,900,CPUs utilized\n2000000000,ns,duration_time,1,100,00,,\n",
        "1,000123,3801,50,msec,task-clock,1,100,00,,\n",
        "S0,4,3801,50,msec,task-clock,1,100,00,,\n",
        "CPU0,3801,50,msec,task-clock,1,100,00,,\n",
        "1,50,MiB,uncore_imc/data_reads/,1,100,00,,\n",
    ],
)
def test_a_decimal_comma_between_commas_is_refused(text):
    with pytest.raises(ConfigError, match=r"line 1: a decimal comma .*LC_ALL=C"):
        one(text)


def test_truncated_intervals_are_read_to_their_end():
    text = intervals(TWO)
    assert one(text[: text.index("70.000123")]).run.wall_s == pytest.approx(69.0, abs=0.01)


def test_impossible_cpu_time_is_rejected():
    with pytest.raises(ConfigError, match="CPU seconds in"):
        one(NEW.replace("3801.50,", "18446744073709551614,"))
