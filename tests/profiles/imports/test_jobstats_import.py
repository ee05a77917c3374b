"""The JSON of jobstats, plain and packed, becomes a profile."""

from __future__ import annotations

import base64
import gzip
import json

import pytest

from pilotfish.profiles.imports import jobstats_import
from pilotfish.simulate.errors import ConfigError

NODE = {"cpus": 24, "total_memory": 2**37, "used_memory": 8e9, "total_time": 1900.0, "gpu_utilization": {"0": 65.7}}
DATA = {"nodes": {"a": NODE, "b": NODE | {"used_memory": 7e9, "total_time": 1700.0}}, "total_time": 100.0, "gpus": 4}


def one(data):
    (found,) = jobstats_import.parse(data if isinstance(data, str) else json.dumps(data), "x").runs
    return found.run


def test_a_job_is_its_mean_node():
    run = one(DATA)
    (group,) = run.groups
    assert (group.count, group.demand, run.memory_bytes) == (18, 100.0, 8e9)
    assert run.exit_code is None and run.bandwidth is None


def test_packed_as_in_slurms_admin_comment():
    packed = "JS1:" + base64.b64encode(gzip.compress(json.dumps(DATA).encode())).decode()
    assert one(packed + "\n") == one(DATA)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("JS1:Short", "no base64"),
        ("JS1:None", "not JSON"),
        ("{", "not JSON"),
        ("[1]", "a list"),
        ({"nodes": {}}, "no key 'total_time'"),
        ({"nodes": {}, "total_time": 5}, "no nodes"),
        ({"nodes": [], "total_time": 5}, "nodes"),
        ({"nodes": {"a": {"cpus": 1}}, "total_time": 5}, "nodes.a: no key 'total_time'"),
        ({"nodes": {"a": NODE | {"cpus": 0}}, "total_time": 5}, "nodes.a.cpus: found 0"),
        ({"nodes": {"a": NODE | {"total_time": -1}}, "total_time": 5}, "nodes.a.total_time: found -1"),
        ({"nodes": {"a": NODE | {"total_time": 0}}, "total_time": 5}, "no CPU time"),
        ({"nodes": {"a": NODE}, "total_time": 0}, "total_time"),
        ({"nodes": {"a": NODE, "b": NODE | {"total_time": 1e6}}, "total_time": 100}, "more CPU time than cpus x"),
        (
            {"nodes": {"a": NODE | {"used_memory": 2e12}}, "total_time": 100},
            "nodes.a.used_memory: found 2000000000000.0",
        ),
        ({"nodes": {"a": NODE | {"used_memory": "much"}}, "total_time": 5}, "used_memory: found 'much'"),
    ],
)
def test_malformed_files_are_rejected(data, said):
    with pytest.raises(ConfigError) as error:
        one(data)
    assert said in str(error.value)


def test_truncated_or_deeply_nested_files_are_rejected():
    with pytest.raises(ConfigError, match="cannot be unpacked"):
        one("JS1:" + base64.b64encode(gzip.compress(b"{}")[:-6]).decode())
    with pytest.raises(ConfigError, match="not JSON"):
        one("[" * 100_000)
