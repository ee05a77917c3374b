"""YAML and JSON text as plain values."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.formats.documents.files import parse_json, parse_yaml
from pilotfish.simulate.errors import ConfigError

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF), max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abcxyz", min_size=1), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=50, deadline=None)
@given(PLAIN)
def test_written_yaml_and_json_read_back(value):
    assert parse_json(json.dumps(value), "x") == value
    assert parse_yaml(json.dumps(value), "x") == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2.4e9", 2.4e9),
        ("1.", 1.0),
        (".5", 0.5),
        ("+1.5", 1.5),
        ("-3", -3),
        ("007", "007"),
        ("0x1F", "0x1F"),
        ("00:10:00", "00:10:00"),
        ("1:30", "1:30"),
        ("no", "no"),
        ("on", "on"),
        ("TRUE", True),
        ("~", None),
        ("'1'", "1"),
        ('"true"', "true"),
        ("!!str 12", "12"),
        ("2020-01-01", "2020-01-01"),
        (".inf", ".inf"),
    ],
)
def test_scalars_follow_the_core_schema(text, value):
    read = parse_yaml(f"[{text}]", "x")[0]
    assert read == value
    assert isinstance(read, type(value))


def test_a_number_keeps_its_spelling():
    assert [str(value) for value in parse_yaml("[0.50, 1e3, 5]", "x")] == ["0.50", "1e3", "5"]


def test_aliases_and_merges():
    text = "base: &b {x: 1, y: 2}\nother: {<<: *b, y: 3}\nsame: *b\nboth: {<<: [*b, {z: 4}]}"
    read = parse_yaml(text, "x")
    assert read["other"] == {"x": 1, "y": 3}
    assert read["same"] == {"x": 1, "y": 2}
    assert read["both"] == {"x": 1, "y": 2, "z": 4}


BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "key", "problem"),
    [
        ("a: 1\na: 2", "line 2", "given twice"),
        ("a: [1}", "line 1", "not YAML"),
        ("a: 1\n b: 2", "line 2", "not YAML"),
        ("a: {b: 1, b: 2}", "line 1", "given twice"),
        ("? [a]\n: 1", "line 1", "a key is a list"),
        ("a: &x b\n*x : 1", "line 2", "a key is an alias"),
        ("a: *nothing", "line 1", "is undefined"),
        ("a: &a [*a]", "line 1", "contains itself"),
        ("a: !!python/object:os.system x", "line 1", "the tag"),
        ("a: !!int x", "line 1", "the tag"),
        ("a: !mine {}", "line 1", "the tag"),
        ("a: 1\n---\nb: 1", "line 2", "a second document"),
        ("<<: 3", "line 1", "after '<<'"),
        ("[" * 70, "line 1", "nested more than"),
        ("- " * 70, "line 1", "nested more than"),
        ("[" * 5000, "line 1", "nest"),  # the parser of PyYAML 6.0.4 has a limit of its own
        ("- " * 5000, "line 1", "nest"),
        ("a: b: c", "line 1", "not YAML"),
        ("\tx: 1", "line 1", "not YAML"),
        (BOMB, "line 7", "aliases count in full"),
        ("a: \x7f", "", "not YAML"),
    ],
)
def test_bad_yaml_is_one_error_with_its_line(text, key, problem):
    with pytest.raises(ConfigError) as caught:
        parse_yaml(text, "file.yaml")
    assert problem in caught.value.problem
    assert caught.value.key == key
    assert str(caught.value).startswith("file.yaml: ")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1, "a": 2}', "given twice"),
        ('{"a": }', "not JSON"),
        ("", "not JSON"),
        ('{"a": 1} x', "not JSON"),
        ("[" * 100000, "nested too deep"),
        ('{"a":' * 100000, "nested too deep"),
        ("9" * 5000, "not JSON"),
        ('{"a": "\n"}', "not JSON"),
    ],
)
def test_bad_json_is_one_error(text, problem):
    with pytest.raises(ConfigError, match=problem):
        parse_json(text, "file.json")


@settings(max_examples=100, deadline=None)
@given(st.text(st.sampled_from("ab:-[]{}&*!|>'\"#%@`,? \n\t0.<~"), max_size=40))
def test_noise_is_read_or_refused_like_the_reference(text):
    """Text that PyYAML reads as one document of plain values is read; text that it refuses is refused."""
    try:
        ours = parse_yaml(text, "x")
    except ConfigError:
        return
    with_reference = yaml.load(text, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))
    assert isinstance(ours, dict) == isinstance(with_reference, dict)
    assert isinstance(ours, list) == isinstance(with_reference, list)
    if isinstance(ours, str):
        assert ours == with_reference
