"""Answers of a running Slurm about its site, as texts."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SiteTexts:
    """Answers of a running Slurm about its site.

    Args:
        texts: name of a file in `SITE_FILES` -> what its command printed.
        missing: name of a file -> why there is no text.
        time: when the jobs were asked for, epoch seconds of Slurm's clock; 0: not known.
        why_not: why nothing can be said of the site now; "": what there is, is there.
    """

    texts: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    time: float = 0.0
    why_not: str = ""
