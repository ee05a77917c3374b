"""Each profile of a Batsim workload on each kind of SimGrid platform, alone, against a reference flow by flow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pilotfish.formats.replays.machines import read_machine
from pilotfish.formats.replays.workloads import read_workload
from pilotfish.formats.simgrid.network import SimGridWiring
from pilotfish.simulate.model.machine import machine_of, speeds_of, storages_of
from pilotfish.simulate.queue_policies.policy_specs import parse
from pilotfish.simulate.replay.replay import replay
from tests.reference.plain_ptask import seconds_alone

Data = dict[str, Any]
MASTER = '<zone id="M" routing="Full"><host id="master_host" speed="1Gf"/></zone>'


def cluster(more: str, sharing: str = "SHARED") -> str:
    """Return a cluster of 8 hosts, and two storages, one behind a link of that sharing."""
    return f"""{MASTER}
<cluster id="c" prefix="a" suffix="" radical="0-7" speed="1Gf" bw="125MBps" lat="50us" {more}/>
<zone id="S1" routing="Full"><host id="pfs" speed="1Gf"><prop id="role" value="storage"/></host></zone>
<zone id="S2" routing="Full"><host id="lcfs" speed="1Gf"><prop id="role" value="storage"/></host></zone>
<link id="l1" bandwidth="300MBps" latency="100us"/><link id="lss" bandwidth="80MBps" latency="10us"/>
<link id="l2" bandwidth="200MBps" latency="70us" sharing_policy="{sharing}"/>
<zoneRoute src="c" dst="S1" gw_src="ac_router" gw_dst="pfs"><link_ctn id="l1"/></zoneRoute>
<zoneRoute src="c" dst="S2" gw_src="ac_router" gw_dst="lcfs"><link_ctn id="l2"/></zoneRoute>
<zoneRoute src="S1" dst="S2" gw_src="pfs" gw_dst="lcfs"><link_ctn id="lss"/></zoneRoute>"""


TWO = f"""{MASTER}
<cluster id="c1" prefix="a" suffix="" radical="0-3" speed="1Gf" bw="125MBps" lat="50us" bb_bw="1GBps" bb_lat="10us"/>
<cluster id="c2" prefix="b" suffix="" radical="0-3" speed="2Gf" bw="250MBps" lat="30us"/>
<link id="t" bandwidth="100MBps" latency="200us"/>
<zoneRoute src="c1" dst="c2" gw_src="ac1_router" gw_dst="bc2_router"><link_ctn id="t"/></zoneRoute>"""
NESTED = f"""{MASTER}<zone id="A" routing="Full"><zone id="A1" routing="Full">
<host id="h0" speed="1Gf"/><host id="h1" speed="2Gf"/><router id="r1"/><link id="l01" bandwidth="100MBps" latency="10us"/>
<link id="l0r" bandwidth="90MBps" latency="7us"/><link id="l1r" bandwidth="80MBps" latency="6us" sharing_policy="SPLITDUPLEX"/>
<route src="h0" dst="h1"><link_ctn id="l01"/></route><route src="h0" dst="r1"><link_ctn id="l0r"/></route>
<route src="h1" dst="r1"><link_ctn id="l1r" direction="UP"/></route></zone>
<zone id="A2" routing="Floyd"><host id="h2" speed="1Gf"/><host id="h3" speed="3Gf"/><router id="r2"/>
<link id="m2" bandwidth="70MBps" latency="3us"/><link id="m3" bandwidth="60MBps" latency="2us" sharing_policy="FATPIPE"/>
<route src="h2" dst="r2"><link_ctn id="m2"/></route><route src="h3" dst="r2"><link_ctn id="m3"/></route></zone>
<link id="aa" bandwidth="50MBps" latency="1ms"/>
<zoneRoute src="A1" dst="A2" gw_src="r1" gw_dst="r2"><link_ctn id="aa"/></zoneRoute></zone>
<zone id="B" routing="Dijkstra"><host id="h4" speed="1Gf"/><host id="h5" speed="1Gf"/><host id="h6" speed="1Gf"/>
<link id="n1" bandwidth="40MBps" latency="1us"/><link id="n2" bandwidth="30MBps" latency="1us"/>
<route src="h4" dst="h5"><link_ctn id="n1"/></route><route src="h5" dst="h6"><link_ctn id="n2"/></route></zone>
<link id="ab" bandwidth="20MBps" latency="5ms" sharing_policy="SPLITDUPLEX"/>
<zoneRoute src="A" dst="B" gw_src="r1" gw_dst="h5"><link_ctn id="ab" direction="UP"/></zoneRoute>"""
PLATFORMS = {
    "cluster": cluster(""), "backbone": cluster('bb_bw="1GBps" bb_lat="20us"'),
    "fat backbone": cluster('bb_bw="200MBps" bb_lat="20us" bb_sharing_policy="FATPIPE"'),
    "shared": cluster('sharing_policy="SHARED"'), "fat": cluster('sharing_policy="FATPIPE"'),
    "full duplex": cluster('sharing_policy="FULLDUPLEX"'),
    "limiter": cluster('limiter_link="150MBps" bb_bw="1GBps" bb_lat="1us"'),
    "loopback": cluster('loopback_bw="400MBps" loopback_lat="5us" bb_bw="1GBps" bb_lat="1us"'),
    "cores": cluster('core="4" bb_bw="1GBps" bb_lat="0"'), "far": cluster('bb_bw="100GBps" bb_lat="30ms"'),
    "fat storage": cluster('bb_bw="1GBps" bb_lat="1us"', "FATPIPE"), "two clusters": TWO, "nested": NESTED,
}  # fmt: skip


def profiles(size: int) -> tuple[dict[str, Data], dict[str, Any]]:
    """Return profiles, and of each its flops and matrix, its parts, its seconds, or its transfers with storages."""
    flops = [1e9 * (1 + i % 3) for i in range(size)]
    matrix = [1e6 * (1 + (7 * i + 3 * k) % 5) for i in range(size) for k in range(size)]
    between = [0 if i % (size + 1) == 0 else one for i, one in enumerate(matrix)]
    even = [float(i % (size + 1) != 0) for i in range(size * size)]
    means: dict[str, tuple[Data, Any]] = {
        "matrix": ({"type": "parallel", "cpu": flops, "com": between}, (flops, between)),
        "itself": ({"type": "msg_par", "cpu": [0] * size, "com": matrix}, ([0] * size, matrix)),
        "even": ({"type": "parallel_homogeneous", "cpu": 2e9, "com": 3e6}, ([2e9] * size, [3e6 * one for one in even])),
        "bytes": ({"type": "msg_par_hg", "cpu": 0, "com": 3e7}, ([0] * size, [3e7 * one for one in even])),
        "total": ({"type": "parallel_homogeneous_total", "cpu": 2e9, "com": 3e7},
                  ([2e9 / size] * size, [3e7 / size * one for one in even])),
        "delay": ({"type": "delay", "delay": 3.5}, 3.5),
        "mixed": ({"type": "composed", "repeat": 3, "seq": ["even", "delay", "matrix"]}, 3 * ["even", "delay", "matrix"]),
        "again": ({"type": "composed", "repeat": 4, "seq": ["bytes"]}, 4 * ["bytes"]),
        "nested": ({"type": "composed", "nb": 2, "seq": ["again", "delay"]}, 2 * ["again", "delay"]),
        "nothing": ({"type": "parallel_homogeneous", "cpu": 0, "com": 0}, 0.0),
        "pfs": ({"type": "parallel_homogeneous_pfs", "bytes_to_read": 5e7, "bytes_to_write": 3e7}, ("pfs", 5e7, 3e7)),
        "lcfs": ({"type": "msg_par_hg_pfs", "bytes_to_read": 0, "bytes_to_write": 3e7, "storage": "lcfs"}, ("lcfs", 0, 3e7)),
        "stores": ({"type": "composed", "repeat": 2, "seq": ["pfs", "lcfs", "even"]}, 2 * ["pfs", "lcfs", "even"]),
        "staging": ({"type": "data_staging", "nb_bytes": 7e7, "from": "lcfs", "to": "pfs"}, ("lcfs", "pfs", 7e7)),
    }  # fmt: skip
    return {name: one for name, (one, _) in means.items()}, {name: one for name, (_, one) in means.items()}


def seconds(wiring: SimGridWiring, names: list[str], means: dict[str, Any], what: Any) -> float:
    """Return how long a profile lasts."""
    size = len(names)
    if isinstance(what, float):
        return what
    if isinstance(what, list):
        return sum(seconds(wiring, names, means, means[part]) for part in what)
    if isinstance(what[1], str):
        return seconds_alone(wiring, what[:2], {}, {(0, 1): what[2]})
    if isinstance(what[0], str):
        flows = {(size, i): what[1] for i in range(size)} | {(i, size): what[2] for i in range(size)}
        return seconds_alone(wiring, [*names, what[0]], {}, flows)
    return seconds_alone(
        wiring, names, dict(enumerate(what[0])), {divmod(i, size): one for i, one in enumerate(what[1])}
    )


@pytest.mark.parametrize("kind", PLATFORMS)
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_alone_each_profile_lasts_as_by_the_reference(tmp_path: Path, kind: str, size: int) -> None:
    text = f'<platform version="4.1"><zone id="AS0" routing="Full">{PLATFORMS[kind]}</zone></platform>'
    (tmp_path / "p.xml").write_text(text)
    machine = read_machine(tmp_path / "p.xml")
    assert isinstance(machine.wiring, SimGridWiring)
    by_name, means = profiles(size)
    used = (
        [*by_name]
        if storages_of(machine)
        else [name for name in by_name if name not in ("pfs", "lcfs", "stores", "staging")]
    )
    jobs = [{"id": i, "subtime": 1000 * i, "res": size, "profile": name} for i, name in enumerate(used)]
    (tmp_path / "w.json").write_text(json.dumps({"jobs": jobs, "profiles": {name: by_name[name] for name in used}}))
    workload = read_workload(tmp_path / "w.json", speeds=speeds_of(machine), storages=storages_of(machine))
    replayed = replay(workload, machine_of(machine, whole_nodes=True), parse("strict"))
    names = [node.name for node in machine.nodes[:size]]
    for i, name in enumerate(used):
        expected = seconds(machine.wiring, names, means, means[name])
        assert replayed.finish_time[i] - replayed.start_time[i] == pytest.approx(expected, rel=1e-6, abs=1e-9), name
