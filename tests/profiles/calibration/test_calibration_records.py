"""Saved calibrations are read back; other files are rejected, in bounded time."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from pilotfish.profiles.calibration import calibration_records as records
from pilotfish.profiles.calibration.calibration_records import (
    CalibrationRecord,
    calibrated_values,
    changes,
    newest,
    read_if_record,
    read_record,
    record,
    record_files,
    save_record,
)
from pilotfish.profiles.calibration.result import Calibration
from pilotfish.simulate.errors import ConfigError
from tests.profiles.calibration.calibrations import BARE, FULL

NAME = "n1@2026-01-0{}T00-00-00.000000Z.json"


@pytest.mark.parametrize("found", [BARE, FULL])
def test_saved_records_are_read_back(found: Calibration, tmp_path: Path) -> None:
    path = save_record(tmp_path, found, "n1.site-a")
    assert read_record(path) == read_if_record(path) == CalibrationRecord("n1.site-a", found)
    assert read_record(path).time == 1772366400.0


def test_a_cluster_file_is_not_a_record(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("schema: pilotfish/cluster/v1\n")
    assert read_if_record(path) is None
    with pytest.raises(ConfigError, match="schema"):
        read_record(path)


def test_the_newest_comes_first_and_other_names_do_not_count(tmp_path: Path) -> None:
    paths = [save_record(tmp_path, BARE, name) for name in ("n1", "n2", "n1")]
    for name in ("README", "n1.json", "n1@today.json", ".tmp"):
        (tmp_path / name).write_text("x")
    assert record_files(tmp_path) == {"n1": [paths[2], paths[0]], "n2": [paths[1]]}


def spoiled(**changed: Any) -> str:
    return json.dumps(records.to_document(FULL, "n1") | changed)


BROKEN = {
    "nothing in it": "",
    "half": spoiled()[:500],
    "no mapping": "[1, 2]",
    "another schema": spoiled(schema="pilotfish/cluster/v1"),
    "no name": spoiled(name=None),
    "a name that is none": spoiled(name="../x"),
    "no curve": json.dumps({k: v for k, v in records.to_document(FULL, "n1").items() if k != "curve"}),
    "text for a number": spoiled(speed={"value": "fast", "spread": 1, "runs": 5}),
    "no number": spoiled(speed={"value": "NaN", "spread": 1, "runs": 5}),
    "below zero": spoiled(speed={"value": -1, "spread": 1, "runs": 5}),
    "no cores": spoiled(cpus=[]),
    "no socket": spoiled(sockets=0),
    "a date that is none": spoiled(date="yesterday"),
    "binary": "\x00\x01",
    "deep": '{"a":' * 5000,
    "long digits": '{"schema": ' + "9" * 10000,
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_invalid_records_are_rejected_with_the_file_name(text: str, tmp_path: Path) -> None:
    path = tmp_path / NAME.format(1)
    path.write_text(text)
    with pytest.raises(ConfigError, match=NAME.format(1)):
        read_record(path)


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where something is in a document; of a list its first."""
    parts = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    return [place for key, part in parts for place in ((*at, key), *places(part, (*at, key)))]


JUNK = (None, True, -1, 0, 1e308, -1e308, 5e-324, 10**300, "x", "NaN", "inf", "", [], {}, [[1]], {"x": 1})


@pytest.mark.parametrize("junk", JUNK, ids=repr)
def test_any_value_at_any_key_gives_a_record_or_an_error(junk: Any) -> None:
    text, now = spoiled(), calibrated_values(FULL, "n1")
    for place in places(json.loads(text)):
        document = json.loads(text)
        inner = document
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = junk
        try:
            found = record(document, "n1.json")
        except ConfigError as error:
            assert "n1.json" in str(error)
        else:
            for change in changes(calibrated_values(found.found, found.name), now, 0.1):
                json.dumps(asdict(change), allow_nan=False)


@pytest.mark.parametrize("at", range(0, len(spoiled()), 331))
def test_a_truncated_record_is_rejected(at: int, tmp_path: Path) -> None:
    path = tmp_path / NAME.format(1)
    path.write_text(spoiled()[:at])
    with pytest.raises(ConfigError):
        read_record(path)


def test_other_than_regular_files_are_rejected_without_blocking(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    with open(tmp_path / "giant", "wb") as file:
        file.truncate(10 * records.LARGEST)
    for name, why in (("pipe", "regular"), ("folder", "regular"), ("loop", "cannot be read"), ("giant", "too large")):
        with pytest.raises(ConfigError, match=why):
            read_record(tmp_path / name)


def test_an_invalid_file_is_skipped_and_many_end_the_search(tmp_path: Path) -> None:
    good = save_record(tmp_path, BARE, "n1")
    bad = [tmp_path / f"bad{i}" for i in range(20)]
    refused: list[ConfigError] = []
    assert [record.found for record in newest([bad[0], good, bad[1]], 1, refused.append)] == [BARE]
    assert len(refused) == 1
    assert newest([*bad, good], 1, refused.append) == [] and len(refused) < 20


@pytest.mark.skipif(os.geteuid() != 0, reason="not root, so nothing can be given to another user")
@pytest.mark.parametrize("what", ["theirs", "open", "link"])
def test_a_record_that_another_user_put_into_a_shared_folder_is_refused(tmp_path: Path, what: str) -> None:
    tmp_path.chmod(0o1777)
    path = save_record(tmp_path, FULL, "n1")
    assert path.stat().st_mode & 0o777 == 0o600 and read_record(path).name == "n1"
    if what == "theirs":
        os.chown(path, 61001, 61001)
    elif what == "open":
        path.chmod(0o666)
    else:
        path.rename(tmp_path / "elsewhere")
        path.symlink_to("elsewhere")
    with pytest.raises(ConfigError, match=f"{path.name}: cannot be read: .*not trusted"):
        read_record(path)
