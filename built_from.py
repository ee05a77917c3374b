"""The version of this program, with the commit that it was built from.

Rule: git is never run. A clone reads its own `.git`; what was built from one has the file `commit.txt`, which setup.py
writes. Without both the commit is unknown, and said to be.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

#: The file with the commit in an installed package and in a source distribution.
COMMIT_FILE = "commit.txt"
UNKNOWN = "unknown"
#: Hexadecimal digits of a commit that are shown.
_SHOWN = 12
#: Longest chain of symbolic references.
_MOST_REFERENCES = 5


def commit_of(folder: Path) -> str:
    """Return the commit of a source tree or an installed package, hexadecimal, or "" if it is not known.

    Args:
        folder: the root of a clone (as gitrepository-layout(5) has it), of an unpacked source distribution, or the
            folder of the installed package.
    """
    try:
        text = _head(folder / ".git") if (folder / ".git").exists() else (folder / COMMIT_FILE).read_text("ascii")
    except (OSError, ValueError):
        return ""
    return text.strip() if _is_commit(text.strip()) else ""


def _head(git: Path) -> str:
    """Return what HEAD of a repository is. Raises OSError, ValueError (it is no text)."""
    if git.is_file():  # a linked work tree
        git = git.parent / git.read_text().removeprefix("gitdir:").strip()
    common_file = git / "commondir"
    common = git / common_file.read_text().strip() if common_file.is_file() else git
    text = (git / "HEAD").read_text("ascii").strip()
    for _ in range(_MOST_REFERENCES):
        name = text.removeprefix("ref:").strip()
        if name == text:
            return text
        file = next((folder / name for folder in (git, common) if (folder / name).is_file()), None)
        text = file.read_text("ascii").strip() if file else _packed(common / "packed-refs", name)
    return ""


def _packed(file: Path, name: str) -> str:
    """Return the commit of a reference in a file of packed references, or "". Raises OSError, ValueError."""
    for line in file.read_text("ascii").splitlines():
        commit, _, reference = line.partition(" ")
        if reference == name:
            return commit
    return ""


def _is_commit(text: str) -> bool:
    return len(text) in (40, 64) and all(digit in "0123456789abcdef" for digit in text)


@cache
def commit() -> str:
    """Return the first digits of the commit that this program was built from, or UNKNOWN."""
    return commit_of(Path(__file__).resolve().parent)[:_SHOWN] or UNKNOWN


def full_version() -> str:
    """Return the version with its commit, as `1.0.0 (commit 0123456789ab)`."""
    from . import __version__

    return f"{__version__} (commit {commit()})"
