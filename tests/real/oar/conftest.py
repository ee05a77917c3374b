"""A real OAR, started once for each group of its tests, see oar_mounts; every test begins with an empty queue."""

from __future__ import annotations

import fcntl
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("oar_campaigns", "oar_cluster", "oar_daemon", "oar_mounts", "oar_site", "oar_world")
sys.path.insert(0, str(Path(__file__).parents[2] / "contract"))
pytest.register_assert_rewrite("adapter_contract")

import guardian
import oar_cluster
import oar_mounts
from oar_cluster import USERS, OarCluster
from oar_site import Shim

from pilotfish.adapters import request_guard


@contextmanager
def _alone() -> Iterator[None]:
    """Another run of the tests has the configuration: wait for its end."""
    with oar_cluster.CONFIG.parent.joinpath("oar_ssh_host_rsa_key.pub").open() as alone:
        fcntl.flock(alone, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def whole_oar() -> Iterator[OarCluster]:
    """OAR, started once."""
    if why_not := oar_cluster.missing():
        pytest.skip(f"SKIPPED, no real OAR: {why_not}")
    with (
        tempfile.TemporaryDirectory(prefix="oar-", dir=guardian.folder(), ignore_cleanup_errors=True) as folder,
        oar_mounts.copied_folders(Path(folder) / "mounts") if oar_mounts.possible() else _alone(),
    ):
        cluster = OarCluster(Path(folder) / "oar")
        try:
            cluster.up()
            yield cluster
        finally:
            Shim(cluster, "root").remove()
            cluster.down()


@pytest.fixture
def oar(whole_oar: OarCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[OarCluster]:
    """OAR with nothing in its queues. Its late answers are the machine's: it is not left alone for them."""
    monkeypatch.setattr(request_guard, "LATE_S", oar_cluster.PATIENCE_S)
    yield whole_oar
    whole_oar.up()
    whole_oar.clear()


@pytest.fixture
def shim(oar: OarCluster) -> Iterator[Shim]:
    """The shim as installed, for a file of root's, which is missing."""
    yield from _installed(Shim(oar, "root"))


@pytest.fixture
def users_shim(oar: OarCluster) -> Iterator[Shim]:
    """The shim as installed, for a file of the daemon's user."""
    yield from _installed(Shim(oar, USERS[0]))


def _installed(shim: Shim) -> Iterator[Shim]:
    shim.install()
    yield shim
    shim.file.unlink(missing_ok=True)
