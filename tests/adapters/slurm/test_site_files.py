"""Files of the site that are read in rounds: how many, how often, and what becomes of refusals."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.slurm.site_files import AGAIN_S, AGES, FILES, JOBS, MOST, SLOW_S, SiteFileReader
from pilotfish.formats.site.site_file_list import CONFIGURATION, SITE_FILES, TOPOLOGY
from pilotfish.formats.site.site_texts import SiteTexts
from tests.support.clock import Clock

pytestmark = pytest.mark.real
NOW = 1_772_431_200.0
NAMES = {tuple(SITE_FILES[name].argv()): name for name in FILES}


class Asked:
    """Slurm's commands: each takes a second, and prints its own words."""

    def __init__(self) -> None:
        self.clock, self.files, self.refused = Clock(), list[str](), set[str]()
        self.topology = "none"
        self.budget, self.noted = 1000, list[tuple[str, str, float]]()
        self.reader = SiteFileReader(self.run, self.may_ask, lambda *words: self.noted.append(words), self.clock)

    def run(self, argv: Sequence[str]) -> str:
        name = "sacct.psv" if argv[0] == "sacct" else NAMES[tuple(argv)]
        self.files.append(name)
        self.clock.now += 1.0
        if name in self.refused:
            raise AdapterError(f"{argv[0]}: Access denied", kind="refused", argv=argv)
        return f"TopologyPlugin = topology/{self.topology}" if name == CONFIGURATION else " ".join(argv)

    def may_ask(self) -> bool:
        self.budget -= 1
        return self.budget >= 0

    def round(self) -> SiteTexts:
        """Return the answer of a whole round, or the first without one that begins."""
        self.files.clear()
        site, deadline = self.reader.look(NOW), time.monotonic() + 20.0
        while not site.texts and self.reader._round is not None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
            site = self.reader.look(NOW) if self.reader._round.done() else site
            if not site.texts and len(self.noted) and self.reader._round is None:
                break
        return site


def test_the_first_round_reads_all_and_later_ones_few_with_the_jobs_last() -> None:
    slurm = Asked()
    site = slurm.round()
    number = len(FILES) - 1
    assert set(site.texts) == {*FILES} - {TOPOLOGY} and slurm.files[-1] == JOBS and len(slurm.files) == number
    assert site.time == NOW + number - 1, "when the jobs were asked for"
    assert [words[:2] for words in slurm.noted] == [("site", "ok")] * number
    assert slurm.round().texts.keys() == site.texts.keys() and slurm.files == [JOBS]
    slurm.clock.now += AGES["scontrol_node.txt"]
    slurm.round()
    assert slurm.files == ["scontrol_node.txt", JOBS]
    slurm.clock.now += SLOW_S
    slurm.round()
    assert len(slurm.files) == MOST and slurm.files[-1] == JOBS


def test_switches_are_read_once_the_configuration_says_that_they_decide() -> None:
    slurm = Asked()
    slurm.topology = "tree"
    assert TOPOLOGY not in slurm.round().texts
    assert TOPOLOGY in slurm.round().texts and slurm.files == [TOPOLOGY, JOBS]
    slurm.round()
    assert slurm.files == [JOBS]


def test_what_slurm_refuses_is_missing_and_asked_for_again_later() -> None:
    slurm = Asked()
    slurm.refused = {"assoc.psv"}
    site = slurm.round()
    assert "assoc.psv" not in site.texts and "denied" in site.missing["assoc.psv"] and not site.why_not
    slurm.round()
    assert slurm.files == [JOBS]
    slurm.refused.clear()
    slurm.clock.now += AGAIN_S
    for _ in range(3):
        site = slurm.round()
    assert not site.missing and "assoc.psv" in site.texts


@pytest.mark.parametrize("name", ["scontrol_config.txt", "scontrol_part.txt", JOBS])
def test_without_a_file_that_is_needed_there_is_no_site_and_a_pause(name: str) -> None:
    slurm = Asked()
    slurm.refused = {name}
    assert not slurm.round().texts
    site = slurm.reader.look(NOW)
    assert "denied" in site.why_not and slurm.reader._round is None
    slurm.refused.clear()
    slurm.clock.now += AGAIN_S
    assert slurm.round().texts


def test_nothing_is_asked_without_a_budget() -> None:
    slurm = Asked()
    slurm.budget = 0
    assert not slurm.reader.look(NOW).texts and slurm.reader._round is None and not slurm.files
