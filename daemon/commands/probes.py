"""`pilotfish probes`: what this machine lets be measured of its jobs and of itself, and at what cost."""

from __future__ import annotations

from typing import Annotated

import typer


def probes(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")] = False,
) -> None:
    """List the probes: which are there, why others are not, what each gives and costs. Leaves nothing changed.

    The cost is measured while you wait: CPU time of one look at a small process, and of beginning and ending.

    \b
    Examples:
      pilotfish probes
      pilotfish probes --json
    """
    from ...profiles.probes.catalogue import entries, examine

    found = [examine(entry) for entry in entries()]
    if as_json:
        import json
        from dataclasses import asdict

        print(json.dumps({"schema": "pilotfish/probes/v1", "probes": [asdict(one) for one in found]}, indent=2))
        return
    from ..render.probes import show

    show(found)
