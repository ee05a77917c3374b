"""`pilotfish plan --adapter NAME` and `--config FILE`: what would become of the queue of a resource manager now."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import ExitStack, closing
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..simulate.errors import ConfigError
from ..simulate.model.cluster import Cluster
from .inputs import read_cluster
from .kernel_loading import load_simulator
from .output.documents import print_json
from .streams import note, warn
from .usage_errors import adapter_errors

if TYPE_CHECKING:
    from ..adapters.base import Adapter
    from ..daemon.one_off import QueuePreview
    from ..daemon.planning.problem import Options

_MOST_WAITS = 15


@dataclass(frozen=True)
class QueueSource:
    """A queue to plan.

    Args:
        adapter: name of the resource manager's adapter.
        options: of the adapter.
        cluster: file of the nodes; None = ask the resource manager.
        planning: how to plan.
        profiles: file of the profile store.
        config: the configuration that says so; None = the command line does.
    """

    adapter: str
    options: dict[str, Any]
    cluster: Path | None
    planning: Options
    profiles: Path
    config: Path | None = None


def queue_source(
    adapter: str | None, config: Path | None, cluster: Path | None, planning: Options, store: Path | None
) -> QueueSource:
    """Combine the command line with a configuration.

    Args:
        adapter: name of the adapter; None = that of `config`.
        config: file of the daemon's configuration; None = none, which needs `adapter`.
        cluster: file of the nodes; it takes precedence over the configuration.
        planning: what differs from the default takes precedence over the configuration.
        store: file of the profile store; None = as configured, or the user's own.

    Raises:
        ConfigError: the configuration is wrong, or names another adapter.
    """
    from ..daemon.paths import profile_store_path
    from ..daemon.planning.problem import Options

    if config is None:
        return QueueSource(str(adapter), {}, cluster, planning, store or profile_store_path())
    from ..daemon.config import load_config

    found = load_config(config)
    if adapter not in (None, found.adapter.name):
        raise ConfigError(str(config), "adapter.name", f"found {found.adapter.name!r}, and --adapter {adapter}", "one")
    given = {one.name: value for one in fields(planning) if (value := getattr(planning, one.name)) != one.default}
    as_configured = {name: getattr(found, name) for name in ("policy", "objective", "seed", "budget", "time_limit")}
    return QueueSource(
        found.adapter.name,
        dict(found.adapter.options),
        cluster or Path(found.cluster),
        Options(**(as_configured | given)),
        store or found.profile_store,
        config,
    )


def show_queue(source: QueueSource, *, commands: bool, as_json: bool, everything: bool) -> None:
    """Read the queue once, and print what would be done.

    Args:
        source: the queue.
        commands: print the commands, too.
        as_json: print a JSON document.
        everything: leave no row out.

    Raises:
        AdapterError: the resource manager cannot be asked.
        ConfigError: see `queue_source`.
    """
    from ..adapters import registry
    from ..daemon.one_off import look

    with ExitStack() as stack:
        with adapter_errors(source.config):
            if source.adapter == "local":
                raise ConfigError("adapter", "", "'local' has no queue of its own: name a workflow", "slurm")
            cluster = _nodes(source)
            adapter = stack.enter_context(closing(registry.create(source.adapter, cluster, **source.options)))
        load_simulator()
        warn(*adapter.notes)
        with tempfile.TemporaryDirectory(prefix="pilotfish-") as folder:
            seen = look(adapter, source.planning, _copy(source.profiles, Path(folder)))
        if as_json:
            print_json("glance", _document(seen, adapter, cluster))
        else:
            _print(seen, adapter, cluster, commands=commands, everything=everything)
    warn(*(seen.plan.warnings if seen.plan else ()))


def _nodes(source: QueueSource) -> Cluster:
    if source.cluster is not None:
        return read_cluster(source.cluster)
    from ..adapters import registry

    cluster, assumed = registry.discover(source.adapter)
    note(*assumed)
    return cluster


def _copy(store: Path, folder: Path) -> Path:
    from ..daemon.state.journal_db import copy_database

    try:
        return copy_database(store, folder)
    except (OSError, sqlite3.Error) as error:
        warn(f"{store}: cannot be read, planning without profiles: {error}")
        return folder / store.name


def _print(seen: QueuePreview, adapter: Adapter, cluster: Cluster, *, commands: bool, everything: bool) -> None:
    from ..daemon.learning.job_profiles import classes_of
    from ..formats.text import clean, count
    from .output import tables
    from .output.text import Screen, class_lines

    screen = Screen()
    policy = f", policy {seen.plan.policy}" if seen.plan else ""
    screen.title(
        f"queue of {adapter.name}: {count(len(seen.jobs), 'job')} handed over, {len(seen.starts)} would start now, "
        f"{count(len(cluster.nodes), 'node')}{policy}"
    )
    if seen.plan and seen.plan.jobs:
        plan = seen.plan
        screen.put(tables.plan_table(plan, screen.cells, ascii_only=screen.ascii_only, everything=everything), "")
        if not everything and (hidden := tables.left_out(len(plan.jobs))):
            screen.put(hidden, "")
    if lines := seen.commands if commands else seen.actions:
        print(*map(clean, lines), "", sep="\n")  # not wrapped: they are meant to be copied
    screen.put(*_waits(seen, everything))
    screen.put(*(f"dropped   {rejection.action.key}: {clean(rejection.reason)}" for rejection in seen.rejected))
    if seen.plan:
        screen.put(tables.summary(seen.plan, cluster)[-1])
        screen.put(*class_lines(classes_of(seen.plan, seen.jobs, cluster), screen.cells))
    if not seen.jobs:
        screen.put("No waiting job is handed over to pilotfish: `sbatch --comment=pilotfish ...` hands one over.")


def _waits(seen: QueuePreview, everything: bool) -> list[str]:
    from ..formats.text import clean

    lines = [f"{key} waits: {clean(why)}" for key, why in seen.waits.items()]
    if everything or len(lines) <= _MOST_WAITS:
        return lines
    return [*lines[:_MOST_WAITS], f"{len(lines) - _MOST_WAITS} more wait: --all shows them"]


def _document(seen: QueuePreview, adapter: Adapter, cluster: Cluster) -> dict[str, Any]:
    from ..daemon.learning.job_profiles import classes_of, with_classes
    from ..formats.plan import plan_to_dict

    plan = seen.plan and with_classes(plan_to_dict(seen.plan), classes_of(seen.plan, seen.jobs, cluster))
    return {
        "adapter": adapter.name,
        "handed_over": len(seen.jobs),
        "starts": [{"job": start.key, "nodes": list(start.nodes)} for start in seen.starts],
        "commands": list(seen.commands),
        "waits": seen.waits,
        "rejected": {rejection.action.key: rejection.reason for rejection in seen.rejected},
        "plan": plan,
    }
