"""Unpacking is bounded: a small file does not use up the memory, unless the user asks for it."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.formats.documents.unpack import LARGEST_RATIO, LIMIT, SMALL, unpacked
from pilotfish.simulate.errors import ConfigError

MIB = 2**20


def bomb(size: int) -> bytes:
    """Return a gzip file of so many bytes, a thousandth of them."""
    return gzip.compress(b"\n" * size)


@given(st.binary(max_size=5000), st.integers(1, 20))
@settings(max_examples=30, deadline=None)
def test_what_is_usual_is_unpacked(data: bytes, times: int) -> None:
    text = data * times
    assert unpacked(gzip.compress(text), "x") == text
    assert data.startswith(b"\x1f\x8b") or unpacked(data, "x") == data


@pytest.mark.parametrize("members", [1, 50])
def test_a_bomb_is_refused_also_in_many_members(monkeypatch: pytest.MonkeyPatch, members: int) -> None:
    monkeypatch.delenv(LIMIT, raising=False)
    packed = bomb(100 * MIB // members) * members
    with pytest.raises(ConfigError, match=f"x: too large, unpacked .*{LIMIT}=SIZE allows more, up to 256 MiB"):
        unpacked(packed, "x")
    monkeypatch.setenv(LIMIT, "128MiB")
    assert len(unpacked(packed, "x")) == 100 * MIB // members * members
    assert len(packed) * LARGEST_RATIO < SMALL


def test_the_limit_never_exceeds_that_of_the_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT, "1TiB")
    with pytest.raises(ConfigError, match="at most 1 MiB"):
        unpacked(bomb(2 * MIB), "x", MIB)


def test_a_limit_that_is_no_size_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT, "much")
    with pytest.raises(ConfigError, match=f"{LIMIT}: found 'much' .*2GiB"):
        unpacked(bomb(9), "x")


READ = """
import resource, sys
from pathlib import Path
from pilotfish.formats.replays.workloads import read_workload
from pilotfish.simulate.errors import ConfigError
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read_workload(Path(sys.argv[1]))
except ConfigError as error:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, error)
"""


@pytest.mark.real
@pytest.mark.parametrize("name", ["a.swf.gz", "a.json.gz", "w.yaml.gz", "w.xml.gz"])
def test_one_mebibyte_needs_little_memory_in_every_format(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(bomb(50 * MIB) * 20)
    assert path.stat().st_size < 1.1 * MIB
    ran = subprocess.run([sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=True)
    grown, _, error = ran.stdout.partition(" ")
    assert str(path) in error and int(grown) < 400 * 1024, ran.stdout


@pytest.mark.real
def test_a_json_of_many_values_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("[" + "{}," * 20_000_000 + "{}]")
    ran = subprocess.run([sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=True)
    grown, _, error = ran.stdout.partition(" ")
    assert (
        "at most 30,000,000 values and keys; split a trace, and give each part with --workload" in error
        and int(grown) < 400 * 1024
    ), ran.stdout


def test_signs_in_text_are_no_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pilotfish.formats.documents import files

    monkeypatch.setattr(files, "MOST_JSON_VALUES", 10)
    assert files.parse_json(r'{"a": ",,,:[{\",,,,\\\\", "b": [1, 2]}', "x") == {"a": ',,,:[{",,,,\\\\', "b": [1, 2]}
    with pytest.raises(ConfigError):
        files.parse_json("[" + "1," * 10 + "1]", "x")
