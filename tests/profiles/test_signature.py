"""Names made of commands: what is the same work has the same name."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.profiles.signature import LONGEST, signature
from pilotfish.simulate.job import DEFAULT_PROFILE, Job


def name(*command, **more):
    return signature(Job("j", DEFAULT_PROFILE, command=command or None, **more))


def test_no_command_no_name():
    assert name() is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("./align.sh", "a.fastq"), ("/opt/bin/align.sh", "/data/b.fastq")),
        (("python3", "work.py", "cpu", "2"), ("./work.py", "cpu", "2")),
        (("/bin/sh", "-c", "./sim --steps 10"), ("./sim", "--steps", "10")),
        (("sim", "--out=/tmp/1"), ("sim", "--out=/tmp/2")),
        (("sim", "run-20240101"), ("sim", "run-20250607")),
    ],
)
def test_the_same_work(one, other):
    assert name(*one) == name(*other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("sim", "--steps", "10"), ("sim", "--steps", "20")),
        (("sim", "a.txt"), ("sim", "a.bin")),
        (("sim",), ("sum",)),
        (("git", "gc"), ("git", "log")),
    ],
)
def test_other_work(one, other):
    assert name(*one) != name(*other)


def test_threads_and_nodes_make_another_job():
    assert name("sim", environment=(("OMP_NUM_THREADS", "4"),)) != name("sim")
    assert name("sim", environment=(("COLOUR", "red"),)) == name("sim")
    assert name("sim", nodes=2) != name("sim")


def test_long_commands_stay_apart():
    long = [f"--key{i}" for i in range(100)]
    assert name("sim", *long) != name("sim", *long, "x")
    assert len(name("sim", *long)) <= LONGEST


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=30), min_size=1, max_size=5))
def test_any_command_has_a_name_that_can_be_printed(words):
    found = name(*words)
    assert found.isprintable()
    assert 0 < len(found) <= LONGEST
    assert found == found.strip()
    assert name(*words) == found
