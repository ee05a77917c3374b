"""`pilotfish site record`: record a running Slurm for `pilotfish whatif`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from ...formats.documents.atomic_write import check_file, write_whole
from ...formats.documents.quantities import format_size
from ...formats.text import count
from ...simulate.errors import ConfigError
from .. import options
from ..lazy import CommandGroup
from ..moment_option import moment_s
from ..options import argument, flag, option
from ..output.documents import print_json
from ..streams import note, show
from ..usage_errors import bad

app = CommandGroup(
    """Record a Slurm site, so that `whatif` replays it.

    \b
    Examples:
      pilotfish site record site
      pilotfish site record site --since 2026-03-01 --until 2026-04-01 --anonymise
    """
)


@app.command()
def record(
    folder: Annotated[Path, argument("DIR", "New or empty folder to write.")],
    since: Annotated[str, option("TIME", "Begin of the period: a date (UTC), or a time ago.")] = "30d",
    until: Annotated[str | None, option("TIME", "End of the period.", default="now")] = None,
    anonymise: Annotated[
        bool, flag("--anonymise", "Give users, accounts, jobs and paths other names, listed in DIR-names.json.")
    ] = False,
    nodes: Annotated[bool, flag("--anonymise-nodes", "Give nodes other names, too.")] = False,
    scripts: Annotated[bool, flag("--scripts", "Record the scripts of jobs, where Slurm stores them.")] = False,
    as_json: options.Json = False,
) -> int:
    """Record a running Slurm into a folder, as an operator who only reads.

    Each file is what a command of Slurm prints, in UTC: configuration, nodes, partitions, reservations, accounts, QOS,
    usage, node events, and the accounting of the period, which is asked for a day at a time. Passwords in slurm.conf
    are removed. What cannot be read is listed with what a replay loses. Exit code 1 if there is no accounting.

    \b
    Examples:
      pilotfish site record site
      pilotfish site record site --since 2026-03-01 --until 2026-04-01
      pilotfish site record site --anonymise --anonymise-nodes
    """
    from ...adapters.slurm.site_commands import slurm_time
    from ...adapters.slurm.site_recorder import TIMEOUT_S, RecorderOptions, record_site
    from ...adapters.slurm.transport.runner import CommandRunner
    from ...formats.site.recording import SiteRecording

    now = time.time()
    begin, end = moment_s("--since", since, now), now if until is None else moment_s("--until", until, now)
    if not 0 <= begin < end <= now + 1:
        raise bad("--since", f"{since!r} (allowed: before --until, which is not after now)")
    mapping = folder.with_name(f"{folder.absolute().name}-names.json")
    if anonymise:
        check_file(mapping)
        if mapping.exists():
            raise ConfigError(str(mapping), "", "it exists already", "another DIR, or no such file")
    elif nodes:
        raise bad("--anonymise-nodes", "without --anonymise (allowed: together with it)")
    recording = SiteRecording(
        folder, {"since": slurm_time(begin), "until": slurm_time(end), "zone": "UTC", "anonymous": anonymise}
    )
    recording.begin()
    chosen = RecorderOptions(begin, end, until is None, anonymise, nodes, scripts)
    names = record_site(recording, chosen, CommandRunner(TIMEOUT_S))
    if names:
        write_whole(mapping, names.mapping())
        note(f"{mapping}: the names and what they became; keep it at your site")
    if as_json:
        print_json("site-recording", {**recording.about, "files": recording.sizes, "missing": recording.missing})
    else:
        total = format_size(float(sum(recording.sizes.values())))
        show(f"{folder}: {count(len(recording.sizes), 'file')}, {total}, {since} to {until or 'now'}")
        _show_missing(recording.missing)
    return int("sacct.psv" not in recording.sizes)


def _show_missing(missing: dict[str, str]) -> None:
    from ...formats.site.site_file_list import SITE_FILES

    for name, reason in missing.items():
        cost = SITE_FILES[name].cost if name in SITE_FILES else ""
        show(f"missing: {name}: {reason}{f'; {cost}' if cost else ''}")
