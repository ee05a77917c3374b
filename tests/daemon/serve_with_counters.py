"""A daemon for test_beside: the service on the local adapter, on a machine that has a PMU as far as /sys tells."""

import functools
import importlib.util
import sys
from pathlib import Path

from pilotfish.daemon import service
from pilotfish.profiles.alongside import Alongside
from pilotfish.profiles.probes import busy

spec = importlib.util.spec_from_file_location("kit", Path(__file__).with_name("conftest.py"))
kit = importlib.util.module_from_spec(spec)
spec.loader.exec_module(kit)

if __name__ == "__main__":
    busy.TOOLS = frozenset()  # whom other tests have count meanwhile
    service.Alongside = functools.partial(Alongside, root=Path(sys.argv[2]))
    sys.exit(service.Service(Path(sys.argv[1]), planner=kit.first_fit).run())
