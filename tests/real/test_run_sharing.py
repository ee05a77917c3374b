"""k CPU-bound jobs that `pilotfish run` puts on one CPU slow down by k, as the model says.

Rule: the machine is shared with others, so what they took of the CPU meanwhile is measured and taken out, and the
quietest of several tries counts; if they took most of it in all of them the test is skipped, loudly.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from real_world import CPUS, pilotfish

pytestmark = pytest.mark.xdist_group("machine")

CROWDS = (1, 2, 3)
TRIES = 3
QUIET, NOISY = 0.1, 0.3
#: Relative, of slowdowns where others took none of the CPU; half of what they took is added.
TOLERANCE = 0.05
#: Waits for the others of its crowd, uses SECONDS of its CPU, and says when, and how long that CPU was idle.
PROGRAM = """\
import json, os, pathlib, sys, time
crowd, cpu, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
here = pathlib.Path(f"crowd{crowd}")
here.mkdir(exist_ok=True)
(here / os.environ["PILOTFISH_JOB_ID"]).touch()
while len(list(here.iterdir())) < crowd:
    time.sleep(0.002)
def idle():
    for line in open("/proc/stat"):
        if line.startswith(f"cpu{cpu} "):
            return sum(map(int, line.split()[4:6])) / os.sysconf("SC_CLK_TCK")
before, used, begin = idle(), time.thread_time(), time.monotonic()
while time.thread_time() < used + seconds:
    pass
end, used = time.monotonic(), time.thread_time() - used
print(json.dumps({"begin": begin, "end": end, "used": used, "idle": idle() - before}))
"""


@dataclass(frozen=True)
class Crowd:
    """Jobs that computed on one CPU at the same time: seconds that each took, and the share that others took."""

    seconds: tuple[float, ...]
    others: float

    @classmethod
    def of(cls, said: list[dict[str, float]]) -> Crowd:
        window = max(one["end"] for one in said) - min(one["begin"] for one in said)
        ours = sum(one["used"] for one in said) + max(one["idle"] for one in said)
        return cls(tuple(one["end"] - one["begin"] for one in said), max(0.0, 1 - ours / window))

    @property
    def undisturbed(self) -> tuple[float, ...]:
        """What each would have taken without the others."""
        return tuple((1 - self.others) * seconds for seconds in self.seconds)


def one_try(folder: Path, seconds: float) -> tuple[list[Crowd], dict[str, float]]:
    """Run crowds of 1, 2 and 3, one after another; return them, and the forecast slowdown of each job."""
    folder.mkdir()
    program = folder / "compute.py"
    program.write_text(PROGRAM)
    jobs, before = {}, []
    for crowd in CROWDS:
        names = [f"{crowd}-{i}" for i in range(crowd)]
        words = ["python3", "-IS", str(program), str(crowd), str(CPUS[-1]), str(seconds)]
        profile = {"service_demand": seconds}
        jobs |= {
            name: {"after": before, "command": words, "profile": profile, "directory": str(folder)} for name in names
        }
        before = names
    (folder / "flow.yaml").write_text(
        yaml.safe_dump({"schema": "pilotfish/workflow/v1", "name": "crowds", "jobs": jobs})
    )
    kind = {"cores": 1, "memory": "1GiB", "memory_bandwidth": "10GB/s"}
    (folder / "cluster.yaml").write_text(
        yaml.safe_dump(
            {
                "schema": "pilotfish/cluster/v1",
                "name": "one",
                "node_types": {"cpu": kind},
                "nodes": [{"names": "a", "type": "cpu", "cpus": str(CPUS[-1])}],
                "oversubscription": max(CROWDS),
            }
        )
    )
    argv = ["run", folder / "flow.yaml", "--cluster", folder / "cluster.yaml", "--policy", "mom", "--json"]
    done = pilotfish(*argv)
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    said = {job["id"]: json.loads(Path(job["stdout"]).read_text()) for job in outcome["jobs"]}
    forecasts = {job["id"]: job["contention_slowdown"] for job in outcome["plan"]["jobs"]}
    return [Crowd.of([said[f"{crowd}-{i}"] for i in range(crowd)]) for crowd in CROWDS], forecasts


def test_jobs_on_one_cpu_slow_down_by_their_number(tmp_path: Path, record_property: Any) -> None:
    tries: list[list[Crowd]] = []
    for i in range(TRIES):
        crowds, forecasts = one_try(tmp_path / str(i), seconds=0.5)
        for name, slowdown in forecasts.items():
            assert slowdown == pytest.approx(int(name[0]))
        tries.append(crowds)
        if disturbance(crowds) <= QUIET:
            break
    best = min(tries, key=disturbance)
    if disturbance(best) > NOISY:
        pytest.skip(
            f"k jobs on one CPU were NOT compared: in each of {TRIES} tries others took"
            f" {disturbance(best):.0%} or more of CPU {CPUS[-1]}"
        )
    (alone,) = best[0].undisturbed
    found = {
        crowd: [seconds / alone for seconds in seen.undisturbed]
        for crowd, seen in zip(CROWDS[1:], best[1:], strict=True)
    }
    record_property(
        "measured",
        "; ".join(
            f"{crowd} jobs on one CPU slow down by {', '.join(f'{s:.3f}' for s in slowdowns)}"
            for crowd, slowdowns in found.items()
        )
        + f" (others took up to {disturbance(best):.1%} of it, taken out; try {len(tries)} of {TRIES})",
    )
    for crowd, slowdowns in found.items():
        assert slowdowns == [pytest.approx(crowd, rel=TOLERANCE + disturbance(best) / 2)] * crowd


def disturbance(crowds: list[Crowd]) -> float:
    """The largest share of the CPU that others took."""
    return max(crowd.others for crowd in crowds)
