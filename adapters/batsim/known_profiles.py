"""The profiles that jobs under a decision component may have: those of the workloads, and those that it registers.

Rule: a job has the profiles of its own workload; in protocol 5 also those of another one, as WORKLOAD!NAME.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...formats.batsim.profiles import parse_profile
from ...formats.batsim.runs import Run, Runs
from ...formats.document_errors import bad, inside

Data = Mapping[str, Any]


class KnownProfiles:
    """All profiles, and how long they run.

    Args:
        profiles: those of the workloads, by workload and name.
        speeds: flop/s of all resources; () = unknown.
        across: a job may have the profile of another workload.
    """

    def __init__(self, profiles: Mapping[str, Mapping[str, Any]], speeds: tuple[float, ...], *, across: bool) -> None:
        self._known = {workload: dict(one) for workload, one in profiles.items()}
        self._speeds, self._across, self._runs = speeds, across, dict[str, Runs]()

    def _home_of(self, job_id: str, profile: str) -> tuple[str, str]:
        own = job_id.partition("!")[0]
        workload, mark, name = profile.partition("!")
        other = mark and self._across and profile not in self._known.get(own, {})
        return (workload, name) if other else (own, profile)

    def find(self, job_id: str, profile: str) -> Data | None:
        """Return the mapping of a job's profile; None: it is not known."""
        workload, name = self._home_of(job_id, profile)
        return self._known.get(workload, {}).get(name)

    def run(self, job_id: str, profile: str, size: int) -> Run:
        """Return how a job runs. Raises ConfigError: its profile is not for that many resources."""
        workload, name = self._home_of(job_id, profile)
        if workload not in self._runs:
            parsed = {each: parse_profile(one) for each, one in self._known.get(workload, {}).items()}
            self._runs[workload] = Runs(parsed, Path(), self._speeds)
        return self._runs[workload].run(name, size)

    def register(self, workload: str, name: str, profile: Data) -> None:
        """Add a profile. Raises ConfigError: it is wrong, or differs from one of that name."""
        known = self._known.setdefault(workload, {})
        inside("profile", parse_profile, dict(profile))
        if known.get(name, profile) != profile:
            raise bad(f"profile {name!r:.60} is there already, and differs", "new names")
        known[name] = dict(profile)
        self._runs.pop(workload, None)
