"""What a run is, so that it is known again when a sweep goes on.

Rule: all that can change its result is in it, and nothing else: the content of its files, not where they lie; which
jobs; machine, policy and seed; the version that replays it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import Any

from .grid import Run, Site


def identity(
    run: Run, policy: str, contents: dict[str, str], version: str, numbers: tuple[str, ...]
) -> str:
    """32 hexadecimal digits; two runs have the same where their results are the same.

    Args:
        policy: the SPEC.
        contents: file -> hash of what is in it, and in files that it names, of the trace and the machine.
        version: of the product.
        numbers: names of what is known of a run once it has been carried out.
    """
    select: dict[str, Any] = asdict(run.select) | {"users": sorted(set(run.select.users))}
    site = run.machine
    machine = [contents[site.file], site.whole_nodes] if isinstance(site, Site) else site
    said = [
        *(version, numbers, contents[run.trace.file], run.trace.skip_invalid),
        *(select, machine, policy, run.seed),
    ]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:32]
