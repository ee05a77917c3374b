"""Tokens: only who has one that holds is answered, as its user and within its scope, and a removed one ends at once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.simulate.errors import ConfigError
from pilotfish.web import follower, server
from tests.web.test_server import World, keys

testclient = pytest.importorskip("starlette.testclient")

from pilotfish.web.tokens import AccessTokens, new_token

pytestmark = pytest.mark.real  # the server asks from threads
DAY = date(2026, 5, 4)


def tokens_file(folder: Path, *lines: str) -> Path:
    path = folder / "tokens.yaml"
    path.write_text("schema: pilotfish/tokens/v1\ntokens:" + ("".join(f"\n{line}" for line in lines) or " []") + "\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable:
    """Makes a browser of pages that need a token of these lines."""
    monkeypatch.setattr(follower, "LOOKED_AT_S", 0.0)
    world = World()

    def browser(*lines: str):
        tokens = AccessTokens(tokens_file(tmp_path, *lines), lambda: datetime(2026, 5, 4, 23, 59).timestamp() - 50_000)
        app = server.application(world.ask, ["pages.example"], tokens=tokens)
        return testclient.TestClient(app, base_url="https://pages.example")

    return browser


def bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


@pytest.mark.parametrize(
    "path", ["/", "/static/main.js", "/api/v1/board", "/api/v1/events", "/api/v1/quality", "/healthz", "/nope"]
)
def test_without_a_token_nothing_is_answered(gate: Callable, path: str) -> None:
    secret, line = new_token("desk", "ada", "read", DAY)
    wrong = [
        "",
        "Bearer ",
        "Bearer x",
        "Basic !",
        "Basic eA==",
        f"Bearer {secret}x",
        secret,
        f"Digest {secret}",
        "Bearer \xff",
    ]
    with gate(line) as browser:
        for header in wrong:
            answer = browser.get(path, headers={"authorization": header.encode("latin-1")})
            assert answer.status_code == 401 and answer.headers["www-authenticate"].startswith("Basic"), header
            assert "rjms" not in answer.text and "content-security-policy" in answer.headers


def test_a_token_looks_as_its_user(gate: Callable) -> None:
    ada, eve, anyone = (new_token(f"t{user}", user, "read", DAY) for user in ("ada", "eve", ""))
    with gate(ada[1], eve[1], anyone[1]) as browser:
        assert keys(browser.get("/api/v1/board", headers=bearer(ada[0]))) == {"rjms/1"}
        assert keys(browser.get("/api/v1/board", headers=bearer(eve[0]))) == {"rjms/1", "rjms/2"}
        assert keys(browser.get("/api/v1/board", headers=bearer(anyone[0]))) == set()
        assert keys(browser.get("/api/v1/board", headers={**bearer(ada[0]), "x-remote-user": "eve"})) == {"rjms/1"}
        assert keys(browser.get("/api/v1/board", auth=("anything", eve[0]))) == {"rjms/1", "rjms/2"}
        assert browser.get("/api/v1/jobs/rjms/1", headers=bearer(ada[0])).json()["as"] == "ada"


def test_a_token_for_health_reaches_nothing_else(gate: Callable) -> None:
    secret, line = new_token("alarms", "", "health", DAY)
    with gate(line) as browser:
        assert browser.get("/healthz", headers=bearer(secret)).status_code == 200
        for path in ("/", "/api/v1/board", "/api/v1/events", "/api/v1/jobs/rjms/1", "/healthz/", "//healthz"):
            assert browser.get(path, headers=bearer(secret)).status_code == 403


def test_a_token_ends_after_its_day_and_when_its_line_is_removed(gate: Callable, tmp_path: Path) -> None:
    old, new = (new_token(name, "eve", "read", day) for name, day in (("old", DAY - timedelta(days=1)), ("new", DAY)))
    with gate(old[1], new[1]) as browser:
        assert browser.get("/", headers=bearer(old[0])).status_code == 401
        assert browser.get("/", headers=bearer(new[0])).status_code == 200
        with browser.stream("GET", "/", headers=bearer(new[0])):
            tokens_file(tmp_path)
        assert browser.get("/", headers=bearer(new[0])).status_code == 401
        (tmp_path / "tokens.yaml").write_text("schema: [")
        assert browser.get("/", headers=bearer(new[0])).status_code == 401
        tokens_file(tmp_path, new[1])
        assert browser.get("/", headers=bearer(new[0])).status_code == 200


GOOD = {"name": "a", "sha256": "0" * 64, "expires": "2030-01-01"}


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ({"sha256": "0" * 63}, "sha256"), ({"expires": "soon"}, "expires"), ({"scope": "write"}, "scope"),
        ({"user": "a b"}, "user"), ({"token": "x"}, "token"), ({"name": ""}, "name"),
    ],
)  # fmt: skip
def test_a_wrong_line_is_named(tmp_path: Path, line: dict[str, str], named: str) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(yaml.safe_dump({"schema": "pilotfish/tokens/v1", "tokens": [GOOD | line]}))
    path.chmod(0o600)
    with pytest.raises(ConfigError) as error:
        AccessTokens(path)
    assert error.value.source == str(path) and named in error.value.key


def test_a_file_that_others_can_write_or_that_is_absent_is_refused(tmp_path: Path) -> None:
    path = tokens_file(tmp_path)
    path.chmod(0o666)
    with pytest.raises(ConfigError, match="not trusted"):
        AccessTokens(path)
    with pytest.raises(ConfigError, match="No such file"):
        AccessTokens(tmp_path / "absent")


@given(st.text(max_size=20), st.text(max_size=20))
def test_no_name_or_user_writes_more_than_its_line(name: str, user: str) -> None:
    try:
        secret, line = new_token(name, user, "read", DAY)
    except ValueError:
        return
    (token,) = yaml.safe_load(line)
    assert (token["name"], token["user"], token["scope"]) == (name, user, "read")
    assert secret not in line and "\n" not in line and len(secret) > 40


def test_two_tokens_differ() -> None:
    assert new_token("a", "", "read", DAY)[0] != new_token("a", "", "read", DAY)[0]
