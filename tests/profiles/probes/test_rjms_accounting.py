"""The books of resource managers as a probe: there, or missing for a reason that names the setting."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest

from pilotfish.profiles.probes import accounting
from pilotfish.profiles.probes.catalogue import FEW_LOOKS, Entry, examine

#: as Slurm 22.05 prints it
CONFIG = """Configuration data as of 2026-11-22T05:15:12
AccountingStorageHost   = 127.0.0.1
AccountingStorageType   = accounting_storage/slurmdbd
AcctGatherEnergyType    = acct_gather_energy/none
JobAcctGatherType       = jobacct_gather/linux
JobAcctGatherParams     = (null)
"""


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """sacct and oarstat are on the PATH; what they do is told by the test."""
    for name in ("sacct", "oarstat"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")


class Slurm:
    """What `scontrol show config` prints, and what is wrong with it or with `sacct`."""

    def __init__(self, config: str = CONFIG, wrong: str = "", sacct: str = "") -> None:
        self.config, self.wrong, self.sacct, self.asked = config, wrong, sacct, list[str]()

    def __call__(self, argv: Sequence[str]) -> tuple[str, str]:
        self.asked.append(argv[0])
        return ("", self.sacct) if argv[0] == "sacct" else (self.config, self.wrong)


def examined(slurm: Slurm):
    return examine(Entry("slurm", "job", "CPU time", lambda: accounting.slurm(slurm), FEW_LOOKS))


def test_books_that_are_kept_are_there_and_cost_little(commands) -> None:
    slurm = Slurm()
    found = examined(slurm)
    assert found.missing is None and found.look_s is not None
    assert slurm.asked == ["scontrol", *["sacct"] * FEW_LOOKS]


@pytest.mark.parametrize(
    ("slurm", "why"),
    [
        (Slurm(CONFIG.replace("slurmdbd", "none")), "no accounting: AccountingStorageType=accounting_storage/none"),
        (Slurm(CONFIG.replace("accounting_storage/slurmdbd", "(null)")), "AccountingStorageType=(null)"),
        (Slurm(CONFIG.replace("gather/linux", "gather/none")), "of its jobs: JobAcctGatherType=jobacct_gather/none"),
        (Slurm(CONFIG.replace("JobAcctGatherType ", "X ")), "JobAcctGatherType=(null)"),
        (Slurm("", "Unable to contact slurm controller"), "does not tell its settings: Unable to contact"),
        (Slurm(sacct="Connection refused"), "Connection refused"),
        (Slurm(""), "AccountingStorageType=(null)"),
    ],
)
def test_why_they_are_missing(commands, slurm: Slurm, why: str) -> None:
    found = examined(slurm)
    assert found.missing is not None and why in found.missing and found.look_s is None


def test_without_the_commands(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert accounting.slurm().available() == "there is no sacct command (Slurm)"
    assert accounting.oar().available() == "there is no oarstat command (OAR)"


def test_oars_are_listed_and_not_read(commands) -> None:
    assert accounting.oar().available() == "pilotfish does not read OAR's accounting yet"


def test_a_command_that_is_not_there_fails_or_hangs_is_a_reason(monkeypatch) -> None:
    assert accounting.ask(["sh", "-c", "echo done"]) == ("done\n", "")
    complaining = "echo sacct: error: looking >&2; echo sacct: fatal: No such place. >&2; exit 3"
    assert accounting.ask(["sh", "-c", complaining])[1] == "No such place."
    assert accounting.ask(["false"])[1] == "false fails and says nothing"
    assert "No such file" in accounting.ask(["/nowhere/sacct"])[1]
    monkeypatch.setattr(accounting, "PATIENCE_S", 0.05)
    assert "timed out" in accounting.ask(["sleep", "30"])[1]
