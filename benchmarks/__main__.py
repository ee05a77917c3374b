"""`python -m benchmarks`: measure speed and quality of the product on this machine.

Rule: each figure is printed with its baseline from the same run; no benchmark fails for being slow.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import signal
import time
from pathlib import Path

BENCHMARKS = (
    "whole_plan", "one_decision", "search_gain", "large_workflow", "commands", "daemon_load", "slurm_snapshot",
    "oar_snapshot", "slurm_overhead", "slurm_load", "slurm_gain", "slurm_truth", "slurm_forecasts", "time_min",
    "twin_cost", "site_reading", "trace_replay", "python_policy",
    "edc_messages", "energy_policies", "machines_off", "shared_nodes", "node_speed", "sweep_runs", "irmasim",
    "communication", "prediction", "everyday_jobs", "command_growth", "profiling", "daemon_trace",
    "shadow_jobs", "record_week", "false_step_backs", "large_journal", "thesis_agent", "rule_agents",
    "environment_speed", "web_page",
)  # fmt: skip
#: Benchmarks that also measure given traces.
TRACED = (
    "search_gain", "trace_replay", "shared_nodes", "node_speed", "python_policy", "energy_policies", "communication",
    "prediction", "time_min", "thesis_agent", "environment_speed",
)  # fmt: skip


def main() -> None:
    """Run the selected benchmarks, by default all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=BENCHMARKS, metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="fewer instances and repeats")
    parser.add_argument("--traces", type=Path, metavar="DIR", help="directory of further WfFormat and SWF files")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that what was started ends, too
    print(f"{_processor()}, {os.cpu_count()} CPUs, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}")
    began = time.perf_counter()
    for name in options.only:
        module = importlib.import_module(f".{name}", __package__)
        extra = {"traces": options.traces} if name in TRACED else {}
        module.measure(options.quick, **extra)
    print(f"\ntotal: {time.perf_counter() - began:.0f} s")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown CPU")


if __name__ == "__main__":
    main()
