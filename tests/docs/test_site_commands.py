"""The page of commands that make a site by hand has the very commands of the recorder."""

from __future__ import annotations

import re
from pathlib import Path

from pilotfish.formats.site.site_file_list import PERIOD, SITE_FILES

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_has_each_command_of_the_recorder_as_it_runs() -> None:
    lines = re.findall(r"^\$ (.*) > (\S+)$", (DOCS / "guides" / "slurm-record.md").read_text(), re.MULTILINE)
    commands = {name: command for command, name in lines if name in SITE_FILES}
    assert set(commands) == {*PERIOD, "scontrol_job.txt", "sacct.psv", "sacct_before.psv"}
    assert commands == {name: SITE_FILES[name].command for name in commands}


def test_the_table_of_files_has_each_file_that_is_read() -> None:
    table = (DOCS / "reference" / "formats.md").read_text()
    assert [name for name in SITE_FILES if f"`{name}`" not in table] == []
