"""What reaches the terminal: whatever text a job, a user, a file or a server chose, it cannot control it."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import subprocess
import sys
import termios
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.text import Text

from pilotfish.adapters.findings import PROBLEM, Finding
from pilotfish.cli.__main__ import main
from pilotfish.cli.options import completing
from pilotfish.cli.output import live
from pilotfish.cli.output.documents import print_json
from pilotfish.cli.output.profiles import show_list, show_pairs, show_profile
from pilotfish.cli.output.status import failure_lines, show_accuracy, show_job_log, show_status
from pilotfish.cli.output.sweep import show_runs
from pilotfish.cli.output.text import Screen, TextColumn, show_findings
from pilotfish.cli.service import service_commands as service
from pilotfish.cli.streams import hint, note, show, show_document, warn
from pilotfish.cli.workflows import plan_queue
from pilotfish.daemon.apply import Recording
from pilotfish.daemon.one_off import QueuePreview
from pilotfish.daemon.state.recorded_outcome import ForecastOutcome
from pilotfish.formats.text import clean, clean_lines
from pilotfish.profiles.classes import classify_there
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import Profile, ThreadGroup
from pilotfish.simulate.model.plan import Rejection, Release

EVIL = "\x1b]0;pwned\x07\x1b[2J\nERROR forged\r\x9b31m\x85\u202eexe.\u2028\u2066x\u2069\x7f\x0b\t\x00\udc80"
#: What an attacker would write: control, bidirectional and separating characters among letters.
hostile = st.text(st.one_of(st.sampled_from(EVIL), st.characters(codec=None)), max_size=30)
WORDS = {"state", "mode", "kind", "profile_source"}  # written by us, from a closed list


def harmless(text: str) -> bool:
    """Return whether a text contains no character that controls a terminal but newlines, tabs and our own colours."""
    return clean_lines(text) == text


def poisoned(value: Any, text: str) -> Any:
    """Return a value with `text` in every text of it that is not a word of ours."""
    if isinstance(value, dict):
        return {key: part if key in WORDS else poisoned(part, text) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [poisoned(part, text) for part in value]
    return value + text if isinstance(value, str) else value


def printed(do: Any) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        do()
    return out.getvalue()


JOB = {
    "id": "align", "key": "w.1/align", "state": "failed", "nodes": ["n1"], "start_time": 1.0, "finish_time": 2.0,
    "exit_code": 3, "signal": None, "reason": "why", "forecast_run_time": 1.0, "forecast_finish_time": 2.0,
    "forecast_run_within": [0.5, 2.0], "contention_slowdown": 1.0, "stdout": "/o", "stderr": "/e",
    "class": "cpu-bound", "class_why": "it computes", "profile": "align", "profile_source": "measured",
}  # fmt: skip
FLOW = {"id": "w.1", "state": "running", "finish_time": None, "jobs": [JOB, JOB | {"state": "running"}]}
STATUS = {"cluster": "lab", "mode": "live", "policy": "mom", "blocked": "disk", "time": 100.0, "workflows": [FLOW]}
LOG = {
    "job": JOB, "submit_time": 0.0, "after": ["sort"], "waits": "for sort",
    "story": [{"kind": "chosen", "time": 1.0, "text": "chosen: n1"}],
}  # fmt: skip


LAB = Cluster("lab", (Node("n1", NodeType("t", 1, 1.0, 1.0)),))


def profile(name: str) -> Profile:
    return Profile((ThreadGroup(1, 1.0),), name=name)


def queue_of(text: str) -> None:
    """Print a queue, as `plan --show-commands` does."""
    lines = (f"scontrol update Comment={text}",)
    preview = QueuePreview(None, (), lines, lines, (Rejection(Release(text, text), text),), {text: text}, ())
    plan_queue._print(
        preview, SimpleNamespace(name=text, hand_over_by=text), LAB, (text,), commands=True, everything=True
    )


def dry_run_of(text: str) -> None:
    """Print a decision and its commands, as `daemon --dry-run --show-commands` does."""
    Recording(show, lambda action: [f"scontrol update Comment={text}"]).apply(Release(f"k{text}", text))


def submission_of(text: str) -> None:
    """Print the id that a server sends, as `submit` does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service, "_client", lambda *_: SimpleNamespace(submit=lambda *_, **__: text))
        service.submit(Path("w.yaml"))


def usage_error_of(text: str) -> None:
    assert main(["status", "--adapter", f"x{text}".replace("\0", "")]) == 64


def error_of(text: str) -> None:
    assert main(["plan", f"/nowhere{text}".replace("\0", ""), "--cluster", "/nowhere"]) in (1, 64)


OUTPUTS = {
    "status": lambda text: show_status(poisoned(STATUS, text), everything=True),
    "explain": lambda text: show_job_log(poisoned(LOG, text)),
    "failures": lambda text: note(*failure_lines(poisoned(FLOW, text))),
    "submit": submission_of,
    "queue": queue_of,
    "dry run": dry_run_of,
    "usage error": usage_error_of,
    "error": error_of,
    "doctor": lambda text: show_findings([Finding(PROBLEM, text, text, (text, f"{text}   # in {text}"))]),
    "accuracy": lambda text: show_accuracy(
        [ForecastOutcome(text, 1.0, 1.0, 2.0, text, text, text, text, text)] * 2, everything=True
    ),
    "table": lambda text: Screen().table([TextColumn(text), TextColumn("B", right=True)], [(text, text)]),
    "heading": lambda text: Screen().title(text),
    "styled": lambda text: Screen().put(Text(text, style="bold"), text),
    "sweep": lambda text: show_runs(Screen(), [{"run": 1, "workload": text, "policy": text, "load": text}] * 2),
    "profiles": lambda text: show_list({text: (profile(text), classify_there(profile(text)))}, {text: 0}),
    "profile": lambda text: show_profile(profile(text), None, classify_there(profile(text)), text),
    "pairs": lambda text: show_pairs({text: {text: 1.5}}, text),
    "json": lambda text: print_json("x", poisoned(STATUS, text) | {text: text}),
    "document": show_document,
    "lines": lambda text: show(text, text),
    "warnings": lambda text: warn(text),
    "progress": lambda text: live.Lines._print(SimpleNamespace(_clock=lambda: 1.0, _began=0.0), text, text),
}


@pytest.mark.parametrize("output", OUTPUTS)
@given(hostile)
@example(EVIL)
@settings(max_examples=25, deadline=None)
def test_no_text_controls_the_terminal(output, text):
    stdout = printed(lambda: OUTPUTS[output](text))
    assert harmless(stdout), repr(stdout)
    stdout.encode()


@pytest.mark.parametrize("output", [each for each in OUTPUTS if each not in ("document", "json")])
def test_no_text_forges_a_line(output):
    """The hostile text may be on a line, but no line begins with it."""
    lines = printed(lambda: OUTPUTS[output]("x\nERROR forged\r\nERROR forged\u2028ERROR forged")).splitlines()
    assert lines and not [line for line in lines if line.lstrip().startswith("ERROR forged")]


@given(hostile)
def test_a_document_keeps_what_is_harmless(text):
    assert printed(lambda: show_document(text)) == clean_lines(text)
    plain = "".join(character for character in text if clean(character) == character)
    assert printed(lambda: show_document(plain + "\n\t" + plain)) == plain + "\n\t" + plain


@given(hostile)
def test_completion_offers_only_what_can_be_typed(text):
    assert completing([text, "plain"])("") == [text, "plain"] if clean(text) == text else ["plain"]


@pytest.mark.real
def test_an_exported_script_is_readable_and_keeps_every_character(tmp_path, capsys):
    word = EVIL.replace("\0", "").replace("\udc80", "") + "' $(x)"
    workflow = {"schema": "pilotfish/workflow/v1", "jobs": {"a": {"command": ["printf", "%s", word]}}}
    cluster = {
        "schema": "pilotfish/cluster/v1", "nodes": [{"names": "n1", "type": "t"}],
        "node_types": {"t": {"cores": 1, "memory": "1GiB", "memory_bandwidth": "1GB/s"}},
    }  # fmt: skip
    for name, document in (("w.yaml", workflow), ("c.yaml", cluster)):
        (tmp_path / name).write_text(yaml.safe_dump(document))
    assert main(["plan", str(tmp_path / "w.yaml"), "--cluster", str(tmp_path / "c.yaml"), "--export", "slurm"]) == 0
    script = capsys.readouterr().out
    assert harmless(script)
    sbatch = tmp_path / "sbatch"  # runs what it is given, as a job would
    sbatch.write_text(f'#!/bin/sh\nfor word; do :; done\nsh -c "${{word#--wrap=}}" > {tmp_path}/out\necho 1\n')
    sbatch.chmod(0o755)
    subprocess.run(["sh"], input=script.encode(), env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, check=True)
    assert (tmp_path / "out").read_bytes() == word.encode()


def test_a_command_that_is_suggested_can_be_copied_from_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["pilotfish evaluate", "'a model.pfmodel.json'", *(f"--set Weight{number}=1000" for number in range(8))]
    hint(*words)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) > 1 and max(map(len, lines)) <= 80
    assert shlex.split(" ".join(line.removesuffix(" \\") for line in lines)) == shlex.split(" ".join(words))
    assert all(line.endswith(" \\") for line in lines[:-1]) and not lines[-1].endswith("\\")
    hint("pilotfish evaluate", "m.pfmodel.json")
    assert capsys.readouterr().err == "  pilotfish evaluate m.pfmodel.json\n"


_LONG_NOTE = f"warning: no host of zone 'AS0' can be reached from /{'x' * 90}: other jobs use them for ever"


def test_a_note_is_one_line_where_no_terminal_shows_it(capsys: pytest.CaptureFixture[str]) -> None:
    note(_LONG_NOTE)
    assert capsys.readouterr().err == f"pilotfish: {_LONG_NOTE}\n"


def _all_of(reader: int) -> bytes:
    """Read what was written to a pseudo terminal that is closed now, and close this end."""
    with open(reader, "rb", buffering=0) as terminal:
        text = b""
        with contextlib.suppress(OSError):  # EIO: that was all
            while True:
                text += terminal.read(4096)
    return text


def test_a_terminal_breaks_a_note_between_words_and_leaves_paths_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, terminal = os.openpty()
    termios.tcsetwinsize(terminal, (24, 60))
    with open(terminal, "w") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        note("a short one")
        note(_LONG_NOTE)
    assert _all_of(reader).decode().splitlines() == [
        "pilotfish: a short one",
        "pilotfish: warning: no host of zone 'AS0' can be reached",
        "           from",
        f"           /{'x' * 90}:",
        "           other jobs use them for ever",
    ]
