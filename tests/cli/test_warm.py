"""`pilotfish warm`: kernels are compiled, listed, and missed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pilotfish.simulate.kernels.object_cache import KERNELS

pytestmark = pytest.mark.real


def warm(*argv: str, cache: Path, prefix: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    command = [*prefix, sys.executable, "-m", "pilotfish.cli", "warm", *argv]
    environment = os.environ | {"PILOTFISH_CACHE": str(cache), "COLUMNS": "80"}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def test_what_is_missing_is_compiled_once(tmp_path: Path) -> None:
    listed = warm("--list", cache=tmp_path)
    assert listed.returncode == 1 and listed.stderr == ""
    assert [line.split()[:2] for line in listed.stdout.splitlines()[:-1]] == [["missing", name] for name in KERNELS]
    assert max(map(len, listed.stdout.splitlines()[:-1])) <= 80
    assert listed.stdout.splitlines()[-1].startswith(f"0 of {len(KERNELS)} kernels are in {tmp_path}/kernels/")
    assert list(tmp_path.iterdir()) == []
    first = warm("-k", "swf.parser", cache=tmp_path)
    assert first.returncode == 0, first.stderr
    announced, *timed = first.stderr.splitlines()
    assert announced == "pilotfish: compiling the reader of SWF files for this machine"
    assert all(line.startswith(f"{announced}: ") for line in timed)  # with the remaining time, on a slow machine
    again = warm("-k", "swf.parser", "--json", cache=tmp_path)
    assert (again.returncode, again.stderr) == (0, "")
    (row,) = json.loads(again.stdout)["kernels"]
    assert row["compiled"] and Path(row["file"]).is_file() and row["kernel"] == "swf.parser"


def test_what_cannot_be_kept_is_not_compiled(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = warm(cache=tmp_path / "file")
    assert result.returncode == 1 and result.stdout == ""
    assert result.stderr.startswith("pilotfish: error: kernels cannot be kept in ") and result.stderr.count("\n") == 1


def test_a_kernel_that_a_full_disk_does_not_take_is_missing(tmp_path: Path) -> None:
    """The kernel is compiled and loaded; a limit on the size of files stands for the full disk."""
    result = warm("-k", "swf.parser", cache=tmp_path, prefix=("sh", "-c", 'ulimit -f 1; exec "$@"', "sh"))
    assert result.returncode == 1 and result.stdout.startswith("0 of 1 kernel is in ")
    assert result.stderr.splitlines()[-1].startswith(
        f"pilotfish: kernels cannot be kept in {tmp_path}/kernels and are "
    )
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_an_unknown_kernel_is_a_usage_error(tmp_path: Path) -> None:
    result = warm("-k", "swf.parsre", cache=tmp_path)
    assert result.returncode == 64 and "did you mean 'swf.parser'?" in " ".join(result.stderr.split())
