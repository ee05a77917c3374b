"""The twin against recordings of a real Slurm: one step, planned starts, windows, free runs with 30 phases.

Rule: the numbers are those of the checks in tests/simulate/slurm/test_recorded_runs.py, with more phases. The standard
error of a free run has the spread of recorded runs in all cases, because three runs of one case do not show it.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from .show import heading, table

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from tests.support.slurm_recordings import cases  # noqa: E402
from tests.support.twin_checks import (  # noqa: E402
    FreeRuns,
    OneStep,
    Plans,
    Windows,
    free_runs,
    one_step,
    planned,
    pooled,
    real_spread,
    site_of,
    windows,
)

PHASES, QUICK_PHASES, WINDOW_PHASES = 30, 3, 4


def measure(quick: bool) -> None:
    """Print the checks of all recorded cases; nothing without recordings."""
    by_case = cases()
    heading("Slurm's twin against a real Slurm 22.05" + ("" if by_case else ": no recordings here"))
    total, all_plans, results, rows = OneStep(), Plans(), list[FreeRuns](), []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for case, runs in by_case.items():
            began = time.perf_counter()
            steps = sum((one_step(run, site_of(run, folder)) for run in runs), OneStep())
            free = free_runs(runs, folder, range(QUICK_PHASES if quick else PHASES))
            plans = sum((planned(run, site_of(run, folder)) for run in runs), Plans())
            parts = sum((windows(run, site_of(run, folder), range(WINDOW_PHASES)) for run in runs), Windows())
            total, all_plans, results = total + steps, all_plans + plans, [*results, free]
            rows.append(
                (
                    case, f"{100 * steps.same / steps.real:.1f} %", f"{100 * steps.same_nodes / steps.same:.1f} %",
                    f"{100 * steps.extra / steps.real:.1f} %", f"{100 * plans.same / plans.expected:.1f} %",
                    f"{100 * parts.error:+.1f} ({100 * parts.noise:.1f}) %",
                    f"{100 * free.error:+.1f} %", free.missing, f"{time.perf_counter() - began:.1f} s",
                )
            )  # fmt: skip
    table(("case", "same start", "same nodes", "extra", "same plan", "10 min (2 SE)", "free", "missing", "took"), rows)
    if not by_case:
        return
    error, noise = pooled(results)
    spread = real_spread(results)
    print(f"one step: {total.summary()}")
    print(f"planned starts: {all_plans.summary()}")
    print(f"free run: pooled error {100 * error:+.2f} %, two standard errors {100 * noise:.1f} %")
    print(
        f"recorded runs of a case differ by {100 * spread:.1f} % (sd of the mean wait); two standard errors of a case:"
    )
    print(", ".join(f"{one.case} {100 * one.error:+.1f} ({100 * one.noise_of(spread):.1f}) %" for one in results))
    for word, counts in (("missed", total.missed_rules), ("extra", total.extra_rules)):
        print(f"{word}: " + ", ".join(f"{rule} {number}" for rule, number in counts.most_common(12)))
    if "--lines" in sys.argv:
        print("\n".join(total.lines))
