"""Metrics of node calibrations: how old each is, and what changed since the one before.

Rule: a separate thread reads the folder, so that neither a cycle nor a scrape waits for a file system; an unreadable
record costs one warning. Only nodes of the cluster file have series, and only for constants that changed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...profiles.calibration.calibration_records import (
    CalibrationRecord,
    calibrated_values,
    changes,
    newest,
    read_record,
    record_files,
)
from ...simulate.errors import ConfigError
from ...simulate.model.cluster import Cluster

log = logging.getLogger("pilotfish.calibrations")
#: Seconds between two reads of the folder, and the most unreadable files that are logged.
EVERY_S, MOST_WARNINGS = 300.0, 100


@dataclass(frozen=True, slots=True)
class NodeCalibration:
    """A node's last calibration: its time, epoch seconds, and the constants that changed: new / old, 0 = no ratio."""

    time: float
    changed: Mapping[str, float]


class Calibrations:
    """The recorded calibrations of a cluster's nodes, as metric families for a registry of prometheus_client.

    Args:
        folder: where `pilotfish calibrate --record` writes; need not exist.
        cluster: whose nodes are shown.
        bound: least relative change that counts, 0.1 = a tenth.
        clock: epoch seconds.
    """

    def __init__(self, folder: Path, cluster: Cluster, bound: float, clock: Callable[[], float] = time.time) -> None:
        self._folder, self._bound, self._clock = folder, bound, clock
        self._nodes = frozenset(cluster.index)
        self._calibrations: Mapping[str, NodeCalibration] = {}
        self._refused: set[str] = set()
        self._warned: set[str] = set()
        self._records: dict[Path, CalibrationRecord] = {}
        self._stop = threading.Event()

    def watch(self) -> None:
        """Read now and every EVERY_S seconds, in a thread, until `close`."""
        threading.Thread(target=self._watch, name="calibrations", daemon=True).start()

    def close(self) -> None:
        """Stop reading, without waiting for a file system that hangs."""
        self._stop.set()

    def read(self) -> None:
        """Read the two newest records of each idle node; known ones come from memory."""
        self._refused = set()
        try:
            by_node = record_files(self._folder)
        except FileNotFoundError:
            by_node = {}
        except (OSError, ConfigError) as error:
            self._refuse(str(self._folder), str(getattr(error, "strerror", None) or error))
            return
        records_by_path, calibrations = dict[Path, CalibrationRecord](), dict[str, NodeCalibration]()
        for name, paths in by_node.items():
            node = self._node(name)
            if node is None:
                continue
            records = newest(paths, 2, lambda error: self._refuse(error.source, str(error)), self._record)
            records_by_path |= {path: self._records[path] for path in paths if path in self._records}
            if records:
                calibrations[node] = self._compare(records)
        self._records, self._calibrations = records_by_path, calibrations

    def collect(self) -> Iterator[Any]:
        """Yield the families from memory."""
        from prometheus_client.core import GaugeMetricFamily

        age = GaugeMetricFamily(
            "pilotfish_calibration_age_seconds",
            "Time since the last calibration of a node during which it was idle.",
            labels=("node",),
        )
        changed = GaugeMetricFamily(
            "pilotfish_calibration_changed_constants",
            "Number of constants of a node that changed in its last calibration by more than the bound and the noise.",
            labels=("node",),
        )
        ratio = GaugeMetricFamily(
            "pilotfish_calibration_change_ratio",
            "New value over old value of each changed constant.",
            labels=("node", "constant"),
        )
        for node, calibration in sorted(self._calibrations.items()):
            age.add_metric((node,), max(0.0, self._clock() - calibration.time))
            changed.add_metric((node,), len(calibration.changed))
            for key, value in calibration.changed.items():
                if value:
                    ratio.add_metric((node, key), value)
        refused = GaugeMetricFamily(
            "pilotfish_calibration_unreadable_files", "Calibration records that are unreadable; the log names them."
        )
        refused.add_metric((), len(self._refused))
        yield from (age, changed, ratio, refused)

    def _watch(self) -> None:
        while not self._stop.is_set():
            try:
                self.read()
            except Exception:
                log.exception("the calibrations could not be read")
            self._stop.wait(EVERY_S)

    def _node(self, name: str) -> str | None:
        """Return the node of the cluster calibrated under a name: its own, or its host's with the domain."""
        return next((candidate for candidate in (name, name.partition(".")[0]) if candidate in self._nodes), None)

    def _record(self, path: Path) -> CalibrationRecord:
        if path not in self._records:
            self._records[path] = read_record(path)
        return self._records[path]

    def _compare(self, records: list[CalibrationRecord]) -> NodeCalibration:
        last = records[0]
        if len(records) < 2:
            return NodeCalibration(last.time, {})
        before, after = (calibrated_values(record.found, record.name) for record in reversed(records))
        changed = [change for change in changes(before, after, self._bound) if change.sure and change.old is not None]
        return NodeCalibration(last.time, {change.key: change.ratio or 0.0 for change in changed})

    def _refuse(self, source: str, why: str) -> None:
        self._refused.add(source)
        if source not in self._warned and len(self._warned) < MOST_WARNINGS:
            self._warned.add(source)
            log.warning("unreadable calibration record: %s", why)
