"""Prediction of commands at sizes that were never run; their time follows a known law of an argument or of a file.

Rule: five runs of sizes 1 to 16, each through `profile run`, predict size 64 through `predict command`, then that runs.
The same is predicted from one run alone, of the largest and of the smallest size. The ratio of the slowest to the
fastest of three runs of size 64 stands next to the errors: no forecast can be better than it.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from pilotfish.benchmarks.show import heading, number, table

SIZES, TARGET = (1, 2, 4, 8, 16), 64
#: Steps of the loop for size 1; about 20 million a second on a machine of 2020.
_STEPS = {"constant": 4_000_000, "n": 400_000, "n log n": 40_000, "n^2": 30_000}
_WORK = """import math, sys
law, n, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
size = {"constant": 1, "n": n, "n log n": n * math.log2(1000 * n), "n^2": n * n}[law]
for _ in range(int(steps * size)):
    pass
"""
#: Bytes of a file of size 1; the files are all zeros and take no place.
_FILE_BYTES = 8 << 20
#: Power of an interval of two standard deviations of the logarithm that gives the 10 % and the 90 % quantile.
_TO_QUANTILES = 1.2816 / 2.0


def measure(quick: bool) -> None:
    """Print the table: one row for each law."""
    heading("Commands at 4 times the largest size that was run; goal: within 15 %, after one run inside the interval")
    rows = []
    for law in list(_STEPS)[::2] if quick else [*_STEPS, "file's size"]:
        with tempfile.TemporaryDirectory(prefix="growth") as name:
            rows.append(_row(law, Path(name)))
    table(
        ("law", "ran s", "spread", "forecast s", "error", "inside", "after size 16", "inside", "after 1", "inside"),
        rows,
    )


def _row(law: str, folder: Path) -> list[str]:
    (folder / "work.py").write_text(_WORK)
    for size in (*SIZES, TARGET):
        with (folder / f"{size}.bin").open("wb") as file:
            file.truncate(_FILE_BYTES * size)
    forecasts = list[tuple[float, float, float]]()
    for sizes in (SIZES, SIZES[-1:], SIZES[:1]):
        store = f"after{len(forecasts)}"
        for size in sizes:
            _call(folder, "profile", "run", "--json", "--store", store, "--", *_command(law, size))
        forecasts.append(_forecast_s(folder, store, law))
    ran_s = []
    for run in range(3):
        output = _call(folder, "profile", "run", "--json", "--store", f"ran{run}", "--", *_command(law, TARGET))
        ran_s.append(output["runs"][0]["isolated_s"])
    took_s, after_all = median(ran_s), forecasts[0]
    cells = [
        law,
        number(took_s),
        f"{max(ran_s) / min(ran_s):.2f}x",
        number(after_all[1]),
        f"{after_all[1] / took_s - 1:+.0%}",
    ]
    for low, _, high in forecasts:
        cells += [f"{number(low)} to {number(high)}", "yes" if low <= took_s <= high else "no"]
    return [*cells[:5], *cells[6:]]


def _command(law: str, size: int) -> list[str]:
    return (
        [sys.executable, "-IS", "work.py", law, str(size), str(_STEPS[law])]
        if law in _STEPS
        else ["sha256sum", f"{size}.bin"]
    )


def _forecast_s(folder: Path, store: str, law: str) -> tuple[float, float, float]:
    """Return the lower end, the middle and the upper end of the run time, seconds."""
    output = _call(folder, "predict", "command", "--json", "--store", store, "--", *_command(law, TARGET))
    (profile,) = output["profiles"].values()
    time_s = profile["service_demand"] / profile.get("utilisation", 1.0)
    low, high = (bound**_TO_QUANTILES for bound in profile.get("interval") or (0.0, math.inf))
    return low * time_s, time_s, high * time_s


def _call(folder: Path, *argv: str) -> Any:
    command = [str(Path(sys.executable).with_name("pilotfish")), *argv]
    process = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if process.returncode:
        raise SystemExit(f"{' '.join(argv)}: {process.stderr}")
    return json.loads(process.stdout)
