"""The load that an adapter counts itself is exported, and a scrape sends no request."""

from __future__ import annotations

import pytest
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from pilotfish.adapters.base import ERROR_KINDS, NOT_SENT, AdapterError, BreakerState, Load
from pilotfish.daemon.report.adapter_metrics import metered
from pilotfish.daemon.report.metrics import Metrics

LOAD = Load(
    {("jobs", "ok"): 7, ("jobs", "open"): 2, ("ended", "unreachable"): 1},
    {"jobs": (7, 0.5), "ended": (1, 9.0)},
    {"controller": BreakerState.CLOSED, "accounting": BreakerState.OPEN},
    2990.0,
)


@pytest.fixture
def metrics(bench) -> Metrics:
    bench.manager.load = lambda: LOAD
    metered(bench.manager, bench.metrics).snapshot()
    return bench.metrics


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ('requests_total{adapter="memory",call="jobs",result="ok"}', 7),
        ('requests_total{adapter="memory",call="jobs",result="open"}', 2),
        ('request_seconds_count{adapter="memory",call="jobs"}', 7),
        ('request_seconds_sum{adapter="memory",call="ended"}', 9),
        ('breaker{adapter="memory",service="accounting",state="open"}', 1),
        ('breaker{adapter="memory",service="accounting",state="closed"}', 0),
        ('breaker{adapter="memory",service="accounting",state="half-open"}', 0),
        ('breaker{adapter="memory",service="controller",state="closed"}', 1),
        ('budget_left_requests{adapter="memory"}', 2990),
    ],
)
def test_the_load_is_exported(metrics: Metrics, line: str, value: int) -> None:
    assert f"pilotfish_adapter_{line} {float(value)}" in generate_latest(metrics.registry).decode().splitlines()


def test_each_result_of_a_call_begins_at_0(metrics: Metrics) -> None:
    lines = generate_latest(metrics.registry).decode().splitlines()
    for result in (*ERROR_KINDS, *NOT_SENT):
        started = f'pilotfish_adapter_requests_total{{adapter="memory",call="ended",result="{result}"}} '
        assert started + ("1.0" if result == "unreachable" else "0.0") in lines


def test_requests_are_counted_once_and_the_text_can_be_parsed(metrics: Metrics) -> None:
    text = generate_openmetrics(metrics.registry).decode()
    families = [family.name for family in text_string_to_metric_families(text)]
    assert families.count("pilotfish_adapter_requests") == 1 and 'call="snapshot"' not in text


def test_calls_are_counted_if_the_adapter_counts_no_requests(bench) -> None:
    metered(bench.manager, bench.metrics).snapshot()
    text = generate_latest(bench.metrics.registry).decode()
    assert 'pilotfish_adapter_requests_total{adapter="memory",call="snapshot",result="ok"} 1.0' in text
    assert "breaker" not in text


@pytest.mark.parametrize("kind", sorted(NOT_SENT))
def test_starts_that_were_not_sent_are_not_logged_one_by_one(bench, kit, caplog, kind: str) -> None:
    flow = bench.submit(*(kit.job(f"j{number}") for number in range(4)))
    for number in range(4):
        bench.manager.refuse[f"{flow}/j{number}"] = AdapterError("left alone", transient=True, kind=kind)
    (report,) = bench.run()
    assert len(report.applied) == 4 and "left alone" not in caplog.text
    assert all(entry.waiting for entry in bench.cycle.tracker.queue.active())  # they certainly did not start
    bench.manager.refuse.clear()
    bench.run(cycles=40)
    assert set(bench.states(flow).values()) == {"completed"} and set(bench.manager.runs.values()) == {1}
