"""What the outside may watch: metrics and health over HTTP, read from memory.

Rule: a scrape never reaches the resource manager, and no label holds a job or a user, so that the number
of time series depends on nodes and configuration alone; few profiles have a label of their own (see `error_metrics`).
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from .. import __version__
from ..adapters.load import Load
from ..simulate.errors import ConfigError
from ..simulate.plan import Plan
from ..simulate.platform import Node
from ..simulate.snapshot import JobState, Snapshot
from .check import occupancy
from .error_metrics import ErrorMetrics
from .load import LoadMetrics

_RATIOS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
_SLOWDOWNS = (1.0, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
_SECONDS = (0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0)
#: Connections; one that says nothing is closed after the handler's `timeout`, seconds.
MOST_AT_ONCE = 32
MODES = ("live", "dry-run", "fallback", "blocked")


class Metrics:
    """Every metric of the daemon, on a registry of its own.

    `mode` is one of MODES: fallback = the guard distrusts forecasts; blocked = the journal cannot be written.
    """

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

        disable_created_metrics()
        self.registry = registry = CollectorRegistry()

        def make(kind: Any, name: str, text: str, labels: tuple[str, ...] = (), **options: Any) -> Any:
            return kind(f"pilotfish_{name}", text, labels, registry=registry, **options)

        make(Gauge, "build_info", "Version of the running daemon.", ("version",)).labels(__version__).set(1)
        self.mode = make(Gauge, "mode", "1 for the mode the daemon is in, 0 for the others.", ("mode",))
        self.cycle_duration = make(
            Histogram, "cycle_duration_seconds", "Time of a whole cycle.", buckets=_SECONDS
        )
        self.snapshot_age = make(
            Gauge, "snapshot_age_seconds", "Age of the newest snapshot, as of the scrape."
        )
        self.jobs = make(Gauge, "jobs", "Jobs of workflows that have not ended.", ("state",))
        self.decisions = make(
            Counter, "decisions_total", "Decisions by what came of them.", ("policy", "outcome")
        )
        self.decision_duration = make(
            Histogram, "decision_duration_seconds", "Time to make a plan.", buckets=_SECONDS
        )
        self.evaluations = make(Counter, "whatif_evaluations_total", "Placements that were simulated.")
        self.forecast_error = make(
            Histogram,
            "forecast_error_ratio",
            "|forecast - actual| / actual: of run times, and of finish times counted from submission.",
            ("kind",),
            buckets=_RATIOS,
        )
        self.slowdown = make(
            Histogram,
            "contention_slowdown_ratio",
            "Run time of an ended job over its isolated run time.",
            buckets=_SLOWDOWNS,
        )
        self.node_load = make(Gauge, "node_load_ratio", "Threads placed over cores.", ("node",))
        self.node_power = make(Gauge, "node_power_watts", "Power, by the power model.", ("node",))
        self._energy: Any = None  # unknown until a snapshot shows that each node's power is known
        self._make_energy = partial(
            make, Counter, "energy_joules_total", "Energy of all nodes, by the power model; absent where unknown."
        )
        self.adapter_requests = make(
            Counter,
            "adapter_requests_total",
            "Requests to the resource manager.",
            ("adapter", "call", "result"),
        )
        self.adapter_errors = make(
            Counter, "adapter_errors_total", "Errors of the resource manager.", ("kind",)
        )
        self.booked = make(
            Counter, "booked_jobs_total", "Ended jobs by what came of asking the accounting for them.", ("outcome",)
        )
        for kind in ("run_time", "finish_time"):
            self.forecast_error.labels(kind)
        self.errors = ErrorMetrics(make, _RATIOS)
        self._last: Snapshot | None = None
        self._watts: float | None = None
        self._threads: list[int] = []
        self._node_watts: list[float | None] = []

    def show_load(self, adapter: str, load: Callable[[], Load | None]) -> None:
        """Show the requests that an adapter counts itself, instead of the calls to it."""
        self.registry.unregister(self.adapter_requests)
        self.registry.register(LoadMetrics(adapter, load))

    def set_mode(self, mode: str) -> None:
        """Show the daemon in `mode`, one of MODES."""
        for each in MODES:
            self.mode.labels(each).set(each == mode)

    def planned(self, policy: str, plan: Plan, seconds: float) -> None:
        """Count a plan."""
        self.decision_duration.observe(seconds)
        self.evaluations.inc(plan.evaluations)
        self.decisions.labels(policy, "truncated" if plan.truncated else "planned").inc()

    def saw(self, snapshot: Snapshot, states: Counter[JobState]) -> None:
        """Show what a snapshot says of the nodes, and how many of our jobs are in each state."""
        for state in JobState:
            self.jobs.labels(str(state)).set(states[state])
        if self._last is not None and self._watts is not None:
            self._energy.inc(self._watts * max(0.0, snapshot.time - self._last.time))
        self._watts = self._saw_nodes(snapshot)
        if self._watts is not None and self._energy is None:
            self._energy = self._make_energy()
        self._last = snapshot

    def _saw_nodes(self, snapshot: Snapshot) -> float | None:
        """Show the nodes on which something has changed; power of all, watts, where that of each is known."""
        nodes, threads = snapshot.cluster.nodes, occupancy(snapshot).threads
        if self._last is None or self._last.cluster is not snapshot.cluster:
            self._threads, self._node_watts = [-1] * len(nodes), [None] * len(nodes)
            self.node_load.clear()
            self.node_power.clear()
        for i, (now, before) in enumerate(zip(threads, self._threads, strict=True)):
            if now == before:
                continue
            self.node_load.labels(nodes[i].name).set(now / nodes[i].type.cores)
            self._node_watts[i] = watts = node_watts(nodes[i], now)
            if watts is not None:
                self.node_power.labels(nodes[i].name).set(watts)
        self._threads = threads
        known = [watts for watts in self._node_watts if watts is not None]
        return sum(known) if len(known) == len(nodes) else None


def node_watts(node: Node, threads: int) -> float | None:
    """Power of a node with that many threads, watts; None where its type says nothing of power.

    The formulas of `simulate.platform.Power`. Every thread placed there is taken as busy, up to the cores:
    how long threads sleep or wait is not seen here, so that this is an upper bound.
    """
    power, busy = node.type.power, min(threads, node.type.cores)
    if power is None:
        return None
    if power.computing is not None:
        return power.idle + (power.computing - power.idle) * busy / node.type.cores
    uncore = power.per_socket * node.type.sockets * (power.idle_uncore if busy == 0 else 1.0)
    return power.idle + uncore + power.per_core * busy


class Health:
    """When the last cycle was completed; fails when none was for `patience_s` (a clock's seconds)."""

    def __init__(self, patience_s: float, clock: Callable[[], float]) -> None:
        self.patience_s, self._clock = patience_s, clock
        self._last, self._ready = clock(), False

    def completed(self) -> None:
        """Note a completed cycle."""
        self._last, self._ready = self._clock(), True

    @property
    def age_s(self) -> float:
        """Seconds since the last completed cycle (or since the start)."""
        return self._clock() - self._last

    @property
    def alive(self) -> bool:
        """Whether cycles are being completed."""
        return self.age_s <= self.patience_s

    @property
    def ready(self) -> bool:
        """Whether a first cycle has been completed and the others go on."""
        return self._ready and self.alive


class Exporter:
    """An HTTP server for /metrics, /healthz and /readyz, on threads of its own that only read.

    Args:
        port: 0 picks a free one; `port` then tells which.

    Raises:
        ConfigError: the address or port cannot be had.
    """

    def __init__(
        self, metrics: Metrics, health: Health, address: str = "127.0.0.1", port: int = 9836
    ) -> None:
        metrics.snapshot_age.set_function(lambda: health.age_s)

        class Handler(_Handler):
            pass

        Handler.pages = {
            "/metrics": lambda accept: _exposition(metrics, accept),
            "/healthz": lambda _: _verdict(health.alive, f"the last cycle ended {health.age_s:.0f} s ago"),
            "/readyz": lambda _: _verdict(health.ready, "no cycle has been completed of late"),
        }
        try:
            self._server = _Server((address, port), Handler)
        except (OSError, OverflowError) as error:
            raise ConfigError(
                "metrics", "port", f"cannot listen on {address}:{port}: {getattr(error, 'strerror', error)}"
            ) from None
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, name="exporter", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    """A thread for each connection, at most MOST_AT_ONCE: who opens many must not take the daemon's descriptors."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._free = threading.Semaphore(MOST_AT_ONCE)
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread can be started
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is not worth a line."""


_Page = Callable[[str], tuple[int, str, bytes]]


class _Handler(BaseHTTPRequestHandler):
    pages: dict[str, _Page]
    timeout = 10

    def do_GET(self) -> None:
        page = self.pages.get(self.path.partition("?")[0])
        status, kind, body = (
            page(self.headers.get("Accept", "")) if page else (404, "text/plain", b"not found\n")
        )
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Scrapes are not worth a line."""


def _exposition(metrics: Metrics, accept: str) -> tuple[int, str, bytes]:
    from prometheus_client.exposition import choose_encoder

    encode, kind = choose_encoder(accept)
    return 200, kind, encode(metrics.registry)


def _verdict(good: bool, why_not: str) -> tuple[int, str, bytes]:
    return (200, "text/plain", b"ok\n") if good else (503, "text/plain", f"{why_not}\n".encode())
