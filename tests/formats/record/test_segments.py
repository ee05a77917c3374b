"""Segments: what was written is read, as far as it is whole; bounds hold; a full disk costs lines, and nothing else."""

import errno
import gzip
import os
import random
import shutil

import pytest

from pilotfish import trust
from pilotfish.formats.record import segments
from pilotfish.formats.record.segments import Bounds, RecordWriter, Segment
from pilotfish.simulate.errors import ConfigError

HEADER = {"run": "a"}


class Clock:
    time = 1e9

    def __call__(self) -> float:
        return self.time


def write(folder, lines, *, clock=None, bounds=Bounds(), step_s=1.0):
    clock = clock or Clock()
    writer = RecordWriter(folder, HEADER, bounds, clock)
    for line in lines:
        if writer.begin_line():
            writer.write(line)
        clock.time += step_s
    writer.close()
    return writer


def read(folder):
    lines, cuts = [], []
    for path in segments.segments(folder):
        segment = Segment.open(path)
        assert segment.header["run"] == "a"
        lines += segment.lines()
        cuts += [segment.cut] if segment.cut else []
    return lines, cuts


def test_lines_come_back_and_only_the_owner_can_read_them(tmp_path):
    lines = [{"n": number, "text": "é\n|"} for number in range(100)]
    write(tmp_path / "record", lines)
    assert read(tmp_path / "record") == (lines, [])
    (path,) = (tmp_path / "record").iterdir()
    assert path.stat().st_mode & 0o777 == 0o600 and (tmp_path / "record").stat().st_mode & 0o777 == 0o700


def test_the_oldest_segments_go_first_and_what_is_left_can_be_read(tmp_path, monkeypatch):
    monkeypatch.setattr(segments, "SEGMENT_S", 1000.0)
    noise = random.Random(1)
    lines = [{"n": number, "noise": noise.randbytes(500).hex()} for number in range(300)]
    write(tmp_path, lines, bounds=Bounds(most_bytes=50_000), step_s=100.0)
    size = sum(path.stat().st_size for path in tmp_path.iterdir())
    lines_read, cuts = read(tmp_path)
    assert size < 60_000 and not cuts and 0 < len(lines_read) < 300 and lines_read == lines[-len(lines_read) :]


def test_what_is_too_old_goes(tmp_path, monkeypatch):
    monkeypatch.setattr(segments, "SEGMENT_S", 1000.0)
    lines = [{"n": number} for number in range(300)]
    write(tmp_path, lines, bounds=Bounds(keep_days=0.05), step_s=100.0)
    lines_read, _ = read(tmp_path)
    assert 43 <= len(lines_read) <= 65  # 4,320 s, and at most one segment and one flush more


@pytest.mark.parametrize("share", [0.3, 0.7, 0.99])
def test_a_segment_that_was_cut_off_is_read_as_far_as_it_is_whole(tmp_path, share):
    lines = [{"n": number, "text": str(number) * 50} for number in range(500)]
    write(tmp_path, lines)
    (path,) = segments.segments(tmp_path)
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    lines_read, (cut,) = read(tmp_path)
    assert lines_read == lines[: len(lines_read)] and "lines: " in cut


def test_any_damage_is_an_error_or_a_cut(tmp_path):
    lines = [{"n": number, "text": str(number) * 50} for number in range(200)]
    write(tmp_path, lines)
    (path,) = segments.segments(tmp_path)
    content, draw = path.read_bytes(), random.Random(3)
    for _ in range(200):
        damaged = bytearray(content)
        for _ in range(draw.randint(1, 4)):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        path.write_bytes(bytes(damaged))
        try:
            lines_read, cuts = read(tmp_path)
        except ConfigError as error:
            assert path.name in str(error)
        else:
            assert cuts or len(lines_read) == 200


@pytest.mark.parametrize("text", [b"", b"[]\n", b'{"format": "x"}\n', b"nonsense\n"])
def test_what_is_no_segment_is_one_error(tmp_path, text):
    (tmp_path / "5-000.jsonl.gz").write_bytes(gzip.compress(text))
    with pytest.raises(ConfigError, match=r"5-000\.jsonl\.gz"):
        read(tmp_path)


def test_a_newer_version_says_what_is_read(tmp_path):
    (tmp_path / "5-000.jsonl.gz").write_bytes(gzip.compress(b'{"format": "pilotfish-record", "version": 2}\n'))
    with pytest.raises(ConfigError, match=r"record of version 2 \(allowed: version 1\)"):
        read(tmp_path)


def test_a_full_disk_costs_lines_and_a_new_segment_follows(tmp_path, monkeypatch, caplog):
    clock, is_full, open_file = Clock(), [False], trust.open_file

    def on_full_disk(path, flags):
        return os.open("/dev/full", os.O_WRONLY) if is_full[0] else open_file(path, flags)

    monkeypatch.setattr(segments, "open_file", on_full_disk)
    writer = RecordWriter(tmp_path, HEADER, Bounds(), clock)
    for number in range(400):
        if number == 100:
            writer.close()
        is_full[0] = 100 <= number < 200
        if writer.begin_line():
            writer.write({"n": number})
        clock.time += 1.0
        assert bool(writer.lost) == (100 <= number < 220) or 200 <= number <= 290
    writer.close()
    lines_read, cuts = read(tmp_path)
    numbers = [line["n"] for line in lines_read]
    assert numbers[:100] == list(range(100)) and 200 <= numbers[100] <= 270 and numbers[-1] == 399 and not cuts
    errors = [record.message for record in caplog.records if record.levelname == "ERROR"]
    assert len(errors) == 1 and os.strerror(errno.ENOSPC) in errors[0]
    assert any("can be written again" in record.message for record in caplog.records)


@pytest.mark.parametrize("whole_folder", [True, False], ids=["folder", "segment"])
def test_what_is_removed_while_it_is_written_costs_lines_and_a_new_segment_follows(tmp_path, caplog, whole_folder):
    folder, clock = tmp_path / "record", Clock()
    writer = RecordWriter(folder, HEADER, Bounds(), clock)
    for number in range(400):
        if number == 100:
            shutil.rmtree(folder) if whole_folder else [path.unlink() for path in folder.iterdir()]
        if writer.begin_line():
            writer.write({"n": number})
        clock.time += 1.0
    writer.close()
    numbers = [line["n"] for line in read(folder)[0]]
    assert 100 < numbers[0] <= 300 and numbers == list(range(numbers[0], 400))
    assert [record.message for record in caplog.records if "was removed while" in record.message]
