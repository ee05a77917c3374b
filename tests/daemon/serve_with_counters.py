"""A daemon for test_node_counters: the service on the local adapter, with a /sys that shows a PMU."""

import functools
import importlib.util
import sys
from pathlib import Path

from pilotfish.cli.streams import show
from pilotfish.daemon import service
from pilotfish.daemon.learning import node_counters
from pilotfish.profiles.measure.neighbour_counters import NeighbourCounters
from pilotfish.profiles.probes import external_counter

spec = importlib.util.spec_from_file_location("kit", Path(__file__).with_name("conftest.py"))
kit = importlib.util.module_from_spec(spec)
spec.loader.exec_module(kit)

if __name__ == "__main__":
    external_counter.TOOLS = frozenset()  # other tests may count at the same time
    vars(node_counters)["NeighbourCounters"] = functools.partial(NeighbourCounters, root=Path(sys.argv[2]))
    sys.exit(service.Service(Path(sys.argv[1]), show=show, planner=kit.first_fit).run())
