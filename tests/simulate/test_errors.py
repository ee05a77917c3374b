"""Errors: a hint costs a bounded amount of work, whatever names users choose."""

import difflib
import random

import pytest

from pilotfish.simulate.errors import HINT_LETTERS, HINT_NAMES, HINT_NEAREST, did_you_mean


class Counting(difflib.SequenceMatcher):
    """Counts comparisons by the order of letters, which is what can take long, and the longest name in one."""

    compared, longest = 0, 0

    def set_seq1(self, a):
        Counting.longest = max(Counting.longest, len(a))
        super().set_seq1(a)

    def ratio(self):
        Counting.compared += 1
        return super().ratio()


def two_letters(seed):
    rng = random.Random(seed)
    return ["".join(rng.choices("ab", k=255)) for _ in range(2500)]


@pytest.mark.parametrize(
    ("names", "word"),
    [
        (two_letters(1), two_letters(2)[0]),
        (["ab" * 100 + str(number) for number in range(20_000)], "ab" * 100),
        ([f"step-{number:05}" for number in range(20_000)], "stepp-00123"),
        (["a" * number for number in range(2000)], "a" * 1500),
    ],
)
def test_the_work_of_a_hint_is_bounded(monkeypatch, names, word):
    monkeypatch.setattr(difflib, "SequenceMatcher", Counting)
    monkeypatch.setattr(Counting, "compared", 0)
    monkeypatch.setattr(Counting, "longest", 0)
    ahead = iter(names)
    did_you_mean(word, ahead)
    assert Counting.compared <= HINT_NEAREST and Counting.longest <= HINT_LETTERS
    assert len(list(ahead)) >= len(names) - HINT_NAMES


@pytest.mark.parametrize(
    ("word", "meant"),
    [("stepp-00123", "step-00123"), ("step-00999x", "step-00999"), ("set-00500", "step-00500"), ("zebra", None)],
)
def test_the_nearest_of_many_names_is_meant(word, meant):
    names = [f"step-{number:05}" for number in range(1000)]
    assert did_you_mean(word, names) == (f"; did you mean {meant!r}?" if meant else "")


def test_a_word_that_is_known_or_no_text_has_no_hint():
    assert did_you_mean("mom", ["mom", "mon"]) == did_you_mean(3, ["3"]) == did_you_mean("mom", []) == ""
