"""A record with other names: nothing of the names is left, and its replay decides the same."""

from __future__ import annotations

import gzip
import json
import zipfile
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from pilotfish.daemon.recording.anonymous_lines import AnonymousLines
from pilotfish.daemon.recording.anonymous_record import anonymise
from pilotfish.daemon.recording.other_names import OtherNames
from pilotfish.daemon.state.pauses import Pause
from pilotfish.daemon.state.queue import Submission
from pilotfish.formats.record import segments
from pilotfish.profiles.identity import signature
from pilotfish.profiles.measurement import Measurement
from pilotfish.profiles.prediction.similar_jobs import traits_of
from pilotfish.profiles.store import ProfileStore
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.accounting_record import AccountingRecord
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.observed_queue import ObservedJob
from pilotfish.simulate.model.snapshot import JobView
from tests.support import effort
from tests.support.recorded_site import RecordedSite, played

USERS = {"204150937": "zebraproj", "210768411": "walrusproj", "319994073": "albatross"}
#: Names of jobs: two are one kind of jobs, one is too long for the name of its profile.
JOBS = ("nightowl_20260101", "nightowl_20260102", "heronfold", "pelican " + "very long and private " * 6)
SECRETS = (
    *USERS, *USERS.values(), "nightowl", "heronfold", "pelican", "private", "kestrel", "ospreyflow", "budgerigar", "deadbeefcafe",
    "cormorant", "/home/",
)  # fmt: skip


class NamedSite(RecordedSite):
    """A site whose jobs have users, accounts, names and scripts, as Slurm's have, and learned profiles."""

    def job(self, name: str, profile: Profile, walltime: float) -> Job:
        job = asked(self.draw.choice(JOBS), self.draw.choice(sorted(USERS)), profile.threads, walltime)
        return job if profile.threads > 3 else replace(job, profile=profile)


def asked(name: str, user: str, cores: int, walltime: float) -> Job:
    traits = {"user": user, "group": USERS[user], "executable": name, "queue": "batch", "script": "deadbeefcafe"}
    unknown = replace(DEFAULT_PROFILE, name="", groups=(ThreadGroup(cores, walltime),))
    kind = f"{name} #deadbeefcafe of {USERS[user]}/{user}"
    return Job("7", unknown, walltime=walltime, known_as=kind, traits=tuple(traits.items()), owner=int(user))


def learned(path: Path) -> None:
    """Keep runs of jobs of that site, which its forecasts rest on."""
    store = ProfileStore(path)
    for number, name in enumerate(JOBS):
        for user in USERS:
            job = asked(name, user, 1 + number % 3, 400.0)
            group = ThreadGroup(1 + number % 3, 20.0 + 5.0 * number)
            run = Measurement((group,), 20.0 + number, 20.0, 20.0, traits=traits_of(job, 0.0), command=signature(job),
                              notes=("in /home/kestrel",), owner=int(user))  # fmt: skip
            store.record_all([(signature(job), run)] * 3)
    store.put(Profile((ThreadGroup(1, 4.0),), name="budgerigar"))


def recorded(folder: Path, seed: int, **options: object) -> RecordedSite:
    learned(folder / "state" / "profiles.sqlite")
    site = NamedSite(folder, seed=seed, **options)
    site.run(40)
    return site


def texts_of(folder: Path) -> str:
    """Return all that is in a record, unpacked."""
    content = b""
    for path in sorted(folder.iterdir()):
        if path.name.endswith(".gz"):
            content += gzip.decompress(path.read_bytes())
        else:
            with zipfile.ZipFile(path) as archive:
                content += b"".join(map(archive.read, archive.namelist()))
    return content.decode("utf-8", "replace")


@pytest.mark.parametrize(("seed", "policy"), effort.some([(3, "lookahead"), (4, "easy:order=sjf"), (5, "mom")], 1))
def test_its_replay_decides_the_same_and_no_name_is_left(tmp_path: Path, seed: int, policy: str) -> None:
    site = recorded(tmp_path, seed, policy=policy)
    site.fails = 0.05
    command = ("/home/kestrel/bin/cormorant", "--fast")
    jobs = (
        Job("ospreyfirst", Profile((ThreadGroup(1, 20.0),), name="budgerigar"), command=command, directory="/home/kestrel"),
        Job("ospreylast", DEFAULT_PROFILE, after=("ospreyfirst",), command=command, environment=(("KESTREL", "kestrel"),)),
    )  # fmt: skip
    submission = Submission("ospreyflow.abcdef", Workflow("ospreyflow", jobs), site.manager.time, owner=319994073)
    site.journal.submit(submission, "kestrel's key")
    site.cycle.tracker.add(submission)
    site.run(40)
    site.cycle.tracker.pauses.begin(
        Pause("", site.manager.time, site.manager.time + 70.0, "kestrel wants it", "kestrel")
    )
    site.recorder.note_input("pauses", site.cycle.tracker.pauses.state())
    site.run(40)
    outcome = anonymise(site.config.record_folder, tmp_path / "away")
    assert outcome.cycles == 120 and outcome.gaps == []
    before, _ = played(site.config.record_folder)
    after, comparison = played(tmp_path / "away")
    assert comparison.equal == comparison.cycles == 120 and comparison.decisions > 20, [
        (one.number, one.recorded, one.played) for one in after if one.differs
    ][:2]
    assert comparison.strays == 0 and comparison.gaps == []
    assert [len(one.played.get("did", ())) for one in after] == [len(one.played.get("did", ())) for one in before]
    assert [one.played.get("forecasts") for one in after] == [one.played.get("forecasts") for one in before]
    text, original = texts_of(tmp_path / "away"), texts_of(site.config.record_folder)
    assert [secret for secret in SECRETS if secret in text.lower()] == []
    assert [secret for secret in SECRETS if secret not in original.lower()] == []
    names = json.loads(outcome.names.read_text())
    assert set(USERS) <= set(names["uid"]) and set(USERS.values()) == set(names["account"])
    assert outcome.names.stat().st_mode & 0o777 == 0o600


def test_what_clients_asked_for_during_a_cycle_has_other_names_at_its_place(tmp_path: Path) -> None:
    learned(tmp_path / "state" / "profiles.sqlite")
    site = NamedSite(tmp_path, seed=3)
    site.asks = 0.1
    site.run(20)
    assert min(site.answered[kind] for kind in ("submit", "cancel")) > 0
    anonymise(site.config.record_folder, tmp_path / "away")
    lines = {folder: _meanwhile(folder) for folder in (site.config.record_folder, tmp_path / "away")}
    before, after = lines.values()
    assert [[*place, kind] for *place, (kind, *_) in before] == [[*place, kind] for *place, (kind, *_) in after]
    assert {kind for *_, (kind, *_) in after} == {"submit", "cancel"}
    workflows = [facts[0] for *_, (kind, *facts) in before if kind == "submit"]
    assert workflows and not any(name in texts_of(tmp_path / "away") for name in workflows)
    _, comparison = played(tmp_path / "away")
    assert comparison.equal == comparison.cycles == 20 and comparison.strays == 0 and comparison.gaps == []


def _meanwhile(folder: Path) -> list[list[Any]]:
    """Return what clients asked for during cycles, as the record has it."""
    lines = [line for one in segments.open_segments(segments.segments(folder), []) for line in one.lines()]
    return [entry for line in lines for entry in line.get("meanwhile", ())]


@pytest.mark.long
def test_a_state_from_before_has_other_names(tmp_path: Path) -> None:
    """The journal of a daemon that ran before, with its jobs, its stories and its audit."""
    first = recorded(tmp_path, 3)
    first.journal.close()
    site = NamedSite(tmp_path, seed=9)
    site.run(30)
    assert len(segments.segments(site.config.record_folder)) == 2
    anonymise(site.config.record_folder, tmp_path / "away")
    _, comparison = played(tmp_path / "away")
    assert comparison.equal == comparison.cycles == 70 and comparison.gaps == []
    assert [secret for secret in SECRETS if secret in texts_of(tmp_path / "away").lower()] == []


def test_names_keep_their_order_and_their_kinds() -> None:
    names = OtherNames("slurm")
    jobs, uids = ["b_123456", "b_123457", "a", "b", "B", "b  c"], [0, 7, 12, 999, 1000, 1001, 60000]
    for _ in range(2):
        others = [names.one("job", name) for name in jobs]
        other_uids = [names.uid(uid) for uid in uids]
        if not names.is_numbered:
            names.number()
    assert sorted(range(6), key=jobs.__getitem__) == sorted(range(6), key=others.__getitem__)
    assert other_uids == sorted(other_uids) and [*map(len, map(str, uids))] == [*map(len, map(str, other_uids))]
    kinds = [signature(replace(asked("x", "204150937", 1, 9.0), known_as=f"{name} of lab/5")) for name in others]
    assert kinds[0] == kinds[1] and len(set(kinds)) == 5


def test_each_field_of_a_job_has_its_place() -> None:
    """A new field is left out until somebody says what it is; this test says so."""
    lines = AnonymousLines(OtherNames("slurm"))
    left_out = {"command", "environment", "base_environment"}
    assert {one.name for one in fields(Job)} - left_out == lines._job.keys() | {"id", "after"}
    assert {one.name for one in fields(JobView)} == lines._view.keys() | {"job"}
    assert {one.name for one in fields(ObservedJob)} == lines._queued.keys()
    assert {one.name for one in fields(AccountingRecord)} == lines._used.keys()
    assert {one.name for one in fields(Profile)} == lines._profile.keys()
    assert {one.name for one in fields(Pause)} == lines._pause.keys()


def test_a_record_that_was_cut_off_is_written_as_far_as_it_goes(tmp_path: Path) -> None:
    site = recorded(tmp_path, 3)
    (path,) = segments.segments(site.config.record_folder)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    outcome = anonymise(site.config.record_folder, tmp_path / "away")
    assert 0 < outcome.cycles < 40 and path.name in outcome.gaps[0]
    _, comparison = played(tmp_path / "away")
    assert comparison.cycles == comparison.equal == outcome.cycles


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    site = recorded(tmp_path, 3)
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / "mine").touch()
    with pytest.raises(ConfigError, match="has files already"):
        anonymise(site.config.record_folder, tmp_path / "away")
    (tmp_path / "other-names.json").touch()
    with pytest.raises(ConfigError, match="exists already"):
        anonymise(site.config.record_folder, tmp_path / "other")
    assert not (tmp_path / "other").exists()
