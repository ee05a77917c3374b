"""Submission to OAR: the `oarsub` of our own jobs.

Rule: pure. The key is at the beginning of the command, quoted so that any text comes back, and in the job's name, which
serves to look a job up before it is submitted. OAR's names have at most 100 bytes, and no quotes.
Source: oarsub(1) of OAR 2.5.
"""

from __future__ import annotations

import math
import re
import shlex
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from ...formats.documents.quantities import clock
from ...simulate.model.job import Job
from ..keys import file_name, name_for, quoted, unquoted

LONGEST_NAME = 100
#: Exit code of a job that did nothing, because a job before it did not complete, or because it was cancelled; a command
#: that ends with it in such a job ends with the other one.
SKIPPED, OTHER = 121, 120
_KEY = re.compile(r": pilotfish:key=([^;\s]+);")
_ID = re.compile(r"^OAR_JOB_ID=(\d{1,18})$", re.MULTILINE)


def name_of(key: str) -> str:
    """Return the name of the job with this key."""
    return name_for(key, LONGEST_NAME)


def key_in(command: str, name: str) -> str | None:
    """Return the key in the command of a job of ours, or None."""
    match = _KEY.match(command)
    key = unquoted(match[1]) if match else ""
    return key if key and name_of(key) == name else None


def command(
    key: str, job: Job, options: Sequence[str], output: Path | None, before: Sequence[Path], link: Path | None
) -> list[str]:
    """Return the argv that submits a job.

    The command runs on the first node, as all of OAR's do; the others are in $OAR_NODE_FILE.

    Args:
        key: The job's key.
        job: The job.
        options: More options: of the site (queue, project), or what it waits for.
        output: Folder of stdout and stderr; None: that in which the job runs.
        before: Links that the jobs before it leave, if those may not have completed when it begins.
        link: Link that it leaves when it has completed; None: no job needs one.
    """
    if not job.command:
        raise ValueError(f"job {key!r} has no command")
    files = files_of(output, key) if output else default_files(key)
    line = script(key, job, checks(before), leaves(link) if before or link else "")
    return oarsub(key, job, options, files, line)


def pinned(nodes: Sequence[str], expire: float) -> list[str]:
    """Return the options that bind a job to nodes for good, and give it up if it has not begun by then (epoch s)."""
    until = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(expire))
    return ["-p", condition(nodes), "-t", f"expire={until}"]


def after(jobs: Iterable[int]) -> list[str]:
    """Return the options that let a job wait for the end, any end, of others."""
    return [word for number in jobs for word in ("-a", str(number))]


def oarsub(key: str, job: Job, options: Sequence[str], files: tuple[Path, Path], line: str) -> list[str]:
    """Return the argv that submits a line of the shell.

    Args:
        key: The job's key.
        job: The job.
        options: More options.
        files: Files of stdout and stderr.
        line: The line.
    """
    limit = "" if job.walltime is None else f",walltime={clock(max(1, math.ceil(job.walltime)), days=False)}"
    return [
        *("oarsub", f"--name={name_of(key)}", "-l", f"/nodes={job.nodes}/core={job.profile.threads}{limit}"),
        *(f"--stdout={files[0]}", f"--stderr={files[1]}"),
        *((f"--directory={job.directory}",) if job.directory else ()),
        *options,
        line,
    ]


def script(key: str, job: Job, first: Sequence[str] = (), last: str = "") -> str:
    """Return the line of the shell that runs a job, with its key.

    Args:
        key: The job's key.
        job: The job.
        first: Commands that run before it.
        last: Commands that run after it.
    """
    setting = [f"export {shlex.quote(name)}={shlex.quote(value)}" for name, value in job.environment]
    words = shlex.join(job.command or ())
    return "; ".join(
        [f": pilotfish:key={quoted(key)}", *first, *setting, *([words, last] if last else [f"exec {words}"])]
    )


def checks(before: Sequence[Path]) -> list[str]:
    """Return the commands that end a job with SKIPPED, unless each job before it has left its link."""
    why = shlex.quote("pilotfish: a job before this one did not complete, so it does nothing")
    tests = [f"[ -L {shlex.quote(str(link))} ]" for link in before]
    return [f"skip() {{ echo {why} >&2; exit {SKIPPED}; }}", f"{{ {' && '.join(tests)}; }} || skip"] if tests else []


def leaves(link: Path | None) -> str:
    """Return the commands that run after a job's own, and leave its link if it has completed."""
    code = f"code=$?; [ $code -ne {SKIPPED} ] || code={OTHER}; "
    why = shlex.quote(f"pilotfish: {link} cannot be made")
    link_command = f"[ $code -ne 0 ] || ln -sf done {shlex.quote(str(link))} || echo {why} >&2; "
    return f"{code}{link_command if link else ''}exit $code"


def did_nothing(command: str, status: int | None) -> bool:
    """Return whether a job ended because a job before it had not completed.

    Args:
        command: Its command.
        status: Its raw wait status.
    """
    match = _KEY.match(command)
    return match is not None and status == SKIPPED << 8 and command[match.end() :].startswith(" skip() ")


def done_link(folder: Path, key: str) -> Path:
    """Return the link that a job leaves in a folder when it has completed."""
    out, _ = files_of(folder, key)
    return out.with_name(f".{out.stem}.done")


def files_of(output: Path, key: str) -> tuple[Path, Path]:
    """Return the files of stdout and stderr of a job; OAR allows only a few characters in them."""
    name = re.sub(r"[^\w.-]", "_", file_name(key), flags=re.ASCII)
    return output / f"{name}.out", output / f"{name}.err"


def default_files(key: str) -> tuple[Path, Path]:
    """Return the files of a job in the folder in which it runs, as OAR names them, but without the slash of the key."""
    out, _ = files_of(Path(), key)
    return Path(f"OAR.{out.stem}.%jobid%.stdout"), Path(f"OAR.{out.stem}.%jobid%.stderr")


def condition(nodes: Sequence[str]) -> str:
    """Return the property of resources, in SQL, that they belong to one of these nodes."""
    return f"network_address IN ({','.join(_sql(name) for name in nodes)})"


def _sql(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"


def job_id(printed: str) -> int | None:
    """Return the id that `oarsub` printed, or None."""
    match = _ID.search(printed)
    return int(match[1]) if match else None
