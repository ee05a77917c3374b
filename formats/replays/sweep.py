"""The sweep file (schema pilotfish/sweep/v1): workloads, machines, policies and seeds; each combination is a run.

Rule: a sweep that is read here can run as far as the file alone shows: names are files, policies have the given
options, nothing is listed twice. Errors name the key.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from glob import glob, has_magic
from itertools import chain, product
from math import prod
from pathlib import Path
from typing import Any

from ...simulate.errors import ConfigError
from ...simulate.model.network import SOLVERS
from ...simulate.queue_policies.loaded_policies import SITE, is_python_policy, parse_python_policy
from ...simulate.queue_policies.policy_specs import PLANNING, Planned, parse, text_of
from ...simulate.sweep import AS_TRACED, Chosen, ClusterMachine, Sweep, Trace
from ...simulate.world.known_run_times import RUNTIMES
from ..documents.document_errors import bad, found, from_source, inside, shown
from ..documents.files import check_schema, is_file, read_document
from ..documents.quantities import Convert, whole
from ..documents.schema import build, entries, flag, listed, mapping, one_of, require, text, word
from ..entry_points import spelled_out
from ..site.site_policy_folder import read_slurm_policy
from ..text import count
from .job_selection import LOAD, MOST_PROCESSORS, SELECTION, selection_of

MOST_RUNS = 200_000
_SEED = whole(0, 2**32 - 1)
_WORKLOAD: dict[str, Convert[Any]] = {
    "file": text,
    **SELECTION,
    "load": lambda value: _each_once(listed(LOAD, least=1)(value)) if isinstance(value, list) else (LOAD(value),),
    "skip_invalid": flag,
}


def read_sweep(path: str | Path) -> Sweep:
    """Return the sweep in a YAML or JSON file; file names in it are relative to its folder.

    Raises:
        ConfigError: names the key, what was found and what is allowed.
    """
    data = check_schema(read_document(path), "sweep", str(path))
    return from_source(str(path), _sweep, data, str(path))


def _sweep(data: dict[str, Any], source: str) -> Sweep:
    folder = Path(source).parent
    table: dict[str, Convert[Any]] = {
        "workloads": lambda value: _traces(value, folder),
        "machines": lambda value: _each_once(listed(lambda part: _machine(part, folder), least=1)(value)),
        "policies": lambda value: _policies(value, folder),
        "seeds": _seeds,
        "runtimes": lambda value: _each_once(listed(lambda one: one_of(one, RUNTIMES), least=1)(value)),
        "contention": lambda value: (
            _each_once(listed(flag, least=1)(value)) if isinstance(value, list) else (flag(value),)
        ),
    }
    parts: dict[str, Any] = build(dict, table, data, ("workloads", "policies"))
    parts["traces"] = parts.pop("workloads")
    sweep = Sweep(source, **parts)
    _refuse_alike(sweep)
    if len(sweep) > MOST_RUNS:
        raise bad(f"the sweep has {count(len(sweep), 'run')}", f"at most {MOST_RUNS:,}")
    return sweep


def _traces(value: Any, folder: Path) -> tuple[Trace, ...]:
    parts = listed(lambda part: part, least=1)(value)
    traces = [
        trace for i, part in enumerate(parts) for trace in inside(f"[{i}]", _traces_of, part, f"workloads[{i}]", folder)
    ]
    loaded = [(trace, load) for trace in traces for load in trace.loads]
    _each_once([(trace.file, trace.select, load, trace.skip_invalid) for trace, load in loaded],
               [trace.file for trace, _ in loaded])  # fmt: skip
    return tuple(traces)


def _traces_of(value: Any, key: str, folder: Path) -> list[Trace]:
    """Return the traces that a file name or pattern stands for, with their selection of jobs."""
    if not isinstance(value, dict):
        return [Trace(name, key) for name in _files(value, folder)]
    fields: dict[str, Any] = build(dict, _WORKLOAD, value, ("file",))
    selection = selection_of(fields)
    names = inside("file", _files, fields["file"], folder)
    return [
        Trace(name, key, selection, fields.get("load", (1.0,)), fields.get("skip_invalid", False)) for name in names
    ]


def _files(value: Any, folder: Path) -> list[str]:
    """Return file names in order; a pattern stands for all files that match it."""
    name = text(value)
    if has_magic(name) and not is_file(folder / name):
        names = sorted(text(one) for one in glob(name, root_dir=folder, recursive=True) if is_file(folder / one))
        if not names:
            raise bad(found(name), "a pattern that matches a file; it is relative to the folder of this file")
        return names
    return [_file(name, folder)]


def _file(name: str, folder: Path) -> str:
    if not is_file(folder / name):
        raise bad(f"no such file: {shown(name)}", "a file name, relative to the folder of this file")
    return name


def _machine(value: Any, folder: Path) -> int | ClusterMachine:
    if isinstance(value, str):
        return ClusterMachine(_file(text(value), folder))
    if isinstance(value, dict):
        table: dict[str, Convert[Any]] = {
            "cluster": lambda name: _file(text(name), folder),
            "resource": lambda unit: one_of(unit, ("core", "node")),
            "network_solver": lambda solver: one_of(solver, SOLVERS),
        }
        fields: dict[str, Any] = build(dict, table, value, ("cluster",))
        solver = fields.get("network_solver", SOLVERS[0])
        return ClusterMachine(fields["cluster"], fields.get("resource", "core") == "node", solver)
    try:
        return whole(1, MOST_PROCESSORS)(value)
    except ConfigError as error:
        files = "a cluster file, or {cluster: FILE, resource: node}"
        raise bad(error.problem, f"a number of processors from 1 to {MOST_PROCESSORS}, {files}") from None


def _refuse_alike(sweep: Sweep) -> None:
    """Raise ConfigError if what needs the cores of nodes has none."""
    choosing = [policy for policy in sweep.policies if any(sweep.contention) or policy.needs_nodes]
    alike = [machine for machine in sweep.machines if not isinstance(machine, ClusterMachine) or machine.whole_nodes]
    if choosing and alike:
        does = "chooses among" if choosing[0].needs_nodes else "contends on the"
        problem = f"{text_of(choosing[0])} {does} cores of nodes; machine {shown(alike[0] or AS_TRACED)} has none"
        raise bad(problem, "cluster files, with their cores as resources", key="machines")


def _policies(value: Any, folder: Path) -> tuple[Chosen, ...]:
    policies = [*chain.from_iterable(listed(lambda part: _policies_of(part, folder), least=1)(value))]
    return _each_once(policies, [text_of(policy) for policy in policies])


def _policies_of(value: Any, folder: Path) -> list[Chosen]:
    """Return one policy written as for `--policy`, or all combinations of the options that a mapping lists."""
    if isinstance(value, str):
        return [_policy(value, folder)]
    if not isinstance(value, dict):
        raise bad(found(value), "a policy such as easy:order=sjf, or {policy: easy, order: [fcfs, sjf]}")
    fields = mapping(value)
    require(fields, ("policy",))
    name, words = inside("policy", text, fields["policy"]), listed(word, least=1)
    several = {key: part if isinstance(part, list) else [part] for key, part in fields.items() if key != "policy"}
    options = entries(several, lambda key, part: words(part))
    if prod(map(len, options.values())) > MOST_RUNS:
        raise bad("too many combinations", f"at most {MOST_RUNS:,}")
    alternatives = [[f"{key}={option}" for option in values] for key, values in options.items()]
    return [_policy(name, folder, combination) for combination in product(*alternatives)]


def _policy(spec: str, folder: Path, more: Sequence[str] = ()) -> Chosen:
    """Return the policy of a SPEC; `more` are further options of its last part."""
    try:
        if is_python_policy(spec := spelled_out(spec)):
            policy = parse_python_policy(spec)
            if not policy.is_file:
                raise bad(found(spec), "./file.py:Class for a policy of your own (a sweep hashes its file)")
            _file(policy.where, folder)
            return parse_python_policy(spec + ("," if policy.options else ":") + ",".join(more)) if more else policy
        if spec.startswith(SITE) and not more:
            return read_slurm_policy(spec, folder)
        if spec in PLANNING and not more:
            return Planned(spec)
        last = spec.rpartition("+")[2]
        return parse(spec + ("," if ":" in last else ":") + ",".join(more) if more else spec)
    except ConfigError as error:
        raise bad(f"{error.key}: {error.problem}".removeprefix(": "), error.allowed) from None


def _seeds(value: Any) -> tuple[int, ...]:
    """Return the listed seeds, or 0 to N - 1 for a number N."""
    if isinstance(value, list):
        return _each_once(listed(_SEED, least=1)(value))
    return tuple(range(whole(1, MOST_RUNS)(value)))


def _each_once(values: Iterable[Any], names: Iterable[Hashable] = ()) -> tuple[Any, ...]:
    """Return the values as a tuple. Raises ConfigError if one appears twice."""
    values = tuple(values)
    earlier = set[Hashable]()
    for value, name in zip(values, tuple(names) or values, strict=True):
        if value in earlier:
            raise bad(f"{shown(name)} is given twice", "each once")
        earlier.add(value)
    return values
