"""The shipped data: published numbers, derived by the published formulas."""

import pytest

from pilotfish.profiles import library
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.cluster import Contention

# name: instructions, IPC, memory volume in bytes (IRMaSim, CCGrid 2021, table IV)
NPB = {
    "bt.C": (633.50e10, 3.06, 5.17e12),
    "cg.C": (60.31e10, 1.10, 7.30e12),
    "ep.C": (80.94e10, 1.16, 0.21e12),
    "is.C": (6.43e10, 0.95, 0.07e12),
    "lu.C": (370.25e10, 2.20, 8.70e12),
    "sp.C": (356.10e10, 2.74, 9.60e12),
    "ua.C": (312.57e10, 2.30, 4.32e12),
}


def test_all_seven_are_there():
    assert set(library.profiles()) == set(NPB)


@pytest.mark.parametrize("name", NPB)
def test_npb_follows_from_instructions_ipc_and_volume(name):
    instructions, ipc, volume = NPB[name]
    profile = library.profiles()[name]
    node = library.node_types()[profile.measured_on]
    seconds = instructions / (ipc * node.frequency)
    (group,) = profile.groups
    assert group.demand == pytest.approx(seconds, rel=1e-4)
    assert group.bandwidth == pytest.approx(volume / seconds, rel=1e-3)
    assert (profile.instructions, profile.ipc) == (instructions, ipc)
    assert profile.provenance.source == "measured"


def test_cg_notes_that_it_exceeds_its_node():
    profile = library.profiles()["cg.C"]
    assert profile.groups[0].bandwidth > library.node_types()["i5-7500"].memory_bandwidth
    assert "slow there even alone" in profile.provenance.note


def test_i5_7500_at_three_frequencies():
    expected = {
        "i5-7500": (3.4e9, 6.14, 5.59),
        "i5-7500-2.5GHz": (2.5e9, 3.51, 3.20),
        "i5-7500-1.7GHz": (1.7e9, 2.31, 1.59),
    }
    for name, (frequency, per_core, per_socket) in expected.items():
        node = library.node_types()[name]
        assert (node.frequency, node.cores, node.memory_bandwidth) == (frequency, 4, 38.4e9)
        assert (node.power.per_core, node.power.per_socket) == (per_core, per_socket)
        assert node.contention is Contention.PIECEWISE_LINEAR
        constants = node.piecewise
        assert (constants.b, constants.c, constants.da) == (-1.85e-5, 32000, 1.75)
        assert (constants.db, constants.dc, constants.dd, constants.n_max) == (3500, 45000, 3000, 3)


def test_taurus_has_its_states_and_transitions():
    power = library.node_types()["taurus"].power
    assert (power.idle, power.computing, power.off) == (95.00, 190.74, 9.75)
    assert (power.budget_idle, power.budget_computing) == (100.00, 203.12)
    assert (power.switch_on.watts, power.switch_on.seconds) == (125.17, 151.52)
    assert (power.switch_off.watts, power.switch_off.seconds) == (101.00, 6.10)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("schema: pilotfish/node-types/v1", "node_types"),
        ("schema: pilotfish/node-types/v1\nnode_types: {a: {cores: 1}}", r"node_types\.a"),
        ("schema: pilotfish/node-types/v1\nnode_types: {}\nnodes: []", "unknown key"),
        ("schema: pilotfish/cluster/v1\nnode_types: {}", "schema"),
    ],
)
def test_an_invalid_node_type_file_is_named(tmp_path, text, message):
    path = tmp_path / "types.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        library.read_node_types(path)
    assert caught.value.source == str(path)
