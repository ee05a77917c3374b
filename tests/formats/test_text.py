"""Names for terminals, and numbers with units."""

from __future__ import annotations

import subprocess
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pilotfish.formats.text import (
    clean,
    count,
    counted,
    duration,
    fit,
    joules,
    pad,
    percent,
    seconds,
    shell_words,
    width,
)

anything = st.text(st.characters(codec=None), max_size=40)


@given(anything)
@settings(max_examples=200, deadline=None)
def test_clean_removes_terminal_control(text):
    for character in clean(text):
        assert unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert clean(text, ascii_only=True).isascii()
    clean(text).encode("utf-8")


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\nb\tc", "a\\x0ab\\x09c"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\udc80", "\\udc80"),
        ("[bold]x[/bold]", "[bold]x[/bold]"),
        ("作業-é", "作業-é"),
    ],
)
def test_clean_shows_what_it_escapes_and_keeps_the_rest(hostile, shown):
    assert clean(hostile) == shown


@given(anything, st.integers(0, 30), st.booleans())
@settings(max_examples=200, deadline=None)
def test_fit_and_pad_hold_the_width(text, cells, ascii_only):
    text = clean(text, ascii_only=ascii_only)
    assert width(fit(text, cells, ascii_only=ascii_only)) <= cells
    assert width(pad(text, cells, ascii_only=ascii_only)) == cells
    if width(text) <= cells:
        assert fit(text, cells) == text


def test_fit_keeps_both_ends():
    assert fit("individuals_ID0000023", 11) == "indiv…00023"
    assert fit("individuals_ID0000023", 11, ascii_only=True) == "indiv~00023"
    assert width(fit("作業作業作業", 6)) <= 6


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (seconds(1.5), "1.500 s"),
        (seconds(1234.56), "1,234.6 s"),
        (seconds(7325.0), "7,325.0 s (2:02:05)"),
        (seconds(7325.0, 1), "7,325.0 s"),
        (duration(0.00008), "80 us"),
        (duration(0.0021), "2.1 ms"),
        (duration(0.25), "250 ms"),
        (duration(3.4), "3.40 s"),
        (joules(0.5), "0.50 J"),
        (joules(999.7), "1.00 kJ"),
        (joules(56789), "56.8 kJ"),
        (joules(3.2e9), "3.20 GJ"),
        (percent(0.074), "7.4 %"),
        (percent(0.12), "12 %"),
        (percent(0.0), "0 %"),
        (count(1, "job"), "1 job"),
        (count(1200, "job"), "1,200 jobs"),
    ],
)
def test_numbers(shown, expected):
    assert shown == expected


@pytest.mark.parametrize(
    ("reasons", "text"),
    [
        ({"jobs that do not fit": 1}, "1 job that does not fit"),
        ({"jobs that do not fit": 2}, "2 jobs that do not fit"),
        ({"preceding jobs that are not earlier": 1}, "1 preceding job that is not earlier"),
        ({"records that were cut off": 1}, "1 record that was cut off"),
        ({"jobs that did not complete": 1}, "1 job that did not complete"),
        ({"dependencies on jobs that are left out": 1}, "1 dependency on jobs that are left out"),
        ({"lines without a job": 1}, "1 line without a job"),
    ],
)
def test_a_reason_agrees_with_its_number(reasons, text):
    assert counted(reasons) == text


@pytest.mark.real
@given(words=st.lists(st.text(st.characters(codec=None, exclude_characters="\0"), max_size=20), min_size=1, max_size=3))
@settings(max_examples=100, deadline=None)
@pytest.mark.parametrize("one_line", [False, True])
@example(words=["a\nb\n\n'c\n\x1b", "\n", "", "it's\n$x"])
@example(words=["\ud800"])
def test_a_shell_reads_back_the_words_of_a_line_that_is_harmless(words, one_line):
    line = shell_words(words, one_line=one_line)
    assert all(clean(part) == part for part in line.split("\n"))
    assert not one_line or line.count("\n") == sum(len(word) - len(word.rstrip("\n")) for word in words)
    script = f"printf '%s\\0' {line}"
    try:
        expected = [word.encode(errors="surrogateescape") for word in words]
    except UnicodeEncodeError:  # a surrogate that is no byte of a file name
        return
    printed = subprocess.run(["sh", "-c", script], capture_output=True, check=True).stdout
    assert printed.split(b"\0")[:-1] == expected
