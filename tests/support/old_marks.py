"""Marks of pins as earlier versions wrote them into comments, and their key."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from collections.abc import Iterable
from pathlib import Path

KEY = b"k" * 32
#: Written by such a version with this key: job 7 of user 5, pinned to n1 at 1,000,000.
WRITTEN = "pilotfish:pin=1000000:xoiQX-IVIHAgT8s8"


def old_mark(kind: str, time: int, job: int, uid: int, nodes: Iterable[str] = (), key: bytes = KEY) -> str:
    """Return a mark; `kind` is `pin`, `own` (the user's own nodes) or `let-go`."""
    said = "\0".join((kind, str(time), str(job), str(uid), *sorted(nodes)))
    tag = base64.urlsafe_b64encode(hmac.new(key, said.encode(), hashlib.sha256).digest()[:12]).decode()
    return f"pilotfish:{kind}={time}:{tag}"


def keep_old_key(folder: Path) -> None:
    """Write the key where those versions kept it, for its owner only."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with os.fdopen(os.open(folder / "mark.key", os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
        file.write(KEY)
