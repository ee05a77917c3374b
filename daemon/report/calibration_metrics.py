"""How old the calibrations of the nodes are and what changed since the ones before, as metrics.

Rule: the folder is read now and then by a thread of its own, so that neither a cycle nor a scrape waits for a file
system; a file that is no record costs one warning. Only nodes of the cluster file have series, and of their constants
only those that changed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..profiles.calibration.changes import changes, measured
from ..profiles.calibration.records import Record, history, newest, read_record
from ..simulate.errors import ConfigError
from ..simulate.platform import Cluster

log = logging.getLogger("pilotfish.calibrations")
#: Seconds between two looks into the folder; files of which we tell that they are no records.
EVERY_S, MOST_WARNINGS = 300.0, 100


@dataclass(frozen=True, slots=True)
class Standing:
    """One node: when it was calibrated last, s since the epoch, and what then was not as it had been (new / old; 0 for
    what has no ratio)."""

    time: float
    changed: Mapping[str, float]


class Calibrations:
    """The recorded calibrations of a cluster's nodes, as metric families for a registry of prometheus_client.

    Args:
        folder: where `pilotfish calibrate --record` keeps them; it need not be there.
        bound: what counts as a change, 0.1 = a tenth.
        clock: seconds since the epoch.
    """

    def __init__(self, folder: Path, cluster: Cluster, bound: float, clock: Callable[[], float] = time.time) -> None:
        self._folder, self._bound, self._clock = folder, bound, clock
        self._nodes = frozenset(cluster.index)
        self._standing: Mapping[str, Standing] = {}
        self._refused: set[str] = set()
        self._warned: set[str] = set()
        self._read: dict[Path, Record] = {}
        self._stop = threading.Event()

    def watch(self) -> None:
        """Look now and every EVERY_S seconds from now on, in a thread, until `close`."""
        threading.Thread(target=self._watch, name="calibrations", daemon=True).start()

    def close(self) -> None:
        """Look no more; a look that a file system keeps waiting is not waited for."""
        self._stop.set()

    def look(self) -> None:
        """Read the two newest records of each node, those that are known already from memory."""
        self._refused = set()
        try:
            by_node = history(self._folder)
        except FileNotFoundError:
            by_node = {}
        except (OSError, ConfigError) as error:
            self._refuse(str(self._folder), str(getattr(error, "strerror", None) or error))
            return
        kept, standing = dict[Path, Record](), dict[str, Standing]()
        for name, paths in by_node.items():
            node = self._node(name)
            if node is None:
                continue
            records = newest(paths, 2, lambda error: self._refuse(error.source, str(error)), self._record)
            kept |= {path: self._read[path] for path in paths[:2] if path in self._read}
            if records:
                standing[node] = self._stands(records)
        self._read, self._standing = kept, standing

    def collect(self) -> Iterator[Any]:
        """The families, as they are now; nothing is read for them."""
        from prometheus_client.core import GaugeMetricFamily

        age = GaugeMetricFamily(
            "pilotfish_calibration_age_seconds", "Time since a node was calibrated last.", labels=("node",)
        )
        changed = GaugeMetricFamily(
            "pilotfish_calibration_changed_constants",
            "Constants that a node's last calibration found changed by more than the bound, and than their noise.",
            labels=("node",),
        )
        ratio = GaugeMetricFamily(
            "pilotfish_calibration_change_ratio",
            "New over old, of those constants.",
            labels=("node", "constant"),
        )
        for node, standing in sorted(self._standing.items()):
            age.add_metric((node,), max(0.0, self._clock() - standing.time))
            changed.add_metric((node,), len(standing.changed))
            for key, value in standing.changed.items():
                if value:
                    ratio.add_metric((node, key), value)
        refused = GaugeMetricFamily(
            "pilotfish_calibration_unreadable_files", "Files among the records that are none; the log names them."
        )
        refused.add_metric((), len(self._refused))
        yield from (age, changed, ratio, refused)

    def _watch(self) -> None:
        while not self._stop.is_set():
            try:
                self.look()
            except Exception:
                log.exception("the calibrations could not be read")
            self._stop.wait(EVERY_S)

    def _node(self, name: str) -> str | None:
        """The node of the cluster that was calibrated under a name, its own or its host's with the domain."""
        return next((each for each in (name, name.partition(".")[0]) if each in self._nodes), None)

    def _record(self, path: Path) -> Record:
        if path not in self._read:
            self._read[path] = read_record(path)
        return self._read[path]

    def _stands(self, records: list[Record]) -> Standing:
        last = records[0]
        if len(records) < 2:
            return Standing(last.time, {})
        before, after = (measured(record.found, record.name) for record in reversed(records))
        found = [change for change in changes(before, after, self._bound) if change.sure and change.old is not None]
        return Standing(last.time, {change.key: change.ratio or 0.0 for change in found})

    def _refuse(self, source: str, why: str) -> None:
        self._refused.add(source)
        if source not in self._warned and len(self._warned) < MOST_WARNINGS:
            self._warned.add(source)
            log.warning("no calibration: %s", why)
