"""Files that another file needs: with these and no others, it reads the same elsewhere."""

from __future__ import annotations

import json
import shutil
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.formats.replays.side_files import files_of_machine, files_of_workload
from pilotfish.formats.replays.workloads import read_workload

NAMES = st.sampled_from(["r", "s", "sub/r", "sub/deep/s", "other/t"])
TRACES = st.dictionaries(
    st.sampled_from(["list", "usage/list", "usage/more/list"]), st.lists(NAMES, min_size=1, max_size=3), min_size=1
)


def written(folder: Path, traces: dict[str, list[str]]) -> Path:
    """Write a workload with a job for each trace, and the ranks of each; every rank computes another amount."""
    jobs = [{"id": i, "subtime": i, "res": 4, "profile": name} for i, name in enumerate(traces)]
    profiles = {name: {"type": "usage_trace", "trace": name} for name in traces}
    for name, ranks in traces.items():
        for rank in ranks:
            path = folder / PurePosixPath(name).parent / rank
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"0 m_usage 1 {1e9 * len(str(path.relative_to(folder)))}\n")
        (folder / name).write_text("# ranks\n" + "\n".join(ranks))
    path = folder / "w.json"
    path.write_text(json.dumps({"jobs": jobs, "profiles": profiles}))
    return path


@given(TRACES)
@settings(deadline=None)
def test_a_copy_with_its_side_files_reads_the_same(traces: dict[str, list[str]]) -> None:
    with TemporaryDirectory() as first_folder, TemporaryDirectory() as second_folder:
        original, copy = written(Path(first_folder), traces), Path(second_folder) / "w.json"
        (Path(first_folder) / "usage" / "stranger").mkdir(parents=True)
        names = files_of_workload(original)
        assert len(set(names)) == len(names)
        for name in ("w.json", *names):
            (Path(second_folder) / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(first_folder) / name, Path(second_folder) / name)
        first, second = (read_workload(path, speeds=[1e9]) for path in (original, copy))
        assert np.array_equal(first.run_time, second.run_time) and (first.run_time > 0).all()
        for name in names:
            (Path(second_folder) / name).unlink()
            partial_workload = read_workload(copy, speeds=[1e9], skip_invalid=True)
            assert len(partial_workload) < len(first), "each of them is needed"
            shutil.copy(Path(first_folder) / name, Path(second_folder) / name)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1]", '{"profiles": 3}', '{"profiles": {"p": 3, "q": {"type": "usage_trace", "trace": 3}}}',
     '{"profiles": {"p": {"type": "usage_trace", "trace": "."}, "q": {"type": "usage_trace", "trace": "gone"}}}',
     json.dumps({"profiles": {"p": {"type": "usage_trace", "trace": "x" * 5000}}})],
)  # fmt: skip
def test_errors_are_left_to_the_reader(tmp_path: Path, text: str) -> None:
    (tmp_path / "w.json").write_text(text)
    assert files_of_workload(tmp_path / "w.json") == ()


def test_a_trace_in_swf_needs_no_files(tmp_path: Path) -> None:
    (tmp_path / "w.swf").write_text("usage_trace")
    assert files_of_workload(tmp_path / "w.swf") == ()


def test_an_irmasim_platform_needs_its_type_libraries(tmp_path: Path) -> None:
    for name in ("node_types.json", "lab.yaml", "p.xml"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "p.json").write_text('{"platform": {}}')
    assert files_of_machine(tmp_path / "p.json") == ("node_types.json",)
    assert files_of_machine(tmp_path / "lab.yaml") == files_of_machine(tmp_path / "p.xml") == ()
    (tmp_path / "p.json").write_text("{")
    assert files_of_machine(tmp_path / "p.json") == files_of_machine(tmp_path / "gone") == ()
