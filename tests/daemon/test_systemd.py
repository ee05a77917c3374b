"""The log: no text forges a line. sd_notify: datagrams reach the socket, and a missing listener is no error."""

import contextlib
import io
import json
import logging
import os
import socket
import warnings

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pilotfish.daemon import systemd
from pilotfish.daemon.systemd import HEARTBEAT, beat, notify, notify_reloading, set_up_logging, stop_beating
from pilotfish.formats.text import clean

EVIL = "x\x1b[2J\nERROR forged\r\u2028ERROR forged\x85\u202e\x07"


@contextlib.contextmanager
def logging_kept():
    """Leave the logging of this process as it was."""
    loggers, last = [logging.getLogger(name) for name in ("pilotfish", "py.warnings")], logging.lastResort
    before = [(logger.handlers[:], logger.propagate, logger.level) for logger in loggers]
    logging.captureWarnings(False)  # a service of another test may have left it on
    try:
        yield
    finally:
        for logger, (handlers, propagate, level) in zip(loggers, before, strict=True):
            logger.handlers[:], logger.propagate = handlers, propagate
            logger.setLevel(level)
        logging.lastResort = last
        logging.captureWarnings(False)


@contextlib.contextmanager
def logged(style):
    """Collect what a daemon logs."""
    out = io.StringIO()
    with logging_kept():
        with contextlib.redirect_stderr(out):
            set_up_logging("debug", style)
        yield out


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


@pytest.mark.real
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


@pytest.mark.real
@pytest.mark.parametrize("address", ["", "relative", "/nowhere/at/all"])
def test_without_a_listener_nothing_happens(monkeypatch, address):
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    assert notify("READY=1") is False


def fields_of(entry: bytes) -> dict[str, bytes]:
    """What the journal reads in a datagram in which each value has its length."""
    fields = {}
    while entry:
        name, _, rest = entry.partition(b"\n")
        size = int.from_bytes(rest[:8], "little")
        assert rest[8 + size : 9 + size] == b"\n" and name.decode() not in fields
        fields[name.decode()], entry = rest[8 : 8 + size], rest[9 + size :]
    return fields


@contextlib.contextmanager
def journal(folder, monkeypatch):
    """A journal, to which stderr leads, and what it has received."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel, (folder / "err").open("w+") as err:
        channel.bind(str(folder / "j"))
        channel.setblocking(False)
        status = os.fstat(err.fileno())
        monkeypatch.setenv("JOURNAL_STREAM", f"{status.st_dev}:{status.st_ino}")
        monkeypatch.setattr(systemd, "JOURNAL", str(folder / "j"))
        monkeypatch.setattr("sys.stderr", err)
        yield channel, lambda: (folder / "err").read_text()


@pytest.mark.real
@pytest.mark.parametrize("style", ["plain", "json"])
@pytest.mark.parametrize(("level", "priority"), [("debug", b"7"), ("info", b"6"), ("warning", b"4"), ("error", b"3")])
def test_the_journal_gets_priority_and_fields(style, level, priority, tmp_path, monkeypatch):
    with journal(tmp_path, monkeypatch) as (channel, stderr), logging_kept():
        set_up_logging("debug", style)
        extra = {"job": f"w/{EVIL}", "user": "ada", "cycle": 7}
        getattr(logging.getLogger("pilotfish.job"), level)("it says %s", EVIL, extra=extra)
        fields = fields_of(channel.recv(9999))
        assert (fields["PRIORITY"], fields["USER"], fields["CYCLE"]) == (priority, b"ada", b"7")
        assert fields["JOB"].decode() == clean(f"w/{EVIL}") and fields["SYSLOG_IDENTIFIER"] == b"pilotfish"
        message = fields["MESSAGE"].decode()
        assert (
            json.loads(message)["user"] == "ada" if style == "json" else message.startswith(f"{level.upper()} it says")
        )
        logging.getLogger("pilotfish.job").warning("x" * 10_000_000)  # too long for a datagram
        assert stderr().startswith("<4>") and stderr().count("\n") == 1
        try:
            raise ValueError(EVIL)
        except ValueError:
            channel.close()  # the journal is restarted
            logging.getLogger("pilotfish.job").exception("it broke")
        assert all(line.startswith("<3>") for line in stderr().splitlines()[1:])


@given(message=st.text(st.characters(codec=None)), job=st.text(st.characters(codec=None), min_size=1))
@example(f"x\nPRIORITY=0\n{EVIL}", "x\nUSER=root")
@settings(max_examples=50, deadline=None)
def test_no_text_forges_a_field_of_the_journal(message, job):
    record = logging.makeLogRecord({"levelno": logging.INFO, "name": "pilotfish.job", "job": job})
    fields = fields_of(systemd.journal_entry(record, message))
    assert fields.keys() == {"MESSAGE", "PRIORITY", "SYSLOG_IDENTIFIER", "LOGGER", "JOB"}
    assert fields["PRIORITY"] == b"6" and clean(job) == fields["JOB"].decode()


def test_without_the_journal_stderr_has_no_prefix(monkeypatch):
    monkeypatch.setenv("JOURNAL_STREAM", "1:1")  # of another process: stderr was sent elsewhere
    with logged("plain") as out:
        logging.getLogger("pilotfish.job").error("it failed")
    assert out.getvalue().endswith(" ERROR it failed\n") and "<3>" not in out.getvalue()


def test_the_heartbeat_is_renewed_and_removed(tmp_path, monkeypatch):
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path))
    stop_beating()
    beat()
    os.utime(tmp_path / HEARTBEAT, (1.0, 1.0))
    beat()
    assert (tmp_path / HEARTBEAT).stat().st_mtime > 1.0
    stop_beating()
    assert not (tmp_path / HEARTBEAT).exists()
    monkeypatch.delenv("RUNTIME_DIRECTORY")
    beat()
    assert not (tmp_path / HEARTBEAT).exists()
