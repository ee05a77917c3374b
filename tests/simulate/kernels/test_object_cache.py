"""Compiled kernels on disk: whole or not there at all, one function whatever is asked, nothing lost without a disk."""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pilotfish.simulate.kernels import object_cache
from pilotfish.simulate.kernels.object_cache import load
from pilotfish.simulate.model.cluster import Contention
from pilotfish.simulate.planning.simulation import Simulation
from tests.support.instances import PAPER, flow, make_cluster, make_job

pytestmark = pytest.mark.xdist_group("object cache")  # one process compiles what they share
SUPPORT = str(Path(__file__).parents[2] / "support")


def test_a_kernel_and_what_it_is_for_fit_80_cells() -> None:
    names, titles = object_cache.KERNELS, (kernel.title for kernel in object_cache.KERNELS.values())
    assert len("missing   ") + max(map(len, names)) + len("  ") + max(map(len, titles)) <= 80


def test_a_damaged_file_is_no_file(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "kernel.o"
    assert object_cache._read(path) is None
    object_cache._write(path, b"code")
    assert object_cache._read(path) == b"code"
    whole = path.read_bytes()
    for damaged in (whole[:-1], whole[:20], b"", whole[:-1] + b"x", b"x" + whole[1:]):
        path.write_bytes(damaged)
        assert object_cache._read(path) is None
    assert [p.name for p in path.parent.iterdir()] == ["kernel.o"]


def test_where_nothing_can_be_written_nothing_is(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    assert object_cache._write(tmp_path / "file" / "kernel.o", b"code") in ("File exists", "Not a directory")
    assert (tmp_path / "file").read_text() == "not a directory"


def test_a_full_disk_leaves_no_part_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: str, target: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(object_cache.os, "replace", full)
    assert object_cache._write(tmp_path / "kernel.o", b"code") == "No space left on device"
    assert list(tmp_path.iterdir()) == []


def test_a_kernel_and_its_folders_are_their_owners_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        assert object_cache._write(tmp_path / "a" / "b" / "kernel.o", b"code") is None
    finally:
        os.umask(before)
    made = {str(path.relative_to(tmp_path)): path.stat().st_mode & 0o7777 for path in tmp_path.rglob("*")}
    assert made == {"a": 0o700, "a/b": 0o700, "a/b/kernel.o": 0o600}


def test_the_cache_can_be_moved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, _ in object_cache.PLACES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/fish")
    assert object_cache.cache_root() == Path("/home/fish/.cache/pilotfish/kernels")
    for name, below in reversed(object_cache.PLACES):
        monkeypatch.setenv(name, str(tmp_path / name))
        assert object_cache.cache_root() == tmp_path / name / below
    assert object_cache.cache_directory().parent == tmp_path / "PILOTFISH_CACHE" / "kernels"
    monkeypatch.setenv("PILOTFISH_CACHE", "")
    monkeypatch.setenv("CACHE_DIRECTORY", "/var/cache/a:/var/cache/b")
    assert object_cache.cache_root() == Path("/var/cache/a/kernels")
    monkeypatch.delenv("CACHE_DIRECTORY")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert object_cache.cache_root() == Path("/home/fish/.cache/pilotfish/kernels")
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    assert object_cache.cache_root() is None


READ = """
import sys
import warnings
{before}
from pilotfish.formats.replays.swf import read_swf
from pilotfish.simulate.kernels.object_cache import is_warm, load
cold = not is_warm("swf.parser")
lines = []
load("swf.parser", lines.append)
jobs = read_swf(sys.argv[1])
print(cold, "numba" in sys.modules, jobs.run_time.tobytes().hex(), len(lines))
print(*lines, sep="\\n", file=sys.stderr)
"""
OUTSIDE = 'import numba\nnumba.__version__ = "99.1.0"'
WITHOUT = "from numba.core import codegen\ndel codegen.JITCodeLibrary"


def read(tmp_path: Path, before: str, **environment: str) -> tuple[list[str], list[str]]:
    """What a process prints that reads a trace, its words and the lines of stderr."""
    trace = tmp_path / "t.swf"
    jobs = "".join(f"{i} {i} 0 {i}.25 1 -1 -1 1 9 -1 1 1 1 1 1 1 -1 -1\n" for i in range(9))
    trace.write_text(f"; MaxProcs: 4\n{jobs}")
    argv = [sys.executable, "-c", READ.format(before=before), trace]
    kept = {name: value for name, value in os.environ.items() if name not in (*dict(object_cache.PLACES), "HOME")}
    done = subprocess.run(argv, capture_output=True, text=True, env=kept | environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr.splitlines()


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A cache with the kernel in it, and what a process prints that reads a trace."""
    folder = tmp_path_factory.mktemp("usual")
    words, _ = read(folder, "", PILOTFISH_CACHE=str(folder / "cache"))
    return folder / "cache", words[2]


@pytest.mark.real
@pytest.mark.parametrize(
    ("before", "why"), [(OUTSIDE, "outside the tested range"), (WITHOUT, "cannot import name 'JITCodeLibrary'")]
)
def test_without_the_private_parts_numba_compiles_and_keeps_a_kernel(
    tmp_path: Path, usual: tuple[Path, str], before: str, why: str
) -> None:
    cache = str(tmp_path / "cache")
    first, said = read(tmp_path, before, PILOTFISH_CACHE=cache)
    assert first[0] == "True" and first[2] == usual[1]
    (line,) = said
    assert why in line and "numba itself compiles" in line
    assert list((tmp_path / "cache").rglob("*.nbi"))
    second, said = read(tmp_path, before, PILOTFISH_CACHE=cache)
    assert second[:3] == ["False", "True", usual[1]] and said == [""]


@pytest.mark.real
def test_a_cache_that_cannot_be_written_costs_time_only(tmp_path: Path) -> None:
    """Also where numba itself compiles; tests/real/test_first_use.py has commands whose home is a file."""
    (tmp_path / "file").write_text("")
    words, said = read(tmp_path, OUTSIDE, PILOTFISH_CACHE=str(tmp_path / "file"))
    assert words[0] == "True" and (tmp_path / "file").read_bytes() == b""
    assert sum("kernels cannot be kept in" in line and "Not a directory" in line for line in said) == 1
    words, said = read(tmp_path, "import pwd\npwd.getpwuid = {}.__getitem__")
    assert words[0] == "True" and sum("kernels cannot be kept" in line for line in said) == 1


def test_the_file_is_that_of_the_processor_that_is_compiled_for(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {object_cache.object_file.__wrapped__("swf.parser")}
    monkeypatch.setenv("NUMBA_CPU_NAME", object_cache.PORTABLE)
    names.add(object_cache.object_file.__wrapped__("swf.parser"))
    monkeypatch.setenv("NUMBA_CPU_FEATURES", "")
    names.add(object_cache.object_file.__wrapped__("swf.parser"))
    assert len(names) == 3 and object_cache.processor() == "x86-64-v2 "


PACKAGED = """
from pathlib import Path
from pilotfish.simulate.kernels import object_cache
object_cache.__file__ = {module!r}
object_cache.source_stamp = lambda: "stamp"
"""
LESSER = "object_cache.llvm.get_host_cpu_features = lambda: type('', (dict,), {'flatten': lambda self: ''})()"


@pytest.mark.real
@pytest.mark.skipif(platform.machine() != "x86_64", reason="not x86-64, so no package has kernels for this processor")
def test_the_packages_kernel_is_used_until_there_is_one_for_this_processor(
    tmp_path: Path, usual: tuple[Path, str]
) -> None:
    """It is compiled as packaging/packages.py does; it gives the same, without numba, on no lesser processor."""
    compiler = {"NUMBA_CPU_NAME": object_cache.PORTABLE, "NUMBA_CPU_FEATURES": ""}
    read(tmp_path, "", PILOTFISH_CACHE=str(tmp_path / "build"), **compiler)
    (kernel,) = (tmp_path / "build").rglob("*.o")
    packaged = tmp_path / "portable/stamp/swf.parser.o"
    packaged.parent.mkdir(parents=True)
    packaged.write_bytes(kernel.read_bytes())
    before, cache = PACKAGED.format(module=str(tmp_path / "object_cache.py")), str(tmp_path / "cache")
    words, notes = read(tmp_path, before, PILOTFISH_CACHE=cache)
    assert words[:3] == ["False", "False", usual[1]] and notes == [""] and not (tmp_path / "cache").exists()
    words, _ = read(tmp_path, before + LESSER, PILOTFISH_CACHE=cache)
    assert words[:3] == ["True", "True", usual[1]] and len(list((tmp_path / "cache").rglob("*.o"))) == 1
    packaged.write_bytes(kernel.read_bytes()[:-1])
    words, _ = read(tmp_path, before, PILOTFISH_CACHE=str(tmp_path / "another"))
    assert words[:3] == ["True", "True", usual[1]]


def test_a_library_user_gets_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_cache, "_topics", set())
    with pytest.warns(object_cache.KernelWarning, match="kernels cannot be kept and are compiled each time"):
        object_cache._keep(None, b"", object_cache._warn)


def test_a_kernel_has_no_address_in_a_name() -> None:
    """Two compilations give the same bytes; `queue.stepwise` takes functions as arguments."""
    load("queue.stepwise")
    path = object_cache.object_file("queue.stepwise")
    assert path is not None
    names = re.findall(rb"[\w]*CPUDispatcher[\w]*", path.read_bytes())
    assert names and not [name for name in names if re.search(rb"_20at_200x[0-9a-f]*[1-9a-f]", name)]


def test_one_function_serves_every_question() -> None:
    """There is no second specialisation to compile, whatever types Python hands in."""
    kernel = load()
    for policy in PAPER:
        for contention in (Contention.NONE, Contention.MAX_MIN):
            simulation = Simulation(flow(make_job("a"), make_job("b")), make_cluster(2, contention=contention))
            simulation.run(policy, keys=np.array([1.0, 0.0], np.float32), caps=np.array([1, 2]), explain=True)
            simulation.run(policy, keys=np.arange(2), caps=None)
            simulation.follow(np.array([0, 1], np.int32), np.arange(2), np.array([-1, -1], np.int8), np.full(2, 4))
            simulation.reset()
            simulation.settle()
            assert simulation.forecast("a", ("n1",)) == simulation.forecast("a", ["n1"]) == pytest.approx(10.0)
    assert load() is kernel


@pytest.mark.real
def test_planning_needs_no_compiler_once_the_kernel_is_there() -> None:
    load()
    code = (
        "import sys\n"
        f"sys.path.insert(0, {SUPPORT!r})\n"
        "from instances import flow, make_cluster, make_job\n"
        "from pilotfish.simulate.planning.simulation import Simulation\n"
        "assert Simulation(flow(make_job('a')), make_cluster()).run('mom').makespan == 10.0\n"
        "print('numba' in sys.modules, 'networkx' in sys.modules)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["False", "False"]


@pytest.mark.real
@pytest.mark.skipif(os.geteuid() != 0, reason="not root, so nothing can be given to another user")
@pytest.mark.parametrize("what", ["their file", "their folder", "open folder", "open file", "link"])
def test_code_of_another_user_is_never_loaded_nor_the_cache_written(
    tmp_path: Path, usual: tuple[Path, str], what: str
) -> None:
    """What was planted has a right checksum; loading it would end the process, so two of these run in their own."""
    cache = shutil.copytree(usual[0], tmp_path / "cache")
    (kernel,) = cache.rglob("*.o")
    planted = b"\x7fELF" + b"not code" * 9
    kernel.write_bytes(hashlib.sha256(planted).digest() + planted)
    if what == "their file":
        os.chown(kernel, 61001, 61001)
    elif what == "their folder":
        os.chown(kernel.parent, 61001, 61001)
    elif what == "open folder":
        cache.chmod(0o1777)
        kernel.parent.chmod(0o777)
    elif what == "open file":
        kernel.chmod(0o666)
    else:
        kernel.rename(tmp_path / "elsewhere")
        kernel.symlink_to(tmp_path / "elsewhere")
    before, in_folder = sorted(cache.rglob("*")), "folder" in what
    assert object_cache._read(kernel) is None
    if what in ("link", "open folder"):
        words, said = read(tmp_path, "", PILOTFISH_CACHE=str(cache))
        assert (words[0], words[2]) == ("True", usual[1])
        assert sum("kernels cannot be kept" in line and "is not trusted" in line for line in said) == in_folder
    else:
        assert ("is not trusted" in (object_cache._write(kernel, b"code") or "")) == in_folder
    assert sorted(cache.rglob("*")) == before
    if not in_folder:  # a trusted folder: the file is replaced by one of ours
        assert not kernel.is_symlink() and kernel.stat().st_uid == 0 and kernel.stat().st_mode & 0o777 == 0o600
        assert (tmp_path / "elsewhere").exists() == (what == "link")


def test_numbas_own_variable_is_not_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, _ in object_cache.PLACES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("HOME", "/home/fish")
    assert object_cache.cache_root() == Path("/home/fish/.cache/pilotfish/kernels")
