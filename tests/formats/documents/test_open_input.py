"""Inputs that are no files: a pipe is read once, and nothing that has no end is read at all."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest

from pilotfish.cli.__main__ import FAILED, main
from pilotfish.formats.documents.open_input import file_digest, open_input
from pilotfish.simulate.errors import ConfigError


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """A pipe into which no program writes."""
    path = tmp_path / "pipe.swf"
    os.mkfifo(path)
    return path


def test_a_file_is_read_and_named_by_its_digest(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"text" * 100_000)
    with open_input(path) as file:
        assert file.read() == b"text" * 100_000
    assert file_digest(path) == hashlib.sha256(b"text" * 100_000).hexdigest()


def test_a_pipe_is_read_once(pipe: Path) -> None:
    with open_input(pipe) as reader:
        with pipe.open("wb") as writer:
            writer.write(b"jobs")
        assert reader.read() == b"jobs"
    with pytest.raises(ConfigError, match="it is a pipe, and this command reads it more than once"):
        file_digest(pipe)


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/null", "/", "socket"])
@pytest.mark.parametrize("read", [open_input, file_digest])
def test_what_is_neither_file_nor_pipe_is_refused(name: str, read, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mknod("socket", stat.S_IFSOCK | 0o600)
    with pytest.raises((ConfigError, OSError)) as refusal:
        read(name)
    assert name in str(refusal.value)


READERS = (
    "simulate {} --procs 8", "convert {} out.json", "train linear {} -o m.pfmodel.json", "sweep {}",
    "train squared {} -o m.pfmodel.json", "train rules -c {} --workload {} -o m.pfmodel.json", "whatif {}",
    "evaluate {} {}", "evaluate --leave-one-out {} {} {}", "model check {}", "model show {}", "plan {} -c {}",
    "simulate {} -c {}", "simulate {} --procs 8 -p easy:order={}", "batsim {} --component ipc:///nowhere",
    "generate communication {} --seed 1 -o out.json",
)  # fmt: skip


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize("kind", ["pipe", "/dev/zero"])
def test_no_command_waits_for_a_pipe_or_reads_without_end(
    command: str, kind: str, pipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(command.format(*[str(pipe) if kind == "pipe" else kind] * 3).split()) != 0
    error = capsys.readouterr().err
    assert "unexpected" not in error and error.count("pilotfish: error: ") + ("Usage:" in error) == 1


def test_a_dash_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["simulate", "-", "--procs", "8"]) == FAILED
    assert "-: there is no such file (allowed: /dev/stdin" in capsys.readouterr().err
