"""`python -m tests.benchmarks`: everything that is promised about speed and quality, measured here and now.

Rule: each figure is printed with its baseline from the same run; nothing fails for being slow.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import time
from pathlib import Path

BENCHMARKS = (
    "whole_plan", "one_decision", "search_gain", "large_workflow", "commands", "daemon_load", "slurm_snapshot",
    "slurm_beside", "slurm_gain", "trace_replay", "own_policy", "energy_policies", "machines_off", "sweep_runs",
    "irmasim", "communication", "prediction", "profiling",
)  # fmt: skip
#: Those that measure given traces, too.
TRACED = ("search_gain", "trace_replay", "own_policy", "energy_policies", "communication", "prediction")


def main() -> None:
    """Run the benchmarks that are asked for, all by default."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=BENCHMARKS, metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="fewer instances and repeats")
    parser.add_argument("--traces", type=Path, metavar="DIR", help="WfFormat files to plan, SWF files to replay, too")
    options = parser.parse_args()
    print(f"{_processor()}, {os.cpu_count()} CPUs, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}")
    began = time.perf_counter()
    for name in options.only:
        module = importlib.import_module(f".{name}", __package__)
        extra = {"traces": options.traces} if name in TRACED else {}
        module.measure(options.quick, **extra)
    print(f"\nall of it took {time.perf_counter() - began:.0f} s")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown CPU")


if __name__ == "__main__":
    main()
