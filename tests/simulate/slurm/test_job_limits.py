"""Each limit of QOS, associations and partitions decides, and its counters return to zero."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.simulate.kernels.slurm import job_limits as limits
from pilotfish.simulate.slurm.limit_tables import unfollowed_limits
from pilotfish.simulate.slurm.site import SiteLimits, SiteQos
from tests.simulate.slurm.small_sites import NODES, PARTITION, RULES, Hand, job, site

pytestmark = pytest.mark.usefixtures("plain_python")
HIGH = {"qos": "high"}
#: Two jobs: the first runs on nodes 0 and 1 with 2 CPUs on each, 100 MiB, a GPU; the second would get nodes 1 and 2 with
#: 1 CPU and 50 MiB on each. Name of the limit, how it is set, the largest bound that blocks the second.
GROUP: list[tuple[str, Callable[[Any], dict[str, Any]], float]] = [
    ("group_jobs", lambda bound: {"group_jobs": bound}, 1),
    ("group_tres cpu", lambda bound: {"group_tres": {"cpu": bound}}, 5),
    ("group_tres mem", lambda bound: {"group_tres": {"mem": bound}}, 299),
    ("group_tres node", lambda bound: {"group_tres": {"node": bound}}, 2),  # nodes 0, 1, 2 are three
    ("group_tres gpu", lambda bound: {"group_tres": {"gres/gpu": bound}}, 3),
    ("group_tres billing", lambda bound: {"group_tres": {"billing": bound}}, 5),
    ("group_run_minutes cpu", lambda bound: {"group_run_minutes": {"cpu": bound}}, 359),
]
OWN: list[tuple[str, Callable[[Any], dict[str, Any]], float]] = [
    ("max_wall_min", lambda bound: {"max_wall_min": bound}, 59),
    ("max_tres cpu", lambda bound: {"max_tres": {"cpu": bound}}, 1),
    ("max_tres node", lambda bound: {"max_tres": {"node": bound}}, 1),
    ("max_tres_per_node mem", lambda bound: {"max_tres_per_node": {"mem": bound}}, 49),
    ("max_tres_minutes cpu", lambda bound: {"max_tres_minutes": {"cpu": bound}}, 119),
]
OF_QOS: list[tuple[str, Callable[[Any], dict[str, Any]], float]] = [
    ("user_jobs", lambda bound: {"user_jobs": bound}, 1),
    ("account_jobs", lambda bound: {"account_jobs": bound}, 1),
    ("user_tres cpu", lambda bound: {"user_tres": {"cpu": bound}}, 5),
    ("user_tres node", lambda bound: {"user_tres": {"node": bound}}, 2),
    ("account_tres mem", lambda bound: {"account_tres": {"mem": bound}}, 299),
    ("user_run_minutes cpu", lambda bound: {"user_run_minutes": {"cpu": bound}}, 359),
    ("account_run_minutes cpu", lambda bound: {"account_run_minutes": {"cpu": bound}}, 359),
]
MAX_JOBS = ("max_jobs", lambda bound: {"max_jobs": bound}, 1)


def ids(cases: list[Any]) -> list[str]:
    return [case[0] for case in cases]


def is_second_blocked(limit_sets: dict[str, SiteLimits], levels: list[SiteQos], **changes: Any) -> bool:
    """Return whether the second job is blocked while the first one runs."""
    jobs = [job(gpus_per_node=1, **changes), job(id="2", gpus_per_node=1, **changes)]
    hand = Hand(site(jobs, associations=limit_sets, qos=levels))
    hand.start(0, [0, 1], cpus=2)
    return hand.is_blocked(1, [1, 2], cpus=1, memory=50)


@pytest.mark.parametrize("level", ["alice", "physics", "science", "root"])
@pytest.mark.parametrize(("name", "setting", "bound"), GROUP, ids=ids(GROUP))
def test_group_limits_bind_at_every_association_up_to_root(
    name: str, setting: Callable[[Any], dict[str, Any]], bound: float, level: str
) -> None:
    assert is_second_blocked({level: SiteLimits(**setting(bound))}, [])
    assert not is_second_blocked({level: SiteLimits(**setting(bound + 1))}, [])


@pytest.mark.parametrize("level", ["alice", "physics"])
@pytest.mark.parametrize(("name", "setting", "bound"), [*OWN, MAX_JOBS], ids=ids([*OWN, MAX_JOBS]))
def test_limits_of_a_job_are_those_of_its_association_or_inherited(
    name: str, setting: Callable[[Any], dict[str, Any]], bound: float, level: str
) -> None:
    assert is_second_blocked({level: SiteLimits(**setting(bound))}, [])
    assert not is_second_blocked({level: SiteLimits(**setting(bound + 1))}, [])
    assert not is_second_blocked(
        {"physics": SiteLimits(**setting(bound)), "alice": SiteLimits(**setting(bound + 1))}, []
    )


@pytest.mark.parametrize(
    ("name", "setting", "bound"), [*GROUP, *OWN, *OF_QOS, MAX_JOBS], ids=ids([*GROUP, *OWN, *OF_QOS, MAX_JOBS])
)
def test_limits_of_a_qos_bind_and_those_of_another_do_not(
    name: str, setting: Callable[[Any], dict[str, Any]], bound: float
) -> None:
    assert is_second_blocked({}, [SiteQos("high", limits=SiteLimits(**setting(bound)))], qos="high")
    assert not is_second_blocked({}, [SiteQos("high", limits=SiteLimits(**setting(bound + 1)))], qos="high")
    assert not is_second_blocked({}, [SiteQos("high", limits=SiteLimits(**setting(bound)))])


@pytest.mark.parametrize(("name", "setting", "bound"), [*GROUP, *OWN, MAX_JOBS], ids=ids([*GROUP, *OWN, MAX_JOBS]))
def test_a_limit_of_a_qos_hides_the_one_of_an_association(
    name: str, setting: Callable[[Any], dict[str, Any]], bound: float
) -> None:
    limit_sets = {"alice": SiteLimits(**setting(bound))}
    assert not is_second_blocked(limit_sets, [SiteQos("high", limits=SiteLimits(**setting(bound + 1)))], qos="high")
    assert is_second_blocked(limit_sets, [SiteQos("high")], qos="high")


@pytest.mark.parametrize(("name", "setting", "bound"), [*GROUP, *OWN, *OF_QOS], ids=ids([*GROUP, *OWN, *OF_QOS]))
def test_the_qos_of_the_partition_wins_unless_the_job_has_overpartqos(
    name: str, setting: Callable[[Any], dict[str, Any]], bound: float
) -> None:
    strict, loose = SiteLimits(**setting(bound)), SiteLimits(**setting(bound + 1))

    def blocked(of_partition: SiteLimits, of_job: SiteLimits, flags: frozenset[str]) -> bool:
        qos = [SiteQos("high", limits=of_job, flags=flags), SiteQos("part", limits=of_partition)]
        jobs = [job(gpus_per_node=1, **HIGH), job(id="2", gpus_per_node=1, **HIGH)]
        hand = Hand(site(jobs, qos=qos, partition=replace(PARTITION, qos="part")))
        hand.start(0, [0, 1], cpus=2)
        return hand.is_blocked(1, [1, 2], cpus=1, memory=50)

    assert blocked(strict, loose, frozenset()) and not blocked(loose, strict, frozenset())
    over = frozenset({"OverPartQOS"})
    assert blocked(loose, strict, over) and not blocked(strict, loose, over)


def test_other_users_and_accounts_have_counters_of_their_own() -> None:
    users = SiteQos("high", limits=SiteLimits(user_jobs=1, account_tres={"cpu": 6}))
    jobs = [job(**HIGH), job("bob", id="2", **HIGH), job("carol", id="3", **HIGH), job(id="4", **HIGH)]
    hand = Hand(site(jobs, qos=[users]))
    hand.start(0, [0], cpus=4)
    assert [hand.is_blocked(row, [1], cpus=4) for row in (1, 2, 3)] == [True, False, True]
    assert [hand.is_blocked(row, [1], cpus=2) for row in (1, 2, 3)] == [False, False, True]


def test_minimum_resources_of_a_qos_block_smaller_jobs() -> None:
    hand = Hand(site([job(**HIGH)], qos=[SiteQos("high", limits=SiteLimits(min_tres={"cpu": 3}))]))
    assert hand.is_blocked(0, [0], cpus=2) and not hand.is_blocked(0, [0], cpus=3)


def test_run_minutes_fall_only_when_they_are_calculated() -> None:
    hand = Hand(site([job(), job(id="2")], associations={"chem": SiteLimits(), "root": SiteLimits(
        group_run_minutes={"cpu": 270})}))  # fmt: skip
    hand.start(0, [0], cpus=4)  # 240 minutes
    hand.world.clock.now += 600
    assert hand.is_blocked(1, [1])
    limits.age_run_minutes(hand.world, int(hand.world.clock.now))
    assert not hand.is_blocked(1, [1])  # 200 and 60


@pytest.mark.parametrize("level", ["alice", "physics", "root"])
@pytest.mark.parametrize("kind", ["group_tres_minutes", "group_wall_min"])
def test_minutes_that_are_used_up_block_until_they_decay(kind: str, level: str) -> None:
    limit_sets = (
        SiteLimits(group_wall_min=10.0) if kind == "group_wall_min" else SiteLimits(group_tres_minutes={"cpu": 40})
    )
    hand = Hand(site([job(), job(id="2")], associations={level: limit_sets}))
    hand.start(0, [0], cpus=4)
    hand.pass_time(300)
    assert not hand.is_blocked(1, [1])
    hand.world.clock.now += 301
    hand.end(0)
    assert hand.is_blocked(1, [1])
    hand.pass_time(3 * 86_400)
    assert not hand.is_blocked(1, [1])


def test_safe_counts_what_runs_and_what_is_asked_for() -> None:
    limit_sets = {"physics": SiteLimits(group_tres_minutes={"cpu": 130})}
    for is_safe in (True, False):
        hand = Hand(site([job(), job(id="2")], associations=limit_sets, rules=replace(RULES, is_safe=is_safe)))
        hand.start(0, [0])
        assert hand.is_blocked(1, [1], cpus=2) is is_safe  # 60 and 120
        assert not hand.is_blocked(1, [1], cpus=1)
        hand.world.clock.now += 600
        hand.end(0)
        assert hand.is_blocked(1, [1], cpus=3) is is_safe  # 10 used and 180
        assert hand.is_blocked(1, [1], cpus=2) is False  # 10 and 120


def test_usage_factor_weighs_used_minutes_and_requests_only_with_its_flag() -> None:
    flags = frozenset[str]()
    for flags, bound in ((frozenset[str](), 119), (frozenset({"UsageFactorSafe"}), 59)):
        qos = SiteQos("high", usage_factor=0.5, flags=flags, limits=SiteLimits(group_run_minutes={"cpu": bound}))
        hand = Hand(site([job(**HIGH)], qos=[qos]))
        assert hand.is_blocked(0, [0], cpus=2)
        hand = Hand(site([job(**HIGH)], qos=[replace(qos, limits=SiteLimits(group_run_minutes={"cpu": bound + 1}))]))
        assert not hand.is_blocked(0, [0], cpus=2)


def test_usage_factor_weighs_what_was_used() -> None:
    for factor, is_blocked in ((0.5, False), (1.0, True)):
        qos = SiteQos("high", usage_factor=factor, limits=SiteLimits(group_tres_minutes={"cpu": 10}))
        hand = Hand(site([job(**HIGH), job(id="2", **HIGH)], qos=[qos]))
        hand.start(0, [0])
        hand.world.clock.now += 610
        hand.end(0)
        assert hand.is_blocked(1, [1]) is is_blocked


def test_usage_of_a_qos_without_decay_stays() -> None:
    for flags, is_blocked in ((frozenset({"NoDecay"}), True), (frozenset[str](), False)):
        qos = SiteQos("high", flags=flags, limits=SiteLimits(group_tres_minutes={"cpu": 10}))
        hand = Hand(site([job(**HIGH), job(id="2", **HIGH)], qos=[qos]))
        hand.start(0, [0])
        hand.pass_time(601)
        hand.end(0)
        hand.pass_time(30 * 86_400)
        assert hand.is_blocked(1, [1]) is is_blocked


def test_nothing_binds_where_limits_are_not_enforced() -> None:
    rules = replace(RULES, enforces_limits=False)
    hand = Hand(site([job(**HIGH)], rules=rules, qos=[SiteQos("high", limits=SiteLimits(group_jobs=0))]))
    assert not hand.is_blocked(0, [0])


def test_usage_that_the_site_begins_with_counts() -> None:
    limit_sets = {"physics": SiteLimits(group_tres_minutes={"cpu": 10})}
    assert Hand(site([job()], associations=limit_sets, usage=(0.0, 0.0, 600.0, 0.0, 0.0, 0.0, 0.0))).is_blocked(0, [0])
    assert not Hand(site([job()], associations=limit_sets, usage=(0.0, 0.0, 599.0, 0.0, 0.0, 0.0, 0.0))).is_blocked(
        0, [0]
    )


# --- partitions ---
@pytest.mark.parametrize(
    ("partition", "changes", "flag"),
    [
        ({"max_time_min": 59}, {}, "PartitionTimeLimit"),
        ({"max_nodes": 1}, {"min_nodes": 2}, "PartitionMaxNodes"),
        ({"min_nodes": 3}, {"max_nodes": 2}, "PartitionMinNodes"),
        ({"allow_accounts": frozenset({"chem"})}, {}, ""),
        ({"deny_accounts": frozenset({"physics"})}, {}, ""),
        ({"allow_qos": frozenset({"normal"})}, {}, ""),
        ({"deny_qos": frozenset({"high"})}, {}, ""),
        ({"state": "DOWN"}, {}, ""),
        ({"state": "INACTIVE"}, {}, ""),
    ],
)
def test_a_partition_takes_only_jobs_that_keep_its_limits(
    partition: dict[str, Any], changes: dict[str, Any], flag: str
) -> None:
    def allowed(flags: frozenset[str], values: dict[str, Any]) -> bool:
        place = site(
            [job(**HIGH, **changes)], qos=[SiteQos("high", flags=flags)], partition=replace(PARTITION, **values)
        )
        return bool(limits.is_allowed_in_partition(Hand(place).world, 0, 0))

    assert not allowed(frozenset(), partition)
    assert allowed(frozenset(), {})
    assert allowed(frozenset({flag}), partition) is bool(flag)


def test_backfill_asks_with_the_shortest_limit_that_a_job_accepts() -> None:
    hand = Hand(site([job(time_min_min=20)], partition=replace(PARTITION, max_time_min=30)))
    assert not limits.is_allowed_in_partition(hand.world, 0, 0)
    assert limits.is_allowed_when_shortened(hand.world, 0, 0)


def test_a_partition_that_drains_starts_jobs() -> None:
    assert limits.is_allowed_in_partition(Hand(site([job()], partition=replace(PARTITION, state="DRAIN"))).world, 0, 0)


def test_a_job_needs_a_qos_of_its_association_where_slurm_looks() -> None:
    other = [SiteQos("vip")]
    assert not limits.is_allowed_in_partition(Hand(site([job(qos="vip")], qos=other)).world, 0, 0)
    rules = replace(RULES, enforces_qos=False)
    assert limits.is_allowed_in_partition(Hand(site([job(qos="vip")], qos=other, rules=rules)).world, 0, 0)


# --- submissions ---
@pytest.mark.parametrize("kind", ["group_submit", "max_submit"])
def test_a_submission_too_many_is_rejected(kind: str) -> None:
    hand = Hand(site([job(), job(id="2")], associations={"alice": SiteLimits(**{kind: 1})}))
    limits.count_departure(hand.world, 1)  # it was never there
    assert not limits.is_one_too_many(hand.world, 0)
    limits.count_submission(hand.world, 0)
    assert limits.is_one_too_many(hand.world, 1)
    limits.count_departure(hand.world, 0)
    assert not limits.is_one_too_many(hand.world, 1)


@pytest.mark.parametrize("own", [{"max_tres": {"cpu": 3}}, {"max_wall_min": 59}, {"user_tres": {"node": 1}}])
def test_a_job_that_can_never_run_is_rejected_only_with_denyonlimit(own: dict[str, Any]) -> None:
    for flags in (frozenset({"DenyOnLimit"}), frozenset[str]()):
        qos = [SiteQos("high", flags=flags, limits=SiteLimits(**own))]
        hand = Hand(site([job(min_nodes=2, min_cpus=4, **HIGH)], qos=qos))
        assert bool(limits.is_denied(hand.world, 0)) is bool(flags)


# --- licences ---
def test_licences_are_taken_and_given_back() -> None:
    jobs = [job(licences={"matlab": 2}), job(id="2", licences={"matlab": 1, "fluent": 1}), job(id="3")]
    hand = Hand(site(jobs, rules=replace(RULES, licences={"fluent": 1, "matlab": 2})))
    assert all(limits.has_licences(hand.world, row) for row in range(3))
    limits.take_licences(hand.world, 0)
    assert [bool(limits.has_licences(hand.world, row)) for row in range(3)] == [False, False, True]
    limits.give_licences(hand.world, 0)
    limits.take_licences(hand.world, 1)
    assert [bool(limits.has_licences(hand.world, row)) for row in range(2)] == [False, False]


def test_limits_that_are_not_followed_are_named() -> None:
    place = site([job()], associations={"alice": SiteLimits(group_tres={"cpu": 1, "license/matlab": 2})})
    assert unfollowed_limits(place) == [
        "association physics/alice: group_tres of license/matlab is not followed: its jobs start too early"
    ]


# --- laws ---
BOUNDS = st.integers(1, 12)
LIMITS = st.builds(
    SiteLimits,
    group_jobs=st.none() | BOUNDS, max_jobs=st.none() | BOUNDS, user_jobs=st.none() | BOUNDS,
    account_jobs=st.none() | BOUNDS,
    **{
        kind: st.dictionaries(st.sampled_from(["cpu", "node", "mem", "gres/gpu"]), BOUNDS, max_size=2)
        for kind in ("group_tres", "user_tres", "account_tres")
    },
    group_run_minutes=st.dictionaries(st.sampled_from(["cpu", "mem"]), st.integers(60, 900), max_size=1),
    group_tres_minutes=st.dictionaries(st.just("cpu"), st.integers(5, 50), max_size=1),
)  # fmt: skip
STEPS = st.lists(
    st.tuples(st.integers(0, 7), st.sets(st.integers(0, len(NODES) - 1), min_size=1, max_size=3), st.integers(0, 200)),
    max_size=24,
)


@given(high=LIMITS, part=LIMITS, science=LIMITS, alice=LIMITS, steps=STEPS, over=st.booleans())
def test_no_start_exceeds_a_limit_that_binds_it_and_counters_return_to_zero(
    high: SiteLimits, part: SiteLimits, science: SiteLimits, alice: SiteLimits,
    steps: list[tuple[int, set[int], int]], over: bool,
) -> None:  # fmt: skip
    owners = ["alice", "alice", "bob", "carol", "carol", "alice", "bob", "alice"]
    jobs = [
        job(owner, id=str(row), qos="high" if row % 3 else "normal", gpus_per_node=row % 2)
        for row, owner in enumerate(owners)
    ]
    flags = frozenset({"OverPartQOS"} if over else ())
    place = site(
        jobs, qos=[SiteQos("high", limits=high, flags=flags), SiteQos("part", limits=part)],
        associations={"science": science, "alice": alice}, partition=replace(PARTITION, qos="part"),
    )  # fmt: skip
    hand, running = Hand(place), dict[int, list[int]]()
    for row, nodes, seconds in steps:
        hand.pass_time(seconds)
        if row in running:
            hand.end(row)
            del running[row]
        elif not hand.is_blocked(row, sorted(nodes), cpus=1 + row % 2, memory=1):
            hand.start(row, sorted(nodes), cpus=1 + row % 2, memory=1)
            running[row] = sorted(nodes)
            levels = ["part", "high"] if jobs[row].qos == "high" else ["part"]
            bounds = {"high": high, "part": part}
            if over and jobs[row].qos == "high":
                levels.reverse()
            _check(jobs, running, [(name, bounds[name]) for name in levels], row, {"science": science, "alice": alice})
    for row in list(running):
        hand.end(row)
    assert not hand.world.held.any() and not hand.world.promised.any() and not hand.world.counted_nodes.any()
    assert (hand.world.spent >= 0.0).all()


def _check(
    jobs: list[Any], running: dict[int, list[int]], levels: list[tuple[str, SiteLimits]], row: int,
    limit_sets: dict[str, SiteLimits],
) -> None:  # fmt: skip
    """Compare the limits that bind a job that has just started with sums over the running jobs."""
    hidden = set[str]()
    for name, bounds in levels:
        in_qos = [other for other in running if name == "part" or jobs[other].qos == "high"]
        groups = {
            "group": in_qos,
            "user": [other for other in in_qos if jobs[other].user == jobs[row].user],
            "account": [other for other in in_qos if jobs[other].account == jobs[row].account],
        }
        new = set[str]()
        for group, members in groups.items():
            for tres, bound in _bounds_of(bounds, group).items():
                if f"{group} {tres}" not in hidden:
                    assert _amount(jobs, running, members, tres) <= bound
                new.add(f"{group} {tres}")
        hidden |= new
    for level, bounds in limit_sets.items():
        members = [other for other in running if level == "science" or jobs[other].user == "alice"]
        if row in members:
            for tres, bound in _bounds_of(bounds, "group").items():
                if f"group {tres}" not in hidden:
                    assert _amount(jobs, running, members, tres) <= bound


def _bounds_of(bounds: SiteLimits, group: str) -> dict[str, float]:
    number = getattr(bounds, f"{group}_jobs")
    return {**getattr(bounds, f"{group}_tres"), **({} if number is None else {"jobs": number})}


def _amount(jobs: list[Any], running: dict[int, list[int]], members: list[int], tres: str) -> int:
    if tres == "jobs":
        return len(members)
    if tres == "node":
        return len({node for member in members for node in running[member]})
    per_node = {"cpu": lambda member: 1 + member % 2, "mem": lambda _: 1, "gres/gpu": lambda member: member % 2}
    return sum(per_node[tres](member) * len(running[member]) for member in members)
