"""Profiles of commands that never ran, predicted from runs of the same program."""

import math
from dataclasses import replace

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from pilotfish.profiles.identity import program, words_checksum
from pilotfish.profiles.measurement import Measurement
from pilotfish.profiles.prediction.predictors import LATEST_RUNS
from pilotfish.profiles.prediction.similar_commands import amounts, predicted, relatives, shape
from pilotfish.profiles.store import ProfileStore
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Job, Profile, Provenance, ThreadGroup

COMMAND = Job("job", DEFAULT_PROFILE, command=("./align.sh", "-n", "8", "/data/one.fastq"))


def with_number(number, job=COMMAND):
    return replace(job, command=("./align.sh", "-n", str(number), "x.fastq"))


def run(demand, **more):
    more = {"date": "2026-01-01", **more}
    return Measurement((ThreadGroup(1, demand, 0.9),), demand / 0.9, demand / 0.9, demand, 0.0, **more)


def profile(demand, memory=0.0, measured_on=None):
    groups = (ThreadGroup(2, demand, 0.5), ThreadGroup(1, demand / 2))
    return Profile(groups, memory=memory, measured_on=measured_on, provenance=Provenance("measured", "2026-01-01", 2))


@pytest.fixture
def store(tmp_path):
    return ProfileStore(tmp_path / "profiles.sqlite")


def test_shapes_ignore_numbers_except_threads_and_nodes():
    assert shape("cmd: align.sh -n 8 *.fastq") == shape("cmd: align.sh -n 12.5 *.fastq")
    assert shape("cmd: align.sh OMP_NUM_THREADS=4") != shape("cmd: align.sh OMP_NUM_THREADS=8")
    assert shape("cmd: align.sh on 2 nodes") != shape("cmd: align.sh on 3 nodes")
    assert program("cmd: align.sh -n 8") == program("cmd: align.sh") == "cmd: align.sh"
    assert program("cmd:") is None and program("my align") is None


def test_commands_of_the_same_shape_come_first():
    alike = [f"cmd: a -n {n}" for n in range(3)]
    others = ["cmd: a --index", "cmd: a -n 3 on 2 nodes"]
    assert relatives("cmd: a -n 9", [*others, *alike]) == (alike, [])
    assert relatives("cmd: a --fast", [*others, *alike[:1]]) == ([], [others[0], alike[0]])
    assert relatives("cmd: a --fast", [others[1]]) == ([], [])
    assert len(relatives("cmd: a 0", [f"cmd: a {n}" for n in range(100)])[0]) == LATEST_RUNS


def test_a_command_is_given_its_numbers_and_its_inputs():
    given_ = amounts("cmd: gen.py 2000000 1.5 bs=4k *.txt OMP_NUM_THREADS=4 on 2 nodes", {"5": 7.0})
    assert given_ == {"number 1": 2e6, "number 2": 1.5, "number 3": 4.0, "input 5": 7.0}


@drawn(st.lists(st.floats(0.1, 1e6), min_size=1, max_size=30), st.floats(0.1, 1e6))
def test_the_prediction_is_one_profile_within_the_walltime(demands, walltime):
    profiles = [profile(demand) for demand in demands]
    free, limited = predicted("x", profiles), predicted("x", profiles, walltime)
    assert free.groups in [one.groups for one in profiles]
    assert limited.isolated_time == pytest.approx(min(free.isolated_time, walltime))
    assert limited.threads == free.threads


@drawn(st.lists(st.floats(0.1, 1e6), min_size=1, max_size=30), st.none() | st.floats(0.1, 1e6))
def test_the_interval_holds_the_forecast_and_ends_at_the_walltime(demands, walltime):
    found = predicted("x", [profile(demand) for demand in demands], walltime)
    low, high = (bound ** (1.2816 / 2) for bound in found.provenance.interval)  # two deviations; here 10 and 90 %
    assert low <= 1.0 <= high
    if walltime is None:
        assert low < high
    else:
        assert high * found.isolated_time <= walltime * (1 + 1e-9)


def test_commands_that_are_alike_narrow_the_interval_only_once_many_have_run():
    widths = []
    for many in (1, 3, 10, 30):
        low, high = predicted("x", [profile(1.0)] * many).provenance.interval
        widths.append(high / low)
    assert widths == sorted(widths, reverse=True) and widths[0] > 10 and widths[-1] < 3


def test_the_prediction_names_its_source():
    found = predicted("x", [profile(1.0, 5e9), profile(3.0, 1e9), profile(2.0, 2e9)], memory=4e9)
    about = found.provenance
    assert (about.source, about.date, about.runs) == ("predicted", "2026-01-01", 6)
    assert about.note == "from 3 commands of the same program; isolated run times 2 to 6 s"
    assert (found.name, found.memory) == ("x", 4e9)
    assert predicted("x", [profile(1.0), profile(1.0, 3e9), profile(1.0)]).memory == 3e9
    assert predicted("x", []) is None


def test_only_profiles_of_the_latest_node_type_count():
    found = predicted("x", [profile(1.0, measured_on="new"), profile(9.0, measured_on="old")])
    assert (found.groups[0].demand, found.measured_on) == (1.0, "new")


def test_the_store_predicts_only_unknown_commands(store):
    assert store.expected(COMMAND) is None
    for number, demand in ((1, 1.0), (2, 2.0), (3, 3.0), (4, 4.0)):
        store.record_jobs([(with_number(number), run(demand))])
    assert store.expected(with_number(2)).provenance.source == "measured"
    unseen = store.expected(COMMAND)
    about = unseen.provenance
    assert (about.source, about.runs) == ("predicted", 4)
    assert about.note == "from 4 runs with other numbers or input sizes; grows with number 1 to the power of 1"
    assert unseen.groups[0].demand == pytest.approx(8.0, rel=0.1)
    assert store.for_job(COMMAND) is None
    limited = store.expected(replace(COMMAND, walltime=1.0))
    assert limited.isolated_time == pytest.approx(1.0) and limited.provenance.interval[1] == 1.0
    for other in (("./align.shx",), ("./alig",), ("./other", "align.sh"), ("",)):
        assert store.expected(replace(COMMAND, command=other)) is None
    assert store.expected(replace(COMMAND, command=None)) is None


def test_failed_runs_predict_nothing_and_new_runs_count(store):
    store.record_jobs([(with_number(1), run(1.0, exit_code=1))])
    assert store.expected(COMMAND) is None
    ProfileStore(store.path).record_jobs([(with_number(8), run(7.0))])
    assert store.expected(COMMAND).groups[0].demand == 7.0


def test_another_program_with_other_options_predicts_a_whole_profile(store):
    store.record_jobs([(replace(COMMAND, command=("./align.sh", "--index")), run(5.0))])
    found = store.expected(COMMAND)
    assert found.groups[0].demand == 5.0 and found.provenance.note.startswith("from 1 command of the same program")


def given(size, *command, directory=None):
    """A job whose last word is a file of this size."""
    return Job("job", DEFAULT_PROFILE, command=command, directory=directory, inputs=((str(len(command) - 1), size),))


def test_a_large_number_is_an_amount_and_not_an_identifier(store):
    """`gen.py 100000` and `gen.py 2000000` were one command, and the last three runs said 0.157 s -32 to +1 %."""
    for number, took in ((100_000, 0.16), (800_000, 1.2), (1_600_000, 2.5)):
        job = Job("job", DEFAULT_PROFILE, command=("./gen.py", str(number), "1", "x.txt"))
        store.record_jobs([(job, run(took))])
    found = store.expected(Job("job", DEFAULT_PROFILE, command=("./gen.py", "2000000", "1", "x.txt")))
    assert found.provenance.source == "predicted"
    assert found.isolated_time == pytest.approx(3.1 / 0.9, rel=0.15)


@pytest.mark.parametrize("disturbed", [(), (1,), (1, 2, 16), (1, 2, 4, 8), (1, 2, 4, 8, 16)])
def test_a_disturbed_run_of_another_size_says_how_the_need_grows(store, disturbed):
    """On a machine that is often busy, the only run of a size is most likely a disturbed one."""
    for size in (1, 2, 4, 8, 16):
        store.record_jobs([(with_number(size), run(10.0 * size, company=0.9 if size in disturbed else 0.0))])
    found = store.expected(with_number(64))
    assert found.provenance.runs == 5 and found.isolated_time == pytest.approx(640.0 / 0.9, rel=0.15)
    store.record_jobs([(with_number(16), run(300.0, company=0.9))])
    if 16 not in disturbed:
        assert store.expected(with_number(64)).provenance.runs == 5, "the other run of that size was undisturbed"


def test_a_small_file_does_not_need_what_a_large_one_needed(store):
    """`gzip small.txt` of 292 bytes was predicted with the 25 s of a file of 54 MB."""
    store.record_jobs([(COMMAND, run(1.0)), (given(0.0, "gzip", "x.txt"), run(25.0, inputs={"1": 54e6}))])
    assert store.expected(given(54.1e6, "gzip", "y.txt")).provenance.source == "measured"
    small = store.expected(given(292.0, "gzip", "small.txt"))
    low, _ = small.provenance.interval
    assert small.provenance.source == "predicted" and small.isolated_time < 1.0 and low < 0.1
    unknown = store.expected(Job("job", DEFAULT_PROFILE, command=("gzip", "later.txt")))
    assert unknown.provenance.source == "predicted", "nothing is known of a file that is not there yet"


@pytest.mark.parametrize("size", [math.nan, math.inf, -1.0])
def test_a_size_that_is_none_is_not_known(store, size):
    """What a client says of its files is not trusted."""
    store.record_jobs([(given(0.0, "gzip", "x.txt"), run(took, inputs={"1": 1e6 * took})) for took in (1.0, 2.0, 4.0)])
    found = store.expected(given(size, "gzip", "x.txt"))
    assert found.provenance.source == "predicted" and 0.5 < found.isolated_time < 10.0


def test_a_file_that_a_command_writes_is_no_input(store):
    """It is not there before the first run, and of another size after each."""
    for number, there in ((1e5, {}), (2e5, {"3": 17.0}), (4e5, {"3": 18.0})):
        job = Job("job", DEFAULT_PROFILE, command=("./gen.py", f"{number:.0f}", "1", "x.txt"))
        store.record_jobs([(job, run(number / 1e5, inputs=there | {"3": -1.0}))])
    again = Job("job", DEFAULT_PROFILE, command=("./gen.py", "200000", "1", "x.txt"), inputs=(("3", 19.0),))
    assert store.expected(again).provenance.source == "measured"
    larger = store.expected(replace(again, command=("./gen.py", "6400000", "1", "x.txt")))
    assert larger.groups[0].demand == pytest.approx(64.0, rel=0.1)


def ran(store, file, took, size=None):
    """Store a run of `sort FILE`; `size`: of the file, None: it was not seen."""
    command = ("sort", file)
    inputs = {} if size is None else {"1": size}
    job = replace(COMMAND, command=command)
    store.record_jobs([(job, run(took, inputs=inputs, words=words_checksum(job)))])


def test_files_that_are_not_there_yet_most_likely_have_the_sizes_of_last_time(store):
    """A job whose predecessors make its input was forecast alike for a small and a large one, up to 6 times too short."""
    for noise in (1.0, 1.1, 0.9):
        ran(store, "small.txt", 0.1 * noise, 1e4)
        ran(store, "/scratch/large.txt", 10.0 * noise, 1e6)
    for file, took in (("small.txt", 0.1), ("/elsewhere/large.txt", 10.0)):
        found = store.expected(replace(COMMAND, command=("sort", file)))
        assert found.isolated_time == pytest.approx(took, rel=0.2)
        assert found.provenance.source == "predicted" and "not there yet" in found.provenance.note
    low, high = store.expected(replace(COMMAND, command=("sort", "other.txt"))).provenance.interval
    assert high / low > 10.0, "nothing is known of a file of another name"
    there = store.expected(Job("job", DEFAULT_PROFILE, command=("sort", "small.txt"), inputs=(("1", 1e6),)))
    assert there.provenance.source == "measured" and there.isolated_time > 5.0, "a size that is known decides"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("METHOD=fast", "./sim", "5"), ("METHOD=slow", "./sim", "5")),
        (("./train.py", "--model", "net.small"), ("./train.py", "--model", "net2.small")),
    ],
)
def test_what_a_name_leaves_out_is_measured_of_the_same_words_alone(store, first, second):
    """The value of a variable, and a word that looks like a file, may say how much work it is."""
    job = replace(COMMAND, command=first)
    store.record_jobs([(job, run(1.0, words=words_checksum(job)))])
    assert store.expected(job).provenance.source == "measured"
    found = store.expected(replace(job, command=second)).provenance
    assert found.source == "predicted" and found.interval[1] > 3.0


def test_the_very_same_words_are_measured_where_no_size_is_ever_seen(store):
    """A resource manager whose nodes do not say how large the files were."""
    for noise in (1.0, 1.1, 0.9):
        ran(store, "small.txt", 0.1 * noise)
        ran(store, "large.txt", 10.0 * noise)
    for file, took in (("small.txt", 0.1), ("large.txt", 10.0)):
        found = store.expected(replace(COMMAND, command=("sort", file)))
        assert found.isolated_time == pytest.approx(took, rel=0.2) and found.provenance.source == "measured"


def test_one_sleep_says_little_of_a_longer_one(store):
    """`sleep 100` was predicted with 1.001 s +- 0 %."""
    store.record_jobs([(Job("job", DEFAULT_PROFILE, command=("sleep", "1")), run(1.0))])
    found = store.expected(Job("job", DEFAULT_PROFILE, command=("sleep", "100")))
    low, high = found.provenance.interval
    assert found.isolated_time * low <= 1.0 / 0.9 * 1.01 and found.isolated_time * high >= 100.0


def test_what_is_measured_is_that_of_inputs_of_the_same_size(store):
    for size, took in ((1e6, 1.0), (8e6, 8.0), (1e6, 1.1), (8e6, 8.2)):
        store.record_jobs([(given(0.0, "sort", "x.txt"), run(took, inputs={"1": size, "9": 5.0}))])
    for size, took in ((1e6, 1.05), (8e6, 8.1)):
        found = store.expected(given(size, "sort", "x.txt"))
        assert found.provenance.source == "measured" and found.provenance.runs == 2
        assert found.groups[0].demand == pytest.approx(took)
    between = store.expected(given(4e6, "sort", "x.txt"))
    assert between.provenance.source == "predicted" and between.groups[0].demand == pytest.approx(4.1, rel=0.1)
