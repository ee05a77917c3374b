"""What is asked of a running Slurm, once each, and what becomes of refusals."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.slurm.site_commands import site_texts
from pilotfish.formats.site.site_file_list import PRESENT, SITE_FILES


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
    assert set(site.texts) == set(PRESENT) and not site.missing
    assert slurm.requests[0] == ["scontrol", "show", "config"] and len(slurm.requests) == 8
    assert all("show" in argv or argv[0] == "sshare" for argv in slurm.requests)


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
