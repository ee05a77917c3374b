"""Node lists and CPU lists: expanding and folding."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.formats.hostlist import expand, fold, fold_cpus, parse_cpus, with_cores
from pilotfish.simulate.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a", ("a",)),
        ("node-1.cluster", ("node-1.cluster",)),
        ("b,a", ("b", "a")),
        ("n[1-3]", ("n1", "n2", "n3")),
        ("n[08-10]", ("n08", "n09", "n10")),
        ("n[1-4,7]", ("n1", "n2", "n3", "n4", "n7")),
        ("n[1-9/4]", ("n1", "n5", "n9")),
        ("z,n[1-2]-ib", ("z", "n1-ib", "n2-ib")),
        ("r[1-2]n[1-2]", ("r1n1", "r1n2", "r2n1", "r2n2")),
    ],
)
def test_a_hostlist_is_expanded_in_order(text, names):
    assert expand(text) == names


@pytest.mark.parametrize(
    "text",
    [
        "",
        ",",
        "a,",
        "a,,b",
        "n[1-3",
        "n1-3]",
        "n[3-1]",
        "n[]",
        "n[a-b]",
        "n[1-]",
        "@all",
        "@*",
        "a!b",
        "a&b",
        "n%s",
        "a b",
        "-n1",
        "$(reboot)",
        "n';drop table jobs;--",
        "n[1-999999999999]",
        "n[1-1000]m[1-1000]o[1-1000]",
        "a,a",
        "n[1-3],n2",
        "n\n1",
        "né",
        "n" * 300,
        None,
        7,
        ["a"],
        True,
    ],
)
def test_an_invalid_hostlist_is_refused(text):
    with pytest.raises(ConfigError):
        expand(text)


def test_plain_names_do_not_import_clustershell():
    code = (
        "import sys; from pilotfish.formats.hostlist import expand, fold;"
        "assert expand('a,b,n1') == ('a', 'b', 'n1') and fold(['a']) == 'a';"
        "sys.exit('ClusterShell' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@settings(max_examples=50, deadline=None)
@given(st.sets(st.integers(0, 300), min_size=1))
def test_folding_and_expanding_keep_the_nodes(numbers):
    names = [f"n{number}" for number in numbers]
    assert set(expand(fold(names))) == set(names)


_NAMED = st.builds("{}{}".format, st.sampled_from(["n", "n", "r1n", "a-", "x0"]), st.sampled_from(["", "0", "7", "12"]))
_NAMES = st.lists(_NAMED | st.integers(1, 12).map("n{}".format) | st.integers(8, 11).map("n{:02}".format), min_size=2)


@settings(max_examples=200, deadline=None)
@given(_NAMES)
def test_names_are_folded_as_clustershell_folds_them(names):
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

    assert fold(names) == str(NodeSet.fromlist(names, resolver=RESOLVER_NOGROUP))


@settings(max_examples=50, deadline=None)
@given(st.sets(st.integers(0, 200), min_size=1))
def test_cpu_lists_are_read_back(cpus):
    assert parse_cpus(fold_cpus(cpus)) == tuple(sorted(cpus))


_NUMBER = st.from_regex(r"[0-9]{1,2}", fullmatch=True)
_PIECE = st.one_of(_NUMBER, st.tuples(_NUMBER, _NUMBER).map("-".join))
_BRACKET = st.lists(_PIECE, min_size=1, max_size=3).map(lambda pieces: f"[{','.join(pieces)}]")


@settings(max_examples=100, deadline=None)
@given(st.tuples(st.just("n"), _BRACKET, st.sampled_from(["-ib", "m"]), st.just("") | _BRACKET).map("".join))
def test_brackets_mean_what_they_mean_to_clustershell(text):
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

    try:
        expected = tuple(NodeSet(text, resolver=RESOLVER_NOGROUP))
    except NodeSetException:
        expected = None
    try:
        names = expand(text)
    except ConfigError:
        names = None
    assert (names is None) == (expected is None) or "-0" in text  # ClusterShell takes 0-00 for 0
    if names is not None:
        assert set(names) == set(expected)
        if text.count("[") == 1:
            assert names == expected


def test_the_size_of_a_list_is_checked_first():
    assert len(expand("n[1-100]", 100)) == 100
    with pytest.raises(ConfigError, match="at most 99 nodes"):
        expand("n[1-100]", 99)


def test_a_text_of_a_million_characters_is_refused_unread():
    names = [f"{'n' * 240}{number:05d}" for number in range(4065)]
    assert len(",".join(names)) < 1_000_000 and expand(",".join(names)) == tuple(names)
    with pytest.raises(ConfigError):
        expand(",".join([*names, "m" * 80]))


def test_cpu_lists():
    assert parse_cpus("0-3,6") == (0, 1, 2, 3, 6)
    assert parse_cpus(0) == (0,)
    assert fold_cpus([6, 0, 1, 2, 3]) == "0-3,6"


@pytest.mark.parametrize("value", ["", "3-1", "a", "0-99999999999", "1,1", "-1", -1, True, None, [0], 1.5, 10**9])
def test_an_invalid_cpu_list_is_refused(value):
    with pytest.raises(ConfigError):
        parse_cpus(value)


def test_nodes_with_their_cores() -> None:
    assert with_cores(["a", "b"], [(0, 1, 2, 5), (4,)]) == "a (cores 0-2,5), b (cores 4)"
    assert with_cores(["a", "b"], ()) == "a, b"
