"""Laws of the breaker and of the request budget, on a simulated clock."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial

import pytest
import stamina
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.adapters import request_guard as limits
from pilotfish.adapters.base import AdapterError, BreakerState, ParseError
from pilotfish.adapters.request_guard import KEPT_FOR_READS, Breaker, RequestBudget
from pilotfish.adapters.slurm import create
from pilotfish.adapters.slurm.records import SlurmJob
from pilotfish.adapters.slurm.transport.command_transport import CommandTransport, Transport
from pilotfish.adapters.slurm.transport.guard import GuardedTransport
from pilotfish.adapters.slurm.transport.sacct import UsageEntry
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.cluster import Cluster


@pytest.fixture(autouse=True)
def without_waiting() -> Iterator[None]:
    """Let the retry come at once."""
    with stamina.set_testing(True, attempts=2):
        yield


class Slurm(CommandTransport):
    """A Slurm that answers after `takes` seconds, or fails; `asked` are the times of requests."""

    def __init__(self) -> None:
        super().__init__(lambda argv: "")
        self.now, self.takes, self.problem = 0.0, 0.01, AdapterError("x")
        self.well, self.asked, self.recovers_after = True, list[float](), 1_000_000
        self.transport = GuardedTransport(self, 3000, clock=lambda: self.now, draw=lambda: 0.0, sleep=self.sleep)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def answer(self) -> None:
        self.asked.append(self.now)
        self.now += self.takes
        if not self.well and len(self.asked) <= self.recovers_after:
            raise self.problem

    def ill(self, takes: float = 10.0, **what: object) -> None:
        self.well, self.takes = False, takes
        self.problem = AdapterError("squeue: Unable to contact", **({"transient": True, "kind": "unreachable"} | what))

    def jobs(self, ids: Collection[int] = ()) -> list[SlurmJob]:
        self.answer()
        return []

    def cancel(self, job: int) -> None:
        self.answer()

    def ended(self, which: Sequence[str]) -> list[SlurmJob]:
        self.answer()
        return []

    def usage(self, which: Sequence[str]) -> list[UsageEntry]:
        self.answer()
        return []


def kind_of(do: Callable[[], object]) -> str:
    """Return the kind of the error that a call raises, or ""."""
    try:
        do()
    except AdapterError as error:
        assert error.transient or error.kind not in ("open", "budget")
        return error.kind
    return ""


def test_who_was_waited_for_in_vain_is_left_alone_at_once() -> None:
    slurm = Slurm()
    slurm.ill()
    assert kind_of(slurm.transport.jobs) == "unreachable"
    assert [kind_of(slurm.transport.jobs) for _ in range(50)] == ["open"] * 50
    with pytest.raises(AdapterError) as caught:
        slurm.transport.jobs()
    assert 0.0 < caught.value.again_s <= limits.FIRST_S
    assert len(slurm.asked) == 1
    with pytest.raises(AdapterError, match=r"jobs: the controller is asked again in 1 s, because it failed: "):
        slurm.transport.jobs()


def test_quick_failures_open_it_after_a_few_and_are_tried_twice() -> None:
    slurm = Slurm()
    slurm.ill(takes=0.1)
    assert [kind_of(slurm.transport.jobs) for _ in range(4)] == ["unreachable"] * 2 + ["open"] * 2
    assert len(slurm.asked) == limits.TRIPS


def test_a_glitch_is_not_noticed() -> None:
    slurm = Slurm()
    slurm.ill(takes=0.1)
    slurm.recovers_after = 1
    assert slurm.transport.jobs() == [] and len(slurm.asked) == 2
    assert slurm.transport.load().requests == {("jobs", "unreachable"): 1, ("jobs", "ok"): 1}


def test_a_change_is_never_sent_twice_and_never_tests_the_breaker() -> None:
    slurm = Slurm()
    slurm.ill(takes=0.1)
    assert kind_of(lambda: slurm.transport.cancel(1)) == "unreachable" and len(slurm.asked) == 1
    slurm.ill()
    kind_of(slurm.transport.jobs)
    slurm.now += 100.0
    slurm.well = True
    assert slurm.transport.load().breakers["controller"] is BreakerState.HALF_OPEN
    assert kind_of(lambda: slurm.transport.cancel(1)) == "open" and len(slurm.asked) == 2
    assert slurm.transport.jobs() == [] and kind_of(lambda: slurm.transport.cancel(1)) == ""


@pytest.mark.parametrize("problem", [AdapterError("no", kind="refused"), ParseError("garbled")])
def test_a_refusal_is_an_answer(problem: AdapterError) -> None:
    slurm = Slurm()
    slurm.well, slurm.problem = False, problem
    assert {kind_of(slurm.transport.jobs) for _ in range(20)} == {problem.kind}
    assert slurm.transport.load().breakers["controller"] is BreakerState.CLOSED and len(slurm.asked) == 20


def test_accounting_and_controller_have_separate_breakers() -> None:
    slurm = Slurm()
    slurm.ill()
    assert kind_of(lambda: slurm.transport.ended(["--jobs=1"])) == "unreachable"
    assert kind_of(lambda: slurm.transport.ended(["--jobs=1"])) == "open"
    slurm.well, slurm.takes = True, 0.01
    assert slurm.transport.jobs() == []
    states = slurm.transport.load().breakers
    assert states == {"controller": BreakerState.CLOSED, "accounting": BreakerState.OPEN}


def test_slow_usage_requests_do_not_block_ended_jobs() -> None:
    slurm = Slurm()
    slurm.ill(5.1, kind="timeout")
    assert kind_of(lambda: slurm.transport.usage(["--jobs=1"])) == "timeout"
    assert kind_of(lambda: slurm.transport.usage(["--jobs=1"])) == "open"
    slurm.well = True
    assert slurm.transport.ended(["--jobs=1"]) == []
    slurm.ill()
    assert kind_of(lambda: slurm.transport.ended(["--jobs=1"])) == "unreachable"
    assert kind_of(lambda: slurm.transport.usage(["--jobs=1"])) == "open", "who is away is asked for nothing"


def test_usage_requests_leave_the_budget_for_reads() -> None:
    slurm = Slurm()
    slurm.takes = 0.0
    while kind_of(lambda: slurm.transport.cancel(1)) != "budget":
        pass
    began, request_count = slurm.now, len(slurm.asked)
    assert kind_of(lambda: slurm.transport.usage(["--jobs=1"])) == "budget"
    assert (slurm.now, len(slurm.asked)) == (began, request_count)
    assert slurm.transport.jobs() == []


def test_with_only_late_answers_some_reads_still_pass() -> None:
    slurm = Slurm()
    slurm.takes, good_rounds = 8.0, 0
    while slurm.now < 3600.0:
        kinds = [kind_of(slurm.transport.jobs) for _ in range(3)]
        good_rounds += kinds == [""] * 3
        slurm.now += 1.0
    assert good_rounds >= 20 and len(slurm.asked) <= 3600 / 30 * 4


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.floats(0.0, 20.0), st.floats(0.0, 30.0)), min_size=1, max_size=200),
    st.lists(st.floats(0.0, 0.999), min_size=1),
)
def test_a_failing_service_is_asked_rarely_and_a_good_one_always(
    calls: list[tuple[float, float]], dice: list[float]
) -> None:
    """For any sequence of calls: (duration of a failure, pause before the call)."""
    now, sent, rolls = 0.0, list[float](), iter(dice * 400)
    tested = Breaker(lambda: now, lambda: next(rolls))
    for takes, pause in calls:
        now += pause
        if tested.state is not BreakerState.OPEN:
            sent.append(now)
            now += takes
            tested.failed(takes, "gone")
        assert tested.left_s <= limits.LONGEST_S and (len(sent) <= limits.TRIPS or tested.open_s >= 0)
    for before, after in zip(sent[limits.TRIPS - 1 :], sent[limits.TRIPS :], strict=False):
        assert after - before >= limits.FIRST_S / 2  # the first few, then one at a time
    for earlier, later in zip(sent[limits.TRIPS :], sent[limits.TRIPS + 6 :], strict=False):
        assert later - earlier >= 6 * limits.FIRST_S / 2
    for earlier, later in zip(sent[limits.TRIPS + 5 :], sent[limits.TRIPS + 6 :], strict=False):
        assert later - earlier >= limits.LONGEST_S / 2  # by then pauses are as long as they get
    now += tested.left_s
    assert tested.state is not BreakerState.OPEN  # it always tries again
    tested.answered(0.1)
    assert tested.state is BreakerState.CLOSED and (tested.open_s, tested.left_s) == (0.0, 0.0)
    tested.failed(10.0, "again")
    assert tested.left_s <= limits.FIRST_S  # and begins again


@given(st.lists(st.tuples(st.booleans(), st.floats(0.0, 5.0)), max_size=200), st.integers(60, 600))
def test_no_minute_has_more_than_two_budgets(calls: list[tuple[bool, float]], per_minute: int) -> None:
    """One saved and one new; reads wait, changes are refused."""
    now, sent = 0.0, list[float]()
    budget = RequestBudget(per_minute, lambda: now)
    for read, pause in calls * 4:
        now += pause / 50
        wait = budget.pause_s(read=read)
        if wait and not read:
            continue
        assert wait <= 60.0 / per_minute + 1e-6  # a turn
        now += wait
        budget.spend()
        sent.append(now)
    for i, at in enumerate(sent):
        assert sum(at <= moment < at + 60.0 for moment in sent[i:]) <= 2 * per_minute + 1


def test_changes_leave_budget_for_reads() -> None:
    slurm = Slurm()
    slurm.takes = 0.0
    outcomes = [kind_of(lambda: slurm.transport.cancel(1)) for _ in range(3000)]
    assert outcomes.count("") == 3000 * (1 - KEPT_FOR_READS) and outcomes[-1] == "budget"
    assert slurm.transport.jobs() == [] and slurm.now == 0.0
    for _ in range(1000):
        slurm.transport.jobs()
    assert slurm.now == pytest.approx(701 * 60 / 3000) and slurm.transport.load().budget_left == 0.0


def test_request_counts() -> None:
    slurm = Slurm()
    slurm.transport.jobs()
    slurm.ill(kind="timeout")
    kind_of(slurm.transport.jobs)
    kind_of(slurm.transport.jobs)
    load = slurm.transport.load()
    assert load.requests == {("jobs", "ok"): 1, ("jobs", "timeout"): 1, ("jobs", "open"): 1}
    assert load.seconds == {"jobs": (2, pytest.approx(10.01))}
    assert 2997 < load.budget_left <= 3000


@pytest.mark.parametrize("number", [0, 59, 1.5, "many", True, None])
def test_an_invalid_budget_is_one_line(number: object) -> None:
    with pytest.raises(ConfigError, match=r"requests_per_minute.*a whole number from 60"):
        create(Cluster("c", ()), requests_per_minute=number)


def test_the_adapter_returns_its_request_counts() -> None:
    adapter = create(Cluster("c", ()), requests_per_minute=60)
    load = adapter.load()
    assert load is not None and load.budget_left == 60.0 and load.requests == {}
    assert set(load.breakers.values()) == {BreakerState.CLOSED}


def test_a_change_passes_only_the_guard_and_the_transport() -> None:
    functions = list[str]()

    def run(argv: Sequence[str]) -> str:
        functions.extend(frame.name for frame in traceback.extract_stack())
        return ""

    transport = GuardedTransport(CommandTransport(run), 3000)
    transport.update(7, {"StartTime": "now"})
    place = functions.index(test_a_change_passes_only_the_guard_and_the_transport.__name__)
    assert functions[place + 1 : -1] == ["write", "_send", "update"]


def test_every_request_passes_the_guard() -> None:
    transport = GuardedTransport(CommandTransport(lambda argv: ""), 3000)
    requests = {name for name, member in vars(Transport).items() if callable(member) and not name.startswith("_")}
    assert requests - {"close"} == {name for name, member in vars(transport).items() if isinstance(member, partial)}
