"""Usage of associations and QOS, its decay, and the fair-share factors that follow from it (section "fair share").

Rule: associations stand as parents before children; row 0 is root. `siblings` holds, for each account, the rows that
compete below it, next to each other; accounts with Fairshare=parent are not among them, their children are. Usage is
in billing seconds. Sources: Slurm's pages "Fair Tree", "Classic Fairshare" and "Depth-Oblivious Fair-share Factor".
"""

from __future__ import annotations

import math

from ..block import Block
from ..jit import inner
from .tables import DEPTH_OBLIVIOUS

ROOT = 0


@inner
def decay_of(world: Block, seconds: int) -> float:
    """Return the factor by which usage falls in this time; Slurm rounds ln 2 and takes a linear step a second."""
    half_life = world.rules.half_life
    if half_life <= 0.0:
        return 1.0
    if not 0 <= seconds < len(world.decays):
        return (1.0 - 0.693 / half_life) ** seconds
    if world.decays[seconds] == 0.0:
        world.decays[seconds] = (1.0 - 0.693 / half_life) ** seconds
    return world.decays[seconds]


@inner
def decay_usage(world: Block, seconds: int) -> None:
    """Let the usage of all associations, and of the QOS without NoDecay, decay for this time."""
    factor = decay_of(world, seconds)
    for row in range(len(world.associations)):
        world.associations[row].usage *= factor
    for row in range(len(world.qos)):
        if world.qos[row].no_decay == 0:
            world.qos[row].usage *= factor


@inner
def clear_usage(world: Block) -> None:
    """Set all usage to 0 (PriorityUsageResetPeriod)."""
    for row in range(len(world.associations)):
        world.associations[row].usage = 0.0
    for row in range(len(world.qos)):
        world.qos[row].usage = 0.0


@inner
def book_usage(world: Block, job: int, since: int, now: int) -> None:
    """Add what a job used between two times, as far as it ran, to its association, all parents, and its QOS."""
    row = world.jobs[job]
    seconds = now - max(since, row.start)
    if seconds < 1:
        return
    amount = seconds * row.billing
    if row.qos >= 0:
        qos = world.qos[row.qos]
        amount *= qos.usage_factor
        qos.usage += amount if qos.no_decay else amount * decay_of(world, seconds)
    amount *= decay_of(world, seconds)
    association = row.assoc
    while association >= 0:
        world.associations[association].usage += amount
        association = world.associations[association].parent


# --- Fair Tree ---
@inner
def rank_fairly(world: Block) -> None:
    """Calculate the fair-share factor of each user from shares and usage, by Fair Tree."""
    if len(world.associations) > 0:
        _set_levels(world)
        _rank_users(world)


@inner
def _set_levels(world: Block) -> None:
    """Set the level fair share of each association: its share among its siblings by its part of their usage."""
    for row in range(len(world.associations)):
        association = world.associations[row]
        if association.fair_parent < 0:
            continue
        parent_usage = world.associations[association.fair_parent].usage
        if association.shares_parent:
            association.level = math.inf
        elif association.share == 0.0:
            association.level = 0.0
        elif association.usage == 0.0 or parent_usage == 0.0:
            association.level = math.inf
        else:
            association.level = association.share / (association.usage / parent_usage)


@inner
def _comes_before(world: Block, first: int, second: int) -> bool:
    """Return whether an association stands before another: higher level, then users, then the order of the site."""
    one, other = world.associations[first], world.associations[second]
    if one.level != other.level:
        return one.level > other.level
    return one.is_user > other.is_user or (one.is_user == other.is_user and first < second)


@inner
def _run_end(world: Block, first: int, end: int) -> int:
    """Return the end of the siblings from `first` on that are in order."""
    siblings, last = world.siblings, first + 1
    while last < end and _comes_before(world, siblings[last - 1], siblings[last]):
        last += 1
    return last


@inner
def _merge(world: Block, first: int, middle: int, end: int) -> None:
    """Merge two neighbouring runs of siblings that are each in order."""
    siblings, space = world.siblings, world.sibling_space
    for place in range(first, middle):
        space[place] = siblings[place]
    low, high, place = first, middle, first
    while low < middle:
        if high < end and _comes_before(world, siblings[high], space[low]):
            siblings[place] = siblings[high]
            high += 1
        else:
            siblings[place] = space[low]
            low += 1
        place += 1


@inner
def _sort_siblings(world: Block, first: int, end: int) -> None:
    """Put siblings in order by merging the runs that already are: one look where nothing changed."""
    while _run_end(world, first, end) < end:
        begin = first
        while begin < end:
            middle = _run_end(world, begin, end)
            last = middle
            if middle < end:
                last = _run_end(world, middle, end)
                _merge(world, begin, middle, last)
            begin = last


@inner
def _rank_users(world: Block) -> None:
    """Walk the tree from the best account down; a user's factor is its rank among all users.

    Siblings of equal level share the higher rank; the first child of an account that equals the sibling before it is
    tied, too.
    """
    associations, siblings = world.associations, world.siblings
    users = 0
    for row in range(len(associations)):
        users += associations[row].is_user
        if associations[row].children > 1:
            _sort_siblings(world, associations[row].child0, associations[row].child0 + associations[row].children)
    account, place, tied, next_rank, rank = ROOT, associations[ROOT].child0, False, users, users
    while True:
        if place == associations[account].child0 + associations[account].children:
            if account == ROOT:
                return
            place = associations[account].place + 1
            account = associations[account].fair_parent
            continue
        row = siblings[place]
        if place > associations[account].child0:
            tied = associations[row].level == associations[siblings[place - 1]].level
        if associations[row].is_user:
            rank = rank if tied else next_rank
            associations[row].factor = rank / users
            next_rank -= 1
            place += 1
        else:
            associations[row].place = place
            account, place = row, associations[row].child0


# --- classic ---
@inner
def forget_classic_factors(world: Block) -> None:
    """Set the effective usage of all accounts, the parents first; that of users is calculated when it is needed."""
    for row in range(len(world.associations)):
        if world.associations[row].is_user:
            world.associations[row].effective = -1.0
        else:
            _set_classic_factor(world, row)


@inner
def fair_share_factor(world: Block, row: int) -> float:
    """Return the fair-share factor of an association; classic ones stay as they are until the next run."""
    if world.associations[row].effective < 0.0:
        _set_classic_factor(world, row)
    return world.associations[row].factor


@inner
def _set_classic_factor(world: Block, row: int) -> None:
    """Set an association's effective usage, and its factor 2^-(effective usage / shares / dampening)."""
    associations, association = world.associations, world.associations[row]
    total = associations[ROOT].usage
    usage = association.usage / total if total > 0.0 else 0.0
    if association.fair_parent < 0 or association.fair_parent == ROOT:
        association.effective = usage
    elif association.shares_parent:
        association.effective = associations[association.fair_parent].effective
    elif world.rules.priority_flags & DEPTH_OBLIVIOUS:
        association.effective = _oblivious_usage(world, row, usage, total)
    else:
        above = associations[association.fair_parent].effective
        association.effective = usage + (above - usage) * association.share
    shares = association.norm_share
    association.factor = 0.0 if shares <= 0.0 else 2.0 ** -(association.effective / shares / world.rules.dampening)


@inner
def _oblivious_usage(world: Block, row: int, usage: float, total: float) -> float:
    """Return the effective usage that counts an association's own siblings more than the accounts above it."""
    association = world.associations[row]
    parent = world.associations[association.fair_parent]
    if association.norm_share <= 0.0 or parent.usage <= 0.0 or usage <= 0.0:
        return 0.0
    above = parent.effective / parent.norm_share
    local = (usage / association.norm_share) / (parent.usage / total / parent.norm_share)
    exponent = 1.0
    if above > 0.0 and math.log(above) * math.log(local) <= 0.0:
        exponent = 1.0 / (1.0 + (5.0 * math.log(above)) ** 2)
    return above * local**exponent * association.norm_share
