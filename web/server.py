"""The pages and their data over HTTP: the board, its changes as server-sent events, and the story of a job.

Rule: only reading. Every answer names the few places that a browser may load something from (all of them are this
server), and only hosts that are expected are answered, so that no other page of the user's browser can read this one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..daemon.socket.ipc import NoDaemonError
from ..simulate.errors import PilotfishError
from .board_copy import Sees
from .facts import job_facts
from .follower import Follower
from .openapi import document
from .quality_tables import QualityTables
from .tokens import HOLDS, USER, AccessTokens, TokenGate
from .viewers import Viewers, sees_all

STATIC = Path(__file__).parent / "static"
#: Most browsers that follow the changes at a time, and seconds without a change after which a line is sent.
MOST_STREAMS, QUIET_S = 256, 15.0
#: Longest name of a job that is asked for.
_LONGEST = 512
_HEADERS = {
    b"content-security-policy": b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    b"img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
}


class SafeHeaders:
    """Adds the headers that keep other pages away from this one's."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_HEADERS.items()]
            await send(message)

        await self._app(scope, receive, send_with_headers)


class Pages:
    """The routes.

    Args:
        ask: sends a request to the service. Raises PilotfishError.
        user_header: name of the header in which the site's proxy names the user; "": no such proxy, and a token, where
            one is needed, names the user.
    """

    def __init__(self, ask: Callable[..., dict[str, Any]], user_header: str = "") -> None:
        self._ask, self._user_header = ask, user_header
        self.follower, self._viewers, self._streams = Follower(ask), Viewers(ask), 0
        self._quality = QualityTables(ask)
        self._events_of, self._events = 0, dict[str, str]()  # for all who see everything, of one version, by kind

    async def page(self, request: Request) -> Response:
        """Return the page; what it shows depends on its address."""
        return FileResponse(STATIC / "index.html", headers={"cache-control": "no-cache"})

    async def board(self, request: Request) -> Response:
        """Return all that the viewer may see."""
        await self.follower.refresh()
        if not self.follower.copy.version:
            return _refused(503, self.follower.trouble)
        try:
            return _json({"trouble": self.follower.trouble, **self.follower.copy.document(await self._sees(request))})
        except NoDaemonError as error:
            return _refused(503, str(error))

    async def events(self, request: Request) -> Response:
        """Return a stream of changes: `board` is all, `change` what has changed since, `trouble` why nothing does."""
        if self._streams >= MOST_STREAMS:
            return _refused(503, f"{MOST_STREAMS} pages are open already")
        return StreamingResponse(
            self._stream(request), media_type="text/event-stream", headers={"cache-control": "no-store"}
        )

    async def _stream(self, request: Request) -> AsyncIterator[str]:
        self._streams += 1
        follower, shown, trouble = self.follower, 0, ""
        try:
            with follower.looking():
                yield "retry: 3000\n\n"
                still_allowed = request.scope.get(HOLDS, lambda: True)
                while still_allowed() and not await request.is_disconnected():
                    sees, version = await self._sees(request), follower.copy.version
                    if version != shown:
                        yield self._board_event("change" if shown and version == shown + 1 else "board", sees)
                        shown = version
                    if trouble != follower.trouble:
                        trouble = follower.trouble
                        yield _event("trouble", {"trouble": trouble})
                    if not await follower.news(shown, QUIET_S):
                        yield ": nothing new\n\n"
        except NoDaemonError as error:
            yield _event("trouble", {"trouble": str(error)})
        finally:
            self._streams -= 1

    def _board_event(self, kind: str, sees: Sees) -> str:
        """Return an event for a viewer; for all who see everything, it is made once."""
        copy, part_of = (
            self.follower.copy,
            {"change": self.follower.copy.difference, "board": self.follower.copy.document},
        )
        if sees is not sees_all:
            return _event(kind, part_of[kind](sees))
        if self._events_of != copy.version:
            self._events_of, self._events = copy.version, {}
        if kind not in self._events:
            self._events[kind] = _event(kind, part_of[kind](sees))
        return self._events[kind]

    async def job(self, request: Request) -> Response:
        """Return what is known of a job: its forecast, why it waits, and its story."""
        key = request.path_params["key"]
        if len(key) > _LONGEST:
            return _refused(404, "no job has so long a name")
        try:
            reply = await asyncio.to_thread(self._ask, "explain", job=key, as_user=self._user(request) or "")
            return _json({"facts": job_facts(reply), **reply})
        except NoDaemonError as error:
            return _refused(503, str(error))
        except PilotfishError as error:
            return _refused(404, str(error))

    async def quality(self, request: Request) -> Response:
        """Return how good the forecasts were, and the card."""
        await self.follower.refresh()
        try:
            if await self._sees(request) is not sees_all:
                return _refused(403, "only who may see the jobs of all users sees how good their forecasts were")
            return _json({"tables": await self._quality.tables()})
        except NoDaemonError as error:
            return _refused(503, str(error))
        except PilotfishError as error:
            return _refused(403, str(error))

    async def api(self, request: Request) -> Response:
        """Return the description of the data."""
        return _json(document())

    async def health(self, request: Request) -> Response:
        """Say whether the service answers."""
        await self.follower.refresh()
        return _json({"trouble": self.follower.trouble}, 503 if self.follower.trouble else 200)

    def _user(self, request: Request) -> str | None:
        return request.headers.get(self._user_header) if self._user_header else request.scope.get(USER)

    async def _sees(self, request: Request) -> Sees:
        for_everybody = bool(self.follower.copy.about.get("for_everybody"))
        return await asyncio.to_thread(self._viewers.of, self._user(request), for_everybody=for_everybody)


def application(
    ask: Callable[..., dict[str, Any]], hosts: Sequence[str], user_header: str = "", tokens: AccessTokens | None = None
) -> Starlette:
    """Return the application.

    Args:
        ask: sends a request to the service.
        hosts: names under which browsers reach it.
        user_header: see `Pages`.
        tokens: which a request needs one of; None: it needs none.
    """
    pages = Pages(ask, user_header)

    @asynccontextmanager
    async def following(app: Starlette) -> AsyncIterator[None]:
        task = asyncio.create_task(pages.follower.run())
        yield
        task.cancel()

    routes = [
        Route("/", pages.page),
        Route("/jobs/{key:path}", pages.page),
        Route("/healthz", pages.health),
        Route("/api/v1/board", pages.board),
        Route("/api/v1/events", pages.events),
        Route("/api/v1/jobs/{key:path}", pages.job),
        Route("/api/v1/quality", pages.quality),
        Route("/api/v1/openapi.json", pages.api),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    middleware = [
        Middleware(SafeHeaders),
        Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False),
        *([] if tokens is None else [Middleware(TokenGate, tokens=tokens)]),
        Middleware(GZipMiddleware, minimum_size=1024, compresslevel=1),
    ]
    return Starlette(routes=routes, middleware=middleware, lifespan=following)


def _json(content: dict[str, Any], code: int = 200) -> Response:
    return JSONResponse(content, code, headers={"cache-control": "no-store"})


def _refused(code: int, why: str) -> Response:
    return _json({"error": why}, code)


def _event(kind: str, content: dict[str, Any]) -> str:
    return f"event: {kind}\ndata: {json.dumps(content, separators=(',', ':'))}\n\n"
