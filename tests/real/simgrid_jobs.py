"""Run jobs on the real SimGrid, as Batsim 4 does: one actor a job, whose profile becomes waits and parallel tasks.

Needs Debian's python3-simgrid, so this file is run by Debian's Python. Arguments: files with a platform and its jobs, as
JSON. Prints the ends of the jobs of each file; SimGrid simulates one platform in a process.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import simgrid


def tasks(
    profiles: dict[str, Any], name: str, hosts: list[str]
) -> Iterator[tuple[list[str], list[float], list[float]]]:
    """Yield the hosts, flops and bytes of each task of a profile; without hosts, it waits for as many seconds."""
    profile, size = profiles[name], len(hosts)
    kind = profile["type"]
    if kind == "delay":
        yield [], [profile["delay"]], []
    elif kind == "composed":
        for _ in range(profile["repeat"]):
            for part in profile["seq"]:
                yield from tasks(profiles, part, hosts)
    elif kind == "parallel":
        yield hosts, profile["cpu"], profile["com"]
    elif kind == "parallel_homogeneous_pfs":
        ranks = range(size + 1)
        sent = {(i, size): profile["bytes_to_write"] for i in range(size)}
        sent |= {(size, i): profile["bytes_to_read"] for i in range(size)}
        yield [*hosts, profile["storage"]], [0.0] * (size + 1), [sent.get((i, k), 0.0) for i in ranks for k in ranks]
    elif kind == "data_staging":
        yield [profile["from"], profile["to"]], [0.0, 0.0], [0.0, profile["nb_bytes"], 0.0, 0.0]
    else:
        shares = size if kind == "parallel_homogeneous_total" else 1
        bytes_ = [profile["com"] / shares * (i != k) for i in range(size) for k in range(size)]
        yield hosts, [profile["cpu"] / shares] * size, bytes_


def run(given: dict[str, Any]) -> dict[str, float]:
    """Return the end of each job."""
    engine = simgrid.Engine(["simgrid", "--cfg=host/model:ptask_L07", "--log=root.thres:error"])
    engine.load_platform(given["platform"])
    ends: dict[str, float] = {}

    def job(one: dict[str, Any]) -> None:
        if one["start"] > 0:
            simgrid.this_actor.sleep_until(one["start"])
        for hosts, flops, bytes_ in tasks(given["profiles"], one["profile"], one["hosts"]):
            if not hosts:
                simgrid.this_actor.sleep_for(flops[0])
                continue
            bytes_ = bytes_ if any(bytes_) else []
            simgrid.this_actor.parallel_execute([simgrid.Host.by_name(each) for each in hosts], flops, bytes_)
        ends[one["id"]] = simgrid.Engine.clock

    for one in given["jobs"]:
        simgrid.Actor.create("job", simgrid.Host.by_name(one["hosts"][0]), job, one)
    engine.run()
    return ends


if __name__ == "__main__":
    for name in sys.argv[1:]:
        if (child := os.fork()) == 0:
            print(json.dumps(run(json.loads(Path(name).read_text()))), flush=True)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0, name
