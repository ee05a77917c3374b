"""The nodes that properties allow: asked for once in a while, and before a new job needs the answer."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.oar.records.properties import (
    HOLDS_S,
    MOST_ASKED,
    MOST_KEPT,
    MOST_RENEWED,
    RENEWED_S,
    Properties,
)
from tests.support.clock import Clock


class Oar:
    """Answers as `oarnodes` does; `questions` are the properties that it was asked for."""

    def __init__(self) -> None:
        self.questions: list[str] = []
        self.says = json.dumps({number: {"network_address": name} for number, name in enumerate(("a", "b", "other"))})

    def __call__(self, argv: Sequence[str]) -> str:
        self.questions.append(argv[-1])
        if argv[-1] == "bad":
            raise AdapterError("syntax error", kind="refused")
        return self.says


@pytest.fixture
def oar() -> Oar:
    return Oar()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def properties(oar: Oar, clock: Clock) -> Properties:
    return Properties(oar, ["a", "b", "c"], clock)


def test_an_answer_holds_for_a_while_and_names_nodes_of_the_cluster_only(
    oar: Oar, clock: Clock, properties: Properties
) -> None:
    assert properties.allowed("") == {"a", "b", "c"} and not oar.questions
    for _ in range(2):
        assert properties.allowed("x = 1") == {"a", "b"}
    assert properties.nodes("x = 1") == {"a", "b", "other"} and oar.questions == ["x = 1"]
    before = properties.version
    clock.now += HOLDS_S
    oar.says = ""
    assert properties.allowed("x = 1") == frozenset() and properties.allows_none("x = 1")
    assert oar.questions == ["x = 1"] * 2 and properties.version != before


def test_a_snapshot_asks_for_a_few_and_goes_on_with_old_answers(oar: Oar, clock: Clock, properties: Properties) -> None:
    names = [f"x = {number}" for number in range(MOST_ASKED + 1)]
    assert [properties.allowed(name) is None for name in names] == [False] * MOST_ASKED + [True]
    clock.now += HOLDS_S
    assert properties.allowed(names[0]) == {"a", "b"} and len(oar.questions) == MOST_ASKED
    properties.begin(1)
    assert properties.nodes(names[-1]) == {"a", "b", "other"} and properties.nodes("y = 1") is None


def test_what_jobs_used_last_is_renewed_before_its_time_is_over(oar: Oar, clock: Clock, properties: Properties) -> None:
    used = [f"x = {number}" for number in range(MOST_RENEWED + 3)]
    for _ in used:
        properties.renew(used)
    assert sorted(oar.questions) == used[-MOST_RENEWED:]  # the newest ones, each once
    clock.now += RENEWED_S
    oar.questions.clear()
    for _ in used:
        properties.renew([])  # also when their jobs are gone
    assert sorted(oar.questions) == used[-MOST_RENEWED:]
    clock.now += HOLDS_S - 1
    assert properties.allowed(used[-1]) == {"a", "b"} and len(oar.questions) == MOST_RENEWED


def test_what_oar_cannot_evaluate_allows_nothing_and_is_not_renewed(
    oar: Oar, clock: Clock, properties: Properties
) -> None:
    assert properties.allowed("bad") == frozenset()
    clock.now += HOLDS_S
    properties.renew(["bad"])
    assert oar.questions == ["bad"]
    oar.says = "["
    assert properties.allowed("x") == frozenset()


def test_the_answers_that_are_kept_are_bounded(oar: Oar, properties: Properties) -> None:
    for number in range(MOST_KEPT + 5):
        properties.begin()
        properties.allowed(f"x = {number}")
    oar.questions.clear()
    properties.begin()
    assert properties.allowed("x = 5") and not oar.questions
    assert properties.allowed("x = 4") and oar.questions
