"""`pilotfish web`: where it may listen, and that a wrong place is one clear error."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from pilotfish.cli.service.web import web
from pilotfish.cli.service.web_token import web_token
from pilotfish.simulate.errors import ConfigError


def look_until(holds: Callable[[], bool], patience_s: float) -> bool:
    until = time.monotonic() + patience_s
    while not holds() and time.monotonic() < until:
        time.sleep(0.1)
    return holds()


@pytest.mark.parametrize(
    "place",
    ["0.0.0.0:9837", "10.1.2.3:80", "[::]:9837", "127.0.0.1", "127.0.0.1:99999", "127.0.0.1:http", "page", ":1", ""],
)
def test_a_place_that_others_reach_is_refused(place) -> None:
    with pytest.raises(ConfigError) as error:
        web(listen=place)
    assert "--listen" in str(error.value) and error.value.allowed


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for 127.0.0.1 with its key, in one file."""
    path, key = tmp_path / "c.pem", tmp_path / "k.pem"
    subject = ("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2", "-batch")
    argv = ("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", *subject)
    subprocess.run([*argv, "-keyout", str(key), "-out", str(path)], check=True, capture_output=True)
    path.write_text(path.read_text() + key.read_text())
    path.chmod(0o600)
    return path


def tokens(folder: Path, *lines: str) -> Path:
    path = folder / "tokens.yaml"
    path.write_text("schema: pilotfish/tokens/v1\ntokens:" + ("".join(f"\n{line}" for line in lines) or " []") + "\n")
    path.chmod(0o600)
    return path


needs_openssl = pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl: no certificate was made")


@pytest.mark.real
@needs_openssl
@pytest.mark.parametrize("place", ["0.0.0.0:9837", "[::]:9837", "10.1.2.3:80"])
def test_what_others_reach_needs_both_encryption_and_tokens(place, certificate, tmp_path) -> None:
    for incomplete in ({"tls": certificate}, {"tokens": tokens(tmp_path)}):
        with pytest.raises(ConfigError, match="--tls and --tokens"):
            web(listen=place, **incomplete)


@pytest.mark.real
@needs_openssl
def test_a_key_that_all_can_read_and_what_is_no_certificate_are_refused(certificate, tmp_path) -> None:
    certificate.chmod(0o604)
    with pytest.raises(ConfigError, match="all users can read"):
        web(tls=certificate)
    with pytest.raises(ConfigError, match="cannot be used"):
        web(tls=tokens(tmp_path))
    with pytest.raises(ConfigError, match="cannot be used"):
        web(tls=tmp_path / "absent.pem")


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"tls_key": Path("k.pem")}, "--tls-key"),
        ({"listen": "/run/w.sock", "tls": Path("c.pem")}, "--tls"),
        ({"listen": "/run/w.sock", "user_header": "X-User", "tokens": Path("t.yaml")}, "--user-header"),
    ],
)
def test_what_does_not_go_together_is_named(given, key) -> None:
    with pytest.raises(ConfigError) as error:
        web(**given)
    assert error.value.key == key


@pytest.mark.real
@needs_openssl
def test_a_stranger_gets_nothing_and_who_has_a_token_the_page(certificate, tmp_path, capsys) -> None:
    web_token("desk", user="root")
    answer = capsys.readouterr()
    secret = answer.err.split()[-1]
    file = tokens(tmp_path, answer.out.strip())
    assert secret not in file.read_text()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    argv = [sys.executable, "-m", "pilotfish.cli", "web", "--listen", f"0.0.0.0:{port}", "--tls", str(certificate)]
    context = ssl.create_default_context(cafile=str(certificate))

    def ask(header: str) -> int:
        request = urllib.request.Request(f"https://127.0.0.1:{port}/", headers={"Authorization": header})
        try:
            return urllib.request.urlopen(request, context=context, timeout=10).status
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    with subprocess.Popen([*argv, "--tokens", str(file), "--socket", str(tmp_path / "s.sock")]) as process:
        try:
            assert look_until(lambda: ask(f"Bearer {secret}") == 200, 60.0)
            assert ask("") == ask("Bearer x") == 401
            with pytest.raises(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10)
        finally:
            process.terminate()


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"name": ""}, "NAME"),
        ({"name": "a\n"}, "NAME"),
        ({"user": "a b"}, "--as"),
        ({"scope": "write"}, "--scope"),
        ({"days": 0}, "--valid-days"),
    ],
)
def test_a_token_that_cannot_be_made_is_one_sentence(given, key) -> None:
    with pytest.raises(ConfigError) as error:
        web_token(**({"name": "desk"} | given))
    assert error.value.key == key


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
