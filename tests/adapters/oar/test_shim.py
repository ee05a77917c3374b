"""The shim: what it accepts of a placement file, which jobs it keeps, and that OAR's own scheduler runs whatever happens.

OAR is not needed: Perl runs the module as OAR's schedulers load it, with jobs as OAR gives them.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import pilotfish
from pilotfish.adapters.oar.placement_file import LONGEST_ALIVE_S, PlacementFile

SHIM = Path(pilotfish.__path__[0]) / "adapters" / "oar" / "shim"
PERL = Path("/usr/bin/perl")
pytestmark = pytest.mark.skipif(not PERL.exists(), reason="no Perl here: the shim for OAR is not tested")
ME = pwd.getpwuid(os.getuid()).pw_name
#: Print for each file on the command line the sorted ids of the placed jobs, or why it is not used.
READ = """use PilotfishShim 'check'; $| = 1;
for (@ARGV) {
    my $said = eval { PilotfishShim::placements($_, $ENV{PILOTFISH_OWNER}, time()) };
    print defined $said ? "ok " . join(' ', map { "$_=$said->{place}{$_}" } sort keys %{$said->{place}}) . "\\n" : "no $@";
}"""
#: Print what is left of jobs (JSON on stdin, a placement file as argument).
CHOOSE = """use PilotfishShim 'check'; use JSON::PP; local $/;
my $said = PilotfishShim::placements($ARGV[0], $ENV{PILOTFISH_OWNER}, time());
print encode_json([PilotfishShim::chosen($said, undef, @{decode_json(<STDIN>)})]);"""
#: OAR's own module, with nine waiting jobs of one user, of which it gives the first `limit`.
OAR_IO = """package OAR::IO;
sub get_jobs_to_schedule($$$) {
    my (undef, $queue, $limit) = @_;
    my %job = (queue_name => $queue, project => 'p', job_user => 'u', submission_time => time(), properties => '');
    return map { { %job, job_id => $_ } } 1 .. ($limit < 9 ? $limit : 9);
}
sub get_fairsharing_jobs_to_schedule($$$) { return get_jobs_to_schedule($_[0], $_[1], $_[2]) }
sub set_job_message { }
1;"""
#: As a scheduler does: load the module and others, and ask for jobs only then, here when a file (argument) has come.
LATE = """use PilotfishShim; rename $ARGV[0], $ENV{PILOTFISH_FILE};
print join ' ', map { "$_->{job_id}=$_->{properties}" } OAR::IO::get_jobs_to_schedule(undef, 'pilot', 3);"""


def perl(
    script: str,
    *argv: object,
    stdin: str = "",
    owner: str = ME,
    longest: object = 900,
    include: Path = SHIM,
    file: Path = SHIM,
) -> str:
    """Run a script with the module loaded."""
    settings = {"PILOTFISH_OWNER": owner, "PILOTFISH_LONGEST": str(longest), "PILOTFISH_FILE": str(file)}
    settings = {**os.environ, **settings}
    words = [PERL, f"-I{include}", f"-I{SHIM}", "-e", script, *map(str, argv)]
    result = subprocess.run(words, input=stdin, capture_output=True, text=True, check=True, env=settings, timeout=60)
    return result.stdout


def verdicts(*files: Path, owner: str = ME) -> list[str]:
    """What the shim says of files."""
    return perl(READ, *files, owner=owner).splitlines()


@pytest.fixture
def file(tmp_path: Path) -> PlacementFile:
    """A file that keeps a queue, places job 7 and lets job 8 go."""
    placements = PlacementFile(tmp_path / "placements", ["queue pilot", "project grid"], 600.0)
    placements.beat(30.0)
    placements.place(7, ("node1", "node-2.site"), 60.0, 30.0)
    placements.free(8)
    return placements


@pytest.mark.real
def test_what_the_adapter_writes_is_understood(file: PlacementFile) -> None:
    assert verdicts(file.path) == ["ok 7=network_address IN ('node1','node-2.site')"]
    reopened = PlacementFile(file.path, [], 600.0)
    assert (reopened.placed[7].nodes, set(reopened.freed)) == (("node1", "node-2.site"), {8})


@pytest.mark.real
def test_a_file_that_is_cut_short_anywhere_is_not_used(file: PlacementFile, tmp_path: Path) -> None:
    content = file.path.read_bytes()
    cut = [tmp_path / str(length) for length in range(len(content))]
    for length, path in enumerate(cut):
        path.write_bytes(content[:length])
        path.chmod(0o644)
    assert not [line for line in verdicts(*cut) if line.startswith("ok")]


def damaged(whole: bytes) -> Iterable[tuple[str, bytes]]:
    """Whole files with something wrong in them, by the reason."""
    place = b"place 9 99999999999 "
    for bad in (
        *(
            b"x') OR ('1'='1",
            b"'node1'",
            b"node1;drop",
            b"node1\0",
            b"n\xc3\xb6de",
            b"",
            b"a" * 101,
            b" node1",
            b"node1\r",
        ),
        *(b"no\nde", b"node1 ", b"$(id)", b"`id`", b"../node1"[:0] + b"@node"),
    ):
        yield "has a line that is not understood", whole.replace(b"end\n", place + bad + b"\nend\n")
    for bad in (
        b"garbage",
        b"\0",
        b"alive -1",
        b"alive 1e9",
        b"keep user bob 9",
        b"keep queue pilot 999999999",
        b"free x",
    ):
        yield "has a line that is not understood", whole.replace(b"end\n", bad + b"\nend\n")
    yield "is not whole", whole.replace(b"placements 1", b"placements 2")
    yield "is not whole", whole + b"\n"
    yield "is not whole", b"\n" + whole
    yield "is not whole", b"pilotfish-placements 1\nend\n"
    yield "is not whole", b""
    yield "silent since", b"pilotfish-placements 1\nalive %d\nend\n" % (time.time() - 5)
    yield "is the clock right", b"pilotfish-placements 1\nalive %d\nend\n" % (time.time() + LONGEST_ALIVE_S + 60)


@pytest.mark.real
def test_a_damaged_file_is_not_used(file: PlacementFile, tmp_path: Path) -> None:
    cases = list(damaged(file.path.read_bytes()))
    paths = [tmp_path / f"bad{number}" for number in range(len(cases))]
    for path, (_, content) in zip(paths, cases, strict=True):
        path.write_bytes(content)
        path.chmod(0o644)
    lines = verdicts(*paths)
    assert len(lines) == len(cases)
    for line, (reason, content) in zip(lines, cases, strict=True):
        assert line.startswith("no ") and reason in line, (line, content)


@pytest.mark.real
def test_a_file_of_another_kind_owner_or_size_is_not_used(file: PlacementFile, tmp_path: Path) -> None:
    link, pipe, large, shared = (tmp_path / name for name in ("link", "pipe", "large", "shared"))
    link.symlink_to(file.path)
    os.mkfifo(pipe, 0o644)
    with large.open("wb") as out:
        out.truncate(100 * 2**20)
    shutil.copy(file.path, shared)
    shared.chmod(0o664)
    large.chmod(0o644)
    lines = verdicts(link, pipe, large, shared, tmp_path / "missing", tmp_path)
    words = ("symbolic links", "no regular file", "more than", "written by others", "No such file", "no regular file")
    for line, word in zip(lines, words, strict=True):
        assert line.startswith("no ") and word in line
    if os.getuid() == 0:
        os.chown(file.path, pwd.getpwnam("nobody").pw_uid, -1)
        assert "does not belong to" in verdicts(file.path)[0]
        assert verdicts(file.path, owner="nobody")[0].startswith("ok")


def job(number: int, age_s: float, **other: Any) -> dict[str, Any]:
    """A waiting job as OAR's schedulers get it."""
    plain = {
        "queue_name": "pilot",
        "project": "default",
        "job_user": "u",
        "resubmit_job_id": 0,
        "properties": "a = 'b'",
    }
    return {"job_id": number, "submission_time": int(time.time() - age_s), "message": "", **plain, **other}


def chosen(file: PlacementFile, *jobs: dict[str, Any], longest: object = 900) -> dict[int, str]:
    """Properties of the jobs that are left, by id."""
    rows = json.loads(perl(CHOOSE, file.path, stdin=json.dumps(jobs), longest=longest))
    return {row["job_id"]: row["properties"] for row in rows}


@pytest.mark.real
def test_only_kept_jobs_are_left_out(file: PlacementFile) -> None:
    jobs = [
        job(1, 5), job(2, 595), job(3, 605), job(4, 5, queue_name="default"), job(8, 5), job(9, 5, resubmit_job_id=3),
        job(5, 5, queue_name="default", project="grid"), job(6, -300), job(10, 5, properties=None, queue_name="default"),
    ]  # fmt: skip
    assert set(chosen(file, *jobs)) == {3, 4, 8, 9, 6, 10}


@pytest.mark.real
def test_a_placed_job_keeps_what_its_user_asked_for(file: PlacementFile) -> None:
    nodes = "network_address IN ('node1','node-2.site')"
    assert chosen(file, job(7, 5, properties="mem > 3 OR cpu = 2")) == {7: f"(mem > 3 OR cpu = 2) AND {nodes}"}
    assert chosen(file, job(7, 5, properties="")) == {7: nodes}


@pytest.mark.real
def test_a_job_that_would_reach_out_of_its_brackets_is_left_as_it_is(file: PlacementFile) -> None:
    out = "(1=1))) OR (((1=1) AND drain='NO'"
    assert chosen(file, job(7, 5, properties=out), job(1, 5, properties=out)) == {7: out, 1: out}


@pytest.mark.real
def test_a_pass_uses_what_is_written_until_it_asks_for_jobs(file: PlacementFile, tmp_path: Path) -> None:
    (tmp_path / "OAR").mkdir()
    (tmp_path / "OAR" / "IO.pm").write_text(OAR_IO)
    outputs = [perl(LATE, name, include=tmp_path, file=tmp_path / "late") for name in ("missing", file.path)]
    assert outputs == ["1= 2= 3=", "7=network_address IN ('node1','node-2.site') 8="]


@pytest.mark.real
@pytest.mark.parametrize(("longest", "kept"), [(900, True), (60, False), (0, False), ("none", False), ("", False)])
def test_the_longest_hold_is_the_sites(file: PlacementFile, longest: object, kept: bool) -> None:
    assert (1 not in chosen(file, job(1, 100), longest=longest)) is kept


def started(folder: Path, **environment: str) -> str:
    """Which scheduler the program runs, with its arguments."""
    argv = [folder / "pilotfish_sched", "pilot", "12", "2026-01-01 00:00:00"]
    result = subprocess.run(argv, capture_output=True, text=True, check=True, env=os.environ | environment, timeout=60)
    return result.stdout.strip()


@pytest.mark.real
def test_oars_scheduler_runs_whatever_is_missing(tmp_path: Path) -> None:
    stock = tmp_path / "oar_sched_gantt_with_timesharing_and_fairsharing_and_quotas"
    stock.write_text(f'#!{PERL}\nprint $INC{{"PilotfishShim.pm"}} ? "with" : "alone", " @ARGV\\n";\n')
    shutil.copy(SHIM / "pilotfish_sched", tmp_path)
    shim = tmp_path.joinpath("pilotfish_sched")
    placements = tmp_path / "placements"
    program = shim.read_text().replace("/var/lib/pilotfish/oar-placements/placements", str(placements))
    shim.write_text(program.replace("/etc/oar", str(tmp_path)))  # an OAR of another test may be configured there
    for script in (stock, shim):
        script.chmod(0o755)
    stock_line, together = (f"{how} pilot 12 2026-01-01 00:00:00" for how in ("alone", "with"))
    assert started(tmp_path) == stock_line  # no file, no module
    placements.write_text("garbage")
    assert started(tmp_path) == stock_line  # no module
    module = tmp_path / "PilotfishShim.pm"
    module.write_text("this is no Perl (")
    assert started(tmp_path) == stock_line
    shutil.copy(SHIM / "PilotfishShim.pm", module)
    assert started(tmp_path) == together  # a bad file, and no OAR to report it to
    placements.unlink()
    assert started(tmp_path) == stock_line
