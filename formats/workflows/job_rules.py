"""Rules for every job that is planned, whichever reader it came from: files, the socket, other formats.

Rule: a number that passes here can be planned: it is finite, and so far from the limits of a float that sums over a
workflow and quotients of two such numbers stay within them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from ...simulate.errors import InvalidJobError
from ...simulate.model.job import Distribution, Job, Profile, Provenance, ThreadGroup
from ..documents.quantities import LARGEST
from ..text import count

#: Parameters of each distribution of a service demand, all required.
DISTRIBUTIONS = {
    "lognormal": ("mean", "cv"),
    "normal": ("mean", "cv"),
    "uniform": ("low", "high"),
    "empirical": ("values",),
}
#: Where the numbers of a profile may come from (see `Provenance`).
ORIGINS = ("measured", "given", "predicted", "default")
#: Least service demand (seconds) and utilisation of a thread, and the longest run time of a job alone, seconds.
_LEAST_DEMAND_S, _LEAST_UTILISATION, _LONGEST_S = 1e-9, 1e-9, 1e15
_MOST_NODES, _MOST_THREADS, _MOST_CV = 1_000_000, 1_000_000, 100.0
#: Longest name, and longest remark of a profile, characters.
_LONGEST_NAME, LONGEST_TEXT = 255, 4096
#: Most groups and phases of a profile, because each is simulated; values of a distribution; and facts about a job or a
#: profile of one kind, such as input files or warnings.
MOST_PHASES, MOST_VALUES, MOST_FACTS = 1000, 10_000, 1000
#: Bytes of one word of a command or one variable, and of all of them together, each with its NUL and a pointer: what
#: execve(2) takes of Linux with the usual stack limit. A program with more never starts.
LARGEST_WORD, LARGEST_COMMAND = 2**17 - 1, 2**21
_POINTER = 9
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check_jobs(jobs: Iterable[Job], where: str) -> None:
    """Raise InvalidJobError for the first job that breaks a rule of this module. O(jobs + distinct profiles).

    Args:
        jobs: of one workflow.
        where: the file or the workflow's name, for the error.
    """
    sound: dict[int, Profile] = {}
    for job in jobs:
        problem = _job_problem(job)
        if not problem and id(job.profile) not in sound:
            problem = _profile_problem(job.profile)
            sound[id(job.profile)] = job.profile
        if problem:
            raise InvalidJobError(f"{where}: job {job.id[:_LONGEST_NAME]!r}: {problem}")


def name_problem(name: str) -> str:
    """Return why text is no name, or ""."""
    good = 0 < len(name) <= _LONGEST_NAME and name.isprintable() and name == name.strip()
    return "" if good else f"must be printable text of 1 to {_LONGEST_NAME} characters, no blanks at its ends"


def _job_problem(job: Job) -> str:
    if problem := name_problem(job.id):
        return f"the id {problem}"
    if problem := _size_problem(job):
        return problem
    if not 1 <= job.nodes <= _MOST_NODES:
        return f"nodes is {job.nodes} (allowed: 1 to {_MOST_NODES})"
    if not _within(job.memory, 0, LARGEST):
        return "memory must be a size of 0 or more bytes"
    if job.walltime is not None and not (_within(job.walltime, 0, LARGEST) and job.walltime > 0):
        return f"walltime is {job.walltime} (allowed: seconds over 0)"
    if job.command is not None and (not job.command or "\0" in "".join(job.command)):
        return "the command must be a list of at least one word, without NUL bytes"
    if not all(VARIABLE.fullmatch(name) and "\0" not in value for name, value in job.environment):
        return "environment: a name is letters, digits and '_', not starting with a digit; no NUL bytes are allowed"
    if job.directory is not None and (not 0 < len(job.directory) <= LONGEST_TEXT or "\0" in job.directory):
        return f"directory must be a path of at most {LONGEST_TEXT} characters, without NUL bytes"
    if len(job.inputs) > MOST_FACTS or len(job.traits) > MOST_FACTS:
        return f"more than {MOST_FACTS} inputs or traits"
    return ""


def _size_problem(job: Job) -> str:
    """Return why execve(2) would never start a job's command with its variables, or ""; it shows no value."""
    command, values = job.command or (), [value for _, value in job.environment]
    words, texts = len(command) + len(values), ("\0".join(command), "\0".join(values))
    names = sum(len(name) for name, _ in job.environment)
    total = sum(map(_bytes, texts)) + names + _POINTER * words
    if total > LARGEST_COMMAND:
        has = f"the command and its variables have {total:,} bytes"
        return f"{has}, with which no program starts (allowed: {LARGEST_COMMAND:,})"
    longest = max(map(len, command), default=0)
    if longest > LARGEST_WORD // 4 and (size := max(map(_bytes, command))) > LARGEST_WORD:
        return f"the command has a word of {size:,} bytes, with which no program starts (allowed: {LARGEST_WORD:,})"
    if names + len(texts[1]) > LARGEST_WORD // 4:
        for name, value in job.environment:
            if (size := len(name) + 1 + _bytes(value)) > LARGEST_WORD:
                has = f"environment: {name[:60]!r} has {size:,} bytes"
                return f"{has}, with which no program starts (allowed: {LARGEST_WORD:,})"
    return ""


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def _profile_problem(profile: Profile) -> str:
    """Return what is out of range in a profile, or ""."""
    if not profile.groups:
        return "profile: no threads"
    if (parts := len(profile.groups) + sum(len(group.phases) for group in profile.groups)) > MOST_PHASES:
        return f"profile: {count(parts, 'group')} and phases (allowed: {MOST_PHASES:,})"
    demands = (group.service_demand for group in profile.groups)
    if (values := sum(len(demand.values) for demand in demands if isinstance(demand, Distribution))) > MOST_VALUES:
        return f"profile: service_demand: {values:,} values (allowed: {MOST_VALUES:,})"
    if sum(group.count for group in profile.groups) > _MOST_THREADS:
        return f"profile: more than {_MOST_THREADS} threads"
    if profile.name and (problem := name_problem(profile.name)):
        return f"profile: its name {problem}"
    totals = (profile.memory, profile.instructions, profile.ipc, profile.io_bytes, profile.power_watts)
    if not all(_within(value, 0, LARGEST) for value in totals if value is not None):
        return "profile: memory, instructions, ipc, io_bytes and power_watts must be 0 or more"
    return next(filter(None, map(_group_problem, profile.groups)), "") or _origin_problem(profile.provenance)


def _origin_problem(about: Provenance) -> str:
    if about.source not in ORIGINS:
        return f"profile: source is {about.source[:40]!r} (allowed: {', '.join(ORIGINS)})"
    low, high = about.interval or (1.0, 1.0)
    if not (_within(low, 0, 1) and _within(high, 1, LARGEST)) or not _within(about.spread or 0.0, 0, LARGEST):
        return "profile: interval must be from 0..1 to 1 or more, spread 0 or more"
    if not 0 <= about.runs <= LARGEST or not all(math.isfinite(value) for _, value in about.strain):
        return "profile: runs must be 0 or more, and what slowed them a number"
    if len(about.strain) > MOST_FACTS or len(about.inputs) > MOST_FACTS:
        return f"profile: more than {MOST_FACTS} inputs, or facts about what slowed its runs"
    texts = (about.date or "", about.node_type or "", about.note, *(fact for fact, _ in about.strain))
    if any(len(text) > LONGEST_TEXT for text in texts):
        return f"profile: date, node_type and note have at most {LONGEST_TEXT} characters"
    return ""


def _group_problem(group: ThreadGroup) -> str:
    demand = group.service_demand
    if not 1 <= group.count <= _MOST_THREADS:
        return f"profile: count is {group.count} (allowed: 1 to {_MOST_THREADS})"
    if isinstance(demand, Distribution) and (problem := _distribution_problem(demand)):
        return f"profile: service_demand: {problem}"
    if not _within(group.demand, _LEAST_DEMAND_S, LARGEST):
        return f"profile: service_demand must be seconds from {_LEAST_DEMAND_S:g} to {LARGEST:g}"
    parts = [(group.utilisation, group.bandwidth), *((p.utilisation, p.bandwidth) for p in group.phases)]
    if not all(_within(u, _LEAST_UTILISATION, 1) and _within(b, 0, LARGEST) for u, b in parts):
        return f"profile: utilisation must be from {_LEAST_UTILISATION:g} to 1, bandwidth 0 or more"
    if not _within(group.utilisation_std, 0, 1):
        return "profile: utilisation_std must be from 0 to 1"
    shares = [phase.share for phase in group.phases]
    if shares and not (all(_within(share, 1e-9, 1) for share in shares) and math.isclose(sum(shares), 1, rel_tol=1e-6)):
        return "profile: the shares of the phases must be over 0 and add up to 1"
    if group.isolated_time > _LONGEST_S:
        return f"profile: it would run for {group.isolated_time:.3g} s alone (allowed: up to {_LONGEST_S:g} s)"
    return ""


def _distribution_problem(distribution: Distribution) -> str:
    """Return what is wrong with a distribution, or ""; parameters that its kind does not use must not be given."""
    if distribution.dist not in DISTRIBUTIONS:
        return f"dist is {distribution.dist[:40]!r} (allowed: {', '.join(DISTRIBUTIONS)})"
    used = DISTRIBUTIONS[distribution.dist]
    if any(getattr(distribution, key) for key in ("mean", "cv", "low", "high", "values") if key not in used):
        return f"{distribution.dist} has the parameters {' and '.join(used)} only"
    if "values" in used and not (
        distribution.values and all(_within(v, _LEAST_DEMAND_S, LARGEST) for v in distribution.values)
    ):
        return f"an empirical one needs values, seconds from {_LEAST_DEMAND_S:g} to {LARGEST:g}"
    if "cv" in used and not _within(distribution.cv, 0, _MOST_CV):
        return f"cv is {distribution.cv} (allowed: 0 to {_MOST_CV:g})"
    if "low" in used and not (
        _within(distribution.low, 0, LARGEST) and distribution.low < distribution.high <= LARGEST
    ):
        return f"low is {distribution.low:g}, high {distribution.high:g} (allowed: 0 or more, and more than low)"
    return ""


def _within(value: float, low: float, high: float) -> bool:
    return math.isfinite(value) and low <= value <= high
