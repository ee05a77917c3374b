"""Whether slurmrestd would serve us: what the doctor asks of it.

Rule: it only reads, as the daemon would; what is not right with REST is a warning, because commands do in its place.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from ....simulate.errors import ConfigError
from ...base import AdapterError
from ...findings import NOTE, OK, WARNING, Finding
from ..fallback import Either
from .transport import ByRest


def findings(make: Callable[[], ByRest], commands: Either) -> Iterator[Finding]:
    """What was found of the slurmrestd that `make` connects to, beside what `commands` tell."""
    try:
        rest = make()
        yield from (Finding(NOTE, "rest", note) for note in rest.notes)
        yield from _ask(rest, commands)
        rest.close()
    except (AdapterError, ConfigError) as error:
        yield Finding(
            WARNING, "rest", f"{error}; Slurm is asked by its commands meanwhile", ("systemctl status slurmrestd",)
        )


def _ask(rest: ByRest, commands: Either) -> Iterator[Finding]:
    before = {job.id for job in commands.jobs()}
    began = time.monotonic()
    told = {job.id for job in rest.jobs()}
    took = time.monotonic() - began
    hidden = (before & {job.id for job in commands.jobs()}) - told
    yield Finding(OK, "rest", f"slurmrestd {rest.version} tells of {len(told)} jobs in {1e3 * took:.0f} ms")
    if hidden:
        says = f"slurmrestd hides {len(hidden)} of {len(before)} jobs from the token's user: is that an operator?"
        yield Finding(WARNING, "rest", says, ("sacctmgr modify user NAME set AdminLevel=Operator",))
    if cannot := rest.version.cannot_write():
        yield Finding(NOTE, "rest", f"slurmrestd {rest.version} cannot write {', '.join(cannot)}; scontrol does")
