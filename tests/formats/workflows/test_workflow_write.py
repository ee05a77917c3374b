"""Writing workflow files: they read back as the same jobs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.formats.workflows.workflow import dump_workflow, read_workflow
from pilotfish.simulate.generate.workflows import stream
from pilotfish.simulate.model.job import Distribution, Job, PeerWait, Phase, Profile, ThreadGroup, Workflow

NAMES = st.one_of(
    st.sampled_from(["j0", "no", "1e3", "~", "00:10:00", "a: b", "#", "it's", '"', "\\", "-", "{", "日本", "null"]),
    st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1, max_size=8),
)
WORDS = st.one_of(NAMES, st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8))
SECONDS = st.floats(1e-3, 1e9)
DEMANDS = st.one_of(
    SECONDS,
    st.builds(Distribution, st.just("lognormal"), SECONDS, st.floats(0, 3)),
    st.builds(lambda low, more: Distribution("uniform", low=low, high=low + more), SECONDS, SECONDS),
    st.builds(lambda *values: Distribution("empirical", values=values), SECONDS, SECONDS),
)
GROUPS = st.one_of(
    st.builds(ThreadGroup, st.integers(1, 99), DEMANDS, st.floats(0.01, 1), st.floats(0, 1), st.floats(0, 1e11)),
    st.builds(
        lambda count, share: ThreadGroup(count, 5.0, phases=(Phase(share, 0.5, 1e9), Phase(1.0 - share, 1.0, 0.0))),
        st.integers(1, 9),
        st.sampled_from([0.25, 0.5, 0.9]),
    ),
)
PROFILES = st.builds(
    lambda groups, memory: Profile(tuple(groups), memory=memory),
    st.lists(GROUPS, min_size=1, max_size=2),
    st.floats(0, 1e12),
)


@st.composite
def workflows(draw: st.DrawFn) -> Workflow:
    """Draw jobs with every key of the file."""
    jobs: list[Job] = []
    for name in draw(st.lists(NAMES, min_size=1, max_size=5, unique=True)):
        before = draw(st.lists(st.sampled_from(jobs), unique_by=lambda job: job.id, max_size=2)) if jobs else []
        command = draw(st.none() | st.tuples(NAMES) | st.tuples(NAMES, WORDS, WORDS))
        environment = draw(st.dictionaries(st.sampled_from(["A", "no", "Y_1"]), WORDS, max_size=2))
        jobs.append(
            Job(
                name,
                draw(PROFILES),
                after=tuple(job.id for job in before),
                nodes=draw(st.integers(1, 9)),
                memory=draw(st.sampled_from([0.0, 2.0**31])),
                walltime=draw(st.none() | SECONDS),
                command=command,
                environment=tuple(environment.items()),
                directory=draw(st.none() | NAMES),
                wait=draw(st.sampled_from(PeerWait)),
            )
        )
    return Workflow(draw(NAMES.filter(lambda name: "/" not in name)), tuple(jobs))


@given(workflows())
@settings(deadline=None)
def test_a_written_workflow_reads_back(tmp_path_factory: pytest.TempPathFactory, flow: Workflow) -> None:
    path = tmp_path_factory.mktemp("flow") / "dag.yaml"
    path.write_text(dump_workflow(flow, ("a\nnote",)), encoding="utf-8")
    read = read_workflow(path)
    assert (read.name, read.jobs) == (flow.name, flow.jobs) and not read.warnings


def test_other_yaml_readers_read_the_same_values(tmp_path: Path) -> None:
    flow = stream(100, seed=4)
    text = dump_workflow(flow)
    (tmp_path / "dag.yaml").write_text(text)
    bare = tuple(replace(job, profile=replace(job.profile, name="")) for job in flow.jobs)
    assert read_workflow(tmp_path / "dag.yaml").jobs == bare
    document = yaml.safe_load(text)
    assert document["schema"] == "pilotfish/workflow/v1" and list(document["jobs"]) == [job.id for job in flow.jobs]
    assert document["jobs"]["j0"]["profile"]["threads"] == flow.jobs[0].profile.threads
