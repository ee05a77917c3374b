"""The log: no text forges a line. sd_notify: datagrams reach the socket, and a missing listener is no error."""

import contextlib
import io
import json
import logging
import socket
import warnings

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pilotfish.daemon.systemd import notify, notify_reloading, set_up_logging
from pilotfish.formats.text import clean

EVIL = "x\x1b[2J\nERROR forged\r\u2028ERROR forged\x85\u202e\x07"


@contextlib.contextmanager
def logged(style):
    """Collect what a daemon logs, and leave the logging of this process as it was."""
    loggers, last, out = (
        [logging.getLogger(name) for name in ("pilotfish", "py.warnings")],
        logging.lastResort,
        io.StringIO(),
    )
    before = [(logger.handlers[:], logger.propagate, logger.level) for logger in loggers]
    logging.captureWarnings(False)  # a service of another test may have left it on
    with contextlib.redirect_stderr(out):
        set_up_logging("debug", style)
    try:
        yield out
    finally:
        for logger, (handlers, propagate, level) in zip(loggers, before, strict=True):
            logger.handlers[:], logger.propagate = handlers, propagate
            logger.setLevel(level)
        logging.lastResort = last
        logging.captureWarnings(False)


@pytest.mark.parametrize("style", ["plain", "json"])
@given(text=st.text(st.characters(codec=None)))
@example(EVIL)
@settings(max_examples=50, deadline=None)
def test_a_record_is_one_line_whatever_it_contains(style, text):
    with logged(style) as out:
        logging.getLogger("pilotfish.job").warning("%s failed", text, extra={"job": text, "cycle": 1})
    line, end = out.getvalue().split("\n")
    assert clean(line) == line and end == ""
    if style == "json":
        assert json.loads(line)["job"] == text


@pytest.mark.parametrize("style", ["plain", "json"])
@given(text=st.text(st.characters(codec=None)))
@example(EVIL)
@settings(max_examples=50, deadline=None)
def test_no_line_of_a_traceback_passes_for_a_record(style, text):
    with logged(style) as out:
        try:
            raise ValueError(text)
        except ValueError:
            logging.getLogger("pilotfish.job").exception("it broke")
    first, *others, end = out.getvalue().split("\n")
    assert "it broke" in first and end == ""
    assert all(clean(line) == line for line in (first, *others))
    assert all(line.startswith("    ") for line in others) if style == "plain" else not others


def test_libraries_log_through_the_same_formatter(monkeypatch):
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    with logged("plain") as out:
        logging.getLogger("a_library").warning("%s", EVIL)
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn(EVIL, stacklevel=1)
    lines = out.getvalue().split("\n")
    assert len(lines) == 3 and all(clean(line) == line for line in lines)


@pytest.mark.parametrize("abstract", [False, True])
def test_datagrams_reach_the_named_socket(tmp_path, monkeypatch, abstract):
    name = f"\0pilotfish-test-{tmp_path.name}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.bind(name)
        channel.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", name.replace("\0", "@"))
        assert notify("READY=1", "STATUS=fine")
        assert channel.recv(999) == b"READY=1\nSTATUS=fine"
        assert notify_reloading()
        assert channel.recv(999).startswith(b"RELOADING=1\nMONOTONIC_USEC=")


@pytest.mark.parametrize("address", ["", "relative", "/nowhere/at/all"])
def test_without_a_listener_nothing_happens(monkeypatch, address):
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    assert notify("READY=1") is False
