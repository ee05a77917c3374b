"""`pilotfish whatif`: the report on a site, the file of starts, changes, and errors."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from pilotfish.cli.__main__ import USAGE, main
from pilotfish.formats.site.site_folder import read_site
from tests.support.slurm_site_files import CONF, records, row, write_site

from .conftest import out


def test_the_report_fits_80_columns_and_ends_with_what_is_not_followed(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conf = site / "slurm.conf"
    text = conf.read_text()
    conf.write_text(text + "TopologyPlugin=topology/tree\n")
    try:
        lines = out(capsys, "whatif", site, "--repeat", 2).splitlines()
    finally:
        conf.write_text(text)
    assert lines[0].startswith("university: 60 jobs on 200 nodes, Slurm 22.05")
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("2 replays") for line in lines)
    assert "Not known, or not followed:" in lines and "TopologyPlugin" in " ".join(
        lines[lines.index("Not known, or not followed:") :]
    )


def test_the_starts_have_a_row_a_job(site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out(capsys, "whatif", site, "--starts", tmp_path / "starts.csv")
    with (tmp_path / "starts.csv").open(newline="") as file:
        rows = {row["job"]: row for row in csv.DictReader(file)}
    jobs = read_site(site).jobs
    assert rows.keys() == {job.name for job in jobs}
    first = min(job.submit for job in jobs)
    for job in jobs:
        row = rows[job.name]
        assert float(row["submit"]) == job.submit - first <= float(row["start"]) < float(row["end"])
        assert row["nodes"].startswith(("c", "m"))


def test_a_policy_is_compared_with_the_rules_of_the_site(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ("whatif", site, "--policy", "easy:order=sjf", "--repeat", 2, "--starts", tmp_path / "starts.csv")
    text = out(capsys, *argv)
    assert "--policy easy:order=sjf" in text and "the policy sees neither partitions" in " ".join(text.split())
    with (tmp_path / "starts.csv").open(newline="") as file:
        rows = {row["job"]: row for row in csv.DictReader(file)}
    assert rows.keys() == {job.name for job in read_site(site).jobs}
    assert all(float(row["submit"]) <= float(row["start"]) and row["nodes"] for row in rows.values())
    document = json.loads(out(capsys, *argv, "--json"))
    (scenario,) = document["scenarios"]
    assert scenario["changes"] == ["--policy easy:order=sjf"] and scenario["backfilled"] is None
    for wrong in ("mom", "easy+powercap", f"slurm:{site}", "sjf"):
        assert main(["whatif", str(site), "--policy", wrong]) == USAGE
        assert "--policy" in capsys.readouterr().err


def test_a_seed_gives_the_same_starts_again(site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, seed in (("a", 4), ("b", 4)):
        out(capsys, "whatif", site, "--seed", seed, "--starts", tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_zone_is_that_of_a_drain_too(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def drained(hours: str, *options: str) -> object:
        nodes = f"c[000001-000179]@{hours}"
        argv = ("whatif", site, "--repeat", 1, "--json", "--drain", nodes, *options)
        return json.loads(out(capsys, *argv))["scenarios"][0]["wait"]["mean"]

    utc = drained("2022-10-01T00:00..2022-10-01T06:00")
    assert drained("2022-10-01T00:00..2022-10-01T06:00", "--zone", "Etc/GMT+9") == utc
    assert drained("2022-10-01T09:00..2022-10-01T15:00") != utc


def test_json_has_the_numbers_of_the_report(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(out(capsys, "whatif", site, "--json"))
    assert document["schema"] == "pilotfish/whatif/v1"
    assert document["jobs"] == 60 and document["waits"]["jobs"] == 60
    (made_up,) = document["unknown"]
    assert made_up.startswith("recorded starts: invented")


def test_json_has_utilisation_power_and_energy_of_each_hour(
    tmp_path: Path, site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    powered = tmp_path / "archer2"
    assert main(["generate", "site", "archer2", "--jobs", "200", "-o", str(powered)]) == 0
    capsys.readouterr()
    document = json.loads(
        out(capsys, "whatif", powered, "--repeat", 2, "--idle-power", 230, "--scale-load", 1, "--json")
    )
    (scenario,) = document["scenarios"]
    hours = scenario["hours"]["before"]
    assert sum(hours["energy_j"]) == pytest.approx(scenario["energy_j"]["before"])
    assert max(hours["power_w"]) == pytest.approx(scenario["highest_power_w"]["before"])
    assert scenario["hours"]["after"] == hours and 0.0 < max(hours["utilisation"]) <= 1.0
    document = json.loads(out(capsys, "whatif", site, "--json"))
    assert document["hours"]["recorded"]["power_w"] is None and document["first_hour"] > 1e9
    assert len(document["hours"]["replayed"]["utilisation"]) == len(document["hours"]["recorded"]["utilisation"])


def test_a_site_of_one_job_has_no_hours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lonely = write_site(tmp_path, sacct_psv=records(row()))
    document = json.loads(out(capsys, "whatif", lonely, "--json"))
    assert document["hours"]["replayed"] == {"utilisation": [], "power_w": None, "energy_j": None}
    out(capsys, "whatif", lonely, "--scale-load", 2, "--repeat", 1, "--plot", tmp_path / "effect.html")


def test_a_change_is_compared_with_the_site(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = (
        "whatif",
        site,
        "--drain",
        "c[000001-000179]@0..",
        "--set",
        "SchedulerParameters=bf_window=99",
        "--repeat",
        2,
    )
    text = out(capsys, *argv)
    assert "change: --drain c[000001-000179]@0.." in text and "BEFORE" in text
    assert max(map(len, text.splitlines())) <= 80
    (document,) = json.loads(out(capsys, *argv, "--json"))["scenarios"]
    assert document["wait"]["mean"]["after"] > document["wait"]["mean"]["before"] and document["replays"] == 2


def test_an_unknown_interval_is_not_called_noise(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = out(capsys, "whatif", site, "--all", "--repeat", 2, "--scale-load", 1.2).splitlines()
    unknown = [line for line in lines if "unknown" in line]
    assert unknown and not [line for line in unknown if line.rstrip().endswith("noise")]
    (users,) = (line for line in lines if line.startswith("users "))
    assert users.endswith("unknown") and int(users.split()[-2]) > 0


def test_a_change_that_changes_nothing_gives_the_same_starts(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ("whatif", site, "--scale-load", "1", "--repeat", 1, "--json")
    (document,) = json.loads(out(capsys, *argv))["scenarios"]
    assert document["wait"]["mean"]["after"] == document["wait"]["mean"]["before"]
    assert document["wait"]["mean"]["low"] == document["wait"]["mean"]["high"] == 0.0


def test_moved_jobs_are_a_class_of_their_own(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ("whatif", site, "--move-jobs", "normal:teaching:0.5", "--repeat", 1, "--json")
    (document,) = json.loads(out(capsys, *argv))["scenarios"]
    jobs = {one["name"]: one["jobs"] for one in dict(document["groups"])["QOS"]}
    assert jobs["normal to teaching"] > 0 < jobs["normal"] and sum(jobs.values()) == document["jobs"]


@pytest.mark.long
def test_jobs_that_a_change_keeps_from_starting_are_counted_by_reason(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = out(capsys, "whatif", site, "--set-partition", "batch.MaxTime=1", "--repeat", 1)
    text = " ".join(lines.split())
    assert "jobs that start only before the change (" in text and "their time limit is above MaxTime" in text
    assert max(map(len, lines.splitlines())) <= 80


def test_a_change_of_jobs_that_are_not_there_is_said_to_do_nothing(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    qos = site / "qos.psv"
    text = qos.read_text()
    qos.write_text(text + "rare" + "|" * text.partition("\n")[0].count("|") + "\n")
    try:
        lines = out(capsys, "whatif", site, "--hold-jobs", "rare@08:00", "--repeat", 1)
    finally:
        qos.write_text(text)
    assert "no job has the QOS rare: a change of its jobs does nothing" in " ".join(lines.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--set", "Foo=1"), "a replay does not follow 'Foo'"),
        (("--set", "Foo"), "KEY=VALUE"),
        (("--set-qos", "Priority=3"), "NAME.KEY=VALUE"),
        (("--set-partition", "x.MaxTime=3"), "'x' is not a partition"),
        (("--drain", "c000001"), "NODES@FROM..TO"),
        (("--drain", "c000001@9..2"), "ends before it begins"),
        (("--drain", "c000001@soon.."), "'soon' is not a time"),
        (("--drain", "z1@..5"), "'z1' is not a node"),
        (("--add-nodes", "0"), "1 to 100,000"),
        (("--add-nodes", "2:z"), "'z' is not a node"),
        (("--scale-load", "0"), "0.01 to 100"),
        (("--move-jobs", "normal:teaching"), "QOS:OTHER:SHARE"),
        (("--move-jobs", "normal:teaching:1.5"), "above 0 and up to 1"),
        (("--move-jobs", "normal:teachin:1"), "did you mean 'teaching'"),
        (("--hold-jobs", "normal@25:00"), "QOS@HH:MM"),
        (("--hold-jobs", "8:00"), "QOS@HH:MM"),
        (("--hold-jobs", "norma@08:00"), "did you mean 'normal'"),
        (("--scale-load", "1", "--plot", "x.gif"), ".png, .pdf"),
        (("--plot", "x.png"), "changes"),
    ],
)
def test_a_wrong_option_is_refused(
    site: Path, options: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["whatif", str(site), *options]) == USAGE
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_folder_without_a_site_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["whatif", str(tmp_path)]) == 1
    assert "slurm.conf" in capsys.readouterr().err


def test_long_names_of_classes_and_scenarios_stand_there_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"simulations-of-large-molecules-{where}-in-water" for where in ("as-they-fold", "as-they-part")]
    jobs = records(*(row(JobID=str(k), User=name) for k, name in enumerate(names, 1)))
    folder = write_site(tmp_path, sacct_psv=jobs, slurm_conf=CONF.replace("associations,limits,qos", ""))
    scenarios = [f"molecules-which-{verb}" for verb in ("fold", "part")]
    options = [word for name in scenarios for word in ("--scenario", f"{name}: --scale-load 2")]
    for words, tables in (
        ((), {"USER": names}),
        ((*options, "--all", "--repeat", 1), {"USER": names, "SCENARIO": scenarios}),
    ):
        text = out(capsys, "whatif", folder, *words)
        assert max(map(len, text.splitlines())) <= 80
        for title, classes in tables.items():
            assert {*classes} <= {*text.partition(f"\n{title} ")[2].partition("\n\n")[0].split()}, text
