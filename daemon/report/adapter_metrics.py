"""Counts of the requests to the resource manager: the adapter's own, or counts of the calls to it.

Rule: a request that was not sent, because a breaker is open or the budget is used up, is no error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

from ...adapters.base import ERROR_KINDS, NOT_SENT, Adapter, AdapterError, BreakerState, Load
from ...simulate.model.plan import Action
from .metrics import ACTIONS, Metrics, begin_at_0


class LoadMetrics:
    """The load on the resource manager as metric families, read at a scrape from the adapter's own counts.

    Args:
        adapter: its name.
        load: returns its counts.
    """

    def __init__(self, adapter: str, load: Callable[[], Load | None]) -> None:
        self._adapter, self._load = adapter, load

    def collect(self) -> Iterator[Any]:
        """Yield the families as they are now."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily

        load = self._load()
        if load is None:
            return
        requests = CounterMetricFamily(
            "pilotfish_adapter_requests",
            "Requests to the resource manager by result; open and budget: not sent.",
            labels=("adapter", "call", "result"),
        )
        unseen = {(call, result): 0 for call, _ in load.requests for result in ("ok", *ERROR_KINDS, *sorted(NOT_SENT))}
        for (call, result), number in sorted({**unseen, **load.requests}.items()):
            requests.add_metric((self._adapter, call, result), number)
        seconds = SummaryMetricFamily(
            "pilotfish_adapter_request_seconds",
            "Time until the resource manager answered or the request failed.",
            labels=("adapter", "call"),
        )
        for call, (number, total) in sorted(load.seconds.items()):
            seconds.add_metric((self._adapter, call), number, total)
        breakers = GaugeMetricFamily(
            "pilotfish_adapter_breaker",
            "1 for the state of the circuit breaker of a service, 0 for the others.",
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
        unreadable = GaugeMetricFamily(
            "pilotfish_adapter_unreadable_rows",
            "Unreadable rows in the newest answers of the resource manager, by what they describe.",
            labels=("adapter", "what"),
        )
        for kind, number in sorted(load.unreadable.items()):
            unreadable.add_metric((self._adapter, kind), number)
        delays = SummaryMetricFamily(
            "pilotfish_adapter_delay_seconds",
            "Time that the resource manager takes for a job: launch, from its decision to the process; release, from "
            "the end of the process until its cores are free.",
            labels=("adapter", "delay"),
        )
        for kind, (number, total) in sorted(load.delays.items()):
            delays.add_metric((self._adapter, kind), number, total)
        unknown = CounterMetricFamily(
            "pilotfish_adapter_unknown_ends",
            "Jobs whose end the resource manager does not explain.",
            labels=("adapter",),
        )
        unknown.add_metric((self._adapter,), load.unknown_ends)
        closed = GaugeMetricFamily(
            "pilotfish_adapter_closed_queue",
            "1 for a queue of jobs that are handed over that is disabled, so that none of its jobs starts.",
            labels=("adapter", "queue"),
        )
        for name in load.closed:
            closed.add_metric((self._adapter, name), 1.0)
        yield from (requests, seconds, breakers, budget, unreadable, delays, unknown, closed)


#: Methods that send requests. `apply` is counted by its action; the others send none.
COUNTED = ("snapshot", "activity", "refresh", "recall", "usage", "preview", "forget")


def metered(inner: Adapter, metrics: Metrics) -> Adapter:
    """Return an adapter that counts the calls to `inner` in `metrics`, or shows the requests that it counts itself."""
    return cast(Adapter, _MeteredAdapter(inner, metrics))


class _MeteredAdapter:
    def __init__(self, inner: Adapter, metrics: Metrics) -> None:
        self._inner, self._metrics = inner, metrics
        if inner.load() is None:
            begin_at_0(metrics.adapter_requests, (inner.name,), (*COUNTED, *ACTIONS.values()), ("ok", "error"))
        else:
            metrics.registry.unregister(metrics.adapter_requests)
            metrics.registry.register(LoadMetrics(inner.name, inner.load))

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._inner, name)
        return partial(self._count, name, member) if name in COUNTED else member

    def apply(self, action: Action) -> None:
        self._count(ACTIONS[type(action)], self._inner.apply, action)

    def _count(self, call: str, do: Callable[..., Any], *arguments: Any) -> Any:
        try:
            result = do(*arguments)
        except AdapterError as error:
            if error.kind not in NOT_SENT:
                self._metrics.adapter_requests.labels(self._inner.name, call, "error").inc()
                self._metrics.adapter_errors.labels(error.kind).inc()
            raise
        if call != "activity" or result is not None:  # else nothing was asked
            self._metrics.adapter_requests.labels(self._inner.name, call, "ok").inc()
        return result
