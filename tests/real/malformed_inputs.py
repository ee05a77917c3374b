"""Wrong inputs by the dozen: what a file may be instead of what was asked for, and wrong words on the command line.

Rule: each is wrong by its text alone, on every machine; the good documents they are made from name a first job
that leaves a trace when it is started.
"""

from __future__ import annotations

import copy
import json
from itertools import pairwise
from typing import Any

TRACE = "started"
FLOW: dict[str, Any] = {
    "schema": "pilotfish/workflow/v1",
    "name": "dag",
    "jobs": {
        "first": {"command": f"touch {TRACE}", "profile": {"service_demand": 0.01}},
        "second": {"command": ["true"], "after": ["first"], "profile": {"threads": 1, "service_demand": 0.01}},
    },
}
CLUSTER: dict[str, Any] = {
    "schema": "pilotfish/cluster/v1",
    "name": "lab",
    "node_types": {"t": {"cores": 1, "memory": "1GiB", "memory_bandwidth": "10GB/s"}},
    "nodes": [{"names": "n1", "type": "t", "cpus": "0"}],
    "oversubscription": 1.0,
}
PROFILES: dict[str, Any] = {
    "schema": "pilotfish/profiles/v1",
    "profiles": {"good": {"service_demand": 1.0}, "other": {"threads": 2, "service_demand": 1.0}},
}
#: The service never begins with it: its cluster file is not there.
DAEMON: dict[str, Any] = {"schema": "pilotfish/daemon/v1", "cluster": "not-there.yaml", "state_dir": "state"}
GONE: Any = object()

#: Wrong as any file of ours.
TEXTS: dict[str, bytes] = {
    "empty": b"",
    "blank": b" \n\t\n",
    "nul": b"\0" * 100,
    "binary": bytes(range(256)) * 8,
    "gzip": bytes.fromhex("1f8b0800000000000003") + b"\xff" * 50,
    "latin-1": "schema: é".encode("latin-1"),
    "utf-16": "schema: pilotfish/workflow/v1".encode("utf-16"),
    "control character": b"schema: a\x07b\n",
    "a number": b"42\n",
    "a word": b"hello\n",
    "a list": b"- 1\n- 2\n",
    "null": b"null\n",
    "open bracket": b"schema: [1, 2\n",
    "open quote": b'schema: "abc\n',
    "open brace": b'{"schema": "pilotfish/workflow/v1", ',
    "json with a comma too many": b'{"schema": "x",}',
    "json and more": b'{"schema": "x"} {"schema": "y"}',
    "tabs": b"schema:\n\t- x\n",
    "bad indentation": b"schema: x\n  name: y\n z: 1\n",
    "two documents": b"---\nschema: x\n---\nschema: y\n",
    "a key twice": b"schema: x\nschema: y\n",
    "deep lists": b"schema: " + b"[" * 100_000,
    "deep mappings": b"".join(b" " * i + b"a:\n" for i in range(300)),
    "deep json": b'{"a":' * 50_000,
    "a bomb": "\n".join(
        ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
        + [f"{k}: &{k} [{', '.join([f'*{j}'] * 10)}]" for j, k in pairwise("abcdefghi")]
    ).encode(),
    "an alias of itself": b"schema: &a [*a]\n",
    "an unknown alias": b"schema: *absent\n",
    "a tag that runs": f"schema: !!python/object/apply:os.system ['touch {TRACE}']\n".encode(),
    "a tag": b"schema: !thing x\n",
    "a list as key": b"? [a, b]\n: c\n",
    "no schema": b"name: x\n",
    "another schema": b"schema: pilotfish/nonsense/v1\nname: x\n",
    "a later schema": b"schema: pilotfish/workflow/v99\njobs: {}\n",
    "schema is a list": b"schema: [pilotfish/workflow/v1]\n",
    "xml": b"<?xml version='1.0'?><html><body/></html>\n",
    "xml bomb": b"<!DOCTYPE x [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;&a;'>]><adag>&b;</adag>\n",
    "open xml": b"<adag><job id='a'>\n",
}  # fmt: skip

#: Where in the workflow -> what stands there.
WORKFLOWS: list[tuple[str, Any]] = [
    ("jobs", GONE), ("jobs", {}), ("jobs", []), ("jobs", "first"), ("jobs", None), ("jobs", 3),
    ("name", ["x"]), ("name", ""), ("name", "a/b"), ("name", "a\nb"), ("polcy", "mom"), ("schema", 1),
    ("jobs.first", None), ("jobs.first", "true"), ("jobs.first", []), ("jobs.first", {}),
    ("jobs.first.afer", []), ("jobs.first.after", ["absent"]), ("jobs.first.after", ["first"]),
    ("jobs.first.after", ["second"]), ("jobs.first.after", 7), ("jobs.first.after", {"second": 1}),
    ("jobs.first.after", [["second"]]), ("jobs.first.after", ["secnd"]), ("jobs.second.command", []),
    ("jobs.second.command", ""), ("jobs.second.command", 5), ("jobs.second.command", [[]]),
    ("jobs.second.command", [""]), ("jobs.second.command", {"a": 1}), ("jobs.second.command", ["a\0b"]),
    ("jobs.second.walltime", "soon"), ("jobs.second.walltime", -5), ("jobs.second.walltime", 0),
    ("jobs.second.walltime", [1]), ("jobs.second.walltime", "1:2:3:4:5"), ("jobs.second.walltime", 1e400),
    ("jobs.second.nodes", 0), ("jobs.second.nodes", -1), ("jobs.second.nodes", 1.5), ("jobs.second.nodes", "two"),
    ("jobs.second.nodes", 10**30), ("jobs.second.nodes", 2), ("jobs.second.memory", "lots"), ("jobs.second.memory", -1),
    ("jobs.second.memory", "2XiB"), ("jobs.second.memory", "999999TiB"), ("jobs.second.environment", ["a=b"]),
    ("jobs.second.environment", {"a=b": "c"}), ("jobs.second.environment", {"A": ["x"]}),
    ("jobs.second.directory", ""), ("jobs.second.directory", 3), ("jobs.second.wait", "forever"),
    ("jobs.second.profile", "no-such-profile"), ("jobs.second.profile", None), ("jobs.second.profile", []),
    ("jobs.second.profile", {}), ("jobs.second.profile", 3), ("jobs.second.profile.threads", 0),
    ("jobs.second.profile.threads", -4), ("jobs.second.profile.threads", 2.5), ("jobs.second.profile.threads", 10**9),
    ("jobs.second.profile.threads", 64), ("jobs.second.profile.service_demand", 0),
    ("jobs.second.profile.service_demand", -1), ("jobs.second.profile.service_demand", "long"),
    ("jobs.second.profile.service_demand", float("inf")), ("jobs.second.profile.service_demand", float("nan")),
    ("jobs.second.profile.service_demand", {"dist": "poisson"}), ("jobs.second.profile.service_demand", True),
    ("jobs.second.profile.service_demand", {"dist": "uniform", "low": 5, "high": 1}),
    ("jobs.second.profile.utilisation", 0), ("jobs.second.profile.utilisation", 1.5),
    ("jobs.second.profile.bandwidth", "fast"), ("jobs.second.profile.bandwidth", "-5GB/s"),
    ("jobs.second.profile.bandwidth", "5GB"), ("jobs.second.profile.phases", []),
    ("jobs.second.profile.phases", [{"share": 0.2}]), ("jobs.second.profile.utilization", 0.5),
    ("jobs.x\ny", {"command": "true"}), ("jobs.", {"command": "true"}),
]  # fmt: skip
CLUSTERS: list[tuple[str, Any]] = [
    ("nodes", GONE), ("nodes", []), ("nodes", {}), ("nodes", "n[1-4]"), ("nodes", [3]), ("node_types", GONE),
    ("node_types", {}), ("node_types", []), ("node_types.t", None), ("node_types.t.cores", GONE),
    ("node_types.t.cores", 0), ("node_types.t.cores", -3), ("node_types.t.cores", 1.5), ("node_types.t.cores", 10**12),
    ("node_types.t.memory", 0), ("node_types.t.memory", "many"), ("node_types.t.memory_bandwidth", "10GB"),
    ("node_types.t.memory_bandwidth", 0), ("node_types.t.sockets", 3), ("node_types.t.frequency", -2e9),
    ("node_types.t.contention", "some"), ("node_types.t.contention", "piecewise-linear"),
    ("node_types.t.cpu_sharing", "per-user"), ("node_types.t.coers", 4), ("node_types.t.power", 95),
    ("node_types.t.power", {"per_core": 1}), ("node_types.t.power", {"idle": -1}),
    ("node_types.t.power", {"idle": 9, "computing": 5}), ("nodes.0.names", "n[1-"), ("nodes.0.names", "n[5-1]"),
    ("nodes.0.names", "n[1-99999999]"), ("nodes.0.names", ""), ("nodes.0.names", None), ("nodes.0.type", "u"),
    ("nodes.0.type", ["t"]), ("nodes.0.cpus", "x"), ("nodes.0.cpus", "3-1"), ("nodes.0.memory_domain", []),
    ("oversubscription", 0), ("oversubscription", -1), ("oversubscription", "unlimted"), ("oversubscription", None),
    ("clusters", {"c": "n9"}), ("clusters", []), ("name", {}), ("extra", 1), ("schema", "pilotfish/workflow/v1"),
]  # fmt: skip
CONFIGS: list[tuple[str, Any]] = [
    ("cluster", GONE), ("cluster", 3), ("cluster", "."), ("cluster", ""), ("cluster", "a\0b"), ("policy", "best"),
    ("objective", "speed"), ("objective", "mix:2"), ("budget", 0), ("budget", "many"), ("time_limit", -1),
    ("time_limit", float("inf")), ("cycle_seconds", 0), ("seed", -1), ("mode", "sometimes"), ("adapter", "local"),
    ("metrics", {"port": 70000}), ("metrics", {"prot": 1}), ("socket", {"mode": "0777"}), ("guard", {"window": 0}),
    ("log", {"level": "loud"}), ("keep_days", 0), ("state_dir", []), ("polcy", "mom"),
    ("schema", "pilotfish/daemon/v2"),
]  # fmt: skip
IMPORTS: list[tuple[str, Any]] = [
    ("profiles", GONE), ("profiles", []), ("profiles", 3), ("profiles.other", None), ("profiles.other", {}),
    ("profiles.other.service_demand", 0), ("profiles.other.threads", 0), ("profiles.other.thread", 2),
    ("profiles.other.source", "rumour"), ("profiles.other.runs", -1), ("profiles.", {"service_demand": 1.0}),
    ("profiles.a\nb", {"service_demand": 1.0}), ("schema", "pilotfish/workflow/v1"), ("names", []),
]  # fmt: skip

#: Command lines that are wrong (64), with good.yaml and lab.yaml at hand.
USAGES: list[str] = [
    "plna", "--nonsense", "plan", "plan good.yaml", "plan --cluster lab.yaml", "plan good.yaml --cluster",
    "plan good.yaml more.yaml --cluster lab.yaml", "plan good.yaml --cluster lab.yaml --no-such-option",
    "plan good.yaml -c lab.yaml --policy", "plan good.yaml -c lab.yaml --policy best",
    "plan good.yaml -c lab.yaml --policy MOM", "plan good.yaml -c lab.yaml --objective speed",
    "plan good.yaml -c lab.yaml --objective mix:2", "plan good.yaml -c lab.yaml --objective mix:x",
    "plan good.yaml -c lab.yaml --seed -1", "plan good.yaml -c lab.yaml --seed one",
    "plan good.yaml -c lab.yaml --seed 1.5", "plan good.yaml -c lab.yaml --budget 0",
    "plan good.yaml -c lab.yaml --time-limit 0", "plan good.yaml -c lab.yaml --time-limit nan",
    "plan good.yaml -c lab.yaml --time-limit inf", "plan good.yaml -c lab.yaml --time-limit soon",
    "plan good.yaml -c lab.yaml --export pbs", "plan good.yaml -c lab.yaml --plot picture.jpeg",
    "plan good.yaml -c lab.yaml --plot picture", "plan good.yaml -c lab.yaml --compare --plot p.svg",
    "plan good.yaml -c lab.yaml --compare --export slurm", "plan good.yaml -c lab.yaml --json --export oar",
    "run", "run good.yaml -c lab.yaml --metrics-port 99999", "run good.yaml -c lab.yaml --metrics-port x",
    "run good.yaml -c lab.yaml --policy best", "run good.yaml -c lab.yaml --budget -3", "daemon",
    "daemon --config", "daemon lab.yaml", "submit", "submit good.yaml lab.yaml", "cancel", "cancel a b", "explain",
    "status a b", "profile", "profile nonsense", "profile run", "profile run --repeat 0 -- true",
    "profile run --cpus x -- true", "profile run --cpus 99999 -- true", "profile run --bandwidth fast -- true",
    "profile run --bandwidth -5GB/s -- true", "profile show", "profile import", "demo a b",
]  # fmt: skip


def edited(document: dict[str, Any], where: str, value: Any) -> dict[str, Any]:
    """A copy of the document with `value` at the dotted key, or without that key."""
    made = copy.deepcopy(document)
    *path, last = where.split(".")
    inner: Any = made
    for part in path:
        inner = inner[int(part) if isinstance(inner, list) else part]
    if value is GONE:
        del inner[last]
    else:
        inner[int(last) if isinstance(inner, list) else last] = value
    return made


def named(where: str, value: Any) -> str:
    """What a case is called."""
    return f"{where}={'gone' if value is GONE else json.dumps(value)[:40]}"
