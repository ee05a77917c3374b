"""Profiles as people write them: the `profile` of a job in a workflow file, and entries of a profile store.

Rule: a profile is a mapping of one thread group, a list of thread groups, or a mapping with `groups` and keys of the
whole job.
"""

from __future__ import annotations

from typing import Any

from ..simulate.model.job import Distribution, Phase, Profile, ThreadGroup
from .documents.document_errors import bad, found, inside
from .documents.plausible import LEAST_RATE
from .documents.quantities import (
    Convert,
    above_zero,
    checked_number,
    number,
    parse_duration,
    parse_rate,
    parse_size,
    whole,
)
from .documents.schema import build, dump, listed, mapping, name, one_of
from .workflows.job_rules import DISTRIBUTIONS

ALLOWED_DEMAND = "seconds above zero, below 1e18, or {dist: lognormal|normal|uniform|empirical, ...}"
_SECONDS = above_zero(parse_duration)
_DISTRIBUTION: dict[str, Convert[Any]] = {
    "dist": name,
    "mean": _SECONDS,
    "cv": number(0, 100),
    "low": parse_duration,
    "high": _SECONDS,
    "values": listed(_SECONDS, least=1),
}
_UTILISATION = number(0, 1, above=True)
_PHASE: dict[str, Convert[Any]] = {
    "share": number(0, 1, above=True),
    "utilisation": _UTILISATION,
    "bandwidth": parse_rate,
}


def _service_demand(value: Any) -> float | Distribution:
    if not isinstance(value, dict):
        return above_zero(lambda given: checked_number(given, ALLOWED_DEMAND))(value)
    kind = inside("dist", one_of, value.get("dist"), DISTRIBUTIONS)
    keys = ("dist", *DISTRIBUTIONS[kind])
    distribution = build(Distribution, {key: _DISTRIBUTION[key] for key in keys}, value, keys)
    if kind == "uniform" and distribution.high <= distribution.low:
        raise bad(found(distribution.high), f"more than low, {distribution.low:g}", key="high")
    return distribution


def _phases(value: Any) -> tuple[Phase, ...]:
    phases = listed(_phase, least=1)(value)
    total = sum(phase.share for phase in phases)
    if abs(total - 1) > 1e-6:
        raise bad(f"shares add up to {total:g}", "shares that add up to 1")
    return phases


def _phase(value: Any) -> Phase:
    data = mapping(value)
    return build(Phase, _PHASE, {"utilisation": 1, "bandwidth": 0, **data}, ("share",))


_THREADS = whole(1, 1_000_000)
_GROUP: dict[str, Convert[Any]] = {
    "count": _THREADS,
    "service_demand": _service_demand,
    "utilisation": _UTILISATION,
    "utilisation_std": number(0, 1),
    "bandwidth": parse_rate,
    "phases": _phases,
}
_WHOLE_JOB: dict[str, Convert[Any]] = {
    "measured_on": name,
    "memory": parse_size,
    "instructions": number(above=True),
    "ipc": number(0, 100, above=True),
    "io_bytes": parse_size,
    "power_watts": number(0, 1e9),
}


def _group(value: Any) -> ThreadGroup:
    return _checked_group(**build(dict[str, Any], _GROUP, value, ("service_demand",)))


def _checked_group(count: int = 1, **parts: Any) -> ThreadGroup:
    for key in ("utilisation", "bandwidth"):
        if "phases" in parts and key in parts:
            raise bad("given together with phases", "in each phase instead", key=key)
    return ThreadGroup(count, **parts)


_groups = listed(_group, least=1)
#: Keys of a profile that has one thread group, which are those of the group and of the job.
_FLAT = {"threads": _THREADS, **_GROUP, **_WHOLE_JOB}
del _FLAT["count"]


def parse_profile(value: Any, profile_name: str = "") -> Profile:
    """Return the profile that a mapping or a list of thread groups describes (schema pilotfish/workflow/v1, `profile`).

    Args:
        value: {threads, service_demand, ...}, [{count, service_demand, ...}, ...] or {groups: [...], ...}.
        profile_name: its name in a store; empty for an inline profile.

    Raises:
        ConfigError: with the key inside the profile; the caller adds file and place (see `document_errors.inside`).
    """
    if isinstance(value, list):
        return Profile(_groups(value), profile_name)
    if "groups" in mapping(value):
        table = {"groups": _groups, **_WHOLE_JOB}
        return build(Profile, table, value, ("groups",), name=profile_name)
    parts: dict[str, Any] = build(dict, _FLAT, value, ("service_demand",))
    whole_job = {key: parts.pop(key) for key in _WHOLE_JOB if key in parts}
    group = _checked_group(parts.pop("threads", 1), **parts)
    return Profile((group,), profile_name, **whole_job)


def dump_profile(profile: Profile) -> dict[str, Any]:
    """Return the mapping that `parse_profile` reads back as this profile, without its name and provenance."""
    values = {key: getattr(profile, key) for key in _WHOLE_JOB}
    data = {key: part for key, part in values.items() if part is not None and part != 0}
    if len(profile.groups) > 1:
        return {"groups": [_dump(group) for group in profile.groups], **data}
    group = _dump(profile.groups[0])
    return {"threads": group.pop("count"), **group, **data}


def _dump(group: ThreadGroup) -> dict[str, Any]:
    data, demand = dump(group), group.service_demand
    for part in (data, *data.get("phases", ())):
        if 0 < part.get("bandwidth", 0) < LEAST_RATE:  # a bare number as small as this is taken for a forgotten unit
            part["bandwidth"] = f"{part['bandwidth']!r}B/s"
    if isinstance(demand, Distribution):
        data["service_demand"] = {key: getattr(demand, key) for key in ("dist", *DISTRIBUTIONS[demand.dist])}
    return data
