"""EXECUTE_JOB whole: ranks placed by a mapping, storages by their numbers, and transfers beside a job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilotfish.simulate.errors import PolicyError
from tests.reference.plain_ptask import seconds_alone
from tests.support.executed_jobs import Data, Executor, executed

#: Hosts a0 to a3 of 4 cores of 100 flop/s, behind links of 10 bytes/s and a backbone; two storages behind links.
CLUSTER = """<platform version="4.1"><zone id="AS0" routing="Full">
 <zone id="M" routing="Full"><host id="master_host" speed="1Gf"/></zone>
 <cluster id="c" prefix="a" suffix="" radical="0-3" speed="100f" core="4" bw="10Bps" lat="1ms" bb_bw="1kBps" bb_lat="1ms"/>
 <zone id="S1" routing="Full"><host id="pfs" speed="1Gf"><prop id="role" value="storage"/></host></zone>
 <zone id="S2" routing="Full"><host id="qfs" speed="1Gf"><prop id="role" value="storage"/></host></zone>
 <link id="l1" bandwidth="5Bps" latency="10ms"/><link id="l2" bandwidth="7Bps" latency="20ms" sharing_policy="FATPIPE"/>
 <link id="l3" bandwidth="9Bps" latency="0"/>
 <zoneRoute src="c" dst="S1" gw_src="ac_router" gw_dst="pfs"><link_ctn id="l1"/></zoneRoute>
 <zoneRoute src="c" dst="S2" gw_src="ac_router" gw_dst="qfs"><link_ctn id="l2"/></zoneRoute>
 <zoneRoute src="S1" dst="S2" gw_src="pfs" gw_dst="qfs"><link_ctn id="l3"/></zoneRoute>
</zone></platform>"""
#: The same with links of one direction, a limiter and a loopback, and no backbone.
LIMITED = CLUSTER.replace(
    'bb_bw="1kBps" bb_lat="1ms"', 'sharing_policy="SHARED" limiter_link="12Bps" loopback_bw="100Bps" loopback_lat="3ms"'
)
#: Hosts of different speeds and cores in a zone with routes.
ROUTES = """<platform version="4.1"><zone id="AS0" routing="Full">
 <host id="master_host" speed="1Gf"/>
 <host id="a0" speed="100f" core="2"/><host id="a1" speed="50f"/><host id="a2" speed="70f" core="3"/><host id="a3" speed="9f"/>
 <host id="qfs" speed="1Gf"><prop id="role" value="storage"/></host>
 <host id="pfs" speed="1Gf"><prop id="role" value="storage"/></host>
 <link id="x" bandwidth="10Bps" latency="5ms" sharing_policy="SPLITDUPLEX"/><link id="y" bandwidth="3Bps" latency="1ms"/>
""" + "".join(
    f' <route src="{one}" dst="{two}"><link_ctn id="{"x" if i % 2 else "y"}"{chr(32) + "direction=" + chr(34) + "UP" + chr(34) if i % 2 else ""}/></route>\n'
    for i, (one, two) in enumerate([(f"a{a}", f"a{b}") for a in range(4) for b in range(a)]
                                   + [(f"a{a}", s) for a in range(4) for s in ("pfs", "qfs")] + [("pfs", "qfs")])
) + "</zone></platform>"  # fmt: skip
PLATFORMS = {"cluster": CLUSTER, "limited": LIMITED, "routes": ROUTES}
JOB = {"id": 0, "subtime": 0, "res": 2, "profile": "p"}
HOMOGENEOUS = {"type": "parallel_homogeneous", "cpu": 200, "com": 30}


def lasts(
    folder: Path, profile: Data, how: Data, platform: str = CLUSTER, more: dict[str, Data] | None = None
) -> float:
    """Return how long a job of two ranks with this profile lasts."""
    replayed, _ = executed(folder, platform, {"p": profile, **(more or {})}, [JOB], Executor({"w0!0": how}))
    return float(replayed.finish_time[0] - replayed.start_time[0])


@pytest.mark.parametrize(
    ("profile", "how", "seconds"),
    [
        # 30 bytes at 10 bytes/s, after 3 ms over two ports and the backbone; 200 flops take 2 s.
        (HOMOGENEOUS, {}, 3.003),
        (HOMOGENEOUS, {"mapping": {"0": "1", "1": "0"}}, 3.003),
        # Both on host 2: 60 bytes leave it and come back; each rank has a core of its own.
        (HOMOGENEOUS, {"alloc": "2", "mapping": {"0": "0", "1": "0"}}, 6.003),
        ({**HOMOGENEOUS, "com": 0}, {"alloc": "2", "mapping": {"0": 0, "1": 0}}, 2.0),
        # Three hosts, one unused.
        (HOMOGENEOUS, {"alloc": "0 2-3", "mapping": {"0": 2, "1": 0}}, 3.003),
        ({"type": "delay", "delay": 5}, {"alloc": "3", "mapping": {"0": 0, "1": 0}}, 5.0),
        # 2 x 20 bytes from the storage over 5 bytes/s, after 12 ms: a port, the backbone, l1.
        (
            {"type": "parallel_homogeneous_pfs", "bytes_to_read": 20, "bytes_to_write": 0, "storage": "x"},
            {"alloc": "1", "mapping": {"0": 0, "1": 0}, "storage_mapping": {"x": 4}},
            8.012,
        ),
        # FATPIPE: 7 bytes/s for each of the flows, so the ports decide: 40 bytes at 10 bytes/s, after 22 ms.
        (
            {"type": "parallel_homogeneous_pfs", "bytes_to_read": 20, "bytes_to_write": 0, "storage": "x"},
            {"alloc": "1", "mapping": {"0": 0, "1": 0}, "storage_mapping": {"x": 5}},
            4.022,
        ),
        (
            {"type": "data_staging", "nb_bytes": 45, "from": "one", "to": "two"},
            {"storage_mapping": {"one": 4, "two": 5}},
            5.0,
        ),
    ],
)
def test_a_job_as_derived_by_hand(tmp_path: Path, profile: Data, how: Data, seconds: float) -> None:
    assert lasts(tmp_path, profile, how) == pytest.approx(seconds, rel=1e-9)


IO = {"type": "parallel", "cpu": [0, 0, 0], "com": [0, 0, 0, 0, 0, 0, 50, 50, 0]}


@pytest.mark.parametrize(
    ("profile", "beside", "seconds"),
    [
        # 100 bytes from the storage over 5 bytes/s; the job's own 30 bytes arrive beside 50 more at 10 bytes/s.
        (HOMOGENEOUS, IO, 20.012),
        ({"type": "parallel", "cpu": [100, 0]}, {**IO, "com": [0, 0, 0, 5, 0, 0, 0, 0, 0]}, 1.003),
        # Flops of both on one core.
        ({"type": "parallel", "cpu": [100, 0]}, {**IO, "cpu": [300, 0, 0], "com": [0] * 9}, 4.0),
        (
            {"type": "composed", "repeat": 2, "seq": ["part", "wait"]},
            {"type": "composed", "seq": ["io", "nothing"]},
            2 * (20.012 + 5.0),
        ),
    ],
)
def test_transfers_beside_a_job_as_derived_by_hand(tmp_path: Path, profile: Data, beside: Data, seconds: float) -> None:
    how = {"additional_io_job": {"alloc": "0-1 4", "profile_name": "new", "profile": beside}}
    parts = {
        "part": HOMOGENEOUS, "wait": {"type": "delay", "delay": 5}, "io": IO,
        "nothing": {"type": "parallel_homogeneous", "cpu": 0, "com": 0},
    }  # fmt: skip
    used = [{**JOB, "id": i, "res": res, "profile": name, "subtime": 1000 * i}
            for i, (name, res) in enumerate((("p", 2), ("io", 3), ("nothing", 3)))]  # fmt: skip
    replayed, _ = executed(tmp_path, CLUSTER, {"p": profile, **parts}, used, Executor({"w0!0": how}))
    assert replayed.finish_time[0] - replayed.start_time[0] == pytest.approx(seconds, rel=1e-9)


amount = st.one_of(st.just(0.0), st.floats(0.5, 1000.0))


@st.composite
def placements(draw: st.DrawFn) -> tuple[str, list[int], list[int], list[float], list[float]]:
    """Draw a platform, an allocation, the place of each rank, and a task."""
    ranks, alloc = draw(st.integers(1, 5)), sorted(draw(st.sets(st.integers(0, 3), min_size=1)))
    mapping = draw(st.lists(st.integers(0, len(alloc) - 1), min_size=ranks, max_size=ranks))
    flops = draw(st.lists(amount, min_size=ranks, max_size=ranks))
    sent = draw(st.lists(amount, min_size=ranks**2, max_size=ranks**2))
    return draw(st.sampled_from([*PLATFORMS])), alloc, mapping, flops, sent


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(placements())
def test_ranks_that_share_hosts_last_as_by_the_reference(
    tmp_path: Path, placed: tuple[str, list[int], list[int], list[float], list[float]]
) -> None:
    platform, alloc, mapping, flops, sent = placed
    profile = {"type": "parallel", "cpu": flops, "com": sent}
    how = {"alloc": " ".join(map(str, alloc)), "mapping": {str(rank): host for rank, host in enumerate(mapping)}}
    job = {**JOB, "res": len(flops)}
    replayed, wiring = executed(tmp_path, PLATFORMS[platform], {"p": profile}, [job], Executor({"w0!0": how}))
    ends = [f"a{alloc[place]}" for place in mapping]
    flows = {(i // len(flops), i % len(flops)): size for i, size in enumerate(sent)}
    expected = seconds_alone(wiring, ends, dict(enumerate(flops)), flows)
    assert replayed.finish_time[0] - replayed.start_time[0] == pytest.approx(expected, rel=1e-6)
    assert replayed.sizes.tolist() == [len(alloc)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from([*PLATFORMS]), *(st.lists(amount, min_size=n, max_size=n) for n in (2, 4, 16)))
def test_matrices_are_added_as_by_the_reference(
    tmp_path: Path, platform: str, flops: list[float], own: list[float], beside: list[float]
) -> None:
    """The job is on hosts 1 and 3; its transfers are between these and both storages."""
    names = ["a1", "a3", "pfs", "qfs"]
    how = {"alloc": "1 3", "additional_io_job": {"alloc": "1 3-5", "profile_name": "io",
           "profile": {"type": "parallel", "cpu": [1, 0, 0, 0], "com": beside}}}  # fmt: skip
    profile = {"type": "parallel", "cpu": flops, "com": own}
    replayed, wiring = executed(tmp_path, PLATFORMS[platform], {"p": profile}, [JOB], Executor({"w0!0": how}))
    sent = {(i // 4, i % 4): size for i, size in enumerate(beside)}
    for i, size in enumerate(own):
        sent[i // 2, i % 2] += size
    expected = seconds_alone(wiring, names, {0: flops[0] + 1, 1: flops[1]}, sent)
    assert replayed.finish_time[0] - replayed.start_time[0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("profile", "how", "says"),
    [
        (HOMOGENEOUS, {"mapping": {"0": 0}}, "mapping: it names the ranks 0"),
        (HOMOGENEOUS, {"mapping": {"0": 0, "1": 2}}, "rank 1 is on host 2 of 2"),
        (HOMOGENEOUS, {"alloc": "0"}, "it is given 1 resource"),
        ({"type": "data_staging", "nb_bytes": 1, "from": "one", "to": "qfs"}, {}, "'one' is missing"),
        ({"type": "data_staging", "nb_bytes": 1, "from": "pfs", "to": "qfs"}, {"storage_mapping": {"pfs": 3}}, "is 3"),
        ({"type": "delay", "delay": 1}, {"additional_io_job": {"alloc": "0-1 4", "profile_name": "io"}}, "be merged"),
        (HOMOGENEOUS, {"additional_io_job": {"alloc": "0-2", "profile_name": "io"}}, "resource 2 is neither"),
        (HOMOGENEOUS, {"additional_io_job": {"alloc": "0-1", "profile_name": "none"}}, "'none' is not known"),
        (HOMOGENEOUS, {"additional_io_job": {"alloc": "0-1"}}, "profile_name"),
        (
            HOMOGENEOUS,
            {"mapping": {"0": 1, "1": 0}, "additional_io_job": {"alloc": "0-1 4", "profile_name": "io"}},
            "it has a mapping",
        ),
        (
            HOMOGENEOUS,
            {
                "additional_io_job": {
                    "alloc": "4-5",
                    "profile_name": "x",
                    "profile": {"type": "parallel", "cpu": [1, 0]},
                }
            },
            "storages cannot compute",
        ),
    ],
)
def test_what_cannot_be_executed_is_one_error(tmp_path: Path, profile: Data, how: Data, says: str) -> None:
    with pytest.raises(PolicyError, match=says):
        io: dict[str, Any] = {"io": IO}
        used = [JOB, {**JOB, "id": 1, "res": 3, "profile": "io", "subtime": 9}]
        executed(tmp_path, CLUSTER, {"p": profile, **io}, used, Executor({"w0!0": how}))


def test_registered_jobs_may_send(tmp_path: Path) -> None:
    staging = {"type": "data_staging", "nb_bytes": 45, "from": "one", "to": "two"}
    also = [
        (1.0, "REGISTER_PROFILE", {"workload_name": "dyn", "profile_name": "s", "profile": staging}),
        (2.0, "REGISTER_JOB", {"job_id": "dyn!7", "job": {"profile": "s", "res": 1, "id": "7"}}),
    ]
    component = Executor({"dyn!7": {"alloc": "3", "storage_mapping": {"one": 5, "two": 4}}}, also)
    replayed, _ = executed(
        tmp_path, CLUSTER, {"p": {"type": "delay", "delay": 50}}, [JOB], component,
        config={"dynamic-jobs-enabled": True, "dynamic-jobs-acknowledged": True},
    )  # fmt: skip
    assert (replayed.finish_time - replayed.start_time).tolist() == pytest.approx([50.0, 5.0])


@pytest.mark.parametrize(
    ("profile", "at", "progress"),
    [
        ("delay", 4.0, {"profile_name": "delay", "progress": 0.4}),
        ("even", 3.0, {"profile_name": "even", "progress": 0.75}),
        # 3 ms of latency, then 30 bytes at 10 bytes/s.
        ("sends", 1.503, {"profile_name": "sends", "progress": 0.5}),
        ("sends", 0.002, {"profile_name": "sends", "progress": 0.0}),
        ("waits", 26.0, {"profile_name": "waits", "current_task_index": 3,
                         "current_task": {"profile_name": "even", "progress": 0.5}}),
        # Each round takes 10 + 3.003 s; in the second it sends.
        ("mixed", 24.506, {"profile_name": "mixed", "current_task_index": 3,
                           "current_task": {"profile_name": "sends", "progress": 0.5}}),
        ("nested", 13.004, {"profile_name": "nested", "current_task_index": 1, "current_task": {
            "profile_name": "mixed", "current_task_index": 1,
            "current_task": {"profile_name": "sends", "progress": 0.0}}}),
    ],
)  # fmt: skip
def test_a_killed_job_says_how_far_it_was(tmp_path: Path, profile: str, at: float, progress: Data) -> None:
    profiles = {
        "delay": {"type": "delay", "delay": 10}, "even": {"type": "parallel_homogeneous", "cpu": 400, "com": 0},
        "sends": {"type": "parallel_homogeneous", "cpu": 0, "com": 30},
        "waits": {"type": "composed", "repeat": 5, "seq": ["delay", "even"]},
        "mixed": {"type": "composed", "repeat": 5, "seq": ["delay", "sends"]},
        "nested": {"type": "composed", "seq": ["sends", "mixed"]},
    }  # fmt: skip
    jobs = [{**JOB, "profile": profile}, *({**JOB, "id": i, "profile": name, "subtime": 500 * i}
                                            for i, name in enumerate(profiles, 1))]  # fmt: skip
    component = Executor({}, [(at, "KILL_JOB", {"job_ids": ["w0!0"]})])
    replayed, _ = executed(tmp_path, CLUSTER, profiles, jobs, component)
    (killed,) = (event for event in component.events if event["type"] == "JOB_KILLED")
    assert killed["data"]["job_ids"] == ["w0!0"]
    reported = killed["data"]["job_progress"]["w0!0"]
    assert reported == approximately(progress)
    assert replayed.killed is not None and replayed.killed.tolist() == [True, *[False] * 6]
    assert replayed.finish_time[0] == pytest.approx(at)


def approximately(progress: Data) -> Data:
    return {
        key: approximately(value)
        if isinstance(value, dict)
        else pytest.approx(value, abs=1e-6)
        if key == "progress"
        else value
        for key, value in progress.items()
    }
