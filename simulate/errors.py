"""Errors, sorted by who must act on them. "It does not fit, because ..." is a value, never an exception."""

from __future__ import annotations


class PilotfishError(Exception):
    """Base of all errors that pilotfish raises on purpose; its text is one sentence for a person."""


class ConfigError(PilotfishError):
    """A file or option that an operator or user wrote is wrong.

    Args:
        source: the file (or option) that is wrong.
        key: where in it: a dotted key, a line number, or "" for the whole file.
        problem: what was found.
        allowed: what would have been right; may be empty.
    """

    def __init__(self, source: str, key: str, problem: str, allowed: str = "") -> None:
        self.source, self.key, self.problem, self.allowed = source, key, problem, allowed
        where = f"{source}: {key}" if key else source
        super().__init__(f"{where}: {problem}" + (f" (allowed: {allowed})" if allowed else ""))


class InvalidJobError(PilotfishError):
    """A job or workflow that can never run as it was asked for; the user must act."""


class InvariantError(PilotfishError):
    """The product broke one of its own rules: our bug, worth a report."""


class PolicyError(PilotfishError):
    """A policy of a user's own raised an exception, which is then the cause, or decided what cannot be carried out.

    Args:
        policy: its name.
        where: at which call, of which job.
        problem: what was found.
        allowed: what would have been right; may be empty.
    """

    def __init__(self, policy: str, where: str, problem: str, allowed: str = "") -> None:
        self.policy, self.where, self.problem, self.allowed = policy, where, problem, allowed
        super().__init__(f"policy {policy}: {where}: {problem}" + (f" (allowed: {allowed})" if allowed else ""))
