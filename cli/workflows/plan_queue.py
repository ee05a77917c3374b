"""`pilotfish plan --adapter NAME` and `--config FILE`: plan the queue of a resource manager once, as it is now."""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...adapters import registry
from ...adapters.base import Adapter
from ...daemon.assembly import options_of
from ...daemon.config import check_limit, load_policy_of
from ...daemon.learning.job_profiles import classes_of, with_classes
from ...daemon.one_off import QueuePreview, preview_queue
from ...daemon.paths import profile_store_path, state_dir
from ...daemon.planning.problem import Options
from ...daemon.state.journal import Journal
from ...daemon.state.journal_db import copy_database
from ...formats.plan import plan_to_dict
from ...formats.text import count
from ...simulate.errors import ConfigError
from ...simulate.model.cluster import Cluster
from ...simulate.queue_policies.policy_specs import COMPONENT
from ...trust import as_account, owner_of
from ..inputs import configured_adapter, read_cluster
from ..kernel_loading import load_simulator
from ..output import tables
from ..output.documents import print_json
from ..output.text import Screen, class_lines
from ..streams import note, show, warn
from ..usage_errors import adapter_errors, value_of

if TYPE_CHECKING:
    from ...daemon.config import DaemonConfig

_MOST_WAITS = 15


def show_queue(
    adapter: str | None, config: Path | None, nodes: Path | None, planning: Options, store: Path | None,
    as_if: Sequence[str] = (), *, commands: bool, as_json: bool, everything: bool,
) -> None:  # fmt: skip
    """Read the queue of a resource manager once, and print what would be done.

    Args:
        adapter: name of its adapter; None = that of `config`.
        config: file of the service's configuration; None = none, which needs `adapter`.
        nodes: cluster file; None = as configured, or ask the resource manager.
        planning: what differs from the default takes precedence over the configuration.
        store: file of the profile store; None = as configured, or the user's own.
        as_if: queues whose jobs are planned as if they were handed over, see `registry.as_if_handed_over`.
        commands: print the commands, too.
        as_json: print a JSON document.
        everything: leave no row out.

    Raises:
        AdapterError: the resource manager cannot be asked.
        ConfigError: the configuration is wrong, or names another adapter.
    """
    name, settings, configured = configured_adapter(adapter, config)
    if configured:
        overrides = {
            one.name: value for one in fields(planning) if (value := getattr(planning, one.name)) != one.default
        }
        planning = replace(options_of(configured), **overrides)
        if planning.policy.startswith(COMPONENT):
            problem = f"{planning.policy} decides only in the daemon, and only once about each job"
            raise ConfigError(str(config), "policy", problem, "-p with another policy; or pilotfish daemon --dry-run")
        if planning.policy == configured.policy:
            load_policy_of(configured, str(config))
        nodes, store = nodes or Path(configured.cluster), store or configured.profile_store
    profiles = store or profile_store_path()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pilotfish-")))
        with adapter_errors(config):
            cluster, assumed = (read_cluster(nodes), ()) if nodes else registry.discover(name)
            _check_limit(planning.policy, configured, config, cluster)
            home = configured.journal.parent if configured else state_dir()
            settings = registry.options_of_service(
                name, settings, folder=(config or home).parent, state_dir=home / name, read_only=True
            )
            queues = list[str]()
            if as_if:
                settings, queues = registry.as_if_handed_over(name, settings, as_if, folder)
            manager = stack.enter_context(closing(registry.create(name, cluster, **settings)))
            if not manager.capabilities.offers:
                raise ConfigError("adapter", "", f"{name!r} has no queue of its own: name a workflow")
            note(*assumed)
        _recognise_pins(manager, configured)
        load_simulator()
        warn(*manager.notes)
        service = _remembered(configured) if configured else None
        preview = preview_queue(manager, planning, _copy(profiles, folder), service)
        if as_json:
            print_json("glance", _document(preview, manager, cluster) | {"as_if_handed_over": queues})
        else:
            _print(preview, manager, cluster, queues, commands=commands, everything=everything)
    warn(*(preview.plan.warnings if preview.plan else ()))


def _check_limit(policy: str, configured: DaemonConfig | None, config: Path | None, cluster: Cluster) -> None:
    """Refuse a limit of power or energy that is impossible on these nodes. Raises ConfigError, typer.BadParameter."""
    from ...simulate.queue_policies.energy.kept_limit import refuse_limit

    if configured is not None and policy == configured.policy:
        check_limit(configured, str(config), cluster, time.time())
        return
    with value_of("--policy"):
        refuse_limit(policy, cluster, time.time())


def _recognise_pins(manager: Adapter, configured: DaemonConfig | None) -> None:
    """Let the adapter read the pins of the service of this configuration; if that is not allowed, say so."""
    if configured is None:
        return
    folder = configured.adapter_state
    try:
        with as_account(owner_of(folder)):
            manager.keep_state(folder, read_only=True)
    except ConfigError as error:
        warn(f"pins of the service are not recognised: {error}")


def _remembered(configured: DaemonConfig) -> tuple[DaemonConfig, Journal]:
    """Return the configuration with a copy of the journal of its service; if it cannot be read, say so."""
    try:
        with as_account(owner_of(configured.journal)):
            return configured, Journal(configured.journal, in_memory=True)
    except ConfigError as error:
        warn(f"planning without what the service remembers: {error}")
        return configured, Journal(Path(":memory:"), in_memory=True)


def _copy(store: Path, folder: Path) -> Path:
    try:
        return copy_database(store, folder)
    except (OSError, sqlite3.Error) as error:
        warn(f"{store}: cannot be read, planning without profiles: {error}")
        return folder / store.name


def _print(
    seen: QueuePreview, adapter: Adapter, cluster: Cluster, queues: Sequence[str], *, commands: bool, everything: bool
) -> None:
    screen = Screen()
    policy = f", policy {seen.plan.policy}" if seen.plan else ""
    screen.title(
        f"queue of {adapter.name}: {count(len(seen.jobs), 'job')} handed over, {len(seen.starts)} would start now, "
        f"{count(len(cluster.nodes), 'node')}{policy}"
    )
    if queues:
        screen.put(f"as if all jobs of {count(len(queues), 'queue')} were handed over: {', '.join(queues)}")
    if seen.plan and seen.plan.jobs:
        plan = seen.plan
        screen.put(tables.plan_table(plan, screen, everything=everything), "")
        if not everything and (hidden := tables.left_out(len(plan.jobs))):
            screen.put(hidden, "")
    if lines := seen.commands if commands else seen.actions:
        show(*lines, "")  # not wrapped: they are meant to be copied
    waits = [f"{key} waits: {reason}" for key, reason in seen.waits.items()]
    if not everything and len(waits) > _MOST_WAITS:
        waits[_MOST_WAITS:] = [f"{len(waits) - _MOST_WAITS} more wait: --all shows them"]
    screen.put(*waits)
    screen.put(*(f"dropped   {rejection.action.key}: {rejection.reason}" for rejection in seen.rejected))
    if seen.plan:
        screen.put(tables.summary(seen.plan, cluster)[-1])
        screen.put(*class_lines(classes_of(seen.plan, seen.jobs, cluster), screen.cells))
    if not seen.jobs and queues:
        screen.put("No job waits in these queues.")
    elif not seen.jobs:
        by = f": `{adapter.hand_over_by}` hands one over" if adapter.hand_over_by else ""
        screen.put(f"No waiting job is handed over to pilotfish{by}.")
        screen.put("`--as-if-handed-over all` shows what it would do with the whole queue.")


def _document(seen: QueuePreview, adapter: Adapter, cluster: Cluster) -> dict[str, Any]:
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
