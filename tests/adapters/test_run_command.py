"""Commands that are given up: a read when the process is to stop, and never a change."""

from __future__ import annotations

import os
import time
from collections.abc import Generator

import pytest

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.run_command import PIECE_BYTES, STOP, BackgroundCommand, run_command, stream_command

pytestmark = pytest.mark.real


def test_a_read_is_given_up_when_the_process_is_to_stop_and_a_change_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(STOP, "wanted", True)
    with pytest.raises(AdapterError) as caught:
        run_command(["sleep", "60"], 50.0, dict(os.environ), "", reads=True)
    assert (caught.value.kind, caught.value.transient) == ("stopped", True)
    result = run_command(["sh", "-c", "sleep 0.3; echo done; exit 3"], 50.0, dict(os.environ), "")
    assert (result.stdout, result.exit_code) == (b"done\n", 3)
    monkeypatch.setattr(STOP, "wanted", False)
    result = run_command(["sh", "-c", "echo early; sleep 0.3; echo late"], 50.0, dict(os.environ), "", reads=True)
    assert result.stdout == b"early\nlate\n"
    with pytest.raises(AdapterError, match=r"sleep did not answer within 0.01 s"):
        run_command(["sleep", "60"], 0.01, dict(os.environ), "", reads=True)


@pytest.mark.parametrize("where", ["", " >&2"])
def test_an_answer_without_end_is_cut_off(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pilotfish.adapters.run_command.LARGEST_ANSWER", 2**20)
    with pytest.raises(AdapterError, match=r"sh printed more than 1 MiB") as caught:
        run_command(["sh", "-c", f"exec yes{where}"], 50.0, dict(os.environ), "")
    assert (caught.value.kind, caught.value.transient) == ("parse", True)
    result = run_command(["sh", "-c", f"head -c {2**20} /dev/zero{where}"], 50.0, dict(os.environ), "")
    assert len(result.stdout) + len(result.stderr) == 2**20


def test_a_command_that_closes_its_output_must_end_in_time_too() -> None:
    closed = "exec >&- 2>&-; exec sleep 60"
    with pytest.raises(AdapterError, match=r"sh did not answer within 0.3 s"):
        run_command(["sh", "-c", closed], 0.3, dict(os.environ), "")


def test_a_command_in_the_background_prints_as_much_as_it_likes() -> None:
    large = "head -c 1000000 /dev/zero | tr '\\0' x; echo problem >&2; exit 4"
    command = BackgroundCommand(["sh", "-c", large], dict(os.environ), "")
    while (ended := command.poll()) is None:
        time.sleep(0.01)
    assert (len(ended.stdout), ended.stderr, ended.exit_code) == (1_000_000, "problem\n", 4)
    with pytest.raises(AdapterError, match="no-such-program is not on the PATH; install it"):
        BackgroundCommand(["no-such-program"], dict(os.environ), "install it")


def stream(text: str, timeout_s: float = 50.0) -> Generator[bytes, None, tuple[int, str]]:
    ended = yield from stream_command(["sh", "-c", text], timeout_s, dict(os.environ), "install it")
    return ended.exit_code, ended.stderr


def test_a_stream_comes_in_bounded_pieces_and_ends_as_the_command_did() -> None:
    pieces, running = list[bytes](), stream("head -c 3000000 /dev/zero; echo problem >&2; exit 4")
    try:
        while True:
            pieces.append(next(running))
    except StopIteration as end:
        assert end.value == (4, "problem\n")
    assert sum(map(len, pieces)) == 3_000_000 and max(map(len, pieces)) <= PIECE_BYTES


def test_a_stream_is_killed_when_it_is_silent_left_or_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AdapterError, match=r"sh printed nothing for 0.01 s"):
        list(stream("sleep 60", 0.01))
    running = stream("echo $$; exec sleep 60")
    number = int(next(running))
    running.close()
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)
    running = stream("echo first; exec sleep 60")
    assert next(running) == b"first\n"
    monkeypatch.setattr(STOP, "wanted", True)
    with pytest.raises(AdapterError, match="sh was given up"):
        next(running)
