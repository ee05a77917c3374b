"""Access over the socket: rights by owner and administrator, and quotas by user.

Rule: the kernel names the user who asks (`Peer`), never the request. A workflow belongs to the user who submitted it;
only its owner or an administrator changes it. The daemon's own user and root are administrators. A uid that the user
database does not know has no access: in a user namespace (a rootless container) one person has 65,536 of them, each of
which would have quotas of its own.
"""

from __future__ import annotations

import grp
import os
import pwd
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from ...adapters.base import Adapter
from ...formats.text import count
from ...simulate.errors import ConfigError, InvalidJobError
from ...simulate.model.job import Job
from ..config import DaemonConfig
from ..config_sections import AccessConfig, QuotaConfig
from ..state.queue import Submission
from ..state.users import Peer, login_of, user_name

#: Objects in JSON for each job that a workflow may have.
OBJECTS_OF_A_JOB = 8
#: Commas in JSON for each job that a workflow may have, besides those of its dependencies.
VALUES_OF_A_JOB = 64


class ForbiddenError(InvalidJobError):
    """The user may not do this."""


def access_of(config: DaemonConfig, adapter: Adapter, file: Path) -> Access:
    """Return the rights of users; by default, no user may submit jobs that would run as an operator.

    Args:
        config: of the service.
        adapter: its resource manager.
        file: the configuration's, for errors.
    """
    operated = adapter.name if adapter.capabilities.offers else ""
    return Access(config.access, config.quotas, operated=operated, file=file)


class Access:
    """Judges requests.

    Args:
        access: who may do what.
        quotas: most that one user may have at once.
        operated: name of the resource manager whose operator the service is; "" = it is none, and takes workflows
            if the configuration does not say otherwise.
        file: the configuration's, for errors.

    Raises:
        ConfigError: a user or group does not exist.
    """

    def __init__(self, access: AccessConfig, quotas: QuotaConfig, *, operated: str, file: Path) -> None:
        self._quotas = quotas
        #: Whether each user may see the jobs of all.
        self.everybody_sees = access.see == "everybody"
        self._submits, self._operated = not operated if access.submit is None else access.submit, operated
        self._admins = {0, os.geteuid(), *(uid_of(admin, file, "access.admins") for admin in access.admins)}
        self._viewers = {uid_of(viewer, file, "access.viewers") for viewer in access.viewers}
        self._admin_group = _gid(access.admin_group, file) if access.admin_group else None

    def bars(self, peer: Peer) -> str:
        """Return why a user has no access at all, or ""."""
        if peer.uid in self._admins or login_of(peer.uid) is not None:
            return ""
        return f"uid {peer.uid} has no name in the user database of this machine, and so no access to the service"

    def administers(self, peer: Peer) -> bool:
        """Return whether a user may change and see everything."""
        return peer.uid in self._admins or (self._admin_group is not None and self._admin_group in _groups(peer))

    def check_administers(self, peer: Peer) -> None:
        """Raise ForbiddenError unless a user may change and see everything."""
        if not self.administers(peer):
            raise ForbiddenError("only an administrator may do this (access.admins, access.admin_group)")

    def views_all(self, peer: Peer) -> bool:
        """Return whether a user may see everything, and ask as others: an administrator, or one that shows pages."""
        return peer.uid in self._viewers or self.administers(peer)

    def sees(self, peer: Peer, owner: int | None) -> bool:
        """Return whether a user may see a workflow of that owner; None = unknown, or many users."""
        return self.everybody_sees or peer.uid == owner or self.views_all(peer)

    def view_of(self, peer: Peer) -> Callable[[int | None], bool]:
        """Return a function that is `sees` for this user; what decides about all jobs alike is looked up once."""
        if self.everybody_sees or self.views_all(peer):
            return lambda owner: True
        return lambda owner: owner == peer.uid

    def check_size(self, text: str) -> None:
        """Raise ForbiddenError for the JSON of a workflow that has too many jobs or values, before it is read.

        A job has at least three objects and four values; many more, and braces and commas in its command, are allowed
        for. Reading takes the longest for small values, about 0.15 s for a million of them.
        """
        for unit, sign, job_share, more in (
            ("objects", "{", OBJECTS_OF_A_JOB, ""),
            ("values", ",", VALUES_OF_A_JOB, " and one for each of quotas.dependencies"),
        ):
            most = job_share * self._quotas.workflow_jobs + (self._quotas.dependencies if more else 1000)
            if (number := text.count(sign)) > most:
                had = f"the workflow has {number:,} {unit} as JSON (allowed: {most:,}"
                raise ForbiddenError(f"{had}, {job_share} for each job of quotas.workflow_jobs{more})")

    def owned_by(self, peer: Peer) -> Callable[[int | None], bool]:
        """Return a function that says whether what belongs to a uid is this user's, or the user an administrator."""
        if self.administers(peer):
            return lambda owner: True
        return lambda owner: owner == peer.uid

    def check_change(self, peer: Peer, submission: Submission) -> None:
        """Raise ForbiddenError unless a user may change a workflow."""
        if peer.uid != submission.owner and not self.administers(peer):
            whose = "an unknown user" if submission.owner is None else user_name(submission.owner)
            raise ForbiddenError(f"{submission.id} belongs to {whose}; its owner or an administrator can change it")

    def check_submit(
        self, peer: Peer, jobs: Sequence[Job], present: Iterable[Submission], kept_bytes: int, total_bytes: int
    ) -> None:
        """Raise ForbiddenError unless a user may submit a workflow now.

        Args:
            peer: the user.
            jobs: of the workflow; none before they are known.
            present: all workflows that have not ended.
            kept_bytes: of the user's workflows in the journal.
            total_bytes: of the workflows of all users there.
        """
        if not self._submits:
            why = ""
            if self._operated:
                why = f", because what it starts would run as its own account, with its rights in {self._operated}"
                why += f": submit to {self._operated} itself (pilotfish submit --adapter {self._operated})"
            raise ForbiddenError(
                f"this service takes no workflows{why}; an administrator can allow it (access.submit: true)"
            )
        if len(jobs) > self._quotas.workflow_jobs:
            had = f"this workflow has {count(len(jobs), 'job')}"
            raise ForbiddenError(f"{had} (allowed: {self._quotas.workflow_jobs:,}, quotas.workflow_jobs)")
        mine, quotas = [submission for submission in present if submission.owner == peer.uid], self._quotas
        number = len(jobs) + sum(len(submission.entries) for submission in mine)
        edges = sum(len(job.after) for job in jobs) + sum(submission.edges for submission in mine)
        for key, amount, most, unit in (
            ("workflows", len(mine) + 1, quotas.workflows, count(len(mine) + 1, "workflow")),
            ("jobs", number, quotas.jobs, count(number, "job")),
            ("dependencies", edges, quotas.dependencies, f"{edges:,} dependencies of jobs"),
        ):
            if amount > most:
                had = f"with this one, {peer} would have {unit} that have not ended"
                raise ForbiddenError(f"{had} (allowed: {most:,}, quotas.{key})")
        if kept_bytes > self._quotas.journal_mib * 2**20:
            had = f"the workflows of {peer} fill {kept_bytes / 2**20:,.0f} MiB of the journal"
            raise ForbiddenError(f"{had} (allowed: {self._quotas.journal_mib:,}, quotas.journal_mib)")
        if total_bytes > self._quotas.total_journal_mib * 2**20:
            had = f"the workflows of all users fill {total_bytes / 2**20:,.0f} MiB of the journal"
            raise ForbiddenError(f"{had} (allowed: {self._quotas.total_journal_mib:,}, quotas.total_journal_mib)")


def uid_of(given: str | int, file: Path, key: str) -> int:
    """Return the uid of a user who is given by name or uid. Raises ConfigError, which names the key of the file."""
    if isinstance(given, int):
        return given
    try:
        return pwd.getpwnam(given).pw_uid
    except KeyError:
        raise ConfigError(str(file), key, f"no user {given!r} exists", "names or uids of users") from None


def _gid(name: str, file: Path) -> int:
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        raise ConfigError(str(file), "access.admin_group", f"no group {name!r} exists", "the name of a group") from None


def _groups(peer: Peer) -> set[int]:
    """Return the groups of a user: the one of the connection, and those of the user database."""
    try:
        return {peer.gid, *os.getgrouplist(pwd.getpwuid(peer.uid).pw_name, peer.gid)}
    except KeyError:
        return {peer.gid}
