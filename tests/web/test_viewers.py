"""What viewers see: the service decides, once a minute for each."""

from __future__ import annotations

import pytest

from pilotfish.daemon.socket.ipc import DaemonError, NoDaemonError
from pilotfish.web import viewers
from pilotfish.web.viewers import KNOWN_S, Viewers

RIGHTS = {"ada": {"uid": 7, "administers": False}, "eve": {"uid": 9, "administers": True}}


class Rights:
    """The service's answers about users, and what was asked."""

    def __init__(self) -> None:
        self.questions: list[str] = []
        self.error: Exception | None = None

    def __call__(self, do: str, as_user: str) -> dict:
        assert do == "rights"
        self.questions.append(as_user)
        if self.error or as_user not in RIGHTS:
            raise self.error or DaemonError("no user of that name exists")
        return RIGHTS[as_user]


@pytest.mark.parametrize(
    ("user", "sees"), [("ada", {7}), ("eve", {7, 8, None}), ("mallory", set()), (None, set()), ("", set())]
)
def test_a_viewer_sees_what_the_service_says(user, sees) -> None:
    judge = Viewers(Rights()).of(user, for_everybody=False)
    assert {uid for uid in (7, 8, None) if judge(uid)} == sees


@pytest.mark.parametrize("user", ["ada", None, "mallory"])
def test_where_all_see_all_no_question_is_asked(user) -> None:
    rights = Rights()
    judge = Viewers(rights).of(user, for_everybody=True)
    assert judge(8) and judge(None) and rights.questions == []


def test_an_answer_holds_for_a_minute() -> None:
    rights, now = Rights(), [0.0]
    judge = Viewers(rights, lambda: now[0])
    judge.of("ada", for_everybody=False)
    now[0] = KNOWN_S - 1
    judge.of("ada", for_everybody=False)
    assert rights.questions == ["ada"]
    now[0] = KNOWN_S + 1
    judge.of("ada", for_everybody=False)
    assert rights.questions == ["ada", "ada"]


def test_without_an_answer_nothing_is_guessed() -> None:
    rights = Rights()
    rights.error = NoDaemonError("it does not answer")
    with pytest.raises(NoDaemonError):
        Viewers(rights).of("ada", for_everybody=False)


def test_what_is_remembered_is_bounded(monkeypatch) -> None:
    monkeypatch.setattr(viewers, "MOST_USERS", 3)
    judge = Viewers(Rights())
    for number in range(10):
        judge.of(f"user{number}", for_everybody=False)
    assert len(judge._known) <= 3
