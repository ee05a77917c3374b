"""Files are written completely or not at all."""

from __future__ import annotations

import gzip
import os
import threading
from pathlib import Path

import pytest

from pilotfish.formats.documents import atomic_write
from pilotfish.formats.documents.atomic_write import write_together, write_whole


def test_the_old_content_stays_if_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.swf"
    path.write_text("before")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "/some/where")

    monkeypatch.setattr(atomic_write.os, "replace", full)
    with pytest.raises(OSError, match=r"No space left.*a\.swf"):
        write_whole(path, "after")
    assert path.read_text() == "before" and os.listdir(tmp_path) == ["a.swf"]


def test_gz_names_are_compressed_to_the_same_bytes_each_time(tmp_path: Path) -> None:
    first, second = (write_whole(tmp_path / name, "text\n" * 99).read_bytes() for name in ("a.swf.gz", "b.swf.gz"))
    assert first == second and gzip.decompress(first) == b"text\n" * 99


@pytest.mark.real
def test_a_link_stays_a_link_and_a_pipe_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    write_whole(tmp_path / "link", "here")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "target").read_text() == "here"
    os.mkfifo(tmp_path / "pipe")
    heard: list[str] = []
    reader = threading.Thread(target=lambda: heard.append((tmp_path / "pipe").read_text()))
    reader.start()
    write_whole(tmp_path / "pipe", "through")
    reader.join(10)
    assert heard == ["through"] and (tmp_path / "pipe").is_fifo()


def test_a_missing_folder_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        write_whole(tmp_path / "gone" / "a.swf", "")
    assert caught.value.filename == str(tmp_path / "gone" / "a.swf")


def test_bytes_and_permissions_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    assert write_whole(path, b"\x89\xff").read_bytes() == b"\x89\xff" and path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o640)
    write_whole(path, b"after")
    assert path.stat().st_mode & 0o777 == 0o640


def test_several_files_are_all_replaced_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [tmp_path / name for name in ("a", "b", "c")]
    write_together(dict.fromkeys(paths, "before"))
    with pytest.raises(IsADirectoryError, match=str(tmp_path)):
        write_together({**dict.fromkeys(paths, "after"), tmp_path: "a folder"})

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic_write.os, "chmod", full)
    with pytest.raises(OSError, match="No space left on device"):
        write_together(dict.fromkeys(paths, "after"))
    assert [path.read_text() for path in paths] == ["before"] * 3
    assert sorted(os.listdir(tmp_path)) == ["a", "b", "c"]


def test_a_device_that_is_full_is_named() -> None:
    with pytest.raises(OSError, match=r"No space left on device: '/dev/full'"):
        write_whole(Path("/dev/full"), "text")
