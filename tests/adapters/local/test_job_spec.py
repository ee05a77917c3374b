"""A job's records are read back equal, whatever they contain; keys and directory names are one to one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.adapters.local.job_files import SPEC, read_record, write_record
from pilotfish.adapters.local.job_spec import End, Spec, directory_name, key_of, load, plain
from pilotfish.simulate.model.job import Distribution, Job, PeerWait, Phase, Profile, Provenance, ThreadGroup
from pilotfish.simulate.model.snapshot import JobState

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
numbers = st.floats(0, 1e18)
groups = st.builds(
    ThreadGroup,
    count=st.integers(1, 99),
    service_demand=numbers | st.builds(Distribution, st.just("empirical"), values=st.tuples(numbers, numbers)),
    bandwidth=numbers,
    phases=st.just(()) | st.tuples(st.builds(Phase, numbers, numbers, numbers)),
)
profiles = st.builds(
    Profile,
    st.lists(groups, max_size=2).map(tuple),
    name=texts,
    measured_on=st.none() | texts,
    io_bytes=st.none() | numbers,
    provenance=st.builds(Provenance, runs=st.integers(0, 9), note=texts),
)
jobs = st.builds(
    Job,
    id=texts,
    profile=profiles,
    after=st.lists(texts, max_size=2).map(tuple),
    memory=numbers,
    walltime=st.none() | numbers,
    command=st.none() | st.lists(texts, max_size=3).map(tuple),
    environment=st.lists(st.tuples(texts, texts), max_size=3).map(tuple),
    directory=st.none() | texts,
    wait=st.sampled_from(PeerWait),
)
specs = st.builds(
    Spec,
    key=texts,
    job=jobs,
    nodes=st.lists(texts, max_size=2).map(tuple),
    cpus=st.just((0, 3)),
    submit_time=numbers,
    environment=st.lists(st.tuples(texts, texts), max_size=2).map(tuple),
    directory=texts,
    stdout=texts,
    stderr=texts,
    grace_s=numbers,
)


@settings(max_examples=50, deadline=None)
@given(spec=specs)
def test_a_spec_comes_back_equal(tmp_path_factory: pytest.TempPathFactory, spec: Spec) -> None:
    directory = str(tmp_path_factory.getbasetemp())
    write_record(directory, SPEC, plain(spec))
    assert load(Spec, directory, SPEC) == spec


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=2, unique=True))
def test_keys_have_unique_valid_directory_names(keys: list[str]) -> None:
    names = [directory_name(key) for key in keys]
    assert len(set(names)) == len(keys)
    for key, name in zip(keys, names, strict=True):
        assert "/" not in name and not name.startswith(".") and len(os.fsencode(name)) <= 255
        assert key_of(name) == (key if "%." not in name else name)


def test_long_keys_that_begin_alike_are_kept_apart() -> None:
    assert directory_name("x" * 999 + "a") != directory_name("x" * 999 + "b")


@pytest.mark.parametrize(
    "change, says",
    [
        ({"exit_code": "0"}, "found '0'"),
        ({"exit_code": True}, "found True"),
        ({"exit_code": 1.5}, "found 1.5"),
        ({"state": "over"}, "over"),
        ({"usage": [["cpu_seconds"]]}, "cpu_seconds"),
        ({"usage": {}}, "found {}"),
        ({"more": 1}, "unknown key 'more'"),
        ({"reason": None}, "found None, expected str"),
    ],
)
def test_an_invalid_record_is_refused(tmp_path: Path, change: dict[str, object], says: str) -> None:
    end = plain(End(JobState.FAILED, 3, None, "", 1.0, 2, (("cpu_seconds", 0.5),)))
    write_record(str(tmp_path), "end.json", end)
    assert load(End, str(tmp_path), "end.json") == End(JobState.FAILED, 3, None, "", 1.0, 2, (("cpu_seconds", 0.5),))
    write_record(str(tmp_path), "end.json", end | change)
    with pytest.raises(ValueError, match=says):
        load(End, str(tmp_path), "end.json")


def test_a_record_with_a_missing_key_is_refused(tmp_path: Path) -> None:
    write_record(str(tmp_path), "end.json", {"state": "failed"})
    with pytest.raises(ValueError, match=r"end\.json is unreadable.*exit_code"):
        load(End, str(tmp_path), "end.json")


def test_a_record_that_may_be_written_once_is_never_replaced(tmp_path: Path) -> None:
    write_record(str(tmp_path), "begin.json", {"pid": 1}, once=True)
    with pytest.raises(FileExistsError):
        write_record(str(tmp_path), "begin.json", {"pid": 2}, once=True)
    assert read_record(str(tmp_path), "begin.json") == {"pid": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["begin.json"]


def test_a_shorter_record_replaces_a_longer_one_whole(tmp_path: Path) -> None:
    for record in ({"reason": "x" * 5000}, {"reason": ""}):
        write_record(str(tmp_path), "end.json", record)
        assert read_record(str(tmp_path), "end.json") == record
