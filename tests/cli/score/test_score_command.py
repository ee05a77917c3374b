"""`pilotfish score`: the card on a terminal, as a document and as a page, and errors."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pilotfish.cli.__main__ import USAGE, main
from pilotfish.cli.score.card_text import time_words
from pilotfish.cli.score.judged_policy import USUAL, judged_policy
from pilotfish.cli.score.score_command import begin_of_accounting
from pilotfish.daemon.config import DaemonConfig
from pilotfish.daemon.state.journal import Journal
from pilotfish.daemon.state.unsaved import Unsaved
from pilotfish.simulate.slurm.site_score import GAIN, LOSS, SAME, SMALLER, UNCLEAR

Out = Callable[..., str]
VERDICTS = (GAIN, LOSS, SAME, SMALLER, UNCLEAR)


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sites") / "gpu"
    assert main(["generate", "site", "gpu", "--jobs", "400", "-o", str(folder)]) == 0
    return folder


@pytest.fixture
def out(capsys: pytest.CaptureFixture[str]) -> Out:
    def printed(*argv: object) -> str:
        capsys.readouterr()
        assert main(["score", *map(str, argv), "--workers", "1"]) == 0
        return capsys.readouterr().out

    return printed


def test_the_card_fits_80_columns_and_has_its_parts(site: Path, out: Out) -> None:
    text = out(site, "--repeat", 2)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    for part in ("policy     easy:order=sjf, by time limits; all partitions; held 10.0 min at most", "jobs       400 seen",
                 "waiting, mean", "slowdown, mean", "contention, mean   unknown", "makespan, mean", "utilisation",
                 "contention unknown: no journal of a service", "makespan   from the first", "energy     unknown: ",
                 "verdict    waiting:", "own error", "later",
                 "losers", "WAIT BY USER", "WAIT BY LIMIT, MIN", "forecasts  unknown", "Assumptions:"):  # fmt: skip
        assert part in text, part


def test_the_document_has_the_numbers_of_the_card(site: Path, out: Out) -> None:
    document = json.loads(out(site, "--repeat", 2, "--json"))
    assert document["schema"] == "pilotfish/score/v1"
    assert set(document) == {
        "schema", "site", "policy", "judged", "reason", "partitions", "hold_s", "wide_nodes", "start_delay_s", "start_delay_within_s", "start_delay_source", "run_times", "predicted", "days",
        "replays", "handed", "measures", "busy_periods", "makespan", "contention", "utilisation", "energy_j", "near", "groups", "later", "earlier", "verdict",
        "forecasts", "cost", "own_requests", "assumptions", "unknown",
    }  # fmt: skip
    waiting = document["measures"]["waiting"]
    assert set(waiting) == {"mean", "median", "p95", "verdict", "days_more"}
    assert set(waiting["mean"]) == {"recorded", "twin", "pilotfish", "low", "high"}
    assert document["verdict"] == waiting["verdict"] and document["replays"] == 2
    assert document["handed"]["placed"] + document["handed"]["released"] == document["handed"]["compared"] == 400


def test_the_first_come_under_a_short_hold_gain_nothing(site: Path, out: Out) -> None:
    document = json.loads(out(site, "--repeat", 1, "--hold", 0, "--json"))
    assert document["verdict"] == "no difference" and document["later"]["jobs"] == 0


def test_the_page_has_the_card_and_loads_nothing(site: Path, out: Out, tmp_path: Path) -> None:
    text = out(site, "--repeat", 1, "--html", tmp_path / "card.html", "--all")
    page = (tmp_path / "card.html").read_text()
    body = page[page.rindex("<body>") :]
    assert text.splitlines()[3] in body and "difference of the mean wait" in body
    assert 'src="' not in body and "href=" not in body


def test_an_order_is_judged_in_the_place_of_a_policy_that_chooses_nodes(site: Path, out: Out) -> None:
    text = out(site, "--repeat", 1, "--policy", "lookahead")
    words = " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80
    assert "policy lookahead; not judged, because it chooses nodes by the profiles of jobs" in words
    assert "instead easy:order=sjf, by time limits" in words and "say nothing of lookahead" in words
    usual, instead = (json.loads(out(site, "--repeat", 1, "--policy", one, "--json")) for one in (USUAL, "lookahead"))
    assert (instead["policy"], instead["judged"]) == ("lookahead", USUAL) and "profiles" in instead["reason"]
    assert instead["measures"] == usual["measures"] and usual["judged"] == USUAL and usual["reason"] == ""


def test_a_service_with_its_default_policy_gets_a_number(site: Path, out: Out, tmp_path: Path) -> None:
    document = json.loads(out(site, "--repeat", 1, "--config", configured(tmp_path), "--json"))
    assert document["policy"] == DaemonConfig(cluster="-").policy and document["verdict"] in VERDICTS
    assert document["measures"]["waiting"]["mean"]["pilotfish"] > 0.0


@pytest.mark.parametrize(
    ("policy", "order", "reason"),
    [
        ("easy:order=sjf", "sjf", ""), ("conservative:order=largest", "largest", ""), ("easy", "fcfs", ""),
        ("strict", "sjf", "backfill"), ("easy:order=wfp3", "sjf", "changes while jobs wait"),
        ("easy+powercap:cap=60%", "sjf", "limits power"), ("mom", "sjf", "profiles"),
        ("./mine.py:Mine", "sjf", "Python"), ("pairs", "sjf", "backfill"),
    ],
)  # fmt: skip
def test_policies_that_are_judged(policy: str, order: str, reason: str) -> None:
    result = judged_policy(policy)
    assert result.order == order and (reason in result.reason if reason else result.is_itself)
    assert result.judged == (USUAL if reason else policy)


@pytest.mark.parametrize(
    "argv",
    [
        ("--policy", "sjf"), ("--partition", "gpus"), ("--runtimes", "actual"), ("--since", "soon"), ("--hold", "-1"),
        ("--zone", "Nowhere"),
    ],
)  # fmt: skip
def test_errors_name_the_option(argv: tuple[str, str], site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["score", str(site), "--repeat", "1", "--workers", "1", *argv])
    error = capsys.readouterr().err
    assert code in (1, USAGE) and (argv[0].removeprefix("--") in error) and "Traceback" not in error


def test_run_times_may_be_predicted(site: Path, out: Out) -> None:
    document = json.loads(out(site, "--repeat", 1, "--runtimes", "predicted", "--json"))
    assert document["run_times"] == "predicted" and 0.0 < document["predicted"] < 1.0


def configured(tmp_path: Path, **more: Any) -> Path:
    (tmp_path / "cluster.yaml").write_text("schema: pilotfish/cluster/v1\n")
    lines = ["schema: pilotfish/daemon/v1", f"cluster: {tmp_path / 'cluster.yaml'}", f"state_dir: {tmp_path}",
             "adapter: {name: slurm}", "metrics: {port: 0}", *(f"{key}: {value}" for key, value in more.items())]  # fmt: skip
    (tmp_path / "pilotfish.yaml").write_text("\n".join(lines) + "\n")
    return tmp_path / "pilotfish.yaml"


def test_the_policy_and_the_journal_are_those_of_the_service(site: Path, out: Out, tmp_path: Path) -> None:
    config = configured(tmp_path, policy="easy:order=smallest")
    Journal(tmp_path / "journal.sqlite").close()
    document = json.loads(out(site, "--repeat", 1, "--config", config, "--json"))
    assert document["policy"] == "easy:order=smallest"
    assert document["forecasts"] == {"starts": [], "run_times": None}
    assert document["cost"] == {"running_s": None, "cpu_s": None, "requests": None}


def test_without_a_site_the_service_must_be_one_of_slurm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = configured(tmp_path)
    config.write_text(config.read_text().replace("slurm", "oar"))
    assert main(["score", "--config", str(config)]) == 1
    assert "adapter.name: found 'oar'" in capsys.readouterr().err


def test_accounting_is_read_for_a_bounded_number_of_days() -> None:
    """Each day is a request to slurmdbd, so that the daily card of a service of a year asks no more than that of a month."""
    day, now = 86_400.0, 2e9
    assert begin_of_accounting(None, now) == now - 7 * day
    assert begin_of_accounting(now - 3 * day, now) == now - 3 * day
    assert begin_of_accounting(now - 400 * day, now) == now - 31 * day


def test_the_costs_are_those_in_the_journal(site: Path, out: Out, tmp_path: Path) -> None:
    config, journal = configured(tmp_path), Journal(tmp_path / "journal.sqlite")
    costs = {"running_s": 172_800.0, "cpu_s": 1728.0, "requests": 86_400}
    journal.save([], unsaved=Unsaved(kept={"cost": costs}))
    journal.close()
    text = " ".join(out(site, "--repeat", 1, "--config", config).split())
    assert "in 2.0 d, requests to Slurm: 86,400, one each 2.0 s; CPU time: 28.8 min, 1 % of a core" in text
    assert json.loads(out(site, "--repeat", 1, "--config", config, "--json"))["cost"] == costs


def test_the_contention_is_that_of_jobs_whose_needs_are_known(site: Path, out: Out, tmp_path: Path) -> None:
    """Two jobs were slowed down by 1.1 and 1.3; one whose needs were predicted, and one without a profile, do not count."""
    config, path = configured(tmp_path), tmp_path / "journal.sqlite"
    Journal(path).close()
    rows = [("measured", 110.0), ("given", 130.0), ("predicted", 900.0), ("default", 900.0)]
    with closing(sqlite3.connect(path)) as journal:
        journal.execute("INSERT INTO workflows VALUES ('slurm', 1, 's', NULL, '', 0.0, 'running', NULL, NULL, 0)")
        for number, (source, run_s) in enumerate(rows):
            choice = {"nodes": ["n1"], "profile": "default" if source == "default" else "align", "source": source}
            journal.execute(
                "INSERT INTO jobs (workflow, job, state, start_time, finish_time, forecast_start, forecast_finish,"
                " isolated_run_time) VALUES ('slurm', ?, 'completed', 10.0, ?, 10.0, 115.0, 100.0)",
                (str(number), 10.0 + run_s),
            )
            journal.execute(
                "INSERT INTO story (key, time, kind, text, data) VALUES (?, 5.0, 'chosen', '', ?)",
                (f"slurm/{number}", json.dumps(choice)),
            )
        journal.commit()
    document = json.loads(out(site, "--repeat", 1, "--config", config, "--json"))
    assert document["contention"] == {"jobs": 2, "forecast": pytest.approx(1.05), "actual": pytest.approx(1.2)}
    text = " ".join(out(site, "--repeat", 1, "--config", config).split())
    assert "contention, mean 1.20 unknown unknown" in text
    assert "of 2 jobs with a measured or given profile; forecast 1.05; unknown for twin and pilotfish, because" in text


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0, "0 s"),
        (0.25, "0.2 s"),
        (42.4, "42 s"),
        (89.0, "89 s"),
        (90.0, "1.5 min"),
        (7200.0, "2.0 h"),
        (2e7, "231 d"),
    ],
)
def test_times_are_short(seconds: float, words: str) -> None:
    assert time_words(seconds) == words
