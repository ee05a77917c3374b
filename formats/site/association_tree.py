"""The tree of associations: accounts, their users, shares and limits, and how much they have used.

Rule: parents stand before children, children in the order of the rows. The parent of an account is in the column
`ParentName`, in the blanks before the names (`tree`), in `sacctmgr dump`, or in `sshare -a -l`, whichever is there. A
row that cannot be read is left out, and counted by reason.
Source: sacctmgr(1) and sshare(1) of Slurm 22.05.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from ...simulate.slurm.site import SiteAssociation
from .. import slurm_values
from ..text import count
from .bar_table import BarTable, Record
from .site_limits import site_limits

_DUMP = re.compile(r"\s*(Parent|Account|User)\s*-\s*'?([^':]*)'?")
#: An account, a user of it or "", and a partition or "" for all.
_Place = tuple[str, str, str]


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
    if not rows:
        return (), {}
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
    root = ("root", "", "")
    if root not in rows:
        rows = {root: (SiteAssociation("root"), "", ""), **rows}
    accounts = {account for account, user, _ in rows if not user} - {"root"}
    above = {account: parents[account] if parents.get(account) in accounts else "root" for account in accounts}
    if lost := accounts - parents.keys():
        unknown.append(
            f"{count(len(lost), 'account')} without a parent in any file: below root, which changes fair share"
            " (show them by `sacctmgr show assoc format=...,ParentName` or `sacctmgr dump`)"
        )
    children: dict[str, list[_Place]] = {}
    for account, user, partition in [place for place in rows if place != root]:
        children.setdefault(account if user else above[account], []).append((account, user, partition))
    ordered, places, by_id = list[SiteAssociation](), dict[str, int](), dict[str, SiteAssociation]()
    open_places = [root]
    while open_places:
        account, user, _ = place = open_places.pop()
        association, _, number = rows[place]
        parent = places[account] if user else places.get(above.get(account, ""), -1)
        ordered.append(replace(association, parent=parent))
        if number:
            by_id[number] = ordered[-1]
        if not user:
            places[account] = len(ordered) - 1
            open_places += reversed(children.pop(account, []))
    if missing := len(rows) - len(ordered):
        table.left_out["associations whose account is not there, or is its own parent"] += missing
    return tuple(ordered), by_id
