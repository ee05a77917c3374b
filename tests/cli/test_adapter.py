"""A wrong adapter, or a wrong option of one: the error names the file and the key, or `--adapter`."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotfish.cli.__main__ import main

CLUSTER = """
schema: pilotfish/cluster/v1
name: lab
node_types: {t: {cores: 4, memory: 4GiB, memory_bandwidth: 10GB/s}}
nodes: [{names: "n[1-2]", type: t}]
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    return tmp_path / "pilotfish.yaml"


def written(config: Path, adapter: str) -> Path:
    head = "schema: pilotfish/daemon/v1\ncluster: cluster.yaml\nstate_dir: state\nmetrics: {enabled: false}\n"
    config.write_text(
        f"{head}mode: shadow\naccess: {{root: true}}\nsocket: {{path: {config.parent}/s}}\nadapter: {adapter}\n"
    )
    return config


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (("doctor", "--adapter", "slurn"), "'--adapter': found 'slurn'; did you mean 'slurm'?"),
        (("doctor", "--adapter", "simulated"), "nothing to examine of 'simulated' (allowed: local, oar, slurm)"),
        (("cluster", "--adapter", "slurn"), "did you mean 'slurm'? (allowed: local, oar, slurm)"),
        (("plan", "--adapter", "slurn"), "'--adapter': found 'slurn'; did you mean 'slurm'?"),
        (("plan", "--adapter", "local"), "'--adapter': 'local' has no queue of its own"),
        (("doctor", "--adapter", "local", "--setup"), "nothing is to be set up for 'local' (allowed: oar, slurm)"),
    ],
)
def test_on_the_command_line_it_is_a_usage_error(
    argv: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 64
    output = capsys.readouterr()
    assert output.out == "" and says in " ".join(output.err.split())


@pytest.mark.real
@pytest.mark.parametrize("command", ["doctor", "plan", "reap", "daemon"])
@pytest.mark.parametrize(
    ("adapter", "says"),
    [
        ("{name: slurn}", "adapter.name: found 'slurn'; did you mean 'slurm'?"),
        ("{name: slurm, options: {partitons: [a]}}", "adapter.options.partitons: unknown option; did you mean"),
        ("{name: slurm, options: {partitions: main}}", "adapter.options.partitions: found 'main' (allowed: a list of"),
        (
            "{name: slurm, options: {timeout_s: 16}}",
            "adapter.options.timeout_s: found 16 (allowed: seconds, above 0, at",
        ),
    ],
)
def test_in_a_configuration_it_names_the_file_and_the_key(
    command: str, adapter: str, says: str, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--config", str(written(config, adapter))]) == 1
    output = capsys.readouterr()
    assert output.out == "" and f"error: {config}: {says}" in output.err and "Traceback" not in output.err
