"""`submit --export`: which variables of their submitter jobs have."""

from __future__ import annotations

import pytest

from pilotfish.cli.__main__ import main
from pilotfish.cli.service.exported import exported
from pilotfish.simulate.errors import ConfigError

OWN = {"HOME": "/h", "USER": "u", "TOKEN": "s3cret", "PATH": "/opt/bin", "BAD": "\udcff"}
LOGIN = {"HOME": "/h", "USER": "u", "PATH": "/usr/local/bin:/usr/bin:/bin"}


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ("ALL", {name: OWN[name] for name in ("HOME", "USER", "TOKEN", "PATH")}),
        ("NONE", LOGIN),
        ("TOKEN", LOGIN | {"TOKEN": "s3cret"}),
        ("NONE,B=1=2,PATH", LOGIN | {"B": "1=2", "PATH": "/opt/bin"}),
        ("ALL,USER=x", {"HOME": "/h", "USER": "x", "TOKEN": "s3cret", "PATH": "/opt/bin"}),
    ],
)
def test_variables_are_chosen_as_with_sbatch(spec, found):
    assert exported(spec, OWN) == found


@pytest.mark.parametrize(
    ("spec", "says"), [("GONE", "'GONE' is not set"), ("ALL,", "a name is missing"), ("=s3cret", "a name is missing")]
)
def test_a_wrong_name_is_one_error_without_a_value(spec, says):
    with pytest.raises(ConfigError, match=says) as caught:
        exported(spec, OWN)
    assert "s3cret" not in str(caught.value)


def test_a_resource_manager_sets_the_environment_of_its_own_jobs(tmp_path, capsys):
    flow = tmp_path / "f.yaml"
    flow.write_text("schema: pilotfish/workflow/v1\nname: f\njobs: {a: {command: [/bin/true]}}\n")
    assert main(["submit", str(flow), "--adapter", "slurm", "--export", "NONE"]) == 64
    assert "only with the service" in capsys.readouterr().err
