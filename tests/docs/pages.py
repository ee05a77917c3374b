"""The pages that people read: README, CONTRIBUTING, CHANGELOG and docs/, with their blocks, commands and links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pilotfish

ROOT = Path(pilotfish.__file__).resolve().parent
GENERATED = ROOT / "docs" / "reference" / "generated"
PAGES = sorted(
    [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    + [path for path in (ROOT / "docs").rglob("*.md") if GENERATED not in path.parents]
)


def name_of(page: Path) -> str:
    """Return the path of a page below the root."""
    return page.relative_to(ROOT).as_posix()


def blocks(text: str, language: str = "") -> list[str]:
    """Return the fenced blocks of a page, of one language if it is named."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)
    return [body for kind, body in found if language in ("", kind)]


def typed(text: str) -> Iterator[str]:
    """Yield the command lines after a prompt, `$` or `#`, in the console blocks of a page."""
    for body in blocks(text, "console"):
        for line in body.splitlines():
            if line.startswith(("$ ", "# ")):
                yield line[2:]


def links(text: str) -> set[str]:
    """Return the targets of links and pictures that are files."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    return {target for target in re.findall(r"\]\(([^)\s]+)\)", prose) if not re.match(r"[a-z]+:|#", target)}
