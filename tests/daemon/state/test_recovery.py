"""Killed at any step and restarted: every job runs exactly once, and none is forgotten.

Daemons that are killed several times are in `tests/adapters/simulated/test_histories.py`.
"""

from __future__ import annotations

import pytest

from tests.support import effort


class Killed(BaseException):
    """Simulates kill -9: no handler runs."""


class Tripwire:
    """Wraps the adapter and the journal; the process dies at the n-th call, before or after it took effect."""

    WATCHED = frozenset({"snapshot", "refresh", "apply", "intend", "save", "probe"})

    def __init__(self, at: int, *, after: bool) -> None:
        self.at, self.after, self.calls = at, after, 0

    def wrap(self, thing):
        outer = self

        class Wrapped:
            def __getattr__(self, name):
                attribute = getattr(thing, name)
                if name not in outer.WATCHED:
                    return attribute

                def call(*args, **kwargs):
                    outer.calls += 1
                    mine = outer.calls
                    if mine == outer.at and not outer.after:
                        raise Killed(name)
                    result = attribute(*args, **kwargs)
                    if mine == outer.at:
                        raise Killed(name)
                    return result

                return call

        return Wrapped()


def run_with_kills(tmp_path, kit, kills):
    bench = kit.Bench(tmp_path / "journal.sqlite", kit.Manager(kit.cluster()))
    bench.kill()
    bench.manager.exits["bad"] = 2
    bench.start()
    workflow = bench.submit(
        kit.job("a", seconds=3),
        kit.job("b", "a", seconds=3, threads=2),
        kit.job("c", "a", seconds=2, threads=2),
        kit.job("bad", "b", seconds=1),
        kit.job("never", "bad"),
        kit.job("d", "b", "c", seconds=2),
    )
    deaths = 0
    for at, after in kills:
        bench.kill()
        tripwire = Tripwire(at, after=after)
        bench.start(tripwire.wrap)
        try:
            bench.run(8, step_s=0.5)
        except Killed:
            deaths += 1
    bench.kill()
    bench.start()
    bench.run(40)
    states, done = bench.states(workflow), bench.journal.find(workflow)
    runs = dict(bench.manager.runs)
    bench.kill()
    assert states == {
        "a": "completed", "b": "completed", "c": "completed",
        "bad": "failed", "never": "cancelled", "d": "completed",
    }  # fmt: skip
    assert runs == {f"{workflow}/{name}": 1 for name in ("a", "b", "c", "bad", "d")}
    assert done.entries["bad"].exit_code == 2
    return deaths


@pytest.mark.parametrize("after", effort.some([False, True]), ids=lambda after: "after" if after else "before")
def test_killed_once_at_every_call_in_turn(tmp_path, kit, after):
    deaths = 0
    for at in range(1, 25):
        folder = tmp_path / str(at)
        folder.mkdir()
        deaths += run_with_kills(folder, kit, [(at, after)])
    assert deaths >= 15


def test_an_intent_that_never_became_a_start_is_tried_again(tmp_path, kit):
    bench = kit.Bench(tmp_path / "journal.sqlite", kit.Manager(kit.cluster()))
    workflow = bench.submit(kit.job("a"))
    tripwire = Tripwire(4, after=False)
    bench.kill()
    bench.start(tripwire.wrap)
    with pytest.raises(Killed, match="apply"):
        bench.run(2)
    assert not bench.manager.runs
    bench.kill()
    bench.start()
    assert bench.cycle.tracker.queue.find(f"{workflow}/a").intent is not None
    bench.run(15)
    outcomes = [row[0] for row in bench.journal._read("SELECT outcome FROM intents ORDER BY id")]
    assert outcomes == ["the job did not start", "done"]
    assert bench.states(workflow) == {"a": "completed"}
    bench.kill()


def test_a_requested_cancel_survives_a_kill(tmp_path, kit):
    bench = kit.Bench(tmp_path / "journal.sqlite", kit.Manager(kit.cluster()))
    workflow = bench.submit(kit.job("a", seconds=900), kit.job("b", "a"))
    bench.run(2)
    bench.cycle.tracker.cancel(list(bench.cycle.tracker.queue.submissions[workflow].entries.values()))
    bench.kill()
    bench.start()
    bench.run(3)
    assert bench.states(workflow) == {"a": "cancelled", "b": "cancelled"}
    bench.kill()
