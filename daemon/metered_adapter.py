"""An adapter whose calls are counted, so that the load on the resource manager is known."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from ..adapters.base import Adapter, AdapterError
from ..simulate.model.plan import Action
from .report.metrics import Metrics

#: The metrics label of each method that sends requests. `apply` is counted by its action; the others send none.
COUNTED = {"refresh": "look_again"} | {name: name for name in ("snapshot", "recall", "books", "preview", "forget")}


def metered(inner: Adapter, metrics: Metrics) -> Adapter:
    """Return an adapter that counts the calls to `inner` in `metrics`, or shows the requests that it counts itself."""
    return cast(Adapter, _MeteredAdapter(inner, metrics))


class _MeteredAdapter:
    def __init__(self, inner: Adapter, metrics: Metrics) -> None:
        self._inner, self._metrics = inner, metrics
        if inner.load() is not None:
            metrics.show_load(inner.name, inner.load)

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._inner, name)
        return partial(self._count, COUNTED[name], member) if name in COUNTED else member

    def apply(self, action: Action) -> None:
        self._count(type(action).__name__.lower(), self._inner.apply, action)

    def _count(self, call: str, do: Callable[..., Any], *arguments: Any) -> Any:
        try:
            result = do(*arguments)
        except AdapterError as error:
            self._metrics.adapter_requests.labels(self._inner.name, call, "error").inc()
            self._metrics.adapter_errors.labels(error.kind).inc()
            raise
        self._metrics.adapter_requests.labels(self._inner.name, call, "ok").inc()
        return result
