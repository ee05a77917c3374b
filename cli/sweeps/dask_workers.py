"""Workers of a Dask cluster that is there already; `distributed` is an extra.

Rule: nothing is asked of a worker but pilotfish of our version: a trace goes to the cluster as its content, once, with
that of the files that it names, and stays with the scheduler, so that whoever takes a run over gets it again. A worker
that dies has its runs done by another; Dask itself says when they are too many.
"""

from __future__ import annotations

import importlib.util
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import Any, Self

from ... import __version__
from ...simulate.errors import ConfigError, PilotfishError
from .task import Failure, Task, attempt
from .trace import Contents

#: Seconds for the scheduler to answer, and for a first worker to come.
PATIENCE_S = 15
#: What distributed has to say, we say.
_TALKERS = ("distributed", "distributed.client", "distributed.comm", "tornado.application")
#: A process replays one run at a time, however many threads it has: a kernel's answer has one place.
_ALONE = Lock()


def demand_distributed() -> None:
    """Raise PilotfishError if distributed is not installed."""
    if importlib.util.find_spec("distributed") is None:
        raise PilotfishError("--dask needs distributed: pip install 'pilotfish[distributed]', there and here")


def keep(contents: Contents) -> Contents:
    """What is in the files of a trace, on the cluster."""
    return contents


def answer(function: Callable[..., Any], task: Task, contents: Contents) -> Any:
    """What a worker does."""
    with _ALONE:
        return attempt(function, task, contents)


class OnDask:
    """A Crew: the workers of the cluster at `address`, however many there are at a time.

    Raises:
        PilotfishError: distributed is not installed here, or pilotfish not there; nobody answers; no worker comes.
        ConfigError: this can be no address.
    """

    def __init__(self, address: str) -> None:
        demand_distributed()
        from distributed.comm.addressing import get_address_host_port, normalize_address

        try:
            get_address_host_port(normalize_address(address))
        except ValueError:
            raise ConfigError("--dask", "", repr(address), "the scheduler's address, such as tcp://head:8786") from None
        self._address = address
        self._contents: dict[tuple[str, ...], Any] = {}

    def __enter__(self) -> Self:
        import distributed

        for name in _TALKERS:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        connect: Any = distributed.Client
        try:
            self._client = connect(self._address, timeout=PATIENCE_S, set_as_default=False)
        except (OSError, TimeoutError):
            raise PilotfishError(f"--dask {self._address}: no scheduler answers there") from None
        try:
            self._meet()
        except BaseException:
            self._client.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._contents.clear()
        self._client.close()

    def _meet(self) -> None:
        """See that there are workers, and that all can do what they will be asked."""
        try:
            self._client.wait_for_workers(1, timeout=PATIENCE_S)
        except TimeoutError:
            raise PilotfishError(f"--dask {self._address}: it has no workers, for {PATIENCE_S} s") from None
        found = self._client.get_versions(packages=["pilotfish"])
        for name, host in {"scheduler": found["scheduler"], **found["workers"]}.items():
            theirs = (host or {}).get("packages", {}).get("pilotfish")
            if theirs != __version__:
                has = f"pilotfish {theirs}" if theirs else "no pilotfish"
                raise PilotfishError(f"--dask {self._address}: {name} has {has}: install {__version__} there")

    def each(self, function: Callable[..., Any], tasks: Sequence[Task]) -> Iterator[list[tuple[Task, Any]]]:
        """See Crew. Raises PilotfishError: the cluster has gone. ConfigError: a trace cannot be handed over."""
        from distributed import as_completed

        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph")
            asked = {
                self._client.submit(answer, function, task, self._held(task), pure=False): task for task in tasks
            }
        ending: Any = as_completed
        for ended in ending(asked, self._client.loop, with_results=True, raise_errors=False).batches():
            found = [(asked[future], self._judged(future, result)) for future, result in ended]
            for future, _ in ended:
                future.release()
            yield found

    def _held(self, task: Task) -> Any:
        """What is in the files of a task's trace, handed over once."""
        trace = task.trace
        if not trace.kept_together:
            why = "it names files outside of its folder, which workers of --dask cannot be given"
            raise ConfigError(trace.path, "", why, "names in its folder, without ..")
        mark = tuple(trace.hashes.values())
        if mark not in self._contents:
            self._contents[mark] = self._client.submit(keep, trace.contents(), pure=False)
        return self._contents[mark]

    def _judged(self, future: Any, result: Any) -> Any:
        if future.status == "finished":
            return result
        if future.status == "error":
            return Failure(f"Dask: {' '.join(str(result[1]).split())}")
        raise PilotfishError(f"--dask {self._address}: the cluster has gone; the same command goes on where it was")
