"""One real Slurm for all tests here; each test begins with an empty queue."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("slurm_cluster", "slurm_daemon")
sys.path.insert(0, str(Path(__file__).parents[2] / "contract"))
pytest.register_assert_rewrite("adapter_contract")

from slurm_cluster import SlurmCluster, missing  # noqa: E402


@pytest.fixture(scope="session")
def whole_slurm() -> Iterator[SlurmCluster]:
    """Slurm, started once."""
    if why := missing():
        pytest.skip(f"SKIPPED, no real Slurm: {why}")
    with tempfile.TemporaryDirectory(prefix="pilotfish-slurm-", ignore_cleanup_errors=True) as folder:
        cluster = SlurmCluster(Path(folder) / "slurm")
        try:
            cluster.up()
            yield cluster
        finally:
            cluster.down()


@pytest.fixture
def slurm(whole_slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmCluster]:
    """Slurm with nothing in its queue, and the commands pointed at it."""
    whole_slurm.up()
    for name in [name for name in os.environ if name.startswith(("SLURM_", "SQUEUE_", "SBATCH_"))]:
        monkeypatch.delenv(name)
    for name, value in whole_slurm.environment.items():
        monkeypatch.setenv(name, value)
    yield whole_slurm
    whole_slurm.up()
    whole_slurm.clear()
