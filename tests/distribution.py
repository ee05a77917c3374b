"""The distribution of tests to workers: as pytest-xdist's `loadgroup`, at a cost that does not grow with the tests that
have ended.

Its scheduler counts the tests of all units that a worker ever got after each test, and looks for each test in the list
of all: for 10,000 tests these take longer than 1,000 tests. Here a unit that has ended is forgotten, and each test has
its place in a table.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController


class Distribution(LoadGroupScheduling):
    """Gives each worker the next unit when it has at most two tests left; a unit is a test, or a group of tests."""

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

    def _assign_work_unit(self, node: WorkerController) -> None:
        scope, unit = self.workqueue.popitem(last=False)
        self.assigned_work[node][scope] = unit
        node.send_runtest_some([self._places[name] for name, is_ended in unit.items() if not is_ended])
