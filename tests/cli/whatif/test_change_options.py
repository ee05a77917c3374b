"""Times of the day in the options of `whatif`."""

from __future__ import annotations

from datetime import datetime, time
from zoneinfo import ZoneInfo

import pytest

from pilotfish.cli.whatif.change_options import next_time_of_day


@pytest.mark.parametrize(
    ("submitted", "released"),
    [
        ("2026-03-02T07:59:59", "2026-03-02T08:00:00"),
        ("2026-03-02T08:00:00", "2026-03-02T08:00:00"),
        ("2026-03-02T08:00:01", "2026-03-03T08:00:00"),
        ("2026-03-28T12:00:00", "2026-03-29T08:00:00"),  # the clock goes forward in this night
    ],
)
def test_the_next_time_of_the_day_is_not_before_the_submission(submitted: str, released: str) -> None:
    zone = ZoneInfo("Europe/Berlin")
    submit, release = (datetime.fromisoformat(text).replace(tzinfo=zone).timestamp() for text in (submitted, released))
    assert next_time_of_day(time(8), zone, submit) == release
