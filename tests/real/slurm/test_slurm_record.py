"""`pilotfish site record` on a real site, as an operator; `whatif` replays what it wrote, with and without names."""

from __future__ import annotations

import csv
import gzip
import json
import re
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from real_world import eventually, run_as
from real_world import pilotfish as run_here
from slurm_site import OPERATOR, SlurmSite

from pilotfish.formats.site.site_folder import read_site

pytestmark = pytest.mark.xdist_group("site 5")
WIDTHS = (1, 4, 2, 3, 1, 2, 4, 1)


def pilotfish(site: SlurmSite, *argv: str) -> subprocess.CompletedProcess[str]:
    environment = site.environment | {"PATH": "/usr/bin:/bin:/usr/sbin", "COLUMNS": "80", "HOME": str(site.shared())}
    result = run_as(OPERATOR, *argv, env=environment)
    if "ermission denied" in result.stderr and "Python" in result.stderr:
        pytest.skip(f"SKIPPED, the user {OPERATOR} may not read the folder in which pilotfish is installed")
    return result


def starts_of(folder: Path, tmp_path: Path) -> list[tuple[str, ...]]:
    file = tmp_path / f"{folder.name}.csv"
    result = run_here("whatif", folder, "--starts", file, "--seed", "4")
    assert result.returncode == 0, result.stderr
    with file.open() as rows:
        return [(row["submit"], row["start"], row["end"]) for row in csv.DictReader(rows)]


def test_an_operator_records_a_site_and_whatif_replays_it(site: SlurmSite, tmp_path: Path) -> None:
    jobs = [
        site.submit("sleep 1", f"-N{width}", "-n4", "-t", "5", f"--job-name=secret{i} a|b", "--comment=games' own")
        for i, width in enumerate(WIDTHS)
    ]
    held = site.submit("sleep 1", "-H", "--job-name=held", user="news")
    eventually(lambda: all(site.jobs()[job][0] == "COMPLETED" for job in jobs), "the jobs")
    ended = ("sacct", "-a", "-X", "-n", "-P", "--format=JobID,State", "-S", "now-1hour")
    eventually(lambda: {f"{job}|COMPLETED" for job in jobs} <= set(site.run(*ended).split()), "accounting")
    folder = site.shared() / "recordings"
    folder.mkdir()
    shutil.chown(folder, OPERATOR)

    result = pilotfish(site, "site", "record", str(folder / "site"), "--since", "1h", "--json")
    assert (result.returncode, result.stderr) == (0, "")
    document = json.loads(result.stdout)
    assert document["missing"] == {}
    assert {"slurm.conf", "sacct.psv", "scontrol_job.txt", "assoc.psv", "reservations.psv"} <= set(document["files"])
    assert str(held) in (folder / "site" / "scontrol_job.txt").read_text()

    options = ("--since", "1h", "--anonymise", "--anonymise-nodes")
    result = pilotfish(site, "site", "record", str(folder / "other"), *options)
    assert result.returncode == 0, result.stderr
    mapping = folder / "other-names.json"
    assert mapping.stat().st_mode & 0o777 == 0o600
    names = json.loads(mapping.read_text())
    assert {"games", "news"} <= set(names["user"]) and {"research", "teaching"} <= set(names["account"])
    texts = "".join(path.read_text() for path in (folder / "other").iterdir() if path.suffix != ".gz") + site.run(
        "zcat", str(folder / "other" / "sacct.psv.gz")
    )
    assert re.findall(r"\b(?:games|news|research|teaching|pilot|secret\w*|n1)\b", texts) == []
    assert str(site.path) not in texts

    starts = starts_of(folder / "site", tmp_path)
    assert len(starts) >= len(WIDTHS)
    assert starts_of(folder / "other", tmp_path) == starts

    result = pilotfish(site, "site", "record", str(folder / "site"))
    assert result.returncode == 1 and "it is not empty (allowed: a new or an empty folder)" in result.stderr


def test_a_killed_recording_is_not_replayed(site: SlurmSite) -> None:
    folder = site.shared() / "killed"
    folder.mkdir()
    shutil.chown(folder, OPERATOR)
    slow = folder / "bin"
    slow.mkdir()
    (slow / "sacct").write_text("#!/bin/sh\necho 'JobID|Submit'\nkill -9 $PPID\n")
    (slow / "sacct").chmod(0o755)
    environment = site.environment | {"PATH": f"{slow}:/usr/bin:/bin:/usr/sbin", "HOME": str(site.shared())}
    result = run_as(OPERATOR, "site", "record", str(folder / "site"), env=environment)
    assert result.returncode != 0
    assert (folder / "site" / "qos.psv").exists() and not (folder / "site" / "sacct.psv.gz").exists()
    result = run_here("whatif", folder / "site")
    assert result.returncode == 1 and "the recording was not finished (recording.json)" in result.stderr


def test_without_accounting_what_is_missing_is_listed_with_its_cost(site: SlurmSite) -> None:
    folder = site.shared() / "partly"
    commands = folder / "bin"
    commands.mkdir(parents=True)
    shutil.chown(folder, OPERATOR)
    for name in ("scontrol", "sshare", "sprio", "sdiag", "setpriv", "sh", "env"):
        (commands / name).symlink_to(shutil.which(name) or name)
    site.submit("sleep 1", "-H", "-n2", "--job-name=held")
    environment = site.environment | {"PATH": str(commands), "HOME": str(site.shared())}
    result = run_as(OPERATOR, "site", "record", str(folder / "site"), "--since", "1h", env=environment)
    assert result.returncode == 1, result.stderr
    absent = "is not on the PATH; the Slurm adapter needs Slurm's commands"
    assert f"missing: qos.psv: sacctmgr {absent}; QOS have no priority and no limits\n" in result.stdout
    assert f"missing: sacct.psv: sacct {absent}; there is nothing to replay\n" in result.stdout
    recorded = read_site(folder / "site")
    assert f"no qos.psv (sacctmgr {absent}): QOS have no priority and no limits" in recorded.unknown
    assert "held" in {job.name for job in recorded.jobs}


def test_an_operator_records_what_slurm_shows_and_the_loop_plays_it(site: SlurmSite, tmp_path: Path) -> None:
    folder = Path(tempfile.mkdtemp(dir=site.shared()))
    shutil.chown(folder, OPERATOR)
    argv = ("record", str(folder / "record"), "--adapter", "slurm", "--every", "0.5", "--for", "20s")
    with ThreadPoolExecutor(1) as pool:
        recording = pool.submit(pilotfish, site, *argv)
        eventually(lambda: recording.done() or any((folder / "record").glob("*.gz")), "the record")
        job = site.submit("sleep 1", "-N2", "-n4", "-t", "5", "--comment=pilotfish", "--job-name=seen")
        eventually(lambda: site.jobs()[job][0] == "COMPLETED", "the job")
        result = recording.result()
    assert result.returncode == 0, result.stderr
    assert "records slurm into" in result.stderr
    (segment,) = (folder / "record").glob("*.jsonl.gz")
    lines = [json.loads(line) for line in gzip.decompress(segment.read_bytes()).splitlines()]
    calls = [name for line in lines[1:] for name, *_ in line["calls"]]
    assert lines[0]["adapter"] == "slurm" and {"snapshot", "queue"} <= set(calls)
    assert f'"slurm/{job}"' in json.dumps(lines)
    played = run_here("replay", folder / "record", "--json")
    document = json.loads(played.stdout)
    assert played.returncode == 0 and document["equal"] == document["cycles"] > 2, played.stderr
