"""What the daemon's account may do and see, and whether the books are kept.

Rule: pure. As seen on 22.05: an operator may write ReqNodeList, StartTime and Comment of any job, AdminComment only an
administrator; a user only those of their own jobs. A change of AdminLevel holds at once.
Source: sacctmgr(1), AdminLevel; slurm.conf(5): PrivateData, AccountingStorageType, -Enforce, AccountingStoreFlags.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...findings import NOTE, OK, PROBLEM, WARNING, Finding, Service
from ..handover import Selection
from .asked import Asked

#: with a shorter MinJobAge, and no accounting, a daemon that is started anew does not learn how jobs ended, seconds
SHORT_S = 60.0


def findings(asked: Asked, selection: Selection, service: Service) -> Iterator[Finding]:
    """Rights first."""
    yield _rights(asked)
    yield from _privacy(asked)
    if service.power_save and not (asked.rules_all or asked.level == "Administrator"):
        says = f"power.save is set, and only an administrator may power nodes down: {asked.user} is none"
        make = (f"sacctmgr modify user where name={asked.user} set AdminLevel=Administrator",)
        yield Finding(PROBLEM, "power", says, make)
    yield from _books(asked)


def _rights(asked: Asked) -> Finding:
    user, level = asked.user, asked.level
    if asked.rules_all:
        says = f"{user} may do everything here, and pilotfish needs only an operator: examine that account with --user"
        make = ("sacctmgr add user pilotfish account=ACCOUNT AdminLevel=Operator",) if asked.has_accounting else ()
        return Finding(NOTE, "rights", says if make else f"{user} may place jobs; without accounting there are no "
                       f"operators, and nobody else but {asked.slurm_user} may", make)  # fmt: skip
    if level == "Administrator":
        says = f"{user} is an administrator: more than is needed, unless nodes are powered down (power.save)"
        return Finding(OK, "rights", says)
    if level == "Operator":
        says = f"{user} is an operator: it may place jobs of users, and marks them in Comment; no more is needed"
        return Finding(OK, "rights", says)
    if "accounting" in asked.errors:
        return Finding(WARNING, "rights", f"whether {user} is an operator is not known: accounting does not answer")
    if not asked.has_accounting:
        says = f"there is no accounting, so nobody can be an operator: only root and {asked.slurm_user} may place jobs"
        return Finding(PROBLEM, "rights", says)
    if level:
        make = (f"sacctmgr modify user where name={user} set AdminLevel=Operator",)
        says = f"{user} is no operator: Slurm refuses it every job but its own"
        return Finding(PROBLEM, "rights", says, make)
    make = (f"sacctmgr add user {user} account=ACCOUNT AdminLevel=Operator",)
    return Finding(PROBLEM, "rights", f"accounting shows no user {user}: Slurm refuses it every job but its own", make)


def _privacy(asked: Asked) -> Iterator[Finding]:
    hidden = [word for word in asked.words("PrivateData") if word in ("jobs", "nodes", "partitions", "all")]
    if not hidden:
        return
    text = f"PrivateData={','.join(hidden)}"
    if asked.rules_all or asked.level in ("Operator", "Administrator"):
        yield Finding(NOTE, "privacy", f"{text}: users see their own; {asked.user} sees all, and `pilotfish explain` "
                      "tells whoever may use the daemon's socket")  # fmt: skip
    else:
        yield Finding(PROBLEM, "privacy", f"{text}: {asked.user} does not see what runs on the nodes, so no forecast "
                      "can be right; an operator sees all")  # fmt: skip


def _books(asked: Asked) -> Iterator[Finding]:
    age = asked.seconds("MinJobAge", 300.0)
    if error := asked.errors.get("accounting"):
        says = f"it does not answer, so how a job ended is known for {age:.0f} s (MinJobAge): {error}"
        yield Finding(WARNING, "accounting", says, ("systemctl status slurmdbd",))
        return
    if not asked.has_accounting:
        level = WARNING if age < SHORT_S else NOTE
        yield Finding(level, "accounting", f"there is none: how a job ended is known for {age:.0f} s (MinJobAge); a "
                      "daemon that is away for longer does not learn it")  # fmt: skip
        return
    yield Finding(OK, "accounting", "slurmdbd answers: how a job ended is known also after it left the queue")
    if "job_comment" not in asked.words("AccountingStoreFlags"):
        says = "comments are not kept: sacct does not tell afterwards which jobs were handed over"
        yield Finding(NOTE, "accounting", says, ("AccountingStoreFlags=job_comment   # in slurm.conf",))
    enforced = [word for word in asked.words("AccountingStorageEnforce") if word != "nosteps"]
    if enforced and not asked.accounts and not asked.rules_all:
        says = f"{asked.user} has no account (AccountingStorageEnforce={','.join(enforced)}): jobs that are submitted "
        make = (f"sacctmgr add user {asked.user} account=ACCOUNT",)
        yield Finding(NOTE, "accounting", says + "to pilotfish itself are refused; placing others' needs none", make)
