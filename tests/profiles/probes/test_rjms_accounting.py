"""Accounting of resource managers as a probe: available, or missing for a reason that names the setting."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest

from pilotfish.profiles.probes import catalogue, rjms_accounting
from pilotfish.profiles.probes.catalogue import FEW_SAMPLES, ProbeEntry, examine

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
    """sacct and oarstat are on the PATH; the test defines what they do, which takes no time."""
    monkeypatch.setattr(catalogue, "PERIOD_S", 0.0)
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
    return examine(ProbeEntry("slurm", "job", "CPU time", lambda: rjms_accounting.slurm(slurm), FEW_SAMPLES))


def test_working_accounting_is_available(commands) -> None:
    slurm = Slurm()
    found = examined(slurm)
    assert found.missing is None and found.look_s is not None
    assert slurm.asked == ["scontrol", *["sacct"] * FEW_SAMPLES]


@pytest.mark.parametrize(
    ("slurm", "why"),
    [
        (Slurm(CONFIG.replace("slurmdbd", "none")), "no accounting: AccountingStorageType=accounting_storage/none"),
        (Slurm(CONFIG.replace("accounting_storage/slurmdbd", "(null)")), "AccountingStorageType=(null)"),
        (Slurm(CONFIG.replace("gather/linux", "gather/none")), "resource usage: JobAcctGatherType=jobacct_gather/none"),
        (Slurm(CONFIG.replace("JobAcctGatherType ", "X ")), "JobAcctGatherType=(null)"),
        (Slurm("", "Unable to contact slurm controller"), "does not show its settings: Unable to contact"),
        (Slurm(sacct="Connection refused"), "Connection refused"),
        (Slurm(""), "AccountingStorageType=(null)"),
    ],
)
def test_missing_accounting_says_why(commands, slurm: Slurm, why: str) -> None:
    found = examined(slurm)
    assert found.missing is not None and why in found.missing and found.look_s is None


def test_without_the_commands(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert rjms_accounting.slurm().available() == "there is no sacct command (Slurm)"
    assert rjms_accounting.oar().available() == "there is no oarstat command (OAR)"


def test_oar_accounting_is_listed_but_not_read(commands) -> None:
    assert rjms_accounting.oar().available() == "pilotfish does not read OAR's accounting"


@pytest.mark.real
def test_a_missing_failing_or_hanging_command_is_a_reason(monkeypatch) -> None:
    assert rjms_accounting.ask(["sh", "-c", "echo done"]) == ("done\n", "")
    complaining = "echo sacct: error: looking >&2; echo sacct: fatal: No such place. >&2; exit 3"
    assert rjms_accounting.ask(["sh", "-c", complaining])[1] == "No such place."
    assert rjms_accounting.ask(["false"])[1] == "false fails without a message"
    assert "No such file" in rjms_accounting.ask(["/nowhere/sacct"])[1]
    monkeypatch.setattr(rjms_accounting, "PATIENCE_S", 0.05)
    assert "timed out" in rjms_accounting.ask(["sleep", "30"])[1]
