"""This machine's jobs as a dry run sees them: read, and nothing else.

Rule: it makes no file, takes no place in the state directory and starts nobody, so that it may look at the state
of a daemon that is at work.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from ...simulate.plan import Action
from ...simulate.platform import Cluster
from ...simulate.snapshot import NodeState, Snapshot
from ..base import AdapterError, Capabilities
from .checks import check_cluster
from .observe import Observer

POLL_S = 1.0


class LocalView:
    """The local adapter without hands. `state_dir` need not exist: then there are no jobs."""

    name = "local"
    capabilities = Capabilities(starts=True, usage=True)

    def __init__(self, cluster: Cluster, state_dir: str | os.PathLike[str]) -> None:
        check_cluster(cluster)
        self.cluster = cluster
        self.notes: Sequence[str] = ()
        self._jobs = Path(state_dir).absolute() / "jobs"
        self._observer = Observer(self._jobs, lambda directory, fd: None)
        self._version = 0

    def snapshot(self) -> Snapshot:
        """Read the world; see `LocalAdapter.snapshot`."""
        jobs = self._observer.jobs() if self._jobs.is_dir() else ()
        here = os.sched_getaffinity(0)
        states = (NodeState.UP if here.issuperset(node.cpus) else NodeState.DOWN for node in self.cluster.nodes)
        self._version += 1
        return Snapshot(time.time(), self._version, self.cluster, tuple(states), tuple(jobs))

    def apply(self, action: Action) -> None:
        """Refuse: a view does nothing."""
        raise AdapterError(f"a dry run does nothing: {action.key}", kind="refused")

    def forget(self, key: str) -> None:
        """Refuse: a view keeps what is there."""
        raise AdapterError(f"a dry run does nothing: {key}", kind="refused")

    def wait(self, timeout_s: float) -> bool:
        """Sleep; whether something changed is seen by the next snapshot."""
        time.sleep(max(0.0, min(timeout_s, POLL_S)))
        return False

    def fileno(self) -> None:
        """There is nothing to poll."""

    def close(self) -> None:
        """Nothing to let go of."""
