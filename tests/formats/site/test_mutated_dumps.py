"""Dumps with faults are read, with what was left out of them, or refused with the file and the line; never a traceback."""

from __future__ import annotations

import re
from datetime import UTC
from pathlib import Path
from random import Random

import pytest

from pilotfish.formats.site.anonymous_names import AnonymousNames
from pilotfish.formats.site.anonymous_site import AnonymousSite
from pilotfish.formats.site.bar_table import read_text
from pilotfish.formats.site.printed_tables import read_printed_numbers
from pilotfish.formats.site.site_folder import read_site
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.slurm.site_tables import Phases, completed, site_block
from tests.support.mutated_dumps import mutated
from tests.support.slurm_queue_lines import CONFIG, RUNNING, WAITING, line
from tests.support.slurm_site_files import FILES, JOBS, SHARES, write_site

#: The files of a site that has all of them.
TEXTS = {
    **FILES,
    "scontrol_config.txt": CONFIG,
    "scontrol_job.txt": "\n".join((line(7, RUNNING), line(8, WAITING))),
    "sacct_before.psv": JOBS,
    "sshare_end.psv": SHARES,
    "scripts.txt": "Batch Script for 1\n----\n#!/bin/sh\n#SBATCH -n 4 --mem=3G\n#SBATCH --exclusive\nsrun x\n",
    "sprio.txt": "JOBID PARTITION USER PRIORITY SITE AGE ASSOC FAIRSHARE\n8 main ann 5000 0 100 0 4900\n",
    "sdiag.txt": "Backfilling stats\n\tMean cycle: 20000\n\tMean depth cycle: 100\n",
}
SEEDS = range(8)
LONGEST_MESSAGE = 700


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_site(tmp_path)
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("name", TEXTS)
def test_a_dump_with_faults_is_read_or_refused_by_name(folder: Path, name: str) -> None:
    for seed in SEEDS:
        (folder / name).write_bytes(mutated(TEXTS[name].encode(), Random(f"{name} {seed}")))
        try:
            site = completed(read_site(folder))
            read_printed_numbers(folder, UTC)
        except ConfigError as error:
            message = str(error)
            assert len(message) < LONGEST_MESSAGE and "\n" not in message
            assert re.search(rf"{re.escape(name)}.*line \d|no file describes|no settings", message), message
            continue
        site_block(site, Phases.drawn(site, seed))


@pytest.mark.parametrize("name", [name for name in TEXTS if not name.startswith("sacct")])
def test_a_dump_with_faults_is_made_anonymous_or_refused(folder: Path, name: str) -> None:
    for seed in SEEDS:
        (folder / name).write_bytes(mutated(TEXTS[name].encode(), Random(f"{name} {seed}")))
        try:
            AnonymousSite(AnonymousNames(["n1"])).text(name, read_text(folder / name))
        except ConfigError as error:
            assert str(error).startswith((name, str(folder)))
