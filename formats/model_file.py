"""The file of a learned policy: JSON with its numbers, and the card that says what it rests on.

Rule: a model is numbers, never code. The file carries a hash of the rest of itself, and inputs with their scores, which
the reader computes again: a file that was cut, edited, or written for another meaning of the features is refused. What
a file holds depends on its kind, see KINDS.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..simulate.errors import ConfigError
from ..simulate.queue_policies.learned_order import OrderFile
from .documents.atomic_write import write_whole
from .documents.document_errors import found
from .documents.files import read_bytes
from .models.fields import ALLOWED
from .models.order_model import ORDER_KINDS, OrderModel
from .models.pair_model import PairModel
from .models.rule_model import RuleModel

if TYPE_CHECKING:
    from ..simulate.learned.guarded_order import GuardedOrder
    from ..simulate.learned.guarded_pairs import GuardedPairs

SCHEMA = "pilotfish/model/v1"
MOST_BYTES = 1 << 20
Model = OrderModel | PairModel | RuleModel
#: What a file can hold, by the word under `kind`.
KINDS: dict[str, type[OrderModel] | type[PairModel] | type[RuleModel]] = {
    **dict.fromkeys(ORDER_KINDS, OrderModel),
    PairModel.kind: PairModel,
    RuleModel.kind: RuleModel,
}


def dump_model(model: Model) -> str:
    """Return the text of a model's file; the same model gives the same text."""
    body = {"schema": SCHEMA, "kind": model.kind, "feature_set": model.FEATURE_SET} | model.body()
    return json.dumps(body | {"sha256": _digest(body)}, indent=1, allow_nan=False) + "\n"


def write_model(path: Path, model: Model) -> None:
    """Write a model's file, whole or not at all. Raises OSError."""
    write_whole(path, dump_model(model))


def read_model(path: Path) -> Model:
    """Read a model's file. Raises ConfigError: it is none, or not intact, or cannot be read."""
    return parse_model(read_bytes(path), str(path))


def parse_model(data: bytes, source: str) -> Model:
    """Read a model from the content of its file. Raises ConfigError.

    Args:
        data: the content.
        source: the file, for errors.
    """
    if len(data) > MOST_BYTES:
        raise ConfigError(source, "", f"{len(data):,} bytes or more", f"at most {MOST_BYTES:,}")
    try:
        read_number = partial(_finite, source=source)
        body = json.loads(data.decode(), parse_float=read_number, parse_constant=read_number)
    except (ValueError, RecursionError) as error:
        raise ConfigError(source, "", f"no JSON: {str(error)[:200]}", ALLOWED) from None
    if not isinstance(body, dict):
        raise ConfigError(source, "", "no model", ALLOWED)
    word = body.get("kind")
    kind = KINDS.get(word) if isinstance(word, str) else None
    if body.get("schema") != SCHEMA:
        raise ConfigError(source, "schema", found(body.get("schema")), SCHEMA)
    if kind is None:
        raise ConfigError(source, "kind", found(word), ", ".join(KINDS))
    if body.get("feature_set") != kind.FEATURE_SET:
        raise ConfigError(source, "feature_set", found(body.get("feature_set")), kind.FEATURE_SET)
    digest = body.pop("sha256", None)
    if digest != _digest(body):
        raise ConfigError(source, "sha256", "the file was changed after it was written", "the file as it was written")
    return kind.of(body, source)


def read_order(path: Path) -> OrderModel:
    """Read the file of a learned order. Raises ConfigError: see `read_model`, or it is of another kind."""
    return _order(read_model(path), str(path))


def guarded(model: Model, source: str) -> GuardedOrder | GuardedPairs:
    """Return a model with its net; `source`: its file. Raises ConfigError: the file says too little for that."""
    return model.guarded(source, hashlib.sha256(dump_model(model).encode()).hexdigest())


def check_use(model: Model, source: str) -> None:
    """Make all checks that a use of a model makes beyond those of its reader.

    Args:
        model: the model.
        source: its file.

    Raises:
        ConfigError: the file says too little for a net, or, of a model that only replays use, for its policy.
    """
    if isinstance(model, RuleModel):
        model.policy(source)
    else:
        guarded(model, source)


def with_models(policy: Any, folder: Path = Path()) -> Any:
    """Return a policy with the learned order of the file that its SPEC names, if it names one.

    Args:
        policy: the policy, a `PolicySpec`.
        folder: where a relative path begins.

    Raises:
        ConfigError: see `read_model`, or parts of the policy do not go with a learned order.
    """
    plain = policy.plain
    order = getattr(plain, "order", None)
    if not isinstance(order, OrderFile):
        return policy
    learned = replace(plain, order=read_order(folder / order.path).order(order.path))
    return learned if plain is policy else replace(policy, base=learned)


def _order(model: Model, source: str) -> OrderModel:
    if not isinstance(model, OrderModel):
        raise ConfigError(source, "kind", f"{model.kind}: it is no order of the queue", ", ".join(ORDER_KINDS))
    return model


def _finite(word: str, source: str) -> float:
    """Return the number that a word of JSON stands for. Raises ConfigError: NaN, an infinity, or too large a number."""
    number = float(word)
    if not isfinite(number):
        raise ConfigError(source, "", f"{word} is no number", "finite numbers")
    return number


def _digest(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True, allow_nan=False).encode()).hexdigest()
