"""`--watch`: redrawn until Ctrl-C, also while the service does not answer."""

from __future__ import annotations

import pytest

from pilotfish.cli.__main__ import main
from pilotfish.cli.service import service_commands as service
from pilotfish.cli.service.redraw import redraw
from pilotfish.simulate.errors import PilotfishError


def test_a_view_is_redrawn_until_ctrl_c_and_stays_while_nothing_answers(capsys):
    answers = iter([{"n": 1}, PilotfishError("no daemon listens"), {"n": 3}])
    slept: list[float] = []

    def ask():
        answer = next(answers)
        if isinstance(answer, PilotfishError):
            raise answer
        return answer

    def sleep(seconds):
        slept.append(seconds)
        if len(slept) == 3:
            raise KeyboardInterrupt

    redraw(ask, lambda reply: print(f"seen {reply['n']}"), 5.0, sleep)
    lines = [line for line in capsys.readouterr().out.splitlines() if "Ctrl-C ends" not in line]
    assert lines == ["seen 1", "seen 1", "as it was before: no daemon listens", "seen 3"] and slept == [5.0] * 3


def test_the_first_question_must_be_answered():
    def ask():
        raise PilotfishError("no daemon listens")

    with pytest.raises(PilotfishError):
        redraw(ask, print, 5.0)


@pytest.mark.parametrize(
    ("words", "every"),
    [(["--watch"], 2.0), (["--watch", "5"], 5.0), (["--watch=0.5"], 0.5), (["--watch", "--all"], 2.0), ([], None)],
)
def test_seconds_may_be_left_out(monkeypatch, words, every):
    intervals = []
    monkeypatch.setattr(service, "_print", lambda kind, ask, show, watch, *, as_json: intervals.append(watch))
    assert main(["status", *words]) == 0 and intervals == [every]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["status", "--watch", "--json"], "not with --json"),
        (["status", "--watch", "0"], "0 is not in the range"),
        (["status", "--state", "runing"], "did you mean 'running'"),
        (["nodes", "--state", "broken"], "'broken' is not a state of nodes (allowed: up, asleep"),
    ],
)
def test_a_wrong_option_is_a_usage_error(capsys, words, says):
    assert main(words) == 64
    assert says in " ".join(capsys.readouterr().err.split())
