"""The service: what is opened and closed, when a cycle runs, and what signals do.

Rule: one thread; a cycle begins when there is reason to look (see `cadence`); a signal sets a flag and nothing else.
READY=1 follows the first cycle, WATCHDOG=1 each completed cycle, also one that found the resource manager unreachable,
because a restart of the daemon would not help. A read that finds the counters unchanged counts as a cycle.

A reload that changes `mode` closes everything and opens it again, as a restart does, in the same process. Before a live
daemon goes into shadow, it gives back what it pins and holds: in shadow it changes no job.
"""

from __future__ import annotations

import logging
import os
import signal
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack, closing, nullcontext, suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from ..adapters.base import Adapter, AdapterError
from ..adapters.run_command import STOP
from ..formats.cluster import read_cluster
from ..formats.documents.plausible import cluster_doubts
from ..formats.text import count
from ..simulate.errors import ConfigError
from ..simulate.model.cluster import Cluster
from .apply import Applier, Live, Recording
from .assembly import accountants, accounting_learners, assemble, decided_by, options_of
from .canary.canary_watch import CanaryWatch, allowed_mode
from .canary.group_adapter import grouped
from .config import (
    RELOADABLE,
    DaemonConfig,
    check_counters,
    check_objective,
    load_policy_of,
    load_service_config,
    naming_config,
)
from .first_start import load_loops
from .learning.node_counters import NodeCounters, configured_counters
from .learning.profile_drift import ProfileDrift
from .learning.profile_learning import LearnedProfiles
from .oracle.twin_oracle import TwinOracle
from .planning.guarded_planner import load_simulator, simulate_plan
from .planning.live_component import end_components
from .planning.power_saving import check_power
from .planning.problem import Planner
from .recording.begin_record import KEPT_KEYS, begin_record
from .reloading import reread
from .report.adapter_metrics import metered
from .report.cycle_report import Observer
from .report.exporter import Health
from .report.metrics import Metrics
from .report.metrics_port import serve_metrics
from .report.outage_log import OutageLog
from .report.running_cost import used_cpu_s
from .run_modes import RunMode
from .socket.access import access_of
from .socket.event_socket import EventSocket, event_users
from .socket.places import free_endpoint, socket_options
from .socket.rpc import Requests
from .socket.socket_server import Server
from .state.journal import Journal, JournalError
from .state.journal_db import temporary_copy
from .state.reap_log import read_reaped
from .systemd import beat, in_journal, notify, set_up_logging, stop_beating
from .timing.breathing import Breathing
from .timing.cadence import IDLE_COUNT_S, Cadence
from .timing.next_look import NextLook
from .timing.pruning import Pruning
from .tracker import JobTracker

log = logging.getLogger("pilotfish.service")
#: Longest time that a client waits for an answer while jobs run; and for which a live daemon gives back what it holds,
#: before it goes into shadow, seconds.
TICK_S, HAND_BACK_S = 0.1, 15.0
#: The compiled loops of plans, then those of forecasts of a resource manager's queue.
LOOPS = ["mapping.entry", "queue.easy_rich", "queue.classed"]


class Service:
    """One daemon, from its configuration file to its end.

    Args:
        config: the file; read again by a reload.
        show: prints a line of a dry run.
        dry_run: prints decisions and keeps nothing, whatever the file says.
        show_commands: a dry run also prints the commands of each action.
        planner: makes a plan; the simulator by default.
        make_adapter: makes an adapter from name, cluster and options; the registry by default.
        started: called once the service is ready.
    """

    def __init__(
        self,
        config: Path,
        *,
        show: Callable[[str], None],
        dry_run: bool = False,
        show_commands: bool = False,
        planner: Planner = simulate_plan,
        make_adapter: Callable[..., Adapter] | None = None,
        started: Callable[[], None] = lambda: None,
    ) -> None:
        self._file, self._planner, self._show = config, planner, show
        self._make_adapter, self._show_commands, self._started = make_adapter, show_commands, started
        self.config = load_service_config(config)
        self._forced = RunMode.DRY_RUN if dry_run else None
        self._mode = self._forced or self.config.run_mode
        self._stop = self._reload_wanted = False
        self._reopen = False  # open everything again, because `mode` has changed
        self._outages, self._again_s, self._counted_cpu_s = OutageLog(time.monotonic), 0.0, 0.0
        self._faults: set[str] = set()
        self._events: EventSocket | None = None

    def run(self) -> int:
        """Serve until SIGTERM or SIGINT; return the exit code. Raises ConfigError if it cannot start."""
        with ExitStack() as signals:
            signals.callback(setattr, STOP, "wanted", False)
            self._wakeup = self._catch_signals(signals)
            while not self._stop:
                self._serve()
            notify("STOPPING=1")
            log.info("stopped; jobs go on")
        return 0

    def _serve(self) -> None:
        """Open everything, and serve until a signal or a change of `mode` ends it."""
        self._reopen, self._mode = False, self._forced or self.config.run_mode
        with ExitStack() as stack:
            set_up_logging(self.config.log.level, self.config.log.format)
            if not self._open(stack):
                return
            log.info(
                "pilotfish serves cluster %s with policy %s, %s, socket %s, %s; %s in the journal",
                self._cluster.name,
                self.config.policy,
                self._cycle.mode,
                self._server.path,
                f"metrics at {self._exporter.url}" if self._exporter else "no metrics",
                count(sum(not flow.offered for flow in self._tracker.queue.submissions.values()), "workflow"),
            )
            self._loop()
            by, why = ("signal", "") if self._stop else ("service", "to open again in another mode")
            self._tracker.note_change("stop", by, before=self._cycle.mode, why=why)
            self._tracker.save()
            if self._mode.acts and not self._stop:
                self._adapter.keep_holding(self._tracker.now)  # no longer: its mode changes

    def _open(self, stack: ExitStack) -> bool:
        """Open everything; return False if the service is to stop before it serves."""
        config = self.config
        self._cluster = cluster = read_cluster(config.cluster)
        for doubt in cluster_doubts(cluster):
            log.warning("%s", doubt)
        check_objective(config, self._file, cluster, time.time())
        load_policy_of(config, self._file, acts=self._mode.acts)
        stack.callback(end_components)
        if os.geteuid() == 0 and not (config.access.root or not self._mode.keeps):
            problem = "the daemon was started as root: its jobs, and any fault in it, would have the rights of root"
            raise ConfigError(str(self._file), "access.root", problem, "another user; or true, to allow it")
        self._journal = Journal(config.journal, in_memory=not self._mode.keeps)
        stack.callback(self._journal.close)
        self._mode = allowed_mode(self._mode, self._journal)
        self._metrics = Metrics()
        self._metrics.note_config_read()
        self._health = Health(self._patience_s(), time.monotonic)
        self._cadence = Cadence(config.cycle_seconds, config.longest_cycle_seconds)
        self._exporter = serve_metrics(stack, config, cluster, self._metrics, self._health, self._mode)
        self._adapter = metered(self._adapter_for(cluster), self._metrics)
        stack.callback(self._adapter.close)
        breathe = Breathing(self._serve_meanwhile, time.monotonic)
        self._canary = CanaryWatch(config.handover.canary, self._journal, self._metrics, self._mode, breathe)
        followed, self._adapter = self._adapter, grouped(self._adapter, self._canary.groups)
        self._record(stack)
        check_power(config, self._file, self._adapter)
        if self._adapter.capabilities.offers:
            self._journal.keep_handed_over(self._adapter.name, time.time())
        preview = self._adapter.preview if self._show_commands else lambda action: ()
        quiet = in_journal() and not self._show_commands  # the journal gets decisions as records of the log
        prints = not quiet and (self._show_commands or not self._mode.keeps)
        show = self._show if prints else lambda line: None
        applier: Applier = Live(self._adapter)
        if not self._mode.acts:
            applier = Recording(show, preview, lambda action: self._tracker.log.about(action), self._mode)
        store = config.profile_store if self._mode.keeps else temporary_copy(config.profile_store, stack)
        profiles = LearnedProfiles(store).load()
        self._pruning = Pruning(self._journal, self._adapter, lambda: self.config.keep_days)
        self._drift = ProfileDrift(**self._drift_options())
        self._cycle = assemble(
            self._adapter,
            applier,
            self._journal,
            self._metrics,
            decided_by(config, self._journal),
            self._clock,
            stopwatch=time.monotonic,
            planner=self._planner,
            stopping=lambda: self._stop,
            breathe=self._recorder.breathing(breathe) if self._recorder else breathe,
            profiles=profiles,
            drift=self._drift,
            observers=lambda tracker: self._observers(stack, profiles, tracker),
            delays_file=config.delays if self._mode.keeps else None,
            oracle=stack.enter_context(closing(TwinOracle(self._adapter, time.monotonic))),
            canary=self._canary,
        )
        self._tracker = self._cycle.tracker
        self._canary.attach(followed, self._cycle, self._open_again)
        if self._recorder:
            self._tracker.note_input = self._recorder.note_input
        self._tracker.log.quiet = not self._mode.acts and prints
        self._set_paused()
        access = access_of(config, self._adapter, self._file)
        endpoint = free_endpoint(config.endpoint, config.socket.group, dry=not self._mode.keeps)
        options = socket_options(config, access)
        listeners = event_users(config, endpoint, self._file)
        why_not_ready = lambda: self._health.why_not_ready  # noqa: E731
        requests = Requests(
            self._cycle, self._journal, cluster, profiles, access, self._reload, why_not_ready,
            partial(read_reaped, config.adapter_state), self._open_again,
        )  # fmt: skip
        loops = LOOPS if self._adapter.capabilities.offers else LOOPS[:1]
        if not load_loops(loops, endpoint, options, self._health, lambda: self._stop):
            return False
        load_simulator(cluster)
        self._server = Server(endpoint, requests.steps, **options)
        stack.callback(self._server.close)
        self._events = None
        if listeners is not None:
            self._events = EventSocket(config.event_socket, listeners)
            stack.callback(self._events.close)
        return True

    def _record(self, stack: ExitStack) -> None:
        """Record what the adapter answers and what the clock shows from now on, if it is configured."""
        self._recorder = begin_record(self.config, self._adapter, self._journal, time.monotonic, self._mode)
        self._clock: Callable[[], float] = time.monotonic
        if self._recorder:
            stack.callback(self._recorder.close)
            self._adapter, self._clock = self._recorder.adapter(self._adapter), self._recorder.clock

    def _serve_meanwhile(self) -> None:
        """Answer clients during a cycle."""
        with self._recorder.muted() if self._recorder else nullcontext():
            self._server.serve(later=("reload",))

    def _observers(self, stack: ExitStack, profiles: LearnedProfiles, tracker: JobTracker) -> list[Observer]:
        watch = self._adapter, tracker, self._cadence, time.monotonic, self._confirm
        self._next_look = NextLook(*watch, idle_nodes=lambda: self._cycle.planner.switcher.active)
        if not self._mode.keeps:
            return [self._next_look]
        parts = self._adapter, self._journal, self._metrics, tracker, self._counted_cpu_s
        makers = accountants(self.config, self._file, *parts, stack)
        self._counted_cpu_s = used_cpu_s()
        return [*self._learners(stack, profiles, tracker), *makers, self._next_look]

    def _learners(self, stack: ExitStack, profiles: LearnedProfiles, tracker: JobTracker) -> list[Observer]:
        """Return the observers that learn profiles, in the order in which they must see events."""
        stack.callback(profiles.write)
        counter_config = configured_counters(self.config.counters, here=self._adapter.capabilities.here)
        counters = NodeCounters(counter_config, profiles, tracker.queue)
        stack.callback(counters.close)
        sources = self._adapter, self._journal, profiles, self._drift, self._metrics, tracker, self._clock
        return [counters, *accounting_learners(self.config, *sources)]

    def _adapter_for(self, cluster: Cluster) -> Adapter:
        from ..adapters import registry

        section, state, is_dry = self.config.adapter, self.config.adapter_state, not self._mode.acts
        with naming_config(self._file):
            options = registry.options_of_service(
                section.name, section.options, folder=self._file.absolute().parent, state_dir=state, read_only=is_dry
            )
            adapter = (self._make_adapter or registry.create)(section.name, cluster, **options)
        check_counters(self.config, self._file, here=adapter.capabilities.here)
        adapter.keep_state(state, read_only=is_dry)
        for note in adapter.notes:
            log.warning("%s", note)
        return adapter

    def _drift_options(self) -> dict[str, Any]:
        relearn = self.config.relearn
        enabled = relearn.enabled and self._mode.keeps
        return {"bound": relearn.max_median_error, "window": relearn.window, "enabled": enabled}

    def _patience_s(self) -> float:  # without a completed cycle
        return max(3 * IDLE_COUNT_S, 5 * self.config.cycle_seconds)

    def _loop(self) -> None:
        ready = False
        while not (self._stop or self._handed_back()):
            if self._reload_wanted:
                with suppress(ConfigError):  # it is logged
                    changed = self._reload()["changed"]
                    self._tracker.note_change("reload", "signal", why=", ".join(changed))
            began = self._next_look.begin()
            completed = self._one_cycle()
            self._next_look.end(self._cycle.trigger, completed=completed, again_s=self._again_s)
            notify("WATCHDOG=1" if ready else "READY=1\nSTATUS=\nWATCHDOG=1")
            if not ready:
                self._started()
            ready = True
            if self._mode.keeps:
                self._pruning.prune(self._tracker.now, began)
            self._pause()

    def _handed_back(self) -> bool:
        """Return whether to open everything again: a live daemon gives back what it holds before, if it can in time."""
        if not self._reopen:
            return False
        return not self._mode.acts or not self._tracker.holds_anything or time.monotonic() > self._hand_back_until

    def _confirm(self) -> None:
        """Note that nothing has happened since the last completed cycle."""
        self._health.confirmed()
        if self._mode.acts and not self._tracker.blocked:
            beat()

    def _set_paused(self) -> None:
        """Pause as configured, or while a live daemon gives back what it holds; a dry run has nothing to pause."""
        self._tracker.paused = self._mode.keeps and (self.config.paused or (self._reopen and self._mode.acts))
        if not self._mode.acts:
            stop_beating()

    def _one_cycle(self) -> bool:
        """Go through a cycle; return whether it was completed."""
        try:
            report = self._cycle.run()
            if self._recorder:
                self._recorder.end(report)
        except AdapterError as error:
            self._again_s = error.again_s
            if not self._stop:
                self._outages.begin(str(error))
            self._health.failed("blind: the resource manager cannot be read, so nothing is decided; see the log")
            return False
        except Exception as error:  # the daemon goes on, and is not ready
            self._again_s = 0.0
            self._report_fault(error)
            self._health.failed("faulty: the last cycle failed; see the log")
            return False
        self._outages.end()
        self._faults.clear()
        self._health.completed(report.why_not_ready)
        self._confirm()
        return True

    def _report_fault(self, error: Exception) -> None:
        """Log an error that should not occur, once until a cycle is completed again."""
        *_, place = traceback.extract_tb(error.__traceback__)
        fault = f"{type(error).__name__} in {Path(place.filename).name}:{place.lineno}"
        if fault not in self._faults:
            self._faults.add(fault)
            log.error("a cycle failed, please report this fault of pilotfish: %s: %r", fault, str(error)[:200])

    def _pause(self) -> None:
        """Answer clients until the next cycle is due, a question needs one, something happened, or a signal came."""
        news = False
        self._server.answer()  # what has waited for the cycle that has just ended
        while not (self._stop or self._reload_wanted):
            self._cycle.queue_forecasts.proceed()
            if self._server.receive() and self._next_look.outdated():
                return
            self._server.answer()
            if self._reopen:
                self._cadence.hear(time.monotonic())  # look soon whether all is given back
            changed = news or (self._cycle.trigger.changed and not self._tracker.blocked)
            if (pause_s := self._next_look.left_s(changed=changed)) <= 0:
                return
            news = self._sleep(pause_s) or news

    def _sleep(self, pause_s: float) -> bool:
        """Wait for a client, a signal, an event or the resource manager; return whether there is news for certain."""
        busy = not self._outages.lasts and self._tracker.any_running
        descriptor, events = self._adapter.fileno(), self._events.fileno() if self._events else None
        if busy and descriptor is None and self._adapter.capabilities.events:
            virtual = self._adapter.capabilities.virtual_time
            return self._adapter.wait(self.config.cycle_seconds if virtual else min(pause_s, TICK_S)) or virtual
        pause_s = min(pause_s, self._cycle.queue_forecasts.patience_s)
        pause_s = pause_s if descriptor is None else min(pause_s, self._adapter.timer_s())
        self._server.wait(pause_s, self._wakeup, *(file for file in (descriptor, events) if file is not None))
        with suppress(BlockingIOError):
            while os.read(self._wakeup, 4096):
                pass
        news, certain = descriptor is not None and self._adapter.wait(0.0), self._adapter.capabilities.events
        heard = self._events is not None and self._events.heard()
        if heard or (news and not certain):
            self._cadence.hear(time.monotonic())
        return news and certain

    def _reload(self) -> dict[str, Any]:
        """Read the configuration again; return what it changes. Raises ConfigError if it is wrong."""
        self._reload_wanted = False
        new = reread(self._file, self.config, self._cluster, self._adapter, self._metrics, self._forced)
        mode = self._forced or new.config.run_mode
        if mode is RunMode.LIVE and self._canary.is_stepped_back:
            mode = RunMode.SHADOW
        self._reopen = mode is not self._mode
        if self._reopen:
            self._hand_back_until = time.monotonic() + HAND_BACK_S
            back = ", and first gives back what it pins and holds" if self._mode.acts else ""
            log.warning("its mode becomes %s%s", mode, back)
        self._use(new.config)
        return {"changed": new.changed, "restart": new.restart, "mode": str(mode), "reopens": self._reopen}

    def _open_again(self) -> None:
        """Open everything again in another mode, as a reload that changes it; what is held is given back before."""
        self._reopen, self._hand_back_until = True, time.monotonic() + HAND_BACK_S
        self._set_paused()

    def _use(self, new: DaemonConfig) -> None:
        """Use those keys of a configuration that a running daemon can change."""
        self.config = self.config.model_copy(update={name: getattr(new, name) for name in RELOADABLE})
        set_up_logging(self.config.log.level, self.config.log.format)
        guard = None
        with suppress(JournalError):  # it goes on with the guard that it has
            guard = decided_by(self.config, self._journal).guard
        if self._recorder:
            self._recorder.note_input("config", self.config.model_dump(mode="json", include=set(KEPT_KEYS)))
        self._cycle.planner.use(options_of(self.config), guard)
        self._canary.use(self.config.handover.canary)
        self._cycle.trigger.renew()
        self._drift.configure(**self._drift_options())
        self._health.patience_s = self._patience_s()
        self._cadence.every_s = self.config.cycle_seconds
        self._cadence.longest_s = self.config.longest_cycle_seconds
        self._set_paused()

    def _catch_signals(self, stack: ExitStack) -> int:
        """Let signals set flags and interrupt any wait; return the file descriptor that they make readable."""
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
            self._stop = STOP.wanted = True
