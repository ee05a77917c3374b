"""Rules for every job: what the kernel would refuse, and what would take long to plan, is refused by every reader."""

import os
import subprocess
from dataclasses import replace

import pytest

from pilotfish.formats.workflows.job_rules import LARGEST_COMMAND, LARGEST_WORD, MOST_PHASES, MOST_VALUES
from pilotfish.formats.workflows.workflow_tasks import check_workflow
from pilotfish.simulate.errors import InvalidJobError
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Distribution, Job, Phase, Profile, ThreadGroup, Workflow

JOB = Job("a", DEFAULT_PROFILE, command=("true",))


def problem(**changes):
    try:
        check_workflow(Workflow("w", (replace(JOB, **changes),)))
    except InvalidJobError as error:
        return str(error)
    return ""


def started(words, variables):
    try:
        return subprocess.run(["/bin/true", *words], env=variables, check=False).returncode == 0
    except OSError:
        return False


@pytest.mark.real
@pytest.mark.parametrize("letter", ["x", "é"])
@pytest.mark.parametrize("over", [0, 1])
def test_a_word_and_a_variable_are_refused_where_execve_refuses_them(letter, over):
    size = len(letter.encode())
    word, value = (letter * ((LARGEST_WORD - prefix) // size) + "x" * ((LARGEST_WORD - prefix) % size + over)
                   for prefix in (0, 2))  # fmt: skip
    assert bool(problem(command=("true", word))) == (not started([word], {})) == bool(over)
    assert bool(problem(environment=(("A", value),))) == (not started([], {"A": value})) == bool(over)


def test_the_error_names_sizes_and_no_value():
    assert "the command has a word of 131,072 bytes, with which no program starts (allowed: 131,071)" in problem(
        command=("x" * 2**17,)
    )
    text = problem(environment=(("TOKEN", "s3cret" * 30_000),))
    assert "'TOKEN' has 180,006 bytes" in text and "s3cret" not in text


@pytest.mark.real
def test_a_whole_command_is_refused_where_execve_refuses_it_under_the_usual_limit():
    half = tuple("x" * 100_000 for _ in range(LARGEST_COMMAND // 100_009 // 2))
    assert not problem(command=half)
    if os.sysconf("SC_ARG_MAX") == 2**21:
        assert started(half, {}) and not started(half * 2 + half[:2], {})
    assert "allowed: 2,097,152" in problem(command=half * 2 + half[:2])
    assert "allowed: 2,097,152" in problem(environment=tuple((f"A{i}", "x") for i in range(200_000)))


@pytest.mark.parametrize(
    ("group", "says"),
    [
        (ThreadGroup(1, 1.0, phases=(Phase(1.0 / (MOST_PHASES + 1), 1.0, 0.0),) * (MOST_PHASES + 1)), "1,002 groups"),
        (ThreadGroup(1, Distribution("empirical", values=(1.0,) * (MOST_VALUES + 1))), "10,001 values"),
    ],
)
def test_a_profile_has_a_bounded_number_of_parts(group, says):
    assert says in problem(profile=Profile((group,)))
    assert not problem(profile=Profile((ThreadGroup(1, Distribution("empirical", values=(1.0,) * MOST_VALUES)),)))
    assert "1,001 groups" in problem(profile=Profile((ThreadGroup(1, 1.0),) * (MOST_PHASES + 1)))


def test_facts_and_paths_are_bounded():
    facts = tuple((f"f{number}", 1.0) for number in range(1001))
    about = replace(DEFAULT_PROFILE.provenance, strain=facts)
    assert "more than 1000" in problem(profile=replace(DEFAULT_PROFILE, provenance=about))
    assert "more than 1000" in problem(inputs=facts) and "more than 1000" in problem(traits=facts)
    assert "at most 4096" in problem(directory="/" + "d" * 4096)


def test_a_long_cycle_is_named_in_short_and_one_hint_is_made():
    jobs = [Job(f"j{number}", DEFAULT_PROFILE, after=(f"j{(number + 1) % 5000}",)) for number in range(5000)]
    with pytest.raises(InvalidJobError, match=r"in a cycle: j\d+ -> .*\.\.\. -> j\d+$") as raised:
        check_workflow(Workflow("w", tuple(jobs)))
    assert len(str(raised.value)) < 200
