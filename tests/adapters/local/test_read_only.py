"""A read-only adapter leaves the state directory unchanged, also while another adapter owns it."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.local import create
from pilotfish.adapters.local.job_files import PACE
from pilotfish.simulate.model.plan import Submit
from pilotfish.simulate.model.snapshot import JobState
from tests.support.local_world import CLUSTER, Cancel, LocalWorld, sh


def tree(root: Path) -> dict[str, object]:
    """Return modes, sizes, times and contents of all files but the keepers' sampling allowance."""
    entries: dict[str, object] = {}
    for path in [root, *root.rglob("*")]:
        if path.exists() and path.name != PACE:
            status = path.stat()
            content = path.read_bytes() if path.is_file() else b""
            entries[str(path)] = (status.st_mode, status.st_size, status.st_mtime_ns, content)
    return entries


@pytest.mark.real
def test_a_missing_directory_has_no_jobs_and_stays_missing(tmp_path: Path) -> None:
    adapter = create(CLUSTER, tmp_path / "s", read_only=True)
    assert adapter.snapshot().jobs == () and adapter.fileno() is None
    began = time.monotonic()
    assert not adapter.wait(0.05) and time.monotonic() - began >= 0.04
    threading.Timer(0.05, adapter.wake).start()
    assert adapter.wait(30.0)
    for do in (lambda: adapter.apply(Submit("x", sh("x", ":"), ("a",))), lambda: adapter.apply(Cancel("x"))):
        with pytest.raises(AdapterError, match="read-only") as caught:
            do()
        assert caught.value.kind == "refused"
    with pytest.raises(AdapterError, match="read-only"):
        adapter.forget("x")
    adapter.close()
    assert list(tmp_path.iterdir()) == []


def test_a_job_without_its_keeper_gets_no_new_one(world: LocalWorld) -> None:
    world.finish(world.job("done", 0.0))
    world.start(world.job("a", 600.0))
    world.adapter._adopt = world.adapter._observer._adopt = lambda _directory, _fd: None
    world.kill_keeper("a")
    world.adapter.close()
    (world.state / "forgotten" / "1").mkdir()
    before = tree(world.state)
    assert not world.keepers()
    adapter = create(CLUSTER, world.state, read_only=True)
    for _ in range(3):
        states = {job.key: job.state for job in adapter.snapshot().jobs}
        assert states == {"done": JobState.COMPLETED, "a": JobState.RUNNING}
    adapter.close()
    time.sleep(0.1)
    assert not world.keepers() and tree(world.state) == before


def test_it_reads_while_another_adapter_owns_the_directory(world: LocalWorld) -> None:
    world.begun(world.start(world.job("a", 600.0)))
    before = tree(world.state)
    adapter = create(CLUSTER, world.state, read_only=True)
    assert [(job.key, job.state) for job in adapter.snapshot().jobs] == [("a", JobState.RUNNING)]
    assert tree(world.state) == before
    world.adapter.apply(Cancel("a"))
    world.all_ended()
    assert [job.state for job in adapter.snapshot().jobs] == [JobState.CANCELLED]
    adapter.close()
