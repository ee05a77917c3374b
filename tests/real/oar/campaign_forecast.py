"""Forecast against reality next to a real OAR, run by hand: `pytest -s tests/real/oar/campaign_forecast.py`.

The same workflow goes through the daemon, through plain OAR, and through a replay with conservative backfilling. It takes
about 7 minutes a run; RUNS, JOBS and GAP in the environment change the runs, their jobs, and the least seconds between
two scheduling passes. Almighty waits as long as OAR's does.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import oar_cluster
import pytest
import yaml
from oar_campaigns import passes_apart, summary
from oar_cluster import OarCluster
from oar_daemon import OarDaemon
from oar_site import Shim
from real_world import COMMAND, PATIENCE_S, eventually, pilotfish

pytestmark = pytest.mark.xdist_group("oar")
oar_cluster.CHANGED = {}
Dag = dict[str, tuple[list[str], int]]  #: name -> those before it, and seconds
#: What OAR recorded of the jobs from an id on, epoch seconds: name, submission, decision, start of the process, end.
RECORDS = """select coalesce(json_agg(json_build_array(job_id, job_name, submission_time, start_time,
 (select min(date_start) from job_state_logs l where l.job_id = j.job_id and l.job_state = 'Running'),
 (select max(date_start) from job_state_logs l where l.job_id = j.job_id and l.job_state = 'Terminated'))), '[]')
 from jobs j where job_id >= {first}"""


def dag_of(size: int, seed: int) -> Dag:
    """Jobs of 30 to 120 s on one core; two thirds have one or two jobs before them."""
    draw, names = random.Random(seed), [f"j{number:02d}" for number in range(size)]
    return {
        name: (sorted(draw.sample(names[:number], min(number, draw.choice((0, 1, 2))))), draw.randint(30, 120))
        for number, name in enumerate(names)
    }


@dataclass
class Course:
    """What became of a workflow; times are seconds from its submission.

    `parts` are the mean seconds from the time at which a job could start, as far as its predecessors go, to its first
    line, by what passed: of the jobs that found a free core only.
    """

    start: dict[str, float]
    finish: dict[str, float]

    def waits(self, dag: Dag) -> dict[str, float]:
        """How long each job waited after the end of those before it."""
        ready = {name: max((self.finish[each] for each in after), default=0.0) for name, (after, _) in dag.items()}
        return {name: self.start[name] - ready[name] for name in dag}

    def figures(self, dag: Dag) -> str:
        """Makespan and mean waiting time."""
        waits = self.waits(dag).values()
        return f"makespan {max(self.finish.values()):.0f} s, mean waiting {statistics.mean(waits):.1f} s"


class Trail:
    """Where the jobs of a workflow write when they begin and end."""

    def __init__(self, oar: OarCluster, name: str, dag: Dag) -> None:
        self._oar, self._path, self._dag = oar, oar.shared() / f"forecast-{name}", dag
        self._path.write_text("")
        self._path.chmod(0o666)
        self.begin()

    def begin(self) -> None:
        """Note that the workflow is submitted now."""
        self._first = 1 + int(self._oar.sql("select coalesce(max(job_id), 0) from jobs"))
        self.began = time.time()

    def line(self, name: str) -> str:
        """The command of a job."""
        note = f"echo {name} $(date +%s.%N) >> {self._path}"
        return f"{note}; sleep {self._dag[name][1]}; {note}"

    def wait(self) -> Course:
        """Wait for the end of all jobs."""
        eventually_long(lambda: all(len(each) == 2 for each in self._times()), "the end of all jobs")
        times = dict(zip(self._dag, self._times(), strict=True))
        starts, ends = ({name: each[which] - self.began for name, each in times.items()} for which in (0, 1))
        return Course(starts, ends)

    def _times(self) -> list[list[float]]:
        found: dict[str, list[float]] = {name: [] for name in self._dag}
        for line in self._path.read_text().splitlines():
            name, at = line.split()
            found[name].append(float(at))
        return list(found.values())

    def parts(self, course: Course, name_of: Callable[[int, str], str]) -> str:
        """Mean seconds of what passes between the end of a job and the first line of one that waited for it alone.

        Args:
            course: What became of the workflow.
            name_of: Returns the name of a job by its id and its name in OAR.
        """
        eventually_long(lambda: all(row[5] for row in self._records()), "the end of all jobs in OAR")
        rows = {name_of(row[0], row[1]): [each - self.began for each in row[2:]] for row in self._records()}
        found: dict[str, list[float]] = {}
        for name, (after, _) in self._dag.items():
            if not after:
                continue
            last = max(after, key=course.finish.__getitem__)
            ended, freed = course.finish[last], rows[last][3]
            submitted, decided, began, _ = rows[name]
            known = max(freed, submitted)
            for part, seconds in (
                ("until OAR has freed the cores", freed - ended), ("until it is submitted", known - freed),
                ("until OAR decides", decided - known), ("until its process begins", began - decided),
                ("until its first line", course.start[name] - began),
            ):  # fmt: skip
                found.setdefault(part, []).append(seconds)
        return "; ".join(f"{part} {statistics.median(values):.1f}" for part, values in found.items())

    def _records(self) -> list[list[float]]:
        rows: list[list[float]] = json.loads(self._oar.sql(RECORDS.format(first=self._first)))
        return rows


def eventually_long(look: Callable[[], object], what: str) -> None:
    """Look once a second, for at most half an hour."""
    deadline = time.monotonic() + 1800
    while not look():
        assert time.monotonic() < deadline, what
        time.sleep(1.0)


def errors(actual: Mapping[str, float], forecast: Mapping[str, float]) -> str:
    """By how much things came later than forecast."""
    return summary([actual[name] - forecast[name] for name in actual])


def submit(oar: OarCluster, daemon: OarDaemon, flow: dict[str, object]) -> None:
    """Submit a workflow to the daemon, as its own user."""
    file = daemon.folder / "dag.yaml"
    file.write_text(yaml.safe_dump({"schema": "pilotfish/workflow/v1", **flow}, sort_keys=False))
    argv = [*daemon.prefix, *COMMAND, "submit", str(file), "--socket", str(daemon.socket)]
    subprocess.run(argv, check=True, timeout=PATIENCE_S, env=daemon.environment, cwd=oar.shared(), capture_output=True)


def shown(daemon: OarDaemon, name: str = "dag") -> list[dict[str, object]]:
    """The jobs of a workflow in the daemon."""
    known = (daemon.ask("status") or {}).get("workflows", ())
    return [job for each in known if each["name"] == name for job in each["jobs"]]


def forecast_of(jobs: Iterable[dict[str, object]], began: float) -> tuple[dict[str, float], dict[str, float]]:
    """When jobs are expected to start and end, seconds from a time; nothing until all have a forecast."""
    starts, ends = {}, {}
    for job in jobs:
        name, plan, end, span = (job[word] for word in ("id", "plan", "forecast_finish_time", "forecast_run_time"))
        if end is None or (plan is None and span is None):
            return {}, {}  # it is not planned yet
        starts[name] = (plan["start_time"] if plan else end - span) - began
        ends[name] = end - began
    return starts, ends


def through_the_daemon(oar: OarCluster, shim: Shim, dag: Dag, flow: Path) -> Course:
    """Run it through the daemon, and print how far the forecast of the first plan was off."""
    trail = Trail(oar, "ours", dag)
    jobs = {
        name: {"after": after, "command": trail.line(name), "walltime": 2 * seconds,
               "profile": {"service_demand": seconds / 100, "utilisation": 0.01}}
        for name, (after, seconds) in dag.items()
    }  # fmt: skip
    flow.write_text(yaml.safe_dump({"schema": "pilotfish/workflow/v1", "name": "dag", "jobs": jobs}, sort_keys=False))
    with closing(OarDaemon("forecast", oar, shim)) as daemon:
        daemon.start()
        eventually(shim.file.exists, "the first heartbeat")
        warm = {f"w{n}": {"after": [f"w{n - 1}"] if n else [], "command": "true", "walltime": 60} for n in range(4)}
        submit(oar, daemon, {"name": "warm", "jobs": warm})  # from these it learns how long a start takes
        eventually(lambda: [job["state"] for job in shown(daemon, "warm")] == ["completed"] * 4, "the first workflow")
        trail.begin()
        submit(oar, daemon, {"name": "dag", "jobs": jobs})
        eventually(lambda: forecast_of(shown(daemon), trail.began)[1], "a forecast of each job")
        starts, ends = forecast_of(shown(daemon), trail.began)
        course = trail.wait()
        print("where the time goes:", trail.parts(course, lambda id, name: name.rpartition("/")[2]))
    actual, said = max(course.finish.values()), max(ends.values())
    print(f"forecast at the submission: makespan {said:.0f} s; it came to {actual:.0f} s ({actual / said - 1:+.1%})")
    print("starts later than forecast by", errors(course.start, starts))
    print("ends later than forecast by", errors(course.finish, ends))
    return course


def through_plain_oar(oar: OarCluster, dag: Dag) -> Course:
    """Run it as a user of OAR does, in the default queue."""
    trail, ids = Trail(oar, "plain", dag), dict[str, int]()
    for name, (after, seconds) in dag.items():
        options = [word for each in after for word in ("-a", str(ids[each]))]
        limit = time.strftime("%H:%M:%S", time.gmtime(2 * seconds))
        ids[name] = oar.submit(trail.line(name), "-l", f"/core=1,walltime={limit}", *options)
    course, names = trail.wait(), {id: name for name, id in ids.items()}
    print("where the time goes:", trail.parts(course, lambda id, name: names[id]))
    return course


@pytest.mark.parametrize("run", range(int(os.environ.get("RUNS", "3"))))
def test_forecast_against_reality(oar: OarCluster, users_shim: Shim, tmp_path: Path, run: int) -> None:
    """A workflow of jobs of 30 to 120 s three times: in the daemon, in plain OAR, and in a replay."""
    dag, flow = dag_of(int(os.environ.get("JOBS", "24")), 17 + run), tmp_path / "dag.yaml"
    apart_s, load = int(os.environ.get("GAP", "5")), os.getloadavg()[0]
    with passes_apart(oar, apart_s):
        ours = through_the_daemon(oar, users_shim, dag, flow)
        plain = through_plain_oar(oar, dag)
    print(f"run {run}: {len(dag)} jobs, passes {apart_s} s apart, load {load:.1f} to {os.getloadavg()[0]:.1f}")
    print("pilotfish:", ours.figures(dag))
    print("plain OAR:", plain.figures(dag))
    done = pilotfish("simulate", flow, "--procs", str(oar.cores * len(oar.nodes)), "-p", "conservative", "--json")
    assert done.returncode == 0, done.stderr
    replay = json.loads(done.stdout)
    print(
        f"replay, conservative: makespan {replay['makespan']:.0f} s, mean waiting {replay['mean_waiting_time']:.1f} s"
    )
