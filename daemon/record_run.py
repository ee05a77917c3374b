"""A record that runs under the daemon's own loop again: the same decisions, or where another daemon decides otherwise.

Rule: the loop is that of the service, with its journal and profiles as they were when the record began. Time is the
recorded time; a limit in seconds cuts a search where it did in the record. The same version and configuration decide
the same, as far as the record has all that the daemon saw: `Comparison` says where it does not.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ..adapters.base import AdapterError, Capabilities
from ..formats.cluster import read_cluster
from ..formats.record.segments import Segment, open_segments, segments
from ..formats.record.state import read_state
from ..simulate.errors import ConfigError
from .apply import Live, Recording
from .assembly import accounting_learners, assemble, decided_by, options_of
from .config import DaemonConfig
from .learning.profile_drift import ProfileDrift
from .learning.profile_learning import LearnedProfiles
from .loop import Cycle
from .planning.live_component import end_components
from .recording.begin_record import KEPT_KEYS
from .recording.player import Player
from .recording.recorder import decisions_of
from .report.cycle_report import Observer
from .report.metrics import Metrics
from .run_modes import RunMode
from .state.codec import decode_stored
from .state.journal import Journal
from .state.pauses import Pauses
from .state.queue import Submission
from .tracker import JobTracker

#: The facts of a cycle that are compared; under another configuration, only what is done.
COMPARED = ("did", "plan", "forecasts", "mode")
DONE = ("did",)


@dataclass(frozen=True, slots=True)
class PlayedCycle:
    """A cycle of a record, as it was and as it is decided now.

    Args:
        number: of the cycle in the record, from 1.
        time: of its snapshot, epoch seconds.
        recorded: what it decided, see `recorder.decisions_of`.
        played: what is decided now.
        failed: the recorded cycle ended with an error.
        compared: the facts that are compared.
    """

    number: int
    time: float
    recorded: Mapping[str, Any]
    played: Mapping[str, Any]
    failed: bool = False
    compared: Sequence[str] = COMPARED

    @property
    def differs(self) -> bool:
        """True if something else is decided now."""
        return any(self.recorded.get(name) != self.played.get(name) for name in self.compared)


@dataclass(slots=True)
class Comparison:
    """The outcome of the cycles so far.

    Args:
        cycles: that were played.
        decisions: actions and rejections of the record.
        decided_now: actions and rejections that are decided now.
        equal: cycles in which the same is decided now.
        failed: recorded cycles that ended with an error.
        cut: recorded plans that a limit in seconds, or the end of the daemon, cut short.
        strays: calls of the resource manager for which the record has no answer.
        gaps: why the record is not whole, one sentence each.
    """

    cycles: int = 0
    decisions: int = 0
    decided_now: int = 0
    equal: int = 0
    failed: int = 0
    cut: int = 0
    strays: int = 0
    gaps: list[str] = field(default_factory=list)

    def add(self, cycle: PlayedCycle) -> None:
        """Count a cycle."""
        self.cycles += 1
        self.decisions += len(cycle.recorded.get("did", ()))
        self.decided_now += len(cycle.played.get("did", ()))
        self.failed += cycle.failed
        self.cut += bool(cycle.recorded.get("cut"))
        self.equal += not cycle.differs


class RecordRun:
    """Plays a record; used once, as a context.

    Args:
        folder: of the record.
        change: returns the configuration to decide by, from the recorded one; None: as recorded.

    Raises:
        ConfigError: it is no record, none of its segments can be read, or the configuration is wrong.
    """

    def __init__(self, folder: Path, change: Callable[[DaemonConfig], DaemonConfig] | None = None) -> None:
        self._paths, self._change = segments(folder), change
        self._folder = folder
        self.comparison = Comparison()
        self._stack = ExitStack()
        self._player: Player | None = None
        self._cycle: Cycle | None = None
        self._run = ""
        self.version = ""  #: of the pilotfish that made the last segment that was played

    def __enter__(self) -> RecordRun:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def cycles(self) -> Iterator[PlayedCycle]:
        """Play all cycles in turn, and count them in `comparison`."""
        number, part, is_whole = 0, 0, True
        for segment in open_segments(self._paths, self.comparison.gaps):
            path = segment.path
            self.version = str(segment.header.get("pilotfish", ""))
            if segment.header["run"] != self._run or self._cycle is None:
                self._begin_run(segment)
                is_whole = True
            else:
                is_whole = is_whole and segment.header.get("part") == part + 1
            part = int(segment.header.get("part", 0))
            assert self._player is not None, "the run has begun"
            self._player.begin_segment()
            for line in segment.lines():
                if "clock" not in line:
                    continue
                number += 1
                if not is_whole:
                    for kind, *facts in line.get("stands", ()):
                        self._take_input(kind, facts)
                    is_whole = True
                try:
                    cycle = self._play(number, line)
                except (KeyError, IndexError, TypeError, ValueError) as error:
                    self.comparison.gaps.append(f"{path.name}: cycle {number} is damaged: {error}")
                    is_whole = False
                    break
                self.comparison.add(cycle)
                yield cycle
            if segment.cut:
                is_whole = False
                self.comparison.gaps.append(f"{path.name}: {segment.cut}")

    def _begin_run(self, segment: Segment) -> None:
        """Begin the run of a daemon: everything as it was when that daemon started."""
        self._stack.close()
        end_components()
        header = segment.header
        mode = RunMode(header["mode"])
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="pilotfish-")))
        files = self._state_of(segment)
        for name, content in files.items():
            (folder / Path(name).name).write_bytes(content)
        (folder / "cluster.yaml").write_text(header["cluster"])
        cluster = read_cluster(folder / "cluster.yaml")
        config = self._config(segment, folder)
        capabilities = TypeAdapter(Capabilities).validate_python(header["capabilities"])
        self._run, self._player = header["run"], Player(header["adapter"], capabilities, cluster, self._take_input)
        journal, metrics = Journal(folder / "journal.sqlite", in_memory=True), Metrics()
        self._stack.callback(journal.close)
        if capabilities.offers:
            journal.keep_handed_over(self._player.name, header["began"])
        profiles = LearnedProfiles(folder / "profiles.sqlite").load()
        relearn = config.relearn
        drift = ProfileDrift(
            bound=relearn.max_median_error, window=relearn.window, enabled=relearn.enabled and mode.keeps
        )
        applier = Live(self._player) if mode.acts else Recording(lambda line: None, mode=mode)
        player = self._player

        def learners(tracker: JobTracker) -> list[Observer]:
            if not mode.keeps:
                return []
            self._stack.callback(profiles.write)
            return accounting_learners(config, player, journal, profiles, drift, metrics, tracker, player.clock)

        self._cycle = assemble(
            player, applier, journal, metrics, decided_by(config, journal), player.clock, stopwatch=_still,
            stopping=player.stopping, breathe=player.breathe, profiles=profiles, drift=drift, observers=learners,
            delays_file=folder / "delays.json" if mode.keeps else None,
        )  # fmt: skip
        self._journal = journal
        self._cycle.tracker.paused = config.paused and mode.keeps

    def _state_of(self, segment: Segment) -> dict[str, bytes]:
        """Return the files that the daemon knew; note it if they are lost."""
        header = segment.header
        if not segment.is_first:
            self.comparison.gaps.append(
                f"{segment.path.name}: the begin of its run is not kept, so it is played without what was known then"
            )
            return {}
        if not header.get("state"):
            if why := header.get("why_no_state"):
                self.comparison.gaps.append(f"{segment.path.name}: {why}")
            return {}
        return read_state(self._folder / Path(header["state"]).name)

    def _config(self, segment: Segment, folder: Path) -> DaemonConfig:
        recorded = {name: value for name, value in segment.header["config"].items() if name in KEPT_KEYS}
        try:
            config = DaemonConfig.model_validate({"cluster": str(folder / "cluster.yaml"), **recorded})
        except ValidationError as error:
            raise ConfigError(str(segment.path), "config", f"the recorded configuration is wrong: {error}") from None
        return self._change(config) if self._change else config

    def _play(self, number: int, line: Mapping[str, Any]) -> PlayedCycle:
        assert self._player is not None and self._cycle is not None, "the run has begun"
        for kind, *facts in line.get("inputs", ()):
            self._take_input(kind, facts)
        self._player.load_cycle(line)
        try:
            played = decisions_of(self._cycle.run())
        except AdapterError:
            played = {}
        self._player.end_cycle()
        self.comparison.strays = self._player.strays
        recorded = {name: line[name] for name in (*COMPARED, "cut") if name in line}
        compared = () if line.get("decides") is False else DONE if self._change else COMPARED
        return PlayedCycle(number, self._player.time, recorded, played, "failed" in line, compared)

    def _take_input(self, kind: str, facts: list[Any]) -> None:
        """Do what a client asked for. Raises ValueError, KeyError."""
        assert self._cycle is not None, "the run has begun"
        tracker = self._cycle.tracker
        if kind == "submit":
            id, text, submit_time, owner = facts
            submission = Submission(id, decode_stored(text), submit_time, owner=owner)
            self._journal.submit(submission, None)
            tracker.add(submission)
        elif kind == "cancel":
            keys, by = facts
            tracker.cancel([entry for key in keys if (entry := tracker.queue.find(key))], by)
        elif kind == "pauses":
            tracker.pauses = Pauses(facts[0])
            self._cycle.trigger.renew()
        elif kind == "config" and self._change is None:
            config = DaemonConfig.model_validate({"cluster": "cluster.yaml", **facts[0]})
            self._cycle.planner.use(options_of(config), decided_by(config, self._journal).guard)
            self._cycle.trigger.renew()
            tracker.paused = config.paused


def _still() -> float:
    return 0.0
