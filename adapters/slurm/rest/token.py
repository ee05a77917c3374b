"""The token that slurmrestd wants to see: where it comes from, and when a new one is needed.

Rule: a token is shown to slurmrestd and to nobody else: not in a log, not in an error, not in a repr. Whether it is
still good is read from the token itself. Whoever can mint tokens for others is root on the cluster: one that lives
for minutes, of an operator account, is enough.
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
from typing import Protocol

from ....simulate.errors import ConfigError
from ...base import AdapterError
from ..runner import Runner
from .errors import Unauthorised

#: part of a token's life after which the next one is asked for, and seconds at most before its end
USED_UP, LAST_S = 0.8, 60.0
_SECRET = re.compile(r"[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}")


@dataclass(frozen=True)
class Token:
    """A token, its life in epoch seconds of whoever minted it; without `exp` it never expires."""

    text: str = field(repr=False)
    exp: float | None = None
    iat: float | None = None

    @property
    def life_s(self) -> float:
        """Seconds from its making to its end."""
        return float("inf") if self.exp is None or self.iat is None else self.exp - self.iat


class TokenSource(Protocol):
    """Where tokens come from."""

    def get(self) -> Token:
        """A token that is good now, the same one as long as it is. Raises AdapterError."""
        ...

    def renew(self) -> bool:
        """Forget the one that was not accepted; False where there cannot be another yet."""
        ...


def parse(text: str) -> Token:
    """The token in what a file or `scontrol token` says. Raises ValueError, whose text does not show it."""
    word = text.strip().removeprefix("SLURM_JWT=").strip()
    parts = word.split(".")
    if len(parts) != 3 or not word.isascii() or len(word.split()) != 1:
        raise ValueError("it holds no token (three words with dots between them)")
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        exp, iat = (None if claims.get(name) is None else float(claims[name]) for name in ("exp", "iat"))
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise ValueError("it holds a token that cannot be read") from None
    return Token(word, exp, iat)


class TokenFile:
    """A file that the site renews; it is read again when it has changed. Raises ConfigError if it cannot be now."""

    def __init__(self, path: str | os.PathLike[str], clock: Callable[[], float] = time.time) -> None:
        self._path, self._clock = Path(path), clock
        self._read()

    def get(self) -> Token:
        """The file's token."""
        try:
            if self._mark() != self._seen:
                self._read()
        except (OSError, ConfigError) as error:
            raise Unauthorised(str(error)) from None
        if self._token.exp is not None and self._token.exp <= self._clock():
            ago = self._clock() - self._token.exp
            raise Unauthorised(f"{self._path}: the token expired {ago:.0f} s ago, and nobody has renewed it")
        return self._token

    def renew(self) -> bool:
        """Another one is there when the file has changed."""
        try:
            return self._mark() != self._seen
        except OSError:
            return False

    def _mark(self) -> tuple[int, ...]:
        found = self._path.stat()
        return found.st_ino, found.st_mtime_ns, found.st_size, found.st_mode

    def _read(self) -> None:
        key = "rest_token_file"
        try:
            self._seen = self._mark()
            mode = stat.S_IMODE(self._seen[3])
            if mode & 0o007:
                fix = f"mode 0600 or 0640: chmod o= {self._path}"
                raise ConfigError(str(self._path), key, f"everybody can read it (mode {mode:04o})", fix)
            self._token = parse(self._path.read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(str(self._path), key, f"it cannot be read: {error.strerror}") from None
        except ValueError as error:
            problem = "it is no text" if isinstance(error, UnicodeDecodeError) else str(error)
            raise ConfigError(str(self._path), key, problem, "what `scontrol token` prints") from None


class TokenCommand:
    """A command that prints a token, run before the last one ends; by our own clock, whatever the other one says."""

    def __init__(self, argv: Sequence[str], run: Runner, clock: Callable[[], float] = time.monotonic) -> None:
        self._argv, self._run, self._clock = tuple(argv), run, clock
        self._token: Token | None = None
        self._had_at = 0.0

    def get(self) -> Token:
        """The last token, or a new one."""
        if self._token is None or self._used_up(self._token):
            began = self._clock()
            try:
                self._token, self._had_at = parse(self._run(self._argv)), began
            except ValueError as error:
                raise Unauthorised(f"{self._argv[0]}: {error}") from None
            except AdapterError as error:
                raise Unauthorised(_SECRET.sub("[token]", f"no token to be had: {error}")) from None
        return self._token

    def renew(self) -> bool:
        """The next one is new; not so soon after the last, which then was not what is wrong."""
        if self._token is None or self._clock() - self._had_at < 1.0:
            return False
        self._token = None
        return True

    def _used_up(self, token: Token) -> bool:
        age = self._clock() - self._had_at
        return age >= token.life_s - min(LAST_S, (1 - USED_UP) * token.life_s)
