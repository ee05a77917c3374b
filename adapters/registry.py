"""The adapters by name.

Rule: an adapter is a package beside this file with a function `create(cluster, **options)`; it is imported
when it is asked for, not before.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from types import ModuleType
from typing import Any, cast

from ..simulate.errors import ConfigError
from ..simulate.platform import Cluster
from .base import Adapter
from .findings import Finding, Service

ADAPTERS = ("local", "simulated", "slurm")


def create(name: str, cluster: Cluster, **options: Any) -> Adapter:
    """Return the adapter called `name` for `cluster`.

    Args:
        options: passed to the adapter's own `create`; unknown and missing ones are errors.

    Raises:
        ConfigError: no such adapter or option.
        AdapterError: it cannot be had now.
    """
    make = _function(name, "create")
    _check(name, options)
    return cast(Adapter, make(cluster, **options))


def discover(name: str) -> tuple[Cluster, tuple[str, ...]]:
    """Return the nodes that a resource manager knows, and what had to be assumed of them, a sentence each.

    Raises:
        ConfigError: there is no such adapter, or it cannot tell.
        AdapterError: it cannot tell now.
    """
    find = _function(name, "discover", f"{name!r} knows of no nodes by itself")
    return cast("tuple[Cluster, tuple[str, ...]]", find())


def examine(
    name: str, cluster: Cluster | None, user: str, service: Service, *, trial: bool = False, **options: Any
) -> list[Finding]:
    """Return what there is to say of a resource manager and the account `user`; options as in `create`.

    Args:
        trial: also try what the account may do, with a job of its own that never starts.

    Raises:
        ConfigError: there is no such adapter, or nothing to examine.
    """
    look_over = _function(name, "examine", f"there is nothing to examine of {name!r}")
    _check(name, options)
    return cast("list[Finding]", look_over(cluster, user, service, trial=trial, **options))


def _check(name: str, options: Mapping[str, object]) -> None:
    """Refuse options that the adapter's `create` does not know, or lacks."""
    parameters = inspect.signature(_function(name, "create")).parameters
    known = [option for option in parameters if option != "cluster"]
    for option in options:
        if option not in known:
            raise ConfigError(
                f"adapter {name}", option, f"unknown option{_near(option, known)}", ", ".join(known)
            )
    for option in known:
        if option not in options and parameters[option].default is inspect.Parameter.empty:
            raise ConfigError(f"adapter {name}", option, "missing")


def _function(name: str, what: str, lacks: str = "") -> Callable[..., Any]:
    """The function `what` of an adapter. Raises ConfigError, which names those that have one."""
    found = getattr(_module(name), what, None) if name in ADAPTERS else None
    if found is None:
        able = [other for other in ADAPTERS if hasattr(_module(other), what)]
        problem = lacks if name in ADAPTERS else f"found {name!r}{_near(name, able)}"
        raise ConfigError("adapter", "", problem, ", ".join(able))
    return cast("Callable[..., Any]", found)


def _module(name: str) -> ModuleType:
    return importlib.import_module(f".{name}", __package__)


def _near(word: str, words: list[str] | tuple[str, ...]) -> str:
    near = get_close_matches(word, words, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
