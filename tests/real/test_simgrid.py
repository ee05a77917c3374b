"""Run times of jobs on SimGrid platforms of every kind, next to the real SimGrid."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pilotfish.formats.replays.machines import read_machine
from pilotfish.formats.replays.workloads import read_workload
from pilotfish.formats.simgrid.network import SimGridWiring
from pilotfish.simulate.model.machine import machine_of, speeds_of, storages_of
from pilotfish.simulate.model.network import solved_as
from pilotfish.simulate.queue_policies.policy_specs import parse
from pilotfish.simulate.replay.replay import replay
from pilotfish.simulate.world.replay_result import Replayed
from tests.reference.plain_ptask import seconds_alone
from tests.support.simgrid_platforms import KINDS, Platforms, workload

#: The interpreter that has Debian's module simgrid.
PYTHON = "/usr/bin/python3"
#: Platforms of each kind.
SEEDS = 8


@pytest.fixture(scope="session", autouse=True)
def simgrid() -> None:
    """Skip the tests where there is no SimGrid."""
    if not Path(PYTHON).exists() or subprocess.run([PYTHON, "-c", "import simgrid"], capture_output=True).returncode:
        pytest.skip("SKIPPED, no SimGrid here: package python3-simgrid")


def replayed(folder: Path) -> tuple[Replayed, list[str]]:
    """Return a replay in the order of submission, with SimGrid's solver, and the names of the resources."""
    cluster = read_machine(folder / "p.xml")
    jobs = read_workload(folder / "w.json", speeds=speeds_of(cluster), storages=storages_of(cluster))
    machine = machine_of(cluster, whole_nodes=True)
    if machine.network is not None:
        machine = replace(machine, network=partial(solved_as, "simgrid", machine.network))
    return replay(jobs, machine, parse("strict")), [node.name for node in cluster.nodes]


def write_jobs(path: Path, platform: Path, done: Replayed, names: list[str], given: dict[str, Any]) -> None:
    """Write the jobs of a replay for SimGrid, with the same starts and hosts."""
    jobs, profile_of = [], {job["id"]: job["profile"] for job in given["jobs"]}
    for i, job_id in enumerate(done.workload.more["name"].tolist()):
        pieces = done.pieces[done.piece0[i] :][: done.piece_count[i]].tolist()
        hosts = [names[host] for first, last in pieces for host in range(first, last + 1)]
        jobs.append({"id": job_id, "start": float(done.start_time[i]), "hosts": hosts, "profile": profile_of[job_id]})
    path.write_text(json.dumps({"platform": str(platform), "profiles": given["profiles"], "jobs": jobs}))


def ends_on_simgrid(files: Sequence[Path]) -> list[dict[str, float]]:
    """Return the end of each job of each file."""
    ran = subprocess.run(
        [PYTHON, Path(__file__).with_name("simgrid_jobs.py"), *files],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]


@pytest.mark.parametrize("overlapping", [False, True], ids=["alone", "overlapping"])
@pytest.mark.parametrize("kind", KINDS)
def test_jobs_last_as_long_as_on_simgrid(tmp_path: Path, kind: str, overlapping: bool) -> None:
    """Alone on all links; next to other jobs where every link is shared."""
    played, files = list[Replayed](), list[Path]()
    for seed in range(SEEDS):
        random, folder = Random(f"{kind} {overlapping} {seed}"), tmp_path / f"seed{seed}"
        folder.mkdir()
        text, storages = Platforms(random, fat=not overlapping).platform(kind)
        (folder / "p.xml").write_text(text)
        hosts = len(read_machine(folder / "p.xml").nodes)
        given = workload(random, hosts, storages, apart=0.4 if overlapping else 1e4, to_itself=kind != "graph")
        (folder / "w.json").write_text(json.dumps(given))
        done, names = replayed(folder)
        write_jobs(folder / "jobs.json", folder / "p.xml", done, names, given)
        played.append(done)
        files.append(folder / "jobs.json")
    for done, path, ends in zip(played, files, ends_on_simgrid(files), strict=True):
        wanted = [ends[name] for name in done.workload.more["name"].tolist()] - done.start_time
        lasts = done.finish_time - done.start_time
        assert lasts.tolist() == pytest.approx(wanted.tolist(), rel=1e-4 if overlapping else 1e-6, abs=1e-8), path


def test_the_reference_of_tasks_whose_ranks_share_hosts_is_simgrid(tmp_path: Path) -> None:
    """The replays of mappings are compared with this reference."""
    known, files = list[list[float]](), list[Path]()
    for seed in range(3 * SEEDS):
        random = Random(f"ranks {seed}")
        text, _ = Platforms(random, fat=True).platform(random.choice([kind for kind in KINDS if kind != "graph"]))
        (tmp_path / f"{seed}.xml").write_text(text)
        wiring = read_machine(tmp_path / f"{seed}.xml").wiring
        assert isinstance(wiring, SimGridWiring)
        profiles, jobs, lasts = dict[str, Any](), list[dict[str, Any]](), list[float]()
        for i in range(5):
            size, some = random.randint(2, 5), random.sample(wiring.nodes, min(len(wiring.nodes), random.randint(1, 3)))
            ends = [random.choice(some).name for _ in range(size)]
            flops = [random.choice([0.0, random.uniform(1, 5e9)]) for _ in range(size)]
            sent = [random.choice([0.0, random.uniform(1, 5e7)]) for _ in range(size * size)]
            profiles[str(i)] = {"type": "parallel", "cpu": flops, "com": sent}
            jobs.append({"id": str(i), "start": 1e4 * i, "hosts": ends, "profile": str(i)})
            flows = {divmod(k, size): amount for k, amount in enumerate(sent)}
            lasts.append(seconds_alone(wiring, ends, dict(enumerate(flops)), flows))
        files.append(tmp_path / f"{seed}.json")
        files[-1].write_text(
            json.dumps({"platform": str(tmp_path / f"{seed}.xml"), "profiles": profiles, "jobs": jobs})
        )
        known.append(lasts)
    for lasts, found, path in zip(known, ends_on_simgrid(files), files, strict=True):
        assert [end - 1e4 * int(job) for job, end in sorted(found.items())] == pytest.approx(
            lasts, rel=1e-6, abs=1e-7
        ), path
