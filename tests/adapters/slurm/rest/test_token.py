"""Tokens for slurmrestd, from a file or a command: renewed in time, and never shown."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.slurm.rest.errors import Unauthorised
from pilotfish.adapters.slurm.rest.token import TokenCommand, TokenFile, parse
from pilotfish.simulate.errors import ConfigError
from tests.support.clock import Clock
from tests.support.slurm_rest_fake import token


def test_a_token_has_an_end_and_is_never_shown() -> None:
    text = token(exp=2000, iat=1000, sun="backup")
    read = parse(f"SLURM_JWT={text}\n")
    assert (read.text, read.exp, read.iat, read.life_s) == (text, 2000, 1000, 1000)
    assert text not in repr(read) and "secret" not in f"{read!r} {read}"
    assert parse(token()).exp is None
    for bad in ("", "a.b", "a.b.c", "x y z", f"{text} {text}", "a.é.c", token(exp="soon"), ".W10.", "a.ew.c"):
        with pytest.raises(ValueError, match="it holds") as caught:
            parse(bad)
        assert not bad or bad not in str(caught.value)


def put(path: Path, text: str, mode: int = 0o600) -> None:
    draft = path.with_suffix(".new")
    draft.write_text(text)
    draft.chmod(mode)
    os.replace(draft, path)


def test_a_file_is_read_again_when_the_site_renews_it(tmp_path: Path) -> None:
    clock, path = Clock(1000.0), tmp_path / "token"
    put(path, token(exp=1100, iat=1000))
    source = TokenFile(path, clock)
    first = source.get()
    assert source.get() is first and not source.renew()
    clock.now = 1100
    with pytest.raises(Unauthorised, match=r"token expired 0 s ago and was not renewed") as caught:
        source.get()
    assert caught.value.transient and caught.value.kind == "token"
    put(path, token(exp=1200, iat=1100))
    assert source.renew() and source.get().exp == 1200
    for text, mode in (("nonsense", 0o600), (token(), 0o644)):
        put(path, text, mode)
        with pytest.raises(Unauthorised, match="rest_token_file"):
            source.get()
    path.unlink()
    with pytest.raises(Unauthorised):
        source.get()
    assert not source.renew()


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o602, 0o777])
def test_a_world_readable_token_file_is_refused(tmp_path: Path, mode: int) -> None:
    put(tmp_path / "token", token(), mode)
    with pytest.raises(
        ConfigError, match=r"token: rest_token_file: every user can read it \(mode 0\d+\) \(allowed: mode"
    ):
        TokenFile(tmp_path / "token")
    put(tmp_path / "token", token(), 0o640)
    assert TokenFile(tmp_path / "token").get().exp is None


def test_a_file_without_a_token_is_refused_at_once(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(ConfigError, match="rest_token_file: unreadable"):
            os.chmod(tmp_path, 0o700)
            TokenFile(path)
    put(tmp_path / "token", "nothing")
    with pytest.raises(ConfigError, match="it holds no token"):
        TokenFile(tmp_path / "token")


def minting(clock: Clock, life: float) -> tuple[TokenCommand, list[Sequence[str]]]:
    """Return a command whose tokens are of another machine's clock."""
    runs: list[Sequence[str]] = []

    def run(argv: Sequence[str]) -> str:
        runs.append(argv)
        return f"SLURM_JWT={token(exp=77 + life, iat=77, n=len(runs))}\n"

    return TokenCommand(["mint", "-x"], run, clock), runs


def test_the_token_command_runs_only_before_the_token_ends() -> None:
    clock = Clock(1000.0)
    source, runs = minting(clock, 600)
    first = source.get()
    clock.now += 500
    assert source.get() == first and runs == [("mint", "-x")]
    clock.now += 41
    assert source.get() != first and len(runs) == 2
    assert not source.renew()  # it is new
    clock.now += 2
    assert source.renew() and source.get() and len(runs) == 3
    short, runs = minting(clock, 5)
    short.get()
    clock.now += 3.9
    short.get()
    clock.now += 0.2
    short.get()
    assert len(runs) == 2


def test_a_failed_token_command_does_not_show_its_output() -> None:
    secret = token(exp=1)

    def fails(argv: Sequence[str]) -> str:
        raise AdapterError(f"mint: + echo {secret}", argv=argv, stderr_tail=secret)

    for run in (fails, lambda argv: f"here it is: {secret}"):
        with pytest.raises(Unauthorised) as caught:
            TokenCommand(["mint"], run).get()
        assert caught.value.transient and secret not in f"{caught.value!r}{caught.value}{caught.value.stderr_tail}"


def test_a_token_that_another_user_controls_is_refused_also_later(tmp_path: Path) -> None:
    path = tmp_path / "token"
    if os.geteuid() == 0:  # an ordinary user's own group has no other user in it
        put(path, token(), 0o660)
        with pytest.raises(ConfigError, match=r"rest_token_file: .*not trusted: .*mode 0660: others can write to it"):
            TokenFile(path)
    put(path, token())
    source = TokenFile(path)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to("elsewhere")
    with pytest.raises(Unauthorised, match="symbolic link"):
        source.get()
    if os.geteuid() == 0:
        put(path, token())
        os.chown(path, 61001, 0)
        with pytest.raises(Unauthorised, match="belongs to user 61001"):
            source.get()
    put(path, token(exp=2_000_000_000))
    assert source.get().exp == 2_000_000_000
