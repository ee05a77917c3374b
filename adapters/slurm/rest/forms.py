"""Jobs and nodes as slurmrestd shows them, in all its versions, converted to records.

Rule: pure. A missing key that we need is an error, because a user's request would be overlooked, and no user can remove
a key. A number that is not set, or is one of Slurm's placeholders for that, is None. A job with an unreadable value is
UNKNOWN and not left out, because an omitted job would look like one that has gone.
Source: answers of Slurm 22.05 (v0.0.36 to v0.0.38); rest_api.html of 23.02 to 25.11 (v0.0.39 to v0.0.44).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ....simulate.model.snapshot import JobState, NodeState
from ...base import ParseError
from ..records import SlurmJob, SlurmNode
from ..transport.parsing import array_tasks, clean, comment, job_state, node_state, tres
from ..transport.rows import Unreadable, read_rows, unknown_job
from ..transport.squeue import OWN_CORE, SPECIAL, amounts, exit_of, memory, own_core, threads_for, units, unusual_size
from ..transport.squeue import nodes as names

Form = Mapping[str, Any]
#: Fields of a SlurmJob that are texts, times and lists of nodes -> keys of a job.
_TEXTS = {
    "name": "name", "account": "account", "qos": "qos", "partition": "partition", "dependency": "dependency",
    "features": "features", "reservation": "resv_name",
}  # fmt: skip
_TIMES = {"submit": "submit_time", "begin": "eligible_time", "start": "start_time", "deadline": "deadline"}
_NODES = {"placed": "nodes", "wanted": "required_nodes", "unwanted": "excluded_nodes"}
_TASKS = ("tasks", "cpus_per_task", "tasks_per_node", "minimum_cpus_per_node")
#: What Slurm 22.05 does not show yet: where it plans to start a job, and two requests of jobs.
SINCE_23_02 = frozenset(("scheduled_nodes", "required_switches", "prefer"))
#: Requests of jobs that are left to Slurm: key -> the field of squeue's that names it in words.
_SPECIAL = {
    "licenses": "Licenses", "tres_per_node": "tres-per-node", "tres_per_job": "tres-per-job",
    "tres_per_socket": "tres-per-socket", "tres_per_task": "tres-per-task", "contiguous": "Contiguous",
    "core_spec": "CoreSpec", "thread_spec": "CoreSpec", "required_switches": "reqswitch",
    "minimum_tmp_disk_per_node": "MinTmpDisk", "tasks_per_socket": "ntpersocket", "tasks_per_core": "NTPerCore",
    "sockets_per_node": "Sockets", "cores_per_socket": "Cores", "threads_per_core": "Threads", "prefer": "prefer",
    "cluster_features": "ClusterFeature", "time_minimum": "MinTime", "burst_buffer": "BurstBuffer",
}  # fmt: skip
#: Keys that every job must have.
NEEDED = frozenset((
    "job_id", "job_state", "state_reason", "state_description", "array_job_id", "het_job_id", "user_id", "node_count",
    "cpus", "time_limit", "end_time", "shared", "priority", "restart_cnt", "exit_code", "tres_req_str",
    "tres_alloc_str", "memory_per_node", "memory_per_cpu", "max_nodes", *_TASKS, *_TEXTS.values(), "comment",
    *_TIMES.values(), *_NODES.values(), *_SPECIAL,
)) - SINCE_23_02  # fmt: skip
_NEEDED_OF_NODES = frozenset((
    "name", "state", "cpus", "alloc_cpus", "real_memory", "alloc_memory", "active_features", "partitions", "reason",
    "sockets", "cores",
))  # fmt: skip
#: NO_VAL and INFINITE, of 32 and of 64 bits.
_STAND_INS = frozenset((2**32 - 2, 2**32 - 1, 2**64 - 2, 2**64 - 1))
#: The same of 16 bits, for small numbers; an unset `thread_spec` loses its first bit.
_SHORT_STAND_INS = frozenset((2**16 - 2, 2**16 - 1, 2**15 - 2))
#: REST's words for how a job shares nodes -> squeue's.
_SHARES = {"": "OK", "none": "NO", "shared": "YES", "oversubscribe": "YES"}


def jobs(
    answer: Form, request: str = "jobs", unreadable: Unreadable | None = None, *, whole: bool = True
) -> list[SlurmJob]:
    """Return the jobs of an answer. O(jobs). Raises ParseError.

    Args:
        answer: What slurmrestd answered.
        request: Name of the request, for errors.
        unreadable: Counts and reports the jobs that cannot be read.
        whole: The answer shows all jobs.
    """
    forms, report = _list(answer, "jobs", request, NEEDED), unreadable or Unreadable()
    problems: dict[str, str] = {}
    records = read_rows(forms, partial(_job, report.most_names), partial(_unknown, report.most_names), _id_of, problems)
    report.note("job", problems, whole=whole)
    return records


def _id_of(form: Form) -> str:
    return str(form["job_id"])


def _unknown(name_limit: int, form: Form) -> SlurmJob | None:
    return unknown_job(
        {
            "id": lambda: _identity(form["job_id"]),
            "uid": lambda: _identity(form["user_id"], least=0),
            "state": lambda: job_state(_words(form["job_state"])),
            "placed": lambda: names(_text(form["nodes"]), name_limit),
            "partition": lambda: _text(form["partition"]),
            "nodes": lambda: max(1, _count(form["node_count"])),
            "cpus": lambda: max(1, _count(form["cpus"])),
            "memory": lambda: _memory_of_unknown(form),
        }
    )


def _memory_of_unknown(form: Form) -> float:
    node_count, cpus = max(1, _count(form["node_count"])), max(1, _count(form["cpus"]))
    return _memory(form, tres(_text(form["tres_alloc_str"])), cpus, max(1, -(-cpus // node_count)), node_count)


def shows_all(answer: Form) -> bool:
    """Return whether the jobs of an answer have all fields of a SlurmJob."""
    return all(form.keys() >= SINCE_23_02 for form in answer["jobs"])


def nodes(answer: Form, request: str = "nodes", unreadable: Unreadable | None = None) -> list[SlurmNode]:
    """Return the nodes of an answer. O(nodes). Raises ParseError. The arguments are those of `jobs`."""
    forms, report = _list(answer, "nodes", request, _NEEDED_OF_NODES), unreadable or Unreadable()
    problems: dict[str, str] = {}
    records = read_rows(forms, _node, _unknown_node, lambda form: str(form["name"]), problems)
    report.note("node", problems, whole=True)
    report.bound(len(records))
    return records


def _unknown_node(form: Form) -> SlurmNode | None:
    name = _text(form["name"])
    return SlurmNode(name, NodeState.UNKNOWN, 0, 0.0) if name else None


def time_of(answer: Form, request: str = "diag") -> float:
    """Return the controller's clock from the answer of /diag, epoch seconds. Raises ParseError."""
    try:
        seconds = number(answer["statistics"]["req_time"])
    except (KeyError, TypeError, ValueError):
        seconds = None
    if not seconds:
        raise ParseError(f"{request}: slurmrestd's answer has no time")
    return seconds


def last_update(answer: Form) -> float | None:
    """Return when the jobs of this answer were true, by the controller's clock, if the version reports it."""
    try:
        return number(answer.get("last_update")) or None
    except ValueError:
        return None


def number(value: object) -> float | None:
    """Return a plain number, or the one in `{set, infinite, number}`; None if it is not set. Raises ValueError."""
    if isinstance(value, dict):
        if not {"set", "number"} <= value.keys():
            raise ValueError(f"{value!r} is not a number")
        return number(value["number"]) if value["set"] and not value.get("infinite") else None
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{value!r} is not a number")
    if value in _STAND_INS:
        return None
    if not abs(value) < 2**63:
        raise ValueError("a number is too large")
    return value


def _list(answer: Form, key: str, request: str, needed: frozenset[str]) -> list[Form]:
    """Return the forms under a key; each has the `needed` keys. Raises ParseError."""
    entries = answer.get(key)
    if not isinstance(entries, list):
        raise ParseError(f"{request}: slurmrestd's answer has no list of {key}", stderr_tail=str(entries)[:200])
    for form in entries:
        if not isinstance(form, dict):
            raise ParseError(f"{request}: {str(form)[:40]!r} is not one of {key}")
        if lacking := needed - form.keys():
            name = form.get("job_id", form.get("name", "?"))
            raise ParseError(f"{request}: {key[:-1]} {str(name)[:40]}: it lacks {min(lacking)!r}")
    return entries


def _job(name_limit: int, form: Form) -> SlurmJob:
    node_count, cpus = max(1, _count(form["node_count"])), max(1, _count(form["cpus"]))
    exit_code, signal = _ending(form["exit_code"])
    minutes, state = number(form["time_limit"]), job_state(_words(form["job_state"]))
    shares, priority = _words(form["shared"]), number(form["priority"])
    request, threads = (
        tres(_text(form["tres_alloc_str"]) or _text(form["tres_req_str"])),
        max(1, -(-cpus // node_count)),
    )
    special = _special(form)
    per_task: int | None = None
    if state is JobState.PENDING:
        tasks, per_task, per_node, least = (_few(form[key]) for key in _TASKS)
        threads = max(threads, threads_for(node_count, tasks, per_task, per_node, least))
        special = special or unusual_size(node_count, _few(form["max_nodes"]), request, cpus, tasks, per_task)
    plain: dict[str, Any] = {
        **{name: _text(form[key]) for name, key in _TEXTS.items()},
        "comment": comment(form["comment"] or ""),
        **{name: _moment(form[key]) for name, key in _TIMES.items()},
        **{name: names(_text(form[key]), name_limit) for name, key in _NODES.items()},
    }
    array, of_several = int(number(form["array_job_id"]) or 0), bool(number(form["het_job_id"]))
    listed = _text(form.get("array_task_string"))
    waiting, at_once = (0, None) if of_several else array_tasks(listed)
    return SlurmJob(
        id=_identity(form["job_id"]),
        state=state,
        reason=_without_none(_text(form["state_description"]) or _text(form["state_reason"])),
        part=bool(array or of_several),
        array=array,
        tasks=waiting,
        tasks_at_once=at_once,
        uid=_identity(form["user_id"], least=0),
        nodes=node_count,
        cpus=cpus,
        threads=threads,
        per_task=per_task or 1,
        own_core=next(filter(None, (_own_core(form.get(key), field) for key, field in _SPECIAL.items())), ""),
        memory=_memory(form, request, cpus, threads, node_count),
        memory_per_cpu=(number(form["memory_per_cpu"]) or 0.0) * 2.0**20,
        asks_memory=bool(number(form["memory_per_node"]) or number(form["memory_per_cpu"])),
        tres=amounts(request),
        time_limit=None if minutes is None else 60.0 * minutes,
        end=_moment(form["end_time"]) if state.ended or minutes is not None else None,
        planned=names(_text(form.get("scheduled_nodes")), name_limit) if state is JobState.PENDING else (),
        special=special,
        shares=_SHARES.get(shares, shares.upper()),
        priority=1 if priority is None else int(priority),  # 0 means held, one that is not set yet does not
        restarts=_count(form["restart_cnt"]),
        exit_code=exit_code,
        signal=signal,
        **plain,
    )


def _memory(form: Form, request: Mapping[str, str], cpus: int, threads: int, node_count: int) -> float:
    """Return the bytes on each node of a job; the arguments are those of `memory`."""
    of_core = (number(form["memory_per_cpu"]) or 0.0) * (1 if "mem" in request else threads)
    per_node = number(form["memory_per_node"]) or of_core
    return memory(per_node * 2.0**20, request, cpus, threads, node_count)


def _node(form: Form) -> SlurmNode:
    words = [_words(form["state"]), _words(form.get("state_flags") or "")]
    if not _text(form["name"]):
        raise ValueError("it has no name")
    state = node_state("+".join(filter(None, words)))
    usable = state not in (NodeState.DOWN, NodeState.DRAINED)
    cpus, allocated = _count(form["cpus"]), _count(form["alloc_cpus"])
    return SlurmNode(
        name=_text(form["name"]),
        state=state,
        cpus=cpus,
        memory=_count(form["real_memory"]) * 2.0**20,
        idle=max(0, cpus - allocated) if usable else 0,
        free=max(0.0, (_count(form["real_memory"]) - _count(form["alloc_memory"])) * 2.0**20),
        features=frozenset(_items(form["active_features"])),
        partitions=frozenset(_items(form["partitions"])),
        reason=_without_none(_text(form["reason"])),
        **units(cpus, _count(form["sockets"]), _count(form["cores"])),
    )


def _identity(value: object, least: int = 1) -> int:
    identity = number(value)
    if identity is None or identity < least or identity != int(identity):
        raise ValueError(f"{value!r} is not an id of a job or user")
    return int(identity)


def _count(value: object) -> int:
    return int(number(value) or 0)


def _moment(value: object) -> float | None:
    """Return epoch seconds; Slurm writes 0 for no time."""
    seconds = number(value)
    return float(seconds) if seconds else None


def _text(value: object) -> str:
    """Return a text; join a list of words, and return "" for null."""
    if isinstance(value, str):
        return "" if value == "(null)" else clean(value)
    return clean(",".join(_items(value)))


def _words(value: object) -> str:
    """Return `RUNNING`, or a list of words joined by +."""
    return clean(value if isinstance(value, str) else "+".join(_items(value)))


def _items(value: object) -> list[str]:
    """Return the words of a list, or of a text separated by commas."""
    if value is None:
        return []
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError(f"{value!r} is neither a text nor a list of words")
    return [word for word in words if word]


def _few(value: object) -> int | None:
    amount = number(value)
    return None if amount is None or amount in _SHORT_STAND_INS else int(amount)


def _special(form: Form) -> str:
    requests = ((form.get(key), field) for key, field in _SPECIAL.items())
    return next((SPECIAL[field] for value, field in requests if _is_asked(value) and not _own_core(value, field)), "")


def _own_core(value: object, field: str) -> str:
    return own_core(field, str(_few(value))) if field in OWN_CORE else ""


def _is_asked(value: object) -> bool:
    if isinstance(value, (bool, str)):
        return bool(value) and value not in ("0", "*", "(null)")
    return bool(_items(value) if isinstance(value, list) else _few(value))


def _ending(value: object) -> tuple[int | None, int | None]:
    """Return exit code and signal of a wait status, or of `{status, return_code, signal: {id}}`."""
    if not isinstance(value, dict) or "return_code" not in value:
        return exit_of(_count(value))
    sent = value.get("signal") or {}
    signal = number(sent.get("id", sent.get("signal_id")))
    code = number(value["return_code"])
    return (None, int(signal)) if signal else (None if code is None else int(code), None)


def _without_none(text: str) -> str:
    return "" if text.lower() == "none" else text
