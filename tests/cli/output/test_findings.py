"""Output of `doctor`: 80 columns, with paths and commands that can be copied."""

from __future__ import annotations

import pytest

from pilotfish.adapters.findings import NOTE, WARNING, Finding
from pilotfish.cli.output.text import show_findings


def test_a_path_is_never_broken_at_a_hyphen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = "no pilotfish daemon listens at /srv/cluster-one/run-time/pilotfish-main.sock: jobs wait for their hold"
    show_findings([Finding(NOTE, "service", text)])
    printed = capsys.readouterr().out
    assert all(len(line) <= 80 for line in printed.splitlines())
    assert "/srv/cluster-one/run-time/pilotfish-main.sock:" in printed.split()


def test_commands_have_a_prompt_and_lines_of_files_do_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    command = "sacctmgr modify user where name=pilotfish set AdminLevel=Operator"
    line = "PriorityFlags=ACCRUE_ALWAYS   # in slurm.conf, if it matters"
    roots = "systemctl start pilotfishd"
    mend = command, roots, "systemctl status munge"
    show_findings([Finding(WARNING, "rights", "too few", mend), Finding(NOTE, "priority", "no age", (line,))])
    printed = capsys.readouterr().out.splitlines()
    assert f"         # {roots}" in printed and "         $ systemctl status munge" in printed
    assert f"         $ {command}" in printed and f"         {line}" in printed
    assert max(map(len, printed)) <= 80


@pytest.mark.parametrize("columns", [40, 55, 80])
def test_findings_fit_a_narrow_terminal(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    show_findings([Finding(WARNING, "rights", "too few of them " * 9)])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= columns and all(line.startswith(" " * 21) for line in lines[1:-2])
