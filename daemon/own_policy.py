"""Queue policies of a user's own by name: `./mine.py:Class:option=value,...`, `package.module:Class`.

Rule: an option is what the class takes when it is made, read as its annotation or its default says. What goes wrong in
the user's own code is told by the traceback of that code, and one line that says whose it is.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from ..simulate.batch import asking
from ..simulate.batch.custom import OwnPolicy
from ..simulate.batch.pairs import Contending
from ..simulate.batch.spec import Policy
from ..simulate.errors import ConfigError, PolicyError
from .streams import tell

FORMS = "./file.py:Class or package.module:Class, then :option=value,..."
_FORM = re.compile(r"(?P<where>.+\.py|\w+(?:\.\w+)*):(?P<name>[^\W\d]\w*)(?::(?P<options>.*))?")
#: Files whose frames stand above those of the user's code in a traceback.
_OURS = (__file__, asking.__file__, importlib.__file__, "<frozen importlib")
_WORDS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Named:
    """A policy, the SPEC that names it, and the file that it was read from, where there is one."""

    policy: Policy | Contending | OwnPolicy
    text: str
    file: Path | None = None

    @property
    def compiled(self) -> bool:
        """Whether it is one of ours."""
        return isinstance(self.policy, Policy | Contending)


def is_own(text: str) -> bool:
    """Whether a SPEC names a file or a module, not one of our policies."""
    return bool(re.search(r"[./\\]", text.partition(":")[0]))


def make(text: str, seed: int) -> Named:
    """The policy that a SPEC names; one that takes a `seed` is given this one.

    Raises:
        ConfigError: of the source "policy" where the SPEC is wrong, else of what it names.
        PolicyError: the user's code raised an exception, which is the cause.
        OSError: the file cannot be read.
    """
    form = _FORM.fullmatch(text)
    if form is None:
        raise ConfigError("policy", "", f"{text!r}", FORMS)
    where, name = form["where"], form["name"]
    module = _read(where, text) if where.endswith(".py") else _imported(where, text)
    kind = getattr(module, name, None)
    if not isinstance(kind, type) or not callable(getattr(kind, "decide", None)):
        why = "it has no method decide(self, snapshot)" if isinstance(kind, type) else "there is no such class"
        others = [key for key, one in vars(module).items() if isinstance(one, type) and hasattr(one, "decide")]
        raise ConfigError(where, name, why, ", ".join(others) or "a class with such a method")
    chosen = _options(kind, name, form["options"] or "", seed)
    with _blamed(text, "as it was made"):
        policy: OwnPolicy = kind(**chosen)
    file = Path(getattr(module, "__file__", None) or "")
    return Named(policy, text, file if file.is_file() else None)


@contextmanager
def traced() -> Iterator[None]:
    """Where the user's own code raised an exception, print the traceback of it."""
    try:
        yield
    except PolicyError as error:
        cause = error.__cause__
        if cause is not None:
            place = cause.__traceback__
            while place is not None and place.tb_frame.f_code.co_filename.startswith(_OURS):
                place = place.tb_next
            tell(f"pilotfish: the code of policy {error.policy}, which is not pilotfish's, raised this:")
            for line in "".join(traceback.format_exception(type(cause), cause, place)).splitlines():
                tell(line)
        raise


def _read(where: str, text: str) -> ModuleType:
    """The module in a file; what it imports may lie beside it."""
    content, module = Path(where).read_bytes(), ModuleType(where)
    module.__file__ = where
    sys.modules[where] = module  # no other module has such a name
    sys.path.append(str(Path(where).resolve().parent))
    with _blamed(text, "as it was loaded"):
        exec(compile(content, where, "exec"), vars(module))
    return module


def _imported(where: str, text: str) -> ModuleType:
    """A module that can be imported, also from this directory."""
    sys.path.append(os.getcwd())
    try:
        with _blamed(text, "as it was loaded"):
            return importlib.import_module(where)
    except PolicyError as error:
        missing = error.__cause__.name if isinstance(error.__cause__, ModuleNotFoundError) else None
        if missing is None or not f"{where}.".startswith(f"{missing}."):
            raise
    raise ConfigError("policy", "", f"there is no module {missing!r}", FORMS)


@contextmanager
def _blamed(text: str, when: str) -> Iterator[None]:
    try:
        yield
    except (Exception, SystemExit) as error:
        raise PolicyError(text, when, f"{type(error).__name__}: {error}") from error


def _options(kind: type[Any], name: str, text: str, seed: int) -> dict[str, Any]:
    """What a class is made with. Raises ConfigError."""
    known = _parameters(kind)
    chosen: dict[str, Any] = {}
    for word in filter(None, text.split(",")):
        key, equals, value = word.partition("=")
        if key not in known or not equals:
            allowed = ", ".join(f"{key}=..." for key in known) or "it has no options"
            raise ConfigError("policy", name, f"{word!r}", allowed)
        if key in chosen:
            raise ConfigError("policy", f"{name}:{key}", "given twice", "once")
        chosen[key] = _value(f"{name}:{key}", value, known[key])
    if "seed" in known:
        chosen.setdefault("seed", seed)
    missing = [key for key, one in known.items() if one.default is one.empty and key not in chosen]
    if missing:
        raise ConfigError("policy", name, f"missing: {', '.join(missing)}", f":{missing[0]}=...")
    return chosen


def _parameters(kind: type[Any]) -> dict[str, inspect.Parameter]:
    """What may be given by name when a class is made."""
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
    kind = wanted.annotation if wanted.annotation in _READERS else type(wanted.default)
    if kind not in _READERS:
        return _guessed(text)
    read, allowed = _READERS[kind]
    try:
        return read(text)
    except (ValueError, KeyError):
        raise ConfigError("policy", where, f"{text!r}", allowed) from None


_READERS: dict[Any, tuple[Callable[[str], Any], str]] = {
    bool: (_WORDS.__getitem__, "true, false"),
    int: (int, "a whole number"),
    float: (float, "a number"),
    str: (str, "a text"),
}


def _guessed(text: str) -> Any:
    """What a value looks like that nothing is said of."""
    for read, _ in _READERS.values():
        try:
            return read(text)
        except (ValueError, KeyError):
            continue
    return text
