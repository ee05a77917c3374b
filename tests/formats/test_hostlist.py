"""Node lists and CPU lists: expanding and folding."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress

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
        ("n[098-101]", ("n098", "n099", "n100", "n101")),
        ("n[98-101]", ("n98", "n99", "n100", "n101")),
        ("n[08-9]", ("n08", "n09")),
        ("n[8-010]", ("n8", "n9", "n10")),
        ("n[0-00]", ("n0",)),
        ("n[01-100]", (*(f"n{number:02}" for number in range(1, 101)),)),
        ("n[10,2]", ("n10", "n2")),
        ("n[1-2]x[09-10],b", ("n1x09", "n1x10", "n2x09", "n2x10", "b")),
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


_NUMBERS = st.integers(0, 120).flatmap(lambda number: st.integers(1, 4).map(lambda width: f"{number:0{width}}"))
_NAMES = st.lists(
    st.tuples(st.sampled_from(["n", "n", "r1n", "a-", "x", "0"]), _NUMBERS, st.sampled_from(["", "", "", "-ib"]))
    .map("".join),
    min_size=1, unique=True,
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(_NAMES)
def test_folding_and_expanding_keep_the_nodes(names):
    assert sorted(expand(fold(names))) == sorted(names)
    assert fold(names) == fold(reversed(names))


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ("n3,n1,n2,n2", "n[1-3]"),
        ("n08,n09,n10,n100", "n[08-10,100]"),
        ("n98,n99,n100,n101", "n[98-101]"),
        ("n01,n99,n100", "n[01,99-100]"),
        ("n9,n10,n010", "n[9-10,010]"),
        ("n1,n01,n2,n02", "n[1-2,01-02]"),
        ("a1b2,a1b1,a2b1", "a1b[1-2],a2b1"),
        ("a1-ib,a2-ib", "a1-ib,a2-ib"),
        ("n1,n,n2", "n,n[1-2]"),
    ],
)
def test_names_are_folded_as_slurm_folds_them(names, text):
    assert fold(names.split(",")) == text


def test_no_range_is_longer_than_slurm_reads():
    text = fold(f"n{number}" for number in range(70_000))
    assert text == "n[0-65535,65536-69999]"


_NUMBER = st.from_regex(r"[0-9]{1,3}", fullmatch=True)
_PIECE = st.one_of(_NUMBER, st.tuples(_NUMBER, _NUMBER).map("-".join))
_BRACKET = st.lists(_PIECE, min_size=1, max_size=3).map(lambda pieces: f"[{','.join(pieces)}]")
_PART = st.tuples(st.sampled_from(["n", "n1x"]), _BRACKET, st.just("") | _BRACKET.map("m".__add__)).map("".join)


def _scontrol(folder, entity: str, text: str) -> list[str] | None:
    """Return the lines that Slurm prints; None if it refuses the text."""
    (folder / "slurm.conf").write_text(
        "ClusterName=c\nSlurmctldHost=localhost\nNodeName=n1\nPartitionName=p Nodes=n1\n"
    )
    environment = os.environ | {"SLURM_CONF": str(folder / "slurm.conf")}
    command = ["scontrol", "show", entity, text]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=30)
    return answer.stdout.split() if not answer.returncode else None


needs_slurm = pytest.mark.skipif(not shutil.which("scontrol"), reason="no scontrol: Slurm's own reading was NOT tried")


@pytest.mark.real
@needs_slurm
@settings(max_examples=8, deadline=None)
@given(texts=st.lists(st.lists(_PART, min_size=1, max_size=2).map(",".join), min_size=20, max_size=20))
def test_a_hostlist_means_what_it_means_to_slurm(tmp_path_factory, texts):
    lists, names = list[str](), list[str]()
    for text in texts:
        with suppress(ConfigError):  # a number range that descends, or a name twice
            names += expand(text)
            lists.append(text)
    assert _scontrol(tmp_path_factory.mktemp("conf"), "hostnames", ",".join(lists)) == names


@pytest.mark.real
@needs_slurm
@settings(max_examples=8, deadline=None)
@given(names=_NAMES)
def test_slurm_reads_what_is_folded(tmp_path_factory, names):
    assert sorted(_scontrol(tmp_path_factory.mktemp("conf"), "hostnames", fold(names))) == sorted(names)


@pytest.mark.real
@needs_slurm
@settings(max_examples=8, deadline=None)
@given(names=_NAMES)
def test_what_slurm_folds_is_read(tmp_path_factory, names):
    (text,) = _scontrol(tmp_path_factory.mktemp("conf"), "hostlist", ",".join(names))
    assert expand(text) == tuple(names)


def test_the_size_of_a_list_is_checked_first():
    assert len(expand("n[1-100]", 100)) == 100
    with pytest.raises(ConfigError, match="at most 99 names"):
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
    assert with_cores(["n1", "n3", "n2"], [(0, 1), (2,), (0, 1)]) == "n[1-2] (cores 0-1), n3 (cores 2)"
    assert with_cores(["n1", "n2"], ()) == "n[1-2]"
