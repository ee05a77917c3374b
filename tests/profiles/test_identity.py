"""Names made from commands: the same work has the same name."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.profiles import identity
from pilotfish.profiles.identity import LONGEST, signature, words_checksum
from pilotfish.profiles.store import check_name
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Job, Profile, ThreadGroup


def name(*command, **more):
    return signature(Job("j", DEFAULT_PROFILE, command=command or None, **more))


def test_without_a_command_there_is_no_name():
    assert name() is None


def test_without_a_command_the_job_name_is_used():
    two = Profile((ThreadGroup(2, 1.0),))
    assert name(known_as="align of lab/5") == "job: align of lab/5, 1 core"
    assert signature(Job("j", two, nodes=3, known_as="align of lab/5")) == "job: align of lab/5, 2 cores on 3 nodes"
    assert name(known_as="align-20240101 of lab/5") == name(known_as="align-20250607 of lab/5")
    assert name(known_as="20240101 of lab/5") == name(known_as="20250607 of lab/5"), "a name is not an amount of work"
    assert name(known_as="align of lab/5") != name(known_as="align of lab/6")
    assert name("sim", known_as="align of lab/5") == "cmd: sim"
    assert name(known_as="align of lab/100005") != name(known_as="align of lab/100006"), "uids may be long"


@given(st.text(min_size=1))
def test_any_job_name_gives_a_valid_profile_name(known_as):
    made = name(known_as=known_as)
    check_name(made)
    assert len(made) <= LONGEST


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("./align.sh", "a.fastq"), ("/opt/bin/align.sh", "/data/b.fastq")),
        (("python3", "work.py", "cpu", "2"), ("./work.py", "cpu", "2")),
        (("/bin/sh", "-c", "./sim --steps 10"), ("./sim", "--steps", "10")),
        (("sim", "--out=/tmp/1"), ("sim", "--out=/tmp/2")),
        (("sim", "run-20240101"), ("sim", "run-20250607")),
        (("sim", "2024-01-01", "2024-01-31"), ("sim", "2025-01-01", "2025-01-31")),
        (("sim", "2024-13-01", "2024-01-31"), ("sim", "2025-13-01", "2025-01-31")),
        (("sim", "/a/data"), ("sim", "../b/data")),
        (("curl", "https://me:s3cret@h/x"), ("curl", "https://h/x")),
        (("timeout", "60", "./sim", "5"), ("timeout", "60", "/opt/sim", "5")),
        (("python3", "-m", "tool", "a/x.csv"), ("python3.12", "-m", "tool", "b/y.csv")),
        (("bash", "-lc", "./sim --steps 10"), ("sim", "--steps", "10")),
    ],
)
def test_the_same_work_has_the_same_name(one, other):
    assert name(*one) == name(*other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("sim", "--steps", "10"), ("sim", "--steps", "20")),
        (("sim", "a.txt"), ("sim", "a.bin")),
        (("sim",), ("sum",)),
        (("git", "gc"), ("git", "log")),
        (("timeout", "60", "./a", "3"), ("timeout", "60", "./b", "3")),
        (("nice", "-n", "5", "./a"), ("nice", "-n", "5", "./b")),
        (("env", "N=1", "python3", "a.py"), ("env", "N=1", "python3", "b.py")),
        (("mpirun", "-n", "4", "./a"), ("mpirun", "-n", "4", "./b")),
        (("mpirun", "-n", "4", "./a"), ("mpirun", "-n", "8", "./a")),
        (("apptainer", "exec", "x.sif", "/opt/a"), ("apptainer", "exec", "x.sif", "/opt/b")),
        (("python3", "-u", "a.py"), ("python3", "-u", "b.py")),
        (("sh", "-x", "./a"), ("sh", "-x", "./b")),
        (("python3", "-c", "print(1)", "2"), ("python3", "-c", "print(1)", "3")),
        (("python3", "-c", "for _ in range(1000000): pass"), ("python3", "-c", "for _ in range(2000000): pass")),
        (("python3", "-c", "n = 5"), ("python3", "-c", "n = 6")),
        (("python3", "-c", "n=5"), ("python3", "-c", "n=6")),
        (("perl", "-e", "print 1/2"), ("perl", "-e", "print 2/2")),
        (("sh", "-c", './sim "$1"', "sh", "2"), ("sh", "-c", './sim "$1"', "sh", "3")),
        (("bash", "-lc", "module load gcc; ./sim 5"), ("bash", "-lc", "module load gcc; ./sim 6")),
        (("N=1000", "./sim"), ("N=2000", "./sim")),
        (("N=10M", "./sim"), ("N=20M", "./sim")),
        (("N=1,2,4", "./sim"), ("N=1,2,8", "./sim")),
        (("bash", "-c", "N=5; ./sim $N"), ("bash", "-c", "N=6; ./sim $N")),
        (("METHOD=fast", "./sim"), ("./sim",)),
        (("bash", "-c", "for i in {1..1000000}; do :; done"), ("bash", "-c", "for i in {1..2000000}; do :; done")),
        (("grid", "1000000x1000000"), ("grid", "2000000x1000000")),
        (("sim", "--mem=1000000bytes"), ("sim", "--mem=2000000bytes")),
        (("python3", "-c", "f(1000000., 2)"), ("python3", "-c", "f(2000000., 2)")),
        (("sim", "2024-01-01", "2024-01-31"), ("sim", "2024-01-01", "2024-12-31")),
        (("sed", "s/a/x/", "f.txt"), ("sed", "s/b/x/", "f.txt")),
        (("train", "--model", "one/small"), ("train", "--model", "two/small")),
        (("sqlite3", "a.db", "select 1 from a.t"), ("sqlite3", "a.db", "select 2 from a.t")),
        (("curl", "https://h/a/x"), ("curl", "https://h/b/x")),
        (("dd", "if=/dev/zero", "bs=1048576"), ("dd", "if=/dev/zero", "bs=2097152")),
        (("dd", "if=/dev/zero", "bs=1M"), ("dd", "if=/dev/urandom", "bs=1M")),
        (("head", "-c1000000", "x.bin"), ("head", "-c2000000", "x.bin")),
        (("head", "-c", "1000000k", "x.bin"), ("head", "-c", "2000000k", "x.bin")),
        (("view", "x.bam", "chr1:1000000-2000000"), ("view", "x.bam", "chr1:1000000-9000000")),
    ],
)
def test_other_work_has_another_name(one, other):
    assert name(*one) != name(*other)


def test_threads_and_nodes_make_another_job():
    assert name("sim", environment=(("OMP_NUM_THREADS", "4"),)) != name("sim")
    assert name("sim", environment=(("STEPS", "5"),)) != name("sim", environment=(("STEPS", "6"),))
    assert name("sim", nodes=2) != name("sim")


def test_long_commands_stay_distinct():
    long = [f"--key{i}" for i in range(100)]
    assert name("sim", *long) != name("sim", *long, "x")
    assert len(name("sim", *long)) <= LONGEST


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=30), min_size=1, max_size=5))
def test_any_command_gives_a_printable_name(words):
    found = name(*words)
    assert found.isprintable()
    assert 0 < len(found) <= LONGEST
    assert found == found.strip()
    assert name(*words) == found


@pytest.mark.parametrize(
    "command",
    [
        ("API_TOKEN=s3cret", "sim", "-n", "8"),
        ("env", "API_TOKEN=s3cret", "B=s3cret", "sim", "-n", "8"),
        ("env", "-i", "-u", "HOME", "API_TOKEN=s3cret", "sim", "-n", "8"),
        ("sh", "-c", "API_TOKEN='s3cret x' sim -n 8"),
        ("sh", "-c", "cd /tmp; API_TOKEN=s3cret sim -n 8"),
        ("sh", "-c", "cd /tmp && export API_TOKEN=s3cret; sim -n 8"),
        ("sh", "-c", "cd /tmp\nAPI_TOKEN=s3cret\nsim -n 8"),
        ("sh", "-c", "API_TOKEN=s3cret sim 'never closed"),
        ("API_TOKEN=s3cret",),
        ("timeout", "60", "env", "API_TOKEN=s3cret", "sim"),
        ("bash", "-lc", "API_TOKEN=s3cret sim"),
    ],
)
def test_values_of_variables_that_may_be_secret_are_dropped(command):
    assert "s3cret" not in name(*command) and "API_TOKEN=?" in name(*command)


@given(st.text(alphabet="abcXYZ019_.", min_size=4).filter(lambda value: any(c.isalpha() for c in value[-4:-3])))
def test_no_text_in_a_variable_is_in_a_name(value):
    secret = f"q{value}"
    assert secret not in name(f"A={secret}", "sim") and secret not in name("sim", environment=(("A", secret),))


def test_arguments_and_threads_count_as_before():
    assert name("A=b", "sim", "-n", "8") == "cmd: sim -n 8 A=?" == name("sim", "-n", "8", environment=(("A", "c"),))
    assert name("dd", "bs=1M", "count=8") == "cmd: dd bs=1M count=8"
    assert name("OMP_NUM_THREADS=4", "sim") == name("sim", environment=(("OMP_NUM_THREADS", "4"),)) != name("sim")


def made(*command):
    return Job("j", DEFAULT_PROFILE, command=command)


LONG = ("./align", *(f"reads/{number}.fastq" for number in range(2000)))


def test_the_end_of_a_long_command_counts_by_a_checksum():
    other = (*LONG[:-1], "reads/x.fastq")
    names = {signature(made(*command)) for command in (LONG, other, LONG)}
    assert len(names) == 2 and all(len(name) <= LONGEST for name in names)
    assert words_checksum(made(*LONG)) != words_checksum(made(*other))
    many = tuple((f"A{number}", "1") for number in range(1000))
    same, different = replace(made("x"), environment=many), replace(made("x"), environment=(*many[:-1], ("Z", "1")))
    assert signature(same) != signature(different) and words_checksum(same) != words_checksum(different)


def test_the_name_of_a_command_is_made_once_for_a_job(monkeypatch):
    read = []
    monkeypatch.setattr(identity, "program_words", lambda command: read.append(command) or (list(command), []))
    job = made("./once", "1")
    names = {signature(each) for each in (job, replace(job, id="b", owner=5, after=("x",)), job)}
    assert len(names) == len(read) == 1
    assert signature(replace(job, nodes=2)) not in names and signature(replace(job, command=("./twice",))) not in names


def test_a_bounded_number_of_names_is_kept(monkeypatch):
    monkeypatch.setattr(identity, "MOST_KEPT", 10)
    monkeypatch.setattr(identity, "_names", {})
    jobs = [made("./x", f"{number}") for number in range(100)]
    assert [signature(job) for job in jobs] == [f"cmd: x {number}" for number in range(100)]
    assert len(identity._names) <= 10 + 1
