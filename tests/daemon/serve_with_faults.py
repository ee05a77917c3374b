"""The daemon on a resource manager whose queue cannot be read while a file exists.

The error is the one that a manager gives that is away, if the file says `away`, and otherwise one that is not foreseen.
Its arguments are the configuration and that file.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from pilotfish.adapters.base import Adapter, AdapterError
from pilotfish.daemon.service import Service
from pilotfish.simulate.model.cluster import Cluster
from pilotfish.simulate.model.plan import Action
from pilotfish.simulate.model.snapshot import NodeState, Snapshot


class Faulty(Adapter):
    name = "faulty"

    def __init__(self, cluster: Cluster, **options: Any) -> None:
        self.cluster, self.version = cluster, 0

    def snapshot(self) -> Snapshot:
        fault = Path(sys.argv[2])
        if fault.exists():
            if fault.read_text() == "away":
                raise AdapterError("no answer", transient=True, kind="unreachable")
            float("9" * 400) and int(float("inf"))
        self.version += 1
        return Snapshot(time.time(), self.version, self.cluster, (NodeState.UP,) * len(self.cluster.nodes), ())

    def apply(self, action: Action) -> None:
        raise AssertionError("nothing waits here")

    def wait(self, timeout_s: float) -> bool:
        time.sleep(timeout_s)
        return False


make = lambda name, cluster, **options: Faulty(cluster)  # noqa: E731
sys.exit(Service(Path(sys.argv[1]), show=print, make_adapter=make).run())
