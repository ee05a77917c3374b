"""Adapters by name, found by entry points.

Rule: an adapter is a module that an installed package offers in the entry-point group `pilotfish.adapters`. It has a
function `create(cluster, **options)` and may have `discover()`, `examine(...)`, `reap(...)`, `export(...)`,
`setup(...)`, `user_jobs(...)` and `is_here()`. It is imported when it is used. The built-in adapters need no package
metadata, so that a source checkout works, and cannot be replaced.

    [project.entry-points."pilotfish.adapters"]
    mycluster = "my_package.adapter"
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from ..simulate.errors import ConfigError, did_you_mean
from ..simulate.model.cluster import Cluster
from ..simulate.model.job import Workflow
from ..simulate.model.plan import Plan
from .base import Adapter, Reaped
from .findings import Finding, ServiceState
from .user_jobs import UserJobs

GROUP = "pilotfish.adapters"
BUILT_IN = ("local", "oar", "simulated", "slurm")
#: The word for each queue of a resource manager, and most queues that a message names.
ALL, MOST_NAMED = "all", 8
#: The adapter of this machine.
MACHINE = "local"


def names() -> list[str]:
    """Return the names of all adapters, sorted."""
    return sorted({*BUILT_IN, *entry_points(group=GROUP).names})


def require(name: str) -> None:
    """Import an adapter. Raises ConfigError: no package offers the name, or it cannot be imported."""
    _function(name, "create")


def create(name: str, cluster: Cluster, **options: Any) -> Adapter:
    """Return the adapter called `name` for `cluster`.

    Args:
        name: Name of the adapter.
        cluster: Nodes on which jobs may be placed.
        options: Options of the adapter's own `create`.

    Raises:
        ConfigError: There is no such adapter or option, or an option is missing or invalid.
        AdapterError: The resource manager is not available.
    """
    make = _function(name, "create")
    _check(name, options)
    return cast(Adapter, make(cluster, **options))


def options_of_service(
    name: str, options: Mapping[str, Any], *, folder: Path, state_dir: Path, read_only: bool
) -> dict[str, Any]:
    """Return the options with which a service creates an adapter.

    A path is relative to the configuration. An adapter that asks for `state_dir` or `read_only` gets the service's.

    Args:
        name: Name of the adapter.
        options: As configured.
        folder: Of the configuration.
        state_dir: Directory of the adapter's own state.
        read_only: Whether the service only observes (a dry run).
    """
    parameters = inspect.signature(_function(name, "create")).parameters
    completed = dict(options)
    for option, value in options.items():
        if isinstance(value, str) and option in parameters and "PathLike" in str(parameters[option].annotation):
            completed[option] = folder / Path(value).expanduser()
    if "state_dir" in parameters:
        completed.setdefault("state_dir", state_dir)
    if read_only and "read_only" in parameters:
        completed["read_only"] = True
    return completed


def queue_names(name: str, options: Mapping[str, Any]) -> list[str]:
    """Return the names of the partitions or queues of a resource manager.

    Args:
        name: Name of the adapter.
        options: Options of the adapter's own `create`.

    Raises:
        ConfigError: There is no such adapter, or it has no queues.
        AdapterError: The resource manager does not answer.
    """
    lacks = f"{name!r} has no queues whose jobs could be handed over"
    return cast("list[str]", _function(name, "queue_names", lacks)(**options))


def as_if_handed_over(
    name: str, options: Mapping[str, Any], queues: Sequence[str], folder: Path
) -> tuple[dict[str, Any], list[str]]:
    """Return the options of a site that also hands over all jobs of some queues, and the names of these queues.

    Args:
        name: Name of the adapter.
        options: As configured.
        queues: Partitions of Slurm, or queues of OAR; `all` is each of them.
        folder: Where files may be named that such a site would have, and that this one may lack.

    Raises:
        ConfigError: There is no such adapter or queue, or the adapter has none.
        AdapterError: The resource manager does not answer.
    """
    existing = queue_names(name, options)
    for queue in queues:
        if queue not in (ALL, *existing):
            hint = did_you_mean(queue, existing)
            problem = f"{name} shows no queue {queue!r}{hint}"
            raise ConfigError("--as-if-handed-over", "", problem, ", ".join((ALL, *existing[:MOST_NAMED])))
    chosen = existing if ALL in queues else list(dict.fromkeys(queues))
    return cast("dict[str, Any]", _function(name, "with_queues")(options, chosen, folder)), chosen


def reap(
    name: str,
    older_s: float,
    show: Callable[[Reaped], None],
    *,
    dry: bool,
    holds: bool,
    state_dir: Path,
    **options: Any,
) -> int:
    """Release overdue pins; return how many releases failed. Pins of an adapter without `reap` end with it.

    Args:
        name: Name of the adapter.
        older_s: Least age of a pin, and least time since a deadline, seconds.
        show: Called with each release.
        dry: Only show.
        holds: Also end holds that have lasted too long; without, only what a live service has left is taken back.
        state_dir: Directory of the adapter's `keep_state`.
        options: Options of the adapter's own `create`.

    Raises:
        ConfigError: There is no such adapter or option.
        AdapterError: The resource manager does not answer.
    """
    release = _function(name, "reap", f"{name!r} has no reaper: its pins end with the service")
    _check(name, options)
    return cast(int, release(older_s, show, dry=dry, holds=holds, state_dir=state_dir, **options))


def has_reaper(name: str) -> bool:
    """Return whether pins of an adapter outlive the service."""
    return name in names() and _has(name, "reap")


def sites() -> list[str]:
    """Return the names of the adapters that can list their nodes, sorted."""
    return [name for name in names() if _has(name, "discover")]


def discover(name: str) -> tuple[Cluster, tuple[str, ...]]:
    """Return the nodes that a resource manager knows, and a sentence for each assumption about them.

    Raises:
        ConfigError: There is no such adapter, or it cannot list nodes.
        AdapterError: The resource manager does not answer.
    """
    find = _function(name, "discover", f"{name!r} cannot list nodes")
    return cast("tuple[Cluster, tuple[str, ...]]", find())


def exporters() -> list[str]:
    """Return the names of the adapters that can print a plan as a script, sorted."""
    return [name for name in names() if _has(name, "export")]


def export(name: str, plan: Plan, workflow: Workflow, cluster: Cluster) -> str:
    """Return a script that submits the jobs of a plan to a resource manager, each on its nodes.

    Args:
        name: Name of the adapter.
        plan: The mapping; jobs that are not in it count as done.
        workflow: The jobs of the plan.
        cluster: Limits the requested cores to those of the nodes.

    Raises:
        ConfigError: There is no such adapter, or it prints no scripts.
        InvalidJobError: The plan has a job that the workflow does not have.
    """
    return cast(str, _function(name, "export", f"{name!r} prints no scripts")(plan, workflow, cluster))


def examine(
    name: str, cluster: Cluster | None, user: str, service: ServiceState, *, trial: bool = False, **options: Any
) -> list[Finding]:
    """Return the findings about a resource manager and the account of the daemon.

    Args:
        name: Name of the adapter.
        cluster: Nodes that the daemon is configured with; None: those of the resource manager.
        user: Account of the daemon.
        service: State of the daemon.
        trial: Also test the account's rights, with a job of its own that never starts.
        options: Options of the adapter's own `create`.

    Raises:
        ConfigError: There is no such adapter, or it has nothing to examine.
    """
    run = _function(name, "examine", f"there is nothing to examine of {name!r}")
    _check(name, options)
    return cast("list[Finding]", run(cluster, user, service, trial=trial, **options))


def present() -> list[str]:
    """Return the names of the adapters whose resource manager has its commands on this machine, sorted."""
    return [name for name in names() if _has(name, "is_here") and _module(name).is_here()]


def setup(name: str | None, user: str, *, undo: bool = False) -> str:
    """Return the commands that set the service up at a site, or remove it.

    Args:
        name: Name of the adapter; None: Slurm's.
        user: Account of the service.
        undo: Remove it.

    Raises:
        ConfigError: There is no such adapter, or nothing is to be set up.
    """
    name = name or "slurm"
    return cast(str, _function(name, "setup", f"nothing is to be set up for {name!r}")(user, undo=undo))


def user_jobs(name: str, timeout_s: float) -> UserJobs:
    """Return the jobs of the current user in a resource manager, for the commands that need no daemon.

    Args:
        name: Name of the adapter.
        timeout_s: Time limit of a command, seconds.

    Raises:
        ConfigError: There is no such adapter, or it has no users.
    """
    return cast(UserJobs, _function(name, "user_jobs", f"{name!r} needs the service")(timeout_s))


def _check(name: str, options: Mapping[str, object]) -> None:
    """Refuse unknown and missing options of an adapter's `create`."""
    parameters = inspect.signature(_function(name, "create")).parameters
    allowed = [option for option in parameters if option != "cluster"]
    for option in options:
        if option not in allowed:
            raise ConfigError(
                f"adapter {name}", option, f"unknown option{did_you_mean(option, allowed)}", ", ".join(allowed)
            )
    for option in allowed:
        if option not in options and parameters[option].default is inspect.Parameter.empty:
            raise ConfigError(f"adapter {name}", option, "missing")


def _function(name: str, attribute: str, lacks: str = "") -> Callable[..., Any]:
    """Return the function `attribute` of an adapter. Raises ConfigError, which names the adapters that have one."""
    adapters = names()
    function = getattr(_module(name), attribute, None) if name in adapters else None
    if function is None:
        able = [adapter for adapter in adapters if _has(adapter, attribute)]
        problem = (
            f"found {name!r}{did_you_mean(name, able)}" if name not in adapters else lacks or f"{name!r} starts no jobs"
        )
        raise ConfigError("adapter", "", problem, ", ".join(able))
    return cast("Callable[..., Any]", function)


def _has(name: str, attribute: str) -> bool:
    try:
        return hasattr(_module(name), attribute)
    except ConfigError:
        return False


def _module(name: str) -> ModuleType:
    """Import the module of an adapter. Raises ConfigError if it fails, or if two packages offer the name."""
    if name in BUILT_IN:
        return importlib.import_module(f".{name}", __package__)
    offers: dict[str, EntryPoint] = {point.value: point for point in entry_points(group=GROUP, name=name)}
    if len(offers) > 1:
        raise ConfigError(f"adapter {name}", "", f"offered by {' and '.join(sorted(offers))}", "one installed package")
    (point,) = offers.values()
    try:
        return cast(ModuleType, point.load())
    except Exception as error:  # the package is not ours
        raise ConfigError(f"adapter {name}", "", f"{point.value} cannot be imported: {error}") from error
