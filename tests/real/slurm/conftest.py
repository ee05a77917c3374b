"""A plain Slurm (`slurm`) and a whole site with accounting and REST (`site`), each started once; every test begins with
an empty queue. Each group of tests that share one is run by one process: `xdist_group("slurm 1")`, `("site 1")`, and so
on."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("fast_slurm", "pairs", "slurm_cluster", "slurm_daemon", "slurm_lua", "slurm_site")
sys.path.insert(0, str(Path(__file__).parents[2] / "contract"))
pytest.register_assert_rewrite("adapter_contract")

import guardian
import slurm_cluster
import slurm_lua
import slurm_site
from slurm_cluster import SlurmCluster
from slurm_lua import LuaSlurm
from slurm_site import SlurmSite

Cluster = TypeVar("Cluster", bound=SlurmCluster)


@pytest.fixture(scope="session")
def whole_slurm() -> Iterator[SlurmCluster]:
    """Slurm, started once."""
    yield from _whole(SlurmCluster, slurm_cluster.missing())


@pytest.fixture(scope="session")
def whole_site() -> Iterator[SlurmSite]:
    """A site, started once."""
    yield from _whole(SlurmSite, slurm_site.missing())


@pytest.fixture(scope="session")
def whole_lua() -> Iterator[LuaSlurm]:
    """Slurm with job_submit.lua, started once."""
    yield from _whole(LuaSlurm, slurm_cluster.missing() or slurm_lua.missing())


@pytest.fixture
def slurm(whole_slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmCluster]:
    """Slurm with nothing in its queue, and the commands pointed at it."""
    yield from _for_one_test(whole_slurm, monkeypatch)


@pytest.fixture
def new_slurm(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmCluster]:
    """A Slurm that remembers no job, and the commands pointed at it."""
    for cluster in _whole(SlurmCluster, slurm_cluster.missing()):
        yield from _for_one_test(cluster, monkeypatch)


@pytest.fixture
def lua(whole_lua: LuaSlurm, monkeypatch: pytest.MonkeyPatch) -> Iterator[LuaSlurm]:
    """Slurm with job_submit.lua as shipped and nothing in its queue, and the commands pointed at it."""
    whole_lua.shared()
    whole_lua.served.touch()
    whole_lua.install()
    yield from _for_one_test(whole_lua, monkeypatch)


@pytest.fixture
def site(whole_site: SlurmSite, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmSite]:
    """A site with nothing in its queue, and the commands pointed at it."""
    yield from _for_one_test(whole_site, monkeypatch)


def _whole(make: Callable[[Path], Cluster], why_not: str) -> Iterator[Cluster]:
    if why_not:
        pytest.skip(f"SKIPPED, no real Slurm: {why_not}")
    with tempfile.TemporaryDirectory(prefix="slurm-", dir=guardian.folder(), ignore_cleanup_errors=True) as folder:
        cluster = make(Path(folder) / "slurm")
        try:
            cluster.up()
            yield cluster
        finally:
            cluster.down()


def _for_one_test(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    cluster.up()
    for name in [name for name in os.environ if name.startswith(("SLURM_", "SQUEUE_", "SBATCH_"))]:
        monkeypatch.delenv(name)
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    yield cluster
    cluster.up()
    cluster.clear()
