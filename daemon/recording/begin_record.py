"""The begin of a record: the recorder of a daemon, with what it knew when it started.

Rule: a record that cannot be made costs a warning, never the service.
"""

from __future__ import annotations

import logging
import secrets
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ... import __version__
from ...adapters.base import Adapter
from ...formats.documents.plain_values import plain
from ...formats.record.segments import Bounds, RecordWriter
from ...formats.record.state import MOST_BYTES, write_state
from ...trust import make_folder
from ..assembly import DECIDING
from ..config import DaemonConfig
from ..run_modes import RunMode
from ..state.journal import Journal
from ..state.journal_db import content_of
from .recorder import Recorder

log = logging.getLogger("pilotfish.record")
MIB = 2**20
#: Keys of the configuration that a record has: those that decide, also for whom, and those by which the daemon learns.
KEPT_KEYS = DECIDING | {"mode", "paused", "handover", "accounting", "relearn"}


def begin_record(
    config: DaemonConfig, adapter: Adapter, journal: Journal, clock: Callable[[], float], mode: RunMode
) -> Recorder | None:  # fmt: skip
    """Return what records this daemon; None if it is not to be recorded, or cannot be.

    Args:
        config: of the daemon.
        adapter: that is to be recorded.
        journal: as the daemon has just opened it.
        clock: seconds, monotonic.
        mode: in which it runs.
    """
    section = config.record
    if not section.enabled:
        return None
    folder, began = config.record_folder, time.time()
    header = header_of(adapter, Path(config.cluster).read_text(), began) | {
        "config": config.model_dump(mode="json", include=set(KEPT_KEYS)),
        "mode": str(mode),
    }
    try:
        files = _files_of(config, journal, mode)
        if sum(map(len, files.values())) > MOST_BYTES:
            header["why_no_state"] = f"the journal and the profiles had more than {MOST_BYTES // MIB} MiB when it began"
        else:
            header["state"] = write_state(Path(make_folder(folder)), began, files)
        bounds = Bounds(section.max_mib * MIB, section.keep_days)
        writer = RecordWriter(folder, header, bounds, time.time)
    except (OSError, sqlite3.Error) as error:
        log.error("%s: no record is made: %s", folder, error)
        return None
    log.info("what is seen is recorded in %s, at most %d MiB of %g days", folder, section.max_mib, section.keep_days)
    return Recorder(writer, clock)


def header_of(adapter: Adapter, cluster: str, began: float) -> dict[str, Any]:
    """Return the header of a record whose daemon decides nothing, and learns nothing.

    Args:
        adapter: that is recorded.
        cluster: text of the cluster file.
        began: when the record begins, epoch seconds.
    """
    return {
        "run": secrets.token_hex(8),
        "began": began,
        "pilotfish": __version__,
        "adapter": adapter.name,
        "capabilities": plain(adapter.capabilities, {}),
        "cluster": cluster,
        "config": {},
        "mode": str(RunMode.DRY_RUN),
    }


def _files_of(config: DaemonConfig, journal: Journal, mode: RunMode) -> dict[str, bytes]:
    """Return the files that the daemon starts with, by name. Raises OSError, sqlite3.Error."""
    files = {"journal.sqlite": journal.content()}
    if config.profile_store.exists():
        files["profiles.sqlite"] = content_of(config.profile_store)
    if mode.keeps and config.delays.exists():
        files["delays.json"] = config.delays.read_bytes()
    return files
