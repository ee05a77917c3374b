"""Workers of an existing Dask cluster; `distributed` is an optional package.

Rule: a worker needs only the same version of pilotfish. What tasks read is sent to the cluster once and stays with
the scheduler, so that another worker can take a run over. If a worker dies, another one
repeats its runs; Dask limits the number of attempts.
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
from .tasks import AnyTask, Failure, PoolTask, TaskInput, attempt
from .workers import PoolLostError, WorkerPool

#: Seconds for the scheduler to answer, and for a first worker to connect.
PATIENCE_S = 15
#: Loggers that are silenced: pilotfish reports their errors.
_TALKERS = ("distributed", "distributed.client", "distributed.comm", "tornado.application")
#: A process replays one run at a time, with any number of threads: kernels have one result buffer.
_ALONE = Lock()


def hold(content: Any) -> Any:
    """Hold on the cluster what tasks read."""
    return content


def answer(version: str, function: Callable[..., Any], task: PoolTask, content: Any) -> Any:
    """Carry out a task on a worker; `version`: of the pilotfish that asks."""
    with _ALONE:
        return attempt(version, function, task, content)


class DaskWorkers(WorkerPool):
    """A WorkerPool: the workers of the cluster at `address`.

    Raises:
        PilotfishError: distributed or pilotfish is not installed; TLS has no certificate; no scheduler answers;
            it has no workers.
        ConfigError: not an address.
    """

    def __init__(self, address: str) -> None:
        if importlib.util.find_spec("distributed") is None:
            raise PilotfishError("--dask needs distributed: pip install 'pilotfish[distributed]', there and here")
        from distributed.comm.addressing import get_address_host_port, normalize_address
        from distributed.security import Security

        try:
            get_address_host_port(normalize_address(address))
        except ValueError:
            raise ConfigError("--dask", "", repr(address), "the scheduler's address, such as tcp://head:8786") from None
        security: Any = Security
        if address.startswith("tls://") and security().get_connection_args("client")["ssl_context"] is None:
            remedy = "set distributed.comm.tls in Dask's configuration"
            raise PilotfishError(f"--dask {address}: Dask has no certificate for TLS: {remedy}")
        self._address = address
        self._contents: dict[TaskInput, Any] = {}

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
            self._check_workers()
        except BaseException:
            self._client.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._contents.clear()
        self._client.close()

    def _check_workers(self) -> None:
        """Check that there are workers, and that all have this version of pilotfish."""
        try:
            self._client.wait_for_workers(1, timeout=PATIENCE_S)
        except TimeoutError:
            raise PilotfishError(f"--dask {self._address}: no worker connected within {PATIENCE_S} s") from None
        versions = self._client.get_versions(packages=["pilotfish"])
        for name, host in {"scheduler": versions["scheduler"], **versions["workers"]}.items():
            version = (host or {}).get("packages", {}).get("pilotfish")
            if version != __version__:
                label = f"pilotfish {version}" if version else "no pilotfish"
                raise PilotfishError(f"--dask {self._address}: {name} has {label}: install {__version__} there")

    def each(self, function: Callable[..., Any], tasks: Sequence[AnyTask]) -> Iterator[list[tuple[AnyTask, Any]]]:
        """See WorkerPool."""
        from distributed import as_completed

        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph")
            submit: Any = self._client.submit
            task_of = {
                submit(answer, __version__, function, task, self._content(task), pure=False): task for task in tasks
            }
        ending: Any = as_completed
        for ended in ending(task_of, self._client.loop, with_results=True, raise_errors=False).batches():
            results = [(task_of[future], self._result(future, result)) for future, result in ended]
            for future, _ in ended:
                future.release()
            yield results

    def _content(self, task: PoolTask) -> Any:
        """Return what a task reads, on the cluster; it is sent once."""
        if task.trace not in self._contents:
            self._contents[task.trace] = self._client.submit(hold, task.trace.portable(), pure=False)
        return self._contents[task.trace]

    def _result(self, future: Any, result: Any) -> Any:
        if future.status == "finished":
            return result
        if future.status == "error":
            return Failure(f"Dask: {' '.join(str(result[1]).split())}")
        raise PoolLostError(f"--dask {self._address}: the cluster is gone")
