"""Batsim's workloads: every type under each of its names, the run times, and the errors of wrong files."""

from __future__ import annotations

import copy
import csv
import gzip
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.formats.batsim import workload as workload_module
from pilotfish.formats.batsim.profiles import TYPES
from pilotfish.formats.batsim.workload import parse_batsim
from pilotfish.formats.batsim.write import batsim_text
from pilotfish.formats.documents.files import MOST_JSON_VALUES, MOST_TRACE_VALUES, count_values
from pilotfish.formats.replays.results_write import jobs_csv
from pilotfish.formats.replays.workloads import read_workload
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.kernels.queue.network import tables
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies.policy_specs import parse
from pilotfish.simulate.replay.replay import replay
from tests.support.batsim_files import PROFILES, SPEED, document, job, written


def read(folder: Path, data: Any, **options: Any) -> Workload:
    """Return the jobs of this document."""
    return read_workload(written(folder, data), **{"speeds": [SPEED], **options})


def test_every_type_is_read_and_written_back_as_it_was() -> None:
    assert {profile["type"] for profile, _ in PROFILES.values()} == set(TYPES) - {"msg_par_hg_pfs"}
    data = document(job("w0!12", "seq", user="a"), job(3, "mpi", walltime=0.5), description="of a test")
    assert json.loads(batsim_text(parse_batsim(copy.deepcopy(data), "w.json"))) == data


@pytest.mark.parametrize("name", [name for name, (_, seconds) in PROFILES.items() if seconds is not None])
def test_run_times_of_profiles_that_only_compute(tmp_path: Path, name: str) -> None:
    jobs = read(tmp_path, document(job(7, name)))
    assert jobs.run_time.tolist() == [PROFILES[name][1]] and jobs.more["profile"].tolist() == [name]
    waits = ("wait", "wait5", "seq5b", "seq2", "pfs_idle")
    assert jobs.more["computes"].tolist() == [name not in waits]


@pytest.mark.parametrize("name", [name for name, (_, seconds) in PROFILES.items() if seconds is None])
def test_profiles_that_need_a_network_are_refused_or_counted(tmp_path: Path, name: str) -> None:
    data, type_ = document(job(1), job("j2", name)), PROFILES[name][0]["type"]
    with pytest.raises(ConfigError, match=rf"w.json: jobs\[1\]: job j2, profile '{name}' \({type_}\): "):
        read(tmp_path, data)
    jobs = read(tmp_path, data, skip_invalid=True)
    assert jobs.more["name"].tolist() == ["1"] and jobs.left_out == {"jobs that cannot be replayed": 1}


def test_one_resource_sends_nothing(tmp_path: Path) -> None:
    assert read(tmp_path, document(job(1, "hg_talks", res=1))).run_time.tolist() == [3.0]


def test_flops_need_a_speed_and_seconds_do_not(tmp_path: Path) -> None:
    assert read(tmp_path, document(job(1), job(2, "nothing")), speeds=()).run_time.tolist() == [20.25, 0.0]
    with pytest.raises(ConfigError, match=r"'hg'.*the speed of the machine is unknown"):
        read(tmp_path, document(job(1, "hg")), speeds=())


def test_on_resources_that_differ_only_flops_depend_on_where_they_are_computed(tmp_path: Path) -> None:
    jobs = read(tmp_path, document(job(1), job(2, "hg"), job(3, "nothing")), speeds=(1.0, 2.0))
    assert np.array_equal(jobs.run_time, [20.25, math.nan, 0.0], equal_nan=True)
    assert jobs.more["program"].tolist() == [-1, 0, -1] and jobs.programs is not None
    assert jobs.programs.phases.tolist() == [(PROFILES["hg"][0]["cpu"], 0.0, 0.0, tables.EVEN, 0, 0, 1)]


@pytest.mark.parametrize(
    ("name", "phases"),
    [
        ("hg_talks", [(300.0, 1e6, 0.0, tables.EVEN, 0, 0, 1)]),
        ("par_talks", [(200.0, 1.0, 0.0, tables.MATRIX, 0, 0, 1)]),
        ("seq_talks", [(1.0, 0.0, 0.0, tables.WAIT, 0, 0, 1), (300.0, 1e6, 0.0, tables.EVEN, 0, 0, 1)]),
        ("twice", [(2.0, 0.0, 0.0, tables.WAIT, 0, 0, 2), *3 * [(300.0, 1e6, 0.0, tables.EVEN, 0, 0, 1)]]),
        ("pfs", [(1e6, 0.0, 0.0, tables.STORE, 0, 0, 1)]),
        ("pfs5b", [(0.5, 0.5, 0.0, tables.STORE, 0, 0, 1)]),
        ("stage", [(0.0, 1e6, 0.0, tables.STAGE, 0, 1, 1)]),
    ],
)
def test_communication_becomes_a_program_if_there_is_a_network(tmp_path: Path, name: str, phases: list[Any]) -> None:
    profiles = {key: profile for key, (profile, _) in PROFILES.items()}
    profiles["twice"] = {"type": "composed", "seq": ["seq5b", "thrice"]}
    profiles["thrice"] = {"type": "composed", "seq": ["hg_talks"], "repeat": 3}
    jobs = read(tmp_path, document(job(1, name), profiles=profiles), storages=["pfs", "nfs"])
    assert jobs.programs is not None and jobs.programs.phases.tolist() == phases
    assert math.isnan(jobs.run_time[0]) and jobs.programs.programs.tolist() == [(0, len(phases), 1)]


@pytest.mark.parametrize(
    ("type_", "bytes_"),
    [
        ({"type": "parallel_homogeneous_total"}, 1.5),  # 6 bytes / 4 resources
        ({"type": "ptask_homogeneous", "generation_strategy": "defined_amount_spread_uniformly"}, 0.5),  # / 12 pairs
    ],
)
def test_amounts_that_are_divided_among_resources(tmp_path: Path, type_: dict[str, Any], bytes_: float) -> None:
    data = document(job(1, "all", res=4), profiles={"all": {**type_, "cpu": 300, "com": 6.0}})
    jobs = read(tmp_path, data, storages=[])
    assert jobs.programs is not None and jobs.programs.phases.tolist() == [(75.0, bytes_, 0.0, tables.EVEN, 0, 0, 1)]


def test_memory_that_profiles_move_and_need(tmp_path: Path) -> None:
    step = {"type": "parallel_homogeneous", "cpu": 300, "com": 0, "memory_volume": 80.0, "memory_size": 5e9}
    total = {"type": "parallel_homogeneous_total", "cpu": 300, "com": 6.0, "memory_volume": 80.0}
    twice = {"type": "composed", "seq": ["step"], "repeat": 2, "memory_size": 1e9}
    profiles = {"step": step, "total": total, "twice": twice, "wait": {"type": "delay", "delay": 1}}
    data = document(*(job(i, name, res=4) for i, name in enumerate(profiles, 1)), profiles=profiles)
    jobs = read(tmp_path, data, storages=[])
    assert jobs.more["volume"].tolist() == [80.0, 0.0, 160.0, 0.0]
    assert jobs.more["memory"].tolist() == [5e9, 0.0, 1e9, 0.0]
    assert jobs.programs is not None and jobs.programs.phases["moved"].tolist() == [20.0]
    profiles["step"] = {**step, "cpu": 0}
    with pytest.raises(ConfigError, match="memory_volume"):
        read(tmp_path, document(job(1, "step"), profiles=profiles))


def test_amounts_of_matrices(tmp_path: Path) -> None:
    jobs = read(tmp_path, document(job(1, "par_talks"), job(2, "par_talks_only")), storages=[])
    assert jobs.programs is not None
    assert jobs.programs.amounts.tolist() == [50.0, 200.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0]


def test_an_unknown_storage_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"the platform has no storage 'nfs' \(allowed: a, b; or --skip-invalid\)"):
        read(tmp_path, document(job(1, "pfs")), storages=["b", "a"])
    with pytest.raises(ConfigError, match="hosts with the role storage"):
        read(tmp_path, document(job(1, "pfs")), storages=[])
    assert len(read(tmp_path, document(job(1, "pfs")), storages=["the only one"])) == 1


def test_sequences_that_are_too_long(tmp_path: Path) -> None:
    profiles = {key: profile for key, (profile, _) in PROFILES.items()}
    profiles["long"] = {"type": "composed", "seq": ["seq_talks", "wait"], "repeat": 2}
    profiles["longer"] = {"type": "composed", "seq": ["long", "wait"], "repeat": 10}
    profiles["wide"] = {"type": "composed", "seq": ["longest", "wait"]}
    profiles["longest"] = {"type": "composed", "seq": ["longer", "wait"], "repeat": 10**9}
    assert len(read(tmp_path, document(job(1, "longer"), profiles=profiles), storages=[])) == 1
    with pytest.raises(ConfigError, match=r"'wide' .*: its sequences are too long .*1,000,000 phases"):
        read(tmp_path, document(job(1, "wide"), profiles=profiles), storages=[])


def test_columns(tmp_path: Path) -> None:
    data = document(
        job(5, subtime=9.5), job(4, subtime=1), job(6, subtime=1, walltime=-1), job(7, walltime=2.5), job(8, res=0)
    )
    del data["jobs"][2]["walltime"]
    jobs = read(tmp_path, data)
    assert jobs.id.tolist() == [7, 4, 6, 5] and jobs.submit_time.tolist() == [0.0, 1.0, 1.0, 9.5]
    assert jobs.walltime.tolist() == [2.5, 100.0, math.inf, 100.0] and jobs.size.tolist() == [2, 2, 2, 2]
    assert jobs.machine == 4 and jobs.name == "w" and "name" not in jobs.more
    assert jobs.left_out == {"jobs without resources": 1}


def test_ids_are_kept_as_they_are(tmp_path: Path) -> None:
    jobs = read(tmp_path, document(job("w0!2"), job(7), job("b,c")))
    assert jobs.more["name"].tolist() == ["w0!2", "7", "b,c"] and jobs.id.tolist() == [1, 2, 3]


def test_a_part_that_fails_ends_its_sequence(tmp_path: Path) -> None:
    profiles = {
        "one": {"type": "delay", "delay": 1, "ret": 0},
        "fails": {"type": "delay", "delay": 2, "ret": 3},
        "all": {"type": "composed", "repeat": 5, "seq": ["one", "fails", "one"], "ret": 1},
    }
    jobs = read(tmp_path, document(job(1, "all"), job(2, "one"), profiles=profiles))
    assert jobs.run_time.tolist() == [3.0, 1.0] and jobs.more["returns"].tolist() == [3, 0]


def test_gzip(tmp_path: Path) -> None:
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(json.dumps(document(job(1))).encode()))
    assert len(read_workload(path)) == 1 and read_workload(path).name == "a"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ConfigError, match="cannot be unpacked"):
        read_workload(path)


def nested(levels: int) -> dict[str, Any]:
    """Return sequences nested in each other."""
    chain = {f"s{i}": {"type": "composed", "seq": [f"s{i + 1}"]} for i in range(levels)}
    return document(job(1, "s0"), profiles={**chain, f"s{levels}": {"type": "delay", "delay": 1}})


def test_sequences_within_each_other(tmp_path: Path) -> None:
    for levels in (1, 63, 64, 20_000):
        assert read(tmp_path, nested(levels)).run_time.tolist() == [1.0]


def doubled(levels: int, inner: dict[str, Any], repeat: int = 1) -> dict[str, Any]:
    """Return sequences that each contain the next one twice."""
    chain = {f"s{i}": {"type": "composed", "seq": [f"s{i + 1}"] * 2, "repeat": repeat} for i in range(levels)}
    return document(job(1, "s0"), profiles={**chain, f"s{levels}": inner})


def test_shared_parts_are_processed_once(tmp_path: Path) -> None:
    assert read(tmp_path, doubled(40, {"type": "delay", "delay": 1})).run_time.tolist() == [2.0**40]
    sends = {"type": "parallel_homogeneous", "cpu": 0, "com": 1}
    laid_out = read(tmp_path, doubled(10, sends), storages=[]).programs
    assert laid_out is not None and laid_out.phases["kind"].tolist() == [tables.EVEN] * 2**10
    for levels, repeat in ((200, 1), (19, 2), (200, 10**9)):
        with pytest.raises(ConfigError, match=r"its sequences are too long \(allowed: at most 1,000,000 phases"):
            read(tmp_path, doubled(levels, sends, repeat), storages=[])


def test_too_many_repetitions_are_refused(tmp_path: Path) -> None:
    chain = {f"s{i}": {"type": "composed", "seq": [f"s{i + 1}"], "repeat": 10**9} for i in range(40)}
    sends = document(job(1, "s0"), profiles={**chain, "s40": {"type": "parallel_homogeneous", "cpu": 0, "com": 1}})
    with pytest.raises(ConfigError, match=r"too long .*each at most 1e\+15 times"):
        read(tmp_path, sends, storages=[])


@pytest.mark.parametrize(
    ("chain", "told"),
    [
        ({"a": ["a"]}, "a -> a"),
        ({"a": ["end", "b"], "b": ["end", "c"], "c": ["b"]}, "b -> c -> b"),
        ({"a": ["b"], **{f"{i}": [f"{i + 1}"] for i in range(9)}, "b": ["0"], "9": ["a"]}, "a -> b -> ... -> 9 -> a"),
    ],
)
def test_a_sequence_that_contains_itself_is_refused(tmp_path: Path, chain: dict[str, list[str]], told: str) -> None:
    profiles: dict[str, Any] = {name: {"type": "composed", "seq": parts} for name, parts in chain.items()}
    profiles["end"] = {"type": "delay", "delay": 1}
    with pytest.raises(
        ConfigError, match=rf"jobs\[0\]: job 1, .*a sequence contains itself: {told} \(allowed: no cycles"
    ):
        read(tmp_path, document(job(1, "a"), profiles=profiles))


def test_a_run_time_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    long = document(job(1, "p"), job(2, "q"), profiles={
        "p": {"type": "composed", "repeat": 10**9, "seq": ["q"]}, "q": {"type": "delay", "delay": 1e7},
    })  # fmt: skip
    with pytest.raises(ConfigError, match=r"jobs\[0\]: job 1, .*: 1e\+16 seconds \(allowed: at most 1e\+15; or "):
        read(tmp_path, long)
    readable = read(tmp_path, long, skip_invalid=True)
    assert readable.run_time.tolist() == [1e7] and readable.left_out == {"jobs that cannot be replayed": 1}


def of(**profile: Any) -> dict[str, Any]:
    """Return a workload with this profile."""
    return document(job(1, "p"), profiles={"p": profile})


@pytest.mark.parametrize(
    ("data", "where"),
    [
        ({}, "jobs: missing"),
        ({"jobs": []}, "profiles: missing"),
        ([], "found a list"),
        ({"jobs": {}, "profiles": {}}, "jobs: found a mapping"),
        ({"jobs": [], "profiles": []}, "profiles: found a list"),
        (document(nb_res=0), "nb_res: found 0"),
        (document(nb_res=2.5), "nb_res: found 2.5"),
        (document(5), r"jobs\[0\]: found 5"),
        (document({"id": 1}), r"jobs\[0\].subtime: missing"),
        (document(job(), job(1.5)), r"jobs\[1\].id: found 1.5"),
        (document(job(True)), r"jobs\[0\].id: found true"),
        (document(job("")), r"jobs\[0\].id: found ''"),
        (document(job(2**63)), r"jobs\[0\].id: found .* from -9223372036854775808 to 9223372036854775807, or text"),
        (document(job(1), job("1")), "the id '1' is given to 2 jobs"),
        (document(job(subtime=-1)), r"jobs\[0\].subtime: found -1"),
        (document(job(subtime="0")), r"jobs\[0\].subtime: found '0'"),
        (document(job(subtime=math.nan)), r"jobs\[0\].subtime: found nan"),
        (document(job(res=1.5)), r"jobs\[0\].res: found 1.5"),
        (document(job(res=-1)), r"jobs\[0\].res: found -1"),
        (document(job(res=2**31)), r"jobs\[0\].res: found"),
        (document(job(walltime=0)), r"jobs\[0\].walltime: found 0 .*-1 for none"),
        (document(job(walltime=-2)), r"jobs\[0\].walltime: found -2"),
        (document(job(walltime=None)), r"jobs\[0\].walltime: found nothing"),
        (document(job(walltime=math.inf)), r"jobs\[0\].walltime: found inf"),
        (document(job(profile="wiat")), r"jobs\[0\].profile: found 'wiat'; did you mean 'wait'"),
        (document(job(profile=3)), r"jobs\[0\].profile: found 3"),
        (of(), "profiles.p.type: missing"),
        (of(type=3), "profiles.p.type: found 3"),
        (of(type="paralel"), "profiles.p.type: found 'paralel'; did you mean 'parallel'"),
        (of(type="delay"), "profiles.p.delay: missing"),
        (of(type="delay", delay=-1), "profiles.p.delay: found -1"),
        (of(type="delay", delay="1s"), "profiles.p.delay: found '1s'"),
        (of(type="delay", delay=1, ret=0.5), "profiles.p.ret: found 0.5"),
        (of(type="parallel", cpu=5, com=[]), "profiles.p.cpu: found 5"),
        (of(type="parallel", cpu=[1, -1], com=[0] * 4), r"profiles.p.cpu\[1\]: found -1"),
        (of(type="parallel", cpu=[1, 1], com=[0] * 3), "profiles.p.com: found 3 amounts"),
        (of(type="ParallelTaskProfile", com=[0] * 3), "profiles.p.com: found 3 amounts"),
        (of(type="parallel_homogeneous", cpu=1), "profiles.p.com: missing"),
        (of(type="parallel_homogeneous", cpu=math.inf, com=0), "profiles.p.cpu: found inf"),
        (of(type="ptask_homogeneous", cpu=1, com=0, generation_strategy="x"), "profiles.p.generation_strategy: "),
        (of(type="composed"), "profiles.p.seq: missing"),
        (of(type="composed", seq=[]), "profiles.p.seq: found a list that is empty"),
        (of(type="composed", seq=["p"], repeat=0), "profiles.p.repeat: found 0"),
        (of(type="composed", seq=["q"]), "'q' is not a profile of this file"),
        (of(type="composed", seq=["p"]), "a sequence contains itself"),
        (of(type="data_staging", nb_bytes=1, to="b"), "profiles.p.from: missing"),
        (of(type="trace_replay", trace_file="x"), "profiles.p.trace_type: missing"),
        (of(type="trace_replay", trace_type="tape", trace_file="x"), "profiles.p.trace_type: found 'tape'"),
        (of(type="usage_trace", trace="nowhere.txt"), r"jobs\[0\]: job 1, .*nowhere.txt: cannot be read"),
        (of(type="usage_trace", trace="w.json"), r"jobs\[0\]: job 1, "),
        (of(type="usage_trace", trace="usage/a.txt"), "cannot be read"),
        ('{"jobs": [], "jobs": [], "profiles": {}}', "'jobs' is given twice"),
        ('{"jobs": [], "profiles": {', "line 1: not JSON"),
        ("[" * 100_000, "nested too deep"),
        ("", "empty"),
    ],
)
def test_an_error_names_the_key(tmp_path: Path, data: Any, where: str) -> None:
    with pytest.raises(ConfigError, match=f"w.json: .*{where}"):
        read(tmp_path, data)


@pytest.mark.parametrize(
    "line", ["0 m_usage 0.5", "0 compute 0.5 5", "0 m_usage 1.5 5", "0 m_usage 1 -5", "0 m_usage 1 nan"]
)
def test_malformed_lines_of_usage_traces_are_refused(tmp_path: Path, line: str) -> None:
    path = written(tmp_path, document(job(1, "usage")))
    (tmp_path / "usage" / "a.txt").write_text(f"0 m_usage 1 5\n{line}\n")
    with pytest.raises(ConfigError, match=f"found '{line}' in .*a.txt"):
        read_workload(path, speeds=[1.0])


def test_a_trace_of_more_ranks_than_resources(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="2 ranks, but the job requests 1"):
        read(tmp_path, document(job(1, "usage", res=1)))


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_a_truncated_or_damaged_file_is_one_clear_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    text = json.dumps(document(job(1), job("a", "seq"), job(3, "usage")))
    at = data.draw(st.integers(0, len(text)))
    damage = data.draw(st.sampled_from(["", "0", '"', "-", "null", "{", "\0", "é"]))
    cut = data.draw(st.booleans())
    text = text[:at] + damage + ("" if cut else text[at + 1 :])
    path = written(tmp_path_factory.mktemp("batsim"), text)
    try:
        read_workload(path, speeds=[1.0])
    except ConfigError as error:
        assert str(path) in str(error)


#: Values of a job's fields, some of them odd.
ODD = [
    0,
    1,
    -1,
    -2,
    2.0,
    2.5,
    "2",
    "",
    None,
    True,
    math.nan,
    math.inf,
    1e15,
    1e16,
    2**31,
    2**63,
    -(2**63),
    [],
    {},
    "a\0",
]


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_jobs_that_are_read_together_are_as_if_read_one_by_one(data: st.DataObject) -> None:
    jobs = [job(i, **data.draw(st.sampled_from([{}, {"x": 1}, {"walltime": 5.5}]))) for i in range(3)]
    if data.draw(st.booleans()):
        one = jobs[data.draw(st.integers(0, 2))]
        key = data.draw(st.sampled_from(["id", "subtime", "res", "profile", "walltime", "y"]))
        one[key] = data.draw(st.sampled_from(ODD))
        if data.draw(st.booleans()):
            del one[key]
    outcomes = []
    for reader in (workload_module._usual_jobs, lambda values, profiles: None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(workload_module, "_usual_jobs", reader)
            try:
                read = parse_batsim(document(*jobs), "w.json").jobs
                outcomes.append((read, [list(map(type, part)) for part in read]))
            except ConfigError as error:
                outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize(
    ("profile", "walltime", "state", "lasts"),
    [
        ("wait", 20.25, "COMPLETED_WALLTIME_REACHED", 20.25),
        ("wait", 20.5, "COMPLETED_SUCCESSFULLY", 20.25),
        ("hg", 3, "COMPLETED_SUCCESSFULLY", 3.0),
        ("seq", 16, "COMPLETED_WALLTIME_REACHED", 16.0),  # its last part waits
        ("seq5", 17.5, "COMPLETED_SUCCESSFULLY", 17.5),  # its last part computes
        ("nothing", 5, "COMPLETED_SUCCESSFULLY", 1e-5),
    ],
)
def test_jobs_end_as_in_batsim(tmp_path: Path, profile: str, walltime: float, state: str, lasts: float) -> None:
    """Source: recordings of Batsim 4.2.1."""
    replayed = replay(read(tmp_path, document(job("a", profile, walltime=walltime))), 4, parse("easy"))
    (row,) = csv.DictReader(jobs_csv(replayed).decode().splitlines())
    assert (row["final_state"], row["success"]) == (state, str(int(state == "COMPLETED_SUCCESSFULLY")))
    assert (float(row["execution_time"]), float(row["finish_time"])) == (lasts, lasts)


def test_a_workload_may_have_a_million_jobs() -> None:
    """Counted in a small one; a document of another kind may not be as large."""
    row = {"id": 1000000, "subtime": 12.5, "res": 16, "profile": "delay12", "walltime": 3600}
    row_values = count_values(json.dumps([row] * 1001)) - count_values(json.dumps([row]))
    assert MOST_JSON_VALUES < row_values * 1000 < 2 * row_values * 1000 < MOST_TRACE_VALUES
