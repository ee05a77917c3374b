"""The profiles file (schema pilotfish/profiles/v1): `profiles: {NAME: {...}}` to Profile values and back.

Rule: an entry is a profile as written in a workflow, with its provenance.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..formats.documents.document_errors import found, from_source, inside, shown
from ..formats.documents.files import check_schema, read_document
from ..formats.documents.plausible import JobDoubts
from ..formats.documents.quantities import Convert, number, whole
from ..formats.documents.schema import build, listed, mapping, name, text
from ..formats.profile import dump_profile, parse_profile
from ..simulate.errors import ConfigError
from ..simulate.model.job import Profile, Provenance
from .stall_facts import FACTS

SCHEMA = "pilotfish/profiles/v1"
SOURCES = ("measured", "given", "predicted", "default")


def _source(value: Any) -> str:
    if value not in SOURCES:
        raise ConfigError("", "", found(value), ", ".join(SOURCES))
    return str(value)


def _text(value: Any) -> str:
    return text(value if isinstance(value, str) else str(value))


def _interval(value: Any) -> tuple[float, float]:
    bounds = listed(number())(value)
    if len(bounds) != 2 or not bounds[0] <= 1 <= bounds[1]:
        raise ConfigError("", "", found(value), "[low, high] with low <= 1 <= high")
    return bounds[0], bounds[1]


def _strain(value: Any) -> tuple[tuple[str, float], ...]:
    facts: dict[str, float] = build(dict, dict.fromkeys(FACTS, number()), mapping(value))
    return tuple(facts.items())


def _inputs(value: Any) -> tuple[tuple[str, float], ...]:
    return tuple((name(place), number(-1.0)(size)) for place, size in mapping(value).items())


#: Key in the file -> its converter; the field of Provenance has the same name, but node_type is cpu_model here.
_PROVENANCE: dict[str, Convert[Any]] = {
    "source": _source, "date": _text, "runs": whole(0, 10**9), "cpu_model": _text, "note": _text,
    "interval": _interval, "spread": number(0, 1000), "strain": _strain, "inputs": _inputs,
}  # fmt: skip


def parse_entry(key: str, value: Any) -> Profile:
    """Return the profile of one entry.

    Args:
        key: its name.
        value: a mapping, or a list of thread groups.

    Raises:
        ConfigError: with the key inside the entry.
    """
    profile_name = name(key)
    if isinstance(value, list):
        return parse_profile(value, profile_name)
    data = mapping(value)
    about = {key: part for key, part in data.items() if key in _PROVENANCE}
    meanings: dict[str, Any] = build(dict, _PROVENANCE, about)
    profile = parse_profile({key: part for key, part in data.items() if key not in about}, profile_name)
    return replace(profile, provenance=Provenance(node_type=meanings.pop("cpu_model", None), **meanings))


def dump_entry(profile: Profile) -> dict[str, Any]:
    """Return the mapping that `parse_entry` reads back as this profile."""
    about = profile.provenance
    plain = {key: about.node_type if key == "cpu_model" else getattr(about, key) for key in _PROVENANCE}
    plain |= {"interval": list(about.interval or ()), "strain": dict(about.strain), "inputs": dict(about.inputs)}
    return dump_profile(profile) | {key: part for key, part in plain.items() if part or (key, part) == ("spread", 0.0)}


def parse_profiles(data: dict[str, Any], source: str) -> dict[str, Profile]:
    """Return name -> profile of a mapping with `schema` and `profiles`.

    Args:
        data: the document.
        source: the file's name, for errors.

    Raises:
        ConfigError: naming file, key, what was found and what is allowed.
    """

    def entries(value: Any) -> dict[str, Profile]:
        return {key: inside(shown(key), parse_entry, key, part) for key, part in mapping(value).items()}

    data = check_schema(data, "profiles", source)
    return from_source(source, build, lambda profiles: profiles, {"profiles": entries}, data, ("profiles",))


def read_profiles(path: str | Path) -> dict[str, Profile]:
    """Return name -> profile of a YAML or JSON file. Raises ConfigError, see `parse_profiles`."""
    return parse_profiles(read_document(path), str(path))


def profile_doubts(path: str | Path) -> tuple[str, ...]:
    """Return a sentence for each implausible quantity that a person wrote into a file of profiles.

    What was measured or predicted is a program's, and not doubted. Raises ConfigError.
    """
    doubts, entries = JobDoubts(), read_document(path).get("profiles")
    for key, value in entries.items() if isinstance(entries, dict) else ():
        if not isinstance(value, dict) or value.get("source", "given") == "given":
            doubts.read_profile(str(key), value)
    return doubts.sentences(str(path), "profiles")


def dump_profiles(profiles: Mapping[str, Profile]) -> dict[str, Any]:
    """Return the mapping that `parse_profiles` reads back as these profiles."""
    return {"schema": SCHEMA, "profiles": {name: dump_entry(profile) for name, profile in profiles.items()}}


def write_text(profiles: Mapping[str, Profile], *, as_json: bool = False) -> str:
    """Return the file's text, YAML or JSON."""
    data = dump_profiles(profiles)
    if as_json:
        return json.dumps(data, indent=2) + "\n"
    import yaml

    return yaml.safe_dump(data, sort_keys=False, width=110, allow_unicode=True)
