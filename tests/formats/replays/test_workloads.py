"""Finding the format of a workload."""

from __future__ import annotations

import gzip
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from pilotfish.formats.replays.workloads import format_of, read_workload
from pilotfish.simulate.errors import ConfigError
from tests.support.batsim_files import document, job

SWF = "; MaxProcs: 4\n1 0 -1 3 2 -1 -1 -1 20 -1 1 7 -1 -1 -1 -1 -1 -1\n"
JSON = json.dumps(document(job(1)))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("name", "text", "format"),
    [
        ("a.swf", SWF, "SWF"),
        ("a.SWF", SWF, "SWF"),
        ("a.json", JSON, "JSON"),
        ("a", SWF, "SWF"),
        ("a.txt", f"\ufeff \n {JSON}", "JSON"),
    ],
)
def test_the_name_or_the_first_character_decides(
    tmp_path: Path, name: str, text: str, format: str, packed: bool
) -> None:
    path = tmp_path / (f"{name}.gz" if packed else name)
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    assert format_of(path).name == format
    jobs = read_workload(path)
    assert jobs.id.tolist() == [1] and jobs.machine == 4


def test_a_suffix_wins_over_the_content(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(SWF)
    with pytest.raises(ConfigError, match="line 1: not JSON"):
        read_workload(path)


def test_damaged_and_missing_files(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(b"\x1f\x8bx")
    with pytest.raises(ConfigError, match="cannot be unpacked"):
        read_workload(path)
    with pytest.raises(FileNotFoundError):
        read_workload(tmp_path / "nowhere")


@pytest.mark.real
def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_text(SWF))
    writer.start()
    assert read_workload(tmp_path / "pipe").id.tolist() == [1]
    writer.join()


@pytest.mark.parametrize("profile", [{"type": "delay", "delay": 5}, {"req_ops": 5e9, "ipc": 1}])
@pytest.mark.parametrize("change", [{"res": -1}, {"subtime": "soon"}, {"profile": "none"}, {"subtime": None}])
def test_an_invalid_job_is_named_with_the_option_that_leaves_it_out(
    tmp_path: Path, profile: dict[str, Any], change: dict[str, Any]
) -> None:
    job = {"id": "a", "subtime": 0, "res": 1, "profile": "p"}
    data = {"nb_res": 2, "jobs": [job, job | {"id": "b"} | change], "profiles": {"p": profile}}
    path = tmp_path / "w.json"
    path.write_text(json.dumps(data))
    with pytest.raises(ConfigError, match=r"w.json: jobs\[1\].*; or --skip-invalid"):
        read_workload(path, speeds=(1e9,))
    jobs = read_workload(path, speeds=(1e9,), skip_invalid=True)
    assert len(jobs) == 1 and jobs.left_out == {"jobs that cannot be replayed": 1}
