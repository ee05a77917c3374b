"""`pilotfish record`: keep what a resource manager shows, without a service."""

from __future__ import annotations

import math
import tempfile
import time
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Annotated

from ...adapters import registry
from ...formats.cluster import dump_cluster
from ...formats.documents.atomic_write import check_folder
from ...formats.documents.quantities import format_size
from ...formats.record.segments import Bounds, RecordWriter, segments
from ...formats.text import clean, count
from .. import options
from ..length_option import length_option, length_s
from ..options import argument, option
from ..streams import note, show
from ..usage_errors import adapter_errors


def record(
    folder: Annotated[Path, argument("DIR", "Folder of the record; what it has already stays.")],
    adapter: Annotated[str, options.ThisSite] = "slurm",
    length: Annotated[str | None, length_option("until Ctrl-C")] = None,
    every: Annotated[float, option("SECONDS", "Shortest time between two looks.", min=0.05, max=600.0)] = 10.0,
    max_mib: Annotated[int, option("MIB", "Keep at most so much; the oldest days go first.", min=1)] = 500,
    anonymise: Annotated[
        Path | None, option("OUT", "Look at nothing: write the record DIR into this folder, without its names.")
    ] = None,
) -> int:
    """Keep what a resource manager shows: its queue, its nodes, how jobs start and end. Change nothing there.

    It looks only if something has happened or a minute has passed, and decides nothing: `pilotfish replay DIR` plays
    the record to the control loop of the service, and shows what that decides. A service keeps such a record itself if
    its configuration says so. Only you can read the record, because it has names and users of jobs.

    With --anonymise, users, accounts, jobs and commands of a record that exists get other names, listed in
    OUT-names.json. Its replay decides the same. Nodes and partitions keep their names.

    \b
    Examples:
      pilotfish record seen --for 7d
      pilotfish record seen --adapter oar --every 30
      pilotfish record seen --anonymise to-give-away
    """
    if anonymise is not None:
        return _anonymise(folder, anonymise)
    seconds = length_s(length) or math.inf
    check_folder(folder)
    import yaml

    from ...daemon.recording.begin_record import header_of
    from ...daemon.recording.queue_watch import Watch
    from ...daemon.recording.recorder import Recorder

    with ExitStack() as stack:
        state = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pilotfish-")))
        with adapter_errors(None):
            nodes, assumed = registry.discover(adapter)
            chosen = registry.options_of_service(adapter, {}, folder=Path.cwd(), state_dir=state, read_only=True)
            manager = stack.enter_context(closing(registry.create(adapter, nodes, **chosen)))
        note(*assumed)
        header = header_of(manager, yaml.safe_dump(dump_cluster(nodes), sort_keys=False), time.time())
        writer = RecordWriter(folder, header, Bounds(max_mib * 2**20, math.inf), time.time)
        recorder = stack.enter_context(closing(Recorder(writer, time.monotonic)))
        note(f"records {adapter} into {folder}, {f'for {length}' if length else 'until Ctrl-C'}")
        watch, until = Watch(manager, recorder, time.monotonic), time.monotonic() + seconds
        with suppress(KeyboardInterrupt):
            while (now := time.monotonic()) < until:
                watch.step()
                time.sleep(max(0.0, min(now + every, until) - time.monotonic()))
    size = sum(path.stat().st_size for path in segments(folder))
    note(f"{folder}: {format_size(size)}; `pilotfish replay {folder}` plays it")
    return 0


def _anonymise(folder: Path, target: Path) -> int:
    """Write a record with other names."""
    from ...daemon.recording.anonymous_record import anonymise

    check_folder(target)
    outcome = anonymise(folder, target)
    for gap in outcome.gaps:
        note(clean(gap))
    size = sum(path.stat().st_size for path in segments(target))
    show(f"{target}: {count(outcome.cycles, 'cycle')}, {format_size(size)}")
    note(f"{outcome.names}: the names and what they became; keep it at your site")
    return 0
