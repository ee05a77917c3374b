"""`pilotfish reap`: one pass of the reaper, for a timer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def reap(
    config: Annotated[Path, typer.Option("--config", metavar="FILE", help="The daemon's configuration (YAML).")],
    older_than: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="Age from which a pin without a start is taken back.")
    ] = 30.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be taken back.")] = False,
) -> int:
    """Take back pins that have not become a start, so that no job waits on a dead daemon.

    Needs no daemon and no journal; run it from a timer (systemd/pilotfish-reap.timer).

    \b
    Examples:
      pilotfish reap --config /etc/pilotfish/pilotfish.yaml
      pilotfish reap --config pilotfish.yaml --older-than 10 --dry-run
    """
    from ...adapters import registry
    from ...simulate.errors import ConfigError
    from ...simulate.formats.cluster import read_cluster
    from ..config import adapter_of, load_config
    from ..reap import reap as take_back

    found = load_config(config)
    if found.adapter.name == "local":
        raise ConfigError(str(config), "adapter.name", "nothing is ever pinned by 'local'", "slurm")
    with adapter_of(config):
        adapter = registry.create(found.adapter.name, read_cluster(found.cluster), **found.adapter.options)
    try:
        return int(take_back(adapter, older_than, print, dry=dry_run) > 0)
    finally:
        adapter.close()
