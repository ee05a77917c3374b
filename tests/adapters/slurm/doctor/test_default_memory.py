"""The doctor's finding about jobs that get all memory of a node because they ask for none."""

from __future__ import annotations

import pytest

from pilotfish.adapters.findings import WARNING, Finding
from pilotfish.adapters.slurm.doctor.questions import ask
from pilotfish.adapters.slurm.records import SlurmNode
from pilotfish.simulate.model.snapshot import NodeState
from tests.support.slurm_answers import CONFIG, NODES, PARTITION, Recorded, found

#: As Slurm prints a site without a default, and each of the three defaults.
NONE = "DefMemPerNode           = UNLIMITED\nJobDefaults             = (null)\n"
PER_CPU = "DefMemPerCPU            = 2048\nJobDefaults             = (null)\n"
PER_NODE = "DefMemPerNode           = 4096\nJobDefaults             = (null)\n"
PER_GPU = "DefMemPerNode           = UNLIMITED\nJobDefaults             = DefCpuPerGPU=2,DefMemPerGPU=8192\n"


def site(defaults: str, settings: str = CONFIG, **partitions: str) -> list[Finding]:
    """Return the findings about blocked nodes of a site.

    Args:
        defaults: its lines of `scontrol show config` about default memory.
        settings: its other lines.
        partitions: name -> words that replace those of a plain partition.
    """
    config = "".join(line for line in settings.splitlines(True) if not line.startswith(("DefMem", "JobDefaults")))
    config = config.replace("AuthType", f"{defaults}AuthType", 1)
    lines = []
    for name, changes in partitions.items():
        line = PARTITION.format(name=name)
        for change in changes.split():
            key = change.partition("=")[0].replace("DefMemPerCPU", "DefMemPerNode")
            line = " ".join(change if word.startswith(f"{key}=") else word for word in line.split(" "))
            assert change in line
        lines.append(f"{line}\n")
    answers = ask(
        Recorded(**{"scontrol_show_config": config, "scontrol_--oneliner_--all_show_partition": "".join(lines)}),
        "backup",
    )
    answers.nodes = [*NODES, SlurmNode("n3", NodeState.UP, 8, 4 * 2.0**30, partitions=frozenset({"small"}))]
    return [finding for finding in found(answers) if "--mem" in finding.says]


def test_a_site_without_a_default_is_warned_with_a_value_that_fits_its_nodes() -> None:
    (finding,) = site(NONE, main="")
    assert (finding.level, finding.topic) == (WARNING, "memory")
    assert finding.says.startswith("partition main: a job without --mem gets all memory of its nodes")
    assert finding.mend == ("DefMemPerCPU=1024   # MiB, in slurm.conf",)
    (finding,) = site(NONE, main="", small="")
    assert finding.says.startswith("partitions main, small: ") and finding.mend[0].startswith("DefMemPerCPU=512 ")
    (finding,) = site(NONE, empty="")
    assert finding.mend[0].startswith("DefMemPerCPU=... "), "no node tells a value"


@pytest.mark.parametrize("defaults", [PER_CPU, PER_NODE, PER_GPU])
def test_a_default_of_the_site_holds_in_each_partition(defaults: str) -> None:
    assert site(defaults, main="", small="") == []


@pytest.mark.parametrize(
    "words",
    [
        "DefMemPerCPU=512", "DefMemPerNode=4096", "JobDefaults=DefMemPerGPU=8192", "OverSubscribe=EXCLUSIVE",
        "SelectTypeParameters=CR_CORE",
    ],
)  # fmt: skip
def test_a_partition_with_a_default_or_without_neighbours_is_left_out(words: str) -> None:
    (finding,) = site(NONE, main="", other=words)
    assert finding.says.startswith("partition main: ")
    assert site(NONE, other=words) == []


def test_memory_that_is_not_counted_blocks_no_node() -> None:
    cores_only = CONFIG.replace("CR_CPU_MEMORY", "CR_CORE")
    assert site(NONE, cores_only, main="") == []
    (finding,) = site(NONE, cores_only, main="", counts="SelectTypeParameters=CR_CORE_MEMORY")
    assert finding.says.startswith("partition counts: ")
    assert site(NONE, CONFIG.replace("select/cons_tres", "select/linear"), main="") == []


def test_other_defaults_and_zero_are_no_default() -> None:
    assert len(site(NONE.replace("(null)", "DefCpuPerGPU=2"), main="DefMemPerCPU=0")) == 1
