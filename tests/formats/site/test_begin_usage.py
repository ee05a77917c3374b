"""Where the usage at the begin of a period comes from, and what the reports say about it."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path

import pytest

from pilotfish.formats.site.printed_tables import read_printed_numbers
from pilotfish.formats.site.site_folder import read_site
from pilotfish.simulate.slurm.site import Site
from tests.support.slurm_site_files import FILES, records, row, write_site

#: The accounting ends at 06:01:40; the two jobs of ann used 2 * 90 and 8 * 90 CPU seconds at most.
PRINTED = "Configuration data as of 2026-03-02T06:0{}:00\nSLURM_VERSION = 22.05.8\n"
SPRIO = """\
          JOBID PARTITION     USER  ACCOUNT   PRIORITY       SITE        AGE  FAIRSHARE  PARTITION    QOSNAME        QOS
              3 main           ann      lab       1010          0         10       1000          0     normal          0
              4 main           bob              900          0         10       1000          0     normal          0
            odd line
"""


def usage(site: Site) -> dict[str, float]:
    names = [one.user or one.account for one in site.associations]
    return dict(zip(names, site.usage, strict=True))


def sentences(site: Site) -> list[str]:
    return [text for text in site.unknown if "usage when the period begins" in text]


def test_shares_of_the_end_are_reckoned_back(tmp_path: Path) -> None:
    site = read_site(
        write_site(
            tmp_path, sshare_psv=None, sshare_end_psv=FILES["sshare.psv"].replace("|300|", "|9300|").replace("|250|", "|9250|"),
            events_psv=None, reservations_psv=None, scontrol_config_txt=PRINTED.format(5),
        )
    )  # fmt: skip
    assert 8_000 < usage(site)["ann"] < usage(site)["lab"] < 9_300 and usage(site)["bob"] == 0.0
    (sentence,) = sentences(site)
    assert "sshare_end.psv less what its jobs used; 96 % of the usage there is older" in sentence


def test_shares_that_were_printed_much_later_are_not_the_end(tmp_path: Path) -> None:
    late = PRINTED.format(5).replace("03-02T", "03-09T")
    site = read_site(
        write_site(tmp_path, sshare_psv=None, sshare_end_psv=FILES["sshare.psv"], scontrol_config_txt=late)
    )
    assert site.usage == () and "sshare_end.psv is later than the jobs in the accounting" in sentences(site)[0]


def test_accounting_of_the_time_before_counts_first(tmp_path: Path) -> None:
    """Job 1 is in the period, too, and does not count twice."""
    before = records(row(), row(JobID="0", Start="2026-02-25T06:00:00", End="2026-02-25T07:00:00", AllocCPUS="8"))
    folder = write_site(tmp_path, sshare_psv=None, sshare_end_psv=FILES["sshare.psv"], sacct_before_psv=before)
    site = read_site(folder)
    assert usage(site)["ann"] == pytest.approx(8 * 3600 * 0.5 ** (5 / 7), rel=0.02)
    (sentence,) = sentences(site)
    assert "from the jobs of 5 days before, without up to 61 % of it" in sentence


def test_usage_that_has_decayed_to_nothing_is_said_to_be_0(tmp_path: Path) -> None:
    late = records(row(), row(JobID="9", Start="2926-02-25T06:00:00", End="2926-02-25T07:00:00"))
    folder = write_site(tmp_path, sshare_psv=None, sacct_before_psv=records(row(JobID="0")) + late.partition("\n")[2])
    site = read_site(folder)
    assert site.usage == () and "a job of sacct_before.psv ends 328,7" in sentences(site)[0]
    (folder / "sacct_before.psv").unlink()
    (folder / "sshare.psv").unlink(missing_ok=True)
    short = FILES["slurm.conf"] + "PriorityDecayHalfLife=0:0:1\n"
    printed = PRINTED.format(5).replace("T06:05", "T06:59")
    site = read_site(
        write_site(
            tmp_path, slurm_conf=short, sshare_psv=None, sshare_end_psv=FILES["sshare.psv"],
            scontrol_config_txt=printed,
        )
    )  # fmt: skip
    assert site.usage == () and "has decayed to nothing" in sentences(site)[0]


def test_shares_of_the_begin_need_no_word(tmp_path: Path) -> None:
    site = read_site(write_site(tmp_path))
    assert usage(site)["ann"] == 250.0 and not sentences(site)


def test_without_any_of_them_usage_is_0(tmp_path: Path) -> None:
    site = read_site(write_site(tmp_path, sshare_psv=None))
    assert site.usage == () and any("no sshare.psv" in text for text in site.unknown)


def test_what_sprio_and_sshare_printed(tmp_path: Path) -> None:
    folder = write_site(
        tmp_path, sprio_txt=SPRIO, sshare_end_psv=FILES["sshare.psv"], scontrol_config_txt=PRINTED.format(5)
    )
    printed = read_printed_numbers(folder, UTC)
    assert printed is not None
    assert printed.priorities == {("3", "main"): 1010, ("4", "main"): 900}
    assert printed.factors == {("lab", "ann"): 0.3}
    assert printed.at == 1_772_431_500.0


def test_a_site_without_them_has_none(tmp_path: Path) -> None:
    assert read_printed_numbers(write_site(tmp_path), UTC) is None
