"""Synthetic output of Slurm's commands for a large site, deterministic and in the exact format of the commands.

Rule: it replaces only the commands: it takes their argv and returns their text, including marks. All other code is the
product's.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.slurm.transport import squeue
from pilotfish.adapters.slurm.transport.parsing import SEPARATOR

NOW = 1_900_000_000
CPUS, MEMORY_MIB = 64, 262_144


class Site:
    """A site, called as a `Runner`.

    Args:
        nodes: number of nodes.
        jobs: number of jobs; half of them run.
        ours: number of waiting jobs that are handed over.
    """

    def __init__(self, nodes: int, jobs: int, ours: int) -> None:
        draw = random.Random(11)
        self.names = [f"c{number:05}" for number in range(1, nodes + 1)]
        self.jobs = [self._job(number, number < jobs // 2, ours, jobs, draw) for number in range(jobs)]
        self.nodes = [self._node(name, draw) for name in self.names]

    def __call__(self, argv: Sequence[str]) -> str:
        """Return the output of a command."""
        if argv[0] == "sdiag":
            return f"sdiag output at Sat Mar 17 17:46:40 2030 ({NOW})\n"
        if argv[0] == "scontrol":
            raise AdapterError("this site does not show its limits, partitions and reservations", kind="refused")
        table = next(word.partition("=")[2] for word in argv if word.lower().startswith("--format="))
        mark = "@" + table.split("@")[1] + "@"
        if argv[0] == "sinfo":
            return _text(self.nodes, squeue.NODE_FIELDS, mark)
        if "--states=pending" in argv:
            pending = [job for job in self.jobs if job["State"] == "PENDING"]
            return "".join(f"{job['JobID']}{SEPARATOR}{job['excluded']}{mark}\n" for job in pending)
        ids = next((set(word.partition("=")[2].split(",")) for word in argv if word.startswith("--jobs=")), None)
        return _text([job for job in self.jobs if ids is None or job["JobID"] in ids], squeue.FIELDS, mark)

    def go_on(self) -> None:
        """End the first ten running jobs, and hand one more job over."""
        for job in [job for job in self.jobs if job["State"] == "RUNNING"][:10]:
            job.update(State="COMPLETED", EndTime=_time(NOW))
        number = str(1 + max(int(job["JobID"]) for job in self.jobs))
        handed = next(job for job in self.jobs if "hold=" in job["Comment"])
        self.jobs.append({**handed, "JobID": number, "JobArrayID": number})

    def _job(self, number: int, runs: bool, ours: int, jobs: int, draw: random.Random) -> dict[str, str]:
        nodes = draw.choice((1, 1, 1, 1, 2, 4))
        cpus = draw.choice((1, 4, 8, 16, 32, 64))
        memory = draw.choice((1024, 2048, 4096)) * cpus
        submit = NOW - draw.randrange(60, 86_400)
        start = NOW - draw.randrange(60, 7_200)
        is_ours = not runs and number - jobs // 2 < ours
        begin = submit if not is_ours else NOW + draw.randrange(60, 500)
        limit = draw.choice((4, 8, 24))
        first = draw.randrange(len(self.names) - nodes + 1)
        placed = self.names[first : first + nodes]
        return {
            "JobID": str(100_000 + number), "JobArrayID": str(100_000 + number), "HetJobID": "0",
            "State": "RUNNING" if runs else "PENDING",
            "Reason": "None" if runs else "BeginTime" if is_ours else "Priority",
            "UserID": str(1000 + draw.randrange(200)), "Account": f"group{draw.randrange(20)}", "QOS": "normal",
            "Partition": "batch", "NumNodes": str(nodes), "NumCPUs": str(nodes * cpus),
            "tres-alloc": f"cpu={nodes * cpus},mem={nodes * memory}M,node={nodes},billing={nodes * cpus}",
            "MinMemory": f"{memory}M", "TimeLimit": f"{limit}:00:00",
            "SubmitTime": _time(begin - 600 if is_ours else submit), "EligibleTime": _time(begin),
            "StartTime": _time(start) if runs else "N/A", "EndTime": _time(start + limit * 3600) if runs else "N/A",
            "DeadLine": "N/A", "NodeList": _folded(placed) if runs else "", "ReqNodes": "", "Dependency": "(null)",
            "Feature": "(null)", "Reservation": "(null)", "OverSubscribe": "OK", "PriorityLong": str(200_000 - number),
            "RestartCnt": "0", "exit_code": "0", "Name": f"step-{number % 97}",
            "Comment": "pilotfish:hold=600" if is_ours else "(null)", "excluded": "",
        }  # fmt: skip

    def _node(self, name: str, draw: random.Random) -> dict[str, str]:
        state = draw.choices(("idle", "mixed", "allocated", "down*", "idle+drain"), (30, 40, 26, 1, 3))[0]
        return {
            "NodeList": name, "StateComplete": state, "CPUs": str(CPUS), "Memory": str(MEMORY_MIB),
            "Features_act": "ssd,rome" if int(name[1:]) % 3 else "rome", "PartitionName": "batch", "Reason": "none",
        }  # fmt: skip


def _text(rows: Sequence[dict[str, str]], fields: Sequence[str], mark: str) -> str:
    return "".join(f"{SEPARATOR.join([row.get(field, '(null)') for field in fields])}{mark}\n" for row in rows)


def _folded(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"c[{names[0][1:]}-{names[-1][1:]}]"


def _time(epoch: float) -> str:
    return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%S")
