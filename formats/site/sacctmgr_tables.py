"""QOS, associations, node events and reservations from `sacctmgr -P show`.

Rule: a row that cannot be read is left out, and counted by reason. The parents of accounts are in the column
`ParentName`, in the blanks before the names (`tree`), in `sacctmgr dump`, or in `sshare -a -l`, whichever is there.
Source: sacctmgr(1) of Slurm 22.05.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import tzinfo

from ...simulate.errors import ConfigError
from ...simulate.slurm.site import NodeEvent, SiteAssociation, SiteQos, SiteReservation
from .. import slurm_values
from ..hostlist import expand
from ..text import count
from .bar_table import BarTable, Record
from .site_limits import site_limits

_DUMP = re.compile(r"\s*(Parent|Account|User)\s*-\s*'?([^':]*)'?")
#: A user in an account, in a partition or in all ("").
_Place = tuple[str, str, str]


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
    grace = record.text("gracetime")
    factor = float(record.text("usagefactor") or 1.0)
    if not 0 <= factor < slurm_values.MOST:
        raise ValueError("not a factor")
    return SiteQos(
        name=name,
        priority=slurm_values.whole(record.text("priority") or "0"),
        flags=frozenset(word for word in record.text("flags").split(",") if word),
        usage_factor=factor,
        preempts=frozenset(word for word in record.text("preempt").split(",") if word),
        preempt_mode="" if mode.lower() == "cluster" else mode.upper(),
        grace_time_s=int(slurm_values.span(grace) or 0 if ":" in grace else float(grace or 0)),
        limits=site_limits(record, unfollowed),
    )


def dumped_parents(text: str) -> dict[str, str]:
    """Return account -> parent as the file of `sacctmgr dump` lists them."""
    parents, parent = dict[str, str](), "root"
    for line in text.split("\n"):
        match = _DUMP.match(line)
        if match and match[1] == "Parent":
            parent = match[2]
        elif match and match[1] == "Account":
            parents[match[2]] = parent
    return parents


def tree_parents(table: BarTable) -> dict[str, str]:
    """Return account -> parent by the blanks before the names in `show assoc tree` and `sshare`; {} without blanks."""
    parents, above = dict[str, str](), list[tuple[int, str]]()
    for _, fields in table.rows:
        text = fields.get("account", "")
        if fields.get("user", "").strip() or not text.strip():
            continue
        depth = len(text) - len(text.lstrip())
        while above and above[-1][0] >= depth:
            above.pop()
        if above:
            parents[text.strip()] = above[-1][1]
        above.append((depth, text.strip()))
    return parents


def site_associations(
    table: BarTable, cluster: str, parents: Mapping[str, str], unknown: list[str]
) -> tuple[tuple[SiteAssociation, ...], dict[str, SiteAssociation]]:
    """Return the associations, parents before children, and those with an id by it.

    Args:
        table: `sacctmgr show assoc`.
        cluster: whose rows count, if there are rows of several.
        parents: account -> parent, from other files.
        unknown: receives what is not known or not followed.
    """
    clusters = {fields.get("cluster", "") for _, fields in table.rows}
    rows = dict[_Place, tuple[SiteAssociation, str, str]]()
    unfollowed: Counter[str] = Counter()
    for record in table.records():
        if len(clusters) > 1 and record.text("cluster").lower() != cluster.lower():
            table.left_out["associations of other clusters"] += 1
            continue
        try:
            association = _association(record, unfollowed)
        except (ValueError, OverflowError):
            table.left_out["associations with a value that cannot be read"] += 1
            continue
        parent = record.text("parentname", "parname")
        partition = association.partition if association.user else ""
        rows[association.account, association.user, partition] = (association, parent, record.text("id"))
    unknown += [f"associations: {name} is set and not followed" for name in sorted(unfollowed)]
    named_parents = {account: parent for (account, user, _), (_, parent, _) in rows.items() if parent and not user}
    return _in_order(rows, {**parents, **tree_parents(table), **named_parents}, table, unknown)


def _association(record: Record, unfollowed: Counter[str]) -> SiteAssociation:
    account, share = record.text("account"), record.text("share", "fairshare", "rawshares").lower()
    if not account:
        raise ValueError("no account")
    shares = None if share in ("parent", "2147483647") else slurm_values.whole(share or "1")
    if shares is not None and shares < 0:
        raise ValueError("shares below 0")
    return SiteAssociation(
        account=account,
        user=record.text("user"),
        shares=shares,
        priority=slurm_values.limit(record.text("priority")) or 0,
        partition=record.text("partition"),
        default_qos=record.text("defqos", "defaultqos"),
        qos=frozenset(word.lstrip("+-") for word in record.text("qos").split(",") if word),
        limits=site_limits(record, unfollowed),
    )


def _in_order(
    rows: Mapping[_Place, tuple[SiteAssociation, str, str]],
    parents: Mapping[str, str],
    table: BarTable,
    unknown: list[str],
) -> tuple[tuple[SiteAssociation, ...], dict[str, SiteAssociation]]:
    """Return the associations with the rows of their parents, and those with an id by it."""
    accounts = {account for account, user, _ in rows if not user}
    ordered, places = list[SiteAssociation](), dict[str, int]()
    by_id = dict[str, SiteAssociation]()
    if rows and "root" not in accounts:
        rows = {("root", "", ""): (SiteAssociation("root"), "", ""), **rows}
        accounts.add("root")
    orphans = sorted(account for account in accounts - {"root"} if parents.get(account, "root") not in accounts)
    without = sorted(accounts - {"root"} - parents.keys())
    if without:
        unknown.append(
            f"{count(len(without), 'account')} without a parent in any file: below root, which changes fair share"
            " (show them by `sacctmgr show assoc format=...,ParentName` or `sacctmgr dump`)"
        )
    lost = set(orphans) | set(without)
    children: dict[str, list[_Place]] = {}
    for place in rows:
        account, user, _ = place
        parent = account if user else "root" if account in lost else parents.get(account, "root")
        if place != ("root", "", ""):
            children.setdefault(parent, []).append(place)
    open_places: list[_Place] = [("root", "", "")] if rows else []
    while open_places:
        place = open_places.pop()
        association, _, number = rows[place]
        account, user, _ = place
        if not user and account != "root":
            parent_row = places["root" if account in lost else parents[account]]
        else:
            parent_row = places[account] if user else -1
        ordered.append(replace(association, parent=parent_row))
        if number:
            by_id[number] = ordered[-1]
        if not user:
            places[account] = len(ordered) - 1
            open_places += reversed(children.pop(account, []))
    if missing := len(rows) - len(ordered):
        table.left_out["associations whose account is not there, or is its own parent"] += missing
    return tuple(ordered), by_id


def site_usage(table: BarTable, associations: Sequence[SiteAssociation]) -> tuple[float, ...]:
    """Return the RawUsage of each association from `sshare -a -l`; 0 for those that are not in the table."""
    usage: dict[tuple[str, str], float] = {}
    for record in table.records():
        try:
            raw = float(record.text("rawusage") or 0.0)
        except ValueError:
            raw = -1.0
        if not 0 <= raw < slurm_values.MOST:
            table.left_out["usages that cannot be read"] += 1
            continue
        usage[record.text("account"), record.text("user")] = raw
    return tuple(usage.get((row.account, row.user), 0.0) for row in associations)


def node_events(table: BarTable, nodes: Container[str], zone: tzinfo) -> tuple[NodeEvent, ...]:
    """Return the times in which nodes took no jobs from `sacctmgr show event`, by start.

    Rows of the cluster's own registration, and of nodes that only sleep, say nothing about that.
    """
    events = list[NodeEvent]()
    for record in table.records():
        node, words = record.text("nodename"), set(re.split(r"[^A-Z_]+", record.text("state").upper()))
        if not node:
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
        records: rows with Name or ReservationName, TimeStart or StartTime, TimeEnd or EndTime, NodeNames or Nodes,
            Flags, PartitionName, Created (the time), and who may use it: Users, Accounts, or Assocs, which are ids of
            associations. Name, times and nodes must be there.
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
    name, members = record.text("name", "reservationname"), record.text("nodenames", "nodes")
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
