"""The daemon as the policy of a replay, with a name like a queue policy; this module imports nothing of the daemon."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...daemon.config import DaemonConfig


@dataclass(frozen=True, slots=True)
class DaemonPolicy:
    """The control loop of the service, which decides in place of a queue policy.

    Args:
        file: of its configuration; None: it is the default, with one mapping policy.
        config: the configuration.
        runtimes: what its planner may know of run times, one of `known_run_times.RUNTIMES`.
    """

    file: Path | None
    config: DaemonConfig
    runtimes: str


@dataclass(frozen=True, slots=True)
class NamedDaemon:
    """The daemon with its name in summaries, as `NamedPolicy` is for a queue policy."""

    policy: DaemonPolicy
    compiled: bool = False

    @property
    def text(self) -> str:
        """The name."""
        policy = self.policy.config.policy
        return f"daemon:{policy}" if self.policy.file else policy

    @property
    def file(self) -> Path | None:
        """The file of its configuration, if any."""
        return self.policy.file
