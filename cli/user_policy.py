"""A user's own queue policy: loaded by its name, and made with its options.

Rule: an option is a parameter of the class, read as its annotation or its default says. An exception in the user's code
is reported by the traceback of that code and one line that names the policy.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..simulate.errors import ConfigError, PolicyError
from ..simulate.replay import python_loop
from ..simulate.replay.policies import FORMS, Contending, Own, Policy
from ..simulate.replay.user_policy import QueuePolicy
from .streams import note, print_diagnostic

if TYPE_CHECKING:
    from ..daemon.config import DaemonConfig

#: Files whose frames precede the user's code in a traceback.
_OWN_FRAMES = (__file__, python_loop.__file__, importlib.__file__, "<frozen importlib")


@dataclass(frozen=True, slots=True)
class DaemonPolicy:
    """The control loop of the service, which decides in place of a queue policy.

    Args:
        file: of its configuration.
        config: the configuration.
        runtimes: what its planner may know of run times, `walltime` or `actual`.
    """

    file: Path
    config: DaemonConfig
    runtimes: str


@dataclass(frozen=True, slots=True)
class NamedPolicy:
    """What decides in a replay, its SPEC, and the file that it was read from, if any."""

    policy: Policy | Contending | QueuePolicy | DaemonPolicy
    text: str
    file: Path | None = None

    @property
    def compiled(self) -> bool:
        """Whether it is a policy of pilotfish, not of a user."""
        return isinstance(self.policy, Policy | Contending)


def load_policy(own: Own, seed: int, source: bytes | None = None) -> NamedPolicy:
    """Load a user's policy.

    Args:
        own: its name and options.
        seed: passed to a class that has the parameter `seed`.
        source: content of its file, for a worker that cannot read it; None = read the file.

    Raises:
        ConfigError: with the source "policy" where the name is wrong, else with the file or module.
        PolicyError: the user's code raised an exception, which is the cause.
        OSError: the file cannot be read.
    """
    module = _read(own, source) if own.is_file else _imported(own)
    kind = getattr(module, own.name, None)
    if not isinstance(kind, type) or not callable(getattr(kind, "decide", None)):
        why = "it has no method decide(self, snapshot)" if isinstance(kind, type) else "there is no such class"
        others = [key for key, one in vars(module).items() if isinstance(one, type) and hasattr(one, "decide")]
        raise ConfigError(own.where, own.name, why, ", ".join(others) or "a class with such a method")
    chosen = _options(kind, own, seed)
    with _user_code(own, "as it was made"):
        policy: QueuePolicy = kind(**chosen)
    file = Path(getattr(module, "__file__", None) or "")
    return NamedPolicy(policy, str(own), file if file.is_file() else None)


@contextmanager
def print_policy_traceback() -> Iterator[None]:
    """Print the traceback of an exception in the user's code; the PolicyError goes on."""
    try:
        yield
    except PolicyError as error:
        cause = error.__cause__
        if cause is not None:
            place = cause.__traceback__
            while place is not None and place.tb_frame.f_code.co_filename.startswith(_OWN_FRAMES):
                place = place.tb_next
            note(f"the user's code of policy {error.policy} raised an exception:")
            print_diagnostic(*"".join(traceback.format_exception(type(cause), cause, place)).splitlines())
        raise


def _read(own: Own, source: bytes | None) -> ModuleType:
    """Execute the file of a module; it may import modules in its folder."""
    where, module = own.where, ModuleType(own.where)
    if source is None:
        source = Path(where).read_bytes()
        sys.path.append(str(Path(where).resolve().parent))
    module.__file__ = where
    sys.modules[where] = module  # no other module has such a name
    with _user_code(own, "as it was loaded"):
        exec(compile(source, where, "exec"), vars(module))
    return module


def _imported(own: Own) -> ModuleType:
    """Import a module; the current directory is searched last."""
    sys.path.append(os.getcwd())
    try:
        with _user_code(own, "as it was loaded"):
            return importlib.import_module(own.where)
    except PolicyError as error:
        missing = error.__cause__.name if isinstance(error.__cause__, ModuleNotFoundError) else None
        if missing is None or not f"{own.where}.".startswith(f"{missing}."):
            raise
    raise ConfigError("policy", "", f"there is no module {missing!r}", FORMS)


@contextmanager
def _user_code(own: Own, when: str) -> Iterator[None]:
    try:
        yield
    except (Exception, SystemExit) as error:
        raise PolicyError(str(own), when, f"{type(error).__name__}: {error}") from error


def _options(kind: type[Any], own: Own, seed: int) -> dict[str, Any]:
    """Return the arguments of a class. Raises ConfigError."""
    known = _parameters(kind)
    for key, value in own.options:
        if key not in known:
            allowed = ", ".join(f"{key}=..." for key in known) or "it has no options"
            raise ConfigError("policy", own.name, f"'{key}={value}'", allowed)
    chosen = {key: _value(f"{own.name}:{key}", value, known[key]) for key, value in own.options}
    if "seed" in known:
        chosen.setdefault("seed", seed)
    missing = [key for key, one in known.items() if one.default is one.empty and key not in chosen]
    if missing:
        raise ConfigError("policy", own.name, f"missing: {', '.join(missing)}", f":{missing[0]}=...")
    return chosen


def _parameters(kind: type[Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters of a class that can be given by name."""
    try:
        found = inspect.signature(kind, eval_str=True)
    except Exception:  # annotations that cannot be evaluated here
        try:
            found = inspect.signature(kind)
        except ValueError:
            return {}
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {key: one for key, one in found.parameters.items() if one.kind in named}


def _value(where: str, text: str, wanted: inspect.Parameter) -> Any:
    """Return the value of an option; without a known type: bool, int, float, else text. Raises ConfigError."""
    kind = wanted.annotation if wanted.annotation in _READERS else type(wanted.default)
    for read, _ in [_READERS[kind]] if kind in _READERS else _READERS.values():
        with suppress(ValueError, KeyError):
            return read(text)
    raise ConfigError("policy", where, f"{text!r}", _READERS[kind][1])


_READERS: dict[Any, tuple[Callable[[str], Any], str]] = {
    bool: ({"true": True, "false": False}.__getitem__, "true, false"),
    int: (int, "a whole number"),
    float: (float, "a number"),
    str: (str, "a text"),
}
