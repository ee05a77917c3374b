"""`pilotfish whatif` with several scenarios: command line and file, workers, interruption and --resume."""

from __future__ import annotations

import json
import shutil
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from pilotfish.cli.__main__ import USAGE, main
from pilotfish.cli.whatif import replay_tasks, replays
from pilotfish.cli.whatif.change_options import CHANGES, ChangeOptions
from pilotfish.cli.whatif.replay_tasks import ReplayTask, replay_task, source_of
from pilotfish.cli.whatif.scenarios import scenarios_of
from pilotfish.formats.site.recording import MARK
from pilotfish.formats.site.site_folder import read_site

from .conftest import out

DRAINED = "c[000001-000179]@0.."
FILE = f"""
schema: pilotfish/scenarios/v1
scenarios:
  drained:
    drain: "{DRAINED}"
    set: [PriorityWeightAge=5, SchedulerParameters=bf_window=99]
  fast:
    scale_load: 1.5
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "ideas.yaml"
    path.write_text(FILE)
    return path


def command(site: Path, *more: object) -> list[str]:
    return [str(word) for word in ("whatif", site, "--repeat", 2, "--workers", 1, "--json", *more)]


def test_another_version_brings_its_rules_and_its_defaults(site: Path, tmp_path: Path) -> None:
    folder = tmp_path / "site"
    shutil.copytree(site, folder)
    conf = folder / "slurm.conf"
    conf.write_text("\n".join(line for line in conf.read_text().splitlines() if not line.startswith("SelectType")))
    place = read_site(folder)
    for version, number, selects in (("23.02", (23, 2), "nodes"), ("25.11.1", (25, 11), "cores")):
        rules = ChangeOptions(slurm_version=version).changed(place, folder, UTC).rules
        assert (rules.version, rules.selects) == (number, selects)


def test_a_scenario_is_the_same_from_the_command_line_and_from_a_file(file: Path) -> None:
    texts = [
        f"drained: --drain {DRAINED} --set PriorityWeightAge=5 --set=SchedulerParameters=bf_window=99",
        "fast: --scale-load 1.5",
    ]
    typed, read = scenarios_of(ChangeOptions(), texts, None), scenarios_of(ChangeOptions(), (), file)
    assert [(one.name, one.change) for one in typed] == [(one.name, one.change) for one in read]
    assert typed[0].change.described() == [
        "--set PriorityWeightAge=5",
        "--set SchedulerParameters=bf_window=99",
        f"--drain {DRAINED}",
    ]


def test_each_option_of_a_change_can_stand_in_a_scenario() -> None:
    values = {"--scale-load": "2", "--add-nodes": "3:n1", "--policy": "easy", "--slurm-version": "25.05"}
    for option in CHANGES:
        value = values.get(option, "a.b=c")
        (one,) = scenarios_of(ChangeOptions(), [f"x: {option} '{value}'"], None)
        assert one.change.described() == [f"{option} {value}"]


def test_scenarios_are_compared_with_the_site_one_by_one(
    site: Path, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(out(capsys, *command(site, "--scenarios", file, "--scale-load", 1)))
    changed, drained, fast = document["scenarios"]
    assert [one["name"] for one in (changed, drained, fast)] == ["changed", "drained", "fast"]
    assert changed["wait"]["mean"]["after"] == changed["wait"]["mean"]["before"] == drained["wait"]["mean"]["before"]
    assert drained["wait"]["mean"]["after"] > drained["wait"]["mean"]["before"]
    assert {one["replays"] for one in document["scenarios"]} == {2}
    text = out(capsys, *(word for word in command(site, "--scenarios", file) if word != "--json"))
    assert max(map(len, text.splitlines())) <= 80
    assert text.index("SCENARIO") < text.index("\ndrained\n") < text.index("\nfast\n")


@pytest.mark.parametrize(
    ("text", "key", "allowed"),
    [
        ("scenarios: {a: {sett: X=1}}", "scenarios.a.sett", "set, set_qos"),
        ("scenarios: {a: {set: X}}", "scenarios.a.set", "KEY=VALUE"),
        ("scenarios: {a: {set: {X: 1}}}", "scenarios.a.set", "text"),
        ("scenarios: {a: {scale_load: 0}}", "scenarios.a.scale_load", "0.01 to 100"),
        ("scenarios: {a: {scale_load: fast}}", "scenarios.a.scale_load", "1.2"),
        ("scenarios: {a: {add_nodes: [1, 2]}}", "scenarios.a.add_nodes", "twice"),
        ("scenarios: {a: {drain: z1@..5}}", "scenarios.a.drain", "c000001"),
        ("scenarios: {a: {set: Foo=1}}", "scenarios.a.set", "PriorityWeightAge"),
        ("scenarios: {as it is: {set: PriorityWeightAge=1}}", "scenarios", "another name"),
        ("scenarios: {a: {}}", "scenarios.a", "changes"),
        ("scenarios: []", "scenarios", "mapping"),
    ],
)
def test_an_error_names_file_key_and_what_is_allowed(
    site: Path, file: Path, text: str, key: str, allowed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(f"schema: pilotfish/scenarios/v1\n{text}\n")
    assert main(command(site, "--scenarios", file)) == 1
    words = " ".join(capsys.readouterr().err.split())
    assert f"{file.name}: {key}: " in words and allowed in words


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "NAME: OPTIONS"),
        (": --set A=1", "NAME: OPTIONS"),
        ("a: --sett A=1", "did you mean '--set'"),
        ("a: --set", "has no value"),
        ("a: --set 'A=1", "NAME: OPTIONS"),
        ("a: --slurm-version 20.11", "22.05 or later"),
        ("a: --slurm-version new", "22.05 or later"),
        ("a: --scale-load 1 --scale-load 2", "stands twice"),
        ("a: --set Foo=1", "a: --set: a replay does not follow 'Foo'"),
        ("changed: --scale-load 1", "another name"),
        ("a23456789012345678901234567890: --scale-load 1", "24 characters"),
    ],
)
def test_a_wrong_scenario_is_refused(site: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command(site, "--scale-load", 1, "--scenario", text)) == USAGE
    assert message in " ".join(capsys.readouterr().err.split())


def stopped(after: int) -> Any:
    """Return a replay_task that is interrupted after some replays."""
    number = iter(range(after))

    def replay_or_stop(task: ReplayTask) -> dict[str, Any]:
        if next(number, None) is None:
            raise KeyboardInterrupt
        return replay_task(task)

    return replay_or_stop


def test_an_interrupted_command_prints_what_it_has_and_continues_to_the_same_result(
    site: Path, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = out(capsys, *command(site, "--scenarios", file))
    resumed = command(site, "--scenarios", file, "--resume", tmp_path / "kept")
    with monkeypatch.context() as patch:
        patch.setattr(replays, "replay_task", stopped(5))  # all scenarios with the first seed, two with the second
        assert main(resumed) == 130
    output = capsys.readouterr()
    assert [one["replays"] for one in json.loads(output.out)["scenarios"]] == [2, 1]
    assert "the same command continues" in output.err
    calls = list[ReplayTask]()
    monkeypatch.setattr(replays, "replay_task", lambda task: [calls.append(task), replay_task(task)][1])
    assert out(capsys, *resumed) == expected
    assert [(task.seed, task.change.scale_load) for task in calls] == [(1, 1.5)]


def test_a_command_stopped_before_the_first_pair_prints_nothing(
    site: Path, file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(replays, "replay_task", stopped(1))
    assert main([word for word in command(site, "--scenarios", file) if word != "--json"]) == 130
    assert capsys.readouterr().out == ""


def test_replays_under_other_compiled_rules_are_refused(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = tmp_path / "kept"
    out(capsys, *command(site, "--resume", journal))
    monkeypatch.setattr(replay_tasks, "source_stamp", lambda: "after an upgrade")
    assert main(command(site, "--resume", journal)) == 1
    assert "version of pilotfish" in capsys.readouterr().err


def test_replays_of_another_site_are_refused(site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = tmp_path / "kept"
    out(capsys, *command(site, "--resume", journal))
    content = journal.read_bytes()
    for more, words in (
        (("--zone", "Europe/Berlin"), "--zone UTC there, Europe/Berlin here"),
        (("--sacct", tmp_path / "other.psv.gz"), f"{tmp_path}/other.psv.gz is in one of them only; --sacct not given"),
    ):
        (tmp_path / "other.psv.gz").write_bytes((site / "sacct.psv.gz").read_bytes())
        assert main(command(site, "--resume", journal, *more)) == 1
        error = capsys.readouterr().err
        assert "other inputs: " in error and words in error
    assert journal.read_bytes() == content
    out(capsys, *command(site, "--resume", journal, "--repeat", 3))  # more replays of the same site are welcome
    assert journal.read_bytes().startswith(content) and len(journal.read_bytes()) > len(content)


@pytest.mark.parametrize("damage", [{"wait_s": "eAGFAAAA"}, {"wait_s": 5}, {"one_more": 1}])
def test_a_damaged_replay_is_done_again(
    damage: dict[str, Any], site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = tmp_path / "kept"
    report = out(capsys, *command(site, "--resume", journal))
    heading, row, *others = journal.read_text().splitlines()
    run = json.loads(row)
    run["numbers"] |= damage
    journal.write_text("\n".join([heading, json.dumps(run, separators=(",", ":")), *others]) + "\n")
    assert out(capsys, *command(site, "--resume", journal)) == report
    assert journal.read_text().endswith(row + "\n")


def test_a_worker_without_the_files_replays_the_same(site: Path) -> None:
    source, _ = source_of(site, None, "UTC")
    task = ReplayTask(source, 3, ChangeOptions(settings=["PriorityWeightAge=5"]))
    assert replay_task(task, source.trace.contents()) == replay_task(task)


def test_a_file_that_changes_meanwhile_fails_the_replay(site: Path, tmp_path: Path) -> None:
    from pilotfish.simulate.errors import ConfigError

    folder = tmp_path / "copy"
    folder.mkdir()
    for path in site.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    source, _ = source_of(folder, None, "UTC")
    replay_tasks._last.clear()  # as in a worker
    (folder / "qos.psv").write_text((folder / "qos.psv").read_text() + "more|0\n")
    with pytest.raises(ConfigError, match="changed while the command ran"):
        replay_task(ReplayTask(source, 0, ChangeOptions()))


def test_the_source_has_every_file_that_is_read(site: Path) -> None:
    source, _ = source_of(site, None, "UTC")
    assert source.trace.hashes.keys() == {path.name for path in site.iterdir()} - {"README", MARK}
    elsewhere, _ = source_of(site, site.parent / site.name / "sacct.psv.gz", "UTC")
    assert elsewhere.trace.kept_together


@pytest.mark.real
def test_worker_processes_give_the_same_as_this_process(
    site: Path, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = command(site, "--scenarios", file)
    argv[argv.index("--workers") + 1] = "2"
    assert out(capsys, *argv) == out(capsys, *command(site, "--scenarios", file))
