"""A daemon for test_service: the service on the local adapter, with the tests' planner, or with --simulate the real one.

With --slow a plan lasts until a file `go` is next to the configuration; meanwhile there is a file `planning`.
"""

import importlib.util
import sys
from pathlib import Path

from pilotfish.cli.streams import show
from pilotfish.daemon.service import Service
from pilotfish.simulate.errors import PilotfishError

spec = importlib.util.spec_from_file_location("kit", Path(__file__).with_name("conftest.py"))
kit = importlib.util.module_from_spec(spec)
spec.loader.exec_module(kit)


def slow(problem, cluster, options):
    folder = Path(sys.argv[1]).parent
    (folder / "planning").touch()
    while not (folder / "go").exists():
        options.breathe()
    return kit.first_fit(problem, cluster, options)


if __name__ == "__main__":
    chosen = {} if "--simulate" in sys.argv else {"planner": slow if "--slow" in sys.argv else kit.first_fit}
    try:
        sys.exit(Service(Path(sys.argv[1]), show=show, dry_run="--dry-run" in sys.argv, **chosen).run())
    except PilotfishError as error:
        sys.exit(f"pilotfish: error: {error}")
