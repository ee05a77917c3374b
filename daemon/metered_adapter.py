"""An adapter whose calls are counted, so that the load on the resource manager is known."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from ..adapters.base import Adapter, AdapterError, Capabilities, Load
from ..simulate.model.accounting_record import AccountingRecord
from ..simulate.model.plan import Action
from ..simulate.model.snapshot import JobView, Snapshot
from .report.metrics import Metrics

_Result = TypeVar("_Result")


class MeteredAdapter:
    """Counts the calls to `inner` in `metrics`, or shows the requests that `inner` counts itself."""

    def __init__(self, inner: Adapter, metrics: Metrics) -> None:
        self._inner, self._metrics = inner, metrics
        if inner.load() is not None:
            metrics.show_load(inner.name, inner.load)

    @property
    def name(self) -> str:
        """See `Adapter`."""
        return self._inner.name

    @property
    def capabilities(self) -> Capabilities:
        """See `Adapter`."""
        return self._inner.capabilities

    @property
    def notes(self) -> Sequence[str]:
        """See `Adapter`."""
        return self._inner.notes

    def snapshot(self) -> Snapshot:
        """Read the cluster once. Raises AdapterError."""
        return self._count("snapshot", self._inner.snapshot)

    def refresh(self, keys: Collection[str]) -> Snapshot:
        """Read again what these jobs touch. Raises AdapterError."""
        return self._count("look_again", lambda: self._inner.refresh(keys))

    def recall(self, since: Mapping[str, float]) -> Mapping[str, JobView] | None:
        """Return the records of jobs that are not shown any more. Raises AdapterError."""
        return self._count("recall", lambda: self._inner.recall(since))

    def books(self, since: Mapping[str, float]) -> Mapping[str, AccountingRecord] | None:
        """Return what jobs used, from the accounting. Raises AdapterError."""
        return self._count("books", lambda: self._inner.books(since))

    def load(self) -> Load | None:
        """See `Adapter`."""
        return self._inner.load()

    def apply(self, action: Action) -> None:
        """Carry out one action. Raises AdapterError."""
        self._count(type(action).__name__.lower(), lambda: self._inner.apply(action))

    def preview(self, action: Action) -> Sequence[str]:
        """Return the commands that would be run. Raises AdapterError."""
        return self._count("preview", lambda: self._inner.preview(action))

    def wait(self, timeout_s: float) -> bool:
        """Block until something may have changed; sends no request, so it is not counted."""
        return self._inner.wait(timeout_s)

    def fileno(self) -> int | None:
        """Return a descriptor that is readable when `wait` would return, if there is one."""
        return self._inner.fileno()

    def forget(self, key: str) -> None:
        """Let the adapter drop what it keeps of an ended job. Raises AdapterError."""
        self._count("forget", lambda: self._inner.forget(key))

    def output(self, key: str) -> tuple[Path, Path] | None:
        """Return the files of a job's output; sends no request, so it is not counted."""
        return self._inner.output(key)

    def close(self) -> None:
        """Close the adapter."""
        self._inner.close()

    def _count(self, call: str, do: Callable[[], _Result]) -> _Result:
        try:
            result = do()
        except AdapterError as error:
            self._metrics.adapter_requests.labels(self.name, call, "error").inc()
            self._metrics.adapter_errors.labels(error.kind).inc()
            raise
        self._metrics.adapter_requests.labels(self.name, call, "ok").inc()
        return result
