"""Reload the configuration: read it again and check it, for a service that runs.

Rule: a file that is wrong changes nothing, and is refused with the reason: in the log, in a metric, and to the client
that asked for the reload. Keys that a running service cannot change are named.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from pathlib import Path

from ..adapters.base import Adapter
from ..simulate.errors import ConfigError
from ..simulate.model.cluster import Cluster
from .config import (
    RELOADABLE,
    DaemonConfig,
    changed_keys,
    check_objective,
    load_policy_of,
    load_service_config,
)
from .planning.power_saving import check_power
from .report.metrics import Metrics
from .run_modes import RunMode
from .systemd import notify, notify_reloading

log = logging.getLogger("pilotfish.service")


@dataclass(frozen=True, slots=True)
class Reloaded:
    """A configuration that was read again.

    Args:
        config: what the file says now.
        changed: the keys that take effect.
        restart: the keys that need a restart.
    """

    config: DaemonConfig
    changed: tuple[str, ...]
    restart: tuple[str, ...]


def reread(
    file: Path, old: DaemonConfig, cluster: Cluster, adapter: Adapter, metrics: Metrics, forced: RunMode | None
) -> Reloaded:
    """Read a configuration again, check it, and load its policy.

    Args:
        file: the configuration.
        old: the configuration in force.
        cluster: the nodes of the service.
        adapter: the resource manager of the service.
        metrics: show whether the file was accepted.
        forced: the mode of the service, whatever the file says; None: that of the file.

    Raises:
        ConfigError: the file is wrong; the old configuration stays in force.
    """
    notify_reloading()
    try:
        new = load_service_config(file)
        check_objective(new, file, cluster, time.time())
        check_power(new.model_copy(update={"power": old.power}), file, adapter)
        load_policy_of(new, file, acts=(forced or new.run_mode).acts)
    except ConfigError as error:
        metrics.reload_successful.set(0)
        log.error("the configuration was not reloaded, the old one stays in force: %s", error)
        raise
    finally:
        notify("READY=1")
    metrics.note_config_read()
    changed = changed_keys(old, new)
    restart = changed - RELOADABLE
    if restart:
        log.warning("these keys need a restart: %s", ", ".join(sorted(restart)))
    log.info("the configuration was reloaded: %s", ", ".join(sorted(changed - restart)) or "nothing changed")
    return Reloaded(new, tuple(sorted(changed - restart)), tuple(sorted(restart)))
