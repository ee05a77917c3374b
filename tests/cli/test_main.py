"""The command line as a whole: exit codes, streams, what is imported when."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pilotfish.built_from import full_version
from pilotfish.cli import lazy
from pilotfish.cli.__main__ import Pilotfish, main
from pilotfish.simulate.errors import ConfigError, InvariantError

HEAVY = ("numba", "numpy", "rich", "networkx", "pydantic", "zmq", "prometheus_client", "matplotlib", "psutil")


def process(*argv: str, **changes: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **changes}
    command = [sys.executable, "-m", "pilotfish.cli", *argv]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)


def imports(*argv: str) -> subprocess.CompletedProcess[str]:
    """Run a command; the last line of stderr names the heavy packages that it imported."""
    code = (
        f"import sys; from pilotfish.cli.__main__ import main; code = main({argv!r});"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr); sys.exit(code)"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)


@pytest.mark.real
def test_a_plain_replay_imports_no_other_world_and_no_other_format(tmp_path: Path) -> None:
    (tmp_path / "t.swf").write_text("; MaxProcs: 8\n1 0 0 10 4 -1 -1 4 20 -1 1 1 1 -1 -1 -1 -1 -1\n")
    others = ("simulate.replay.worlds", "simulate.planning", "simulate.world.world_parts", "formats.batsim", "formats.workflows",
              "formats.replays.irmasim", "simulate.queue_policies.interface", "simulate.queue_policies.energy.power_limits")  # fmt: skip
    code = (
        f"import sys; from pilotfish.cli.__main__ import main; code = main(['simulate', {str(tmp_path / 't.swf')!r}]);"
        f"print([name for name in {others!r} if 'pilotfish.' + name in sys.modules], file=sys.stderr); sys.exit(code)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0 and result.stderr.splitlines()[-1] == "[]", result.stderr


@pytest.mark.real
def test_who_asks_the_daemon_imports_nothing_heavy(tmp_path):
    result = imports("status", "--socket", str(tmp_path / "absent"))
    assert result.returncode == 1 and result.stderr.splitlines()[-1] == "[]", result.stderr


@pytest.mark.real
def test_profiles_are_listed_and_pins_released_without_numpy(tmp_path):
    (tmp_path / "c.yaml").write_text(
        "schema: pilotfish/cluster/v1\nnode_types: {t: {cores: 1, memory: 1GiB, memory_bandwidth: 1GB/s}}\n"
        "nodes: [{names: a, type: t}]\n"
    )
    config = tmp_path / "p.yaml"
    adapter = "{name: slurm, options: {comment: true}}"
    config.write_text(f"schema: pilotfish/daemon/v1\ncluster: c.yaml\nstate_dir: {tmp_path}/s\nadapter: {adapter}\n")
    for argv in (("profile", "list", "--store", str(tmp_path / "p.sqlite")), ("reap", "--config", str(config))):
        result = imports(*argv)
        assert "Traceback" not in result.stderr and "p.yaml: " not in result.stderr, result.stderr
        assert "'numpy'" not in result.stderr.splitlines()[-1], result.stderr


@pytest.mark.real
def test_help_lists_every_command_and_imports_nothing_heavy():
    result = imports("--help")
    assert result.returncode == 0 and result.stderr == "[]\n"
    for name, command in Pilotfish.lazy.items():
        assert f"  {name}" in result.stdout and command.summary in result.stdout
    assert "Examples:" in result.stdout and max(map(len, result.stdout.splitlines())) <= 80


@pytest.mark.parametrize("name", list(Pilotfish.lazy))
def test_every_command_has_help_with_examples(name, capsys):
    assert main([name, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"Usage: pilotfish {name}" in text and max(map(len, text.splitlines())) <= 80
    if "COMMAND [ARGS]" not in text:
        assert f"pilotfish {name}" in text.partition("Examples:")[2]


@pytest.mark.parametrize("group", ["profile", "predict", "generate"])
def test_commands_of_a_group_are_listed_whole_and_their_help_fits(group, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main([group, "--help"]) == 0
    listed = capsys.readouterr().out.partition("Commands:\n")[2].splitlines()
    assert listed and not [line for line in listed if line.endswith("...")]
    for name in (line.split()[0] for line in listed if line[2] != " "):
        assert main([group, name, "--help"]) == 0
        assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"pilotfish {full_version()}\n"


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["plna"],
        ["--nonsense"],
        ["plan"],
        ["plan", "dag.yaml"],
        ["plan", "dag.yaml", "--cluster"],
        ["plan", "dag.yaml", "--cluster", "c.yaml", "--seed", "-1"],
        ["plan", "dag.yaml", "--cluster", "c.yaml", "--budget", "0"],
        ["plan", "dag.yaml", "--cluster", "c.yaml", "--export", "pbs"],
        ["run", "dag.yaml", "--metrics-port", "99999"],
    ],
)
def test_a_wrong_command_line_is_64_and_says_so_on_stderr(argv, capsys):
    assert main(argv) == 64
    output = capsys.readouterr()
    assert (output.out == "" and "Error: " in output.err) or argv == []


@pytest.mark.parametrize("argv", [[], ["profile"], ["predict"], ["generate"]])
def test_a_group_without_a_command_shows_its_help(argv, capsys):
    assert main([*argv, "--help"]) == 0
    help = capsys.readouterr().out
    assert main(argv) == 64
    assert capsys.readouterr() == ("", help)


def test_text_of_a_user_cannot_forge_a_line_of_an_error(capsys):
    assert main(["plan", "--x\nError: all is lost"]) == 64
    assert "\\x0aError: all is lost" in capsys.readouterr().err


def test_a_misspelt_command_gets_a_hint(capsys):
    main(["plna"])
    assert "'plan'" in capsys.readouterr().err


@pytest.fixture
def failing(monkeypatch):
    """Make `pilotfish plan` raise what it is given."""

    def arrange(error: BaseException) -> None:
        def load(self, name):
            raise error

        monkeypatch.setattr(lazy.Lazy, "load", load)

    return arrange


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ConfigError("c.yaml", "nodes", "found 3"), 1, "pilotfish: error: c.yaml: nodes: found 3\n"),
        (ConfigError("\x1b[2J", "", "a\nb"), 1, "pilotfish: error: \\x1b[2J: a\\x0ab\n"),
        (
            PermissionError(13, "Permission denied", "x.svg"),
            1,
            "pilotfish: error: x.svg: Permission denied\n",
        ),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_errors_are_one_line(error, code, said, failing, capsys):
    failing(error)
    assert main(["plan"]) == code
    assert capsys.readouterr() == ("", said)


@pytest.mark.parametrize("error", [ZeroDivisionError("oops"), InvariantError("oops"), OSError("oops")])
def test_a_bug_of_ours_asks_for_a_report_and_hides_the_traceback(error, failing, capsys, monkeypatch):
    failing(error)
    monkeypatch.delenv("PILOTFISH_DEBUG", raising=False)
    assert main(["plan"]) == 1
    stderr = capsys.readouterr().err
    assert stderr.count("\n") == 1 and "oops" in stderr and "report" in stderr and "Traceback" not in stderr
    monkeypatch.setenv("PILOTFISH_DEBUG", "1")
    assert main(["plan"]) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.real
def test_a_closed_pipe_is_silent():
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run(
        [sys.executable, "-m", "pilotfish.cli", "--help"],
        stdout=writer,
        stderr=subprocess.PIPE,
        timeout=60,
    )
    os.close(writer)
    assert result.stderr == b"" and result.returncode == 141


@pytest.mark.real
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_streams_that_were_closed_before_it_began_are_no_error(closed):
    pilotfish = f"{sys.executable} -m pilotfish.cli"
    script = f"{pilotfish} --version {closed} && ! {pilotfish} plan none.yaml -c none.yaml {closed}"
    result = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0 and "Traceback" not in result.stderr
    assert "none.yaml" not in result.stdout


@pytest.mark.real
def test_a_result_for_which_there_is_no_room_is_one_line():
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "pilotfish.cli", "--version"], stdout=full, stderr=subprocess.PIPE, timeout=60
        )
    message = b"pilotfish: error: the output cannot be written: No space left on device\n"
    assert (result.returncode, result.stderr) == (1, message)


@pytest.mark.real
def test_diagnostics_for_which_there_is_no_room_change_nothing():
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "pilotfish.cli", "plan", "none.yaml", "-c", "none.yaml"]
        assert subprocess.run(command, stderr=full, timeout=60).returncode == 1


@pytest.mark.real
def test_completion_knows_commands_and_options():
    ask = {"_PILOTFISH_COMPLETE": "complete_bash"}
    result = process(COMP_WORDS="pilotfish ", COMP_CWORD="1", **ask)
    assert set(Pilotfish.lazy) <= set(result.stdout.split())
    result = process(COMP_WORDS="pilotfish plan --comp", COMP_CWORD="2", **ask)
    assert result.stdout.split() == ["--compare"]


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path, capsys):
    missing = tmp_path / "none.yaml"
    assert main(["plan", str(missing), "--cluster", str(missing)]) == 1
    output = capsys.readouterr()
    assert output.out == "" and str(missing) in output.err and output.err.count("\n") == 1


def test_an_input_that_cannot_be_reached_says_why(tmp_path: Path, capsys):
    (tmp_path / "circle.swf").symlink_to(tmp_path / "circle.swf")
    (tmp_path / "file").touch()
    for name, why in (
        ("circle.swf", "Too many levels"),
        ("file/a.swf", "Not a directory"),
        ("gone.swf", "No such file"),
    ):
        assert main(["simulate", str(tmp_path / name)]) == 1
        error = capsys.readouterr().err
        assert error.startswith(f"pilotfish: error: {tmp_path / name}: {why}") and error.count("\n") == 1


@pytest.mark.parametrize(
    "argv",
    [
        ("simulate", "circle.swf"), ("whatif", "circle"), ("whatif", ".", "--sacct", "circle"),
        ("train", "linear", "circle.swf", "-o", "a.pfmodel.json"), ("train", "linear", "a.swf", "-o", "circle.pfmodel.json"),
        ("train", "linear", "a.swf", "-o", "a.pfmodel.json", "--resume", "circle"), ("model", "show", "circle.pfmodel.json"),
        ("generate", "lublin", "-o", "circle.swf"), ("generate", "site", "gpu", "-o", "circle"),
        ("plan", "circle", "--cluster", "circle"), ("site", "record", "circle"),
    ],
)  # fmt: skip
def test_links_in_a_circle_are_a_mistake_and_no_bug(argv, tmp_path: Path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("circle", "circle.swf", "circle.pfmodel.json"):
        Path(name).symlink_to(name)
    assert main(argv) == 1
    error = capsys.readouterr().err
    assert error.startswith("pilotfish: error: ") and "unexpected" not in error
