"""Jobs and nodes as slurmrestd shows them, in all its versions, read into records.

Rule: pure. A key that we need and that is not there is an error, because what a user asked for would be overlooked; a
number that is not set, or is one of Slurm's stand-ins for that, is None. One job that cannot be read makes the whole
answer an error: a job that is left out would look like one that has gone.
Source: answers of Slurm 22.05 (v0.0.36 to v0.0.38); rest_api.html of 23.02 to 25.11 (v0.0.39 to v0.0.44).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ....simulate.snapshot import JobState
from ...base import ParseError
from ..records import SlurmJob, SlurmNode
from ..squeue import amounts, memory
from ..squeue import nodes as names
from ..states import job_state, node_state
from ..values import tres

Form = Mapping[str, Any]
#: what must be there of a job
NEEDED = frozenset((
    "job_id", "job_state", "state_reason", "state_description", "array_job_id", "het_job_id", "name", "user_id",
    "account", "qos", "partition", "node_count", "cpus", "time_limit", "submit_time", "eligible_time", "start_time",
    "end_time", "deadline", "nodes", "required_nodes", "excluded_nodes", "dependency", "features", "resv_name",
    "shared", "priority", "restart_cnt", "exit_code", "comment", "admin_comment", "tres_req_str", "tres_alloc_str",
    "memory_per_node", "memory_per_cpu",
))  # fmt: skip
#: what jobs may ask for that is left to Slurm: key -> in words, see `squeue.SPECIAL`
SPECIAL = {
    "licenses": "licenses", "tres_per_node": "generic resources", "tres_per_job": "generic resources",
    "tres_per_socket": "generic resources", "tres_per_task": "generic resources", "contiguous": "contiguous nodes",
    "core_spec": "specialised cores", "minimum_tmp_disk_per_node": "temporary disk space",
    "tasks_per_socket": "tasks for each socket", "tasks_per_core": "tasks for each core", "sockets_per_node": "sockets",
    "cores_per_socket": "cores for each socket", "threads_per_core": "threads for each core",
    "required_switches": "a number of switches", "cluster_features": "features of a cluster",
}  # fmt: skip
#: NO_VAL and INFINITE, of 32 and of 64 bits
_STAND_INS = frozenset((2**32 - 2, 2**32 - 1, 2**64 - 2, 2**64 - 1))
#: of REST's words for how a job shares nodes, those of squeue
_SHARES = {"": "OK", "none": "NO", "shared": "YES", "oversubscribe": "YES"}


def jobs(answer: Form, what: str = "jobs") -> list[SlurmJob]:
    """The jobs of an answer. O(jobs). Raises ParseError."""
    return [_each(_job, form, f"{what}: job", "job_id") for form in _list(answer, "jobs", what)]


def nodes(answer: Form, what: str = "nodes") -> list[SlurmNode]:
    """The nodes of an answer. O(nodes). Raises ParseError."""
    return [_each(_node, form, f"{what}: node", "name") for form in _list(answer, "nodes", what)]


def time_of(answer: Form, what: str = "diag") -> float:
    """The controller's clock in the answer of /diag, epoch seconds. Raises ParseError."""
    try:
        told = number(answer["statistics"]["req_time"])
    except (KeyError, TypeError, ValueError):
        told = None
    if not told:
        raise ParseError(f"{what}: slurmrestd does not say the time")
    return told


def last_update(answer: Form) -> float | None:
    """When the jobs of this answer were true, by the controller's clock, where the version says it."""
    try:
        return number(answer.get("last_update")) or None
    except ValueError:
        return None


def number(value: object) -> float | None:
    """A plain number, or one in `{set, infinite, number}`; None where there is none. Raises ValueError."""
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


def _list(answer: Form, key: str, what: str) -> list[Any]:
    found = answer.get(key)
    if not isinstance(found, list):
        raise ParseError(f"{what}: there is no list of {key} in slurmrestd's answer", stderr_tail=str(found)[:200])
    return found


def _each(read: Any, form: Any, what: str, key: str) -> Any:
    name = form.get(key, "?") if isinstance(form, dict) else "?"
    try:
        return read(form)
    except KeyError as lacking:
        raise ParseError(f"{what} {name}: it lacks {lacking.args[0]!r}") from None
    except (ValueError, TypeError, AttributeError, OverflowError) as problem:
        raise ParseError(f"{what} {name}: {str(problem)[:200]}") from None


def _job(form: Form) -> SlurmJob:
    if lacking := NEEDED - form.keys():
        raise KeyError(min(lacking))
    many, cpus = max(1, _count(form["node_count"])), max(1, _count(form["cpus"]))
    exit_code, signal = _ending(form["exit_code"])
    minutes, state = number(form["time_limit"]), job_state(_words(form["job_state"]))
    given, threads = _text(form["tres_alloc_str"]) or _text(form["tres_req_str"]), -(-cpus // many)
    if state is JobState.PENDING:
        threads = max(threads, _threads(form, many))
    return SlurmJob(
        id=_identity(form["job_id"]),
        state=state,
        reason=_without_none(_text(form["state_description"]) or _text(form["state_reason"])),
        part=bool(number(form["array_job_id"]) or number(form["het_job_id"])),
        name=_text(form["name"]),
        uid=_identity(form["user_id"], least=0),
        account=_text(form["account"]),
        qos=_text(form["qos"]),
        partition=_text(form["partition"]),
        nodes=many,
        cpus=cpus,
        threads=threads,
        memory=_memory(form, cpus, threads, many),
        tres=amounts(tres(given)),
        special=next((words for key, words in SPECIAL.items() if _asks(form.get(key))), ""),
        time_limit=None if minutes is None else 60.0 * minutes,
        submit=_moment(form["submit_time"]),
        begin=_moment(form["eligible_time"]),
        start=_moment(form["start_time"]),
        end=_moment(form["end_time"]) if state.ended or minutes is not None else None,
        deadline=_moment(form["deadline"]),
        placed=names(_text(form["nodes"])),
        wanted=names(_text(form["required_nodes"])),
        unwanted=names(_text(form["excluded_nodes"])),
        dependency=_text(form["dependency"]),
        features=_text(form["features"]),
        reservation=_text(form["resv_name"]),
        shares=_shares(form["shared"]),
        priority=_priority(form["priority"]),
        restarts=_count(form["restart_cnt"]),
        exit_code=exit_code,
        signal=signal,
        comment=_text(form["comment"]),
        admin_comment=_text(form["admin_comment"]),
    )


def _node(form: Form) -> SlurmNode:
    words = [_words(form["state"]), _words(form.get("state_flags") or "")]
    taken = number(form.get("alloc_memory"))
    if not _text(form["name"]):
        raise ValueError("it has no name")
    return SlurmNode(
        name=_text(form["name"]),
        state=node_state("+".join(filter(None, words))),
        cpus=_count(form["cpus"]),
        memory=_count(form["real_memory"]) * 2.0**20,
        features=frozenset(_items(form["active_features"])),
        partitions=frozenset(_items(form["partitions"])),
        idle=None if (idle := number(form.get("alloc_idle_cpus", form.get("idle_cpus")))) is None else int(idle),
        free=None if taken is None else max(0.0, _count(form["real_memory"]) - taken) * 2.0**20,
        reason=_without_none(_text(form["reason"])),
    )


def _identity(value: object, least: int = 1) -> int:
    found = number(value)
    if found is None or found < least or found != int(found):
        raise ValueError(f"{value!r} is no number of a job or user")
    return int(found)


def _count(value: object) -> int:
    return int(number(value) or 0)


def _moment(value: object) -> float | None:
    """Epoch seconds; Slurm says 0 where there is no such time."""
    found = number(value)
    return float(found) if found else None


def _priority(value: object) -> int:
    """A priority of 0 means held; one that is not set yet does not."""
    found = number(value)
    return 1 if found is None else int(found)


def _text(value: object) -> str:
    """A text; a list of words is joined, and null is no text."""
    if isinstance(value, str):
        return "" if value == "(null)" else value
    return ",".join(_items(value))


def _words(value: object) -> str:
    """`RUNNING`, or a list of words, joined by +."""
    return value if isinstance(value, str) else "+".join(_items(value))


def _items(value: object) -> list[str]:
    """The words of a list, or of a text with commas between them."""
    if value is None:
        return []
    found = value.split(",") if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(word, str) for word in found):
        raise ValueError(f"{value!r} is no text and no list of words")
    return [word for word in found if word]


def _shares(value: object) -> str:
    words = _words(value)
    return _SHARES.get(words, words.upper())


def _asks(value: object) -> bool:
    """Whether a job asks for something: not for nothing, a stand-in of any width, or false."""
    if isinstance(value, (str, list)):
        return bool(_text(value))
    found = None if isinstance(value, bool) or value is None else number(value)
    return value is True or bool(found and found not in (2**16 - 2, 2**16 - 1))


def _threads(form: Form, many: int) -> int:
    """Cores that each of `many` nodes needs so that all tasks of a waiting job find their place."""
    tasks, at_once, each = (number(form.get(key)) or 1 for key in ("tasks", "tasks_per_node", "cpus_per_task"))
    each = 1 if each in (2**16 - 2, 2**16 - 1) else each
    return int(max(max(-(-tasks // many), at_once) * each, number(form.get("minimum_cpus_per_node")) or 1))


def _memory(form: Form, cpus: int, threads: int, many: int) -> float:
    """Bytes on each node, see `squeue.memory`."""
    of_node, of_cpu = number(form["memory_per_node"]), number(form["memory_per_cpu"])
    one = (of_node if of_node is not None else of_cpu or 0.0) * 2.0**20
    asked = tres(_text(form["tres_alloc_str"]) or _text(form["tres_req_str"]))
    if "mem" not in asked:
        return one if of_node is not None else one * threads
    return memory(one, asked, cpus, threads, many)


def _ending(value: object) -> tuple[int | None, int | None]:
    """Exit code and signal: of a wait status, or of `{status, return_code, signal: {id}}`."""
    if not isinstance(value, dict) or "return_code" not in value:
        status = _count(value)
        return (
            os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
            os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
        )
    sent = value.get("signal") or {}
    signal = number(sent.get("id", sent.get("signal_id")))
    code = number(value["return_code"])
    return (None, int(signal)) if signal else (None if code is None else int(code), None)


def _without_none(text: str) -> str:
    return "" if text.lower() == "none" else text
