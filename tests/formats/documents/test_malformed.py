"""Files that are wrong in known and in random ways: always one clear error."""

from __future__ import annotations

import copy
import json
import random

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.formats.cluster import parse_cluster, read_cluster
from pilotfish.formats.workflows.wfcommons import wfcommons_tasks
from pilotfish.formats.workflows.workflow import parse_workflow, read_workflow
from pilotfish.formats.workflows.workflow_tasks import workflow_of
from pilotfish.simulate.errors import ConfigError, InvalidJobError
from pilotfish.simulate.model.cluster import Cluster
from pilotfish.simulate.model.job import Workflow

TYPE = "cores: 4, memory: 8GiB, memory_bandwidth: 10GB/s"


def cluster(types=f"t: {{{TYPE}}}", nodes="[{names: a, type: t}]", more=""):
    return f"schema: pilotfish/cluster/v1\nnode_types: {{{types}}}\nnodes: {nodes}\n{more}\n"


def with_type(more):
    return cluster(f"t: {{{TYPE}, {more}}}")


def with_power(power):
    return with_type(f"power: {power}")


PIECES = "b: -1.0e-5, c: 32000, da: 1.75, db: 3500, dc: 45000, dd: 3000"

#: (what the file holds, the key that the error must name)
BAD_CLUSTERS = [
    ("schema: pilotfish/cluster/v2\n", "schema"),
    ("name: x\n", "schema"),
    ("schema: pilotfish/workflow/v1\n", "schema"),
    ("schema: pilotfish/cluster/v1\n", "node_types"),
    ("schema: pilotfish/cluster/v1\nnode_types: {t: {cores: 1, memory: 1, memory_bandwidth: 1}}\n", "nodes"),
    (cluster(types=""), "node_types"),
    (cluster(types="t"), "node_types.t"),
    (cluster(types=f"? \n: {{{TYPE}}}"), "node_types.''"),
    (cluster(types="t: {}"), "node_types.t.cores"),
    (cluster(types="t: {cores: 4, memory_bandwidth: 1}"), "node_types.t.memory"),
    (cluster(types="t: {cores: 4, memory: 1}"), "node_types.t.memory_bandwidth"),
    (cluster(types=f"t: {{{TYPE}, core: 5}}"), "node_types.t.core"),
    (cluster(types="t: {cores: 0, memory: 1, memory_bandwidth: 1}"), "node_types.t.cores"),
    (cluster(types="t: {cores: -4, memory: 1, memory_bandwidth: 1}"), "node_types.t.cores"),
    (cluster(types="t: {cores: 2.5, memory: 1, memory_bandwidth: 1}"), "node_types.t.cores"),
    (cluster(types="t: {cores: true, memory: 1, memory_bandwidth: 1}"), "node_types.t.cores"),
    (cluster(types="t: {cores: '4', memory: 1, memory_bandwidth: 1}"), "node_types.t.cores"),
    (cluster(types="t: {cores: 1e30, memory: 1, memory_bandwidth: 1}"), "node_types.t.cores"),
    (cluster(types=f"t: {{cores: {'9' * 39}, memory: 1, memory_bandwidth: 1}}"), "node_types.t.cores"),
    (cluster(types="t: {cores: .nan, memory: 1, memory_bandwidth: 1}"), "node_types.t.cores"),
    (cluster(types="t: {cores: .inf, memory: 1, memory_bandwidth: 1}"), "node_types.t.cores"),
    (cluster(types="t: {cores: null, memory: 1, memory_bandwidth: 1}"), "node_types.t.cores"),
    (cluster(types="t: {cores: [4], memory: 1, memory_bandwidth: 1}"), "node_types.t.cores"),
    (cluster(types="t: {cores: 4, memory: 8GB/s, memory_bandwidth: 1}"), "node_types.t.memory"),
    (cluster(types="t: {cores: 4, memory: 0, memory_bandwidth: 1}"), "node_types.t.memory"),
    (cluster(types="t: {cores: 4, memory: -1, memory_bandwidth: 1}"), "node_types.t.memory"),
    (cluster(types="t: {cores: 4, memory: 1e400, memory_bandwidth: 1}"), "node_types.t.memory"),
    (cluster(types="t: {cores: 4, memory: lots, memory_bandwidth: 1}"), "node_types.t.memory"),
    (cluster(types="t: {cores: 4, memory: 1, memory_bandwidth: 80GB}"), "node_types.t.memory_bandwidth"),
    (cluster(types="t: {cores: 4, memory: 1, memory_bandwidth: 0}"), "node_types.t.memory_bandwidth"),
    (cluster(types=f"t: {{{TYPE}}}, t: {{{TYPE}}}"), "line 2"),
    (with_type("sockets: 5"), "node_types.t.sockets"),
    (with_type("sockets: 0"), "node_types.t.sockets"),
    (with_type("frequency: 0"), "node_types.t.frequency"),
    (with_type("frequency: fast"), "node_types.t.frequency"),
    (with_type("speed: 0"), "node_types.t.speed"),
    (with_type("contention: maxmin"), "node_types.t.contention"),
    (with_type("contention: 1"), "node_types.t.contention"),
    (with_type("contention: null"), "node_types.t.contention"),
    (with_type("contention: piecewise-linear"), "node_types.t.piecewise"),
    (with_type(f"piecewise: {{{PIECES}}}"), "node_types.t.piecewise"),
    (
        with_type(f"contention: piecewise-linear, piecewise: {{{PIECES}, n_max: 15}}"),
        "node_types.t.piecewise.dc",
    ),
    (
        with_type(f"contention: piecewise-linear, piecewise: {{{PIECES}, n_max: 0}}"),
        "node_types.t.piecewise.n_max",
    ),
    (with_type("contention: piecewise-linear, piecewise: {b: 1, c: 1}"), "node_types.t.piecewise.da"),
    (with_type("contention: piecewise-linear, piecewise: []"), "node_types.t.piecewise"),
    (with_type("contending_threads: some"), "node_types.t.contending_threads"),
    (with_type("cpu_sharing: per_job"), "node_types.t.cpu_sharing"),
    (with_type("remote_access_penalty: 0.5"), "node_types.t.remote_access_penalty"),
    (with_type("queueing: -1"), "node_types.t.queueing"),
    (with_power("95"), "node_types.t.power"),
    (with_power("{}"), "node_types.t.power.idle"),
    (with_power("{per_core: 1}"), "node_types.t.power.idle"),
    (with_power("{idle: -1}"), "node_types.t.power.idle"),
    (with_power("{idle: 95W}"), "node_types.t.power.idle"),
    (with_power("{idle: 9, computing: 5}"), "node_types.t.power.computing"),
    (with_power("{idle: 9, computing: 10, per_core: 1}"), "node_types.t.power.per_core"),
    (with_power("{idle: 9, budget_idle: 9, budget_computing: 1}"), "node_types.t.power.budget_computing"),
    (with_power("{idle: 9, idle_uncore: 2}"), "node_types.t.power.idle_uncore"),
    (with_power("{idle: 9, of: 1}"), "node_types.t.power.of"),
    (with_power("{idle: 9, switch_on: 5}"), "node_types.t.power.switch_on"),
    (with_power("{idle: 9, switch_on: {watts: 5}}"), "node_types.t.power.switch_on.seconds"),
    (with_power("{idle: 9, switch_off: {watts: 5, seconds: -1}}"), "node_types.t.power.switch_off.seconds"),
    (with_power("{idle: 9, states: [a]}"), "node_types.t.power.states"),
    (with_power("{idle: 9, states: {s: {}}}"), "node_types.t.power.states.s.watts"),
    (
        with_power("{idle: 9, states: {s: {watts: 1, frequency: 1}}}"),
        "node_types.t.power.states.s.full_watts",
    ),
    (
        with_power("{idle: 9, states: {s: {watts: 1, full_watts: 2}}}"),
        "node_types.t.power.states.s.frequency",
    ),
    (
        with_power("{idle: 9, states: {s: {watts: 3, full_watts: 2, frequency: 1}}}"),
        "node_types.t.power.states.s.full_watts",
    ),
    (cluster(nodes="[]"), "nodes"),
    (cluster(nodes="{}"), "nodes"),
    (cluster(nodes="a"), "nodes"),
    (cluster(nodes="[a]"), "nodes[0]"),
    (cluster(nodes="[{type: t}]"), "nodes[0].names"),
    (cluster(nodes="[{names: a}]"), "nodes[0].type"),
    (cluster(nodes="[{names: a, type: u}]"), "nodes[0].type"),
    (cluster(nodes="[{names: a, type: [t]}]"), "nodes[0].type"),
    (cluster(nodes="[{names: a, type: t, cpu: 1}]"), "nodes[0].cpu"),
    (cluster(nodes="[{names: [a], type: t}]"), "nodes[0].names"),
    (cluster(nodes="[{names: 'n[1-', type: t}]"), "nodes[0].names"),
    (cluster(nodes="[{names: 'n[1-99999999]', type: t}]"), "nodes[0].names"),
    (cluster(nodes="[{names: 'a;b', type: t}]"), "nodes[0].names"),
    (cluster(nodes="[{names: '@all', type: t}]"), "nodes[0].names"),
    (cluster(nodes="[{names: 'a,a', type: t}]"), "nodes[0].names"),
    (cluster(nodes="[{names: 'a,b', type: t}, {names: b, type: t}]"), "nodes[1].names"),
    (cluster(nodes="[{names: a, type: t, cpus: '0-x'}]"), "nodes[0].cpus"),
    (cluster(nodes="[{names: a, type: t, cpus: '0-1'}]"), "nodes[0].cpus"),
    (cluster(nodes="[{names: a, type: t, cpus: [0, 1]}]"), "nodes[0].cpus"),
    (cluster(nodes="[{names: a, type: t, memory_domain: ''}]"), "nodes[0].memory_domain"),
    (
        cluster(
            f"t: {{{TYPE}}}, u: {{{TYPE}, sockets: 2}}",
            "[{names: a, type: t, memory_domain: d}, {names: b, type: u, memory_domain: d}]",
        ),
        "nodes[1].memory_domain",
    ),
    (cluster(more="oversubscription: 0"), "oversubscription"),
    (cluster(more="oversubscription: -1"), "oversubscription"),
    (cluster(more="oversubscription: .inf"), "oversubscription"),
    (cluster(more="oversubscription: unlimted"), "oversubscription"),
    (cluster(more="oversubscription: true"), "oversubscription"),
    (cluster(more="name: ''"), "name"),
    (cluster(more="name: {a: b}"), "name"),
    (cluster(more='name: "a\\nb"'), "name"),
    (cluster(more="network: fast"), "network"),
    (cluster(more="clusters: [a]"), "clusters"),
    (cluster(more="clusters: {c: b}"), "clusters.c"),
    (cluster(more="clusters: {c: 'x['}"), "clusters.c"),
    (cluster(more="oversubscripton: 2"), "oversubscripton"),
    (cluster(more="name: !!python/name:os.system ''"), "line 4"),
    (cluster(more="name: *x"), "line 4"),
]


def workflow(jobs, more=""):
    return f"schema: pilotfish/workflow/v1\njobs: {jobs}\n{more}\n"


def job(text):
    return workflow(f"{{a: {{{text}}}}}")


def profiled(text):
    return job(f"profile: {text}")


BAD_WORKFLOWS = [
    ("schema: pilotfish/workflow/v1\n", "jobs"),
    ("jobs: {a: {command: x}}\n", "schema"),
    ("hello: world\n", ""),
    (workflow("{}"), "jobs"),
    (workflow("[]"), "jobs"),
    (workflow("null"), "jobs"),
    (workflow("[{id: a}]"), "jobs"),
    (workflow("{a: null}"), "jobs.a"),
    (workflow("{a: run}"), "jobs.a"),
    (workflow("{a: {}}"), "jobs.a"),
    (workflow("{a: {after: []}}"), "jobs.a"),
    (workflow("{'': {command: x}}"), "jobs.''"),
    (workflow('{"a\\nb": {command: x}}'), r"jobs.'a\nb'"),
    (workflow("{a: {command: x}, a: {command: y}}"), "line 2"),
    (workflow("{a: {command: x}}", "nam: x"), "nam"),
    (workflow("{a: {command: x}}", "name: a/b"), "name"),
    (workflow("{a: {command: x}}", "name: []"), "name"),
    (job("comand: x"), "jobs.a.comand"),
    (job("command: ''"), "jobs.a.command"),
    (job("command: []"), "jobs.a.command"),
    (job("command: ['']"), "jobs.a.command[0]"),
    (job("command: [x, [y]]"), "jobs.a.command[1]"),
    (job("command: [x, true]"), "jobs.a.command[1]"),
    (job("command: [x, null]"), "jobs.a.command[1]"),
    (job('command: [x, "a\\0b"]'), "jobs.a.command[1]"),
    (job("command: true"), "jobs.a.command"),
    (job("command: {x: y}"), "jobs.a.command"),
    (job("command: x, after: {b: c}"), "jobs.a.after"),
    (job("command: x, after: [[b]]"), "jobs.a.after[0]"),
    (job("command: x, after: 1.5"), "jobs.a.after"),
    (job("command: x, walltime: 0"), "jobs.a.walltime"),
    (job("command: x, walltime: '10'"), "jobs.a.walltime"),
    (job("command: x, walltime: 00:10:99"), "jobs.a.walltime"),
    (job("command: x, walltime: -5"), "jobs.a.walltime"),
    (job("command: x, walltime: forever"), "jobs.a.walltime"),
    (job("command: x, walltime: null"), "jobs.a.walltime"),
    (job("command: x, nodes: 0"), "jobs.a.nodes"),
    (job("command: x, nodes: 1.5"), "jobs.a.nodes"),
    (job("command: x, nodes: n1"), "jobs.a.nodes"),
    (job("command: x, nodes: 1e9"), "jobs.a.nodes"),
    (job("command: x, memory: 2G"), "jobs.a.memory"),
    (job("command: x, memory: -1"), "jobs.a.memory"),
    (job("command: x, memory: false"), "jobs.a.memory"),
    (job("command: x, environment: [A]"), "jobs.a.environment"),
    (job("command: x, environment: {A: true}"), "jobs.a.environment.A"),
    (job("command: x, environment: {A-B: c}"), "jobs.a.environment.A-B"),
    (job("command: x, environment: {A: [b]}"), "jobs.a.environment.A"),
    (job("command: x, directory: ''"), "jobs.a.directory"),
    (job("command: x, directory: 5"), "jobs.a.directory"),
    (job("command: x, wait: sleep"), "jobs.a.wait"),
    (profiled("missing"), "jobs.a.profile"),
    (profiled("5"), "jobs.a.profile"),
    (profiled("null"), "jobs.a.profile"),
    (profiled("{}"), "jobs.a.profile.service_demand"),
    (profiled("{threads: 2}"), "jobs.a.profile.service_demand"),
    (profiled("{service_demand: 0}"), "jobs.a.profile.service_demand"),
    (profiled("{service_demand: -1}"), "jobs.a.profile.service_demand"),
    (profiled("{service_demand: 1e999}"), "jobs.a.profile.service_demand"),
    (profiled("{service_demand: .nan}"), "jobs.a.profile.service_demand"),
    (profiled("{service_demand: long}"), "jobs.a.profile.service_demand"),
    (profiled("{service_demand: true}"), "jobs.a.profile.service_demand"),
    (profiled("{service_demand: {}}"), "jobs.a.profile.service_demand.dist"),
    (profiled("{service_demand: {dist: pareto}}"), "jobs.a.profile.service_demand.dist"),
    (profiled("{service_demand: {dist: [normal]}}"), "jobs.a.profile.service_demand.dist"),
    (profiled("{service_demand: {dist: normal, mean: 1}}"), "jobs.a.profile.service_demand.cv"),
    (profiled("{service_demand: {dist: normal, mean: 0, cv: 1}}"), "jobs.a.profile.service_demand.mean"),
    (
        profiled("{service_demand: {dist: normal, mean: 1, cv: 1, low: 2}}"),
        "jobs.a.profile.service_demand.low",
    ),
    (profiled("{service_demand: {dist: uniform, low: 2, high: 2}}"), "jobs.a.profile.service_demand.high"),
    (profiled("{service_demand: {dist: empirical, values: []}}"), "jobs.a.profile.service_demand.values"),
    (
        profiled("{service_demand: {dist: empirical, values: [1, -1]}}"),
        "jobs.a.profile.service_demand.values[1]",
    ),
    (profiled("{service_demand: 1, threads: 0}"), "jobs.a.profile.threads"),
    (profiled("{service_demand: 1, threads: 1.5}"), "jobs.a.profile.threads"),
    (profiled("{service_demand: 1, threads: true}"), "jobs.a.profile.threads"),
    (profiled("{service_demand: 1, count: 2}"), "jobs.a.profile.count"),
    (profiled("{service_demand: 1, utilisation: 0}"), "jobs.a.profile.utilisation"),
    (profiled("{service_demand: 1, utilisation: 1.01}"), "jobs.a.profile.utilisation"),
    (profiled("{service_demand: 1, utilization: 1}"), "jobs.a.profile.utilization"),
    (profiled("{service_demand: 1, utilisation_std: -1}"), "jobs.a.profile.utilisation_std"),
    (profiled("{service_demand: 1, bandwidth: 5GB}"), "jobs.a.profile.bandwidth"),
    (profiled("{service_demand: 1, bandwidth: -1}"), "jobs.a.profile.bandwidth"),
    (profiled("{service_demand: 1, phases: []}"), "jobs.a.profile.phases"),
    (profiled("{service_demand: 1, phases: [{share: 0.5}]}"), "jobs.a.profile.phases"),
    (profiled("{service_demand: 1, phases: [{}]}"), "jobs.a.profile.phases[0].share"),
    (
        profiled("{service_demand: 1, phases: [{share: 1, utilisation: 2}]}"),
        "jobs.a.profile.phases[0].utilisation",
    ),
    (profiled("{service_demand: 1, bandwidth: 1, phases: [{share: 1}]}"), "jobs.a.profile.bandwidth"),
    (profiled("{service_demand: 1, measured_on: []}"), "jobs.a.profile.measured_on"),
    (profiled("{service_demand: 1, memory: much}"), "jobs.a.profile.memory"),
    (profiled("{groups: []}"), "jobs.a.profile.groups"),
    (profiled("{groups: [{service_demand: 1}], threads: 2}"), "jobs.a.profile.threads"),
    (profiled("[]"), "jobs.a.profile"),
    (profiled("[5]"), "jobs.a.profile[0]"),
    (profiled("[{threads: 2, service_demand: 1}]"), "jobs.a.profile[0].threads"),
    (profiled("[{service_demand: 1}, {count: 0, service_demand: 1}]"), "jobs.a.profile[1].count"),
    (profiled("{" + "a: {" * 40 + "}" * 40 + "}"), "jobs.a.profile.a"),
    (profiled("[" * 100 + "]" * 100), "line 2"),
    ("%YAML 3.0\n---\na: b\n", "line 1"),
    ("{", "line 2"),
    ("{a: b]", "line 1"),
    ("jobs: |\n bad\n  x\n y: [", "schema"),
]

BAD_GRAPHS = [
    workflow("{a: {command: x, after: b}}"),
    workflow("{a: {command: x, after: [a]}}"),
    workflow("{a: {command: x, after: b}, b: {command: x, after: c}, c: {command: x, after: a}}"),
    workflow("{a: {command: x}, A: {command: x, after: [aa]}}"),
]


def instance(task=None, run=None, **workflow_keys):
    body = {
        "specification": {"tasks": [{"name": "t", "id": "t", "parents": [], "children": [], **(task or {})}]},
        "execution": {"tasks": [{"id": "t", "runtimeInSeconds": 1.0, **(run or {})}]},
        **workflow_keys,
    }
    return {"name": "w", "schemaVersion": "1.5", "workflow": body}


T, X = "workflow.specification.tasks", "workflow.execution"
BAD_INSTANCES = [
    ({**instance(), "schemaVersion": "2.0"}, "schemaVersion"),
    ({**instance(), "schemaVersion": ["1.5"]}, "schemaVersion"),
    ({**instance(), "schemaVersion": 15}, "schemaVersion"),
    ({"name": "w", "schemaVersion": "1.5", "workflow": []}, "workflow"),
    ({"name": "w", "schemaVersion": "1.5", "workflow": {}}, "workflow.tasks"),
    ({"name": "w", "schemaVersion": "1.3", "workflow": {"tasks": []}}, "workflow.tasks"),
    ({"name": "w", "schemaVersion": "1.3", "workflow": {"tasks": [{}]}}, "workflow.tasks[0].name"),
    ({"name": "w", "schemaVersion": "1.3", "workflow": {"tasks": {"a": 1}}}, "workflow.tasks"),
    (
        {"schemaVersion": "1.3", "workflow": {"tasks": [{"name": "a", "runtime": "1"}]}},
        "workflow.tasks[0].runtime",
    ),
    (
        {"schemaVersion": "1.3", "workflow": {"tasks": [{"name": "a", "runtime": 1, "memory": "x"}]}},
        "workflow.tasks[0].memory",
    ),
    (
        {"schemaVersion": "1.3", "workflow": {"tasks": [{"name": "a", "runtime": 1, "files": 3}]}},
        "workflow.tasks[0].files",
    ),
    (instance(specification=[]), "workflow.specification"),
    (instance(specification={"tasks": []}), T),
    (instance(specification={"tasks": ["t"]}), T + "[0]"),
    (instance(execution=[1]), X),
    (instance(execution={"tasks": {"a": "b"}}), X + ".tasks"),
    (instance(execution={"tasks": [1]}), X + ".tasks[0]"),
    (instance({"id": ""}), T + "[0].id"),
    (instance({"id": {}}), T + "[0].id"),
    (instance({"id": "a\u0000"}), T + "[0].id"),
    (instance({"id": "\ud800"}), T + "[0].id"),
    (instance({"parents": "t"}), T + "[0].parents"),
    (instance({"parents": [None]}), T + "[0].parents[0]"),
    (instance({"children": [["t"]]}), T + "[0].children[0]"),
    (instance({"children": ["nobody"]}), T + "[0].children[0]"),
    (instance(run={"runtimeInSeconds": -1}), T + "[0].runtimeInSeconds"),
    (instance(run={"runtimeInSeconds": "fast"}), T + "[0].runtimeInSeconds"),
    (instance(run={"runtimeInSeconds": float("nan")}), T + "[0].runtimeInSeconds"),
    (instance(run={"runtimeInSeconds": float("inf")}), T + "[0].runtimeInSeconds"),
    (instance(run={"runtimeInSeconds": 1e300}), T + "[0].runtimeInSeconds"),
    (instance(run={"runtimeInSeconds": True}), T + "[0].runtimeInSeconds"),
    (instance(run={"avgCPU": "high"}), T + "[0].avgCPU"),
    (instance(run={"avgCPU": -5}), T + "[0].avgCPU"),
    (instance(run={"coreCount": 1e9}), T + "[0].coreCount"),
    (instance(run={"coreCount": "2"}), T + "[0].coreCount"),
    (instance(run={"memoryInBytes": -1}), T + "[0].memoryInBytes"),
    (instance(run={"memoryInBytes": [1]}), T + "[0].memoryInBytes"),
]

DAX = '<adag name="w">{}</adag>'
BAD_DAX = [
    ("<", "line 1"),
    ("<adag>", "line 1"),
    ("<adag></job>", "line 1"),
    ("<html></html>", "line 1"),
    ("<adag/>", ""),
    ("<adag></adag>garbage", "line 1"),
    ('<!DOCTYPE adag SYSTEM "http://example.org/x.dtd"><adag/>', "line 1"),
    ('<!DOCTYPE adag [<!ENTITY x SYSTEM "file:///etc/passwd">]><adag>&x;</adag>', "line 1"),
    ("<adag>&undefined;</adag>", "line 1"),
    ('<?xml version="1.0" encoding="nonsense"?><adag/>', ""),
    ("<adag>\x00</adag>", "line 1"),
    ("<a>" * 200 + "</a>" * 200, "line 1"),
    ("<adag>" + "<x>" * 200 + "</x>" * 200 + "</adag>", "line 1"),
    (DAX.format("<job/>"), "line 1.id"),
    (DAX.format('<job id=""/>'), "line 1.id"),
    (DAX.format('\n<job id="a" runtime="soon"/>'), "line 2.runtime"),
    (DAX.format('<job id="a" runtime="-1"/>'), "line 1.runtime"),
    (DAX.format('<job id="a" runtime="nan"/>'), "line 1.runtime"),
    (DAX.format('<job id="a" runtime="inf"/>'), "line 1.runtime"),
    (DAX.format('<job id="a" runtime=""/>'), "line 1.runtime"),
    (DAX.format('<job id="a" runtime="1" runtime="2"/>'), "line 1"),
    (
        DAX.format('<job id="a" runtime="1"><profile namespace="pegasus" key="cores">0</profile></job>'),
        "line 1.cores",
    ),
    (
        DAX.format('<job id="a" runtime="1"><profile namespace="pegasus" key="memory">x</profile></job>'),
        "line 1.memory",
    ),
    (DAX.format('<job id="a" runtime="1"/><child><parent ref="a"/></child>'), "line 1"),
    (DAX.format('<job id="a" runtime="1"/><child ref="a"><parent/></child>'), "line 1"),
    (DAX.format('<job id="a" runtime="1"/><child ref="b"><parent ref="a"/></child>'), "line 1"),
]


def refused(read, path, content):
    """Write `content` and read it: the error is one line of reasonable length."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises((ConfigError, InvalidJobError)) as caught:
        read(path)
    text = str(caught.value)
    assert text.startswith(str(path))
    assert "\n" not in text
    assert len(text) < len(str(path)) + 600
    return caught.value


@pytest.mark.parametrize(("text", "key"), BAD_CLUSTERS)
def test_bad_cluster_files_name_the_key(tmp_path, text, key):
    assert refused(read_cluster, tmp_path / "cluster.yaml", text).key == key


@pytest.mark.parametrize(("text", "key"), BAD_WORKFLOWS)
def test_bad_workflow_files_name_the_key(tmp_path, text, key):
    assert refused(read_workflow, tmp_path / "workflow.yaml", text).key == key


@pytest.mark.parametrize("text", BAD_GRAPHS)
def test_bad_graphs_are_errors_of_the_user(tmp_path, text):
    assert type(refused(read_workflow, tmp_path / "workflow.yaml", text)) is InvalidJobError


@pytest.mark.parametrize(("data", "key"), BAD_INSTANCES)
def test_bad_instances_name_the_key(tmp_path, data, key):
    assert refused(read_workflow, tmp_path / "instance.json", json.dumps(data)).key == key


@pytest.mark.parametrize(("text", "key"), BAD_DAX)
def test_bad_dax_files_name_the_line(tmp_path, text, key):
    assert refused(read_workflow, tmp_path / "workflow.dax", text).key == key


def test_there_are_many_bad_files():
    assert sum(map(len, (BAD_CLUSTERS, BAD_WORKFLOWS, BAD_GRAPHS, BAD_INSTANCES, BAD_DAX))) >= 200


# --- random changes

GOOD_CLUSTER = {
    "schema": "pilotfish/cluster/v1",
    "name": "lab",
    "node_types": {
        "t": {
            "cores": 4, "memory": "8GiB", "memory_bandwidth": "10GB/s", "contention": "max-min",
            "power": {"idle": 5, "switch_on": {"watts": 1, "seconds": 2}, "states": {"s": {"watts": 1}}},
        }
    },
    "nodes": [{"names": "n[1-3]", "type": "t", "memory_domain": "d", "cpus": "0-3"}],
    "clusters": {"c": "n1"},
    "oversubscription": 1.0,
}  # fmt: skip
GOOD_WORKFLOW = {
    "schema": "pilotfish/workflow/v1",
    "name": "w",
    "jobs": {
        "a": {"command": ["x", "y"], "walltime": "00:10:00", "environment": {"A": "b"}, "nodes": 1},
        "b": {"after": ["a"], "profile": [{"count": 2, "service_demand": 1}], "memory": "1GiB"},
        "c": {
            "after": "b",
            "profile": {"service_demand": {"dist": "normal", "mean": 1, "cv": 1}, "threads": 2},
        },
        "d": {
            "profile": {"service_demand": 1, "phases": [{"share": 1, "bandwidth": "1GB/s"}]},
            "wait": "spin",
        },
    },
}
GOOD_OLD = {
    "name": "w",
    "schemaVersion": "1.3",
    "workflow": {
        "tasks": [
            {
                "name": "a",
                "id": "1",
                "runtime": 1,
                "cores": 1,
                "avgCPU": 5,
                "files": [{"link": "input", "name": "f"}],
            },
            {"name": "b", "id": "2", "runtime": 0, "memory": 3, "parents": ["a"], "children": []},
        ],
        "machines": [{"nodeName": "m", "cpu": {"speed": 1000}}],
    },
}
READERS = [
    (GOOD_CLUSTER, parse_cluster),
    (GOOD_WORKFLOW, parse_workflow),
    (instance(), None),
    (GOOD_OLD, None),
]

odd = st.sampled_from(
    [None, True, False, 0, -1, 1, 2, 0.5, 1e308, float("nan"), float("inf"), 10**40, "", "a", "t", "n1",
     "\ud800", "\0", "1GB", "00:01", [], {}, [1], ["a"], {"a": 1}, [[]], {"dist": "normal"},
     "x" * 400, "n[1-9]",
     "*", b"x", (1, 2), {1: 2}, object]
)  # fmt: skip
wild = st.recursive(
    odd,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


def places(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        yield from places(part, (*path, key))


def mutate(value, seed, new):
    """Replace, drop, rename or duplicate a random part."""
    chance = random.Random(seed)
    value = copy.deepcopy(value)
    path = chance.choice([path for path in places(value) if path])
    holder = value
    for key in path[:-1]:
        holder = holder[key]
    deed = chance.choice(["replace", "replace", "replace", "drop", "add"])
    if deed == "drop":
        del holder[path[-1]]
    elif deed == "add" and isinstance(holder, dict):
        holder[chance.choice(["x", "", "after", "cores", 7])] = new
    elif deed == "add":
        holder.append(new)
    else:
        holder[path[-1]] = new
    return value


def read_or_refused(parse, *args):
    """Assert that reading gives a value, or one of the two errors with a printable text."""
    try:
        assert isinstance(parse(*args), Cluster | Workflow)
    except (ConfigError, InvalidJobError) as error:
        str(error).encode()
        assert "\n" not in str(error)


def parse_wfcommons(data, source):
    return workflow_of(wfcommons_tasks(data, source))


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(range(len(READERS))), st.integers(0, 10**6), wild)
def test_mutated_values_never_surprise(which, seed, new):
    good, parse = READERS[which]
    if parse is None:
        parse = parse_wfcommons
    read_or_refused(parse, mutate(good, seed, new), "f")


@settings(max_examples=60, deadline=None)
@given(wild.filter(lambda value: isinstance(value, dict)), st.sampled_from(["cluster", "workflow"]))
def test_wild_values_never_surprise(value, kind):
    parse = {"cluster": parse_cluster, "workflow": parse_workflow}[kind]
    read_or_refused(parse, {**value, "schema": f"pilotfish/{kind}/v1"}, "f")


TEXTS = [
    yaml.safe_dump(GOOD_CLUSTER),
    yaml.safe_dump(GOOD_WORKFLOW),
    json.dumps(instance()),
    json.dumps(GOOD_OLD),
    '<adag name="w"><job id="a" runtime="1"><uses file="x"/></job><job id="b"/>'
    '<child ref="b"><parent ref="a"/></child></adag>',
]


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(TEXTS),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 12), st.binary(max_size=6)), min_size=1, max_size=4),
)
def test_mutated_files_never_surprise(tmp_path_factory, text, cuts):
    data = text.encode()
    for where, length, new in cuts:
        at = int(where * len(data))
        data = data[:at] + new + data[at + length :]
    path = tmp_path_factory.mktemp("fuzz") / "file"
    path.write_bytes(data)
    read_or_refused(read_workflow, path)
    read_or_refused(read_cluster, path)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=60) | st.text(st.sampled_from("{}[]<>&*!:-'\"\n ,a1#?|%@"), max_size=60).map(str.encode))
def test_noise_never_surprises(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("noise") / "file"
    path.write_bytes(data)
    read_or_refused(read_workflow, path)
    read_or_refused(read_cluster, path)
