"""One sampling allowance for all keepers of a node, also after crashes and reboots."""

from __future__ import annotations

import fcntl
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.adapters.local.processes import boot_id
from pilotfish.adapters.local.sampler import CREDIT_S, FIRST_COST_S, LONGEST_CREDIT_S, SHARE, Pace, paid_from
from pilotfish.profiles.measure import neighbour_counters, sampling_budget

HERE = f"{boot_id()} "


def content(due: float) -> bytes:
    return f"{HERE}{due}\n".encode()


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(0, 0.002), st.floats(0, 1)), max_size=60))
def test_samples_of_all_keepers_stay_within_the_share(looks: list[tuple[int, float, float]]) -> None:
    """Five jobs, each of which pays for its next sample what the last one cost: all that was used or paid is within the
    share of the elapsed time and of the credit, and no sample is earlier than it was paid for."""
    file, now, spent, due, paid = b"", 0.0, 0.0, dict[int, float](), dict[int, float]()
    for job in range(5):
        due[job], paid[job] = paid_from(file, FIRST_COST_S, now), FIRST_COST_S
        file = content(due[job])
    for job, cost, late in looks:
        now = max(now, due[job]) + late
        spent += cost
        due[job], paid[job] = paid_from(file, 2 * cost - paid[job], now), cost
        file = content(due[job])
        assert spent + sum(paid.values()) <= SHARE * (max(now, due[job]) + CREDIT_S) + 1e-9


def test_unused_rest_pays_for_samples_of_a_short_job(tmp_path: Path) -> None:
    keeper = Pace(str(tmp_path / "pace"))
    before = time.monotonic()
    assert keeper.begin() <= time.monotonic() and keeper.next() <= max(time.monotonic(), before + CREDIT_S)
    assert paid_from(content(0.0), CREDIT_S * SHARE, 100.0) == pytest.approx(100.0)
    assert paid_from(content(100.0), SHARE, 100.0) == pytest.approx(101.0)


def test_an_unused_payment_is_returned(tmp_path: Path) -> None:
    file = tmp_path / "pace"
    first, second = Pace(str(file)), Pace(str(file))
    file.write_text(content(time.monotonic() + 30.0).decode())
    begin = first.begin()
    assert second.begin() == pytest.approx(begin + FIRST_COST_S / SHARE)
    for _ in range(2):  # the second time there is nothing to give back
        second.end()
        assert float(file.read_text().split()[1]) == pytest.approx(begin)


@pytest.mark.parametrize("text", [b"", b"another-boot 1e9\n", b"\xff\xfe", HERE.encode() + b"soon", b"1 2 3"])
def test_unreadable_content_is_ignored(text: bytes) -> None:
    assert paid_from(text, SHARE, 100.0) == pytest.approx(101.0 - CREDIT_S)


def test_payments_of_killed_keepers_are_forgotten() -> None:
    assert paid_from(content(1e12), 0.0, 100.0) == 100.0 + LONGEST_CREDIT_S


def test_without_the_file_a_keeper_rests_by_itself(tmp_path: Path) -> None:
    lonely = Pace(str(tmp_path / "gone" / "pace"))
    assert lonely.next() > 0 and not (tmp_path / "gone").exists()


def test_the_parts_add_up_to_the_nodes_share() -> None:
    assert pytest.approx(sampling_budget.SHARE) == SHARE + neighbour_counters.SHARE


@pytest.mark.real
def test_a_keeper_does_not_wait_for_a_locked_file(tmp_path: Path) -> None:
    file = tmp_path / "pace"
    due: list[float] = []
    keeper = threading.Thread(target=lambda: due.append(Pace(str(file)).begin()), daemon=True)
    with file.open("w") as locked_file:
        fcntl.flock(locked_file, fcntl.LOCK_EX)
        before = time.monotonic()
        keeper.start()
        keeper.join(60)
        assert due and due[0] >= before + FIRST_COST_S / SHARE, "it keeps its own rest"
