"""A byte order mark, as editors on Windows write it, changes nothing in any file of text."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pilotfish.formats.cluster import read_cluster
from pilotfish.formats.replays.results_read import read_run
from pilotfish.formats.replays.workloads import read_workload
from pilotfish.formats.simgrid.platform import read_platform
from pilotfish.formats.workflows.workflow import read_workflow
from pilotfish.profiles import imports
from tests.formats.replays.test_irmasim import WORKLOAD
from tests.formats.replays.test_results_read import BATSIM
from tests.formats.workflows.test_dax import VERSION_2
from tests.profiles.imports import test_jobstats_import, test_likwid_import, test_perf_import, test_sacct_import

SWF = "; MaxProcs: 4\n1 0 -1 5 4 -1 -1 4 9 -1 1 7 -1 -1 -1 -1 -1 -1\n"
BATSIM_JSON = """{"nb_res": 2, "jobs": [{"id": "1", "subtime": 0, "res": 1, "profile": "p"}],
 "profiles": {"p": {"type": "delay", "delay": 5}}}"""
CLUSTER = """schema: pilotfish/cluster/v1
node_types: {t: {cores: 4, memory: 16GiB, memory_bandwidth: 20GB/s}}
nodes: [{names: a, type: t}]
"""
WORKFLOW = "schema: pilotfish/workflow/v1\njobs: {a: {command: x}}\n"
PLATFORM = """<?xml version='1.0'?><platform version="4.1"><zone id="z" routing="Full">
<host id="a" speed="1Gf"/><host id="b" speed="1Gf"/></zone></platform>"""


def jobs(path: Path) -> Any:
    workload = read_workload(path, speeds=(1e9,))
    return workload.machine, workload.run_time.tolist()


def imported(source: str) -> Callable[[Path], Any]:
    return lambda path: imports.read(source, path, "x")


@pytest.mark.parametrize(
    ("name", "text", "read"),
    [
        ("t.swf", SWF, jobs),
        ("trace", SWF, jobs),
        ("t.json", BATSIM_JSON, jobs),
        ("i.json", json.dumps(WORKLOAD), jobs),
        ("w.dax", VERSION_2, jobs),
        ("w.yaml", WORKFLOW, lambda path: read_workflow(path).jobs),
        ("c.yaml", CLUSTER, lambda path: read_cluster(path).nodes),
        ("p.xml", PLATFORM, lambda path: read_platform(path).hosts),
        ("jobs.csv", BATSIM, lambda path: read_run(path.parent).jobs.id.tolist()),
        ("a", test_sacct_import.DUMP, imported("sacct")),
        ("b", test_perf_import.NEW, imported("perf")),
        ("c", test_likwid_import.WHOLE, imported("likwid")),
        ("d", json.dumps(test_jobstats_import.DATA), imported("jobstats")),
    ],
)
def test_a_byte_order_mark_changes_nothing(tmp_path: Path, name: str, text: str, read: Callable[[Path], Any]) -> None:
    path = tmp_path / name
    path.write_text(text)
    plain = read(path)
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert read(path) == plain
