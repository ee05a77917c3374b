"""A decision component as the policy of the daemon: it is asked once about each event that really happened.

Rule: a job that the component has started begins at once in each plan. It gets the nodes of its hosts if these are the
cores of as many nodes as the job asks for and have room; otherwise other nodes with room; otherwise it waits for room.
A node that takes no jobs is shown as a running job. Everything later in a plan is only a forecast, by EASY. After an
invalid answer, or no answer, the session ends, and the next one begins after RETRY_S; until then every plan fails with
the same error, so that the fallback decides.
"""

from __future__ import annotations

import logging
import math
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from ...formats.batsim.descriptions import Descriptions
from ...formats.batsim.machine_description import resource_speeds, simulation_begins
from ...formats.batsim.protocol_versions import VERSION_4, VERSION_5
from ...simulate.errors import ConfigError
from ...simulate.model.cluster import Cluster
from ...simulate.model.intervals import Interval
from ...simulate.model.machine import Machine
from ...simulate.model.snapshot import JobState
from ...simulate.planning.mapping_policies import Mapped, Request
from ...simulate.planning.now_and_later import NowAndLater
from ...simulate.planning.queue_mapping import QueueMapping
from ...simulate.planning.simulation import Simulation
from ...simulate.queue_policies.free_nodes import FreeNodes
from ...simulate.queue_policies.interface import Decision, QueuePolicy, QueueView, Reject, Start
from ...simulate.queue_policies.policy_specs import Easy, text_of
from ...simulate.queue_policies.queued_job import QueuedJob, Running
from ...simulate.queue_policies.uncompiled import uncompiled
from .endpoints import check_listener
from .live_session import PROFILES, End, LiveSession, end_of
from .sockets import LiveSocket

log = logging.getLogger("pilotfish.cycle")
#: Seconds until a component that failed is asked again; doubled each time, up to the last.
RETRY_S = (1.0, 60.0)
#: Longest wait for a reply where the configuration sets no limit, seconds.
PATIENCE_S = 10.0
#: Walltime of the job as which a node is shown that takes no jobs, seconds.
DOWN_S = 365 * 86400.0
#: What forecasts the starts that are to come.
FORECASTS = Easy()


class LivePolicy(QueueMapping):
    """A mapping policy that asks a component what to start now.

    Args:
        name: of the policy, `batsim:` or `batsim5:`, and where the component is bound.
        clock: seconds, monotonic.
    """

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(name, self._now_and_later, every_node=True)  # a component numbers all nodes
        kind, _, self._endpoint = name.partition(":")
        self._clock, self._protocol = clock, VERSION_5 if kind == "batsim5" else VERSION_4
        self._socket: LiveSocket | None = None
        self._session: LiveSession | None = None
        self._began = self._retry_at = -math.inf
        self._retry_s = RETRY_S[0]
        self._failure = ConfigError(name, "", "")
        self._ended: dict[str, End] = {}
        self._cluster: Cluster | None = None
        self._stop: Callable[[], bool] = lambda: False

    @classmethod
    def at(cls, name: str) -> LivePolicy:
        """Return the policy of a component, if only trusted accounts can listen there. Raises ConfigError."""
        policy = cls(name)
        check_listener(policy._endpoint)
        return policy

    def __call__(self, simulation: Simulation, request: Request) -> Mapped:
        """Return a run that starts the component's jobs now, and others as EASY would later. Raises PolicyError."""
        self._cluster = simulation.cluster
        until = self._clock() + PATIENCE_S
        is_late = request.should_stop or (lambda: self._clock() > until)

        def stop() -> bool:
            simulation.breathe()  # a wait is no reason to let clients wait
            return is_late()

        self._stop = stop
        mapped = super().__call__(simulation, request)
        recheck_s = math.inf if self._session is None else self._session.call_at - (self._clock() - self._began)
        return replace(mapped, recheck_s=max(0.0, recheck_s), forecast_by=text_of(FORECASTS))

    def note_end(self, key: str, state: JobState, exit_code: int | None) -> None:
        """Note how a job ended, for the component.

        Args:
            key: of the job.
            state: how it ended.
            exit_code: of its process, if it is known.
        """
        if self._session is not None and self._session.knows(key):
            self._ended[key] = end_of(state, exit_code)

    def close(self) -> None:
        """End the session, and let the component know."""
        if self._socket is not None:
            session = self._session
            self._socket.close(session.last_message(self._clock() - self._began) if session is not None else b"")
        self._socket = self._session = None
        self._ended.clear()

    def _now_and_later(self, seed: int) -> QueuePolicy:
        return NowAndLater(self.decide, uncompiled(FORECASTS, seed))

    def decide(self, now: QueueView) -> Iterator[Decision]:
        """Ask the component, and yield its decisions that are not carried out yet. Raises ConfigError."""
        if self._clock() < self._retry_at:
            raise self._failure
        try:
            session = self._updated(now)
        except ConfigError as error:
            self.close()
            problem = f"{error.key}: {error.problem}".removeprefix(": ")
            self._failure = ConfigError(self.name, "", problem, error.allowed)
            self._retry_at = self._clock() + self._retry_s
            self._retry_s = min(2.0 * self._retry_s, RETRY_S[1])
            raise self._failure from None
        self._retry_s = RETRY_S[0]
        jobs, rejected = {str(job.id): job for job in now.waiting}, session.rejected
        yield from (Reject(job) for key, job in jobs.items() if key in rejected)
        yield from _starts(now, [(jobs[key], self._nodes_of(hosts)) for key, hosts in session.placed if key in jobs])

    def _updated(self, now: QueueView) -> LiveSession:
        """Return the session, new or not, after the component was shown what is new. Raises ConfigError."""
        if self._session is None or self._socket is None:
            check_listener(self._endpoint)
            self._socket = LiveSocket(self._endpoint)
            self._session, self._began = self._new_session(), self._clock()
            log.info("%s: a session with the decision component begins", self.name)
        socket, ended = self._socket, self._ended
        self._session.update(
            self._clock() - self._began, [*now.waiting], [*self._down(now), *now.running], ended,
            lambda message: socket.ask(message, self._stop),
        )  # fmt: skip
        ended.clear()
        return self._session

    def _down(self, now: QueueView) -> Iterator[Running]:
        assert self._cluster is not None, "a plan is made for a cluster"
        usable = set(now.machine.names)
        for node in self._cluster.nodes:
            if node.name not in usable:
                yield Running(QueuedJob(-1, f"down:{node.name}", node.type.cores, DOWN_S, 0.0), 0.0, DOWN_S, ())

    def _new_session(self) -> LiveSession:
        assert self._cluster is not None, "a plan is made for a cluster"
        cores = [node.type.cores for node in self._cluster.nodes]
        self._firsts = [0, *accumulate(cores)]
        workload = f"live{int(time.time())}"
        described = Descriptions([], [], {workload: PROFILES}, {workload: "live"})
        machine = Machine(sum(cores), powers=None)
        about = simulation_begins(machine, self._cluster, described, {})
        return LiveSession(self.name, workload, about, self._protocol, resource_speeds(machine, self._cluster))

    def _nodes_of(self, hosts: Sequence[Interval]) -> dict[str, int]:
        """Return how many of the hosts each node has, by its name."""
        host_counts = dict[str, int]()
        assert self._cluster is not None, "a session has a cluster"
        for first, last in hosts:
            for node in range(bisect_right(self._firsts, first) - 1, bisect_right(self._firsts, last)):
                host_count = min(last + 1, self._firsts[node + 1]) - max(first, self._firsts[node])
                name = self._cluster.nodes[node].name
                host_counts[name] = host_counts.get(name, 0) + host_count
        return host_counts


def _starts(now: QueueView, placed: Sequence[tuple[QueuedJob, dict[str, int]]]) -> Iterator[Decision]:
    """Yield the starts of jobs with the nodes that they were given, see the rule."""
    room, place_of = now.free_nodes(), {name: place for place, name in enumerate(now.machine.names)}
    is_reserved = False  # room is kept for a job before
    for job, host_counts in placed:
        nodes = tuple(sorted(place_of.get(name, -1) for name in host_counts))
        if is_reserved or not _has_room(room, job, nodes, set(host_counts.values())):
            nodes = room.where(job) or ()
        if is_reserved or not nodes:
            is_reserved = True
            yield Start(job)
        else:
            room.take(job, nodes)
            yield Start(job, nodes=nodes)


def _has_room(room: FreeNodes, job: QueuedJob, nodes: tuple[int, ...], host_counts: set[int]) -> bool:
    need = room.need(job)
    if len(nodes) != job.nodes or host_counts != {need.cores} or nodes[0] < 0:
        return False
    return bool(need.fits(room.cores, room.memory)[list(nodes)].all())
