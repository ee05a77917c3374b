"""The doctor's finding about forecasts by Slurm's own rules."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.findings import NOTE, OK, Level
from pilotfish.adapters.slurm.doctor.check_twin import findings
from pilotfish.formats.site.site_file_list import SITE_FILES
from tests.support.slurm_queue_lines import CONFIG, present_texts


def asked(refused: str = "", **texts: str) -> tuple[Level, str]:
    """Return the finding about a small site."""
    files = {"scontrol_res.txt": "No reservations in the system\n", **present_texts(**texts)}
    by_command = {tuple(SITE_FILES[name].argv()): text for name, text in files.items()}

    def run(argv: Sequence[str]) -> str:
        if refused and refused in argv:
            raise AdapterError(f"{argv[0]}: Access denied", kind="refused", argv=argv)
        return by_command.get(tuple(argv), "")

    (finding,) = findings(run, is_wanted=True)
    assert finding.topic == "forecasts"
    return finding.level, finding.says


@pytest.mark.parametrize(
    ("refused", "config", "level", "words"),
    [
        ("", CONFIG, OK, "are forecast by Slurm's own rules"),
        ("config", CONFIG, NOTE, "EASY, not by Slurm's own rules: scontrol: Access denied"),
        ("assoc", CONFIG, OK, "are forecast by Slurm's own rules"),
        ("assoc", CONFIG + "AccountingStorageEnforce = associations\n", NOTE, "sacctmgr: Access denied"),
        ("", CONFIG + "PreemptMode = GANG\n", NOTE, "PreemptMode=GANG"),
        ("", CONFIG + "SchedulerParameters = bf_licenses\n", OK, ", bf_licenses, "),
    ],
)
def test_where_forecasts_come_from(refused: str, config: str, level: Level, words: str) -> None:
    found_level, sentence = asked(refused, **{"scontrol_config.txt": config})
    assert found_level is level and words in sentence


def test_it_may_be_switched_off() -> None:
    def run(argv: Sequence[str]) -> str:
        raise AssertionError("nothing is asked")

    (finding,) = findings(run, is_wanted=False)
    assert finding.level is OK and "twin is false" in finding.says
