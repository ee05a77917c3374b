"""A page asks for its users: an administrator sees as much as a user whom they name, and no user more than before."""

from __future__ import annotations

import os
import pwd

import pytest

from pilotfish.daemon.config_sections import AccessConfig
from pilotfish.daemon.report.metrics import Metrics
from pilotfish.daemon.report.score_card import ScoreCard
from pilotfish.daemon.socket.page_requests import QUESTIONS, SHOWN_OF_CARD

PAGE = 70010
SOMEBODY = next(account for account in pwd.getpwall() if account.pw_uid not in (0, os.geteuid()))


@pytest.fixture
def ask(offering, kit):
    offering.run(1)
    return kit.requests(offering, AccessConfig(see="own", admins=[PAGE]))


@pytest.mark.parametrize("name", [SOMEBODY.pw_name, str(SOMEBODY.pw_uid)])
def test_an_administrator_asks_as_a_user(ask, name) -> None:
    reply = ask("rights", PAGE, as_user=name)
    assert (reply["uid"], reply["administers"]) == (SOMEBODY.pw_uid, False)
    assert ask("rights", PAGE)["administers"]


def test_nobody_else_does(ask) -> None:
    reply = ask("rights", 70011, as_user="root")
    assert not reply["ok"] and reply["code"] == 403


def test_without_a_name_it_is_any_user(ask) -> None:
    reply = ask("rights", PAGE, as_user="")
    assert (reply["uid"], reply["administers"]) == (-1, False)
    assert not ask("accuracy", PAGE, as_user="")["ok"] and ask("accuracy", PAGE)["ok"]


@pytest.mark.parametrize("name", ["no-such-user-here", "4294967294", "x" * 300, "99999999999999"])
def test_an_unknown_user_is_one_sentence(ask, name) -> None:
    reply = ask("rights", PAGE, as_user=name)
    assert not reply["ok"] and "\n" not in reply["error"]


@pytest.mark.parametrize("do", ["submit", "cancel", "reload", "pause", "resume", "step_up", "log"])
def test_only_questions_are_asked_for_others(ask, do) -> None:
    assert do not in QUESTIONS
    reply = ask(do, PAGE, as_user="root", workflow="{}", target="a/b")
    assert not reply["ok"] and "as_user" in reply["error"]


def test_the_card_that_a_page_shows_names_no_user(offering, kit) -> None:
    offering.run(1)
    ask = kit.requests(offering, AccessConfig(see="own", viewers=[PAGE]))
    assert ask("card", PAGE)["card"] is None and "makes none" in ask("card", PAGE)["why_not"]
    maker = ScoreCard(["true"], Metrics().score, lambda: 0.0, 3600.0)
    offering.cycle.observers = [*offering.cycle.observers, maker]
    assert "an hour" in ask("card", PAGE)["why_not"]
    maker.newest = dict.fromkeys(SHOWN_OF_CARD, 1) | {"groups": {"user": ["ada"]}}, 7.0
    reply = ask("card", PAGE)
    assert reply["time"] == 7.0 and reply["card"] == dict.fromkeys(SHOWN_OF_CARD, 1)


def test_a_story_has_no_words_of_others_commands(bench, kit) -> None:
    ask = kit.requests(bench, AccessConfig(admins=[PAGE]))
    workflow = bench.submit(kit.job("a", seconds=900.0))
    bench.run(2)
    as_any = ask("explain", PAGE, job=f"{workflow}/a", as_user="")
    assert as_any["ok"] and as_any["job"] == ask("explain", 70011, job=f"{workflow}/a")["job"]


def test_a_viewer_sees_all_and_changes_nothing(offering, kit) -> None:
    offering.manager.offer(kit.job("1", threads=2, seconds=500.0), due=2000.0)
    offering.run(1)
    ask = kit.requests(offering, AccessConfig(see="own", viewers=[PAGE]))
    assert len(ask("board", PAGE)["jobs"]) == 1 and ask("board", 70011)["jobs"] == []
    assert ask("rights", PAGE, as_user="root")["uid"] == 0 and not ask("rights", PAGE)["administers"]
    assert ask("card", 70011)["code"] == 403
    for do in ("pause", "resume", "reload", "step_up"):
        assert ask(do, PAGE)["code"] == 403
    assert ask("cancel", PAGE, target="rjms/1")["ok"] is False
