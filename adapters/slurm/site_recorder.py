"""Record a running Slurm into a folder that `whatif` replays.

Rule: everything is asked once, accounting a day at a time; accounting is streamed. What cannot be read is missing, with
its reason; without the configuration there is no recording.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ...formats.site.anonymous_names import AnonymousNames
from ...formats.site.anonymous_site import AnonymousSite
from ...formats.site.conf_copies import conf_copies
from ...formats.site.recording import SiteRecording
from ...formats.site.scontrol_text import records
from ...formats.site.site_file_list import PERIOD, SITE_FILES
from ...simulate.errors import ConfigError
from ..base import AdapterError
from .site_commands import accounting_records, site_texts
from .transport.runner import CommandRunner
from .transport.scontrol import Configuration

#: Time limit of a request, seconds: accounting may think for long before it prints.
TIMEOUT_S = 600.0
#: Records that are made anonymous at once, and jobs whose scripts are asked for at once.
BATCH = 1000
#: Words of PrivateData, and what they hide.
_HIDDEN = {
    "jobs": "jobs", "accounts": "accounts", "users": "users", "usage": "usage", "nodes": "nodes",
    "partitions": "partitions", "reservations": "reservations",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RecorderOptions:
    """Options of a recording.

    Args:
        since: begin of the period, epoch seconds.
        until: its end.
        is_present: the period ends now, so that the present queue belongs to it.
        is_anonymous: users, accounts, jobs and paths get other names.
        hides_nodes: nodes get other names, too.
        has_scripts: scripts of jobs are recorded where Slurm stores them.
    """

    since: float
    until: float
    is_present: bool = True
    is_anonymous: bool = False
    hides_nodes: bool = False
    has_scripts: bool = False


def record_site(recording: SiteRecording, options: RecorderOptions, run: CommandRunner) -> AnonymousNames | None:
    """Record a site into a folder that was begun, and finish it; return the other names, if it is anonymous.

    Args:
        recording: the folder.
        options: what is recorded.
        run: runs Slurm's commands.

    Raises:
        AdapterError: the configuration cannot be read, or this process is to stop.
        OSError: a file cannot be written.
    """
    present = ("scontrol_job.txt",) if options.is_present else ()
    answers = site_texts(run, (*PERIOD, *present), options.since, options.until)
    recording.missing.update(answers.missing)
    config = Configuration(answers.texts["scontrol_config.txt"])
    nodes = [words["NodeName"] for _, words in records(answers.texts.get("scontrol_node.txt", ""), "NodeName")]
    names = AnonymousNames(nodes if options.hides_nodes else ()) if options.is_anonymous else None
    site = AnonymousSite(names) if names else None
    for name, text in answers.texts.items():
        shown = site.text(name, text) if site else text
        if shown:
            recording.write(name, shown)
    if not site:
        _copy_configuration(recording, config)
    for word in config.words("PrivateData"):
        if word.lower() in _HIDDEN:
            kind = _HIDDEN[word.lower()]
            recording.missing[f"PrivateData={word}"] = f"who is no operator sees only their own {kind}"
    jobs = list[bytes]() if options.has_scripts and "job_script" in config.words("AccountingStoreFlags") else None
    try:
        recording.stream("sacct.psv", _accounting(run, options, site, jobs))
        if jobs is not None:
            recording.stream("scripts.txt", _scripts(run, jobs, site))
    except AdapterError as error:
        if error.kind == "stopped":
            raise
        recording.missing["sacct.psv" if "sacct.psv" not in recording.sizes else "scripts.txt"] = str(error)
    if site and site.left_out:
        recording.missing["records"] = ", ".join(f"{count} {reason}" for reason, count in site.left_out.items())
    recording.finish()
    return names


def _copy_configuration(recording: SiteRecording, config: Configuration) -> None:
    """Copy slurm.conf if it can be read; scontrol's answers stand in for it otherwise."""
    with suppress(ConfigError, OSError):
        for name, text in conf_copies(Path(config["SLURM_CONF"]), config["ClusterName"]).items():
            recording.write(name, text)


def _accounting(
    run: CommandRunner, options: RecorderOptions, site: AnonymousSite | None, jobs: list[bytes] | None
) -> Iterator[bytes]:
    """Yield the header and the records of sacct; append the ids of jobs to `jobs`."""
    lines = accounting_records(run.stream, options.since, options.until)
    header = next(lines, b"")
    yield header
    while batch := list(islice(lines, BATCH)):
        if jobs is not None:
            jobs += [record.split(b"|", 2)[1] for record in batch]
        yield from _without_names(header, batch, site) if site else batch


def _without_names(header: bytes, batch: Iterable[bytes], site: AnonymousSite) -> Iterator[bytes]:
    text = b"".join(batch).decode(errors="replace").rstrip("\n")
    for line in site.records(header.decode(errors="replace").rstrip("\n"), text.split("\n")):
        yield line.encode()


def _scripts(run: CommandRunner, jobs: list[bytes], site: AnonymousSite | None) -> Iterator[bytes]:
    """Yield the scripts of jobs, a request for each BATCH of them."""
    numbers = [number.decode("ascii") for number in dict.fromkeys(jobs) if number.isdigit()]
    for begin in range(0, len(numbers), BATCH):
        ids = ",".join(numbers[begin : begin + BATCH])
        text = run([word.replace("JOBS", ids) for word in SITE_FILES["scripts.txt"].argv()])
        shown = site.text("scripts.txt", text) if site else text
        yield (shown or "").encode(errors="surrogateescape")
