"""Configurations in the guides are read by the product; the order of the steps for Slurm is one that works."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from pilotfish.adapters.slurm.doctor.setup import SETUP, UNDO
from pilotfish.daemon.config import load_config
from pilotfish.formats.cluster import read_cluster
from pilotfish.simulate.generate.models import lublin
from pilotfish.simulate.replay.replay import replay
from tests.docs.pages import ROOT, blocks, typed

GUIDES = ROOT / "docs" / "guides"
SLURM = (GUIDES / "slurm.md").read_text(encoding="utf-8")


def order(text: str, *words: str) -> bool:
    """Return whether the words stand in the text in this order."""
    places = [text.index(word) for word in words]
    return places == sorted(places)


def test_the_configurations_of_the_guides_are_read(tmp_path: Path) -> None:
    seen = []
    for guide in sorted(GUIDES.glob("*.md")):
        for text in blocks(guide.read_text(encoding="utf-8"), "yaml"):
            if "pilotfish/daemon/v1" in text:
                (tmp_path / "pilotfish.yaml").write_text(text)
                seen.append((guide.stem, len(text.splitlines()), load_config(tmp_path / "pilotfish.yaml")))
            elif "pilotfish/cluster/v1" in text:
                (tmp_path / "cluster.yaml").write_text(text)
                assert read_cluster(tmp_path / "cluster.yaml").nodes
    assert [(name, lines) for name, lines, _ in seen] == [("oar", 6), ("one-machine", 2), ("replay", 3), ("slurm", 4)]
    assert all(
        seen[at][2].adapter.name == name and seen[at][2].mode == "shadow" for at, name in ((0, "oar"), (3, "slurm"))
    )


@pytest.mark.parametrize("text", [SLURM, SETUP], ids=["guide", "doctor --setup"])
def test_the_unix_user_exists_before_slurm_makes_it_an_operator(text: str) -> None:
    assert order(text, "pilotfish.sysusers.conf /etc/sysusers.d/", "systemd-sysusers\n", "AdminLevel=Operator\n", "systemctl enable --now pilotfishd")  # fmt: skip


@pytest.mark.parametrize("lines", [list(typed(SLURM)), SETUP.splitlines()], ids=["guide", "doctor --setup"])
def test_no_step_copies_into_a_folder_that_may_be_absent(lines: list[str]) -> None:
    into = [line for line in lines if re.search(r" /etc/(sysusers\.d|systemd|pilotfish)\S*$", line) and ">" not in line]
    assert all(line.startswith(("install -D", "rm -r")) for line in into if not line.startswith(("pilotfish", "sed")))


def test_the_steps_change_the_sample_as_they_say(real: None, tmp_path: Path) -> None:
    """From shadow to a canary, and from there to all jobs, by the commands of the guide on the sample that is shipped."""
    config = tmp_path / "pilotfish.yaml"
    config.write_text((ROOT / "systemd" / "pilotfish.slurm.yaml").read_text(encoding="utf-8"))
    (tmp_path / "cluster.yaml").touch()
    changes = [
        line for line in typed(SLURM) if line.startswith(("sed -i", "echo")) and line.endswith("/pilotfish.yaml")
    ]
    configs = [load_config(config)]
    for line in changes:
        subprocess.run(["sh", "-c", line.replace("/etc/pilotfish/pilotfish.yaml", str(config))], check=True)
        configs.append(load_config(config))
    assert [(one.mode, one.handover.share) for one in configs] == [
        ("shadow", 1.0), ("shadow", 1.0), ("shadow", 0.1), ("live", 0.1), ("live", 1.0),
    ]  # fmt: skip
    assert all(one.adapter.options["partitions"] == ["batch"] for one in configs[1:])


def test_undo_takes_lua_out_before_the_script() -> None:
    assert order(SLURM[SLURM.index("## Undo") :], "/^JobSubmitPlugins=lua$/d", "scontrol reconfigure", "rm /etc/slurm/")
    assert "lua out of JobSubmitPlugins" in UNDO


def test_the_policy_of_the_recipe_is_the_compiled_one(tmp_path: Path) -> None:
    recipe = (ROOT / "docs" / "how-to" / "queue-policy.md").read_text(encoding="utf-8")
    (code,) = [text for text in blocks(recipe, "python") if "class Easy" in text]
    names: dict[str, type] = {}
    exec(compile(code, "queue-policy.md", "exec"), names)
    jobs = lublin(400, 64, load=1.1)
    mine, compiled = replay(jobs, 64, names["Easy"]()), replay(jobs, 64)
    assert (mine.start_time == compiled.start_time).all() and (mine.pieces == compiled.pieces).all()
    assert (mine.start_time > jobs.submit_time).any()
