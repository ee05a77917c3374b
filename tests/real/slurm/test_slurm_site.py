"""The site that other tests here rely on: its services answer, and each can be taken away and brought back."""

from __future__ import annotations

import signal

import pytest
import requests
from slurm_site import OPERATOR, SlurmSite

pytestmark = pytest.mark.xdist_group("site 5")


def test_every_service_of_the_site_answers(site: SlurmSite) -> None:
    job = site.submit("true", "--partition=shared")
    site.until(lambda: site.jobs()[job][0] == "COMPLETED", "the job")
    site.until(lambda: "COMPLETED" in site.run("sacct", "-nPX", f"--jobs={job}", "--format=State"), "accounting")
    headers = {"X-SLURM-USER-NAME": OPERATOR, "X-SLURM-USER-TOKEN": site.token()}
    answer = requests.get(f"{site.rest_url}/slurm/v0.0.38/job/{job}", headers=headers, timeout=20)
    assert answer.json()["jobs"][0]["user_id"] == site.uid("games")


def test_a_service_that_was_ended_is_started_again(site: SlurmSite) -> None:
    site.signal("slurmrestd", signal.SIGKILL)
    site.signal("slurmdbd", signal.SIGKILL)
    site.up()
    assert site.run("sacct", "-nPX", "--format=JobID", "--user=games") is not None
