"""The demo: valid files, programs of fixed work, and user changes that stay."""

import stat
import subprocess
import sys

import pytest

from pilotfish.formats.cluster import read_cluster
from pilotfish.formats.workflows.workflow import read_workflow
from pilotfish.profiles import demo_folder
from pilotfish.profiles.demo_folder import JOBS, PROGRAMS, DemoCpus, write_demo
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.job import Profile, ThreadGroup

TWO = DemoCpus((0, 1), 8e9, 12e9, 4e9)


def known(name):
    return Profile((ThreadGroup(1, 1.0),), name=name) if name in PROGRAMS else None


def test_demo_files_are_valid(tmp_path):
    names = write_demo(tmp_path / "new", machine=TWO)
    assert names == ["work.py", "cluster.yaml", "workflow.yaml", "measure.sh"]
    cluster = read_cluster(tmp_path / "new" / "cluster.yaml")
    assert [(node.name, node.cpus, node.memory_domain) for node in cluster.nodes] == [
        ("cpu0", (0,), "here"),
        ("cpu1", (1,), "here"),
    ]
    assert cluster.nodes[0].type.memory_bandwidth == 12e9
    workflow = read_workflow(tmp_path / "new" / "workflow.yaml", known)
    assert 12 <= len(workflow.jobs) <= 16
    assert {job.profile.name for job in workflow.jobs} == set(PROGRAMS)
    assert workflow.dag.number_of_edges() == sum(len(after) for _, after in JOBS.values())
    assert (tmp_path / "new" / "work.py").stat().st_mode & stat.S_IXUSR
    script = (tmp_path / "new" / "measure.sh").read_text()
    assert all(f"--name {name} " in script for name in PROGRAMS)
    for job in workflow.jobs:
        assert " ".join(job.command) in script


def test_one_cpu_gives_one_node(tmp_path):
    write_demo(tmp_path, machine=DemoCpus((3,), 8e9, 8e9, 4e9))
    (node,) = read_cluster(tmp_path / "cluster.yaml").nodes
    assert node.cpus == (3,)


def test_changed_files_are_not_overwritten(tmp_path):
    write_demo(tmp_path, machine=TWO)
    write_demo(tmp_path, machine=DemoCpus((0,), 5e9, 5e9, 1e9))
    assert len(read_cluster(tmp_path / "cluster.yaml").nodes) == 1
    (tmp_path / "workflow.yaml").write_text("mine")
    with pytest.raises(ConfigError, match=r"workflow\.yaml: was changed"):
        write_demo(tmp_path, machine=TWO)
    assert (tmp_path / "workflow.yaml").read_text() == "mine"
    assert len(read_cluster(tmp_path / "cluster.yaml").nodes) == 1
    write_demo(tmp_path, machine=TWO, force=True)
    assert (tmp_path / "workflow.yaml").read_text() != "mine"


def test_foreign_files_are_not_overwritten(tmp_path):
    (tmp_path / "cluster.yaml").write_text("mine")
    with pytest.raises(ConfigError, match="not ours"):
        write_demo(tmp_path, machine=TWO)
    assert [path.name for path in tmp_path.iterdir()] == ["cluster.yaml"]


def test_an_unwritable_path_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written"):
        write_demo(tmp_path / "file" / "below", machine=TWO)


@pytest.mark.real
def test_calibration_measures_this_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(demo_folder, "CALIBRATION_S", 0.05)
    write_demo(tmp_path, machine=TWO)
    found = demo_folder.calibrate(tmp_path / "work.py")
    assert 1e8 < found.one_stream <= found.all_streams < 1e13
    assert found.cpus == demo_folder.choose_cpus()


@pytest.mark.real
@pytest.mark.parametrize("words", [[], ["fly"], ["cpu"], ["cpu", "much"], ["cpu", "1", "2"]])
def test_programs_reject_invalid_arguments(tmp_path, words):
    write_demo(tmp_path, machine=TWO)
    done = subprocess.run([sys.executable, tmp_path / "work.py", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 64
    assert "work.py cpu SECONDS" in done.stderr
