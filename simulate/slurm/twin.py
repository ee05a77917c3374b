"""The twin: a site replayed under Slurm's own rules.

Rule: the same site, phases and seed give the same starts. The record of what really happened is not looked at, but for
run times and for what people did: cancellations, releases, nodes that were drained.
Complexity: that of the passes, see `kernels/slurm/`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..kernels.object_cache import load
from ..kernels.slurm.tables import BY_MAIN
from .site import Site
from .site_tables import Phases, completed, site_block

#: Requests of the kernel.
ADVANCE, MAIN, FULL_MAIN, BACKFILL = range(4)


@dataclass(frozen=True, slots=True)
class SiteStart:
    """A start of a job. `job`: its row in `Site.jobs`; `by`: main or backfill; `end` is None while it runs."""

    job: int
    partition: str
    start: float
    end: float | None
    nodes: tuple[str, ...]
    by: str
    priority: int


@dataclass(frozen=True, slots=True)
class SiteReplay:
    """What a replay of a site gave: its starts in order, and how much work it was."""

    starts: tuple[SiteStart, ...]
    main_passes: int
    backfill_passes: int
    tests: int  # how often it was asked when a job could run


def replay_site(site: Site, seed: int = 0, phases: Phases | None = None) -> SiteReplay:
    """Replay a site from its first submission until all its jobs have ended, or none can start.

    Args:
        site: the site and its jobs.
        seed: of the phases of Slurm's clocks and of what is random later; at least 0.
        phases: of the clocks; None: drawn from the seed.
    """
    site = completed(site)
    block = site_block(site, phases or Phases.drawn(site, seed), seed=seed)
    call = load("slurm.entry")
    last = max((int(event["time"]) for event in block.agenda), default=0)
    longest = last + 400 * 86400
    call(block.address, ADVANCE, float(longest))
    count = block.count
    return SiteReplay(
        starts_of(site, block), int(count["main_passes"]), int(count["backfill_passes"]), int(count["tests"])
    )


def starts_of(site: Site, block: Any, first: int = 0) -> tuple[SiteStart, ...]:
    """Return the starts of a state, from row `first` of its table on."""
    names = [node.name for node in site.nodes]
    pieces = block.pieces["node"]
    starts = []
    for row in block.starts[first : int(block.count["starts"])].tolist():
        entry = dict(zip(block.starts.dtype.names, row, strict=True))
        nodes = sorted(pieces[entry["piece0"] : entry["piece0"] + entry["pieces"]].tolist())
        starts.append(
            SiteStart(
                entry["job"],
                site.partitions[entry["part"]].name,
                float(entry["start"]),
                None if entry["end"] < 0 else float(entry["end"]),
                tuple(names[node] for node in nodes),
                "main" if entry["by"] == BY_MAIN else "backfill",
                int(entry["priority"]),
            )  # fmt: skip
        )
    return tuple(starts)
