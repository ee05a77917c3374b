"""Dumps with faults are read, with what was left out of them, or refused with the file and the line; never a traceback."""

from __future__ import annotations

import re
from datetime import UTC
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def write_texts(folder: Path) -> Path:
    """Write all files of a site into a folder, and return it."""
    write_site(folder)
    for name, text in TEXTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_texts(tmp_path)


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
            assert re.search(r"\.(txt|psv|conf|cfg): line \d", message), message
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


ODD_VALUES = st.one_of(
    st.sampled_from(
        ("foo", "-7", "nan", "inf", "9" * 30, "1e308", "(null)", "n[1-", "None", "\x1b[2J", "\u0663", "=", "%s")
    ),
    st.text(st.characters(exclude_characters="|\n\r\0", exclude_categories=("Cs", "Nd")), max_size=12),
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_texts(tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize("name", [name for name in TEXTS if name.endswith(".psv")])
@given(data=st.data())
def test_an_odd_value_is_in_the_way_of_its_row_alone(whole: Path, name: str, data: st.DataObject) -> None:
    """An array of three tasks is a row, and an account has users: what is missing with it is counted."""
    (whole / name).write_text(TEXTS[name], encoding="utf-8")
    site = completed(read_site(whole))
    header, *rows = TEXTS[name].splitlines()
    place = data.draw(st.integers(0, len(rows) - 1))
    fields = rows[place].split("|")
    fields[data.draw(st.integers(0, header.count("|")))] = data.draw(ODD_VALUES)
    lines = (header, *rows[:place], "|".join(fields), *rows[place + 1 :])
    (whole / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    odd = completed(read_site(whole))
    (whole / name).write_text(TEXTS[name], encoding="utf-8")
    assert len(odd.jobs) >= len(site.jobs) - 3
    for rule in ("qos", "associations", "events", "reservations", "jobs"):
        assert len(getattr(odd, rule)) >= len(getattr(site, rule)) or odd.unknown != site.unknown
