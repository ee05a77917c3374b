"""The nodes that properties allow: users take turns, no cycle waits, and what OAR cannot evaluate is an answer."""

from __future__ import annotations

import json
import logging
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.oar.records import properties as module
from pilotfish.adapters.oar.records.properties import (
    AGAIN_S,
    LATE,
    LATE_TIMES,
    MOST_KEPT,
    MOST_OF_A_USER,
    NOWHERE,
    OTHERS_S,
    RENEWED_S,
    SERVES_S,
    SHARE,
    WRONG,
    Properties,
    Waiting,
)
from tests.support.clock import Clock

TOOK_S = 0.4


class Oar:
    """Answers each question TOOK_S after it was asked, those that contain `slow` and `bad` with an error."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.questions, self.abandoned = clock, list[str](), 0
        self.names, self.text, self.allows, self.late = ("a", "b", "other"), "", True, 0

    def ask(self, properties: str) -> Asked | None:
        if self.allows:
            self.questions.append(properties)
        return Asked(self, properties) if self.allows else None


class Asked:
    """One question that is open."""

    def __init__(self, oar: Oar, properties: str) -> None:
        self.oar, self.properties, self.since = oar, properties, oar.clock()

    def poll(self) -> str | None:
        if self.oar.clock() < self.since + TOOK_S:
            return None
        if "away" in self.properties:
            raise AdapterError("could not connect", transient=True, kind="unreachable")
        if "slow" in self.properties or self.oar.late:
            self.oar.late = max(0, self.oar.late - 1)
            raise AdapterError("not in time", kind="timeout")
        if "bad" in self.properties:
            raise AdapterError("syntax error", kind="refused")
        return self.oar.text or json.dumps({n: {"network_address": name} for n, name in enumerate(self.oar.names)})

    def abandon(self) -> None:
        self.oar.abandoned += 1


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def oar(clock: Clock) -> Oar:
    return Oar(clock)


@pytest.fixture
def properties(oar: Oar, clock: Clock) -> Properties:
    return Properties(oar.ask, ["a", "b", "c"], clock)


def waiting(*texts: str, user: str = "ada", offered: bool = True) -> list[Waiting]:
    return [Waiting(number, user, text, offered) for number, text in enumerate(texts, 1)]


def go_on(properties: Properties, clock: Clock, jobs: list[Waiting], seconds: float) -> int:
    """Look for so many seconds, as the adapter does; return how often a handed-over job could go on."""
    until, news = clock.now + seconds, 0
    while clock.now < until:
        news += properties.take_answer()
        properties.ask_next(jobs)
        clock.now += TOOK_S / 2
    return news


def test_no_cycle_waits_for_an_answer_which_names_nodes_of_the_cluster_only(
    oar: Oar, clock: Clock, properties: Properties
) -> None:
    jobs = waiting("x = 1")
    properties.ask_next(jobs)
    assert oar.questions == ["x = 1"] and properties.is_asking and properties.answer("x = 1") is None
    assert not properties.take_answer()
    clock.now += TOOK_S
    assert properties.take_answer() and not properties.is_asking
    answer = properties.answer("x = 1")
    assert answer and (answer.ours, answer.nodes, answer.obstacle) == ({"a", "b"}, {"a", "b", "other"}, "")
    everywhere = properties.answer("")
    assert everywhere and everywhere.ours == {"a", "b", "c"}
    oar.names = ("other",)
    assert go_on(properties, clock, waiting("x = 1", "x = 2"), 5) == 1
    nowhere = properties.answer("x = 2")
    assert nowhere and nowhere.obstacle == NOWHERE


def test_only_what_waiting_jobs_need_is_renewed_and_an_old_answer_serves_meanwhile(
    oar: Oar, clock: Clock, properties: Properties
) -> None:
    jobs = waiting("x = 1")
    assert go_on(properties, clock, jobs, RENEWED_S) == 1 and oar.questions == ["x = 1"]
    go_on(properties, clock, [], 2 * RENEWED_S)  # its jobs have begun
    assert oar.questions == ["x = 1"] and properties.answer("x = 1")
    assert go_on(properties, clock, jobs, 2 * TOOK_S) == 0  # the answer is as before
    assert oar.questions == ["x = 1"] * 2
    clock.now += SERVES_S
    assert properties.answer("x = 1") is None


def test_nodes_that_have_changed_are_asked_for_again(oar: Oar, clock: Clock, properties: Properties) -> None:
    jobs = waiting("x = 1")
    go_on(properties, clock, jobs, 5)
    properties.outdate()
    oar.names = ("c",)
    assert go_on(properties, clock, jobs, 5) == 1 and len(oar.questions) == 2
    answer = properties.answer("x = 1")
    assert answer and answer.ours == {"c"}


@pytest.mark.parametrize(("text", "obstacle", "times"), [("slow", LATE, LATE_TIMES), ("bad", WRONG, 1)])
def test_what_oar_cannot_evaluate_is_an_answer_that_is_remembered_and_logged_once(
    oar: Oar,
    clock: Clock,
    properties: Properties,
    caplog: pytest.LogCaptureFixture,
    text: str,
    obstacle: str,
    times: int,
) -> None:
    jobs = waiting(text, f"{text} too")
    with caplog.at_level(logging.WARNING):
        assert go_on(properties, clock, jobs, AGAIN_S / 2) == 2
    answer = properties.answer(text)
    assert answer and (answer.obstacle, answer.ours) == (obstacle, frozenset())
    assert Counter(oar.questions) == {text: times, f"{text} too": times}
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith(f"job 1 of user ada is left to OAR: {obstacle}")
    go_on(properties, clock, jobs, AGAIN_S)
    assert Counter(oar.questions)[text] > times  # after some minutes, it may be better


def test_a_machine_that_is_late_once_lets_no_job_go(oar: Oar, clock: Clock, properties: Properties) -> None:
    oar.late = 1
    assert go_on(properties, clock, waiting("x"), 5) == 1 and oar.questions == ["x"] * 2
    answer = properties.answer("x")
    assert answer and not answer.obstacle
    oar.late, oar.questions = 1, []
    clock.now += RENEWED_S
    go_on(properties, clock, waiting("x"), 5)  # the old answer serves until the second try
    assert oar.questions == ["x"] * 2 and properties.answer("x") is answer


def test_output_that_cannot_be_read_leaves_the_job_to_oar(oar: Oar, clock: Clock, properties: Properties) -> None:
    oar.text = "["
    go_on(properties, clock, waiting("x"), 5)
    answer = properties.answer("x")
    assert answer and answer.obstacle == WRONG


def test_an_oar_that_is_away_says_nothing_about_a_job(oar: Oar, clock: Clock, properties: Properties) -> None:
    go_on(properties, clock, waiting("away"), 5)
    assert properties.answer("away") is None and len(oar.questions) > 1
    properties.ask_next(waiting("x"))
    properties.void()
    assert oar.abandoned == 1 and not properties.is_asking
    oar.allows = False
    properties.ask_next(waiting("x"))
    assert not properties.is_asking


def test_many_properties_of_one_user_delay_another_by_one_question(
    oar: Oar, clock: Clock, properties: Properties, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_OF_A_USER", 20)
    bobs_jobs = waiting(*(f"slow {number}" for number in range(100)), user="bob")
    go_on(properties, clock, bobs_jobs, 60)
    question_count = len(oar.questions)
    assert question_count * TOOK_S <= 60 * SHARE + 2 * TOOK_S  # of one process, however long its questions take
    all_jobs = [*bobs_jobs, *waiting("x = 1", "x = 2", user="ada")]
    go_on(properties, clock, all_jobs, 3 * TOOK_S)
    assert "x = 1" in oar.questions[question_count : question_count + 2] and properties.answer("x = 1")
    go_on(properties, clock, all_jobs, 2 * TOOK_S / SHARE)
    assert properties.answer("x = 2")
    go_on(properties, clock, all_jobs, 100)
    assert len({text for text in oar.questions if text.startswith("slow")}) == 20


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 9)), max_size=20),
    st.dictionaries(st.sampled_from("abcd"), st.integers(0, 9), max_size=4),
)
def test_each_user_who_is_ready_is_asked_for_before_any_other_twice(
    jobs: list[tuple[str, int]], slow: dict[str, int]
) -> None:
    clock = Clock()
    oar = Oar(clock)
    properties = Properties(oar.ask, ["a"], clock)
    needed = [
        Waiting(n, user, f"{user} {k}" + " slow" * (slow.get(user) == k), True) for n, (user, k) in enumerate(jobs)
    ]
    go_on(properties, clock, needed, 2 * len(needed) * LATE_TIMES * TOOK_S / SHARE)
    assert all(properties.answer(job.properties) for job in needed)
    owners = [text[0] for text in oar.questions]
    users = {user for user, _ in jobs}
    assert set(owners[: len(users)]) == users  # the first round has each of them once


def test_the_answers_that_are_kept_are_bounded_and_go_from_who_has_most(
    clock: Clock, oar: Oar, properties: Properties, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_KEPT", 10)
    assert MOST_KEPT > MOST_OF_A_USER
    go_on(properties, clock, waiting("mine"), 2)
    for number in range(20):
        go_on(properties, clock, waiting(f"x = {number}", user="bob"), 4)
    assert properties.answer("mine") and properties.answer("x = 19") and properties.answer("x = 1") is None


def test_jobs_that_are_not_handed_over_come_last_and_seldom(oar: Oar, clock: Clock, properties: Properties) -> None:
    others_jobs = waiting(*(f"o{number}" for number in range(20)), user="bob", offered=False)
    jobs = [*others_jobs, *waiting("x", user="bob")]
    assert go_on(properties, clock, jobs, 10 * OTHERS_S) == 1
    assert oar.questions[0] == "x" and 8 <= len(oar.questions) <= 12
