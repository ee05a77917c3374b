"""What is told of a replay: files, a summary on the screen or as JSON.

Rule: whoever reads a summary learns from which inputs it comes, and by which command.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .... import __version__
from ....simulate.batch.metrics import summarise
from ....simulate.batch.replay import Replayed
from ....simulate.formats.results import write_results
from ...render.replay import show
from ...render.screen import Screen
from .. import inputs
from .asked import Asked
from .reading import Scene
from .replaying import Drawn


def report(asked: Asked, scene: Scene, replayed: Replayed, drawn: Drawn, out: Path | None, *, as_json: bool) -> None:
    """Write the results, where wanted, and print the summary. Raises OSError."""
    summary, about = summarise(replayed, scene.machine.powers), _about(asked, scene, drawn)
    if out is not None:
        write_results(out, replayed, summary, about, drawn.track, drawn.joules)
    if as_json:
        print(json.dumps({**about, **asdict(summary)}, indent=1))
        return
    has_limit, assumed = getattr(asked.chosen.policy, "limit", None) is not None, scene.cluster is None
    show(
        Screen(), replayed, summary, asked.chosen.text, scene.whose, drawn.limit, has_limit=has_limit, assumed=assumed
    )
    if out is not None:
        inputs.note(f"the results are in {out}")


def _about(asked: Asked, scene: Scene, drawn: Drawn) -> dict[str, Any]:
    """Where a summary's numbers come from."""
    files = [path for path in (*asked.workloads, asked.cluster, asked.chosen.file) if path]
    about = {
        "schema": "pilotfish/replay/v1",
        "version": __version__,
        "command": shlex.join(["pilotfish", *sys.argv[1:]]),
        "inputs": {str(path): _digest(path) for path in files},
        "policy": asked.chosen.text,
        "seed": asked.seed,
        "machine": scene.machine.processors,
        "left_out": dict(scene.jobs.left_out),
    }
    if not asked.chosen.compiled or asked.decision_time:
        about["decision_time"] = "measured" if asked.decision_time is None else asked.decision_time
    if drawn.limit:
        about["limit"] = asdict(drawn.limit)
    return about


def _digest(path: Path) -> str | None:
    """The hash of a file; None: it is a pipe, which gives its content once."""
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}" if path.is_file() else None
