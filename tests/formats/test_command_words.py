"""The words of a command that may name its input files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.formats.command_words import MOST_FILES, named_files, program_words


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (("sort", "a.txt"), ["a.txt"]),
        (("python3", "work.py", "--in=b.bin", "5"), ["b.bin", "5"]),
        (("sh", "-c", "sort <a.txt >b.txt"), ["a.txt"]),
        (("sh", "-c", "sort < a.txt > b.txt 2> log"), ["a.txt"]),
        (("./alone",), []),
    ],
)
def test_words_that_may_be_read(command, named):
    assert [*named_files(command).values()] == named


@given(st.lists(st.text(max_size=20), min_size=1, max_size=200))
def test_any_command_has_few_named_files_after_its_program(command):
    found = named_files(command)
    assert len(found) < MOST_FILES and "0" not in found
    assert all(0 < int(place) < len(program_words(command)[0]) and name for place, name in found.items())
