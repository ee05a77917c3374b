"""The tokens of the pages (schema pilotfish/tokens/v1): who may look, as which user, and until when.

Rule: a token is 256 random bits, and the file has only its SHA-256, from which it cannot be computed. The file is read
again when it has changed, so that a line that is removed ends what it allowed, open streams included.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import logging
import os
import secrets
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from ..formats.documents.files import check_schema, config_error, read_document
from ..simulate.errors import ConfigError
from ..trust import check_file, problem_of

log = logging.getLogger("pilotfish.web")
#: Where a request keeps its token's user, and whether the token still holds.
USER, HOLDS = "pilotfish.user", "pilotfish.holds"
#: What a token of the scope `health` reaches.
_OF_HEALTH = "/healthz"
_LONGEST, _LOGGED_S = 512, 60.0
_NAME = r"^[A-Za-z0-9_.@-]{1,64}$"


class AccessToken(BaseModel):
    """A line of the file."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: str = Field(pattern=_NAME)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    expires: str
    user: str = Field(default="", pattern=r"^[A-Za-z0-9_.@-]{0,64}$")
    scope: Literal["read", "health"] = "read"

    @field_validator("expires")
    @classmethod
    def _is_a_day(cls, value: str) -> str:
        date.fromisoformat(value)
        return value

    @property
    def until(self) -> float:
        """Return when it ends, at the end of its last day (UTC), epoch seconds."""
        day = datetime.combine(date.fromisoformat(self.expires), datetime.min.time(), UTC)
        return (day + timedelta(days=1)).timestamp()


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    tokens: list[AccessToken]


def new_token(name: str, user: str, scope: str, expires: date) -> tuple[str, str]:
    """Return a new token, and its line for the file. Raises ValidationError for a wrong name, user or scope.

    Args:
        name: of the token, for the log.
        user: whose jobs it sees, see `access.see`; "": one without a name.
        scope: `read`, or `health` for the state of the service alone.
        expires: its last day.
    """
    secret = f"pf_{secrets.token_urlsafe(32)}"
    values = {"name": name, "sha256": _hash(secret), "expires": expires.isoformat(), "user": user, "scope": scope}
    AccessToken.model_validate(values)
    return secret, "- {" + ", ".join(f'{key}: "{value}"' for key, value in values.items()) + "}"


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


class AccessTokens:
    """The tokens of a file.

    Args:
        path: the file.
        clock: epoch seconds.

    Raises:
        ConfigError: it cannot be read, or is wrong.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path, self._clock = path, clock
        self._mark, self._tokens = self._seen(), self._read()

    def of(self, secret: str) -> AccessToken | None:
        """Return a token that holds now; None: it does not, or is none of these."""
        self._look()
        token = self._tokens.get(_hash(secret[:_LONGEST]))
        return token if token is not None and self._clock() < token.until else None

    def _look(self) -> None:
        """Read the file again if it has changed; a wrong one allows nothing, and is logged."""
        if (mark := self._seen()) == self._mark:
            return
        self._mark = mark
        try:
            self._tokens = self._read()
        except ConfigError as error:
            self._tokens = {}
            log.error("no token holds: %s", error)

    def _seen(self) -> tuple[int, int, int] | None:
        try:
            status = os.stat(self._path)
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _read(self) -> dict[str, AccessToken]:
        source = str(self._path)
        try:
            check_file(self._path)
        except OSError as error:
            raise ConfigError(source, "", f"cannot be read: {problem_of(error, source)}") from None
        document = check_schema(read_document(self._path), "tokens", source)
        try:
            tokens = _File.model_validate(document).tokens
        except ValidationError as error:
            raise config_error(error, source, _File) from None
        return {token.sha256: token for token in tokens}


class TokenGate:
    """Lets only requests with a token through, as `Authorization: Bearer TOKEN`, or as the password of a browser.

    Args:
        app: what is behind.
        tokens: which hold.
    """

    def __init__(self, app: ASGIApp, tokens: AccessTokens) -> None:
        self._app, self._tokens, self._logged_at = app, tokens, -_LOGGED_S

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        secret = _secret(Headers(scope=scope).get("authorization", ""))
        token = self._tokens.of(secret)
        if token is None:
            self._log(scope, secret)
            headers = {"www-authenticate": 'Basic realm="pilotfish", charset="UTF-8"', "cache-control": "no-store"}
            refusal = JSONResponse({"error": "a token is needed, as the password or as a Bearer"}, 401, headers)
            await refusal(scope, receive, send)
        elif token.scope == "health" and scope["path"] != _OF_HEALTH:
            await JSONResponse({"error": f"this token is for {_OF_HEALTH} alone"}, 403)(scope, receive, send)
        else:
            scope[USER], scope[HOLDS] = token.user or None, lambda: self._tokens.of(secret) is not None
            await self._app(scope, receive, send)

    def _log(self, scope: Scope, secret: str) -> None:
        """Log a wrong token, once a minute at most."""
        if secret and time.monotonic() - self._logged_at >= _LOGGED_S:
            self._logged_at = time.monotonic()
            log.warning("a wrong or ended token came from %s", (scope.get("client") or ("a socket",))[0])


def _secret(header: str) -> str:
    """Return the token in a header `authorization`; "": it has none."""
    kind, _, value = header.partition(" ")
    if kind.lower() == "bearer":
        return value.strip()
    if kind.lower() != "basic":
        return ""
    try:
        return base64.b64decode(value.strip(), validate=True).decode().partition(":")[2]
    except (binascii.Error, ValueError):
        return ""
