"""`pilotfish backup` and `pilotfish restore`: the state of a service in one file, and back."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from ...formats.documents.quantities import format_size
from ...formats.text import count
from .. import options
from ..inputs import config_file
from ..options import argument, flag
from ..output.documents import print_json
from ..streams import note, show, warn


def backup(
    file: Annotated[Path, argument("FILE", "The backup, a tar archive that gzip has compressed.")],
    config: options.ConfigFile = None,
    as_json: options.Json = False,
) -> None:
    """Keep what a service must not lose in one file; the service may run.

    It has the journal, the profiles, all other state, and the configuration without its secrets, with a checksum of
    each. The service's record is only listed. Root and the account of the service may make one. It takes as much room
    next to FILE as the state, until it is complete.

    \b
    Examples:
      pilotfish backup /var/backups/pilotfish.tar.gz
      tar -tzf /var/backups/pilotfish.tar.gz
    """
    from ...daemon.config import load_config
    from ...daemon.state.backup import write_backup

    path = config_file(config)
    manifest = write_backup(load_config(path), path, file, time.time())
    size = file.stat().st_size
    if as_json:
        print_json("backup", {"file": str(file), "bytes": size, **asdict(manifest)})
        return
    unpacked = sum(length for length, _ in manifest.files.values())
    show(f"{file}: {count(len(manifest.files), 'file')}, {format_size(unpacked)}, packed {format_size(size)}")
    if manifest.left_out:
        warn(f"larger than a backup takes, and left out: {', '.join(manifest.left_out)}")
    if manifest.record:
        note(f"the record ({format_size(sum(manifest.record.values()))}) is not in it: copy its folder")


def restore(
    file: Annotated[Path, argument("FILE", "A backup, or the copy of a journal that an upgrade left.")],
    config: options.ConfigFile = None,
    check: Annotated[bool, flag("--check", "Only check the backup, and change nothing.")] = False,
    as_json: options.Json = False,
) -> None:
    """Put the state of a service back from a backup; the service must be stopped.

    The whole file is checked before anything is changed. What is replaced is kept in a folder of the state, which the
    output names. The configuration is left as it is; that of the backup is in FILE.

    \b
    Examples:
      pilotfish restore /var/backups/pilotfish.tar.gz --check
      pilotfish restore /var/backups/pilotfish.tar.gz
    """
    from ...daemon.config import load_config
    from ...daemon.state.restore import describe
    from ...daemon.state.restore import restore as put_back

    outcome = put_back(load_config(config_file(config)), file, only_check=check)
    if as_json:
        print_json("restored", {"file": str(file), "checked_only": check, **describe(outcome)})
        return
    about = outcome.manifest
    origin = (
        f", made {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(about.time))} by {about.pilotfish}" if about else ""
    )
    show(f"{file}: {'sound' if check else 'restored'}, {count(len(outcome.names), 'file')}{origin}")
    if about and (more := len(about.files) - len(outcome.names)):
        note(f"{count(more, 'file')} of the configuration stay in it: tar -xzf {file} configuration")
    if outcome.aside:
        note(f"what was there before is in {outcome.aside}")
