"""`pilotfish policies`, and policies of the wrong kind or with a typing error."""

from __future__ import annotations

import json

import pytest

from pilotfish.cli.__main__ import main


def printed(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main(["policies", *argv]) == 0
    return capsys.readouterr().out


def test_both_kinds_are_listed_in_80_columns(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = printed(capsys)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    for name in ("easy", "conservative", "strict", "pairs", "nodes", "energybud", "lookahead", "loadavg"):
        assert any(line.startswith((f"  {name}:", f"  {name} ")) for line in lines), name
    starts = [line for line in lines if line and not line.startswith(" ")]
    assert all(":" in line or "`" in line for line in starts), "a wrapped line is indented"
    assert text.index("Mapping policies") < text.index("Values of"), (
        "all policies come before the words of their options"
    )


def test_one_policy_is_shown_with_the_command_that_takes_it(capsys: pytest.CaptureFixture[str]):
    text = printed(capsys, "easy")
    assert "for: simulate, sweep, plan, run, daemon, edc" in " ".join(text.split())
    assert "sjf" in text and "conservative" not in text
    assert "`plan`, `run`, `daemon`, `simulate` and `sweep`" in printed(capsys, "lookahead")
    assert main(["policies", "esy"]) == 64
    assert "did you mean 'easy'?" in capsys.readouterr().err


def test_json_has_both_kinds(capsys: pytest.CaptureFixture[str]):
    document = json.loads(printed(capsys, "--json"))
    assert document["schema"] == "pilotfish/policies/v1"
    assert document["queue"]["easy"]["options"]["order"]["default"] == "fcfs"
    for name in ("easy", "strict", "conservative"):
        assert document["queue"][name]["for"] == ["simulate", "sweep", "plan", "run", "daemon", "edc"]
    for name in ("opportunistic", "proportional", "inertial"):
        assert document["queue"][name]["for"] == ["simulate", "sweep", "daemon"]
    for name in ("pairs", "nodes", "powercap"):
        assert document["queue"][name]["for"] == ["simulate", "sweep", "plan", "run", "daemon"]
    assert set(document["mapping"]) == {"lookahead", "mom", "let", "slf", "loadavg"}
    for policy in document["mapping"].values():
        assert policy["for"] == ["plan", "run", "daemon", "simulate", "sweep"]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["simulate", "t.swf", "-p", "lookahead"], "lookahead chooses among nodes (needed: --cluster, resource"),
        (["simulate", "t.swf", "-p", "mom"], "mom chooses among nodes (needed: --cluster, resource core)"),
        (["simulate", "t.swf", "--contention"], "'--contention': jobs contend on the nodes of a cluster (needed:"),
        (
            ["simulate", "t.swf", "-c", "c.yaml", "-p", "conservative:allocation=local,share=1.1"],
            "allocation and share do not go together: a job that shares gets any nodes",
        ),
        (
            ["plan", "d.yaml", "-c", "c.yaml", "-p", "easy+opportunistic"],
            "switches nodes off and on: only the daemon can do that, not a plan of one workflow (allowed:",
        ),
        (["plan", "d.yaml", "-c", "c.yaml", "-p", "easy:order=sfj"], "did you mean sjf?"),
        (
            ["plan", "d.yaml", "-c", "c.yaml", "-p", "easy+energybud"],
            "needs an end, because the last submission is not known in advance (allowed:",
        ),
        (["plan", "d.yaml", "-c", "c.yaml", "-p", "stric"], "did you mean 'strict'?"),
        (["run", "d.yaml", "-p", "./mine.py"], "'./mine.py' (allowed: ./file.py:Class or"),
        (["run", "d.yaml", "-p", "no.such:Class"], "there is no module 'no'"),
        (["run", "d.yaml", "-p", "mon"], "did you mean 'mom'?"),
        (["simulate", "t.swf", "-p", "easy:order=sfj"], "did you mean sjf?"),
        (["simulate", "t.swf", "-p", "lookahed"], "did you mean lookahead?"),
        (["simulate", "t.swf", "-p", "easy:oder=sjf"], "did you mean order=...?"),
        (["plan", "d.yaml", "-c", "c.yaml", "--objective", "makspan"], "did you mean 'makespan'?"),
    ],
)
def test_the_wrong_policy_gets_a_hint(argv: list[str], words: str, capsys: pytest.CaptureFixture[str]):
    assert main(argv) == 64
    assert words in " ".join(capsys.readouterr().err.split())


def test_edc_takes_exactly_the_policies_that_are_listed_for_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("pilotfish.adapters.batsim.sockets.answer_requests", lambda *_: None)
    for name, policy in json.loads(printed(capsys, "--json"))["queue"].items():
        spec = f"easy+{name}" if policy["part"] else name
        assert main(["edc", "-p", spec]) == (0 if "edc" in policy["for"] else 64), spec
