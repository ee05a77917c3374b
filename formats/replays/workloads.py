"""Read workloads of rigid jobs in any known format.

Each format is a Format, built in (FORMATS) or from the entry point group pilotfish.formats.

Rule: the file's name decides the format; if it does not, the first characters decide. A JSON file is a workflow if it
has the keys of one, IRMaSim's if its jobs count instructions, else Batsim's.
"""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...simulate.errors import ConfigError
from ...simulate.model.workload import Dependencies, Workload
from .. import entry_points
from ..documents.document_errors import from_source
from ..documents.files import decode, parse_trace, read_bytes, without_collections
from ..documents.unpack import GZIP, unpacked
from ..entry_points import load_plug_in, plug_ins
from ..text import count, natural_key
from .swf import read_swf

if TYPE_CHECKING:
    from ..workflows.workflow import Profiles
    from ..workflows.workflow_tasks import Tasks


@dataclass(frozen=True, slots=True)
class Format:
    """A format of workloads.

    Args:
        name: its name.
        suffixes: suffixes of file names, without .gz.
        begins: the first bytes of a file; empty = not recognised by content.
        size: the key or header that states the size of the machine; empty = none.
        read: reads a file, see `read_workload`; takes the same arguments.
        kernels: names of the compiled kernels that `read` loads.
        depends: whether run times may depend on the machine.
    """

    name: str
    suffixes: tuple[str, ...]
    begins: bytes
    size: str
    read: Callable[..., Workload]
    kernels: tuple[str, ...] = ()
    depends: bool = False


def _read_json(
    path: Path, *, speeds: Collection[float], storages: Collection[str] | None = None, skip_invalid: bool,
    profiles: Profiles | None = None,
) -> Workload:  # fmt: skip
    from ..batsim.workload import parse_batsim, workload_of
    from ..workflows.workflow import document_tasks
    from .irmasim import parse_irmasim

    source = str(path)
    try:
        with without_collections():
            data = parse_trace(decode(unpacked(read_bytes(path), source), source), source)
            kind = _json_kind(data)
            if kind in ("workflow", "WfFormat"):
                return jobs_of(document_tasks(data, source, profiles), skip_invalid=skip_invalid)
            if kind == "IRMaSim":
                return parse_irmasim(data, path, speeds=speeds, skip_invalid=skip_invalid)
            workload = parse_batsim(data, source, skip_invalid=skip_invalid)
            return workload_of(workload, path, speeds=speeds, storages=storages, skip_invalid=skip_invalid)
    except ConfigError as error:
        if skip_invalid or not error.key.startswith("jobs["):
            raise
        allowed = "; or ".join(filter(None, (error.allowed, "--skip-invalid")))
        raise ConfigError(error.source, error.key, error.problem, allowed, error.more) from None


def _read_workflow(path: Path, *, skip_invalid: bool, profiles: Profiles | None = None, **_: Any) -> Workload:
    from ..workflows.workflow import read_tasks

    return jobs_of(read_tasks(path, profiles), skip_invalid=skip_invalid)


def json_kind(data: bytes, source: str) -> str:
    """Return what a JSON file holds: workflow, WfFormat, IRMaSim or Batsim. O(bytes). Raises ConfigError."""
    return _json_kind(parse_trace(decode(data, source), source))


def _json_kind(data: Any) -> str:
    if isinstance(data, dict) and ("schema" in data or "workflow" in data):
        return "workflow" if "schema" in data else "WfFormat"
    from .irmasim import is_irmasim_workload

    return "IRMaSim" if is_irmasim_workload(data) else "Batsim"


FORMATS = (
    Format("JSON", (".json",), b"{", "nb_res", _read_json, depends=True),
    Format("DAX", (".dax", ".xml"), b"<", "", _read_workflow),
    Format("workflow", (".yaml", ".yml"), b"schema:", "", _read_workflow),
    Format("SWF", (".swf",), b"", "MaxProcs", read_swf, ("swf.parser",)),
)


def format_of(path: Path) -> Format:
    """Return the format of a file: by a built-in suffix, a plug-in's suffix, or the first bytes, in this order.

    Raises:
        ConfigError: a plug-in is not a Format.
        OSError: the first bytes are needed and cannot be read.
    """
    name = path.name.lower().removesuffix(".gz")
    for table in (lambda: FORMATS, _plugged_in):
        for candidate in table():
            if name.endswith(candidate.suffixes):
                return candidate
    begin = _beginning(path)
    plugged = [candidate for candidate in _plugged_in() if candidate.begins]
    return next(candidate for candidate in (*plugged, *FORMATS) if begin.startswith(candidate.begins))


@cache
def _plugged_in() -> tuple[Format, ...]:
    """Return the formats of other packages (entry point group pilotfish.formats)."""
    formats = []
    for name in plug_ins(entry_points.FORMATS):
        format_ = load_plug_in(entry_points.FORMATS, name)
        if not isinstance(format_, Format):
            raise ConfigError(entry_points.FORMATS, name, f"found {type(format_).__name__}", "a workloads.Format")
        formats.append(format_)
    return tuple(formats)


def _beginning(path: Path) -> bytes:
    """Return the first bytes of a file, unpacked, without leading blanks; empty if damaged or not a regular file."""
    if path.exists() and not path.is_file():
        return b""
    with path.open("rb") as file:
        data = file.read(2**12)
    if data.startswith(GZIP):
        try:
            data = zlib.decompressobj(31).decompress(data, 2**12)
        except zlib.error:
            return b""
    return data.removeprefix(codecs.BOM_UTF8).lstrip()


def read_workload(
    path: str | Path, *, speeds: Collection[float] = (), storages: Collection[str] | None = None,
    skip_invalid: bool = False, profiles: Profiles | None = None,
) -> Workload:  # fmt: skip
    """Return the jobs of a file in the order of submission. O(bytes).

    Args:
        path: the file; its format is found by `format_of`.
        speeds: flop/s of all resources of the machine; () = unknown.
        storages: names of the storages in the machine's network; None = the machine has no network.
        skip_invalid: leave out, and count, jobs that cannot be replayed.
        profiles: profiles by name, for workflows; see `read_workflow`.

    Raises:
        ConfigError: not a workload, or a job that cannot be replayed.
        OSError: the file cannot be read.
    """
    options = {"speeds": speeds, "storages": storages, "skip_invalid": skip_invalid, "profiles": profiles}
    file = Path(path)
    return format_of(file).read(file, **options)


def as_submitted(ordered: Workload, *, natural: bool = False) -> Workload:
    """Return a workload in which jobs of a Batsim file that are submitted at one instant are in the order of their ids.

    Args:
        ordered: a workload in the order of submission.
        natural: 2 comes before 10; otherwise ids are text, and 10 comes before 2, as in Batsim.
    """
    if "computes" not in ordered.more or not (np.diff(ordered.submit_time) == 0).any():
        return ordered
    ids = list(map(str, ordered.more.get("name", ordered.id).tolist()))
    places = {name: place for place, name in enumerate(sorted(ids, key=natural_key if natural else None))}
    rank = np.array([places[name] for name in ids])
    return ordered.take(np.lexsort((rank, ordered.submit_time)))


def jobs_of(given: Tasks, *, skip_invalid: bool = False) -> Workload:
    """Return the tasks of a workflow as rigid jobs that wait for each other, in file order. O(tasks + dependencies).

    A task is a job of as many resources as it has cores. It runs for its recorded time and is submitted when its
    predecessors have ended, the first ones at 0 s. Its walltime is the recorded one, else its run time.

    Args:
        given: the tasks.
        skip_invalid: leave out, and count, tasks without a run time.

    Raises:
        ConfigError: a task has no run time.
    """
    tasks, name = given.tasks, Path(given.source.removesuffix(".gz")).stem
    has_time = np.array([task.time is not None for task in tasks], bool)
    if not skip_invalid and not has_time.all():
        task = tasks[int((~has_time).argmax())]
        problem = f"no run time ({int((~has_time).sum()):,} of {count(len(tasks), 'task has', 'tasks have')} none)"
        raise ConfigError(given.source, f"task {task.id}", problem, "a run time for each task, or --skip-invalid")
    run = np.array([task.time or 0.0 for task in tasks], np.float64)
    wall = [time if task.walltime is None else task.walltime for task, time in zip(tasks, run.tolist(), strict=True)]
    more = {"name": np.array([task.id for task in tasks], object)}
    memory = np.array([task.memory / task.cores for task in tasks], np.float64)
    if memory.any():
        more["memory"] = memory
    place = {task.id: row for row, task in enumerate(tasks)}
    pairs = [(place[before], row) for row, task in enumerate(tasks) for before in dict.fromkeys(task.after)]
    before, after = np.array(pairs, np.int64).reshape(-1, 2).T.copy()
    make = partial(Workload, more=more, dependencies=Dependencies(before, after), doubts=given.doubts)
    columns = np.zeros(len(tasks)), run, np.array(wall, np.float64), np.array([task.cores for task in tasks], np.int64)
    workload = from_source(given.source, make, name, np.arange(1, len(tasks) + 1), *columns)
    return workload.take(has_time, "tasks without a run time")
