"""A page asks for its users: an administrator sees as much as a user whom they name, and no user more than before."""

from __future__ import annotations

import os
import pwd

import pytest

from pilotfish.daemon.config_sections import AccessConfig
from pilotfish.daemon.socket.page_requests import QUESTIONS

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
    for do in ("pause", "resume", "reload", "step_up"):
        assert ask(do, PAGE)["code"] == 403
    assert ask("cancel", PAGE, target="rjms/1")["ok"] is False
