"""Commands that are given up: a read when the process is to stop, and never a change."""

from __future__ import annotations

import os
import time

import pytest

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.run_command import STOP, BackgroundCommand, run_command

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


def test_a_command_in_the_background_prints_as_much_as_it_likes() -> None:
    large = "head -c 1000000 /dev/zero | tr '\\0' x; echo problem >&2; exit 4"
    command = BackgroundCommand(["sh", "-c", large], dict(os.environ), "")
    while (ended := command.poll()) is None:
        time.sleep(0.01)
    assert (len(ended.stdout), ended.stderr, ended.exit_code) == (1_000_000, "problem\n", 4)
    with pytest.raises(AdapterError, match="no-such-program is not on the PATH; install it"):
        BackgroundCommand(["no-such-program"], dict(os.environ), "install it")
