"""The profiles file (schema pilotfish/profiles/v1): `profiles: {NAME: {...}}` to Profile values and back.

Rule: an entry is a profile as written in a workflow, with its provenance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..formats.document_errors import found, from_source, inside, shown
from ..formats.files import check_schema, read_document
from ..formats.profile import dump_profile, parse_profile
from ..formats.quantities import Convert, number, whole
from ..formats.schema import build, listed, mapping, name, text
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


#: Key in the file -> (field of Provenance, its converter).
_PROVENANCE: dict[str, tuple[str, Convert[Any]]] = {
    "source": ("source", _source),
    "date": ("date", _text),
    "runs": ("runs", whole(0, 10**9)),
    "cpu_model": ("node_type", _text),
    "note": ("note", _text),
    "interval": ("interval", _interval),
    "spread": ("spread", number(0, 1000)),
    "strain": ("strain", _strain),
}


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
    table = {key: convert for key, (_, convert) in _PROVENANCE.items()}
    meanings: dict[str, Any] = build(dict, table, about)
    profile = parse_profile({key: part for key, part in data.items() if key not in about}, profile_name)
    return replace(profile, provenance=Provenance(**{_PROVENANCE[key][0]: part for key, part in meanings.items()}))


def dump_entry(profile: Profile) -> dict[str, Any]:
    """Return the mapping that `parse_entry` reads back as this profile."""
    about = {key: getattr(profile.provenance, field) for key, (field, _) in _PROVENANCE.items()}
    plain = {key: list(part) if isinstance(part, tuple) else part for key, part in about.items()}
    plain["strain"] = dict(profile.provenance.strain)
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

    def whole_file(value: Any) -> dict[str, Profile]:
        parts: dict[str, dict[str, Profile]] = build(dict, {"profiles": entries}, value, ("profiles",))
        return parts["profiles"]

    return from_source(source, whole_file, check_schema(data, "profiles", source))


def read_profiles(path: str | Path) -> dict[str, Profile]:
    """Return name -> profile of a YAML or JSON file. Raises ConfigError, see `parse_profiles`."""
    return parse_profiles(read_document(path), str(path))


def dump_profiles(profiles: Mapping[str, Profile]) -> dict[str, Any]:
    """Return the mapping that `parse_profiles` reads back as these profiles."""
    return {"schema": SCHEMA, "profiles": {name: dump_entry(profile) for name, profile in profiles.items()}}


def write_text(profiles: Mapping[str, Profile], *, as_json: bool = False) -> str:
    """Return the file's text, YAML or JSON."""
    data = dump_profiles(profiles)
    if as_json:
        import json

        return json.dumps(data, indent=2) + "\n"
    import yaml

    return yaml.safe_dump(data, sort_keys=False, width=110, allow_unicode=True)
