"""The token for slurmrestd: where it comes from, and when a new one is needed.

Rule: a token is shown to slurmrestd only: not in a log, an error or a repr. Its file must be trusted (see `trust`).
Whether it is valid is read from the token itself. A process that can create tokens for others is root on the cluster,
so use a token of an operator account that is valid for minutes.
Source: RFC 7519; scontrol(1) `token`; Slurm's tokens carry exp, iat and sun.
"""

from __future__ import annotations

import base64
import json
import os
import re
import stat
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ....simulate.errors import ConfigError
from ....trust import open_file, problem_of
from ...base import AdapterError
from ..transport.runner import Runner
from .errors import Unauthorised

#: Part of a token's life after which the next one is requested, and the latest time before its end, seconds.
USED_UP, LAST_S = 0.8, 60.0
#: Words in which a token may be, and the length of a piece that gives it away.
_WORD, _PIECE = re.compile(rb"[\w.-]{8,}"), 12
#: Characters that are read of a token file.
LARGEST_TOKEN = 65_536
_SECRET = re.compile(r"[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}")


@dataclass(frozen=True)
class Token:
    """A token; its life in epoch seconds of its issuer; without `exp` it never expires."""

    text: str = field(repr=False)
    exp: float | None = None
    iat: float | None = None

    @property
    def life_s(self) -> float:
        """Seconds from its creation to its end."""
        return float("inf") if self.exp is None or self.iat is None else self.exp - self.iat

    def hidden_in(self, answer: bytes) -> bytes:
        """Return an answer without this token, or a piece of its signature, which a server may repeat. O(answer)."""
        secret = self.text.rpartition(".")[2].encode()
        pieces = {secret[at : at + _PIECE] for at in range(0, len(secret), _PIECE) if at + _PIECE <= len(secret)}
        pieces.add(secret[-_PIECE:])
        if not any(piece in answer for piece in pieces):
            return answer
        return _WORD.sub(lambda word: b"[token]" if any(piece in word[0] for piece in pieces) else word[0], answer)


def parse(text: str) -> Token:
    """Return the token in a file or in the output of `scontrol token`. Raises ValueError, which does not show it."""
    word = text.strip().removeprefix("SLURM_JWT=").strip()
    parts = word.split(".")
    if len(parts) != 3 or not word.isascii() or len(word.split()) != 1:
        raise ValueError("it holds no token (three words separated by dots)")
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        exp, iat = (None if claims.get(name) is None else float(claims[name]) for name in ("exp", "iat"))
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise ValueError("it holds a token that cannot be read") from None
    return Token(word, exp, iat)


class TokenFile:
    """A token file that the site renews; read again when it has changed. Raises ConfigError if it is unreadable."""

    def __init__(self, path: str | os.PathLike[str], clock: Callable[[], float] = time.time) -> None:
        self._path, self._clock = Path(path), clock
        self._read()

    def get(self) -> Token:
        """Return the file's token, the same one while it is valid. Raises AdapterError."""
        try:
            if _version(self._path.lstat()) != self._read_version:
                self._read()
        except (OSError, ConfigError) as error:
            raise Unauthorised(str(error)) from None
        if self._token.exp is not None and self._token.exp <= self._clock():
            ago = self._clock() - self._token.exp
            raise Unauthorised(f"{self._path}: the token expired {ago:.0f} s ago and was not renewed")
        return self._token

    def renew(self) -> bool:
        """Return whether the file has changed, after a token that was not accepted."""
        try:
            return _version(self._path.lstat()) != self._read_version
        except OSError:
            return False

    def _read(self) -> None:
        key = "rest_token_file"
        try:
            self._read_version = _version(self._path.lstat())
            mode = stat.S_IMODE(self._read_version[3])
            if mode & 0o007 and not stat.S_ISLNK(self._read_version[3]):
                fix = f"mode 0600 or 0640: chmod o= {self._path}"
                raise ConfigError(str(self._path), key, f"every user can read it (mode {mode:04o})", fix)
            with os.fdopen(open_file(self._path), encoding="utf-8") as file:
                self._token = parse(file.read(LARGEST_TOKEN))
        except OSError as error:
            raise ConfigError(str(self._path), key, f"unreadable: {problem_of(error, self._path)}") from None
        except ValueError as error:
            problem = "it is not text" if isinstance(error, UnicodeDecodeError) else str(error)
            raise ConfigError(str(self._path), key, problem, "what `scontrol token` prints") from None


def _version(status: os.stat_result) -> tuple[int, ...]:
    """Return what changes with a file's content or mode."""
    return status.st_ino, status.st_mtime_ns, status.st_size, status.st_mode


class TokenCommand:
    """A command that prints a token, run before the last token ends, by our own clock."""

    def __init__(self, argv: Sequence[str], run: Runner, clock: Callable[[], float] = time.monotonic) -> None:
        self._argv, self._run, self._clock = tuple(argv), run, clock
        self._token: Token | None = None
        self._had_at = 0.0

    def get(self) -> Token:
        """Return the last token while it is valid, or a new one. Raises AdapterError."""
        age = self._clock() - self._had_at
        if self._token is None or age >= self._token.life_s - min(LAST_S, (1 - USED_UP) * self._token.life_s):
            began = self._clock()
            try:
                self._token, self._had_at = parse(self._run(self._argv)), began
            except ValueError as error:
                raise Unauthorised(f"{self._argv[0]}: {error}") from None
            except AdapterError as error:
                raise Unauthorised(_SECRET.sub("[token]", f"no token available: {error}")) from None
        return self._token

    def renew(self) -> bool:
        """Drop a token that was not accepted; return False if it is so new that it cannot be at fault."""
        if self._token is None or self._clock() - self._had_at < 1.0:
            return False
        self._token = None
        return True


#: A source of tokens.
TokenSource = TokenFile | TokenCommand
