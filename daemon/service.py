"""The service: what is opened and closed, when a cycle runs, and what signals do.

Rule: one thread; a cycle begins at a fixed cadence measured from the start of the one before, or earlier when
something happened; a signal sets a flag and nothing else. READY=1 follows the first cycle, WATCHDOG=1 each
cycle that came to its end, also one that found the resource manager unreachable: that is not cured by a
restart of ours.
"""

from __future__ import annotations

import logging
import os
import signal
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from ..adapters.base import Adapter, AdapterError
from ..profiles.alongside import Alongside
from ..simulate.errors import ConfigError
from ..simulate.formats.cluster import read_cluster
from ..simulate.kernels import is_warm, load
from ..simulate.objective import Objective
from ..simulate.platform import Cluster
from .apply import Applier, Live, Recording
from .beside import Beside
from .books import Books
from .calibrations import Calibrations
from .config import RELOADABLE, DaemonConfig, adapter_of, changed_keys, load_config
from .copies import copy_whole
from .counted import Counted
from .cycle import Cycle
from .exporter import Exporter, Health, Metrics
from .guard import FORGOTTEN, Guard
from .journal import Journal, JournalError
from .logs import set_up
from .memory import Memory
from .notify import notify, reloading
from .planning import Options, Planner, simulate_plan
from .power import PowerSaver
from .relearning import Relearning
from .render.text import count
from .requests import Requests
from .window import WINDOW
from .wire import Server

log = logging.getLogger("pilotfish.service")
#: While jobs run, the longest time for which a client waits for an answer.
TICK_S = 0.1
LEAST_GAP_S = 0.02
PRUNE_EVERY_S = 86400.0


class Service:
    """One daemon, from its configuration file to its end.

    Args:
        config: the file; read again by a reload.
        dry_run: forces a dry run, whatever the file says.
        make_adapter: name, cluster and options -> adapter; the registry by default.
    """

    def __init__(
        self,
        config: Path,
        *,
        dry_run: bool = False,
        show_commands: bool = False,
        planner: Planner = simulate_plan,
        make_adapter: Callable[..., Adapter] | None = None,
        show: Callable[[str], None] = partial(print, flush=True),
    ) -> None:
        self._file, self._planner, self._show = config, planner, show
        self._make_adapter, self._show_commands = make_adapter, show_commands
        self.config = load_config(config)
        self._dry = dry_run or self.config.dry_run
        self._stop = self._reload_wanted = False
        self._seen = True
        self._pruned_at = -PRUNE_EVERY_S

    def run(self) -> int:
        """Serve until SIGTERM or SIGINT; returns the exit code. Raises ConfigError when it cannot begin."""
        with ExitStack() as stack:
            self._wakeup = self._catch_signals(stack)
            set_up(self.config.log.level, self.config.log.format)
            self._open(stack)
            log.info(
                "pilotfish serves cluster %s by %s, %s; %s in the journal",
                self._cluster.name,
                self.config.policy,
                self._cycle.mode,
                count(len(self._cycle.queue.submissions), "workflow"),
            )
            self._loop()
            notify("STOPPING=1")
            log.info("stopped; jobs go on")
        return 0

    def _open(self, stack: ExitStack) -> None:
        config = self.config
        self._cluster = cluster = read_cluster(config.cluster)
        _check_objective(config, cluster)
        _check_counters(config, self._file)
        self._journal = Journal(config.journal, in_memory=self._dry)
        stack.callback(self._journal.close)
        self._metrics = metrics = Metrics()
        self._health = Health(max(10.0, 5 * config.cycle_seconds), time.monotonic)
        if config.metrics.enabled:
            self._watch_calibrations(stack)
            try:
                exporter = Exporter(metrics, self._health, config.metrics.address, config.metrics.port)
                stack.callback(exporter.close)
            except ConfigError as error:
                if not self._dry:  # which goes on beside the daemon that has the port
                    raise
                log.warning("a dry run without metrics: %s", error)
        self._adapter = Counted(self._adapter_for(cluster), metrics)
        stack.callback(self._adapter.close)
        if self._adapter.capabilities.offers:
            self._journal.keep_offers(self._adapter.name, time.time())
        applier: Applier = self._recording() if self._dry else Live(self._adapter)
        self._cycle = Cycle(
            self._adapter,
            applier,
            self._journal,
            metrics,
            self._guard(),
            _options(config),
            time.monotonic,
            planner=self._planner,
            recheck_s=max(1.0, config.cycle_seconds),
        )
        self._cycle.power = self._power_saver()
        self._cycle.stopping = lambda: self._stop
        memory = Memory(self._profile_store(stack))
        self._cycle.story.relearning = self._relearning()
        if not self._dry:
            stack.callback(memory.write)
            beside = Beside(self._alongside(), memory)
            stack.callback(beside.close)
            self._cycle.count, self._cycle.learn = beside.look, beside.keep
            self._cycle.relearn = lambda missed: memory.relearn(missed, self.config.relearn.window)
            self._cycle.books = self._books(memory)
        self._cycle.know, self._cycle.company = memory.named, memory.company
        requests = Requests(
            self._cycle,
            self._journal,
            cluster,
            self._adapter.capabilities,
            recall=memory.recall,
            output=self._adapter.output,
        )
        _compile()
        self._server = self._listen(config.endpoint, requests)
        stack.callback(self._server.close)

    def _alongside(self) -> Alongside:
        """The counters that the configuration asks for, beside jobs that run on this node."""
        asked, local = self.config.counters, self.config.adapter.name == "local"
        named = asked if isinstance(asked, list) else []
        alongside = Alongside(named or (None if local and asked == "auto" else ()))
        for name in alongside.missing.keys() & set(named):
            log.warning("counters: there is no %s here: %s", name, alongside.missing[name])
        if alongside.names:
            log.info("counters beside jobs: %s", ", ".join(alongside.names))
        return alongside

    def _watch_calibrations(self, stack: ExitStack) -> None:
        calibrations = Calibrations(self.config.calibrations, self._cluster, self.config.calibration.bound)
        self._metrics.registry.register(calibrations)
        calibrations.watch()
        stack.callback(calibrations.close)

    def _power_saver(self) -> PowerSaver | None:
        power = self.config.power
        if not power.save:
            return None
        if not self._adapter.capabilities.power:
            problem = f"found true, and {self._adapter.name!r} powers no nodes"
            raise ConfigError(str(self._file), "power.save", problem, "false, or the adapter slurm")
        return PowerSaver(power.idle_seconds, power.spare_nodes)

    def _books(self, memory: Memory) -> Books | None:
        section = self.config.books
        if not (section.enabled and self._adapter.capabilities.books):
            return None
        return Books(
            self._adapter, self._journal, memory, self._metrics, time.monotonic,
            delay_s=section.delay_seconds, every_s=section.every_seconds,
        )  # fmt: skip

    def _recording(self) -> Recording:
        return Recording(self._show, self._adapter.preview) if self._show_commands else Recording(self._show)

    def _profile_store(self, stack: ExitStack) -> Path:
        """The profile store; for a dry run a copy of it, because even reading leaves traces."""
        path = self.config.profile_store
        if not self._dry:
            return path
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pilotfish-")))
        try:
            return copy_whole(path, folder)
        except (OSError, sqlite3.Error) as error:
            log.warning("%s: cannot be read, the dry run knows no profiles: %s", path, error)
            return folder / path.name

    def _listen(self, endpoint: str, requests: Requests) -> Server:
        """A dry run leaves the socket to the daemon that listens there, and takes one beside it."""
        section = self.config.socket
        options: dict[str, Any] = {"mode": int(section.mode, 8), "group": section.group}
        try:
            return Server(endpoint, requests.handle, **options)
        except ConfigError as error:
            if not self._dry:
                raise
            beside = f"{endpoint}.dry-run"
            log.warning("%s; the dry run listens at %s", error, beside)
            return Server(beside, requests.handle, **options)

    def _adapter_for(self, cluster: Cluster) -> Adapter:
        from ..adapters import registry

        name, options = self.config.adapter.name, dict(self.config.adapter.options)
        if name == "local":
            for option in {"state_dir", "output_dir"} & options.keys():
                if isinstance(options[option], str):  # like every path of the file, relative to it
                    options[option] = self._file.absolute().parent / Path(options[option]).expanduser()
            options.setdefault("state_dir", self.config.journal.parent / "local")
            if self._dry:
                options["read_only"] = True
        with adapter_of(self._file):
            adapter = (self._make_adapter or registry.create)(name, cluster, **options)
        for note in adapter.notes:
            log.warning("%s", note)
        return adapter

    def _guard(self) -> Guard:
        guard = self.config.guard
        return Guard(
            bound=guard.max_median_error,
            window=guard.window,
            fallback=guard.policy,
            enabled=guard.enabled,
            errors=self._journal.last_errors(FORGOTTEN * guard.window),
        )

    def _relearning(self) -> Relearning:
        relearn = self.config.relearn
        return Relearning(bound=relearn.max_median_error, window=relearn.window, enabled=relearn.enabled)

    def _loop(self) -> None:
        ready = False
        while not self._stop:
            if self._reload_wanted:
                self._reload()
            began = time.monotonic()
            self._one_cycle()
            notify("WATCHDOG=1" if ready else "READY=1\nWATCHDOG=1")
            ready = True
            self._prune(began)
            self._pause(began)

    def _one_cycle(self) -> None:
        try:
            self._cycle.run()
        except AdapterError as error:
            if self._seen:
                log.error("the cluster cannot be seen: %s; nothing is decided until it can", error)
            self._seen = False
            return
        if not self._seen:
            log.warning("the cluster can be seen again")
        self._seen = True
        self._health.completed()

    def _pause(self, began: float) -> None:
        """Answer clients until the next cycle is due, something happened, or a signal came."""
        due, early = began + self.config.cycle_seconds, began + LEAST_GAP_S
        while not (self._stop or self._reload_wanted):
            self._server.serve()
            if self._cycle.changed and not self._cycle.blocked:
                due = early
            left = due - time.monotonic()
            if left <= 0:
                return
            if self._sleep(left):
                due = early

    def _sleep(self, left: float) -> bool:
        """Wait for a client, a signal or the resource manager; returns whether the last one had news."""
        busy = self._seen and self._cycle.busy
        descriptor = self._adapter.fileno()
        if busy and descriptor is None and self._adapter.capabilities.events:
            virtual = self._adapter.capabilities.virtual_time
            return self._adapter.wait(self.config.cycle_seconds if virtual else min(left, TICK_S)) or virtual
        self._server.wait(left, self._wakeup, *([] if descriptor is None else [descriptor]))
        with suppress(BlockingIOError):
            while os.read(self._wakeup, 4096):
                pass
        return descriptor is not None and self._adapter.wait(0.0)

    def _prune(self, now: float) -> None:
        """Once a day, let go of workflows that ended long ago, here and in the resource manager's keeping."""
        if self._dry or now - self._pruned_at < PRUNE_EVERY_S or not self._cycle.now:
            return
        self._pruned_at = now
        before = self._cycle.now - 86400.0 * self.config.keep_days
        try:
            for key in self._journal.expired(before):
                self._adapter.forget(key)
            self._journal.prune(before)
        except (AdapterError, JournalError) as error:
            log.warning("old workflows could not be dropped: %s", error)

    def _reload(self) -> None:
        self._reload_wanted = False
        reloading()
        try:
            new = load_config(self._file)
            _check_objective(new, self._cluster)
        except ConfigError as error:
            log.error("the configuration was not reloaded, the old one stays: %s", error)
        else:
            changed = changed_keys(self.config, new)
            if later := sorted(changed - RELOADABLE):
                log.warning("these keys need a restart: %s", ", ".join(later))
            self.config = self.config.model_copy(update={name: getattr(new, name) for name in RELOADABLE})
            set_up(self.config.log.level, self.config.log.format)
            self._cycle.options = _options(self.config)
            self._cycle.replace_guard(self._guard())
            self._cycle.story.relearning = self._relearning()
            self._health.patience_s = max(10.0, 5 * self.config.cycle_seconds)
            names = ", ".join(sorted(changed & RELOADABLE)) or "nothing changed"
            log.info("the configuration was reloaded: %s", names)
        notify("READY=1")

    def _catch_signals(self, stack: ExitStack) -> int:
        """Let signals set flags and end any waiting; returns the file descriptor that they make readable."""
        reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        stack.callback(os.close, reader)
        stack.callback(os.close, writer)
        stack.callback(signal.set_wakeup_fd, signal.set_wakeup_fd(writer, warn_on_full_buffer=False))
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            stack.callback(signal.signal, number, signal.signal(number, self._on_signal))
        return reader

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            self._reload_wanted = True
        else:
            self._stop = True


def _compile() -> None:
    """Compile the simulator, once for a machine, before anybody is told that we serve: a first plan that had to would
    keep clients and jobs waiting."""
    if not is_warm("entry"):
        log.info("compiling the simulator for this machine, once; this takes some seconds")
        load("entry")


def _options(config: DaemonConfig) -> Options:
    chosen: dict[str, Any] = {
        name: getattr(config, name) for name in ("policy", "objective", "seed", "budget", "time_limit")
    }
    return Options(**chosen, window=WINDOW)


def _check_counters(config: DaemonConfig, file: Path) -> None:
    """Refuse counters by name where no job runs on this node. Raises ConfigError."""
    adapter = config.adapter.name
    if isinstance(config.counters, list) and adapter != "local":
        problem = f"found {', '.join(config.counters)}, and jobs of {adapter!r} do not run on this node"
        raise ConfigError(str(file), "counters", problem, "auto, none")


def _check_objective(config: DaemonConfig, cluster: Cluster) -> None:
    """Refuse to save energy on nodes of which no power is known: no plan could ever be made. Raises
    ConfigError.
    """
    blind = [kind.name for kind in cluster.types if kind.power is None]
    if blind and Objective.parse(config.objective).needs_energy:
        problem = f"found {config.objective!r}, but nothing is known of the power of node type {blind[0]!r}"
        raise ConfigError(config.cluster, "objective", problem, "makespan, or power for every node type")
