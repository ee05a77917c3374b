"""Sixty faults of every kind beside a site, by a seed: nothing is lost, doubled, late, resized, loosened or changed.

`faults.py` runs as many as one likes. Seconds matter only to the oracle, whose allowance is for a busy machine.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest
from fault_kinds import KINDS
from faults import inject
from real_world import COMMAND
from slurm_site import OPERATOR, SlurmSite

FAULTS, SEED, EVERY_S = 60, 7, 2.0


@pytest.mark.xdist_group("site 3")
@pytest.mark.flaky(reruns=0)
def test_no_job_suffers_from_sixty_faults(site: SlurmSite, record_property: Callable[[str, object], None]) -> None:
    argv = ["setpriv", f"--reuid={OPERATOR}", f"--regid={OPERATOR}", "--clear-groups", *COMMAND, "--version"]
    if subprocess.run(argv, capture_output=True, cwd="/").returncode:
        pytest.skip(f"SKIPPED, the user {OPERATOR} may not read the folder in which pilotfish is installed")
    folder = site.shared() / "faults"
    folder.mkdir()
    try:
        report = inject(site, folder, FAULTS, SEED, EVERY_S)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"SKIPPED, no small disk can be made here: {error.stderr.decode().strip()}")
    record_property("measured", report.summary())
    assert not report.violations and not report.problems, report.table()
    assert {kind for _, kind in report.injected} == KINDS.keys() and len(report.injected) == FAULTS
    assert report.sprung and report.runs > report.unsure + report.forgotten
