"""QOS, node events and reservations from `sacctmgr -P show` and `scontrol show reservation`.

Rule: a row that cannot be read is left out, and counted by reason.
Source: sacctmgr(1) and scontrol(1) of Slurm 22.05.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import tzinfo

from ...simulate.errors import ConfigError
from ...simulate.slurm.site import NodeEvent, SiteAssociation, SiteQos, SiteReservation
from .. import slurm_values
from ..hostlist import expand
from .bar_table import BarTable, Record
from .site_limits import site_limits

#: Columns that `sacctmgr show qos` leaves out unless it is asked for them; other names of a column follow its first.
_HIDDEN = (
    ("LimitFactor",), ("MinPrioThres", "MinPrioThreshold"), ("MaxTRESRunMinsPU", "MaxTRESRunMinsPerUser"),
    ("MaxTRESRunMinsPA", "MaxTRESRunMinsPerAccount"), ("GrpJobsAccrue",), ("MaxJobsAccruePU", "MaxJobsAccruePerUser"),
    ("MaxJobsAccruePA", "MaxJobsAccruePerAccount"),
)  # fmt: skip


def without_hidden_limits(table: BarTable) -> str:
    """Return a sentence on the limits of QOS for which sacctmgr was not asked; "": it was asked for all."""
    missing = [names[0] for names in _HIDDEN if not table.has(*(name.lower() for name in names))]
    return f"qos.psv without {', '.join(missing)}: taken as not set, see the command of this file" if missing else ""


def site_qos(table: BarTable, unknown: list[str]) -> tuple[SiteQos, ...]:
    """Return the QOS of `sacctmgr show qos`."""
    services: dict[str, SiteQos] = {}
    unfollowed: Counter[str] = Counter()
    for record in table.records():
        try:
            service = _qos(record, unfollowed)
        except (ValueError, OverflowError):
            table.left_out["QOS with a value that cannot be read"] += 1
            continue
        services[service.name] = service
    unknown += [f"QOS: {name} is set and not followed" for name in sorted(unfollowed)]
    return tuple(services.values())


def _qos(record: Record, unfollowed: Counter[str]) -> SiteQos:
    name, mode = record.text("name"), record.text("preemptmode")
    if not name:
        raise ValueError("no name")
    grace, exempt = record.text("gracetime"), record.text("preemptexempttime")
    return SiteQos(
        name=name,
        priority=slurm_values.whole(record.text("priority") or "0"),
        flags=frozenset(word for word in record.text("flags").split(",") if word),
        usage_factor=_factor(record.text("usagefactor"), none=0.0),
        limit_factor=_factor(record.text("limitfactor")),
        min_priority=slurm_values.limit(record.text("minpriothres", "minpriothreshold")) or 0,
        preempts=frozenset(word for word in record.text("preempt").split(",") if word),
        preempt_mode="" if mode.lower() == "cluster" else mode.upper(),
        preempt_exempt_s=slurm_values.span(exempt) if ":" in exempt else None,
        grace_time_s=int(slurm_values.span(grace) or 0 if ":" in grace else float(grace or 0)),
        limits=site_limits(record, unfollowed),
    )


def _factor(text: str, none: float = 1.0) -> float:
    """Return a factor, 1 if it is not set; `none`: what 0 means. Raises ValueError."""
    factor = float(text or 1.0)
    if not 0 <= factor < slurm_values.MOST:
        raise ValueError("not a factor")
    return factor or none


def node_events(table: BarTable, nodes: Container[str], zone: tzinfo) -> tuple[NodeEvent, ...]:
    """Return the times in which nodes took no jobs from `sacctmgr show event`, by start.

    Rows of the cluster's own registration, and of nodes that only sleep, say nothing about that.
    """
    events = list[NodeEvent]()
    for record in table.records():
        node, words = record.text("nodename"), set(re.split(r"[^A-Z_]+", record.text("state").upper()))
        if not node:
            table.left_out.update(["events without a node"] if words != {""} else [])
            continue
        if node not in nodes:
            table.left_out["events of other nodes"] += 1
            continue
        if not words & {"DOWN", "DRAIN", "DRAINED", "DRAINING", "MAINT", "FAIL", "FAILING", "ERROR"}:
            table.left_out["events of nodes that took jobs"] += 1
            continue
        try:
            start = slurm_values.dump_moment(record.text("timestart", "start"), zone)
            end = slurm_values.dump_moment(record.text("timeend", "end"), zone)
            if start is None or (end is not None and end < start):
                raise ValueError("no start")
        except (ValueError, OverflowError):
            table.left_out["events without a time that can be read"] += 1
            continue
        events.append(NodeEvent(node, start, end, kills="DOWN" in words))
    return tuple(sorted(events, key=lambda event: event.start))


def site_reservations(
    records: Iterable[Record],
    nodes: Sequence[str],
    by_id: Mapping[str, SiteAssociation],
    zone: tzinfo,
    left_out: Counter[str],
) -> tuple[SiteReservation, ...]:
    """Return the reservations of `sacctmgr show reservation` or `scontrol show reservation`, by start, each once.

    Args:
        records: rows with Name or ReservationName, TimeStart or StartTime, TimeEnd or EndTime, NodeNames, NodeName
            (22.05) or Nodes, Flags, PartitionName, Created (the time), and who may use it: Users, Accounts, or Assocs,
            which are ids of associations. Name, times and nodes must be there.
        nodes: all nodes of the site.
        by_id: associations by id.
        zone: of the times.
        left_out: receives why rows are left out.
    """
    reservations: dict[tuple[str, float], SiteReservation] = {}
    for record in records:
        try:
            reservation = _reservation(record, nodes, by_id, zone, left_out)
        except (ValueError, OverflowError, ConfigError):
            left_out["reservations with a value that cannot be read"] += 1
            continue
        reservations[reservation.name, reservation.start] = reservation
    return tuple(sorted(reservations.values(), key=lambda one: (one.start, one.name)))


def _reservation(
    record: Record,
    nodes: Sequence[str],
    by_id: Mapping[str, SiteAssociation],
    zone: tzinfo,
    left_out: Counter[str],
) -> SiteReservation:
    start = slurm_values.dump_moment(record.text("timestart", "start", "starttime"), zone)
    end = slurm_values.dump_moment(record.text("timeend", "end", "endtime"), zone)
    name, members = record.text("name", "reservationname"), record.text("nodenames", "nodename", "nodes")
    if start is None or end is None or end < start or not name:
        raise ValueError("no time or no name")
    users, accounts = (_allowed(record.text(key)) for key in ("users", "accounts"))
    for number in filter(None, record.text("assocs", "associations").split(",")):
        if association := by_id.get(number.strip("-+ ")):
            users |= {association.user} if association.user else set()
            accounts |= {association.account} if not association.user else set()
        else:
            left_out["associations of reservations that are in no file (column ID of `show assoc`)"] += 1
    if members.lower() in slurm_values.UNKNOWN:
        names: tuple[str, ...] = ()
    else:
        names = tuple(nodes) if members.upper() == "ALL" else expand(members)
    flags = frozenset(word.upper() for word in re.split(r"[,+]", record.text("flags")) if word)
    site_nodes = frozenset(nodes)
    partition = record.text("partitionname", "partition")
    return SiteReservation(
        name=name,
        start=start,
        end=end,
        nodes=tuple(node for node in names if node in site_nodes),
        users=frozenset(users),
        accounts=frozenset(accounts),
        flags=flags,
        partition="" if partition.lower() in slurm_values.UNKNOWN else partition,
        created=slurm_values.dump_moment(record.text("created"), zone),
    )


def _allowed(text: str) -> set[str]:
    return set() if text.lower() in slurm_values.UNKNOWN else {word for word in text.split(",") if word}
