"""Handing Slurm a job of our own: the `sbatch` that starts it on chosen nodes, under a key that Slurm carries.

Rule: pure. The key is in the comment, quoted so that any text comes back; a job is found by it before it is submitted,
so that nothing is submitted twice. Its name says the key, too: by that accounting finds it when it has left the queue.
Source: sbatch(1) of Slurm 22.05.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Sequence
from hashlib import sha256
from pathlib import PurePath
from urllib.parse import quote, unquote

from ...simulate.fits import memory_need
from ...simulate.formats.hostlist import fold
from ...simulate.job import Job

_KEY = re.compile(r"(?:^|;)key=([^;\s]+)")
#: characters of a job's name; Slurm's database keeps 255 bytes of it
LONGEST_NAME = 200
_PROFILE = re.compile(r"(?:^|;)profile=([^;\s]+)")


def comment_for(key: str) -> str:
    """The comment of a job that is known as `key`."""
    return f"pilotfish:key={quote(key, safe='/')}"


def key_in(comment: str) -> str | None:
    """The key in a comment, if there is one."""
    found = _KEY.search(comment.partition("pilotfish:")[2])
    return unquote(found[1]) if found else None


def profile_in(comment: str) -> str:
    """The name of the profile in a comment, or ""."""
    found = _PROFILE.search(comment.partition("pilotfish:")[2])
    return unquote(found[1]) if found else ""


def name_for(key: str) -> str:
    """The name of a job that is known as `key`, without commas: accounting has it from the start, and the comment only
    later, if ever."""
    plain = quote(key, safe="/")
    return plain if len(plain) <= LONGEST_NAME else file_name(key)


def command(key: str, job: Job, nodes: Sequence[str], options: Sequence[str], output: PurePath | None) -> list[str]:
    """The argv that submits a job to run on exactly these nodes as soon as they take it; prints the job id.

    Args:
        options: what the site adds (partition, account).
        output: folder of stdout and stderr; None = Slurm's own default.
    """
    name = file_name(key)
    files = [f"--output={output / name}.out", f"--error={output / name}.err"] if output else []
    limit = [f"--time={max(1, math.ceil(job.walltime / 60))}"] if job.walltime else []
    memory = memory_need(job)
    size = [f"--mem={math.ceil(memory / 2**20)}M"] if memory else []
    return [
        "sbatch",
        "--parsable",
        "--no-requeue",
        "--export=ALL",
        f"--job-name={name_for(key)}",
        f"--comment={comment_for(key)}",
        f"--nodelist={fold(nodes)}",
        f"--nodes={len(nodes)}",
        f"--ntasks={len(nodes)}",
        "--ntasks-per-node=1",
        f"--cpus-per-task={job.profile.threads}",
        *limit,
        *size,
        *files,
        *options,
        *([f"--chdir={job.directory}"] if job.directory else []),
        f"--wrap={script(job)}",
    ]


def script(job: Job) -> str:
    """The shell line that runs the job's command, on every node of it."""
    if not job.command:
        raise ValueError(f"job {job.id!r} has no command")
    line = shlex.join(job.command)
    setting = [f"export {name}={shlex.quote(value)}" for name, value in job.environment]
    return "; ".join([*setting, f"exec srun {line}" if job.nodes > 1 else f"exec {line}"])


def file_name(key: str) -> str:
    """The name of a job's files, without an ending. Slurm replaces %x and the like, so there is no % in it."""
    plain = re.sub(r"[^\w.-]", "_", key)[:100]
    return f"{plain}-{sha256(key.encode()).hexdigest()[:12]}"


def job_id(printed: str) -> int:
    """The id in `1234` or `1234;cluster`. Raises ValueError."""
    return int(printed.strip().splitlines()[-1].split(";")[0])
