"""The files that another needs: with them, and no others, it is read elsewhere as it is read here."""

from __future__ import annotations

import json
import shutil
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.formats.beside import beside_machine, beside_workload
from pilotfish.simulate.formats.workloads import read_workload

NAMES = st.sampled_from(["r", "s", "sub/r", "sub/deep/s", "other/t"])
TRACES = st.dictionaries(
    st.sampled_from(["list", "usage/list", "usage/more/list"]), st.lists(NAMES, min_size=1, max_size=3), min_size=1
)


def written(folder: Path, traces: dict[str, list[str]]) -> Path:
    """A workload with a job for each trace, and the ranks of each; every rank computes another amount."""
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
def test_it_is_read_as_here_where_these_are(traces: dict[str, list[str]]) -> None:
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        here, there = written(Path(one), traces), Path(other) / "w.json"
        (Path(one) / "usage" / "nobody").mkdir(parents=True)
        names = beside_workload(here)
        assert len(set(names)) == len(names)
        for name in ("w.json", *names):
            (Path(other) / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(one) / name, Path(other) / name)
        first, second = (read_workload(path, speeds=[1e9]) for path in (here, there))
        assert np.array_equal(first.run_time, second.run_time) and (first.run_time > 0).all()
        for name in names:
            (Path(other) / name).unlink()
            kept = read_workload(there, speeds=[1e9], skip_invalid=True)
            assert len(kept) < len(first), "each of them is needed"
            shutil.copy(Path(one) / name, Path(other) / name)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1]", '{"profiles": 3}', '{"profiles": {"p": 3, "q": {"type": "usage_trace", "trace": 3}}}',
     '{"profiles": {"p": {"type": "usage_trace", "trace": "."}, "q": {"type": "usage_trace", "trace": "gone"}}}',
     json.dumps({"profiles": {"p": {"type": "usage_trace", "trace": "x" * 5000}}})],
)  # fmt: skip
def test_what_is_wrong_is_for_who_reads_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "w.json").write_text(text)
    assert beside_workload(tmp_path / "w.json") == ()


def test_a_trace_of_swf_names_nothing(tmp_path: Path) -> None:
    (tmp_path / "w.swf").write_text("usage_trace")
    assert beside_workload(tmp_path / "w.swf") == ()


def test_beside_a_platform_of_irmasims_are_types(tmp_path: Path) -> None:
    for name in ("node_types.json", "lab.yaml", "p.xml"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "p.json").write_text('{"platform": {}}')
    assert beside_machine(tmp_path / "p.json") == ("node_types.json",)
    assert beside_machine(tmp_path / "lab.yaml") == beside_machine(tmp_path / "p.xml") == ()
    (tmp_path / "p.json").write_text("{")
    assert beside_machine(tmp_path / "p.json") == beside_machine(tmp_path / "gone") == ()
