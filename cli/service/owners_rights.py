"""Reading a file of the service's account as root.

Rule: root gives up all of its rights for those of the owner of the file before it opens it, in a child process, so that
nothing in the file can do more than its owner can. The result comes back as JSON.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...simulate.errors import PilotfishError


def as_owner(path: Path, read: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return what `read` returns, with the rights of a file's owner if this process is root's.

    Args:
        path: The file.
        read: Reads it; its result can be written as JSON.

    Raises:
        PilotfishError: As `read` does, or the child process ended without an answer.
    """
    status = path.stat()
    if os.geteuid() != 0 or status.st_uid == 0:
        return read()
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(source)
            with open(sink, "wb") as pipe:
                pipe.write(json.dumps(_answer(status, read)).encode())
        finally:
            os._exit(0)
    os.close(sink)
    with open(source, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    reply = json.loads(answer or b'{"error": "it could not be read with the rights of its owner"}')
    if "error" in reply:
        raise PilotfishError(reply["error"])
    return dict(reply["result"])


def _answer(status: os.stat_result, read: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Give up root's rights and return what `read` returns, or its error."""
    try:
        os.setgroups([])
        os.setgid(status.st_gid)
        os.setuid(status.st_uid)
        return {"result": read()}
    except (PilotfishError, OSError) as error:
        return {"error": str(error)}
