"""Slurm by slurmrestd, as a transport: an unchanged queue costs one small request.

Rule: nothing is taken for "no jobs" but a whole answer without errors that lists none. What REST cannot write is
refused before anything is sent (`NotDone`). Jobs of our own, accounting and power saving stay with Slurm's commands:
these run as the daemon's user, and sbatch's options are what a site knows.
"""

from __future__ import annotations

import logging
import math
import os
import pwd
import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ....simulate.errors import ConfigError
from ....simulate.snapshot import JobState
from ...base import AdapterError, ParseError
from ..records import SlurmJob, SlurmNode
from ..runner import Commands
from ..update import allowed
from . import forms
from .client import Client
from .errors import NotDone, Unchanged, warnings
from .token import TokenCommand, TokenFile, TokenSource
from .versions import Version, choose

log = logging.getLogger("pilotfish.slurm")
#: Seconds after which the whole queue is asked for, changed or not: clocks are set, and not all that is shown of a job
#: counts as a change.
WHOLE_EVERY_S = 30.0
#: Seconds by which a change must be later than what was read, because Slurm counts changes in whole seconds.
MARGIN_S = 0.5
#: With more ids than these, one look at the queue is less work.
SINGLY = 16


def by_rest(
    url: str,
    user: str = "",
    token_file: str = "",
    token_command: str = "",
    lifespan_s: float = 600.0,
    timeout_s: float = 15.0,
) -> ByRest:
    """Return the transport to the slurmrestd at `url`; arguments as those of the adapter's `create`, without `rest_`.

    Raises:
        ConfigError: one of them cannot be right.
    """
    where = "adapter slurm"
    texts = {"rest_url": url, "rest_user": user, "rest_token_file": token_file, "rest_token_command": token_command}
    for name, value in texts.items():
        if not isinstance(value, str):
            raise ConfigError(where, name, f"found {value!r}", "a text")
    if token_file and token_command:
        raise ConfigError(where, "rest_token_file", "there is rest_token_command, too", "one of them")
    if isinstance(lifespan_s, bool) or not isinstance(lifespan_s, (int, float)) or not 1 <= lifespan_s < math.inf:
        raise ConfigError(where, "rest_token_lifespan_s", f"found {lifespan_s!r}", "seconds, 1 or more")
    me = pwd.getpwuid(os.geteuid()).pw_name
    source: TokenSource
    if token_file:
        source = TokenFile(token_file)
    else:
        try:
            argv = shlex.split(token_command)
        except ValueError as error:
            raise ConfigError(where, "rest_token_command", str(error)) from None
        argv = argv or ["scontrol", "token", f"lifespan={int(lifespan_s)}"]
        if not token_command and user not in ("", me):
            argv.append(f"username={user}")
        source = TokenCommand(argv, Commands(timeout_s))
    return ByRest(Client(url, user or me, source, timeout_s))


def of_options(options: Mapping[str, Any], user: str, timeout_s: float) -> ByRest:
    """Return the transport that the adapter's options name, for the daemon's account `user`. Raises ConfigError."""
    own = {name.removeprefix("rest_"): value for name, value in options.items() if name.startswith("rest_")}
    lifespan_s = own.pop("token_lifespan_s", 600.0)
    return by_rest(**{**own, "user": own.get("user") or user}, lifespan_s=lifespan_s, timeout_s=timeout_s)


class ByRest:
    """The part of a `Transport` that slurmrestd serves; see `fallback.Either`."""

    def __init__(self, client: Client, clock: Callable[[], float] = time.monotonic) -> None:
        self._client, self._clock = client, clock
        self._version: Version | None = None
        self._jobs: list[SlurmJob] = []
        self._since: int | None = None
        self._whole_at = -math.inf
        self._told: tuple[float, float] | None = None
        self.shows_all = True
        self.notes: Sequence[str] = ()
        if client.exposed:
            why = "whoever reads along there has the token; https:// or unix:/PATH keeps it"
            self.notes = (f"slurmrestd is asked over plain http at {client.url}: {why}",)

    @property
    def version(self) -> Version:
        """The version that is spoken, found out once, and again when it is not offered any more."""
        if self._version is None:
            self._version = choose(self._document(), self._client.url)
            cannot = ", ".join(self._version.cannot_write())
            limits = f"; it cannot write {cannot}, which scontrol does" if cannot else ""
            log.info("slurmrestd at %s: %s%s", self._client.url, self._version, limits)
        return self._version

    def jobs(self, ids: Iterable[int] = ()) -> list[SlurmJob]:
        """All jobs, anew only if anything has changed (else the same list); or those of `ids`, one by one.

        `shows_all` then says whether they are told whole; `squeue.Unshown` is what may be missing.
        """
        some = tuple(ids)
        if 0 < len(some) <= SINGLY:
            return [job for number in some for job in self._job(number)]
        everything = self._all()
        return [job for job in everything if job.id in set(some)] if some else everything

    def excluded(self) -> dict[int, tuple[str, ...]]:
        """No request: the queue has told it already."""
        return {job.id: job.unwanted for job in self._jobs if job.unwanted and job.state is JobState.PENDING}

    def nodes(self) -> list[SlurmNode]:
        """All nodes, whole: asked for changes only, Slurm 22.05 answers with an error where partitions have none."""
        if not self.version.tells_nodes:
            raise NotDone(f"slurmrestd {self.version} does not show partitions and drained nodes")
        return forms.nodes(self._get("nodes"), self._what("nodes"))

    def time(self) -> float:
        """The controller's clock, from /diag."""
        told = forms.time_of(self._get("diag"), self._what("diag"))
        self._told = told, self._clock()
        return told

    def update(self, job: int, fields: Mapping[str, str]) -> None:
        """Change a job, in one request or not at all."""
        now = self._lower_bound()
        body = self.version.body(allowed(fields), now if now is not None else self.time())
        self._client.post(self.version.job(job), self._what(f"update of job {job}"), body)

    def close(self) -> None:
        """Let go of connections."""
        self._client.close()

    def _all(self) -> list[SlurmJob]:
        """The queue: what was read last, if it is that still."""
        began = self._clock()
        whole = self._since is None or began - self._whole_at > WHOLE_EVERY_S
        if whole:
            self.time()
        since = self._lower_bound()
        query = {} if whole or self._since is None else {"update_time": self._since}
        try:
            answer = self._get("jobs", **query)
        except Unchanged:
            return self._unchanged(query)
        read = forms.jobs(answer, self._what("jobs"))
        if query and not read:  # since 23.02 an unchanged queue may be an empty list and a warning
            if "changes since" in warnings(answer):
                return self._jobs
            answer = self._get("jobs")
            read = forms.jobs(answer, self._what("jobs"))
        self.shows_all = forms.shows_all(answer)
        told = forms.last_update(answer)
        known = [moment for moment in (since, told) if moment is not None]
        self._jobs, self._since = read, int(min(known)) if known else None
        if not query:
            self._whole_at = began
        return read

    def _unchanged(self, query: Mapping[str, int]) -> list[SlurmJob]:
        if not query:
            raise ParseError(f"{self._what('jobs')}: slurmrestd says that nothing changed, and was not asked that")
        return self._jobs

    def _job(self, number: int) -> list[SlurmJob]:
        path, what = self.version.job(number), self._what(f"job {number}")
        try:
            answer = self._client.get(path, what)
        except AdapterError as error:
            if error.kind == "gone":
                return []
            raise
        found = forms.jobs(answer, what)
        if not found:
            raise ParseError(f"{what}: slurmrestd shows no job and no reason")
        return [job for job in found if job.id == number]

    def _get(self, name: str, **query: int) -> forms.Form:
        try:
            return self._client.get(self.version.paths[name], self._what(name), **query)
        except NotDone as error:
            if error.kind == "absent":  # another slurmrestd, it seems: find out anew
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
        """The controller's clock, surely not later than it is; None where it was never told."""
        if self._told is None:
            return None
        told, at = self._told
        return told + (self._clock() - at) - MARGIN_S
