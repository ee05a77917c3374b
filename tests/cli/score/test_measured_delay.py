"""The start delay of a card: measured where the service has placed jobs, called assumed where it has not."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotfish.cli.score.measured_delay import ASSUMED_S, FEWEST, measured_delay
from pilotfish.daemon.report.delays import Delays


def written(folder: Path, **samples: list[float]) -> Path:
    path = folder / "delays.json"
    Delays(samples).write(path)
    return path


def test_a_service_that_has_placed_jobs_has_measured_all_of_it(tmp_path: Path) -> None:
    phases = {"submitted": [4.0], "decided": [1.0], "sent": [0.5], "started": [-0.5, 1.5]}
    delay = measured_delay(written(tmp_path, **{name: values * FEWEST for name, values in phases.items()}))
    assert delay.source == f"measured on {2 * FEWEST} starts" and delay.measured == 2 * FEWEST
    assert delay.within_s == (5.0, 7.0) and delay.mean_s == pytest.approx(6.0, abs=0.2)


def test_a_service_in_shadow_has_measured_a_part(tmp_path: Path) -> None:
    delay = measured_delay(written(tmp_path, submitted=[4.0] * FEWEST, started=[9.0] * (FEWEST - 1)))
    assert delay.source == f"measured on {FEWEST} submissions; placing is assumed to take 1 s of it"
    assert (delay.measured, *delay.within_s) == (FEWEST, 4.5, 5.5)


def test_a_delay_below_0_is_none(tmp_path: Path) -> None:
    phases = dict.fromkeys(("submitted", "decided", "sent", "started"), [-1.0] * FEWEST)
    assert measured_delay(written(tmp_path, **phases)).within_s == (0.0, 0.0)


@pytest.mark.parametrize("text", ["", "{}", '{"seconds": {"submitted": ["x"]}}'])
def test_what_was_not_measured_is_assumed(tmp_path: Path, text: str) -> None:
    path = tmp_path / "delays.json"
    path.write_text(text)
    for delay in (measured_delay(path), measured_delay(tmp_path / "none"), measured_delay(None)):
        assert delay.source.startswith("assumed") and delay.seconds == ASSUMED_S and not delay.measured
