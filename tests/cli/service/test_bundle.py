"""`pilotfish bundle`: what is in it is shown, nothing secret is in it, and one part that is missing spoils no other."""

from __future__ import annotations

import stat
import tarfile
from pathlib import Path

import pytest

from pilotfish.cli.__main__ import USAGE, main

pytestmark = pytest.mark.real  # it runs commands
CONFIG = """schema: pilotfish/daemon/v1
cluster: cluster.yaml
state_dir: state
socket: {path: %s/s.sock}
metrics: {port: 1}
adapter: {name: slurm, options: {rest_url: "http://admin:hunter2@localhost:6820", rest_token: hunter3}}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "cluster.yaml").write_text("schema: pilotfish/cluster/v1\nname: here\n")
    path = tmp_path / "pilotfish.yaml"
    path.write_text(CONFIG % tmp_path)
    return path


def contents(file: Path) -> dict[str, str]:
    with tarfile.open(file) as archive:
        return {member.name: archive.extractfile(member).read().decode() for member in archive}


def test_a_bundle_of_a_service_that_is_not_there_says_what_is_missing(config, tmp_path, capsys) -> None:
    file = tmp_path / "fault.tar.gz"
    assert main(["bundle", str(file), "--config", str(config), "--socket", str(tmp_path / "s.sock")]) == 0
    listed = capsys.readouterr().out
    parts = contents(file)
    assert all(name.removeprefix("bundle/") in listed for name in parts) and len(parts) == 8
    assert "no pilotfish daemon" in parts["bundle/status.json"] and "not here" in parts["bundle/metrics.txt"]
    assert parts["bundle/versions.txt"].startswith("pilotfish ") and "numpy" in parts["bundle/versions.txt"]
    assert "Traceback" not in "".join(parts.values())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_no_secret_is_in_it(config, tmp_path) -> None:
    file = tmp_path / "fault.tar.gz"
    assert main(["bundle", str(file), "--config", str(config), "--socket", str(tmp_path / "s.sock")]) == 0
    for name, text in contents(file).items():
        assert "hunter" not in text, name


def test_without_a_file_it_only_shows_and_parts_can_be_left_out(config, tmp_path, capsys) -> None:
    before = set(tmp_path.iterdir())
    arguments = ["bundle", "--config", str(config), "--socket", str(tmp_path / "s.sock"), "--without", "status.json"]
    assert main(arguments) == 0
    printed = capsys.readouterr()
    assert "status.json" not in printed.out and "audit.json" in printed.out and "nothing was written" in printed.err
    assert set(tmp_path.iterdir()) == before


def test_wrong_requests_are_one_error_and_leave_nothing(config, tmp_path, capsys) -> None:
    arguments = ["--config", str(config), "--socket", str(tmp_path / "s.sock")]
    assert main(["bundle", *arguments, "--without", "nothing"]) == USAGE
    assert "versions.txt" in capsys.readouterr().err
    (tmp_path / "there").write_text("")
    assert main(["bundle", str(tmp_path / "there"), *arguments]) == USAGE or "exists already" in capsys.readouterr().err
    assert main(["bundle", str(tmp_path / "absent" / "x"), *arguments]) != 0
    assert "cannot be written" in capsys.readouterr().err
    assert not list(tmp_path.glob("*.part"))
