"""The metrics of a service at their port, with what was measured of its nodes."""

from __future__ import annotations

import logging
from contextlib import ExitStack

from ...simulate.errors import ConfigError
from ...simulate.model.cluster import Cluster
from ..config import DaemonConfig
from ..run_modes import RunMode
from .calibration_metrics import Calibrations
from .exporter import Exporter, Health
from .metrics import Metrics

log = logging.getLogger("pilotfish.service")


def serve_metrics(
    stack: ExitStack, config: DaemonConfig, cluster: Cluster, metrics: Metrics, health: Health, mode: RunMode
) -> Exporter | None:  # fmt: skip
    """Serve the metrics if that is configured; return None if they are not served. Raises ConfigError.

    Args:
        stack: ends it.
        config: of the service.
        cluster: the nodes.
        metrics: what is served.
        health: what probes of the service are answered.
        mode: of the service; a dry run goes without metrics while a daemon serves its own at the port.
    """
    section = config.metrics
    if not section.enabled:
        return None
    calibrations = Calibrations(config.calibrations, cluster, config.calibration.bound)
    metrics.registry.register(calibrations)
    calibrations.watch()
    stack.callback(calibrations.close)
    try:
        exporter = Exporter(metrics, health, section.address, section.port, cluster.name)
    except ConfigError as error:
        if mode.keeps:
            raise
        log.warning("a dry run without metrics: %s", error)
        return None
    stack.callback(exporter.close)
    return exporter
