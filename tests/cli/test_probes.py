"""`pilotfish probes` as a person types it."""

import json

import pytest

from pilotfish.cli.__main__ import main
from pilotfish.cli.output.profiles import cost, show_probes
from pilotfish.profiles.measure.counters import KINDS
from pilotfish.profiles.probes.catalogue import BOTH, DAEMON, ProbeState, entries, examine


@pytest.mark.real
def test_every_probe_is_there_or_says_why(capsys):
    assert main(["probes", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "pilotfish/probes/v1"
    names = [probe["name"] for probe in document["probes"]]
    assert {"schedstat", "psutil", "cgroup", "perf", "likwid", "resctrl", "powercap", "hwmon"} <= set(names)
    for probe in document["probes"]:
        assert (probe["missing"] is None) == (probe["look_s"] is not None and probe["look_s"] >= 0)
        assert probe["missing"] != ""


def test_the_table_cuts_nothing_off_and_is_80_wide(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    why = "because of \x1b[31m" + " ".join(f"reason{i}" for i in range(30))
    perf = ProbeState("perf", "job", "instructions", BOTH, why)
    show_probes([perf, ProbeState("io", "job", "bytes", (DAEMON,), None, 12e-6, 0.031)])
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert "reason29" in out and "\x1b" not in out
    assert out.index("io ") < out.index("perf ")
    assert "12 us" in out and "31 ms" in out and " daemon  bytes" in out


def test_each_is_used_by_somebody_and_the_daemon_can_be_told_of_its_own(tmp_path):
    probes = {entry.name: entry for entry in entries(tmp_path)}
    assert set(KINDS) <= {name for name, entry in probes.items() if entry.used_by == BOTH}
    assert [name for name, entry in probes.items() if not entry.used_by] == ["oar"]


def test_costs():
    assert (cost(None), cost(0.0), cost(9.9e-3), cost(0.5)) == ("unknown", "0 us", "9900 us", "500 ms")


@pytest.mark.real
def test_a_machine_without_anything_under_its_root(tmp_path):
    states = {finding.name: finding for finding in map(examine, entries(tmp_path))}
    assert all(states[name].missing for name in ("cgroup", "pressure", "perf", "resctrl", "powercap", "hwmon"))


def test_a_wrong_command_line():
    assert main(["probes", "--nonsense"]) == 64
    assert main(["probes", "extra"]) == 64
