"""What the daemon's account may do, and whether the books are kept.

Rule: pure. As seen on 22.05: an operator may write ReqNodeList, StartTime and Comment of any job, AdminComment only an
administrator; a user only those of their own.
Source: sacctmgr(1), AdminLevel; slurm.conf(5), PrivateData, AccountingStorageType.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...findings import NOTE, OK, PROBLEM, WARNING, Finding
from ..handover import Selection
from .asked import Asked


def findings(asked: Asked, selection: Selection) -> Iterator[Finding]:
    """Rights first."""
    yield _rights(asked)
    yield from _books(asked)
    hidden = [word for word in asked.words("PrivateData") if word in ("jobs", "nodes", "all")]
    if hidden:
        yield Finding(NOTE, "privacy", f"PrivateData={','.join(hidden)}: users see their own; an operator sees all, "
                      "and `pilotfish explain` on the daemon's socket tells whoever may use that socket")  # fmt: skip


def _rights(asked: Asked) -> Finding:
    user, level = asked.user, asked.level
    make = (f"sacctmgr add user {user} account=ACCOUNT AdminLevel=Operator",)
    if user in ("root", asked.slurm_user):
        make = ("sacctmgr add user pilotfish account=ACCOUNT AdminLevel=Operator",)
        says = f"{user} may do everything here; the daemon needs only an operator: examine that account with --user"
        return Finding(WARNING, "rights", says, make)
    if level == "Administrator":
        says = f"{user} is an administrator: more than is needed, unless nodes are powered down (power.save)"
        return Finding(OK, "rights", says)
    if level == "Operator":
        return Finding(OK, "rights", f"{user} is an operator: it may place jobs of users, and no more is needed")
    if "accounting" in asked.errors:
        return Finding(WARNING, "rights", f"whether {user} is an operator is not known: accounting does not answer")
    if not asked.setting("AccountingStorageType").endswith("slurmdbd"):
        says = f"there is no accounting, so nobody can be an operator: only root and {asked.slurm_user} may place jobs"
        return Finding(PROBLEM, "rights", says)
    if level:
        make = (f"sacctmgr modify user where name={user} set AdminLevel=Operator",)
    says = f"{user} is no operator: it may place nobody's jobs but its own"
    return Finding(PROBLEM, "rights", says, make)


def _books(asked: Asked) -> Iterator[Finding]:
    age = asked.seconds("MinJobAge", 300.0)
    if error := asked.errors.get("accounting"):
        yield Finding(WARNING, "accounting", f"it does not answer: {error}", ("systemctl status slurmdbd",))
    elif asked.setting("AccountingStorageType").endswith("slurmdbd"):
        yield Finding(OK, "accounting", "slurmdbd answers: how a job ended is known also after it left the queue")
    else:
        level = WARNING if age < 60 else NOTE
        yield Finding(level, "accounting", f"there is none: how a job ended is known for {age:.0f} s (MinJobAge); a "
                      "daemon that is away for longer does not learn it")  # fmt: skip
