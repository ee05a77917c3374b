"""The adapters by name.

Rule: an adapter is a package beside this file with a function `create(cluster, **options)`; it is imported
when it is asked for, not before.
"""

from __future__ import annotations

import importlib
import inspect
from difflib import get_close_matches
from typing import Any, cast

from ..simulate.errors import ConfigError
from ..simulate.platform import Cluster
from .base import Adapter

ADAPTERS = ("local", "simulated", "slurm")


def create(name: str, cluster: Cluster, **options: Any) -> Adapter:
    """Return the adapter called `name` for `cluster`.

    Args:
        options: passed to the adapter's own `create`; unknown and missing ones are errors.

    Raises:
        ConfigError: no such adapter or option.
        AdapterError: it cannot be had now.
    """
    if name not in ADAPTERS:
        raise ConfigError("adapter", "", f"found {name!r}{_near(name, ADAPTERS)}", ", ".join(ADAPTERS))
    make = importlib.import_module(f".{name}", __package__).create
    parameters = inspect.signature(make).parameters
    known = [option for option in parameters if option != "cluster"]
    for option in options:
        if option not in known:
            raise ConfigError(
                f"adapter {name}", option, f"unknown option{_near(option, known)}", ", ".join(known)
            )
    for option in known:
        if option not in options and parameters[option].default is inspect.Parameter.empty:
            raise ConfigError(f"adapter {name}", option, "missing")
    return cast(Adapter, make(cluster, **options))


def _near(word: str, words: list[str] | tuple[str, ...]) -> str:
    near = get_close_matches(word, words, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
