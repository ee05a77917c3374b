"""Submission to Slurm: the `sbatch` of our own jobs on chosen nodes, and of users' jobs that wait for us.

Rule: pure. The key is in the comment, quoted so that any text comes back. A job is looked up by its key before it is
submitted, so no job is submitted twice. The job's name contains the key, too, so that accounting finds a job that has
left the queue.
Source: sbatch(1) of Slurm 22.05.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath
from urllib.parse import quote

from ...formats.hostlist import fold
from ...simulate.model.job import Job
from ..keys import checksum, file_name, quoted, unquoted
from ..start_claim import guard
from . import dependency

#: Longest name of a job, characters; Slurm's database keeps 255 bytes.
LONGEST_NAME = 200
#: Checksum of a script in a comment.
_CHECKSUM = re.compile("[a-p]{8}")
#: Slurm refuses a comment of this many bytes or more (22.05).
LONGEST_COMMENT = 1024


def comment_for(key: str, *, hold: int = 0, profile: str = "", script: str = "") -> str:
    """Return the comment of a job with this key.

    Args:
        key: The job's key.
        hold: Seconds from its submission to a begin time that is set for us; 0: none.
        profile: Name of its profile at the site; "": none.
        script: Checksum of what it runs, from `script_checksum`; "": not known.
    """
    words = [f"hold={hold}"] if hold else []
    words += [f"key={quoted(key)}"] + ([f"profile={quote(profile, safe='')}"] if profile else [])
    words += [f"script={script}"] if script else []
    return "pilotfish:" + ";".join(words)


def key_in(comment: str) -> str | None:
    """Return the key in a comment, or None."""
    return _value("key", comment) or None


def profile_in(comment: str) -> str:
    """Return the name of the profile in a comment, or ""."""
    return _value("profile", comment)


def script_in(comment: str) -> str:
    """Return the checksum of the job's script in a comment, as job_submit.lua or a client wrote it, or ""."""
    checksum = _value("script", comment)
    return checksum if _CHECKSUM.fullmatch(checksum) else ""


def script_checksum(command: Sequence[str] | None) -> str:
    """Return the checksum of a command without its folders."""
    return checksum("\0".join(PurePath(word).name for word in command or ()))


def _value(name: str, comment: str) -> str:
    match = re.search(rf"(?:^|;){name}=([^;\s]+)", comment.partition("pilotfish:")[2])
    return unquoted(match[1]) if match else ""


def name_for(key: str) -> str:
    """Return the job name for a key, without commas.

    Accounting has the name from the start, the comment later or never.
    """
    plain = quoted(key)
    return plain if len(plain) <= LONGEST_NAME else file_name(key)


def command(key: str, job: Job, nodes: Sequence[str], options: Sequence[str], output: Path | None) -> list[str]:
    """Return the argv that submits a job to exactly these nodes, to start as soon as they are free; prints the job id.

    Args:
        key: The job's key.
        job: The job.
        nodes: Node names.
        options: The site's options (partition, account).
        output: Directory of stdout and stderr; None: Slurm's default.
    """
    files = files_of(output, key) if output else ()
    return [
        *("sbatch", "--parsable", "--no-requeue", f"--comment={comment_for(key)}", f"--nodelist={fold(nodes)}"),
        *_needs(job, len(nodes)),
        *(f"--{stream}={file}" for stream, file in zip(("output", "error"), files, strict=False)),
        *options,
        *_work(job, name_for(key), "unset SLURM_JWT"),
    ]


def files_of(folder: Path, key: str) -> tuple[Path, Path]:
    """Return the files of stdout and stderr of a job of our own."""
    name = file_name(key)
    return folder / f"{name}.out", folder / f"{name}.err"


def users_command(
    job: Job,
    comment: str,
    begin_s: int,
    after: Iterable[int],
    files: tuple[Path, Path, Path],
    options: Sequence[str],
) -> list[str]:
    """Return the argv by which a user hands over a job of a workflow, on any nodes; prints the job id.

    Args:
        job: The job.
        comment: Comment with its key; see `comment_for`.
        begin_s: Seconds from now until it may begin; 0: at once.
        after: Ids of the jobs that must have completed.
        files: Files of stdout and stderr, and the link that names the job with this key (see `start_claim`).
        options: Options of the site or the user (partition, account).
    """
    return [
        *("sbatch", "--parsable", f"--comment={comment}"),
        *([f"--begin=now+{begin_s}"] if begin_s > 0 else []),
        *dependency.options(after),
        *_needs(job, job.nodes),
        # Slurm replaces %x and the like in the names of files. A job that may not run must not empty another's.
        *(
            f"--{stream}={str(file).replace('%', '%%')}"
            for stream, file in zip(("output", "error"), files, strict=False)
        ),
        "--open-mode=append",
        *options,
        *_work(job, job.id[:LONGEST_NAME], start_guard(files[2])),
    ]


def start_guard(file: Path) -> str:
    """Return the shell command that ends a job unless it may run under its key; see `start_claim`."""
    return guard(file, "$SLURM_JOB_ID", "Slurm", 'scancel "$SLURM_JOB_ID"; exit 1')


def _needs(job: Job, nodes: int) -> list[str]:
    limit = [f"--time={max(1, math.ceil(job.walltime / 60))}"] if job.walltime else []
    return [
        *(f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1", f"--cpus-per-task={job.profile.threads}"),
        *limit,
        *memory_option(job),
    ]


def memory_option(job: Job) -> list[str]:
    """Return the option with the memory that a job requests, in MiB; none for a job that requests none.

    Slurm ends a job that takes more, so what was measured or predicted is not written: the site's default holds.
    """
    return [f"--mem={math.ceil(job.memory / 2**20)}M"] if job.memory else []


def _work(job: Job, name: str, *first: str) -> list[str]:
    where = [f"--chdir={job.directory}"] if job.directory else []
    return ["--export=ALL", f"--job-name={name}", *where, f"--wrap={script(job, *first)}"]


def script(job: Job, *first: str) -> str:
    """Return the shell line that runs the job's command on each of its nodes.

    Args:
        job: The job.
        first: Shell commands that run before.
    """
    if not job.command:
        raise ValueError(f"job {job.id!r} has no command")
    line = shlex.join(job.command)
    setting = [f"export {shlex.quote(name)}={shlex.quote(value)}" for name, value in job.environment]
    return "; ".join([*first, *setting, f"exec srun {line}" if job.nodes > 1 else f"exec {line}"])


def job_id(printed: str) -> int:
    """Return the id in `1234` or `1234;cluster`. Raises ValueError."""
    return int(printed.strip().splitlines()[-1].split(";")[0])
