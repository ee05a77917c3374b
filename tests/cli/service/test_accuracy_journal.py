"""`accuracy --journal` reads the journal of the service's account, also as root, and with that account's rights."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pilotfish.cli.__main__ import main
from pilotfish.daemon.state.journal import Journal

STRANGER = "nobody"


@pytest.fixture
def journal() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:  # other users may enter the folders above it
        os.chmod(folder, 0o755)
        path = Path(folder) / "state" / "journal.sqlite"
        Journal(path).close()
        yield path


def give_away(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("not tested: a journal of another account, which only root can make")
    for file in (path, path.parent):
        shutil.chown(file, STRANGER)


def test_root_reads_the_journal_of_the_services_account(journal, capsys):
    give_away(journal)
    assert main(["accuracy", "--journal", str(journal)]) == 0
    assert "No job with a forecast has completed yet." in capsys.readouterr().out


def test_a_journal_that_others_can_write_is_refused(journal, capsys):
    give_away(journal)
    os.chmod(journal, 0o602)
    assert main(["accuracy", "--journal", str(journal)]) == 1
    assert "others can write to it (chmod go-w" in capsys.readouterr().err
