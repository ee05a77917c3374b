"""Batsim workloads for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

#: One of each type, under each of its names, and its run time on 2 resources of 100 flop/s; None: refused.
PROFILES: dict[str, tuple[dict[str, Any], float | None]] = {
    "wait": ({"type": "delay", "delay": 20.25, "np": 2, "command": "x"}, 20.25),
    "wait5": ({"type": "DelayProfile", "delay": 1}, 1.0),
    "par": ({"type": "parallel", "cpu": [50, 200], "com": [0, 0, 0, 0]}, 2.0),
    "par5": ({"type": "ptask", "cpu": [50, 200], "com": [0, 0, 0, 0]}, 2.0),
    "par5b": ({"type": "ParallelTaskProfile", "cpu": [50, 200]}, 2.0),
    "par2": ({"type": "msg_par", "cpu": [50, 200], "com": [0, 0, 0, 0]}, 2.0),
    "par_talks": ({"type": "parallel", "cpu": [50, 200], "com": [0, 0, 1, 0]}, None),
    "par_talks_only": ({"type": "ParallelTaskProfile", "com": [0, 0, 1, 0]}, None),
    "par_wide": ({"type": "parallel", "cpu": [50, 200, 1], "com": [0] * 9}, None),
    "hg": ({"type": "parallel_homogeneous", "cpu": 300, "com": 0}, 3.0),
    "hg5": ({"type": "ptask_homogeneous", "cpu": 300, "com": 0}, 3.0),
    "hg5b": ({"type": "ParallelTaskHomogeneousProfile", "cpu": 300, "com": 0.0}, 3.0),
    "hg2": ({"type": "msg_par_hg", "cpu": 300, "com": 0}, 3.0),
    "hg_talks": ({"type": "parallel_homogeneous", "cpu": 300, "com": 1e6}, None),
    "hg_spread": ({"type": "ptask_homogeneous", "cpu": 300, "com": 0,
        "generation_strategy": "defined_amount_spread_uniformly"}, 1.5),
    "hg_each": ({"type": "ParallelTaskHomogeneousProfile", "cpu": 300, "com": 0,
        "generation_strategy": "DefinedAmountsUsedForEachValue"}, 3.0),
    "total": ({"type": "parallel_homogeneous_total", "cpu": 300, "com": 0}, 1.5),
    "total2": ({"type": "msg_par_hg_tot", "cpu": 300, "com": 0}, 1.5),
    "nothing": ({"type": "parallel_homogeneous", "cpu": 0, "com": 0}, 0.0),
    "seq": ({"type": "composed", "repeat": 4, "seq": ["wait5", "par", "wait5"]}, 16.0),
    "seq5": ({"type": "sequential_composition", "seq": ["seq", "total"]}, 17.5),
    "seq5b": ({"type": "SequentialCompositionProfile", "repeat": 2, "seq": ["wait5"]}, 2.0),
    "seq2": ({"type": "composed", "nb": 3, "seq": ["wait5"]}, 3.0),
    "seq_talks": ({"type": "composed", "seq": ["wait5", "hg_talks"]}, None),
    "pfs": ({"type": "parallel_homogeneous_pfs", "bytes_to_read": 1e6, "bytes_to_write": 0, "storage": "nfs"}, None),
    "pfs5": ({"type": "ptask_on_storage_homogeneous", "bytes_to_write": 1}, None),
    "pfs5b": ({"type": "ParallelTaskOnStorageHomogeneousProfile", "bytes_to_read": 1, "bytes_to_write": 1,
        "generation_strategy": "DefinedAmountsSpreadUniformly"}, None),
    "pfs_idle": ({"type": "parallel_homogeneous_pfs", "bytes_to_read": 0, "bytes_to_write": 0}, 0.0),
    "stage": ({"type": "data_staging", "nb_bytes": 1e6, "from": "pfs", "to": "nfs"}, None),
    "stage5": ({"type": "ptask_data_staging_between_storages", "nb_bytes": 1e6, "from": "pfs", "to": "nfs"}, None),
    "stage5b": ({"type": "ParallelTaskDataStagingBetweenStoragesProfile", "nb_bytes": 1, "from": "a", "to": "b"}, None),
    "mpi": ({"type": "smpi", "trace": "smpi/traces.txt"}, None),
    "mpi5": ({"type": "trace_replay", "trace_type": "smpi", "trace_file": "smpi/traces.txt"}, None),
    "mpi5b": ({"type": "TraceReplayProfile", "trace_type": "SMPI", "filename": "smpi/traces.txt"}, None),
    "usage": ({"type": "usage_trace", "trace": "usage/traces.txt"}, 4.0),
    "usage5": ({"type": "trace_replay", "trace_type": "usage", "trace_file": "usage/traces.txt"}, 4.0),
    "usage5b": ({"type": "TraceReplayProfile", "trace_type": "FractionalComputation",
        "filename": "usage/traces.txt"}, 4.0),
    "talks": ({"type": "send", "msg": {"a": 1}}, None),
    "listens": ({"type": "recv"}, None),
}  # fmt: skip
#: The files that the usage traces above name.
TRACES = {
    "usage/traces.txt": "a.txt\n\nranks/b.txt\n",
    "usage/a.txt": "# rank 0\n0 m_usage 0.5 100\n0 m_usage 1 50\n",
    "usage/ranks/b.txt": "1 m_usage 0.1 400\n",
}
SPEED = 100.0


def document(*jobs: dict[str, Any], profiles: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return a workload of these jobs."""
    known = {name: profile for name, (profile, _) in PROFILES.items()} if profiles is None else profiles
    return {"nb_res": 4, "jobs": list(jobs), "profiles": known, **more}


def job(id: Any = 0, profile: str = "wait", **more: Any) -> dict[str, Any]:
    """Return a job."""
    return {"id": id, "subtime": 0, "res": 2, "walltime": 100, "profile": profile, **more}


def written(folder: Path, data: Any, name: str = "w.json") -> Path:
    """Write a file with this workload, and its traces next to it."""
    for path, text in TRACES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / name).write_text(data if isinstance(data, str) else json.dumps(data))
    return folder / name
