"""`pilotfish warm`: kernels are compiled, listed, and missed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from pilotfish.simulate.kernels import KERNELS


def warm(*argv: str, cache: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pilotfish.cli", "warm", *argv]
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
    done = warm(cache=tmp_path / "file")
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("pilotfish: error: kernels cannot be kept in ") and done.stderr.count("\n") == 1


def test_an_unknown_kernel_is_a_usage_error(tmp_path: Path) -> None:
    done = warm("-k", "swf.parsre", cache=tmp_path)
    assert done.returncode == 64 and "did you mean 'swf.parser'?" in " ".join(done.stderr.split())
