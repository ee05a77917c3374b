"""The distribution of tests to workers: as pytest-xdist's `loadgroup`, but by file, without idle processors, and at a cost
that does not grow with the tests that have ended.

A unit of work is a group of tests (`xdist_group`), or the other tests of one file: what a module sets up, such as a
trained model, is set up once, not once in each worker.

Tests next to real services mostly wait, so there are more workers than processors. All of them would wait at first,
because the longest groups begin first. So the last workers, one for each processor, begin at the other end of the queue,
where the pure tests are: they compute while the others wait.

xdist's scheduler counts the tests of all units that a worker ever got after each test, and looks for each test in the
list of all: for 10,000 tests these take longer than 1,000 tests. Here a unit that has ended is forgotten, and each test
has its place in a table.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController


class Distribution(LoadGroupScheduling):
    """Gives each worker the next unit when it has at most two tests left."""

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """Note the tests that a worker has collected."""
        super().add_node_collection(node, collection)
        self._places = {name: place for place, name in enumerate(collection)}  # all workers collect the same

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Forget a unit whose tests have ended, and give the worker the next one. O(tests of the unit)."""
        name = self.registered_collections[node][item_index]
        scope = self._split_scope(name)
        unit = self.assigned_work[node].get(scope, {})
        unit[name] = True
        if all(unit.values()):
            self.assigned_work[node].pop(scope, None)
        self._reschedule(node)

    def _split_scope(self, nodeid: str) -> str:
        group = super()._split_scope(nodeid)
        return nodeid.partition("::")[0] if group == nodeid else group

    def _assign_work_unit(self, node: WorkerController) -> None:
        scope, unit = self.workqueue.popitem(last=self._computes(node))
        self.assigned_work[node][scope] = unit
        node.send_runtest_some([self._places[name] for name, is_ended in unit.items() if not is_ended])

    def _computes(self, node: WorkerController) -> bool:
        """Return if a worker is one of the last, which begin with the pure tests; none does where each has a processor."""
        processors = len(os.sched_getaffinity(0))
        number = int(node.gateway.id.removeprefix("gw"))
        return self.numnodes > processors and number >= self.numnodes - processors
