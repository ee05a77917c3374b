"""Jobs that squeue of a real Slurm 22.05 showed as blocked by a limit are blocked in the same state, and no others."""

from __future__ import annotations

import gzip
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pilotfish.simulate.kernels.interpreted import Tables
from pilotfish.simulate.kernels.object_cache import load
from pilotfish.simulate.kernels.slurm import job_limits
from pilotfish.simulate.kernels.slurm.tables import PENDING, Slurm
from pilotfish.simulate.slurm.site_tables import completed, site_block
from pilotfish.simulate.slurm.twin import ADVANCE, REPEAT
from tests.support.slurm_recordings import Run, cases
from tests.support.twin_checks import recorded_phases, site_of

#: Cases with limits -> how many of the jobs that squeue showed as blocked must be. An exclusive job counts the CPUs of
#: the nodes that its last test found; where nodes differ, the record does not say which these were.
CASES = {"memory": 0.85, "tiers": 0.9}
RECORDED = cases()
if not RECORDED:
    reason = "NOT TESTED: no recordings of a real Slurm in */data/slurm-real; SLURM_RECORDINGS=FOLDER"
    pytest.skip(reason, allow_module_level=True)


@pytest.fixture(scope="module")
def kernel() -> Any:
    return load("slurm.site_requests")  # before its functions are made plain


def samples(run: Run) -> Iterator[tuple[float, dict[str, str]]]:
    """Yield (time, reason of each waiting job by name) of each sample of squeue; arrays are left out."""
    time, is_queue, reasons = 0.0, False, dict[str, str]()
    with gzip.open(run.folder / "samples.txt.gz", "rt", encoding="utf-8") as file:
        for line in file:
            if sample := re.match(r"# t=([0-9.]+)", line):
                if reasons:
                    yield time, reasons
                time, reasons = run.t0 + float(sample[1]), {}
            elif line.startswith("#"):
                is_queue = line.startswith("## squeue")
            elif is_queue and line.count("|") >= 7:
                name, state, reason = (line.split("|")[cell] for cell in (1, 3, 5))
                if state == "PD" and "_" not in line.split("|")[0]:
                    reasons[name] = reason
    yield time, reasons


def is_blocked(world: Any, job: int) -> bool:
    """Return whether limits block a job with what it asked for in its last test."""
    row = world.jobs[job]
    part, nodes = int(world.job_parts[row.part0]), int(row.min_nodes)
    cpus = int(row.counted_cpus or row.min_cpus)
    memory = int(row.memory) * (cpus if row.memory_per_cpu else nodes)
    world.count.chosen = 0
    return job_limits.is_blocked_before_nodes(world, job, part, 0) or bool(
        job_limits.is_blocked_with_nodes(world, job, part, 0, cpus, nodes, memory, int(row.gpus) * nodes)
    )


@pytest.mark.parametrize("case", sorted(RECORDED.keys() & CASES.keys()))
def test_limits_block_the_jobs_that_squeue_showed(
    case: str, kernel: Any, plain_python: None, tmp_path: Path
) -> None:  # fmt: skip
    numbers, differences = Counter[tuple[bool, bool]](), list[str]()
    for run in RECORDED[case]:
        site = completed(site_of(run, tmp_path))
        block = site_block(site, recorded_phases(run, site), repeats=True)
        world, rows = Tables(Slurm, block.address), defaultdict[str, list[int]](list)
        for row, one in enumerate(site.jobs):
            rows[one.name].append(row)
        starts = sorted((int(start), row) for row, start in enumerate(block.history["start"]))
        for time, reasons in samples(run):
            while starts and starts[0][0] <= time:
                start, row = starts.pop(0)
                kernel(block.address, ADVANCE, float(start))
                kernel(block.address, REPEAT, float(row))
            kernel(block.address, ADVANCE, time)
            for name, text in reasons.items():
                for row in [row for row in rows[name] if block.jobs[row]["state"] == PENDING]:
                    pair = bool(re.match("Assoc|QOS", text)), is_blocked(world, row)
                    numbers[pair] += 1
                    if pair[0] != pair[1]:
                        differences.append(f"{run} {time - run.t0:.0f} s: {name} {text}")
    shown, others = numbers[True, True] + numbers[True, False], numbers[False, True] + numbers[False, False]
    assert shown > 20 and others > 300
    assert numbers[True, True] >= CASES[case] * shown, (numbers, differences)
    assert numbers[False, True] <= 0.01 * others, (numbers, differences)
