"""`pilotfish log`: lines of at most 80 columns, and the journal of a service that does not run."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest

from pilotfish.adapters.base import Reaped
from pilotfish.cli.__main__ import main
from pilotfish.cli.output.audit_lines import audit_texts, show_audit
from pilotfish.daemon.state.audit import AuditedChange, Decision, decide
from pilotfish.daemon.state.journal import Journal
from pilotfish.daemon.state.reap_log import note_reaped
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup
from pilotfish.simulate.model.plan import Cancel, Place, PowerOff, Release

NOBODY = 65534
JOB = Job("7", Profile((ThreadGroup(1, 10.0),)))


def line(decision: Decision, **changes):
    return {
        "time": 1e9, "kind": "write", "target": decision.action.key, "action": "start", "owner": 1000,
        "user": "ada (uid 1000)", "by": decision.by, "before": dict(decision.before), "after": dict(decision.after),
        "outcome": "done", "why": "", "number": 1, "since": 1e9, **changes,
    }  # fmt: skip


def test_no_line_is_wider_than_80_columns(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    nodes = tuple(f"node-of-a-very-long-name-{number}" for number in range(1, 60, 3))
    started = decide(Place("slurm/7", JOB, nodes), "policy lookahead", None, 1000, 1e9)
    would = line(started, kind="would", number=12, since=9e8)
    refused = line(started, outcome=f"refused: {'slurm said no because ' * 12}")
    show_audit([line(started), would, refused], older=True)
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    assert "would have started slurm/7 (ada) on node" in printed and "12 times since" in printed


def test_each_kind_of_line_is_a_sentence() -> None:
    released = decide(Release("slurm/7", "it was held long enough"), "deadline", None, 1000, 1e9)
    assert audit_texts(line(released, action="release")) == (
        "release slurm/7 (ada)", "done; by deadline; it was held long enough",
    )  # fmt: skip
    switched = decide(PowerOff(("n1", "n2")), "power saving", None, None, 1e9)
    assert audit_texts(line(switched, action="power off", target="", user=None))[0] == "power off  on n[1-2]"
    mode = {
        "time": 1.0, "kind": "mode", "target": "", "action": "mode", "user": None, "by": "guard rail",
        "before": {"mode": "live"}, "after": {"mode": "fallback"}, "why": "forecasts are off", "outcome": "done",
    }  # fmt: skip
    assert audit_texts(mode) == ("mode: live -> fallback", "by guard rail; forecasts are off")
    cancelled = decide(Cancel("w.1/a"), "\x1b[31mada", None, 1000, 1e9)
    assert "\x1b" not in "".join(audit_texts(line(cancelled, action="cancel")))


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """The configuration of a service that has run, and whose reaper has."""
    return service_in(tmp_path)


def service_in(folder: Path) -> Path:
    """Return the configuration of a service below a folder that has run, and whose reaper has."""
    config = folder / "pilotfish.yaml"
    config.write_text(
        f"schema: pilotfish/daemon/v1\ncluster: {folder / 'c.yaml'}\nadapter: {{name: slurm}}\nstate_dir: {folder / 'state'}\n"
    )
    journal = Journal(folder / "state" / "journal.sqlite")
    decision = decide(Place("slurm/7", JOB, ("n1",)), "policy mom", None, 1000, 2000.0)
    journal.intend([decision], [], cycle=1, time=2000.0)
    journal.note_change(AuditedChange(1000.0, "start", "service", after="live"))
    journal.close()
    (folder / "state" / "slurm").mkdir(mode=0o700)
    note_reaped(folder / "state" / "slurm", Reaped("release slurm/7", "slurm/7", 1000, "its pin"), 3000.0)
    return config


def test_without_a_service_its_journal_is_read_and_left_as_it_is(stopped: Path, capsys) -> None:
    before = {path.name: path.read_bytes() for path in (stopped.parent / "state").glob("journal*")}
    assert main(["log", "--config", str(stopped), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "pilotfish/log/v1" and document["older"] is False
    assert [(one["action"], one["by"], one["outcome"]) for one in document["lines"]] == [
        ("start", "service", "done"), ("start", "policy mom", "unknown"), ("release", "reaper", "done"),
    ]  # fmt: skip
    assert main(["log", "--config", str(stopped), "--user", "1000", "--since", "1970-01-01"]) == 0
    assert "slurm/7" in capsys.readouterr().out
    assert main(["log", "--config", str(stopped), "--job", "8"]) == 0
    assert capsys.readouterr().out == "nothing is recorded\n"
    assert {path.name: path.read_bytes() for path in (stopped.parent / "state").glob("journal*")} == before


@pytest.mark.real
@pytest.mark.skipif(os.geteuid() != 0, reason="not root: no other user can be tried")
def test_without_a_service_no_other_user_reads_its_journal(capfd) -> None:
    """The configuration is for everybody to read, and the journal is not."""
    with tempfile.TemporaryDirectory(prefix="log-") as folder:
        Path(folder).chmod(0o755)
        config = service_in(Path(folder))
        config.chmod(0o644)
        words = ["log", "--config", str(config), "--job", "7"]
        assert main(words) == 0  # and all modules are loaded
        assert "slurm/7" in capfd.readouterr().out
        child = os.fork()
        if not child:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os._exit(main(words))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    shown = capfd.readouterr()
    assert shown.out == "" and "ermission denied" in shown.err and "Traceback" not in shown.err


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--since", "soon"], 64, "--since"),
        (["--config", "none.yaml"], 1, "none.yaml"),
        (["--config", "x", "--socket", "y"], 64, "--socket"),
    ],
)
def test_wrong_questions(words: list[str], code: int, says: str, capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["log", *words]) == code
    assert says in capsys.readouterr().err
