"""The doctor's findings about the reaper's timer."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.findings import NOTE, OK, WARNING, Level, ServiceState
from pilotfish.adapters.slurm.doctor import check_reaper
from tests.support.slurm_answers import Recorded

CONFIG = Path("/etc/pilotfish/pilotfish.yaml")
#: Printed by systemd 252, some properties left out.
SHOWN = """\
Id=pilotfish-reap.timer
LoadState=loaded
ActiveState={active}

User={user}
ExecStart={{ path=/usr/bin/pilotfish ; argv[]=/usr/bin/pilotfish reap --config {config} --older-than 30 ; flags= }}
Id=pilotfish-reap.service
LoadState=loaded
ActiveState=inactive
"""
USUAL = {"active": "active", "user": "pilotfish", "config": str(CONFIG)}
LIVE = ServiceState("live", config=CONFIG, account="pilotfish")
DRY = ServiceState("shadow", shadow=True, config=CONFIG, account="pilotfish")
ABSENT = "Id=pilotfish-reap.timer\nLoadState=not-found\nActiveState=inactive\n\nId=pilotfish-reap.service\n"


@pytest.mark.parametrize(
    ("shown", "service", "level", "words"),
    [
        (SHOWN.format(**USUAL), LIVE, OK, "clears pins"),
        (SHOWN.format(**USUAL), DRY, OK, "clears pins"),
        (SHOWN.format(**USUAL | {"active": "inactive"}), LIVE, WARNING, "waits for it"),
        (SHOWN.format(**USUAL | {"active": "inactive"}), DRY, OK, "before you go live"),
        (ABSENT, LIVE, WARNING, "does not run"),
        ("", LIVE, WARNING, "does not run"),
        (SHOWN.format(**USUAL | {"user": ""}), LIVE, WARNING, "it runs as root, and the state belongs to pilotfish"),
        (SHOWN.format(**USUAL | {"config": "/etc/other"}), LIVE, WARNING, "it reads /etc/other"),
        (
            SHOWN.format(**USUAL),
            ServiceState("dry-run", config=CONFIG, account="pilotfish"),
            WARNING,
            "started with --dry-run",
        ),
        (AdapterError("System has not been booted with systemd", kind="refused"), LIVE, NOTE, "unknown"),
        (AdapterError("systemctl is not on the PATH", kind="missing"), DRY, NOTE, "unknown"),
    ],
)
def test_the_timer(shown: str | AdapterError, service: ServiceState, level: Level, words: str) -> None:
    (only,) = check_reaper.findings(Recorded(systemctl=shown), service)
    assert only.level is level and words in only.says and only.topic == "reaper"


def test_without_a_configuration_nothing_is_asked() -> None:
    run = Recorded()
    assert list(check_reaper.findings(run, ServiceState("live"))) == [] and run.asked == []
