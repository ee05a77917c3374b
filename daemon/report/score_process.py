"""Run a command of pilotfish in a process that ends with the service that started it, also when that is killed.

python -P -m pilotfish.daemon.report.score_process PID WORDS...
"""

from __future__ import annotations

import runpy
import sys

from ..compilation import die_with

if __name__ == "__main__":
    die_with(int(sys.argv.pop(1)))
    runpy.run_module("pilotfish.cli", run_name="__main__", alter_sys=True)
