"""Check the rights of the daemon's account, and that accounting records the ends of jobs.

Rule: pure. Observed on 22.05: an operator may write ReqNodeList and StartTime of any job, a user only those of their
own. A change of AdminLevel takes effect at once. slurmctld looks a user's id up when the account is added; if there is
no such Unix user, the rights do not hold.
Source: sacctmgr(1), AdminLevel; slurm.conf(5): PrivateData, AccountingStorageType, -Enforce, AccountingStoreFlags.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...findings import NOTE, OK, PROBLEM, WARNING, Finding, ServiceState
from ..handed_over.ownership import SlurmSelection
from .questions import Answers
from .setup import CREATE_USER

#: With a shorter MinJobAge and no accounting, a restarted daemon does not learn how jobs ended, seconds.
SHORT_S = 60.0


def findings(answers: Answers, selection: SlurmSelection, service: ServiceState) -> Iterator[Finding]:
    """Yield rights, privacy, power and accounting."""
    operates = answers.rules_all or answers.level in ("Operator", "Administrator")
    if service.account not in ("", answers.user) and not operates:
        message = f"{answers.user} need not be an operator; the account of the service, {service.account}, must be one"
        yield Finding(NOTE, "rights", message, (f"pilotfish doctor --user {service.account}",))
        yield from _accounting(answers)
        return
    yield _rights(answers)
    yield from _privacy(answers)
    if service.power_save and not (answers.rules_all or answers.level == "Administrator"):
        message = f"power.save is set, but {answers.user} is not an administrator and may not power nodes down"
        make = (f"sacctmgr modify user where name={answers.user} set AdminLevel=Administrator",)
        yield Finding(PROBLEM, "power", message, make)
    yield from _accounting(answers)


def _rights(answers: Answers) -> Finding:
    user, level = answers.user, answers.level
    add = f"sacctmgr add user {user} account=ACCOUNT AdminLevel=Operator"
    remedy = (f"sacctmgr delete user name={user}", add) if level else (add,)
    if answers.rules_all:
        message = (
            f"{user} may do everything here, and pilotfish needs only an operator: examine that account with --user"
        )
        make = ("sacctmgr add user pilotfish account=ACCOUNT AdminLevel=Operator",) if answers.has_accounting else ()
        limits = f"{user} may place jobs; without accounting no other user may, except {answers.slurm_user}"
        return Finding(NOTE, "rights", message if make else limits, make)
    if answers.uid is None:
        create = CREATE_USER if user == "pilotfish" else (f"useradd --system {user}",)
        message = f"there is no Unix user {user} here; create it before its account, because Slurm then looks up its id"
        return Finding(PROBLEM, "rights", message, (*create, *(remedy if answers.has_accounting else ())))
    if level in ("Operator", "Administrator") and answers.slurm_uid not in (None, answers.uid):
        message = (f"slurmctld does not know that {user} has the user id {answers.uid}, so its rights do not hold: the "
                "account was added before the Unix user")  # fmt: skip
        return Finding(PROBLEM, "rights", message, remedy)
    if level == "Administrator":
        message = f"{user} is an administrator: more than is needed, unless nodes are powered down (power.save)"
        return Finding(OK, "rights", message)
    if level == "Operator":
        return Finding(OK, "rights", f"{user} is an operator: it may place users' jobs")
    if "accounting" in answers.errors:
        return Finding(WARNING, "rights", f"whether {user} is an operator is unknown: accounting does not answer")
    if not answers.has_accounting:
        message = f"without accounting there are no operators: only root and {answers.slurm_user} may place jobs"
        return Finding(PROBLEM, "rights", message)
    if hidden := _hidden(answers, "users", "accounts") if not level and not answers.sees_all else "":
        return Finding(NOTE, "rights", f"{hidden}: whether {user} is an operator is not shown to you")
    if level:
        make = (f"sacctmgr modify user where name={user} set AdminLevel=Operator",)
        return Finding(PROBLEM, "rights", f"{user} is not an operator: Slurm lets it change only its own jobs", make)
    return Finding(PROBLEM, "rights", f"accounting has no user {user}: Slurm lets it change only its own jobs", remedy)


def _hidden(answers: Answers, *kinds: str) -> str:
    """Return the setting that hides some kinds of data from ordinary users, or ""."""
    words = [word for word in answers.config.words("PrivateData") if word in (*kinds, "all")]
    return f"PrivateData={','.join(words)}" if words else ""


def _privacy(answers: Answers) -> Iterator[Finding]:
    text = _hidden(answers, "jobs", "nodes", "partitions")
    if not text:
        return
    if answers.rules_all or answers.level in ("Operator", "Administrator"):
        yield Finding(NOTE, "privacy", f"{text}: users see only their own; {answers.user} sees all, and `pilotfish "
                      "explain` shows it to every user of the daemon's socket")  # fmt: skip
    else:
        yield Finding(PROBLEM, "privacy", f"{text}: {answers.user} does not see what runs on the nodes, so forecasts "
                      "are wrong; an operator sees all")  # fmt: skip


def _accounting(answers: Answers) -> Iterator[Finding]:
    age = answers.seconds("MinJobAge", 300.0)
    if error := answers.errors.get("accounting"):
        message = f"it does not answer, so how a job ended is known for {age:.0f} s (MinJobAge): {error}"
        yield Finding(WARNING, "accounting", message, ("systemctl status slurmdbd",))
        return
    if not answers.has_accounting:
        level = WARNING if age < SHORT_S else NOTE
        yield Finding(level, "accounting", f"not configured: how a job ended is known for {age:.0f} s (MinJobAge); a "
                      "daemon that is away for longer does not learn it")  # fmt: skip
        return
    yield Finding(OK, "accounting", "slurmdbd answers: how a job ended is known after it has left the queue")
    if "job_comment" not in answers.config.words("AccountingStoreFlags"):
        message = "comments are not kept: sacct does not show afterwards which jobs were handed over"
        yield Finding(NOTE, "accounting", message, ("AccountingStoreFlags=job_comment   # in slurm.conf",))
    enforced = [word for word in answers.config.words("AccountingStorageEnforce") if word != "nosteps"]
    if enforced and not answers.accounts and not answers.rules_all:
        message = (f"{answers.user} has no account (AccountingStorageEnforce={','.join(enforced)}): jobs submitted to "
                "pilotfish itself are refused; placing users' jobs needs none")  # fmt: skip
        yield Finding(NOTE, "accounting", message, (f"sacctmgr add user {answers.user} account=ACCOUNT",))
