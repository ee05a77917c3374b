"""The page of privileges is what the units, the package and the lists say, and no unit has a right too many."""

from __future__ import annotations

import pytest

from tests import privileges_page

UNITS = sorted(path.name for path in (privileges_page.ROOT / "systemd").glob("*.service"))


def test_the_page_is_what_is_read() -> None:
    assert privileges_page.PAGE.read_text(encoding="utf-8") == privileges_page.page(), "python -m tests.privileges_page"


@pytest.mark.parametrize("unit", UNITS)
def test_no_unit_is_root_or_has_a_capability(unit: str) -> None:
    _, account, capabilities, new, _, network, calls, _ = privileges_page.unit_row(unit)
    assert account.startswith("pilotfish") and capabilities == "none" and new == "no"
    assert "AF_UNIX" in network and "~@privileged" in calls


def test_a_unit_without_restrictions_is_shown_as_such(tmp_path, monkeypatch) -> None:
    (tmp_path / "systemd").mkdir()
    (tmp_path / "systemd/bare.service").write_text(
        "[Service]\nExecStart=/bin/true\nAmbientCapabilities=CAP_SYS_ADMIN\n"
    )
    monkeypatch.setattr(privileges_page, "ROOT", tmp_path)
    row = privileges_page.unit_row("bare.service")
    assert row == ["`bare.service`", "root", "all", "yes", "", "all", "all", "0"]
