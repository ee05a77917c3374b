"""Slurm by slurmrestd, as a transport: an unchanged queue costs one small request.

Rule: only a whole answer without errors that lists no jobs means "no jobs". What REST cannot write is refused before
anything is sent (`NotDone`). Our own jobs, accounting and power saving stay with Slurm's commands, which run as the
daemon's user and take the site's options of sbatch.
"""

from __future__ import annotations

import logging
import math
import os
import pwd
import shlex
import time
from collections.abc import Callable, Collection, Mapping, Sequence

from ....simulate.errors import ConfigError
from ....simulate.model.snapshot import JobState
from ...base import AdapterError, ParseError
from ..handed_over.job_update import allowed
from ..records import SlurmJob, SlurmNode
from ..transport.rows import Unreadable
from ..transport.runner import CommandRunner
from . import forms
from .client import Client
from .errors import NotDone, Unchanged, warnings
from .token import TokenCommand, TokenFile, TokenSource
from .versions import NODES_SINCE, Version, choose

log = logging.getLogger("pilotfish.slurm")
#: Seconds after which the whole queue is read, changed or not: clocks are set, and Slurm does not count every
#: change of a job.
WHOLE_EVERY_S = 30.0
#: Seconds by which a change must be later than the last read, because Slurm counts changes in whole seconds.
MARGIN_S = 0.5
#: Up to this many jobs are read one by one; for more, reading the queue is less work.
SINGLY = 16


def rest_transport(
    url: str,
    user: str = "",
    token_file: str = "",
    token_command: str = "",
    token_lifespan_s: float = 600.0,
    timeout_s: float = 15.0,
    unreadable: Unreadable | None = None,
) -> RestTransport:
    """Return the transport to the slurmrestd at `url`; arguments and errors as of `create`, without `rest_`."""
    if token_file and token_command:
        raise ConfigError("adapter slurm", "rest_token_file", "rest_token_command is set, too", "one of them")
    me = pwd.getpwuid(os.geteuid()).pw_name
    source: TokenSource
    if token_file:
        source = TokenFile(token_file)
    else:
        try:
            argv = shlex.split(token_command)
        except ValueError as error:
            raise ConfigError("adapter slurm", "rest_token_command", str(error)) from None
        argv = argv or ["scontrol", "token", f"lifespan={int(token_lifespan_s)}"]
        if not token_command and user not in ("", me):
            argv.append(f"username={user}")
        source = TokenCommand(argv, CommandRunner(timeout_s))
    return RestTransport(Client(url, user or me, source, timeout_s), unreadable=unreadable)


class RestTransport:
    """The part of a `Transport` that slurmrestd serves."""

    def __init__(
        self, client: Client, clock: Callable[[], float] = time.monotonic, unreadable: Unreadable | None = None
    ) -> None:
        self._client, self._clock, self._unreadable = client, clock, unreadable or Unreadable()
        self._version: Version | None = None
        self._jobs: list[SlurmJob] = []
        self._since: int | None = None
        self._whole_at = -math.inf
        self._clock_read: tuple[float, float] | None = None  # the controller's clock, and ours at that moment
        self.shows_all = True
        self.notes: Sequence[str] = ()
        if client.exposed:
            why = "anyone who reads the traffic has the token; use https:// or unix:/PATH"
            self.notes = (f"slurmrestd is used over plain http at {client.url}: {why}",)

    @property
    def version(self) -> Version:
        """The interface version, detected once, and again when it is no longer offered."""
        if self._version is None:
            self._version = choose(self._document(), self._client.url)
            cannot = ", ".join(self._version.cannot_write())
            limits = f"; it cannot write {cannot}, which scontrol does" if cannot else ""
            log.info("slurmrestd at %s: %s%s", self._client.url, self._version, limits)
        return self._version

    def jobs(self, ids: Collection[int] = ()) -> list[SlurmJob]:
        """Return all jobs (the same list while nothing has changed), or those of `ids`, one by one.

        `shows_all` then says whether they have all fields; `squeue.hidden` shows what may be missing.
        """
        if 0 < len(ids) <= SINGLY:
            return [job for number in ids for job in self._job(number)]
        everything = self._all()
        return [job for job in everything if job.id in set(ids)] if ids else everything

    def excluded(self) -> dict[int, tuple[str, ...] | None]:
        """Return excluded nodes, without a request: the queue contains them."""
        return {job.id: job.unwanted for job in self._jobs if job.unwanted and job.state is JobState.PENDING}

    def nodes(self) -> list[SlurmNode]:
        """Return all nodes. Not only changes: for these Slurm 22.05 fails if partitions have none."""
        if self.version.number < NODES_SINCE:
            raise NotDone(f"slurmrestd {self.version} does not show partitions and drained nodes")
        return forms.nodes(self._get("nodes"), self._what("nodes"), self._unreadable)

    def time(self) -> float:
        """Return the controller's clock, from /diag, epoch seconds."""
        seconds = forms.time_of(self._get("diag"), self._what("diag"))
        self._clock_read = seconds, self._clock()
        return seconds

    def update(self, job: int, fields: Mapping[str, str]) -> None:
        """Change a job, in one request or not at all."""
        now = self._lower_bound()
        body = self.version.body(allowed(fields), now if now is not None else self.time())
        self._client.post(self.version.job(job), self._what(f"update of job {job}"), body)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _all(self) -> list[SlurmJob]:
        """Return the queue; the last one if it is unchanged."""
        began = self._clock()
        is_whole = self._since is None or began - self._whole_at > WHOLE_EVERY_S
        if is_whole:
            self.time()
        since = self._lower_bound()
        query = {} if is_whole or self._since is None else {"update_time": self._since}
        try:
            answer = self._get("jobs", **query)
        except Unchanged:
            if query:
                return self._jobs
            why = f"{self._what('jobs')}: slurmrestd reports no changes, which was not the request"
            raise ParseError(why) from None
        read = forms.jobs(answer, self._what("jobs"), self._unreadable)
        if query and not read:  # since 23.02 an unchanged queue may be an empty list and a warning
            if "changes since" in warnings(answer):
                return self._jobs
            answer = self._get("jobs")
            read = forms.jobs(answer, self._what("jobs"), self._unreadable)
        self.shows_all = forms.shows_all(answer)
        moments = [moment for moment in (since, forms.last_update(answer)) if moment is not None]
        self._jobs, self._since = read, int(min(moments)) if moments else None
        if not query:
            self._whole_at = began
        return read

    def _job(self, number: int) -> list[SlurmJob]:
        path, request = self.version.job(number), self._what(f"job {number}")
        try:
            answer = self._client.get(path, request)
        except AdapterError as error:
            if error.kind == "gone":
                return []
            raise
        jobs = forms.jobs(answer, request, self._unreadable, whole=False)
        if not jobs:
            raise ParseError(f"{request}: slurmrestd shows neither a job nor a reason")
        return [job for job in jobs if job.id == number]

    def _get(self, name: str, **query: int) -> forms.Form:
        try:
            return self._client.get(self.version.paths[name], self._what(name), **query)
        except NotDone as error:
            if error.kind == "absent":  # perhaps another slurmrestd: detect its version again
                self._version = None
            raise

    def _document(self) -> forms.Form:
        try:
            return self._client.get("/openapi/v3", "slurmrestd /openapi/v3")
        except NotDone as error:
            if error.kind != "absent":
                raise
            return self._client.get("/openapi", "slurmrestd /openapi")

    def _what(self, name: str) -> str:
        return f"slurmrestd {self._version or ''} {name}".replace("  ", " ")

    def _lower_bound(self) -> float | None:
        """Return a time that is not later than the controller's clock; None if that was never read."""
        if self._clock_read is None:
            return None
        seconds, at = self._clock_read
        return seconds + (self._clock() - at) - MARGIN_S
