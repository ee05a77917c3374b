"""Usage and fair shares of associations: equal to the plain reference on any tree, and Slurm's rules one by one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.kernels.slurm import fair_shares, priority
from pilotfish.simulate.kernels.slurm.tables import GONE, RUNNING
from pilotfish.simulate.slurm.site import PriorityRules, Site, SiteAssociation, SiteQos, SiteRules
from tests.reference.plain_fair_share import classic, decayed, fair_tree
from tests.simulate.slurm.small_sites import T0, Hand, job, site

pytestmark = pytest.mark.usefixtures("plain_python")
HALF_LIFE = 7200.0


def ruled(place: Site, **rules: Any) -> Site:
    """Return the site with these rules of priority."""
    plain = PriorityRules(fair_share=10_000.0, half_life_s=HALF_LIFE)
    return replace(place, rules=replace(place.rules, priority=replace(plain, **rules)))


def tree(rows: Sequence[SiteAssociation], usage: Sequence[float], **rules: Any) -> Hand:
    """Return the state of a site with these associations and their usage."""
    return Hand(ruled(replace(site([]), associations=tuple(rows), usage=tuple(usage)), **rules))


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[SiteAssociation], list[float]]:
    """Draw associations, parents before children, and their usage; values are few, so that many are tied."""
    rows, accounts = [SiteAssociation("root")], [0]
    for number in range(draw(st.integers(1, 14))):
        parent = draw(st.sampled_from(accounts))
        shares = draw(st.sampled_from([None, 0, 1, 1, 2, 3]))
        user = draw(st.sampled_from(["", f"u{number}"]))
        account = rows[parent].account if user else f"a{number}"
        if not user:
            accounts.append(len(rows))
        rows.append(SiteAssociation(account, user, parent, shares))
    usage = [0.0] * len(rows)
    for row, association in enumerate(rows):
        amount = float(draw(st.sampled_from([0, 0, 1, 2, 6]))) if association.user else 0.0
        while row >= 0:
            usage[row] += amount
            row = rows[row].parent
    return rows, usage


@given(trees())
@settings(max_examples=300)
def test_fair_tree_ranks_users_as_the_reference_does(drawn: tuple[list[SiteAssociation], list[float]]) -> None:
    hand = tree(*drawn)
    fair_shares.rank_fairly(hand.world)
    assert {row: float(hand.block.associations["factor"][row]) for row in fair_tree(*drawn)} == fair_tree(*drawn)


@given(trees(), st.sampled_from(["NO_FAIR_TREE", "DEPTH_OBLIVIOUS"]), st.sampled_from([1.0, 3.0]))
@settings(max_examples=300)
def test_classic_shares_are_those_of_the_reference(
    drawn: tuple[list[SiteAssociation], list[float]], flag: str, dampening: float
) -> None:
    hand = tree(*drawn, flags=frozenset({flag}), dampening=dampening)
    fair_shares.forget_classic_factors(hand.world)
    expected = classic(*drawn, dampening, oblivious=flag == "DEPTH_OBLIVIOUS")
    for row, factor in expected.items():
        assert fair_shares.fair_share_factor(hand.world, row) == pytest.approx(factor, rel=1e-9), drawn[0][row]


def test_root_user_counts_and_fresh_users_share_the_first_rank() -> None:
    rows = [
        SiteAssociation("root"), SiteAssociation("root", "root", 0), SiteAssociation("a", "", 0, 60),
        SiteAssociation("a", "alice", 2), SiteAssociation("b", "", 0, 40), SiteAssociation("b", "bob", 4),
    ]  # fmt: skip
    hand = tree(rows, [0.0] * 6)
    fair_shares.rank_fairly(hand.world)
    assert hand.block.associations["factor"][[1, 3, 5]].tolist() == [1.0, 1.0, 1.0]
    hand.block.associations["usage"] = [5.0, 0.0, 5.0, 5.0, 0.0, 0.0]
    fair_shares.rank_fairly(hand.world)
    assert hand.block.associations["factor"][[1, 5, 3]].tolist() == [1.0, 1.0, pytest.approx(1 / 3)]


def test_siblings_in_order_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparisons: one for each neighbour where the order held, and O(n log n) from any order."""
    users = 400
    rows = [SiteAssociation("root")] + [SiteAssociation("root", f"u{i}", 0) for i in range(users)]
    hand = tree(rows, [float(users)] + [1.0 + i * 7919 % users for i in range(users)])
    compare, calls = fair_shares._comes_before, [0]

    def counted(*arguments: Any) -> bool:
        calls[0] += 1
        return bool(compare(*arguments))

    monkeypatch.setattr(fair_shares, "_comes_before", counted)
    fair_shares.rank_fairly(hand.world)
    assert calls[0] < 4 * users * math.log2(users)
    calls[0] = 0
    fair_shares.rank_fairly(hand.world)
    assert calls[0] == users - 1


# --- usage ---
def running(hand: Hand, row: int, start: int, billing: float) -> None:
    """Let a job run since then."""
    entry = hand.world.jobs[row]
    entry.state, entry.start, entry.billing = RUNNING, start, billing
    priority.set_priority(hand.world, row, start)


def usage_of(hand: Hand, name: str) -> float:
    """Return the usage of a user, or of an account."""
    rows = {row.user or row.account: number for number, row in enumerate(hand.site.associations)}
    return float(hand.block.associations["usage"][rows[name]])


def busy(**rules: Any) -> Hand:
    """Return a site with a job of alice's on 8 CPUs since T0 + 100, whose clock of usage began at T0."""
    hand = Hand(ruled(site([job(), job("carol", id="2")]), **rules))
    priority.start_priorities(hand.world, T0)
    running(hand, 0, T0 + 100, 8.0)
    return hand


def test_usage_goes_to_the_user_and_all_its_accounts_and_decays_for_the_whole_step() -> None:
    hand = busy()
    priority.calculate_priorities(hand.world, T0 + 300)
    first = decayed(200 * 8.0, 200, HALF_LIFE)
    for name in ("alice", "physics", "science", "root"):
        assert usage_of(hand, name) == pytest.approx(first)
    assert usage_of(hand, "bob") == usage_of(hand, "chem") == 0.0
    priority.calculate_priorities(hand.world, T0 + 600)
    both = decayed(first, 300, HALF_LIFE) + decayed(300 * 8.0, 300, HALF_LIFE)
    assert usage_of(hand, "alice") == pytest.approx(both)


@pytest.mark.parametrize("enforces", [True, False])
def test_the_last_part_of_a_job_counts_only_where_limits_are_enforced(enforces: bool) -> None:
    place = ruled(site([job()], rules=SiteRules(enforces_limits=enforces)))
    hand = Hand(place)
    priority.start_priorities(hand.world, T0)
    running(hand, 0, T0 + 100, 8.0)
    priority.book_end(hand.world, 0, T0 + 250)
    hand.world.jobs[0].state = GONE
    priority.calculate_priorities(hand.world, T0 + 300)
    expected = decayed(decayed(150 * 8.0, 150, HALF_LIFE), 300, HALF_LIFE) if enforces else 0.0
    assert usage_of(hand, "root") == pytest.approx(expected)
    assert hand.world.count.listed == 0


def test_a_qos_scales_usage_and_may_keep_its_own_undecayed() -> None:
    rows = [SiteQos("half", usage_factor=0.5, flags=frozenset({"NoDecay"}))]
    hand = Hand(ruled(site([job(qos="half")], qos=rows)))
    priority.start_priorities(hand.world, T0)
    running(hand, 0, T0, 4.0)
    priority.calculate_priorities(hand.world, T0 + 300)
    priority.calculate_priorities(hand.world, T0 + 600)
    step = decayed(300 * 2.0, 300, HALF_LIFE)
    assert usage_of(hand, "alice") == pytest.approx(decayed(step, 300, HALF_LIFE) + step)
    assert float(hand.block.qos["usage"][0]) == 600 * 2.0


def test_without_a_half_life_usage_stays_until_it_is_reset() -> None:
    hand = busy(half_life_s=0.0, usage_reset="DAILY")
    midnight = int(hand.block.usage_resets[0])
    assert midnight % 86_400 == 0 and 0 < midnight - T0 <= 86_400
    priority.calculate_priorities(hand.world, midnight - 50)
    assert usage_of(hand, "root") == 8.0 * (midnight - 50 - T0 - 100)
    priority.calculate_priorities(hand.world, midnight + 250)
    assert usage_of(hand, "root") == usage_of(hand, "alice") == 8.0 * 300
    priority.calculate_priorities(hand.world, midnight + 550)
    assert usage_of(hand, "alice") == 8.0 * 600


@pytest.mark.parametrize(
    ("period", "resets", "days"),
    [("DAILY", 365, 1), ("WEEKLY", 52, 7), ("MONTHLY", 12, 31), ("QUARTERLY", 4, 92), ("YEARLY", 1, 0), ("NONE", 0, 0)],
)
def test_resets_are_midnights_of_the_period(period: str, resets: int, days: int) -> None:
    times = [
        datetime.fromtimestamp(time, UTC) for time in Hand(ruled(site([job()]), usage_reset=period)).block.usage_resets
    ]
    assert len(times) == resets
    assert all(time.hour == time.minute == time.second == 0 for time in times)
    assert all(days - 3 <= (after - before).days <= days for before, after in pairwise(times))
    assert period != "WEEKLY" or {time.strftime("%A") for time in times} == {"Sunday"}
    assert days < 31 or {time.day for time in times} == {1}


def test_a_reset_now_forgets_the_usage_before_the_period() -> None:
    rows = [SiteAssociation("root"), SiteAssociation("root", "alice", 0)]
    assert usage_of(tree(rows, [5.0, 5.0]), "alice") == 5.0
    assert usage_of(tree(rows, [5.0, 5.0], usage_reset="NOW"), "alice") == 0.0


def test_classic_users_count_the_usage_of_the_jobs_before_their_first_waiting_job() -> None:
    """Accounts are shared before usage is booked; a user when the walk through the jobs first needs it."""
    jobs = [job(id="1"), job("bob", id="2"), job("alice", id="3"), job("carol", id="4")]
    hand = Hand(ruled(site(jobs), flags=frozenset({"NO_FAIR_TREE"})))
    for row in range(4):
        hand.world.jobs[row].state = 1
    priority.start_priorities(hand.world, T0)
    running(hand, 0, T0, 1.0)
    priority.set_priority(hand.world, 1, T0)
    running(hand, 2, T0, 3.0)
    priority.set_priority(hand.world, 3, T0)
    priority.calculate_priorities(hand.world, T0 + 300)
    effective = {
        row.user: float(hand.block.associations["effective"][i]) for i, row in enumerate(hand.site.associations)
    }
    assert effective["carol"] == 0.0 and effective["bob"] == 0.0  # physics had no usage when accounts were shared
    assert effective["alice"] == -1.0  # nothing of hers waits: calculated when she submits next
    assert fair_shares.fair_share_factor(hand.world, 4) == 2.0 ** -(0.5 / 0.25)
