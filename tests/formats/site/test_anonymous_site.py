"""An anonymous site starts the same jobs at the same times, and holds no name of the old one."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from pilotfish.formats.site.anonymous_names import AnonymousNames
from pilotfish.formats.site.anonymous_options import AnonymousOptions
from pilotfish.formats.site.anonymous_site import AnonymousSite
from pilotfish.formats.site.bar_table import read_text
from pilotfish.formats.site.site_folder import read_site
from pilotfish.formats.site.submit_line import submit_options
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.slurm.site import Site
from pilotfish.simulate.slurm.twin import replay_site
from tests.support import effort
from tests.support.slurm_queue_lines import RUNNING, WAITING, line
from tests.support.slurm_recordings import recorded_case
from tests.support.slurm_site_files import COLUMNS, DONE

TEXTS = ("assoc.psv", "qos.psv", "events.psv", "scontrol_node.txt", "scontrol_part.txt")


def texts_of(case: str) -> dict[str, str]:
    folder = recorded_case(case)
    texts = {name: read_text(folder / name) for name in TEXTS}
    texts["scontrol_config.txt"] = read_text(folder / "r1" / "scontrol_config.txt.gz")
    texts["sshare_end.psv"] = read_text(folder / "r1" / "sshare_end.psv.gz")
    lines = read_text(folder / "r1" / "samples.txt.gz").split("\n")
    reserved = [line for line in lines if line.startswith("ReservationName=")]
    texts["scontrol_res.txt"] = "\n".join((*reserved, "No more reservations"))
    texts["sacct.psv"] = read_text(folder / "r1" / "sacct.psv.gz")
    return texts


def anonymous(texts: dict[str, str], names: AnonymousNames, size: int = 1000) -> dict[str, str]:
    site = AnonymousSite(names)
    header, *lines = texts["sacct.psv"].rstrip("\n").split("\n")
    changed = {name: site.text(name, text) or "" for name, text in texts.items() if name != "sacct.psv"}
    records = [record for i in range(0, len(lines), size) for record in site.records(header, lines[i : i + size])]
    assert not site.left_out
    return {**changed, "sacct.psv": "".join((f"{header}\n", *records))}


def site_in(folder: Path, texts: dict[str, str]) -> Site:
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text)
    return read_site(folder)


@pytest.mark.parametrize("case", effort.some(["plain", "tiers", "arrays", "memory", "preempt"]))
def test_the_anonymous_site_starts_the_same(case: str, tmp_path: Path) -> None:
    texts = texts_of(case)
    site = site_in(tmp_path / "old", texts)
    names = AnonymousNames(node.name for node in site.nodes)
    changed = anonymous(texts, names)
    other = site_in(tmp_path / "new", changed)
    before, after = replay_site(site, 3), replay_site(other, 3)
    assert [(start.job, start.start, start.end) for start in before.starts] == [
        (start.job, start.start, start.end) for start in after.starts
    ]
    assert len(other.associations) == len(site.associations)
    old = {job.user for job in site.jobs} | {job.account for job in site.jobs} | {job.name for job in site.jobs}
    text = "\n".join(changed.values())
    assert [name for name in old if re.search(rf"\b{re.escape(name)}\b", text)] == []
    mapping = json.loads(names.mapping())
    assert set(mapping["user"]) == {job.user for job in site.jobs} and set(mapping["job"]) >= {
        job.name for job in site.jobs
    }


COMMANDS = (
    "sbatch -N2-4 -n 8 -c2 --mem-per-cpu 2G -t 1-0 -p a,b -A Lab -q high -J secret -w n[1-2] -x n3 --wrap=rm x",
    "sbatch --mem=4G --mem-per-cpu=1G -L matlab:2 -d afterok:12:13,singleton --begin=now+1hour --nice /home/ann/job.sh arg",
    "/usr/bin/srun --exclusive=user -C a&b --gres=gpu:a100:2 --reservation=exam -H --deadline=2026-03-02T10:00 ./a.out",
    "salloc -N1", "sbatch", "", "sbatch job.sh", "qsub -l nodes=2 job", "sbatch --no-requeue -s -O --hint=nomultithread x",
    "sbatch -a 1-9%2 -N1 : -N3 -c 4 job.sh", "sbatch --output=/home/ann/%j --mail-user=ann@x.org -D /home/ann -n4 job.sh",
)  # fmt: skip


@pytest.mark.parametrize("line", COMMANDS)
@pytest.mark.parametrize("component", [0, 1])
def test_a_reader_of_the_command_sees_the_same_requests(line: str, component: int) -> None:
    names = AnonymousNames(("n1", "n2", "n3"))
    options = submit_options(line, "secret", component)
    command = AnonymousOptions(names).command(line, options, component)
    after = submit_options(command, "job1", component)
    assert after.is_whole == options.is_whole and not after.unknown
    dropped = {"wrap", "output", "mail-user", "chdir", "label"}
    named = {"account", "job-name", "reservation", "nodelist", "exclude"}
    assert after.values.keys() - dropped == options.values.keys() - dropped
    assert {name: after.values[name] for name in after.values if name not in dropped | named} == {
        name: options.values[name] for name in after.values if name not in dropped | named
    }
    assert after.last_of("mem", "mem-per-cpu") == options.last_of("mem", "mem-per-cpu")
    assert not re.search(r"ann|secret|Lab|exam|job\.sh|a\.out|rm x", command)


def test_whatever_users_write_is_gone_and_no_line_is_forged(tmp_path: Path) -> None:
    draw = random.Random(5)
    header = COLUMNS
    secret = "s3cr3t"
    for _ in range(200):
        texts = ["".join(draw.choice(("|", "\n", " ", "=", "-", "'", ":", secret)) for _ in range(9)) for _ in range(2)]
        command = f"sbatch --comment={texts[1]} -J {texts[0]} -n2 {texts[1]}"
        row = {**DONE, "JobName": texts[0], "SubmitLine": command}
        site = AnonymousSite(AnonymousNames())
        lines = [*site.records(header, "|".join(row[name] for name in COLUMNS.split("|")).split("\n"))]
        assert secret not in "".join(lines)
        assert len(lines) + sum(site.left_out.values()) >= 1


def test_scripts_and_words_that_are_no_names() -> None:
    names = AnonymousNames(["gpu1", "n7"])
    site = AnonymousSite(names)
    script = f"Batch Script for 7\n{'-' * 80}\n#!/bin/bash\n#SBATCH -N2 -A lab -J 'my job'\n# secret\ncd /home/ann\n"
    assert site.text("scripts.txt", script) == (
        f"Batch Script for 7\n{'-' * 80}\n#!/bin/sh\n#SBATCH --nodes=2 --account=account1 --job-name=job1\n"
    )
    assert [names.one("user", word) for word in ("root", "ann", "(null)", "ALL", "ann")] == [
        "root", "user1", "(null)", "ALL", "user1",
    ]  # fmt: skip
    assert names.nodes("n7,gpu1") == "node[1-2]" and names.nodes("None assigned") == "None assigned"
    assert site.text("whatever.txt", "secret") is None


CONFIG = """Configuration data as of 2026-03-02T10:00:00
ClusterName             = deepblue
PriorityType            = priority/multifactor
PriorityWeightTRES      = CPU=1000,GRES/gpu=2000
Epilog                  = /home/ann/epilog
SuspendExcNodes         = n[1-2]:1,gpu1
SuspendProgram          = /home/ann/suspend.sh -v
ResumeRate              = 300 nodes/min
SuspendTime             = 600 sec
TopologyPlugin          = topology/tree
MCSPlugin               = mcs/none
"""
SWITCHES = """SwitchName=rack-7 Level=0 LinkSpeed=1 Nodes=n[1-2]
SwitchName=rack-8 Level=0 LinkSpeed=1 Nodes=gpu1
SwitchName=blue Level=1 LinkSpeed=1 Nodes=gpu1,n[1-2] Switches=rack-[7-8]
"""


def test_settings_keep_what_a_replay_reads_without_paths_and_nodes() -> None:
    text = AnonymousSite(AnonymousNames(["n1", "n2", "gpu1"])).text("scontrol_config.txt", CONFIG)
    assert (
        text
        == """Configuration data as of 2026-03-02T10:00:00
clustername = cluster1
prioritytype = priority/multifactor
priorityweighttres = CPU=1000,GRES/gpu=2000
epilog = /x
suspendexcnodes = node[1-2]:1,node3
suspendprogram = /x
resumerate = 300 nodes/min
suspendtime = 600 sec
topologyplugin = topology/tree
mcsplugin = mcs/none
"""
    )


def test_switches_get_other_names_and_keep_their_tree() -> None:
    text = AnonymousSite(AnonymousNames(["n1", "n2", "gpu1"])).text("scontrol_topo.txt", SWITCHES)
    assert (
        text
        == """SwitchName=switch1 Level=0 LinkSpeed=1 Nodes=node[1-2]
SwitchName=switch2 Level=0 LinkSpeed=1 Nodes=node3
SwitchName=switch3 Level=1 LinkSpeed=1 Nodes=node[1-3] Switches=switch[1-2]
"""
    )


def test_damaged_texts_become_other_texts_or_an_error_of_the_configuration() -> None:
    chance = random.Random(9)
    texts = texts_of("tiers") | {"scontrol_job.txt": line(1, RUNNING) + line(900, WAITING)}
    header, *lines = texts.pop("sacct.psv").split("\n")
    names = AnonymousNames(["n01", "n02"])
    refused = 0
    for _ in range(1000):
        name = chance.choice(sorted(texts))
        characters = list(texts[name][: chance.randrange(20, 6000)])
        for _ in range(chance.randint(1, 20)):
            characters[chance.randrange(len(characters))] = chance.choice("=\n|,-[]%():9 \0Aé")
        site = AnonymousSite(names)
        try:
            assert site.text(name, "".join(characters)) is not None
        except ConfigError:
            assert name in ("scontrol_config.txt", *(file for file in texts if file.endswith(".psv")))
            refused += 1
        record = list(chance.choice(lines))
        record.insert(chance.randrange(len(record) + 1), chance.choice("|\n=\0"))
        list(site.records(header, "".join(record).split("\n")))
    assert refused < 100
