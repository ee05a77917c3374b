"""Sweeps and trainings on a Dask cluster of real processes: the same results, also if a worker is killed."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pilotfish
from pilotfish.cli.__main__ import main
from pilotfish.cli.sweeps import dask_workers

if TYPE_CHECKING:
    from distributed import LocalCluster

SWEEP: dict[str, Any] = {
    "schema": "pilotfish/sweep/v1",
    "workloads": ["a.swf", {"file": "b.swf", "load": [1, 2]}],
    "policies": ["easy:order=wfp3", "easy:order=unicep"],
    "seeds": 10,
}

QUIET: dict[str, Any] = {"dashboard_address": ":0", "silence_logs": 50}


@pytest.fixture(scope="module", autouse=True)
def _distributed() -> None:
    """Import what takes half a second to import when it is tested, and not in each worker that collects the tests."""
    global LocalCluster
    from distributed import LocalCluster


@pytest.fixture(scope="module")
def cluster(real: None, _distributed: None) -> Iterator[Any]:
    local = LocalCluster(n_workers=2, threads_per_worker=2, processes=True, **QUIET)
    yield local
    local.close()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, jobs in (("a.swf", 1000), ("b.swf", 700)):
        lines = (f"{i} {i} -1 {3 + i % 5} {1 + i % 8} -1 -1 -1 20" + " -1" * 9 for i in range(1, jobs + 1))
        (tmp_path / name).write_text("; MaxProcs: 8\n" + "\n".join(lines) + "\n")
    (tmp_path / "s.yaml").write_text(json.dumps(SWEEP))
    return tmp_path


def unmeasured(path: Path) -> list[str]:
    return [line.rpartition(",")[0] for line in path.read_text().splitlines()]


def once_begun(journal: Path, deed: Callable[[], Any]) -> tuple[threading.Thread, list[int]]:
    """Do something as soon as some runs are done; gives how many then are."""
    counts: list[int] = []

    def watch() -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until and not (journal.exists() and journal.read_bytes().count(b"\n") > 5):
            time.sleep(0.002)
        deed()
        counts.append(journal.read_bytes().count(b"\n") - 1)

    thread = threading.Thread(target=watch)
    thread.start()
    return thread, counts


def test_a_worker_that_is_killed_loses_nothing(cluster: Any, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    victim = next(iter(cluster.workers.values())).pid
    killer, counts = once_begun(folder / "far" / "journal.jsonl", lambda: os.kill(victim, signal.SIGKILL))
    assert main(["sweep", "s.yaml", "--dask", cluster.scheduler_address, "--out", "far"]) == 0
    killer.join()
    assert 5 <= counts[0] < 60, "it was killed in the middle"
    assert main(["sweep", "s.yaml", "--out", "near"]) == 0
    far, near = (unmeasured(folder / name / "results.csv") for name in ("far", "near"))
    assert far == near and len(far) == 61
    assert "distributed" not in capsys.readouterr().err, "its loggers are silenced"


def test_a_failure_on_the_cluster_is_reported(cluster: Any, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "s.yaml").write_text(json.dumps(SWEEP | {"seeds": 1, "workloads": ["a.swf", "bad.swf"]}))
    (folder / "bad.swf").write_text("1 2 3\n")
    assert main(["sweep", "s.yaml", "--dask", cluster.scheduler_address]) == 1
    assert "s.yaml: workloads[1]: bad.swf:1: found 3 numbers" in capsys.readouterr().err


LAB = """
schema: pilotfish/cluster/v1
node_types: {t: {cores: 4, memory: 4GiB, memory_bandwidth: 10GB/s, speed: 1.0e9}}
nodes: [{names: "n[1-2]", type: t}]
"""
JOBS = {
    "jobs": [{"id": f"j{i}", "subtime": i, "res": 2, "walltime": 90, "profile": "trace"} for i in range(9)],
    "profiles": {"trace": {"type": "usage_trace", "trace": "usage/list"}},
}


def test_files_named_by_a_trace_are_sent_with_it(
    cluster: Any, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "usage").mkdir()
    ranks = folder / "usage" / "list"
    for name, text in (("lab.yaml", LAB), ("u.json", json.dumps(JOBS)), ("usage/r", "0 m_usage 1 7e9\n"), ("r", "")):
        (folder / name).write_text(text)
    ranks.write_text("r\n")
    keys = {"workloads": ["u.json", "a.swf"], "machines": ["lab.yaml"], "policies": ["easy", "pairs"], "seeds": 1}
    (folder / "s.yaml").write_text(json.dumps(SWEEP | keys))
    assert main(["sweep", "s.yaml", "--dask", cluster.scheduler_address, "--out", "far"]) == 0
    assert main(["sweep", "s.yaml", "--out", "near"]) == 0
    far, near = (unmeasured(folder / name / "results.csv") for name in ("far", "near"))
    assert far == near and len(far) == 5
    ranks.write_text("../r\n")
    assert main(["sweep", "s.yaml", "--dask", cluster.scheduler_address]) == 1
    assert "u.json: it names files outside its folder, which" in capsys.readouterr().err


def trained(model: str, *words: str, code: int = 0) -> bytes:
    assert main(["train", *words, "-o", model]) == code
    return Path(model).read_bytes()


ORDER = ("linear", "a.swf", "--no-predictions", "--generations", "2", "--population", "4")


def test_a_training_on_the_cluster_writes_the_same_model_and_a_killed_worker_loses_nothing(
    cluster: Any, folder: Path
) -> None:
    words, victim = (*ORDER, "b.swf", "--seeds", "24"), next(iter(cluster.workers.values())).pid
    killer, counts = once_begun(folder / "searches", lambda: os.kill(victim, signal.SIGKILL))
    far = trained("far.pfmodel.json", *words, "--resume", "searches", "--dask", cluster.scheduler_address)
    killer.join()
    assert 5 <= counts[0] < 24, "it was killed in the middle"
    assert trained("near.pfmodel.json", *words) == far


def test_the_jobs_of_a_site_are_sent_and_its_files_too(
    cluster: Any, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["generate", "site", "gpu", "--jobs", "400", "-o", "gpu"]) == 0
    words, dask = ("linear", "gpu", *ORDER[2:], "--seeds", "2"), ("--dask", cluster.scheduler_address)
    assert trained("near.pfmodel.json", *words) == trained("far.pfmodel.json", *words, *dask)
    capsys.readouterr()
    priorities = ["train", "priorities", "gpu", "--generations", "1", "--population", "4", "--repeat", "2"]
    assert main(priorities) == 0
    near = capsys.readouterr().out
    assert main([*priorities, *dask]) == 0
    assert capsys.readouterr().out == near and "PriorityWeight" in near


def test_an_interrupted_training_keeps_the_best_so_far(
    cluster: Any, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (*ORDER, "--seeds", "60", "--dask", cluster.scheduler_address)
    stopper, counts = once_begun(folder / "searches", lambda: os.kill(os.getpid(), signal.SIGINT))
    trained("a.pfmodel.json", *words, "--resume", "searches", code=130)
    stopper.join()
    assert "interrupted: " in capsys.readouterr().err
    seeds = json.loads(Path("a.pfmodel.json").read_text())["trained"]["seeds"]
    assert 5 <= counts[0] <= len(seeds) < 60


def test_a_cluster_with_another_pilotfish_is_refused(
    cluster: Any, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_workers, "__version__", "9.9")
    assert main(["sweep", "s.yaml", "--dask", cluster.scheduler_address]) == 1
    assert f"scheduler has pilotfish {pilotfish.__version__}: install 9.9 there" in capsys.readouterr().err


@pytest.mark.real
def test_a_cluster_without_workers_is_an_error(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_workers, "PATIENCE_S", 0.2)
    with LocalCluster(n_workers=0, processes=False, protocol="tcp://", **QUIET) as empty:
        assert main(["sweep", "s.yaml", "--dask", empty.scheduler_address]) == 1
        assert "no worker connected within" in " ".join(capsys.readouterr().err.split())


@pytest.mark.real
def test_a_lost_cluster_keeps_finished_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lost = LocalCluster(n_workers=1, threads_per_worker=1, processes=False, protocol="tcp://", **QUIET)
    closer, counts = once_begun(folder / "s.results" / "journal.jsonl", lost.close)
    assert main(["sweep", "s.yaml", "--dask", lost.scheduler_address]) == 1
    closer.join()
    error = capsys.readouterr().err
    assert "the same command continues" in error and "the cluster is gone" in error
    assert 5 <= counts[0] < 60 and len(unmeasured(folder / "s.results" / "results.csv")) > 5


@pytest.mark.real
def test_a_lost_cluster_keeps_the_best_order_so_far(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lost = LocalCluster(n_workers=1, threads_per_worker=1, processes=False, protocol="tcp://", **QUIET)
    closer, counts = once_begun(folder / "searches", lost.close)
    words = (*ORDER, "--seeds", "60", "--dask", lost.scheduler_address)
    trained("a.pfmodel.json", *words, "--resume", "searches", code=1)
    closer.join()
    assert "the cluster is gone: " in capsys.readouterr().err
    assert 5 <= counts[0] <= len(json.loads(Path("a.pfmodel.json").read_text())["trained"]["seeds"]) < 60


@pytest.mark.real
def test_a_silent_scheduler_is_an_error(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_workers, "PATIENCE_S", 0.2)
    assert main(["sweep", "s.yaml", "--dask", "tcp://127.0.0.1:9"]) == 1
    assert "no scheduler answers there" in " ".join(capsys.readouterr().err.split())


def test_an_address_for_tls_without_a_certificate_is_an_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "s.yaml", "--dask", "tls://127.0.0.1:9"]) == 1
    error = " ".join(capsys.readouterr().err.split())
    assert "no certificate for TLS" in error and "unexpected" not in error


@pytest.mark.parametrize("address", ["", "foo://x", "head", "tcp://head:x"])
def test_an_invalid_address_is_a_usage_error(folder: Path, address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "s.yaml", "--dask", address]) == 64
    assert "tcp://head:8786" in " ".join(capsys.readouterr().err.split())


def test_workers_and_dask_exclude_each_other(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "s.yaml", "--dask", "tcp://head:8786", "--workers", "2"]) == 64
    assert "not together with --dask" in " ".join(capsys.readouterr().err.split())


def test_a_missing_distributed_package_is_one_clear_error(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["sweep", "s.yaml", "--dask", "tcp://head:8786"]) == 1
    assert "pip install 'pilotfish[distributed]'" in " ".join(capsys.readouterr().err.split())
