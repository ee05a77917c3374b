"""Properties that stay within the brackets around them: compared with a naive reading, and with the shim's."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.adapters.oar.records.requests import contained
from tests.adapters.oar.test_shim import PERL, perl

TOKENS = ["(", ")", "'", '"', "''", "\\", "--", "/*", "*/", "$$", "$a$", "#", ";", "`", "E'", "\n", " ", "1=1", "OR"]
TEXTS = st.lists(st.sampled_from(TOKENS), max_size=14).map("".join)
#: Print whether the shim finds that texts (JSON on stdin) stay within brackets.
CONTAINED = """use PilotfishShim 'check'; use JSON::PP; local $/;
print encode_json([map { PilotfishShim::contained($_) ? 1 : 0 } @{decode_json(<STDIN>)}]);"""


def naively_contained(sql: str) -> bool:
    """Read one character after another: brackets outside quotes never close more than was opened, and all close."""
    quote, depth = "", 0
    for character in sql:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in "()":
            depth += 1 if character == "(" else -1
            if depth < 0:
                return False
    return not quote and depth == 0


@given(TEXTS)
def test_what_is_contained_never_closes_more_than_it_opened(sql: str) -> None:
    plain = not any(odd in sql for odd in ("--", "/*", "$", "#", ";", "`", "\\"))
    if plain:
        assert contained(sql) == naively_contained(sql)
    elif contained(sql):
        assert naively_contained(sql)


@pytest.mark.real
@pytest.mark.parametrize(
    ("sql", "stays"),
    [
        ("", True),
        ("(desktop_computing = 'NO') AND drain='NO'", True),
        ("(1=1) OR (1=1) AND a = 'x)'", True),
        ("a ~ '^node[0-9]+\\.site$' and \"odd)name\" = 1", True),
        ("(1=1))) OR (((1=1)", False),
        ("1=1 --", False),
        ("1=1 /* ) */", False),
        ("$$ (( $$ <> '' )) OR ((1=1", False),
        ("a = E'\\'' ) OR ( b = '", False),
        ("a = 'it''s)'", True),
        ("a = 'x", False),
        ("(" * 2048 + ")" * 2048, True),
        ("(" * 2049 + ")" * 2049, False),
    ],
)
def test_properties_that_users_write(sql: str, stays: bool) -> None:
    assert contained(sql) is stays
    assert not PERL.exists() or json.loads(perl(CONTAINED, stdin=json.dumps([sql]))) == [int(stays)]


@pytest.mark.real
@pytest.mark.skipif(not PERL.exists(), reason="no Perl here: the shim for OAR is not tested")
@settings(max_examples=10)
@given(st.lists(TEXTS, min_size=50, max_size=200))
def test_the_shim_decides_in_the_same_way(texts: list[str]) -> None:
    assert json.loads(perl(CONTAINED, stdin=json.dumps(texts))) == [int(contained(sql)) for sql in texts]
