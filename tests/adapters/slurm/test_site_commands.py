"""What is asked of a running Slurm, once each, and what becomes of refusals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.slurm.site_commands import accounting_records, site_texts
from pilotfish.formats.site.site_file_list import PRESENT, SITE_FILES, TOPOLOGY


class Answers:
    """Prints its argv as every answer, and refuses some commands."""

    def __init__(self, refused: dict[str, str]) -> None:
        self.refused, self.requests = refused, list[list[str]]()

    def __call__(self, argv: Sequence[str]) -> str:
        self.requests.append(list(argv))
        for words, kind in self.refused.items():
            if words in " ".join(argv):
                raise AdapterError(f"{argv[0]}: Access/permission denied", kind=kind, argv=argv)
        return " ".join(argv)


def test_a_look_asks_eight_questions_that_only_read() -> None:
    slurm = Answers({})
    site = site_texts(slurm)
    assert set(site.texts) == {*PRESENT} - {TOPOLOGY} and not site.missing
    assert slurm.requests[0] == ["scontrol", "show", "config"] and len(slurm.requests) == 8
    assert all("show" in argv or argv[0] == "sshare" for argv in slurm.requests)


def test_a_look_asks_for_switches_where_they_decide() -> None:
    slurm = Answers({})
    site = site_texts(lambda argv: slurm(argv) + "\nTopologyPlugin          = topology/tree\n")
    assert set(site.texts) == set(PRESENT) and ["scontrol", "show", "topology"] in slurm.requests


def test_a_period_is_in_utc_seconds() -> None:
    site = site_texts(Answers({}), ["events.psv"], 1_772_323_200, 1_772_409_600)
    assert site.texts == {"events.psv": "sacctmgr -P show event start=2026-03-01T00:00:00 end=2026-03-02T00:00:00"}


def test_what_is_refused_is_missing_with_its_reason() -> None:
    site = site_texts(Answers({"sacctmgr": "refused"}))
    assert set(site.missing) == {"assoc.psv", "qos.psv"}
    assert site.missing["qos.psv"] == "sacctmgr: Access/permission denied"


@pytest.mark.parametrize(("words", "kind"), [("config", "unreachable"), ("show node", "stopped")])
def test_nothing_is_asked_after_these(words: str, kind: str) -> None:
    slurm = Answers({words: kind})
    with pytest.raises(AdapterError):
        site_texts(slurm)
    assert words in " ".join(slurm.requests[-1])


def test_every_command_changes_nothing_and_has_no_shell_words() -> None:
    for file in SITE_FILES.values():
        argv = file.argv("A", "B")
        assert argv[0] in ("sacct", "sshare", "sprio", "sdiag") or "show" in argv
        assert not set("|&;<>()$`\"'") & set("".join(argv)), file.name
        assert "T0" not in file.command or "A" in "".join(argv)


DAY = 86_400.0


class Accounting:
    """Prints records in small pieces, for each day those of the jobs that were there then."""

    def __init__(self, jobs: dict[bytes, range]) -> None:
        self.jobs, self.requests = jobs, list[tuple[str, str]]()

    def __call__(self, argv: Sequence[str]) -> Iterator[bytes]:
        day = len(self.requests)
        self.requests.append((argv[argv.index("-S") + 1], argv[argv.index("-E") + 1]))
        text = b"JobID|JobIDRaw|DBIndex|User|Account|State|JobName\n"
        text += b"".join(record for record, days in self.jobs.items() if day in days)
        yield from (text[i : i + 5] for i in range(0, len(text), 5))


def test_accounting_is_asked_day_by_day_and_each_record_comes_once() -> None:
    jobs = {
        b"7|7|1|ann|lab|COMPLETED|a\n": range(3),
        b"7|7|2|ann|lab|COMPLETED|a\n": range(1, 2),  # the same job, requeued
        b"8_[1-3%2]|8|3|ann|lab|PENDING|two\nlines|of\n\ntext\n": range(2, 3),
        b"9+1|10|4|bob|lab|RUNNING|1|2\n3|4\n": range(2),
    }
    slurm = Accounting(jobs)
    lines = [*accounting_records(slurm, 0.0, 2.5 * DAY)]
    assert lines[0].startswith(b"JobID|") and sorted(lines[1:]) == sorted(jobs)
    assert slurm.requests == [
        ("1970-01-01T00:00:00", "1970-01-02T00:00:00"),
        ("1970-01-02T00:00:00", "1970-01-03T00:00:00"),
        ("1970-01-03T00:00:00", "1970-01-03T12:00:00"),
    ]


def test_a_name_cannot_hide_the_record_of_another_job() -> None:
    forged = b"5|5|1|eve|lab|COMPLETED|x\n9|9|9|eve|lab|\n"
    jobs = {forged: range(1), b"9|9|9|ann|lab|COMPLETED|mine\n": range(1, 2)}
    lines = [*accounting_records(Accounting(jobs), 0.0, 2 * DAY)]
    assert b"9|9|9|ann|lab|COMPLETED|mine\n" in lines
    assert b"".join(lines[1:]) == b"".join(jobs)
