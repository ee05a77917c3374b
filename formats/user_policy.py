"""Queue policies by their SPEC: load a user's policy or a model, and make any queue policy for plans.

Rule: an option is a parameter of the class, read as its annotation or its default says. An exception in the user's code
is reported by the traceback of that code and one line that names the policy. A service executes only one file that its
own account or root alone can change, or an installed module; it searches no other folder. It reads only such a model.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..simulate.errors import ConfigError, PolicyError
from ..simulate.queue_policies.loaded_policies import FORMS, LEARNED, Own, parse_python_policy
from ..simulate.queue_policies.policy_facts import PolicySpec
from ..simulate.queue_policies.policy_specs import parse_planned, text_of
from ..trust import open_file
from .model_file import MOST_BYTES, Model, guarded, parse_model, read_model
from .models.pair_model import PairModel
from .models.rule_model import RuleModel

if TYPE_CHECKING:
    from ..simulate.planning.mapping_policies import MappingPolicy
    from ..simulate.queue_policies.interface import QueuePolicy


@dataclass(frozen=True, slots=True)
class NamedPolicy:
    """A queue policy, its SPEC, and the file that it was read from, if any."""

    policy: PolicySpec | QueuePolicy
    text: str
    file: Path | None = None


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
    if own.is_model:
        return NamedPolicy(_policy_of(_model(own, source, service=False), own, seed), str(own), Path(own.where))
    make, module = _load(own, source, service=False)
    file = Path(getattr(module, "__file__", None) or "")
    return NamedPolicy(make(seed), str(own), file if file.is_file() else None)


def read_learned_policy(path: str | Path, seed: int = 0) -> PolicySpec | QueuePolicy:
    """Return the learned policy in a model's file, with its net, for one replay.

    Args:
        path: the file, *.pfmodel.json.
        seed: of random choices of its baseline.

    Raises:
        ConfigError: the file is no model.
        OSError: it cannot be read.
    """
    return load_policy(parse_python_policy(f"{LEARNED}{path}"), seed).policy


def queue_mapping(text: str, *, service: bool = False) -> MappingPolicy:
    """Return the queue policy of a SPEC, or a mapping policy with parts, as a mapping policy.

    Args:
        text: the SPEC.
        service: it is executed as the account of a service, see the rule.

    Raises:
        ConfigError: the SPEC is wrong, or it cannot decide for plans; the source is "policy", or the file or module.
        PolicyError: the user's code raised an exception, which is the cause.
        OSError: the file cannot be read, or it is not trusted.
    """
    from ..simulate.planning.mapping_policies import UnderCap
    from ..simulate.planning.queue_mapping import QueueMapping
    from ..simulate.queue_policies.energy.kept_limit import KeptLimit
    from ..simulate.queue_policies.uncompiled import uncompiled

    policy: Any = parse_planned(text, service=service)
    if policy.switches:
        from ..simulate.planning.switching_mapping import SwitchingMapping

        return SwitchingMapping(text, policy)
    if policy.is_model:
        from ..simulate.learned.learned_mapping import LearnedMapping

        model = _model(policy, None, service=service)
        if isinstance(model, PairModel) and not model.seen and not service:
            return QueueMapping(text, lambda _: model.policy(text))
        return LearnedMapping(text, guarded(model, policy.where), time.thread_time if service else None)
    if policy.plain.family == "mapping":
        return UnderCap(text_of(policy.plain), policy.limit)
    if not isinstance(policy, Own):
        keep = partial(KeptLimit, policy) if policy.limit else None
        built_in = partial(uncompiled, policy, arranged=True)
        return QueueMapping(text, built_in, every_node=policy.compares_nodes, keep=keep)
    make, _ = _load(policy, None, service=service)
    make(0)  # so that a wrong option is found now
    return QueueMapping(text, make)


def _load(reference: Own, source: bytes | None, *, service: bool) -> tuple[Callable[[int], QueuePolicy], ModuleType]:
    """Return what makes a policy from a seed, and its module."""
    module = _read(reference, source, service=service) if reference.is_file else _imported(reference, service=service)
    kind = getattr(module, reference.name, None)
    if not isinstance(kind, type) or not callable(getattr(kind, "decide", None)):
        problem = "it has no method decide(self, snapshot)" if isinstance(kind, type) else "there is no such class"
        policies = [key for key, one in vars(module).items() if isinstance(one, type) and hasattr(one, "decide")]
        raise ConfigError(reference.where, reference.name, problem, ", ".join(policies) or "a class with such a method")

    def make(seed: int) -> QueuePolicy:
        chosen = _options(kind, reference, seed)
        with _user_code(reference, "as it was made"):
            policy: QueuePolicy = kind(**chosen)
        return policy

    return make, module


def _policy_of(model: Model, reference: Own, seed: int) -> PolicySpec | QueuePolicy:
    """Return a model as a policy of replays. Raises ConfigError."""
    if isinstance(model, RuleModel):
        return model.policy(str(reference))
    if isinstance(model, PairModel) and not model.seen:
        return model.policy(str(reference))
    return guarded(model, reference.where).replayed(seed)


def _model(reference: Own, source: bytes | None, *, service: bool) -> Model:
    """Read the file of a model. Raises ConfigError, OSError."""
    if source is not None:
        return parse_model(source, reference.where)
    if not service:
        return read_model(Path(reference.where))
    with open(open_file(reference.where), "rb") as file:
        return parse_model(file.read(MOST_BYTES + 1), reference.where)


def _read(reference: Own, source: bytes | None, *, service: bool) -> ModuleType:
    """Execute the file of a module; it may import modules in its folder, but not as a service."""
    where, module = reference.where, ModuleType(reference.where)
    if service:
        with open(open_file(where), "rb") as file:
            source = file.read()
    elif source is None:
        source = Path(where).read_bytes()
        sys.path.append(str(Path(where).resolve().parent))
    module.__file__ = where
    sys.modules[where] = module  # no other module has such a name
    with _user_code(reference, "as it was loaded"):
        exec(compile(source, where, "exec"), vars(module))
    return module


def _imported(reference: Own, *, service: bool) -> ModuleType:
    """Import a module; the current directory is searched last, but not by a service."""
    if not service:
        sys.path.append(os.getcwd())
    try:
        with _user_code(reference, "as it was loaded"):
            return importlib.import_module(reference.where)
    except PolicyError as error:
        missing = error.__cause__.name if isinstance(error.__cause__, ModuleNotFoundError) else None
        if missing is None or not f"{reference.where}.".startswith(f"{missing}."):
            raise
    raise ConfigError("policy", "", f"there is no module {missing!r}", FORMS)


@contextmanager
def _user_code(reference: Own, when: str) -> Iterator[None]:
    try:
        yield
    except (Exception, SystemExit) as error:
        raise PolicyError(str(reference), when, f"{type(error).__name__}: {error}") from error


def _options(kind: type[Any], reference: Own, seed: int) -> dict[str, Any]:
    """Return the arguments of a class. Raises ConfigError."""
    parameters = _parameters(kind)
    for key, value in reference.options:
        if key not in parameters:
            allowed = ", ".join(f"{key}=..." for key in parameters) or "it has no options"
            raise ConfigError("policy", reference.name, f"'{key}={value}'", allowed)
    arguments = {key: _value(f"{reference.name}:{key}", value, parameters[key]) for key, value in reference.options}
    if "seed" in parameters:
        arguments.setdefault("seed", seed)
    missing = [
        key for key, parameter in parameters.items() if parameter.default is parameter.empty and key not in arguments
    ]
    if missing:
        raise ConfigError("policy", reference.name, f"missing: {', '.join(missing)}", f":{missing[0]}=...")
    return arguments


def _parameters(kind: type[Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters of a class that can be given by name."""
    try:
        signature = inspect.signature(kind, eval_str=True)
    except Exception:  # annotations that cannot be evaluated here
        try:
            signature = inspect.signature(kind)
        except ValueError:
            return {}
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {key: parameter for key, parameter in signature.parameters.items() if parameter.kind in named}


def _value(where: str, text: str, parameter: inspect.Parameter) -> Any:
    """Return the value of an option; without a known type: bool, int, float, else text. Raises ConfigError."""
    kind = parameter.annotation if parameter.annotation in _READERS else type(parameter.default)
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
