"""Metrics and health over real HTTP; a scrape reads memory only."""

from __future__ import annotations

import ast
import platform
import socket
import struct
import threading
import time
from collections import Counter
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
import requests
from prometheus_client import generate_latest

import pilotfish
from pilotfish.adapters.base import ERROR_KINDS, NOT_SENT, AdapterError
from pilotfish.built_from import commit
from pilotfish.daemon.apply import Live
from pilotfish.daemon.report import exporter
from pilotfish.daemon.report.adapter_metrics import COUNTED, metered
from pilotfish.daemon.report.exporter import Exporter, Health
from pilotfish.daemon.report.metrics import Metrics, node_watts
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType, Power
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Job
from tests.support.clock import Clock
from tests.support.sources import tree_of

SOURCES = Path(pilotfish.__file__).resolve().parent / "adapters"

NAMES = [
    "build_info",
    "mode",
    "cycle_duration_seconds",
    "snapshot_age_seconds",
    "jobs",
    "decisions_total",
    "decision_duration_seconds",
    "whatif_evaluations_total",
    "forecast_error_factor",
    "contention_slowdown_ratio",
    "node_load_ratio",
    "node_power_watts",
    "energy_joules_total",
    "adapter_requests_total",
    "adapter_errors_total",
]


@pytest.fixture
def served(real, bench, monkeypatch):
    monkeypatch.setattr(exporter, "MADE_EVERY_S", 0.0)
    clock = Clock(100.0)
    health = Health(10.0, clock)
    server = Exporter(bench.metrics, health, port=0)
    assert server.url == f"http://127.0.0.1:{server.port}/metrics"
    yield bench, clock, health, server.url.removesuffix("/metrics")
    server.close()


def test_every_metric_is_exported_and_no_label_names_a_job(served, kit):
    bench, _, _, url = served
    bench.cycle.adapter = metered(bench.manager, bench.metrics)
    bench.cycle.applier = Live(bench.cycle.adapter)
    workflow = bench.submit(kit.job("secret"))
    bench.run(15)
    reply = requests.get(f"{url}/metrics", timeout=60)
    assert reply.status_code == 200 and reply.headers["Content-Type"].startswith("text/plain")
    families = {line.split()[2] for line in reply.text.splitlines() if line.startswith("# TYPE")}
    assert {f"pilotfish_{name}" for name in NAMES} <= families
    assert f'pilotfish_build_info{{commit="{commit()}",python="{platform.python_version()}"' in reply.text
    assert all(name.startswith(("pilotfish_", "process_")) for name in families)  # Slurm exports its own
    assert {"process_start_time_seconds", "process_resident_memory_bytes", "process_cpu_seconds_total"} <= families
    assert "secret" not in reply.text and workflow not in reply.text
    assert 'pilotfish_adapter_requests_total{adapter="memory",call="submit",result="ok"} 1.0' in reply.text
    assert 'pilotfish_jobs{state="running"} 0.0' in reply.text
    assert 'pilotfish_decisions_total{action="submit",outcome="applied"} 1.0' in reply.text
    assert 'pilotfish_plans_total{outcome="planned",policy="mom"} 1.0' in reply.text


def test_each_series_has_the_label_of_the_cluster_and_keeps_its_own(served):
    bench, _, health, _ = served
    bench.run(1)
    with closing(Exporter(bench.metrics, health, port=0, cluster='o"dd')) as server:
        texts = [requests.get(server.url, timeout=60).text, requests.get(server.url, timeout=60).text]
    for text in texts:
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        assert lines and all('cluster="o\\"dd"' in line for line in lines)
        assert 'pilotfish_mode{cluster="o\\"dd",mode="live"} 1.0' in lines
    plain = generate_latest(bench.metrics.registry).decode()
    assert "cluster=" not in plain


def test_a_scrape_sends_no_request_to_the_resource_manager(served):
    bench, _, _, url = served
    bench.run(1)
    before = bench.manager.version
    for page in ("metrics", "healthz", "readyz"):
        requests.get(f"{url}/{page}", timeout=60)
    assert bench.manager.version == before


def test_openmetrics_is_served_on_request(served):
    *_, url = served
    accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
    reply = requests.get(f"{url}/metrics", headers=accept, timeout=60)
    assert reply.text.rstrip().endswith("# EOF")


def test_a_service_is_not_ready_at_once_while_something_keeps_jobs_from_starting():
    health = Health(10.0, Clock(100.0))
    health.starting("starting: compiling")
    assert (health.ready, health.why_not_ready) == (False, "starting: compiling")
    health.completed()
    assert health.ready
    health.failed("blind")
    health.confirmed()
    assert (health.ready, health.why_not_ready, health.alive) == (False, "blind", True)
    health.completed("blocked")
    assert health.why_not_ready == "blocked"
    health.completed()
    assert health.ready and health.why_not_ready == ""


def test_health_follows_the_cycles(served):
    _, clock, health, url = served

    def codes():
        return [requests.get(f"{url}/{page}", timeout=60).status_code for page in ("healthz", "readyz")]

    assert codes() == [200, 503]
    health.completed()
    assert codes() == [200, 200]
    clock.now += 10.5
    assert codes() == [503, 503]
    health.completed()
    assert codes() == [200, 200]
    assert requests.get(f"{url}/else", timeout=60).status_code == 404


def test_loads_power_and_energy_come_from_snapshots(served, kit):
    bench, *_ = served
    bench.submit(kit.job("a", threads=2, seconds=100))
    bench.run(1)
    bench.run(3, step_s=2.0)
    assert bench.value("node_load_ratio", node="n1") == 1.0
    assert bench.value("node_load_ratio", node="n2") == 0.0
    assert bench.value("node_power_watts", node="n1") == 20.0
    # 20 W until a snapshot shows the start, then 30 W for the two steps of 2 s between the later snapshots
    assert bench.value("energy_joules_total") == pytest.approx(20.0 * 1 + 30.0 * 4)


def test_energy_is_left_out_where_the_power_of_a_node_is_unknown(kit):
    unknown = Node("unknown", NodeType("t", 4, 1.0, 1.0))
    for nodes in ((unknown,), (*kit.cluster().nodes, unknown)):
        metrics, manager = Metrics(), kit.Manager(Cluster("lab", nodes))
        for _ in range(3):
            metrics.show_snapshot(manager.snapshot(), Counter())
            manager.time += 5.0
        shown = generate_latest(metrics.registry).decode()
        assert "pilotfish_energy_joules" not in shown and 'node_power_watts{node="unknown"}' not in shown
        assert ('node_power_watts{node="n1"}' in shown) == (len(nodes) > 1)


@pytest.mark.parametrize(
    ("power", "threads", "watts"),
    [
        (None, 1, None),
        (Power(95.0, computing=195.0), 2, 145.0),
        (Power(95.0, computing=195.0), 9, 195.0),
        (Power(50.0, per_core=2.0, per_socket=5.0, idle_uncore=0.5), 0, 55.0),
        (Power(50.0, per_core=2.0, per_socket=5.0, idle_uncore=0.5), 3, 66.0),
    ],
)
def test_power_of_a_node(power, threads, watts):
    node = Node("n", NodeType("t", 4, 1.0, 1.0, sockets=2, power=power))
    assert node_watts(node, threads) == watts


def test_errors_of_the_manager_are_counted_by_kind(bench):
    bench.manager.down = "gone"
    counted = metered(bench.manager, bench.metrics)
    with pytest.raises(Exception, match="gone"):
        counted.snapshot()
    assert bench.value("adapter_errors_total", kind="unreachable") == 1
    assert bench.value("adapter_requests_total", adapter="memory", call="snapshot", result="error") == 1


@pytest.mark.parametrize("kind", sorted(NOT_SENT))
def test_a_request_that_was_not_sent_is_no_error(bench, kind):
    counted = metered(bench.manager, bench.metrics)
    bench.manager.snapshot = lambda: _raise(AdapterError("left alone", transient=True, kind=kind))
    with pytest.raises(AdapterError):
        counted.snapshot()
    assert bench.metrics.registry.get_sample_value("pilotfish_adapter_errors_total", {"kind": kind}) is None
    assert bench.value("adapter_requests_total", adapter="memory", call="snapshot", result="error") == 0


def _raise(error):
    raise error


def test_each_counter_begins_at_0_before_its_first_event(bench):
    """A rate over a series that begins with its first event misses this event."""
    metered(bench.manager, bench.metrics)
    families = [family for family in bench.metrics.registry.collect() if family.name.startswith("pilotfish_")]
    counters = [family for family in families if family.type == "counter"]
    assert len(counters) >= 9
    for family in counters:
        values = [sample.value for sample in family.samples]
        assert values and not any(values), family.name
    errors = {sample.labels["kind"] for family in counters for sample in family.samples if "errors" in family.name}
    assert errors == set(ERROR_KINDS)


def test_the_kinds_of_errors_that_adapters_raise_are_those_that_are_counted():
    kinds = set()
    for path in SOURCES.rglob("*.py"):
        for call in (node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call)):
            named = [word.value for word in call.keywords if word.arg == "kind"]
            texts = {each.value for value in named for each in ast.walk(value) if isinstance(each, ast.Constant)}
            raised = "Error" in ast.unparse(call.func) or "NotDone" in ast.unparse(call.func)
            kinds |= texts if raised else set()
    assert {"spawn", "unreachable"} <= kinds <= {*ERROR_KINDS, *NOT_SENT}


def test_quantiles_of_what_is_at_least_1_are_at_least_1(bench, kit):
    """Prometheus interpolates in the bucket of a quantile, in the first one from 0."""
    job = kit.job("exact", seconds=10.0)
    bench.submit(job)
    bench.run(12)
    bench.metrics.errors.count_interval((), "measured", 1.0, inside=True)
    histograms = [family for family in bench.metrics.registry.collect() if family.type == "histogram"]
    ratios = [family for family in histograms if family.name.endswith(("_factor", "_ratio"))]
    assert len(ratios) >= 4
    for family in ratios:
        buckets = sorted(
            (float(s.labels["le"]), s.value) for s in family.samples if s.name.endswith("_bucket") and s.value
        )
        assert buckets, family.name
        bounds = sorted({float(s.labels["le"]) for s in family.samples if "le" in s.labels})
        lowest = bounds.index(buckets[0][0])
        assert lowest > 0 and bounds[lowest - 1] >= 0.99, family.name


def test_a_run_time_that_was_assumed_is_compared_with_nothing(bench, kit):
    """Its forecast is its walltime, so that all its ratios would be far below 1."""
    job = Job("guess", DEFAULT_PROFILE, walltime=3600.0, command=("true",))
    bench.manager.takes["guess"] = 2.0
    flow = bench.submit(job)
    bench.run(6)
    assert bench.states(flow) == {"guess": "completed"}
    for name, labels in (
        ("contention_slowdown_ratio_count", {}),
        ("forecast_error_factor_count", {"kind": "run_time", "direction": "shorter"}),
        ("forecast_error_factor_count", {"kind": "finish_time", "direction": "shorter"}),
    ):
        assert bench.value(name, **labels) == 0, name


@pytest.mark.real
@pytest.mark.parametrize("address", ["127.0.0.1", "203.0.113.77", "not an address"])
def test_a_port_that_cannot_be_used_is_one_clear_error(address):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"cannot listen on {address}:{port}"):
            Exporter(Metrics(), Health(1.0, Clock(100.0)), address, port)


@pytest.fixture
def small(monkeypatch):
    """An exporter with few places."""
    monkeypatch.setattr(exporter, "MOST_CONNECTIONS", 3)
    made = Exporter(Metrics(), Health(1e9, Clock(100.0)), port=0)
    yield made, f"http://127.0.0.1:{made.port}/healthz"
    made.close()


@pytest.mark.real
def test_the_oldest_connection_gives_way(small, capfd):
    made, url = small
    with ExitStack() as silent:
        clients = [silent.enter_context(socket.create_connection(("127.0.0.1", made.port))) for _ in range(5)]
        assert [client.recv(1) for client in clients[:2]] == [b"", b""]
        for client in clients[2:]:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    eventually_answers(url)
    assert capfd.readouterr() == ("", "")


@pytest.mark.real
def test_clients_that_drip_shut_nobody_out(small):
    made, url = small
    stop, sent = threading.Event(), Counter()

    def drip(number):
        while not stop.is_set():
            with suppress(OSError), socket.create_connection(("127.0.0.1", made.port)) as client:
                for byte in b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 1000:
                    client.send(bytes([byte]))
                    sent[number] += 1
                    if stop.wait(0.02):
                        break

    threads = [threading.Thread(target=drip, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    try:
        while min(sent[number] for number in range(6)) < 5:
            time.sleep(0.01)
        for _ in range(20):
            eventually_answers(url)
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.real
def test_a_request_has_a_deadline_however_slowly_it_comes(small, monkeypatch):
    monkeypatch.setattr(exporter, "REQUEST_S", 0.2)
    with socket.create_connection(("127.0.0.1", small[0].port)) as client, pytest.raises(OSError):
        for _ in range(3000):  # a byte each 10 ms would last 30 s
            client.send(b"x")
            time.sleep(0.01)
    eventually_answers(small[1])


@pytest.mark.real
def test_nobody_has_to_take_an_answer(small, monkeypatch):
    """A client that asks and never reads is closed as well."""
    monkeypatch.setattr(exporter, "REQUEST_S", 0.2)
    made, url = small
    made._server.RequestHandlerClass.pages["/big"] = lambda _: (200, "text/plain", b"x" * 50_000_000)
    with socket.create_connection(("127.0.0.1", made.port)) as client:
        client.send(b"GET /big HTTP/1.0\r\n\r\n")
        while made._server._open or made._server._places._value < 6:
            time.sleep(0.01)
    eventually_answers(url)


def eventually_answers(url):
    deadline = time.monotonic() + 60.0
    while time.monotonic() < deadline:
        with suppress(requests.RequestException):  # it may also be closed in the middle of its answer
            assert requests.get(url, timeout=60).status_code == 200
            return
        time.sleep(0.01)
    raise AssertionError(f"{url} did not answer")


@pytest.mark.parametrize("name", COUNTED)
def test_every_request_is_counted_under_the_name_of_its_method(name):
    metrics = Metrics()
    inner = SimpleNamespace(name="x", load=lambda: None, **{name: lambda *given: given})
    assert getattr(metered(inner, metrics), name)(1) == (1,)
    labels = {"adapter": "x", "call": name, "result": "ok"}
    assert metrics.registry.get_sample_value("pilotfish_adapter_requests_total", labels) == 1.0


@pytest.mark.real
@pytest.mark.parametrize(
    "head", [b"GET /healthz HTTP/1.1\r\n" + b"A: b\r\n" * 90 + b"B: " + b"x" * 60_000, b"x" * 10**6]
)
def test_a_request_that_is_too_large_is_dropped(small, head):
    with socket.create_connection(("127.0.0.1", small[0].port)) as client, suppress(OSError):
        client.sendall(head + b"\r\n\r\n")
        assert b" 200 " not in client.recv(1000)
    eventually_answers(small[1])


def test_the_text_of_the_metrics_is_made_once_for_many_scrapes(monkeypatch):
    made = []
    monkeypatch.setattr(exporter, "MADE_EVERY_S", 1e9)
    metrics = Metrics()
    metrics.snapshot_age.set_function(lambda: made.append(1) or 1.0)
    page = exporter._Text(metrics.registry)
    texts = {page(accept)[2] for accept in ["", "*/*", "text/plain"] * 100}
    assert len(texts) == len(made) == 1
    assert b"# EOF" in page("application/openmetrics-text; version=1.0.0")[2] and len(made) == 2
