"""Edits of a site's configuration mean what the same text in its files means."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pilotfish.formats.documents.atomic_write import write_together
from pilotfish.formats.site.site_edits import Edit, edited_site
from pilotfish.formats.site.site_folder import read_site
from pilotfish.formats.site.synthetic_site import site_files
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.generate.site_models import MODELS
from pilotfish.simulate.generate.synthetic_jobs import site_jobs
from pilotfish.simulate.slurm.site import Site

MODEL = MODELS["university"]


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return site_files(MODEL, site_jobs(MODEL, 20), "a test")


def written(folder: Path, files: dict[str, str]) -> Site:
    folder.mkdir(exist_ok=True)
    write_together({folder / name: text for name, text in files.items()})
    return read_site(folder)


@pytest.mark.parametrize(
    ("option", "of", "key", "value", "old", "new"),
    [
        ("--set", "", "priorityweightage", "77", "PriorityWeightAge=1000", "PriorityWeightAge=77"),
        ("--set", "", "PriorityFlags", "SMALL_RELATIVE_TO_TIME", "SchedulerType", "PriorityFlags=SMALL_RELATIVE_TO_TIME\nSchedulerType"),
        ("--set", "", "SchedulerParameters", "bf_window=99", "bf_continue", "bf_continue,bf_window=99"),
        ("--set", "", "SchedulerParameters", "-bf_continue,defer", "bf_continue", "defer"),
        ("--set-partition", "batch", "MaxTime", "1-0", "MaxTime=4320 DefaultTime=120 DefMemPerCPU=4000", "MaxTime=1-0 DefaultTime=120 DefMemPerCPU=4000"),
        ("--set-partition", "bigmem", "state", "DOWN", "DefMemPerCPU=16000 PriorityTier=5 State=UP", "DefMemPerCPU=16000 PriorityTier=5 State=DOWN"),
    ],
)  # fmt: skip
def test_an_edit_is_an_edit_of_slurm_conf(
    files: dict[str, str], tmp_path: Path, option: str, of: str, key: str, value: str, old: str, new: str
) -> None:
    site = written(tmp_path / "old", files)
    conf = files["slurm.conf"].replace(old, new)
    assert conf != files["slurm.conf"]
    expected = written(tmp_path / "new", {**files, "slurm.conf": conf})
    edits = [Edit(option, of, key, value)]
    result = edited_site(site, tmp_path / "old", edits if not of else [], edits if of else [], [])
    assert result == expected != site


def test_an_edit_of_a_qos_is_an_edit_of_its_row(files: dict[str, str], tmp_path: Path) -> None:
    site = written(tmp_path, files)
    result = edited_site(site, tmp_path, [], [], [Edit("--set-qos", "teaching", "MaxJobsPU", "3")])
    assert result.qos[1].limits.user_jobs == 3 and site.qos[1].limits.user_jobs == 8
    assert replace(result, qos=site.qos) == site


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (Edit("--set", "", "PriorityWeigthAge", "1"), "'PriorityWeigthAge'; did you mean 'PriorityWeightAge'"),
        (Edit("--set", "", "PriorityWeightAge", "x"), "PriorityWeightAge: found 'x' .allowed: a whole number"),
        (Edit("--set", "", "SchedulerParameters", "bf_windows=3"), "'bf_windows'; did you mean 'bf_window'"),
        (Edit("--set-partition", "btch", "MaxTime", "1"), "'btch' is not a partition; did you mean 'batch'"),
        (Edit("--set-partition", "batch", "MaxTim", "1"), "'MaxTim'; did you mean 'maxtime'"),
        (Edit("--set-partition", "batch", "MaxTime", "soon"), "found 'soon' .allowed: minutes"),
        (Edit("--set-qos", "no", "Priority", "1"), "'no' is not a QOS"),
        (Edit("--set-qos", "normal", "Prio", "1"), "does not follow 'Prio'.* .allowed: .*priority"),
        (Edit("--set-qos", "normal", "Priority", "high"), "Priority=high cannot be read"),
    ],
)
def test_a_wrong_edit_is_refused_with_what_is_allowed(
    files: dict[str, str], tmp_path: Path, edit: Edit, message: str
) -> None:
    site = written(tmp_path, files)
    kinds = ([edit] if edit.option == name else [] for name in ("--set", "--set-partition", "--set-qos"))
    with pytest.raises(ConfigError, match=message) as error:
        edited_site(site, tmp_path, *kinds)
    assert error.value.source == edit.option


def test_an_edit_keeps_the_passes_that_sdiag_measured(tmp_path: Path, files: dict[str, str]) -> None:
    site = written(
        tmp_path, files | {"sdiag.txt": "Backfilling stats\n\tMean cycle: 4000000\n\tDepth Mean (try depth): 8\n"}
    )
    edited = edited_site(site, tmp_path, [Edit("--set", "", "PriorityWeightAge", "77")], [], [])
    assert edited.rules.pass_s == site.rules.pass_s == (0.0, 8.0)
    assert edited.rules.test_s == site.rules.test_s == 0.5


PREEMPTING = "PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\n"


@pytest.mark.parametrize(
    ("before", "key", "value", "shown"),
    [
        (PREEMPTING, "PreemptMode", "off", "PreemptType=preempt/partition_prio and PreemptMode=OFF"),
        (PREEMPTING, "PreemptMode", "GANG", "PreemptType=preempt/partition_prio and PreemptMode=GANG"),
        (PREEMPTING, "PreemptType", "preempt/none", "PreemptType=preempt/none and PreemptMode=REQUEUE"),
        ("", "PreemptType", "preempt/qos", "PreemptType=preempt/qos and PreemptMode=OFF"),
        ("", "PreemptMode", "CANCEL", "PreemptType=preempt/none and PreemptMode=CANCEL"),
    ],
)
def test_preemption_with_which_slurm_does_not_start_is_refused(
    tmp_path: Path, files: dict[str, str], before: str, key: str, value: str, shown: str
) -> None:
    site = written(tmp_path, {**files, "slurm.conf": files["slurm.conf"] + before})
    with pytest.raises(ConfigError, match=f"--set: .*does not start with {shown}"):
        edited_site(site, tmp_path, [Edit("--set", "", key, value)], [], [])
    edits = [Edit("--set", "", "PreemptType", "preempt/qos"), Edit("--set", "", "PreemptMode", "SUSPEND,GANG")]
    assert edited_site(site, tmp_path, edits, [], []).rules.preempt_type == "qos"
