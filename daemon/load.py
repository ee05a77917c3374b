"""What an adapter has asked of its resource manager, as metrics.

Rule: read at a scrape from what the adapter counts in memory; nobody is asked for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..adapters.load import BreakerState, Load


class LoadMetrics:
    """Metric families of the adapter called `adapter`, for a registry of prometheus_client."""

    def __init__(self, adapter: str, load: Callable[[], Load | None]) -> None:
        self._adapter, self._load = adapter, load

    def collect(self) -> Iterator[Any]:
        """The families, as they are now."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily

        load = self._load()
        if load is None:
            return
        requests = CounterMetricFamily(
            "pilotfish_adapter_requests",
            "Requests to the resource manager by what came of them; open and budget: not sent.",
            labels=("adapter", "call", "result"),
        )
        for (call, outcome), number in sorted(load.requests.items()):
            requests.add_metric((self._adapter, call, outcome), number)
        seconds = SummaryMetricFamily(
            "pilotfish_adapter_request_seconds",
            "Time until the resource manager answered, or did not.",
            labels=("adapter", "call"),
        )
        for call, (number, total) in sorted(load.seconds.items()):
            seconds.add_metric((self._adapter, call), number, total)
        breakers = GaugeMetricFamily(
            "pilotfish_adapter_breaker",
            "1 for the state of the circuit breaker before a service, 0 for the others.",
            labels=("adapter", "service", "state"),
        )
        for service, now in sorted(load.breakers.items()):
            for state in BreakerState:
                breakers.add_metric((self._adapter, service, str(state)), float(state is now))
        budget = GaugeMetricFamily(
            "pilotfish_adapter_budget_left_requests",
            "Requests that may be sent now without a pause.",
            labels=("adapter",),
        )
        budget.add_metric((self._adapter,), load.budget_left)
        yield from (requests, seconds, breakers, budget)
