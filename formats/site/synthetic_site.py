"""Write a synthetic site as the files that `read_site` reads: slurm.conf, assoc.psv, qos.psv, sacct.psv.gz and so on.

Rule: the files look like those of a real site of Slurm 22.05. `README` says that nothing in them was measured.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import groupby

from ...simulate.generate.site_model import NodeKind, SiteModel
from ...simulate.generate.synthetic_jobs import SyntheticJobs
from .recording import MARK, SCHEMA
from .site_file_list import QOS_COLUMNS

#: Begin of the period, a Saturday as October 2022 had; the first day counts as a Monday of the model.
BEGIN = datetime(2022, 10, 1, tzinfo=UTC).timestamp()
CLUSTER = "synthetic"
#: What a report says of a synthetic site, as it says what a recording lacks.
_MADE_UP = {"recorded starts": "invented, like the site; how far a replay is from them says nothing about the replay"}
DAY_S = 86_400
#: Its multiples are spread evenly in [0, 1).
GOLDEN = 0.6180339887498949
#: Digits of the numbers of nodes.
_DIGITS = 6
_ASSOC = (
    "Cluster|Account|User|Partition|Share|Priority|GrpJobs|GrpTRES|GrpSubmit|GrpWall|GrpTRESMins|MaxJobs|MaxTRES|"
    "MaxTRESPerNode|MaxSubmit|MaxWall|MaxTRESMins|QOS|Def QOS|GrpTRESRunMins|ParentName"
)
_SACCT = (
    "JobID|JobIDRaw|JobName|User|Account|QOS|Partition|State|ExitCode|Submit|Eligible|Start|End|ElapsedRaw|"
    "TimelimitRaw|ReqNodes|AllocNodes|ReqCPUS|AllocCPUS|ReqMem|ReqTRES|AllocTRES|NodeList|Priority|Flags|"
    "ConsumedEnergyRaw|SubmitLine"
)


def site_files(model: SiteModel, jobs: SyntheticJobs, origin: str) -> dict[str, str]:
    """Return file name -> text of a synthetic site. O(jobs + nodes of all jobs).

    Args:
        model: the site.
        jobs: its jobs.
        origin: the command that makes the same files again.
    """
    return {
        "README": f"{origin}\nNothing here was measured. {model.source}.\n",
        MARK: json.dumps({"schema": SCHEMA, "complete": True, "missing": _MADE_UP}, indent=1) + "\n",
        "slurm.conf": "\n".join(_configuration(model)) + "\n",
        "scontrol_config.txt": "SLURM_VERSION           = 22.05.8\n",
        "assoc.psv": "\n".join(_associations(model)) + "\n",
        "qos.psv": "\n".join(_qos(model)) + "\n",
        "sshare.psv": "Account|User|RawUsage\nroot||0\n",
        "events.psv": "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\n",
        "reservations.psv": "Cluster|Name|TimeStart|TimeEnd|NodeNames|Flags|Assocs\n",
        "sacct.psv.gz": "\n".join(_accounting(model, jobs)) + "\n",
    }


def _configuration(model: SiteModel) -> Iterator[str]:
    settings = {"ClusterName": CLUSTER, "SchedulerType": "sched/backfill", **model.settings}
    yield from (f"{key}={value}" for key, value in settings.items())
    for kind in model.nodes:
        cores = kind.cpus // kind.sockets
        gres = f" Gres=gpu:{kind.gpus}" if kind.gpus else ""
        weight = f" Weight={kind.weight}" if kind.weight > 1 else ""
        yield (
            f"NodeName={node_list(kind.prefix, range(kind.count))} CPUs={kind.cpus} Sockets={kind.sockets} "
            f"CoresPerSocket={cores} ThreadsPerCore=1 RealMemory={kind.memory_mib}{gres}{weight} State=UNKNOWN"
        )
    for partition in model.partitions:
        kinds = [model.nodes[pool] for pool in partition.pools]
        nodes = ",".join(node_list(kind.prefix, range(kind.count)) for kind in kinds)
        yield f"PartitionName={partition.name} Nodes={nodes} {partition.settings} State=UP".replace("  ", " ")


def _associations(model: SiteModel) -> Iterator[str]:
    names = ",".join(one.name for one in model.qos)

    def row(account: str, user: str = "", parent: str = "") -> str:
        return f"{CLUSTER}|{account}|{user}||1|||||||||||||{names}|||{parent}"

    yield _ASSOC
    yield row("root")
    for number in range(model.accounts):
        yield row(f"a{number}", parent="root")
        yield from (row(f"a{number}", f"u{user}") for user in range(number, model.users, model.accounts))


def _qos(model: SiteModel) -> Iterator[str]:
    columns = QOS_COLUMNS.split(",")
    yield "|".join(columns)
    for one in model.qos:
        fields = {"Name": one.name, "Priority": f"{one.priority}", "UsageFactor": "1.000000", **one.limits}
        yield "|".join(fields.get(column, "") for column in columns)


def _accounting(model: SiteModel, jobs: SyntheticJobs) -> Iterator[str]:
    """Yield the rows of sacct, by submission."""
    yield _SACCT
    columns = (jobs.submit, jobs.start, jobs.run_s, jobs.limit_min, jobs.units, jobs.job_class, jobs.user)
    rows = zip(*(column.astype(int).tolist() for column in columns), jobs.nodes, strict=True)
    for number, (submit, start, run, limit, units, job_class, user, nodes) in enumerate(rows, 1):
        one = model.classes[job_class]
        kind = model.nodes[one.pool]
        account = f"a{user % model.accounts}"
        end, is_whole = start + run, kind.units == 1
        request, cpus = _request(kind, units)
        allocated = len(nodes) * kind.cpus if is_whole else cpus
        least = len(nodes) if is_whole or kind.gpus else 1
        tres = f"billing={cpus},cpu={cpus},node={least}" + (f",gres/gpu={units}" if kind.gpus else "")
        state = "TIMEOUT" if run >= limit * 60 else "COMPLETED"
        submitted, energy = _date(submit), _energy(kind, user, len(nodes) * run)
        yield (
            f"{number}|{number}|j{number}|u{user}|{account}|{one.qos}|{one.partition}|{state}|0:0|{submitted}|{submitted}|"
            f"{_date(start)}|{_date(end)}|{run}|{limit}|{least}|{len(nodes)}|{cpus}|{allocated}||{tres}|{tres}|"
            f"{node_list(kind.prefix, nodes)}|||{energy}|sbatch {request} -t {limit} -p {one.partition} -q {one.qos} "
            f"-A {account} --wrap=work"
        )


def _energy(kind: NodeKind, user: int, node_s: int) -> str:
    """Return the energy of a job, J, "" where none is recorded; a user's jobs have 0.8 to 1.2 of the mean power."""
    return "" if kind.busy_w is None else f"{kind.busy_w * (0.8 + 0.4 * (user * GOLDEN % 1.0)) * node_s:.0f}"


def _request(kind: NodeKind, units: int) -> tuple[str, int]:
    """Return the options of a job of so many units, and its CPUs."""
    cpus = units * kind.cpus // kind.units
    if kind.units == 1:
        return f"-N {units} --exclusive", cpus
    if kind.gpus:
        nodes = -(-units // kind.gpus)
        share = kind.cpus // kind.gpus
        return f"-N {nodes} --gpus-per-node={units // nodes} --ntasks-per-node={units // nodes} -c {share}", cpus
    return (f"-n 1 -c {units}" if units <= kind.cpus else f"-n {units}"), cpus


def _date(second: int) -> str:
    day, rest = divmod(second, DAY_S)
    return f"{_day(day)}T{_clock(rest)}"


@lru_cache
def _day(number: int) -> str:
    return datetime.fromtimestamp(BEGIN + number * DAY_S, UTC).strftime("%Y-%m-%d")


@lru_cache(DAY_S)
def _clock(second: int) -> str:
    return f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"


def node_list(prefix: str, numbers: Sequence[int]) -> str:
    """Return a hostlist of nodes: `nid[000001-000004,000007]` for 0 to 3 and 6.

    Args:
        prefix: of the names.
        numbers: ascending, from 0 on.
    """
    if len(numbers) == 1:
        return f"{prefix}{numbers[0] + 1:0{_DIGITS}d}"
    parts = list[str]()
    for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        ends = [number for _, number in run]
        first, last = (f"{number + 1:0{_DIGITS}d}" for number in (ends[0], ends[-1]))
        parts.append(first if first == last else f"{first}-{last}")
    return f"{prefix}[{','.join(parts)}]" if len(parts) > 1 or "-" in parts[0] else f"{prefix}{parts[0]}"
