"""Reading files as mappings, and pydantic errors as ours."""

from __future__ import annotations

from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pilotfish.formats.documents.files import check_schema, config_error, read_document
from pilotfish.simulate.errors import ConfigError


def test_yaml_and_json_are_distinguished_by_content(tmp_path):
    (tmp_path / "a").write_text("# comment\nx: 1\n")
    (tmp_path / "b").write_text('{"x": 1}')
    (tmp_path / "c.yaml").write_text("{x: 1}")
    (tmp_path / "d").write_bytes(b"\xef\xbb\xbfx: 1\r\n")
    assert [read_document(tmp_path / name) for name in ("a", "b", "c.yaml", "d")] == [{"x": 1}] * 4


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "empty"),
        (b" \n\t\n", "empty"),
        (b"x: \xff\xfe", "not UTF-8"),
        (b"\xff\xfex\x00:\x00", "not UTF-8"),
        (b"\x7fELF\x02\x01\x00\x00", "control character"),
        (b"ok: 1\nx: \x00", "control character"),
        (b"- a\n- b\n", "found a list of 2"),
        (b"just text", "found 'just text'"),
        (b"[1, 2]", "found a list of 2"),
        (b"# only a comment\n", "found nothing"),
        (b"\x1f\x8b\x08\x00", "not UTF-8"),
    ],
)
def test_a_file_without_a_mapping_is_refused(tmp_path, content, problem):
    path = tmp_path / "file.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        read_document(path)
    assert problem in caught.value.problem
    assert caught.value.source == str(path)


def test_a_file_that_cannot_be_read_says_why(tmp_path):
    for path in (tmp_path / "absent", tmp_path, tmp_path / "bad\0name"):
        with pytest.raises(ConfigError, match="cannot be read"):
            read_document(path)


def test_a_json_file_must_be_json(tmp_path):
    path = tmp_path / "plan.json"
    path.write_text('{"a": 1,\n "b": }')
    with pytest.raises(ConfigError, match="line 2: not JSON"):
        read_document(path)


def test_a_file_too_large_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("pilotfish.formats.documents.files.LARGEST_FILE", 2**20)
    path = tmp_path / "large"
    path.write_bytes(b"x" * (2**20 + 1))
    with pytest.raises(ConfigError, match="too large"):
        read_document(path)


def test_the_schema_key_is_required_and_removed():
    assert check_schema({"schema": "pilotfish/plan/v1", "x": 1}, "plan", "f") == {"x": 1}
    for data in ({}, {"schema": "pilotfish/plan/v2"}, {"schema": None}, {"schema": ["pilotfish/plan/v1"]}):
        with pytest.raises(ConfigError, match="pilotfish/plan/v1"):
            check_schema(data, "plan", "f")


class Server(BaseModel):
    model_config = ConfigDict(extra="forbid")
    port: int = Field(9836, ge=1, le=65535)
    mode: Literal["dry", "live"] = "dry"


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    server: Server | None = None
    others: list[Server] = []


@pytest.mark.parametrize(
    ("data", "key", "words"),
    [
        ({"name": "x", "servr": {}}, "servr", "unknown key; did you mean 'server'?"),
        ({"name": "x", "server": {"prt": 1}}, "server.prt", "did you mean 'port'?"),
        ({"name": "x", "others": [{}, {"mod": 1}]}, "others[1].mod", "did you mean 'mode'?"),
        ({}, "name", "missing"),
        ({"name": "x", "server": {"port": "many"}}, "server.port", "found 'many'"),
        ({"name": "x", "server": {"port": 0}}, "server.port", "greater than or equal to 1"),
        ({"name": "x", "server": {"mode": "wet"}}, "server.mode", "'dry' or 'live'"),
        ({"server": {"port": 0}}, "name", "and 1 more error"),
    ],
)
def test_pydantic_errors_are_reworded(data, key, words):
    with pytest.raises(ValidationError) as caught:
        Settings.model_validate(data)
    error = config_error(caught.value, "pilotfish.yaml", Settings)
    assert error.key == key
    assert words in str(error)
    assert "\n" not in str(error)
