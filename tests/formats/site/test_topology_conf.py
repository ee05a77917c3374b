"""Switches of topology.conf: what a site has of them, and errors with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotfish.formats.site.site_folder import read_site
from pilotfish.formats.site.topology_conf import site_switches, topology_lines
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.slurm.site import SiteSwitch
from pilotfish.simulate.slurm.switch_tables import order_of_levels
from tests.support.slurm_site_files import CONF, write_site

TOPOLOGY = "Include leaves.conf\nswitchname=top Switches=s[0-1] # all\n"
LEAVES = "SwitchName=s0 Nodes=n[1-2] LinkSpeed=3\nSwitchName=s1 Nodes=n4,other7\n"
TREE = f"{CONF}TopologyPlugin=topology/tree\n"


def test_switches_have_the_nodes_of_the_site_in_the_order_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "topology.conf").write_text(TOPOLOGY)
    (tmp_path / "leaves.conf").write_text(LEAVES)
    unknown = list[str]()
    assert site_switches(topology_lines(tmp_path / "topology.conf"), ["n1", "n2", "n3", "n4"], unknown) == (
        SiteSwitch("s0", ("n1", "n2")), SiteSwitch("s1", ("n4",)), SiteSwitch("top", switches=("s0", "s1")),
    )  # fmt: skip
    assert unknown == [
        "topology.conf: other7: left out, since slurm.conf has no such nodes",
        "topology.conf: n3 below no switch: no job runs there, as in Slurm",
    ]


def test_what_slurm_only_warns_of_is_said(tmp_path: Path) -> None:
    leaves = "SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n[2-4]\n"
    (tmp_path / "topology.conf").write_text(f"{leaves}SwitchName=c Switches=a\nSwitchName=d Switches=a,b,c\n")
    unknown = list[str]()
    assert len(site_switches(topology_lines(tmp_path / "topology.conf"), ["n1", "n2", "n3", "n4"], unknown)) == 4
    assert unknown == [
        "topology.conf: n2 below several leaf switches: jobs may start on other nodes",
        "topology.conf: a below several switches: jobs may start on other nodes",
        "topology.conf: leaf switches of different depths: jobs may start on other nodes",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SwitchName=t Switches=a\nSwitchName=a Switches=b\nSwitchName=b Switches=a\n", "line 2, Switches: .*itself: a, b"),
        ("SwitchName=a Switches=a\n", "line 1, Switches: .*itself: a "),
        ("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n", "line 2: found 'a', which line 1 describes, too"),
        ("SwitchName=a Nodes=n1\nSwitchName=b Switches=c\n", "line 2, Switches: found 'c', which no line describes"),
        ("SwitchName=a Nodes=n1\nSwitchName=b\n", "line 2: found 'b' without nodes and switches, or with both"),
        ("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2 Switches=a\n", "line 2: found 'b' without nodes and switches"),
        ("SwitchName=a Nodes=n[1-\n", r"line 1, Nodes: found 'n\[1-'"),
        ("SwitchName=a Nodes=n[1-999999]\n", "line 1, Nodes: found .*, too many names .allowed: at most 200,000 names"),
        ("BlockName=a Nodes=n1\n", "line 1: a line begins with 'blockname' "),
        ("# all\nSwitchNam=a Nodes=n1\n", "line 2: a line begins with 'switchnam'; did you mean 'switchname'"),
        ("SwitchName=a Nodes=n1\nNodeName=n1\n", "line 2: a line begins with 'nodename'"),
        ("SwitchName=a Node=n1\n", "line 1: unknown key 'node'; did you mean 'nodes'"),
    ],
)  # fmt: skip
def test_errors_name_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "topology.conf").write_text(text)
    with pytest.raises(ConfigError, match=f"topology.conf: {message}"):
        site_switches(topology_lines(tmp_path / "topology.conf"), ["n1", "n2"], [])


@pytest.mark.parametrize(
    ("conf", "has_switches", "is_said"),
    [
        (TREE, True, False),
        (CONF, False, False),
        (f"{TREE}TopologyParam=Dragonfly\n", False, True),
        (f"{TREE}TopologyParam=TopoOptional\n", False, False),
        (f"{CONF}TopologyPlugin=topology/3d_torus\n", False, True),
        (TREE.replace("select/cons_tres", "select/linear"), False, True),
    ],
)
def test_a_site_has_switches_where_they_decide(tmp_path: Path, conf: str, *, has_switches: bool, is_said: bool) -> None:
    (write_site(tmp_path, slurm_conf=conf) / "topology.conf").write_text("SwitchName=s0 Nodes=n[1-4]\n")
    site = read_site(tmp_path)
    assert bool(site.switches) == has_switches
    assert any(sentence.startswith("TopologyPlugin=") for sentence in site.unknown) == is_said


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        (
            {},
            "no scontrol_topo.txt: without topology.conf, TopologyPlugin is not followed: jobs may start elsewhere, or sooner",
        ),
        ({"topology.conf": ""}, "topology.conf: no switches: nodes are chosen without them, as in Slurm"),
        ({"topology.conf": "# later\nInclude e.conf\n", "e.conf": "\n"}, "topology.conf: no switches: "),
        ({"scontrol_topo.txt": "No topology information available\n"}, "scontrol_topo.txt: no switches: "),
    ],
)
def test_a_tree_without_switches_is_replayed_without_them(tmp_path: Path, files: dict[str, str], sentence: str) -> None:
    """As slurmctld 22.05 does; it does not start without topology.conf, but a recording may lack it."""
    write_site(tmp_path, slurm_conf=TREE)
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    site = read_site(tmp_path)
    assert site.switches == () and sum(text.startswith(sentence) for text in site.unknown) == 1
    assert not any(text.startswith("TopologyPlugin") for text in site.unknown)


def test_a_long_chain_of_switches_is_ordered_from_its_leaf(tmp_path: Path) -> None:
    chain = "".join(f"SwitchName=c{i} Switches=c{i + 1}\n" for i in range(2000))
    (tmp_path / "topology.conf").write_text(f"{chain}SwitchName=c2000 Nodes=n1\n")
    switches = site_switches(topology_lines(tmp_path / "topology.conf"), ["n1"], [])
    assert order_of_levels(switches) == [f"c{i}" for i in reversed(range(2001))]


def test_a_running_slurm_shows_the_same_switches(tmp_path: Path) -> None:
    """As a slurmctld 22.05 shows this topology.conf."""
    (write_site(tmp_path, slurm_conf=TREE) / "topology.conf").write_text(f"{LEAVES}SwitchName=top Switches=s[0-1]\n")
    expected = read_site(tmp_path)
    (tmp_path / "topology.conf").unlink()
    (tmp_path / "scontrol_topo.txt").write_text("""SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[1-2]
SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n4,other7
SwitchName=top Level=1 LinkSpeed=1 Nodes=n[1-2,4] Switches=s[0-1]
""")
    site = read_site(tmp_path)
    assert site.switches == expected.switches and len(site.switches) == 3
    assert not any(sentence.startswith("TopologyPlugin") for sentence in site.unknown)
