"""Reference of Slurm's usage and fair shares, in plain Python, straight from the rules; recursive, over the site's rows.

Rule: nothing is kept between calls but the usage; each list of siblings is made again from the rows of the site.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pilotfish.simulate.slurm.site import SiteAssociation


def children_of(rows: Sequence[SiteAssociation], account: int) -> list[int]:
    """Return who competes below an account, in the order of the site: Fairshare=parent accounts pass theirs on."""
    below = list[int]()
    for row, association in enumerate(rows):
        if association.parent == account:
            passes = not association.user and association.shares is None
            below += children_of(rows, row) if passes else [row]
    return sorted(below)


def share_of(rows: Sequence[SiteAssociation], siblings: Sequence[int], row: int) -> float:
    """Return an association's part of the shares of its siblings."""
    total = sum(rows[sibling].shares or 0 for sibling in siblings)
    return (rows[row].shares or 0) / total if total else 0.0


def fair_tree(rows: Sequence[SiteAssociation], usage: Sequence[float]) -> dict[int, float]:
    """Return the fair-share factor of each user by Fair Tree."""
    users = sum(1 for row in rows if row.user)
    factors = dict[int, float]()
    rank, next_rank = users, users

    def level(account: int, siblings: Sequence[int], row: int) -> float:
        if rows[row].shares is None:
            return math.inf
        share = share_of(rows, siblings, row)
        used = usage[row] / usage[account] if usage[account] else 0.0
        return 0.0 if share == 0 else math.inf if used == 0 else share / used

    def visit(account: int, tied: bool) -> None:
        nonlocal rank, next_rank
        siblings = children_of(rows, account)
        levels = {row: level(account, siblings, row) for row in siblings}
        before = None
        for row in sorted(siblings, key=lambda row: (-levels[row], not rows[row].user, row)):
            tied = tied if before is None else levels[row] == levels[before]
            before = row
            if not rows[row].user:
                visit(row, tied)
                continue
            rank = rank if tied else next_rank
            factors[row] = rank / users
            next_rank -= 1

    visit(0, False)
    return factors


def classic(
    rows: Sequence[SiteAssociation], usage: Sequence[float], dampening: float, *, oblivious: bool = False
) -> dict[int, float]:
    """Return the fair-share factor of each user by the classic rule, or by the one with DEPTH_OBLIVIOUS."""
    factors = dict[int, float]()

    def ratio(effective: float, shares: float) -> float:
        return effective / shares

    def visit(account: int, shares: float, effective: float) -> None:
        siblings = children_of(rows, account)
        for row in siblings:
            part = share_of(rows, siblings, row)
            used = usage[row] / usage[0] if usage[0] else 0.0
            row_shares = shares if rows[row].shares is None else shares * part
            if account == 0:
                row_effective = used
            elif rows[row].shares is None:
                row_effective = effective
            elif oblivious:
                row_effective = 0.0
                if used > 0 and usage[account] > 0 and row_shares > 0:
                    above = ratio(effective, shares)
                    local = ratio(used, row_shares) / ratio(usage[account] / usage[0], shares)
                    opposed = above > 0 and math.log(above) * math.log(local) <= 0
                    row_effective = (
                        above * local ** (1 / (1 + (5 * math.log(above)) ** 2) if opposed else 1.0) * row_shares
                    )
            else:
                row_effective = used + (effective - used) * part
            if rows[row].user:
                factors[row] = 2.0 ** -(row_effective / row_shares / dampening) if row_shares else 0.0
            else:
                visit(row, row_shares, row_effective)

    visit(0, 1.0, 1.0)
    return factors


def decayed(usage: float, seconds: float, half_life: float) -> float:
    """Return what is next_rank of usage; Slurm takes 0.693 for ln 2 and a linear step for each second."""
    return usage * (1 - 0.693 / half_life) ** seconds if half_life else usage
