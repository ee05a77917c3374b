"""The configuration: every invalid file is one error that names file and key."""

import re
from pathlib import Path

import pytest

from pilotfish.daemon.config import changed_keys, load_config
from pilotfish.simulate.errors import ConfigError

HEAD = "schema: pilotfish/daemon/v1\ncluster: lab.yaml\n"


def write(tmp_path, text):
    path = tmp_path / "pilotfish.yaml"
    path.write_text(text)
    return path


def test_paths_are_relative_to_the_file(tmp_path):
    config = load_config(write(tmp_path, HEAD + "state_dir: state\nsocket: {path: /run/p.sock}\n"))
    assert config.cluster == str(tmp_path / "lab.yaml")
    assert config.journal == tmp_path / "state" / "journal.sqlite"
    assert config.endpoint == "/run/p.sock" and config.event_socket == Path("/run/events.sock")
    config = load_config(write(tmp_path, HEAD + "socket: {path: ipc://p.sock}\nevents: {path: e.sock}\n"))
    assert config.endpoint == str(tmp_path / "p.sock") and config.event_socket == tmp_path / "e.sock"


@pytest.mark.parametrize(
    ("text", "key", "says"),
    [
        ("cluster: x\n", "schema", "missing"),
        ("schema: pilotfish/daemon/v2\ncluster: x\n", "schema", "pilotfish/daemon/v1"),
        ("schema: pilotfish/daemon/v1\n", "cluster", "missing"),
        (HEAD + "polcy: mom\n", "polcy", "did you mean 'policy'"),
        (HEAD + "policy: best\n", "policy", "found 'best' (allowed: 'lookahead', "),
        (HEAD + "budget: 0\n", "budget", "greater than or equal to 1"),
        (HEAD + "budget: '5'\n", "budget", "'5'"),
        (HEAD + "budget: 1.5\n", "budget", "1.5"),
        (HEAD + "cycle_seconds: 0\n", "cycle_seconds", "0.05"),
        (HEAD + "time_limit: -1\n", "time_limit", "greater than 0"),
        (HEAD + "mode: sometimes\n", "mode", "'sometimes'"),
        (HEAD + "handover: {share: 10}\n", "handover.share", "found 10 (allowed: a share from 0% to 100%, such as"),
        (HEAD + "handover: {share: 110%}\n", "handover.share", "such as 10% or 0.1"),
        (HEAD + "handover: {share: ten%}\n", "handover.share", "such as 10% or 0.1"),
        (HEAD + "handover: {share: true}\n", "handover.share", "such as 10% or 0.1"),
        (HEAD + "handover: {part: 1}\n", "handover.part", "unknown key"),
        (HEAD + "dry_run: true\n", "dry_run", "unknown key"),
        (HEAD + "metrics: {port: 70000}\n", "metrics.port", "65535"),
        (HEAD + "metrics: {prot: 1}\n", "metrics.prot", "did you mean 'port'"),
        (HEAD + "metrics: 9836\n", "metrics", "9836"),
        (HEAD + "socket: {mode: '0777'}\n", "socket.mode", "0660"),
        (HEAD + f"socket: {{path: /{'p' * 107}}}\n", "socket.path", "at most 107 bytes"),
        (HEAD + "events: {path: ''}\n", "events.path", "the path of a socket"),
        (HEAD + "guard: {window: 0}\n", "guard.window", "0"),
        (HEAD + "adapter: slurm\n", "adapter", "found 'slurm' (allowed: a mapping of keys to values)"),
        (HEAD + "log: {level: loud}\n", "log.level", "'loud'"),
        (HEAD + "objective: speed\n", "objective", "'speed'"),
        (HEAD + "counters: all\n", "counters", "found 'all' (allowed: auto, none, or a list of resctrl, perf, "),
        (HEAD + "counters: [perf, vtune]\n", "counters", "auto, none, or a list of "),
        (HEAD + "counters: []\n", "counters", "auto, none, or a list of "),
        (HEAD + "counters: 3\n", "counters", "found 3 (allowed: auto"),
        (HEAD + "objective: mix:2\n", "objective", "mix:2"),
        ("[1, 2]\n", "", "mapping"),
        ("a: [\n", "", "YAML"),
        ("", "", "empty"),
    ],
)
def test_wrong_files(tmp_path, text, key, says):
    path = write(tmp_path, text)
    with pytest.raises(ConfigError, match=re.escape(says)) as caught:
        load_config(path)
    assert str(caught.value).startswith(f"{path}: {key}" if key else str(path))
    assert "\n" not in str(caught.value)


def test_a_missing_file(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(tmp_path / "none.yaml")


def test_changed_keys_are_named(tmp_path):
    old = load_config(write(tmp_path, HEAD))
    new = load_config(write(tmp_path, HEAD + "policy: mom\nguard: {window: 5}\n"))
    assert changed_keys(old, new) == {"policy", "guard"}


def test_the_policies_are_the_planners():

    from pilotfish.daemon.config_sections import BUILT_IN_POLICIES
    from pilotfish.simulate.planning.planner import POLICIES

    assert set(BUILT_IN_POLICIES) == {name for name in POLICIES if ":" not in name}


@pytest.mark.parametrize(("text", "share"), [("10%", 0.1), ("0.1", 0.1), ("0", 0.0), ("1", 1.0), ("'2.5 %'", 0.025)])
def test_a_share_is_a_percentage_or_a_number(tmp_path, text, share):
    section = load_config(write(tmp_path, HEAD + f"handover: {{share: {text}}}\n")).handover
    assert section.share == pytest.approx(share) and (section.canary is None) is (share == 1.0)
    assert load_config(write(tmp_path, HEAD)).handover.canary is None
