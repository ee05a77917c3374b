"""slurm.conf: comments, continuations, includes, defaults, node sets, duplicates, and times."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotfish.formats.site.site_folder import read_site
from pilotfish.formats.site.slurm_conf import read_slurm_conf
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.slurm.site import Site, SiteNode, SitePartition
from tests.support.slurm_site_files import CONF, write_site


def site(folder: Path, conf: str) -> Site:
    return read_site(write_site(folder, slurm_conf=conf))


def partitions(folder: Path, lines: str) -> dict[str, SitePartition]:
    head = CONF.partition("PartitionName")[0]
    return {partition.name: partition for partition in site(folder, head + lines).partitions}


def nodes(folder: Path, lines: str) -> dict[str, SiteNode]:
    text = f"SelectType=select/cons_tres\n{lines}\nPartitionName=main Nodes=ALL\n"
    return {node.name: node for node in site(folder, text).nodes}


def test_keys_comments_blanks_quotes_and_continuations(tmp_path: Path) -> None:
    path = tmp_path / "slurm.conf"
    path.write_text(
        "# a comment \\\nKillWait=99\n"
        'KILLWAIT = 45 # seconds\nschedulerparameters="bf_continue,bf_interval=20"\n'
        "PriorityFlags=\\\n  NO_FAIR_TREE\nPrologFlags=a\\#b Epilog=/bin/true\n"
        "NodeName=n1 \\\n  CPUs=4 \\\n  RealMemory=10\n"
    )
    conf = read_slurm_conf(path)
    assert conf.text("KillWait") == "45"  # a backslash continues a comment, too
    assert conf.text("SchedulerParameters") == "bf_continue,bf_interval=20"
    assert conf.text("PriorityFlags") == "NO_FAIR_TREE"
    assert conf.text("PrologFlags") == "a#b"
    assert conf.text("Epilog") == "/bin/true"
    assert dict(conf.lines["nodename"][0].values) == {"nodename": "n1", "cpus": "4", "realmemory": "10"}


def test_a_later_setting_wins_and_is_reported(tmp_path: Path) -> None:
    twice = site(tmp_path, f"KillWait=10\n{CONF}\nkillwait=50\n")
    assert twice.rules.kill_wait_s == 50
    assert any(sentence.startswith("killwait is set more than once") for sentence in twice.unknown)


def test_defaults_hold_for_the_lines_that_follow_and_add_up(tmp_path: Path) -> None:
    lines = (
        "PartitionName=a Nodes=n1\nPartitionName=DEFAULT MaxTime=30 State=UP\nPartitionName=b Nodes=n2\n"
        "PartitionName=default PriorityTier=7\nPartitionName=c Nodes=n3 MaxTime=2-0\n"
    )
    parts = partitions(tmp_path, lines)
    assert [(part.name, part.max_time_min, part.tier) for part in parts.values()] == [
        ("a", None, 1), ("b", 30, 1), ("c", 2880, 7),
    ]  # fmt: skip
    cpus = nodes(tmp_path, "NodeName=DEFAULT CPUs=4\nNodeName=n1\nNodeName=DEFAULT RealMemory=9\nNodeName=n2 CPUs=8")
    assert [(node.cpus, node.memory_mib) for node in cpus.values()] == [(4, 1), (8, 9)]


@pytest.mark.parametrize(
    ("include", "name"),
    [("nodes.conf", "nodes.conf"), ("/etc/slurm/nodes.conf", "nodes.conf"), ("nodes.%c.conf", "nodes.small.conf"),
     ("conf.d/*.conf", "conf.d/nodes.conf")],
)  # fmt: skip
def test_included_files(tmp_path: Path, include: str, name: str) -> None:
    (tmp_path / "conf.d").mkdir()
    (tmp_path / name).write_text("NodeName=n[1-4] CPUs=2\n")
    conf = CONF.replace("NodeName=n[1-4] CPUs=8 Sockets=2 CoresPerSocket=4 RealMemory=16000", f"Include {include}")
    assert [node.cpus for node in site(tmp_path, conf).nodes] == [2] * 4


def test_an_included_file_that_is_missing_or_circular(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"slurm\.conf: line 2: found 'nodes\.conf', which is not in the folder"):
        site(tmp_path, "KillWait=3\ninclude nodes.conf\n")
    with pytest.raises(ConfigError, match=r"slurm\.conf: line 1: files include each other more than 10 deep"):
        site(tmp_path, "Include slurm.conf\n")
    with pytest.raises(ConfigError, match=r"line 1: found '\.\./secret\.conf'"):
        site(tmp_path, "Include ../secret.conf\n")


def test_node_sets_and_all(tmp_path: Path) -> None:
    text = (
        "NodeName=n[1-2] CPUs=1 Feature=gpu,a\nNodeName=n[3-4] CPUs=1 Features=b\nNodeSet=g Feature=gpu\nNodeSet=t Nodes=n4\n"
        "PartitionName=one Nodes=t,g\nPartitionName=two Nodes=ALL\nPartitionName=three Nodes=n3,g\nPartitionName=none\n"
    )
    members = {part.name: part.nodes for part in site(tmp_path, text).partitions}
    assert members == {
        "one": ("n1", "n2", "n4"), "two": ("n1", "n2", "n3", "n4"), "three": ("n1", "n2", "n3"), "none": (),
    }  # fmt: skip


def test_nodes_keep_the_order_of_the_lines_and_their_zeros(tmp_path: Path) -> None:
    text = "NodeName=z[08-10] CPUs=1\nNodeName=gpu[1-2]x[0-1] CPUs=1\nNodeName=a CPUs=1\n"
    assert list(nodes(tmp_path, text)) == ["z08", "z09", "z10", "gpu1x0", "gpu1x1", "gpu2x0", "gpu2x1", "a"]


@pytest.mark.parametrize(
    ("line", "cpus", "cores", "threads"),
    [
        ("", 1, 1, 1),
        ("CPUs=8", 8, 8, 1),
        ("Procs=6", 6, 6, 1),
        ("Sockets=2 CoresPerSocket=4 ThreadsPerCore=2", 16, 8, 2),
        ("Boards=2 SocketsPerBoard=2 CoresPerSocket=3", 12, 12, 1),
        ("CPUs=16 CoresPerSocket=4 ThreadsPerCore=2", 16, 8, 2),
        ("CPUs=8 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2", 8, 8, 1),
        ("CPUs=8 Sockets=2 CoresPerSocket=4 CoreSpecCount=2", 6, 6, 1),
        ("CPUs=8 CpuSpecList=0-1,3", 5, 5, 1),
    ],
)
def test_cpus_of_a_node(tmp_path: Path, line: str, cpus: int, cores: int, threads: int) -> None:
    node = nodes(tmp_path, f"NodeName=n1 {line}")["n1"]
    assert (node.cpus, node.cores, node.threads) == (cpus, cores, threads)


def test_memory_gpus_weight_and_state_of_a_node(tmp_path: Path) -> None:
    line = "NodeName=n1 RealMemory=64G MemSpecLimit=1024 Gres=gpu:a100:4(S:0-1),fs:2,gpu:1 Weight=50 State=DRAIN"
    node = nodes(tmp_path, line + "\nNodeName=n[2-3] State=UNKNOWN\nDownNodes=n3 State=DOWN Reason=x")
    assert (node["n1"].memory_mib, node["n1"].gpus, node["n1"].weight, node["n1"].works) == (64512, 5, 50, False)
    assert (node["n2"].works, node["n3"].works) == (True, False)


def test_a_partition_line(tmp_path: Path) -> None:
    line = (
        "PartitionName=p Nodes=n1 Priority=9 PriorityTier=4 MaxTime=1-12 DefaultTime=1:30:00 MinNodes=2 MaxNodes=unlimited "
        "MaxCPUsPerNode=6 DefMemPerCPU=2G OverSubscribe=EXCLUSIVE LLN=YES State=drain QOS=high PreemptMode=off "
        "GraceTime=120 OverTimeLimit=UNLIMITED AllowAccounts=lab DenyQos=low,b TRESBillingWeights=CPU=1.0,Mem=0.25G\n"
    )
    part = partitions(tmp_path, line)["p"]
    assert (part.tier, part.job_factor, part.max_time_min, part.default_time_min) == (4, 9, 2160, 90)
    assert (part.min_nodes, part.max_nodes, part.max_cpus_per_node, part.default_memory_per_cpu_mib) == (
        2,
        None,
        6,
        2048,
    )
    assert (part.is_exclusive, part.is_least_loaded, part.state, part.qos) == (True, True, "DRAIN", "high")
    assert (part.preempt_mode, part.grace_time_s, part.over_time_limit_min) == ("OFF", 120, 65_534)
    assert (part.allow_accounts, part.allow_qos, part.deny_qos) == ({"lab"}, None, {"low", "b"})
    assert part.billing_weights == {"cpu": 1.0, "mem": 0.25 / 1024}


@pytest.mark.parametrize(
    ("text", "minutes"),
    [("5", 5), ("1:30", 2), ("2:00:00", 120), ("1-6", 1800), ("1-6:30", 1830), ("1-0:0:1", 1441), ("UNLIMITED", None),
     ("INFINITE", None), ("-1", None)],
)  # fmt: skip
def test_forms_of_time_limits(tmp_path: Path, text: str, minutes: int | None) -> None:
    assert partitions(tmp_path, f"PartitionName=p Nodes=n1 MaxTime={text}\n")["p"].max_time_min == minutes


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("KillWait=soon", r"slurm\.conf: line 11, KillWait: found 'soon' \(allowed: seconds\)"),
        ("PriorityMaxAge=x", r"slurm\.conf: line 11, PriorityMaxAge: found 'x'"),
        ("PartitionName=p Nodes=n9", r"slurm\.conf: line 11, Nodes: found 'n9', which no NodeName line describes"),
        ("PartitionName=p Nodes=n[1-", r"slurm\.conf: line 11, Nodes: found 'n\[1-'"),
        ("PartitionName=p LLN=maybe", r"slurm\.conf: line 11, lln: found 'maybe' \(allowed: YES or NO\)"),
        ("PartitionName=", r"slurm\.conf: line 11: a partition without a name"),
        ("NodeName=m CPUs=many", r"slurm\.conf: line 11, cpus: found 'many'"),
        ("what is this", r"slurm\.conf: line 11: found 'what is this' \(allowed: KEY=VALUE"),
    ],
)
def test_a_value_that_cannot_be_read_is_an_error_with_its_line(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        site(tmp_path, f"{CONF}{line}\n")
