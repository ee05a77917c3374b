"""An adapter whose calls are counted: every request to the resource manager passes here, so its load is
known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from ..adapters.base import Adapter, AdapterError, Capabilities
from ..adapters.load import Load
from ..simulate.booked import Booked
from ..simulate.plan import Action
from ..simulate.snapshot import JobView, Snapshot
from .exporter import Metrics

_Result = TypeVar("_Result")


class Counted:
    """The adapter `inner`, with its requests and errors in `metrics`: the calls to it, unless it counts requests."""

    def __init__(self, inner: Adapter, metrics: Metrics) -> None:
        self._inner, self._metrics = inner, metrics
        if inner.load() is not None:
            metrics.show_load(inner.name, inner.load)

    @property
    def name(self) -> str:
        """As the adapter's."""
        return self._inner.name

    @property
    def capabilities(self) -> Capabilities:
        """As the adapter's."""
        return self._inner.capabilities

    @property
    def notes(self) -> Sequence[str]:
        """As the adapter's."""
        return self._inner.notes

    def snapshot(self) -> Snapshot:
        """Read the world once. Raises AdapterError."""
        return self._count("snapshot", self._inner.snapshot)

    def look_again(self, keys: Collection[str]) -> Snapshot:
        """Read what these jobs touch once more. Raises AdapterError."""
        return self._count("look_again", lambda: self._inner.look_again(keys))

    def recall(self, since: Mapping[str, float]) -> Mapping[str, JobView] | None:
        """What is on record of jobs that are not shown any more. Raises AdapterError."""
        return self._count("recall", lambda: self._inner.recall(since))

    def books(self, since: Mapping[str, float]) -> Mapping[str, Booked] | None:
        """What its accounting has of what jobs used. Raises AdapterError."""
        return self._count("books", lambda: self._inner.books(since))

    def load(self) -> Load | None:
        """As the adapter's."""
        return self._inner.load()

    def apply(self, action: Action) -> None:
        """Carry out one action. Raises AdapterError."""
        self._count(type(action).__name__.lower(), lambda: self._inner.apply(action))

    def preview(self, action: Action) -> Sequence[str]:
        """The commands that would be run. Raises AdapterError."""
        return self._count("preview", lambda: self._inner.preview(action))

    def wait(self, timeout_s: float) -> bool:
        """Block until something may have changed; it asks nobody, so it is not counted."""
        return self._inner.wait(timeout_s)

    def fileno(self) -> int | None:
        """A descriptor that is readable when `wait` would return, where the adapter has one."""
        return self._inner.fileno()

    def forget(self, key: str) -> None:
        """Let the adapter drop what it keeps of an ended job, where it keeps such. Raises AdapterError."""
        self._count("forget", lambda: self._inner.forget(key))

    def output(self, key: str) -> tuple[Path, Path] | None:
        """Where a job's output is; it asks nobody, so it is not counted."""
        return self._inner.output(key)

    def close(self) -> None:
        """Let go."""
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
