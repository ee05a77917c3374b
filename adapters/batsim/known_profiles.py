"""The profiles that jobs under a decision component may have: those of the workloads, and those that it registers.

Rule: a job has the profiles of its own workload; in protocol 5 also those of another one, as WORKLOAD!NAME.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from ...formats.batsim.kill_progress import JobProgress, progress_of
from ...formats.batsim.profiles import BatsimProfile, parse_profile
from ...formats.batsim.runs import BatsimRun, Runs
from ...formats.documents.document_errors import bad, inside
from ...simulate.model.programs import Part

Data = Mapping[str, Any]


class KnownProfiles:
    """All profiles, and how long they run.

    Args:
        profiles: those of the workloads, by workload and name.
        files: file of each workload, whose folder has those that profiles name.
        speeds: flop/s of all resources; () = unknown.
        storages: names of the storages in the machine's network; None = the machine has no network.
        across: a job may have the profile of another workload.
    """

    def __init__(
        self, profiles: Mapping[str, Mapping[str, Any]], files: Mapping[str, str], speeds: tuple[float, ...],
        storages: Collection[str] | None, *, across: bool,
    ) -> None:  # fmt: skip
        self._profiles = {workload: dict(by_name) for workload, by_name in profiles.items()}
        self._files, self._speeds, self._storages = files, speeds, storages
        self._across, self._parsed, self._runs = across, dict[str, dict[str, BatsimProfile]](), dict[str, Runs]()

    def _home_of(self, job_id: str, profile: str) -> tuple[str, str]:
        submitted_in = job_id.partition("!")[0]
        workload, mark, name = profile.partition("!")
        is_foreign = mark and self._across and profile not in self._profiles.get(submitted_in, {})
        return (workload, name) if is_foreign else (submitted_in, profile)

    def find(self, job_id: str, profile: str) -> Data | None:
        """Return the mapping of a job's profile; None: it is not known."""
        workload, name = self._home_of(job_id, profile)
        return self._profiles.get(workload, {}).get(name)

    def run(self, job_id: str, profile: str, size: int) -> BatsimRun:
        """Return how a job runs. Raises ConfigError: its profile is not for that many resources, or this machine."""
        workload, name = self._home_of(job_id, profile)
        return self._runs_of(workload).run(name, size)

    def work(self, job_id: str, profile: str, size: int) -> tuple[BatsimRun, Part]:
        """Return how a job runs, and what it does. Raises ConfigError, as `run`."""
        workload, name = self._home_of(job_id, profile)
        return self.run(job_id, profile, size), self._runs_of(workload).done(name, size).part

    def progress(self, job_id: str, profile: str, size: int, seconds: float, phases: float | None) -> JobProgress:
        """Return how far a job was after some seconds or, if that is known, phases."""
        workload, name_at_home = self._home_of(job_id, profile)
        runs = self._runs_of(workload)
        parsed = self._parsed[workload]

        def leaves(name: str) -> float:
            if name not in counts:
                parts = parsed[name].sequence
                counts[name] = parsed[name].repeat * sum(map(leaves, parts)) if parts else 1.0
            return counts[name]

        counts = dict[str, float]()
        progress, amount = (seconds, lambda name: runs.run(name, size).seconds) if phases is None else (phases, leaves)
        return progress_of(name_at_home, progress, lambda name: parsed[name].sequence, amount)

    def _runs_of(self, workload: str) -> Runs:
        if workload not in self._runs:
            profiles, folder = self._profiles.setdefault(workload, {}), Path(self._files.get(workload, "")).parent
            self._parsed[workload] = {name: parse_profile(profile) for name, profile in profiles.items()}
            self._runs[workload] = Runs(self._parsed[workload], folder, self._speeds, self._storages)
        return self._runs[workload]

    def register(self, workload: str, name: str, profile: Data) -> None:
        """Add a profile. Raises ConfigError: it is wrong, or differs from one of that name."""
        profiles = self._profiles.setdefault(workload, {})
        parsed = inside("profile", parse_profile, dict(profile))
        if profiles.get(name, profile) != profile:
            raise bad(f"profile {name!r:.60} exists already, and differs", "new names")
        profiles[name] = dict(profile)
        if workload in self._runs:
            self._parsed[workload].setdefault(name, parsed)
