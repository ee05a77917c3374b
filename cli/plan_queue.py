"""`pilotfish plan --adapter NAME` and `pilotfish plan --config FILE`: what would become of the queue as it is now."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from contextlib import ExitStack, closing
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...simulate.errors import ConfigError
from ...simulate.platform import Cluster
from . import inputs

if TYPE_CHECKING:
    from ...adapters.base import Adapter
    from ..glance import Glance
    from ..planning import Options

_MOST_WAITS = 15


@dataclass(frozen=True)
class Source:
    """Whose queue: the adapter and its options, the nodes if they are known, how to plan, where profiles are, and the
    configuration that says so, if one does."""

    adapter: str
    options: dict[str, Any]
    cluster: Path | None
    planning: Options
    profiles: Path
    config: Path | None = None


def source(
    adapter: str | None, config: Path | None, cluster: Path | None, planning: Options, store: Path | None
) -> Source:
    """What the options say; of how to plan, what differs from the default goes before the configuration.

    Raises:
        ConfigError: the configuration cannot be used, or speaks of another adapter.
    """
    from ..paths import profile_store_path
    from ..planning import Options

    if config is None:
        return Source(str(adapter), {}, cluster, planning, store or profile_store_path())
    from ..config import load_config

    found = load_config(config)
    if adapter not in (None, found.adapter.name):
        raise ConfigError(str(config), "adapter.name", f"found {found.adapter.name!r}, and --adapter {adapter}", "one")
    wished = {
        field.name: value
        for field in fields(planning)
        if (value := getattr(planning, field.name)) != getattr(Options(), field.name)
    }
    as_configured = {name: getattr(found, name) for name in ("policy", "objective", "seed", "budget", "time_limit")}
    return Source(
        found.adapter.name,
        dict(found.adapter.options),
        cluster or Path(found.cluster),
        Options(**(as_configured | wished)),
        store or found.profile_store,
        config,
    )


def show(where: Source, *, commands: bool, as_json: bool, everything: bool) -> None:
    """Look once, and print what would be done. Raises AdapterError and ConfigError."""
    from ...adapters import registry
    from ..glance import look

    with ExitStack() as stack:
        with inputs.adapter_of(where.config):
            if where.adapter == "local":
                raise ConfigError("adapter", "", "'local' has no queue of its own: name a workflow", "slurm")
            cluster = _nodes(where)
            adapter = stack.enter_context(closing(registry.create(where.adapter, cluster, **where.options)))
        inputs.load_simulator()
        for note in adapter.notes:
            inputs.warn(note)
        with tempfile.TemporaryDirectory(prefix="pilotfish-") as folder:
            seen = look(adapter, where.planning, _copy(where.profiles, Path(folder)))
        if as_json:
            print(json.dumps(_document(seen, adapter, cluster), indent=2, allow_nan=False))
        else:
            _print(seen, adapter, cluster, commands=commands, everything=everything)
    for warning in seen.plan.warnings if seen.plan else ():
        inputs.warn(warning)


def _nodes(where: Source) -> Cluster:
    if where.cluster is not None:
        return inputs.read_cluster(where.cluster)
    from ...adapters import registry

    cluster, assumed = registry.discover(where.adapter)
    for text in assumed:
        inputs.note(text)
    return cluster


def _copy(store: Path, folder: Path) -> Path:
    from ..copies import copy_whole

    try:
        return copy_whole(store, folder)
    except (OSError, sqlite3.Error) as error:
        inputs.warn(f"{store}: cannot be read, no profiles are known: {error}")
        return folder / store.name


def _print(seen: Glance, adapter: Adapter, cluster: Cluster, *, commands: bool, everything: bool) -> None:
    from ..classed import classes_of
    from ..render import tables
    from ..render.classes import class_lines
    from ..render.screen import Screen
    from ..render.text import clean, count

    screen = Screen()
    policy = f", policy {seen.plan.policy}" if seen.plan else ""
    screen.title(
        f"queue of {adapter.name}: {count(seen.handed_over, 'job')} handed over, {len(seen.starts)} would start now, "
        f"{count(len(cluster.nodes), 'node')}{policy}"
    )
    if seen.plan and seen.plan.jobs:
        plan = seen.plan
        screen.put(tables.plan_table(plan, screen.cells, ascii_only=screen.ascii_only, everything=everything), "")
        if not everything and (note := tables.left_out(len(plan.jobs))):
            screen.put(note, "")
    if lines := seen.commands if commands else seen.actions:
        print(*map(clean, lines), "", sep="\n")  # whole, however wide: they are there to be copied
    screen.put(*_waits(seen, everything))
    screen.put(*(f"dropped   {rejection.action.key}: {clean(rejection.reason)}" for rejection in seen.rejected))
    if seen.plan:
        screen.put(tables.summary(seen.plan, cluster)[-1])
        screen.put(*class_lines(classes_of(seen.plan, seen.jobs, cluster), screen.cells))
    if not seen.handed_over:
        screen.put("No job waits that was handed over to pilotfish: `sbatch --comment=pilotfish ...` hands one over.")


def _waits(seen: Glance, everything: bool) -> list[str]:
    from ..render.text import clean

    lines = [f"{key} waits: {clean(why)}" for key, why in seen.waits.items()]
    if everything or len(lines) <= _MOST_WAITS:
        return lines
    return [*lines[:_MOST_WAITS], f"{len(lines) - _MOST_WAITS} more wait: --all shows them"]


def _document(seen: Glance, adapter: Adapter, cluster: Cluster) -> dict[str, Any]:
    from ..classed import classes_of, with_classes

    plan = seen.plan and with_classes(inputs.plan_to_dict(seen.plan), classes_of(seen.plan, seen.jobs, cluster))
    return {
        "schema": "pilotfish/glance/v1",
        "adapter": adapter.name,
        "handed_over": seen.handed_over,
        "starts": [{"job": start.key, "nodes": list(start.nodes)} for start in seen.starts],
        "commands": list(seen.commands),
        "waits": seen.waits,
        "rejected": {rejection.action.key: rejection.reason for rejection in seen.rejected},
        "plan": plan,
    }
