"""The words of a command that may name its input files."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.formats.command_words import MOST_FILES, MOST_LETTERS, MOST_WORDS, named_files, program_words, split_line


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (("sort", "a.txt"), ["a.txt"]),
        (("python3", "work.py", "--in=b.bin", "5"), ["b.bin", "5"]),
        (("sh", "-c", "sort <a.txt >b.txt"), ["a.txt"]),
        (("sh", "-c", "sort < a.txt > b.txt 2> log"), ["a.txt"]),
        (("./alone",), []),
        (("sh", "-c", 'sort "$1"', "sh", "a.txt"), ["$1", "sh", "a.txt"]),
    ],
)
def test_words_that_may_be_read(command, named):
    assert [*named_files(command).values()] == named


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("timeout -k 5 -s KILL 60 ./sim 3", "./sim 3 timeout -k 5 -s KILL 60"),
        ("mpirun -n 4 --map-by core ./sim a.dat", "./sim a.dat mpirun -n 4 --map-by core"),
        ("srun -n 4 nice -n 5 python3 -W error work.py 2", "work.py 2 srun -n 4 nice -n 5 -W error"),
        ("env -u HOME A=b ./sim", "./sim env -u HOME"),
        ("taskset 0x3 ./sim", "./sim taskset 0x3"),
        ("mpirun --mca btl self ./sim", "./sim mpirun --mca btl self"),
        ("nice -n 5", "nice -n 5"),
        ("python3 -", "python3 -"),
        ("env env", "env env"),
    ],
)
def test_the_program_comes_first_and_what_starts_it_last(command, words):
    assert program_words(command.split())[0] == words.split()


@given(st.lists(st.text(max_size=20), min_size=1, max_size=200))
def test_any_command_has_few_named_files_after_its_program(command):
    files = named_files(command)
    assert len(files) < MOST_FILES and "0" not in files
    assert all(0 < int(place) < len(program_words(command)[0]) and name for place, name in files.items())


@given(st.text("ab '\"\\\t\n$;=", max_size=20))
def test_a_line_is_split_as_by_a_shell(text):
    try:
        words = shlex.split(text)
    except ValueError:
        words = None
    try:
        assert split_line(text) == words
    except ValueError:
        assert words is None


@pytest.mark.parametrize(
    "command",
    [
        ("sh", "-c", "A=1 x; " * 100_000),
        ("sh", "-c", "'\n" * 50_000),
        ("nice",) * 200_000,
        ("./x", *(f"a/{number}" for number in range(100_000))),
    ],
)
def test_only_the_beginning_of_a_command_is_looked_at(command):
    words, variables = program_words(command)
    letters = sum(map(len, words)) + sum(len(name) + len(value) for name, value in variables)
    assert letters <= MOST_LETTERS and len(words) + len(variables) <= MOST_LETTERS
    assert words == program_words([word[:MOST_LETTERS] for word in command[: MOST_WORDS + 1]])[0]
