"""The folder of a site: scontrol in the place of slurm.conf, packed files, and damaged dumps."""

from __future__ import annotations

import gzip
import random
from dataclasses import replace
from datetime import UTC
from pathlib import Path

import pytest

from pilotfish.api import read_slurm_policy
from pilotfish.formats.site.site_folder import read_site, time_zone
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.slurm.version_rules import NEWEST
from tests.support import effort
from tests.support.slurm_queue_lines import RUNNING, WAITING, line
from tests.support.slurm_site_files import CONF, FILES, write_site

CONFIG = """\
Configuration data as of 2026-03-02T09:44:43
AccountingStorageEnforce = associations,limits,qos
ClusterName             = small
CompleteWait            = 0 sec
DefMemPerNode           = UNLIMITED
JobRequeue              = 1
KillWait                = 30 sec
Licenses                = (null)
MessageTimeout          = 10 sec
OverTimeLimit           = 0 min
PreemptExemptTime       = 00:00:00
PreemptMode             = OFF
PreemptType             = preempt/none
PriorityCalcPeriod      = 00:05:00
PriorityDecayHalfLife   = 7-00:00:00
PriorityFavorSmall      = No
PriorityFlags           = \n\
PriorityMaxAge          = 7-00:00:00
PriorityType            = priority/multifactor
PriorityWeightAge       = 1000
PriorityWeightTRES      = (null)
SchedulerParameters     = (null)
SchedulerType           = sched/backfill
SelectType              = select/cons_tres
SelectTypeParameters    = CR_CORE_MEMORY
SlurmctldHost[0]        = ctl(127.0.0.1)
SLURM_VERSION           = 22.05.8

Slurmctld(primary) at ctl is UP
"""
NODE = (
    "NodeName=n{} Arch=x86_64 CoresPerSocket=4 CPUAlloc=0 CPUEfctv=8 CPUTot=8 CPULoad=10.50 AvailableFeatures=(null) "
    "ActiveFeatures=(null) Gres=(null) NodeAddr=127.0.0.1 Version=22.05.8 OS=Linux 5.10 #1 SMP RealMemory=16000 Sockets=2 "
    "Boards=1 State=DOWN+DRAIN ThreadsPerCore=1 Weight=1 Partitions=main,fast CfgTRES=cpu=8,mem=16000M Reason=RealMemory=1 low\n"
)
PART = (
    "PartitionName={} AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL Default={} QoS=N/A DefaultTime={} ExclusiveUser=NO "
    "GraceTime=0 MaxNodes=UNLIMITED MaxTime={} MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED Nodes={} PriorityJobFactor={tier} "
    "PriorityTier={tier} OverSubscribe=NO OverTimeLimit=NONE PreemptMode= State=UP DefMemPerNode=UNLIMITED TRES=cpu=32\n"
)
SCONTROL = {
    "scontrol_config_txt": CONFIG,
    "scontrol_node_txt": "".join(NODE.format(i) for i in range(1, 5)),
    "scontrol_part_txt": PART.format("main", "YES", "01:00:00", "04:00:00", "n[1-4]", tier=1)
    + PART.format("fast", "NO", "NONE", "00:30:00", "n[1-2]", tier=10).replace("JobFactor=10", "JobFactor=1"),
}


def test_scontrol_in_the_place_of_slurm_conf(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "shown").mkdir()
    configured = read_site(write_site(tmp_path / "conf"))
    shown = read_site(write_site(tmp_path / "shown", slurm_conf=None, **SCONTROL))
    assert shown.rules == replace(configured.rules, version=(22, 5))
    assert shown.nodes == configured.nodes  # their state at the end of the period does not count
    assert shown.partitions == configured.partitions
    assert shown.jobs == configured.jobs


def test_files_may_be_packed(tmp_path: Path) -> None:
    plain = read_site(write_site(tmp_path))
    for name, text in FILES.items():
        (tmp_path / name).unlink()
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    packed = read_site(tmp_path)
    assert packed == plain


def test_another_dump_of_sacct(tmp_path: Path) -> None:
    folder = write_site(tmp_path, sacct_psv=None)
    other = tmp_path / "other.psv"
    other.write_text(FILES["sacct.psv"])
    assert len(read_site(folder, other).jobs) == 5
    with pytest.raises(ConfigError, match="no dump of sacct"):
        read_site(folder)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("slurm.conf", "no file describes settings"),
        ("sacct.psv", r"sacct\.psv: line 1: the file is empty"),
        ("qos.psv", "the file is empty"),
    ],
)
def test_what_is_needed(tmp_path: Path, name: str, message: str) -> None:
    folder = write_site(tmp_path)
    if name == "slurm.conf":
        (folder / name).unlink()
    else:
        (folder / name).write_text("")
    with pytest.raises(ConfigError, match=message):
        read_site(folder)


def test_time_zones() -> None:
    assert time_zone("UTC") is UTC
    assert str(time_zone("Europe/Berlin")) == "Europe/Berlin"
    for name in ("Europe/Nowhere", "../etc/passwd", "", "/etc/localtime", "Europe"):
        with pytest.raises(ConfigError, match="--zone: found"):
            time_zone(name)


def test_versions_come_from_scontrol(tmp_path: Path) -> None:
    unknown = read_site(write_site(tmp_path))
    assert any("no file says which version" in sentence for sentence in unknown.unknown)
    assert unknown.rules.version == NEWEST
    newer = NODE.format(1).replace("22.05.8", "23.11.4")
    assert read_site(write_site(tmp_path, scontrol_node_txt=newer)).rules.version == (23, 11)


@pytest.mark.parametrize(
    ("suffix", "version"), [("", (22, 5)), (":version=23.11", (23, 11)), (":version=26.05", (26, 5))]
)
def test_a_policy_follows_the_version_that_it_names_else_the_site_s(
    tmp_path: Path, suffix: str, version: tuple[int, int]
) -> None:
    text = "\n".join(line for line in CONF.split("\n") if not line.startswith("Select"))
    folder = write_site(tmp_path, slurm_conf=text, scontrol_node_txt=NODE.format(1))
    policy = read_slurm_policy(f"slurm:{folder}{suffix}")
    assert policy.site.rules.version == version
    assert policy.site.rules.selects == ("nodes" if version < (23, 11) else "cores")  # the default of each
    assert any("26.05: it is followed as 25.11" in text for text in policy.site.unknown) == (version > NEWEST)


@pytest.mark.parametrize("version", ["", "new", "20.11"])
def test_a_policy_of_a_version_that_is_not_known_is_refused(tmp_path: Path, version: str) -> None:
    with pytest.raises(ConfigError, match=r"version: found .*22\.05 or later"):
        read_slurm_policy(f"slurm:{write_site(tmp_path)}:version={version}")


def test_some_nodes_never_sleep(tmp_path: Path) -> None:
    power = "SuspendProgram=/x\nSuspendTime=60\nSuspendExcNodes=n[3-4]:1\nSuspendExcParts=fast\n"
    site = read_site(write_site(tmp_path, slurm_conf=CONF.replace("Nodes=n[1-2]", "Nodes=n[1]") + power))
    assert [node.stays_on for node in site.nodes] == [True, False, True, True]
    assert any("a list with a number stay awake" in text for text in site.unknown)
    wrong = CONF + power.replace("n[3-4]", "n[3-")
    with pytest.raises(ConfigError, match="SuspendExcNodes"):
        read_site(write_site(tmp_path, slurm_conf=wrong))


#: Pieces that damage a dump where a clean one would have something else.
PIECES = (
    "", "|", "\n", "\\", "#", "=", "[", "]", "-", ",", "n[1-", "n[1-99999999]", "99999999999999999999", "1e999", "nan", "-1",
    "\0", "\ufffd", "Unknown", "None", "UNLIMITED", "%", "_[1-9]", "+1", "9999-99-99T99:99:99", "0000-01-01T00:00:00", "Include x",
    "NodeName=DEFAULT", "PartitionName=", "::", "d-h", "\u0661", "²", "1K", "-", "(null)", '"',
)  # fmt: skip
DAMAGED = effort.of(1000)


def damaged(text: str, chance: random.Random) -> str:
    """Return a text with some places replaced, lines swapped, or its end cut off."""
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(text) + 1)
        kind = chance.randrange(5)
        if kind == 0:
            text = text[:place] + chance.choice(PIECES) + text[place + chance.randint(0, 12) :]
        elif kind == 1:
            text = text[: chance.randint(place, len(text))]
        elif kind == 2:
            lines = text.split("\n")
            chance.shuffle(lines)
            text = "\n".join(lines)
        elif kind == 3:
            cells = text.split("|")
            cells[chance.randrange(len(cells))] = chance.choice(PIECES)
            text = "|".join(cells)
        else:
            words = text.split(" ")
            words.insert(chance.randrange(len(words) + 1), chance.choice(PIECES))
            text = " ".join(words)
    return text


def test_damaged_dumps_are_errors_with_their_file_or_are_counted(tmp_path: Path) -> None:
    """No dump raises anything but an error that names a file; what is read of the jobs has plausible values."""
    chance = random.Random(11)
    texts = {**FILES, **{name[::-1].replace("_", ".", 1)[::-1]: text for name, text in SCONTROL.items()}}
    texts["scontrol_job.txt"] = line(1, RUNNING) + line(900, WAITING)
    texts["recording.json"] = '{"complete": true, "missing": {"sprio.txt": "refused"}}'
    texts["scripts.txt"] = f"Batch Script for 2\n{'-' * 80}\n#!/bin/sh\n#SBATCH -t 5 --mem=1G -w n1 'x y'\n" * 3
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    outcomes = {"read": 0, "refused": 0}
    for number in range(DAMAGED):
        name = chance.choice(sorted(texts))
        (tmp_path / name).write_text(damaged(texts[name], chance), encoding="utf-8", errors="replace")
        if name.startswith("scontrol"):
            (tmp_path / "slurm.conf").unlink(missing_ok=True)
        try:
            site = read_site(tmp_path)
        except ConfigError as error:
            assert str(tmp_path) in error.source, (number, name, str(error))
            outcomes["refused"] += 1
        else:
            outcomes["read"] += 1
            for job in site.jobs:
                assert job.min_nodes >= 1
                assert job.tasks >= 1
                assert job.run_s >= 0
        (tmp_path / name).write_text(texts[name])
        (tmp_path / "slurm.conf").write_text(texts["slurm.conf"])
    assert min(outcomes.values()) > DAMAGED / 20, outcomes
