"""The words of the pages about the whole service: true numbers, and what is not known is said to be unknown."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.daemon.report.score_card import ScoreCard
from pilotfish.daemon.socket.page_requests import SHOWN_OF_CARD
from pilotfish.daemon.state.recorded_outcome import ForecastOutcome, QueueRecord
from pilotfish.formats.text import clean
from pilotfish.simulate.errors import PilotfishError
from pilotfish.web.facts import accuracy_tables, card_table, job_facts, service_facts
from pilotfish.web.quality_tables import KEPT_S, QualityTables

GUARD = {"median_factor": 1.25, "bound": 1.5, "model": "max-min", "source": "measured"}


def card(**changes: Any) -> dict[str, Any]:
    mean = {"recorded": 5400.0, "twin": 7200.0, "pilotfish": 3600.0, "low": -4000.0, "high": 500.0}
    handed = {"seen": 1234, "compared": 1200, "placed": 1000.0, "released": 200.0}
    values = {"days": 7.0, "judged": "lookahead", "verdict": "gain", "handed": handed, "utilisation": None}
    measures = {name: {"mean": mean} for name in ("waiting", "turnaround", "slowdown")}
    document = values | {"measures": measures, "energy_j": mean | {"recorded": None, "low": None}} | changes
    assert set(document) == set(SHOWN_OF_CARD)
    return {"card": document, "time": 99.0, "why_not": ""}


def words(about: dict[str, Any]) -> dict[str, str]:
    return {name: text for name, text, _ in service_facts(about)}


def test_the_guard_rails_are_said_in_words() -> None:
    about = {"guard": GUARD, "forecast_time": 50.0, "forecasts": {"jobs": 3}, "blocked": "errors are large"}
    assert service_facts(about)[0] == ("Forecasts of starts", "by the resource manager's own rules", [50.0])
    said_of = words(about | {"limit": {"kind": "cap", "watts": 12_000.4}, "not_ready": "the adapter is silent"})
    assert said_of["Errors of run times"] == "a factor of 1.25 in the median (the guard acts above 1.50)"
    assert said_of["Contention model"] == "max-min on measured profiles"
    assert said_of["Not placed now because"] == "errors are large"
    assert said_of["Limit of power"] == "cap, 12,000 W" and said_of["Not ready because"] == "the adapter is silent"


def test_what_is_not_known_is_not_made_up() -> None:
    said_of = words({})
    assert said_of == {
        "Forecasts of starts": "none yet",
        "Errors of run times": "not enough jobs yet",
        "Not placed now because": "nothing keeps pilotfish from it",
    }
    under_easy = words({"forecast_time": 1.0, "forecasts": {"why_not": "no slurm.conf"}})
    assert under_easy["Forecasts of starts"] == "as under EASY: no slurm.conf"


def test_a_job_is_what_the_service_says_of_it() -> None:
    plan = {"start_time": 100.0, "start_within": [90.0, 200.0], "finish_time": 500.0, "nodes": ["a1", "a2"]}
    job = {"state": "pending", "walltime": 7200, "plan": plan, "manager_start_time": None, "nodes": []}
    lines = job_facts({"job": job, "waits": "power\x1b[2J", "owner": "ada", "after": ["rjms/7"]})
    assert lines == [
        ("State", "pending", []), ("User", "ada", []), ("Waits for", "rjms/7", []), ("Why it waits", "power\\x1b[2J", []),
        ("Expected start", "", [100.0]), ("with 80 % between", "", [90.0, 200.0]), ("Expected end", "", [500.0]),
        ("Nodes", "a1, a2", []), ("Time limit", "2:00:00", []),
    ]  # fmt: skip


@given(st.text())
def test_no_text_of_others_controls_a_terminal(text: str) -> None:
    assert all(clean(line) == line for line in words({"blocked": text, "not_ready": text}).values())


def test_the_accuracy_is_that_of_the_jobs_with_a_profile() -> None:
    jobs = [
        ForecastOutcome("a/1", 1.0, 100.0, 200.0, "cmd: a", source="measured", shortest_s=90.0, longest_s=110.0),
        ForecastOutcome("a/2", 2.0, 100.0, 100.0, "cmd: a", source="measured", shortest_s=90.0, longest_s=110.0),
        ForecastOutcome("a/3", 3.0, 100.0, 900.0, "default"),
    ]
    starts = [
        QueueRecord("a/1", said_time=0.0, said_start=100.0, manager_start=700.0, compared_start=100.0, start_time=130.0)
    ]
    run_times, begun = accuracy_tables(jobs, starts)
    assert [row[:2] for row in run_times["rows"]] == [["all", "2"], ["measured", "2"]]
    assert run_times["rows"][0][5] == "50 %" and "80 % is expected" in run_times["text"]
    assert begun["rows"] == [
        ["pilotfish", "1", "100 %", "100 %", "30.00 s", ""],
        ["pilotfish, where both are known", "1", "100 %", "100 %", "30.00 s", ""],
        ["the resource manager, where both are known", "1", "0 %", "100 %", "570.0 s", ""],
    ]


def test_without_jobs_a_sentence_says_why_no_number_is_there() -> None:
    for table in (*accuracy_tables([], []), card_table({"card": None, "why_not": "it is made in an hour"})):
        assert table["rows"] == [] and table["text"].endswith(".")
    assert "it is made in an hour" in card_table({"card": None, "why_not": "it is made in an hour"})["text"]


def test_the_card_names_what_is_unknown() -> None:
    table = card_table(card())
    rows = {row[0]: row[1:] for row in table["rows"]}
    assert rows["Mean wait"] == ["1:30:00", "2:00:00", "1:00:00", "-1:06:40 to 500.0 s"]
    assert rows["Utilisation"][0] == "unknown" and rows["Energy"] == ["unknown", "7.20 kJ", "3.60 kJ", "unknown"]
    assert table["time"] == 99.0 and "Of 7.0 days with lookahead: gain. 1,234 jobs seen" in table["text"]
    assert all(len(row) == len(table["columns"]) for row in table["rows"])


@pytest.mark.parametrize("reply", [{}, {"jobs": [[1]], "starts": []}])
def test_an_answer_of_another_version_is_one_sentence(reply: dict[str, Any]) -> None:
    tables = QualityTables(lambda do: reply if do == "accuracy" else card())
    with pytest.raises(PilotfishError, match="is not understood"):
        tables._learn()


@pytest.mark.real  # it is asked in a thread
def test_the_service_is_asked_once_for_all_who_look() -> None:
    questions, now = list[str](), [0.0]

    def ask(do: str) -> dict[str, Any]:
        questions.append(do)
        return {"jobs": [], "starts": []} if do == "accuracy" else card()

    async def look() -> None:
        tables = QualityTables(ask, lambda: now[0])
        first, second = await asyncio.gather(tables.tables(), tables.tables())
        assert first == second and questions == ["accuracy", "card"]
        now[0] = KEPT_S
        await tables.tables()
        assert len(questions) == 4

    asyncio.run(look())


def test_a_service_says_why_it_has_no_card() -> None:
    maker = ScoreCard(["true"], None, lambda: 0.0, 3600.0)
    assert maker.newest is None and "an hour after the start" in maker.why_not
