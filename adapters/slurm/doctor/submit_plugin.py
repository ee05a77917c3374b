"""The site's job_submit plugin: whether ours is there, whether it holds jobs back, and whether anybody takes them.

Rule: pure; what the file says goes before what it is called.
Source: docs/slurm/job_submit.lua; Slurm 22.05: with `lua` in JobSubmitPlugins and no file slurmctld does not start; one
that runs goes on with the script that it has read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...findings import NOTE, OK, PROBLEM, WARNING, Finding, Service
from .asked import Asked

NAME = "job_submit.lua"
_HOLD = re.compile(r"^local HOLD_S = (\d+)", re.MULTILINE)
UNDO = ("JobSubmitPlugins=   # without lua, in slurm.conf; only then remove the file", "scontrol reconfigure")


def findings(asked: Asked, service: Service) -> Iterator[Finding]:
    """Nothing where no lua is used."""
    text = asked.files.get(NAME)
    if "lua" not in asked.words("JobSubmitPlugins"):
        if text is not None and "pilotfish:hold" in text:
            says = f"{NAME} is there and not in use (JobSubmitPlugins has no lua): it holds nothing"
            yield Finding(NOTE, "job_submit", says, ("JobSubmitPlugins=lua   # in slurm.conf", "scontrol reconfigure"))
        return
    if text is None:
        yield _unseen(asked)
    elif "pilotfish:hold" not in text:
        yield Finding(OK, "job_submit", f"the site's own {NAME} does not hold jobs for pilotfish")
    else:
        yield _ours(text, service)


def _unseen(asked: Asked) -> Finding:
    if asked.at_controller and NAME not in asked.unread:
        says = f"JobSubmitPlugins=lua, and there is no {NAME} beside slurm.conf: slurmctld will not start again"
        return Finding(PROBLEM, "job_submit", says, UNDO)
    says = f"JobSubmitPlugins=lua, and {NAME} cannot be read from here: undo it first, if it holds jobs for pilotfish"
    return Finding(NOTE, "job_submit", says)


def _ours(text: str, service: Service) -> Finding:
    found = _HOLD.search(text)
    hold = f"{found[1]} s" if found else "its hold"
    if service.mode == "":
        says = f"{NAME} holds jobs for pilotfish, and no daemon answers: each may wait {hold} in vain"
        return Finding(PROBLEM, "job_submit", says, ("systemctl start pilotfishd", *UNDO))
    if service.dry_run or service.mode == "dry-run":
        says = f"{NAME} holds jobs for pilotfish, whose dry run places none: each may wait {hold} in vain"
        return Finding(WARNING, "job_submit", says, ("dry_run: false   # in pilotfish.yaml", *UNDO))
    if service.mode is None:
        says = f"{NAME} holds jobs for pilotfish for up to {hold}; --config tells whether a daemon takes them"
        return Finding(NOTE, "job_submit", says)
    return Finding(OK, "job_submit", f"{NAME} holds jobs for pilotfish for up to {hold}, and the daemon answers")
