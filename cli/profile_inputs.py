"""What the commands of `pilotfish profile` read from the command line: names, CPUs."""

from __future__ import annotations

import os

from .usage_errors import bad, value_of


def allowed_cpus(written: str | None) -> tuple[int, ...] | None:
    """Return the CPUs of a list such as 0,2-3; None for None. Raises typer.BadParameter."""
    if written is None:
        return None
    from ..formats.hostlist import parse_cpus

    with value_of("--cpus"):
        cpus = parse_cpus(written)
    usable = os.sched_getaffinity(0)
    if not set(cpus) <= usable:
        raise bad("--cpus", f"{written} (allowed: {','.join(map(str, sorted(usable)))})")
    return cpus


def profile_name(command: list[str], name: str | None, option: str = "--name") -> str:
    """Return the name of a command's profile: the given one, or the one by which a job with this command finds it.

    Args:
        command: the command and its arguments.
        name: as given; None = made from the command.
        option: the option that gave it.

    Raises:
        typer.BadParameter: it is no name.
    """
    if name is None:
        from ..profiles.identity import signature
        from ..simulate.model.job import DEFAULT_PROFILE, Job

        made = signature(Job("job", DEFAULT_PROFILE, command=tuple(command)))
        assert made is not None
        return made
    from ..profiles.store import check_name

    with value_of(option):
        check_name(name)
    return name
