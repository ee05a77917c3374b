"""The delays of a site as distributions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pilotfish.daemon.report.delays import NEWEST, PHASES, Delays, read_delays


def test_a_file_has_the_newest_of_each_phase(tmp_path: Path) -> None:
    path, delays = tmp_path / "delays.json", Delays()
    for number in range(NEWEST + 3):
        delays.add("sent", number / 8)
    delays.add("started", -0.25)
    assert not delays.complete
    delays.write(path)
    again = read_delays(path)
    assert [*again.samples["sent"]] == [number / 8 for number in range(3, NEWEST + 3)]
    assert [*again.samples["started"]] == [-0.25] and not again.samples["seen"]
    for phase in PHASES:
        again.add(phase, 1.0)
    assert again.complete


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"seconds": 3}',
        '{"seconds": {"sent": ["x"]}}',
        '{"seconds": {"sent": [NaN]}}',
        "[" * 10**5,
    ],
    ids=range(8),
)
def test_a_damaged_file_is_as_good_as_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "delays.json"
    path.write_text(text)
    path.chmod(0o600)
    assert not any(read_delays(path).samples.values())
    assert not any(read_delays(tmp_path / "missing.json").samples.values())
    path.write_text(json.dumps({"seconds": {"sent": [1.0], "other": [2.0]}}))
    assert [*read_delays(path).samples["sent"]] == [1.0]
