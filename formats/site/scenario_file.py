"""The file of `whatif --scenarios` (schema pilotfish/scenarios/v1): names of scenarios, and the changes of each.

Rule: a change has the name of its option, with `_` for `-`, and the same text or number, or a list of them. The texts
are read where the options are.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Any

from ..documents.document_errors import Collector, bad, found, from_source
from ..documents.files import check_schema, read_document
from ..documents.schema import build, listed, mapping, name, word

#: Most scenarios of a file.
MOST_SCENARIOS = 1000
#: Name of a scenario -> name of a change -> its values.
ScenarioTexts = dict[str, dict[str, tuple[str, ...]]]


def read_scenarios(path: Path, changes: Collection[str]) -> ScenarioTexts:
    """Return the scenarios of a YAML or JSON file, in their order.

    Args:
        path: the file.
        changes: names that a change may have.

    Raises:
        ConfigError: names the key, what was found and what is allowed.
        OSError: the file cannot be read.
    """
    data = check_schema(read_document(path), "scenarios", str(path))
    table = {"scenarios": partial(_scenarios, changes=changes)}
    return dict(from_source(str(path), build, dict, table, data, ("scenarios",))["scenarios"])


def _scenarios(value: Any, changes: Collection[str]) -> ScenarioTexts:
    parts = mapping(value)
    if not 1 <= len(parts) <= MOST_SCENARIOS:
        raise bad(found(value), f"1 to {MOST_SCENARIOS:,} names of scenarios")
    wrong, table = Collector(), dict.fromkeys(changes, _texts)
    scenarios = {key: wrong.read(key, _scenario, key, part, table) for key, part in parts.items()}
    wrong.check()
    return {key: texts for key, texts in scenarios.items() if texts is not None}


def _scenario(key: str, value: Any, table: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    name(key)
    if not value:
        raise bad(found(value), f"changes: {', '.join(table)}")
    return build(dict, table, value)


def _texts(value: Any) -> tuple[str, ...]:
    return listed(word, least=1)(value) if isinstance(value, list) else (word(value),)
