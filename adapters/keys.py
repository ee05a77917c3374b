"""Keys of our own jobs in a resource manager, as texts that come back and as names; checksums of what jobs run.

Rule: pure. A quoted key has no blank, quote, backslash or `;` in it.
"""

from __future__ import annotations

import re
from hashlib import sha256
from urllib.parse import quote, unquote

#: The letters a to p for the digits of a checksum.
_LETTERS = str.maketrans("abcdef0123456789", "klmnopabcdefghij")


def quoted(key: str) -> str:
    """Return a key in characters that need no quoting anywhere."""
    return quote(key, safe="/")


def unquoted(text: str) -> str:
    """Return the key that `quoted` has made a text of."""
    return unquote(text.encode(errors="replace"))


def name_for(key: str, longest: int) -> str:
    """Return the name of the job with a key: the quoted key; with a hash in place of what exceeds `longest`."""
    plain = quoted(key)
    return plain if len(plain) <= longest else f"{plain[: longest - 13]}-{_hash(key)}"


def file_name(key: str) -> str:
    """Return the base name of a job's files, without "%", because resource managers replace %x and the like."""
    plain = re.sub(r"[^\w.-]", "_", key)[:100]
    return f"{plain}-{_hash(key)}"


def id_in(key: str, prefix: str, longest: int) -> int | None:
    """Return the id in the key of a user's job, such as `slurm/ID`; None for any other key.

    Args:
        key: The key.
        prefix: What it begins with.
        longest: Most digits of an id.
    """
    number = key.removeprefix(prefix)
    plain = key.startswith(prefix) and number.isascii() and number.isdecimal() and len(number) <= longest
    return int(number) if plain else None


def plain_name(job: str) -> str:
    """Return the base name of a job's files in its workflow's directory: the job's own name if that is plain.

    It begins with no dot.
    """
    plain = re.sub(r"[^\w.-]", "_", job, flags=re.ASCII).lstrip(".")[:100]
    return plain if plain == job else f"{plain}-{_hash(job)}"


def checksum(text: str) -> str:
    """Return a checksum of what a job runs, in eight letters, because names of profiles drop long numbers."""
    return sha256(text.encode(errors="replace")).hexdigest()[:8].translate(_LETTERS)


def _hash(key: str) -> str:
    return sha256(key.encode()).hexdigest()[:12]
