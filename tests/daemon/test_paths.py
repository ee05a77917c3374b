"""Paths: our variable first, then systemd's, then XDG's, then the home directory."""

import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from pilotfish.daemon import paths
from pilotfish.simulate.errors import ConfigError

VARIABLES = (
    *("PILOTFISH_STATE", "PILOTFISH_SOCKET"),
    *("STATE_DIRECTORY", "RUNTIME_DIRECTORY"),
    *("XDG_STATE_HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"),
)


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/fish")


def test_the_home_directory_is_last():
    assert paths.state_dir() == Path("/home/fish/.local/state/pilotfish")
    assert paths.profile_store_path() == Path("/home/fish/.local/state/pilotfish/profiles.sqlite")
    assert paths.runtime_socket() == "/home/fish/.local/state/pilotfish/pilotfish.sock"


def test_the_order_of_the_variables(monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", "/xdg")
    assert paths.state_dir() == Path("/xdg/pilotfish")
    monkeypatch.setenv("STATE_DIRECTORY", "/var/lib/pilotfish:/var/lib/other")
    assert paths.state_dir() == Path("/var/lib/pilotfish")
    monkeypatch.setenv("PILOTFISH_STATE", "~/mine")
    assert paths.state_dir() == Path("/home/fish/mine")


def test_a_relative_xdg_path_is_ignored_as_the_specification_says(monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert paths.state_dir() == Path("/home/fish/.local/state/pilotfish")


def test_the_socket(monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1")
    assert paths.runtime_socket() == "/run/user/1/pilotfish.sock"
    monkeypatch.setenv("RUNTIME_DIRECTORY", "/run/pilotfish")
    assert paths.runtime_socket() == "/run/pilotfish/pilotfish.sock"
    for written in ("/tmp/s", "ipc:///tmp/s"):
        monkeypatch.setenv("PILOTFISH_SOCKET", written)
        assert paths.runtime_socket() == "/tmp/s"


@pytest.mark.real
@pytest.mark.parametrize(
    ("own", "system", "variable", "used"),
    [
        ("listens", "listens", "listens", "variable"),
        ("listens", "listens", "absent", "variable"),
        ("listens", "listens", None, "own"),
        ("listens", "absent", None, "own"),
        ("stale", "listens", None, "system"),
        ("absent", "listens", None, "system"),
        ("absent", "stale", None, "system"),
        ("absent", "starts", None, "system"),
        ("absent", "absent", None, "own"),
        ("stale", "absent", None, "own"),
    ],
)
def test_clients_find_the_systems_socket_after_their_own(monkeypatch, tmp_path, own, system, variable, used):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(paths, "SYSTEM_SOCKET", tmp_path / "system")
    sockets = {"own": (tmp_path / "pilotfish.sock", own), "system": (tmp_path / "system", system)}
    if variable is not None:
        sockets["variable"] = tmp_path / "variable", variable
        monkeypatch.setenv("PILOTFISH_SOCKET", str(tmp_path / "variable"))
    with ExitStack() as stack:
        for path, state in sockets.values():
            if state != "absent":
                listener = stack.enter_context(socket.socket(socket.AF_UNIX))
                listener.bind(f"{path}.starting" if state == "starts" else str(path))
                listener.close() if state == "stale" else listener.listen()
        assert paths.client_socket() == str(sockets[used][0])


def test_a_socket_path_too_long_for_the_kernel(monkeypatch):
    monkeypatch.setenv("PILOTFISH_SOCKET", "/" + "x" * 120)
    with pytest.raises(ConfigError, match="121 bytes"):
        paths.runtime_socket()


def test_the_error_without_a_home_directory_names_the_variable(monkeypatch):
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    with pytest.raises(ConfigError, match=r"HOME: it is not set.*set PILOTFISH_STATE"):
        paths.state_dir()


def test_default_config_is_the_users_file_before_the_sites(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    site, user = tmp_path / "etc" / "pilotfish.yaml", tmp_path / ".config" / "pilotfish" / "pilotfish.yaml"
    monkeypatch.setattr(paths, "SITE_CONFIG", site)
    assert paths.default_config_path() is None
    for path in (site, user):
        path.parent.mkdir(parents=True)
        path.touch()
        assert paths.default_config_path() == path
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    assert paths.default_config_path() == site


def test_relative_xdg_config_home_is_ignored(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    assert paths.client_files()[-1] == tmp_path / ".config" / "pilotfish" / "client.yaml"
