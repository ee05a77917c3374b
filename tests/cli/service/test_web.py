"""`pilotfish web`: where it may listen, and that a wrong place is one clear error."""

from __future__ import annotations

import socket

import pytest

from pilotfish.cli.service.web import web
from pilotfish.simulate.errors import ConfigError


@pytest.mark.parametrize(
    "place",
    ["0.0.0.0:9837", "10.1.2.3:80", "[::]:9837", "127.0.0.1", "127.0.0.1:99999", "127.0.0.1:http", "page", ":1", ""],
)
def test_a_place_that_others_reach_is_refused(place) -> None:
    with pytest.raises(ConfigError) as error:
        web(listen=place)
    assert "--listen" in str(error.value) and error.value.allowed


def test_a_header_is_believed_only_behind_a_socket(tmp_path) -> None:
    with pytest.raises(ConfigError, match="--user-header"):
        web(listen="127.0.0.1:9837", user_header="X-Remote-User")


@pytest.mark.real
def test_a_folder_that_is_not_there_is_named(tmp_path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        web(listen=str(tmp_path / "absent" / "web.sock"))


@pytest.mark.real
def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(ConfigError, match="in use"):
        web(listen=f"127.0.0.1:{other.getsockname()[1]}")
