"""Platforms as Batsim sees them: resources and power states; and clusters written as platforms."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.formats.cluster import parse_cluster
from pilotfish.formats.convert import cluster_to_simgrid, simgrid_to_cluster
from pilotfish.formats.replays.machines import read_machine
from pilotfish.formats.simgrid.cluster import cluster_of
from pilotfish.formats.simgrid.platform import parse_platform
from pilotfish.formats.simgrid.write import inverse, platform_text
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.cluster import Cluster, Contention, CoRun, Node, NodeType, Power, PowerState, Transition
from pilotfish.simulate.model.machine import powers_of, storages_of

#: Two computing states, and two sleep states with their transitions.
TAURUS_POWERS = """
  <prop id="wattage_per_state"
    value="95.0:97:190.738, 90:150, 9.75:9.75, 100.9:100.9, 125.1:125.1, 20:20, 30:40, 50:60"/>
  <prop id="wattage_off" value="10"/>
  <prop id="sleep_pstates" value="2:3:4, 5:6:7"/>
"""
SPEEDS = "100Mf, 50Mf, 1e-9Mf, 0.1639344262295082f, 0.006599788806758183f, 1f, 2f, 0.25f"


def zone(inside: str) -> str:
    """Return a platform of one zone."""
    return f'<platform version="4">\n<zone id="z" routing="Full">\n{inside}</zone>\n</platform>'


def seen(text: str) -> Cluster:
    """Return the cluster of a platform file."""
    return cluster_of(parse_platform(zone(text).encode(), "dir/p.xml"))


def test_power_states_are_those_of_batsim() -> None:
    cluster = seen(f'<host id="h" speed="{SPEEDS}">{TAURUS_POWERS}</host>')
    (node,) = cluster.nodes
    kind = node.type
    assert (cluster.name, kind.cores, kind.contention) == ("p", 1, Contention.NONE)
    assert kind.speed == kind.frequency == 1e8
    assert kind.power == Power(
        95.0,
        computing=190.738,
        off=9.75,
        switch_off=Transition(100.9, 6.1),
        switch_on=Transition(125.1, 151.52),
        states=(
            PowerState("pstate1", 90.0, 150.0, 5e7),
            PowerState("pstate5", 20.0, enter=Transition(40.0, 0.5), leave=Transition(60.0, 4.0)),
        ),
        epsilon=97.0,
    )
    powers = powers_of(kind)
    assert powers is not None and (powers.off, powers.on_s, powers.off_s) == (9.75, 151.52, 6.1)


def test_a_host_begins_in_its_initial_state() -> None:
    (node,) = seen(f'<host id="h" pstate="1" speed="{SPEEDS}">{TAURUS_POWERS}</host>').nodes
    assert node.type.speed == 5e7 and node.type.power is not None
    assert (node.type.power.idle, node.type.power.computing) == (90.0, 150.0)
    assert node.type.power.states[0] == PowerState("pstate0", 95.0, 190.738, 1e8)


def test_resources_are_the_computing_hosts_and_storages_in_order_of_name() -> None:
    cluster = seen(
        '<host id="n10" speed="1Gf" core="8"/><host id="n9" speed="1Gf"><prop id="role" value="compute_node"/></host>'
        '<cluster id="c" prefix="m" suffix="" radical="1-11" speed="2Gf" bw="1Bps" lat="0s"/>'
        '<host id="master_host" speed="1Gf"/><host id="master_host0" speed="1Gf"/><host id="boss" speed="1Gf">'
        '<prop id="role" value="master"/></host>'
        '<host id="disk" speed="0f"><prop id="role" value="storage"/></host>'
        '<host id="archive" speed="0f"><prop id="role" value="storage"/></host>'
    )
    middle_names = [f"m{i}" for i in range(2, 10)]
    assert [node.name for node in cluster.nodes] == ["m1", "m10", "m11", *middle_names, "n10", "n9"], "names are text"
    assert storages_of(cluster) == ("archive", "disk")
    assert {node.type.name: node.type.speed for node in cluster.nodes} == {"c": 2e9, "host": 1e9}
    assert cluster.groups == {"c": tuple(f"m{i}" for i in range(1, 12))}


def with_props(*props: tuple[str, str], speed: str = "1f,2f,3f") -> str:
    """Return a host with these properties."""
    inside = "".join(f'<prop id="{key}" value="{value}"/>' for key, value in props)
    return f'<host id="h" speed="{speed}">{inside}</host>'


WATTS = ("wattage_per_state", "1:2,1:2,1:2")


@pytest.mark.parametrize(
    ("props", "off"),
    [
        ([WATTS], None),
        ([("watt_per_state", "1:2,1:2,1:2"), ("watt_off", "0.5")], 0.5),
        ([WATTS, ("wattage_off", " 1e1 ")], 10.0),
        ([WATTS, ("sleep_pstates", " 2:1:1 "), ("wattage_off", "7")], 1.0),
    ],
)
def test_old_names_and_missing_ones(props: list[tuple[str, str]], off: float | None) -> None:
    (node,) = seen(with_props(*props)).nodes
    assert node.type.power is not None and node.type.power.off == off and node.type.power.computing == 2.0


def test_a_host_without_watts_has_no_power() -> None:
    assert seen(with_props(("wattage_off", "5"))).nodes[0].type.power is None


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (with_props(("role", "boss")), "host h.role: found 'boss'"),
        (with_props(("role", "master")), "no host computes"),
        (with_props(speed="0f"), "host h.speed: found 0 flop/s"),
        ('<host id="a:b" speed="1f"/>', "host a:b.id: found 'a:b'"),
        (with_props(("wattage_per_state", "1:2")), "wattage_per_state: found 1 for 3"),
        (with_props(("wattage_per_state", "1,1,1")), "wattage_per_state: found '1'"),
        (with_props(("wattage_per_state", "1:2:3:4,1:2,1:2")), "wattage_per_state: found '1:2:3:4'"),
        (with_props(("wattage_per_state", "2:1,1:2,1:2")), "found '2:1': less power with all cores busy"),
        (with_props(("wattage_per_state", "a:b,1:2,1:2")), "wattage_per_state: found 'a'"),
        (with_props(("wattage_per_state", "-1:2,1:2,1:2")), "wattage_per_state: found '-1'"),
        (with_props(("watt_per_state", "1:nan,1:2,1:2")), "watt_per_state: found 'nan'"),
        (with_props(WATTS, ("wattage_off", "low")), "wattage_off: found 'low'"),
        (with_props(WATTS, ("sleep_pstates", "1:2")), "sleep_pstates: found '1:2'"),
        (with_props(WATTS, ("sleep_pstates", "1:2:3")), "sleep_pstates: found '1:2:3' .*states are 0 to 2"),
        (with_props(WATTS, ("sleep_pstates", "1:2:x")), "sleep_pstates: found '1:2:x'"),
        (with_props(WATTS, ("sleep_pstates", "0:1:2")), "sleep_pstates: found 0, the initial state"),
        (with_props(WATTS, ("sleep_pstates", "1:1:2")), "named twice"),
        (with_props(WATTS, ("sleep_pstates", "1:2:2,1:2:2")), "named twice"),
        (with_props(WATTS, ("sleep_pstates", "1:2:2"), speed="1f,0f,0f"), "switching never ends"),
        (with_props(WATTS, speed="1f,0f,1f"), "host h.speed: found 0 flop/s in state 1"),
    ],
)
def test_what_batsim_would_refuse_is_an_error_with_its_line(text: str, where: str) -> None:
    with pytest.raises(ConfigError, match=f"p.xml: (line 3: )?.*{where}"):
        seen(text)


WATT = st.one_of(st.integers(0, 300).map(float), st.floats(0, 1e6))
#: Of few digits: what is rounded to more digits after an inversion is then the same.
SECONDS = st.one_of(st.integers(1, 500).map(float), st.floats(1e-3, 1e6).map(lambda seconds: float(f"{seconds:.12g}")))
WAY = st.builds(Transition, WATT, SECONDS)


@st.composite
def powers(draw: st.DrawFn) -> Power | None:
    """Draw a power that a platform can express."""
    if draw(st.booleans()):
        return None
    idle, more = draw(WATT), draw(WATT)
    off = (draw(WATT), draw(WAY), draw(WAY)) if draw(st.booleans()) else (draw(st.none() | WATT), None, None)
    states: list[PowerState] = []
    for _ in range(draw(st.integers(0, 2))):
        low = draw(WATT)
        states.append(PowerState("", low, low + draw(WATT), draw(st.floats(1e6, 1e10))))
    if off[1] is not None:
        states += [PowerState("", draw(WATT), enter=draw(WAY), leave=draw(WAY)) for _ in range(draw(st.integers(0, 2)))]
    return Power(idle, computing=idle + more, off=off[0], switch_on=off[1], switch_off=off[2], states=tuple(states))


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Draw nodes of one core, with one speed a type."""
    nodes = []
    for i in range(draw(st.integers(1, 3))):
        speed = draw(st.floats(1e6, 1e12))
        alike = {"frequency": speed, "speed": speed, "contention": Contention.NONE}
        kind = NodeType(f"t{i}", 1, 1e14, 1e14, power=draw(powers()), **alike)
        nodes += [Node(f"n{len(nodes) + k}", kind) for k in range(draw(st.integers(1, 3)))]
    return Cluster("c", tuple(nodes), source="c.yaml")


def as_compared(kind: NodeType) -> Any:
    """Return a cluster without names, which a platform lacks, and without switching times, which it stores inverted."""
    power = kind.power
    if power is None:
        return replace(kind, name="")

    def way(given: Transition | None) -> Transition | None:
        return None if given is None else Transition(given.watts, float(f"{given.seconds:.14g}"))

    states = tuple(replace(state, name="", enter=way(state.enter), leave=way(state.leave)) for state in power.states)
    compared = replace(power, states=states, switch_on=way(power.switch_on), switch_off=way(power.switch_off))
    return replace(kind, name="", power=compared)


@given(clusters())
@settings(max_examples=100, deadline=None)
def test_a_written_platform_reads_back_as_the_same_machine(cluster: Cluster) -> None:
    again = cluster_of(parse_platform(platform_text(cluster).encode(), "p.xml"))
    assert [node.name for node in again.nodes] == [node.name for node in cluster.nodes]
    assert [as_compared(node.type) for node in again.nodes] == [as_compared(node.type) for node in cluster.nodes]
    written = yaml.safe_load(simgrid_to_cluster(parse_platform(platform_text(cluster).encode(), "p.xml")).text)
    assert parse_cluster(written, "p.xml") == again


@pytest.mark.parametrize("seconds", [6.1, 151.52, 1.0, 0.5, 3600.0, 2.0, 20.0, 1 / 3, 61.0, 47.11])
def test_switching_times_read_back_to_the_last_bit(seconds: float) -> None:
    transition = Transition(1.0, seconds)
    power = Power(1.0, computing=2.0, off=0.0, switch_on=transition, switch_off=transition)
    kind = NodeType("t", 1, 1.0, 1.0, speed=1e9, power=power)
    again = cluster_of(parse_platform(platform_text(Cluster("c", (Node("n", kind),))).encode(), "p.xml"))
    assert again.nodes[0].type.power == power


def test_cores_become_hosts_that_share_the_power_of_their_node() -> None:
    transition = Transition(100.0, 10.0)
    power = Power(
        90.0, per_core=3.0, per_socket=5.0, off=9.0, switch_on=transition, switch_off=transition, budget_idle=95.0
    )
    big = NodeType("big", 4, 64e9, 1e10, sockets=2, power=power, co_run_inflation=(CoRun("a", "b", 2.0),))
    odd = replace(big, name="odd", power=replace(power, idle_uncore=0.5))
    one = replace(big, name="one", cores=1, power=None)
    nodes = (Node("a", big), Node("b", odd, memory_domain="d"), Node("c", one))
    converted = cluster_to_simgrid(Cluster("c", nodes, groups={"left": ("a", "b")}, source="c.yaml"))
    assert converted.lost == {
        "unknown speeds: now one flop a cycle": 3,
        "memory and its bandwidth": 3,
        "contention for memory": 3,
        "memory domains, numbers of CPUs": 1,
        "nodes of several cores: now hosts of one": 2,
        "power of these nodes in other states": 2,
        "power that cores do not share evenly": 1,
        "estimates of power for budgets": 2,
        "clusters of nodes": 1,
    }
    assert converted.what == "9 hosts and a master"
    again = cluster_of(parse_platform(converted.text.encode(), "p.xml"))
    assert [node.name for node in again.nodes] == [f"{node}_{core}" for node in "ab" for core in range(4)] + ["c"]
    first, uneven, single = again.nodes[0].type, again.nodes[4].type, again.nodes[8].type
    assert first.power == Power(25.0, computing=28.0) and first.speed == 1e9
    assert uneven.power is None and single.power is None


def test_an_instant_switch_takes_almost_no_time() -> None:
    transition = Transition(1.0, 0.0)
    kind = NodeType(
        "t", 1, 1.0, 1.0, power=Power(1.0, computing=2.0, off=0.0, switch_on=transition, switch_off=transition)
    )
    again = cluster_of(parse_platform(platform_text(Cluster("c", (Node("n", kind),))).encode(), "p.xml"))
    power = again.nodes[0].type.power
    assert power is not None and power.switch_on == Transition(1.0, 1e-18)


def test_more_cores_than_allowed_hosts_are_refused() -> None:
    kind = NodeType("t", 100_000, 1.0, 1.0)
    with pytest.raises(ConfigError, match=r"c\.yaml: nodes: 300000 cores"):
        platform_text(Cluster("c", tuple(Node(f"n{i}", kind) for i in range(3)), source="c.yaml"))


@pytest.mark.parametrize("names", [("master_host",), ("master_host0",), ("a", "a_1"), ("a_0", "a")])
def test_duplicate_host_names_are_refused(names: tuple[str, ...]) -> None:
    nodes = tuple(Node(name, NodeType("t", 2 if name == "a" else 1, 1.0, 1.0)) for name in names)
    with pytest.raises(ConfigError, match="would be defined twice"):
        platform_text(Cluster("c", nodes, source="c.yaml"))


def test_what_a_cluster_file_cannot_express_is_counted() -> None:
    text = zone(
        '<host id="master_host" speed="1f"/>'
        f'<host id="h" core="4" speed="{SPEEDS}">{TAURUS_POWERS}<prop id="mem" value="1"/></host>'
        '<cluster id="c" prefix="m" suffix="" radical="1-3" speed="2Gf" bw="1Bps" lat="0s"/>'
        '<link id="l" bandwidth="1Bps"/><route src="h" dst="h"><link_ctn id="l"/></route>'
    )
    converted = simgrid_to_cluster(parse_platform(text.encode(), "p.xml"), ("a note",))
    assert converted.lost == {
        "hosts that do not compute (master, storage)": 1,
        "cores beyond the first, of hosts": 1,
        "watts of a host that is neither idle nor fully busy": 1,
        "other properties of hosts": 1,
        "networks of clusters": 1,
        "links": 1,
        "routes": 1,
    }
    assert converted.text.startswith("# a note\n# memory") and converted.what == "4 nodes of a core"
    assert parse_cluster(yaml.safe_load(converted.text), "c.yaml").groups == {"c": ("m1", "m2", "m3")}


def test_the_format_of_a_machine_follows_from_its_content(tmp_path: Any) -> None:
    path = tmp_path / "m"
    path.write_text("\ufeff \n" + zone('<host id="h" speed="1Gf"/>'))
    assert [node.name for node in read_machine(path).nodes] == ["h"]
    path.write_text(simgrid_to_cluster(parse_platform(zone('<host id="i" speed="1Gf"/>').encode(), "p.xml")).text)
    assert [node.name for node in read_machine(path).nodes] == ["i"]
    path.write_text("hosts: 5")
    with pytest.raises(ConfigError, match="schema: missing"):
        read_machine(path)


@given(st.floats(1e-6, 1e9))
def test_the_inverse_of_a_time_is_exact_to_the_last_bit(seconds: float) -> None:
    assert abs(1.0 / inverse(seconds) - seconds) <= math.ulp(seconds)


@pytest.mark.parametrize(
    ("core", "watts", "epsilon", "computing"),
    [(1, "10:100", None, 100.0), (4, "10:100", None, 10 + 90 / 4), (4, "10:20:100", 20.0, 20 + 80 / 4)],
)
def test_a_busy_core_is_a_part_of_its_host(core: int, watts: str, epsilon: float | None, computing: float) -> None:
    """Source: SimGrid's documentation, "Host energy plugin": the power grows with the cores in use."""
    text = f'<host id="h" speed="1f" core="{core}"><prop id="wattage_per_state" value="{watts}"/></host>'
    powers = powers_of(seen(text).nodes[0].type)
    assert powers is not None and (powers.idle, powers.epsilon, powers.computing) == (10.0, epsilon, computing)
    again = seen(platform_text(seen(text)).split('Vivaldi">\n')[1].removesuffix("</zone>\n</platform>\n"))
    assert powers_of(again.nodes[0].type) == powers
