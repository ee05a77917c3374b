"""The copy of the board: what a browser has after all changes is what it would get again in one piece, and only what it may see."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pilotfish.daemon.report.board import JOB_COLUMNS
from pilotfish.web import board_copy
from pilotfish.web.board_copy import PAST_S, BoardCopy

UIDS = (7, 8, None)


def row(key: str, **changes) -> list:
    blank = dict.fromkeys(JOB_COLUMNS) | {"key": key, "state": "pending", "why": "", "nodes": [], "tasks": 1}
    return list((blank | changes).values())


def reply(rows: list[list], mark: str, time: float = 1000.0, nodes=(1,)) -> dict:
    about = {"ok": True, "time": time, "mark": mark, "for_everybody": False, "mode": "live"}
    return about | {
        "jobs": rows,
        "users": {"7": "ada", "8": "bob"},
        "columns": JOB_COLUMNS,
        "nodes": {"load": list(nodes)},
    }


def seven(uid) -> bool:
    return uid == 7


def key_of(rows) -> dict[str, list]:
    return {line[0]: line for line in rows}


jobs = st.dictionaries(
    st.sampled_from("abcdef"),
    st.builds(
        lambda uid, state, start: {"uid": uid, "state": state, "start_time": start},
        st.sampled_from(UIDS),
        st.sampled_from(("pending", "running")),
        st.sampled_from((None, 10, 20)),
    ),
)


@given(st.lists(jobs, min_size=1, max_size=6))
def test_the_changes_lead_to_the_whole(boards) -> None:
    copy, shown, past = BoardCopy(), dict[str, list](), []
    for number, board in enumerate(boards):
        assert copy.take(
            reply([row(key, **values) for key, values in board.items()], str(number), nodes=(number // 2,))
        )
        part = copy.difference(seven)
        shown = {key: line for key, line in shown.items() if key not in part["gone"]} | key_of(part["jobs"])
        past += part["past"]
        board_now = copy.document(seven)
        assert shown == key_of(board_now["jobs"]) and past == board_now["past"]
        assert ("nodes" in part) == (number % 2 == 0)


@given(st.lists(jobs, min_size=1, max_size=6))
def test_a_viewer_never_gets_rows_or_names_of_others(boards) -> None:
    copy, uid, shown = BoardCopy(), JOB_COLUMNS.index("uid"), set[str]()
    for number, board in enumerate(boards):
        copy.take(reply([row(key, **values) for key, values in board.items()], str(number)))
        for document in (copy.document(seven), copy.difference(seven)):
            assert {line[uid] for part in ("jobs", "past") for line in document[part]} <= {7}
            assert set(document["users"]) <= {"7"}
        assert set(copy.difference(seven)["gone"]) <= shown
        shown |= {key for key, values in board.items() if values["uid"] == 7}


def test_what_ran_and_is_gone_has_ended_by_now() -> None:
    copy = BoardCopy()
    copy.take(
        reply([row("a", state="running", start_time=900), row("b", start_time=1500), row("c", state="running")], "1")
    )
    copy.take(reply([], "2", time=1010.4))
    (ended,) = copy.document(lambda uid: True)["past"]
    values = dict(zip(JOB_COLUMNS, ended, strict=True))
    assert (values["key"], values["state"], values["finish_time"]) == ("a", "ended", 1010)


def test_the_same_mark_changes_nothing() -> None:
    copy = BoardCopy()
    copy.take(reply([row("a")], "1"))
    assert not copy.take({"ok": True, "mark": "1"}) and not copy.take({"ok": True, "mark": "2"})
    assert copy.version == 1 and len(copy.rows) == 1


def test_the_past_is_bounded_in_age_and_number(monkeypatch) -> None:
    copy = BoardCopy()
    for number in range(5):
        copy.take(reply([row(f"j{number}", state="running", start_time=1)], f"a{number}", time=1000.0 + number))
    assert len(copy.past) == 4
    copy.take(reply([], "z", time=1002.5 + PAST_S))
    assert [line[0] for line in copy.past] == ["j1", "j2", "j3", "j4"][1:]
    assert copy.past.maxlen == board_copy.MOST_PAST


def test_before_the_first_board_nothing_is_shown() -> None:
    document = BoardCopy().document(lambda uid: True)
    assert (document["version"], document["jobs"], document["past"]) == (0, [], [])
