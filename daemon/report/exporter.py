"""The metrics server: metrics and health over HTTP, read from memory.

Rule: a scrape never reaches the resource manager. No client can shut others out: a request must be complete, and its
answer taken, within REQUEST_S, and if all places are taken, a new connection gets the place of the oldest. No client
can slow the service down: the number of connections in a second and the size of a request are bounded, and the metrics
are made at most once in MADE_EVERY_S.
"""

from __future__ import annotations

import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ...simulate.errors import ConfigError
from .metrics import Metrics

#: Connections at a time, and seconds for a whole request with its answer, however slowly its bytes come.
MOST_CONNECTIONS, REQUEST_S = 32, 5.0
#: Connections in a second that are served without a pause, bytes of a request, and seconds for which a text is served.
MOST_A_SECOND, LARGEST_REQUEST, MADE_EVERY_S = 50, 16 * 2**10, 1.0


class Health:
    """Health of the service: cycles are being completed in time, and jobs can be planned and started.

    Args:
        patience_s: longest time without a completed cycle, seconds.
        clock: seconds, monotonic.
    """

    def __init__(self, patience_s: float, clock: Callable[[], float]) -> None:
        self.patience_s, self._clock = patience_s, clock
        self._last, self._ready, self._trouble = clock(), False, ""

    def starting(self, step: str) -> None:
        """Note how far the start is, one clause; it counts as life."""
        self._last, self._trouble = self._clock(), step

    def completed(self, trouble: str = "") -> None:
        """Note a completed cycle; `trouble` is what keeps jobs from being planned or started."""
        self._last, self._ready, self._trouble = self._clock(), True, trouble

    def failed(self, trouble: str) -> None:
        """Note a cycle that was not completed, and why; anyone may read this."""
        self._trouble = trouble

    def confirmed(self) -> None:
        """Note that nothing has happened since the last completed cycle, so that it counts as a new one."""
        self._last = self._clock()

    @property
    def age_s(self) -> float:
        """Seconds since the last completed cycle (or since the start)."""
        return self._clock() - self._last

    @property
    def alive(self) -> bool:
        """True while cycles are being completed."""
        return self.age_s <= self.patience_s

    @property
    def ready(self) -> bool:
        """True once a first cycle has been completed, while the others go on, and all jobs can be planned."""
        return not self.why_not_ready

    @property
    def why_not_ready(self) -> str:
        """The reason why the daemon is not ready, or ""."""
        late = "" if self._ready and self.alive else "no cycle has been completed recently"
        return self._trouble or late


class Exporter:
    """An HTTP server for /metrics, /healthz and /readyz, on threads of its own that only read.

    Args:
        metrics: served at /metrics.
        health: served at /healthz and /readyz.
        address: to listen on.
        port: to listen on; 0 picks a free one, see the attribute `port`.
        cluster: name of the cluster, a label of each series, so that many clusters fit into one Prometheus; "": none.

    Raises:
        ConfigError: the address or port cannot be used.
    """

    def __init__(
        self, metrics: Metrics, health: Health, address: str = "127.0.0.1", port: int = 9836, cluster: str = ""
    ) -> None:
        metrics.snapshot_age.set_function(lambda: health.age_s)
        pages = {
            "/metrics": _Text(_OfCluster(metrics.registry, cluster)),
            "/healthz": lambda _: _status(health.alive, f"the last cycle ended {health.age_s:.0f} s ago"),
            "/readyz": lambda _: _status(health.ready, health.why_not_ready),
        }
        try:
            self._server = _Server((address, port), type("Handler", (_Handler,), {"pages": pages}))
        except (OSError, OverflowError) as error:
            raise ConfigError(
                "metrics", "port", f"cannot listen on {address}:{port}: {getattr(error, 'strerror', error)}"
            ) from None
        self.port: int = self._server.server_address[1]
        self.url = f"http://{f'[{address}]' if ':' in address else address}:{self.port}/metrics"
        self._thread = threading.Thread(target=self._server.serve_forever, name="exporter", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    """A thread for each connection: at most MOST_CONNECTIONS, and as many of closed ones whose threads still run."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._places = threading.Semaphore(2 * MOST_CONNECTIONS)
        self._lock = threading.Lock()
        self._open: dict[socket.socket, float] = {}  # when each was accepted, the oldest first
        self._due = 0.0
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        now = time.monotonic()
        self._due = max(self._due, now - 1.0) + 1.0 / MOST_A_SECOND
        if self._due > now:
            time.sleep(self._due - now)
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        with self._lock:
            self._open[request] = time.monotonic()
        self.service_actions()
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread can be started
            self._ended(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._ended(request)

    def service_actions(self) -> None:
        """Close what is over its time, or one too many; the server calls this at least twice a second."""
        with self._lock:
            late = time.monotonic() - REQUEST_S
            excess = len(self._open) - MOST_CONNECTIONS
            for place, (connection, since) in enumerate(list(self._open.items())):
                if place < excess or since < late:
                    del self._open[connection]
                    with suppress(OSError):
                        connection.shutdown(socket.SHUT_RDWR)  # its thread reads the end, and closes it

    def _ended(self, request: Any) -> None:
        with self._lock:
            self._open.pop(request, None)
        self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing when a client goes away."""


_Page = Callable[[str], tuple[int, str, bytes]]


class _Handler(BaseHTTPRequestHandler):
    pages: dict[str, _Page]
    timeout = REQUEST_S

    def setup(self) -> None:
        """Bound what is read of the request."""
        super().setup()
        self.rfile: Any = _Bounded(self.rfile)

    def do_GET(self) -> None:
        page = self.pages.get(self.path.partition("?")[0])
        status, kind, body = page(self.headers.get("Accept", "")) if page else (404, "text/plain", b"not found\n")
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log no scrapes."""


class _Bounded:
    """A request; it is dropped if it has more than LARGEST_REQUEST bytes."""

    def __init__(self, file: Any) -> None:
        self._file, self._bytes_left = file, LARGEST_REQUEST
        self.close = file.close

    def readline(self, most: int) -> bytes:
        """Return the next line. Raises ConnectionError."""
        line: bytes = self._file.readline(min(most, self._bytes_left + 1))
        self._bytes_left -= len(line)
        if self._bytes_left < 0:
            raise ConnectionError("the request is too large")
        return line


class _OfCluster:
    """A registry whose series all have the label `cluster`. O(series) for each collection."""

    def __init__(self, registry: Any, cluster: str) -> None:
        self._registry, self._labels = registry, {"cluster": cluster} if cluster else {}

    def collect(self) -> Iterator[Any]:
        """Yield the families."""
        for family in self._registry.collect():
            family.samples = [sample._replace(labels=self._labels | sample.labels) for sample in family.samples]
            yield family


class _Text:
    """The page of the metrics; requests that come together share one text."""

    def __init__(self, registry: Any) -> None:
        self._registry, self._lock = registry, threading.Lock()
        self._pages: dict[str, tuple[float, bytes]] = {}  # by kind; there are a few

    def __call__(self, accept: str) -> tuple[int, str, bytes]:
        from prometheus_client.exposition import choose_encoder

        encode, kind = choose_encoder(accept)
        with self._lock:
            made_at, text = self._pages.get(kind, (-math.inf, b""))
            if time.monotonic() - made_at >= MADE_EVERY_S:
                text = encode(self._registry)
                self._pages[kind] = time.monotonic(), text
        return 200, kind, text


def _status(good: bool, why_not: str) -> tuple[int, str, bytes]:
    return (200, "text/plain", b"ok\n") if good else (503, "text/plain", f"{why_not}\n".encode())
