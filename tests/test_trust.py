"""What may be trusted, by a naive oracle over random owners, modes, links and folders; and what is made, by any umask."""

from __future__ import annotations

import ast
import grp
import itertools
import os
import pwd
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pilotfish import trust
from pilotfish.formats.documents.atomic_write import write_whole
from pilotfish.trust import UntrustedError
from tests.support.sources import tree_of

STRANGER, OTHER = 61001, 61002
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="not root, so nothing can be given to another user")


@contextmanager
def umask(value: int) -> Iterator[None]:
    before = os.umask(value)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def acting_as(user: int) -> Iterator[None]:
    """Be another user for a while."""
    os.setegid(user)
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


@pytest.fixture(scope="module")
def world() -> Iterator[Path]:
    """A folder of root's that every user may pass."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


MODES = st.sampled_from([0o700, 0o755, 0o750, 0o775, 0o770, 0o777, 0o1777, 0o1775, 0o2775, 0o711])
OWNERS = st.sampled_from([0, STRANGER, OTHER])
#: From the outermost folder to the innermost: owner, mode, and the owner of a link in its place (None: no link).
FOLDERS = st.lists(st.tuples(OWNERS, MODES, st.sampled_from([None, None, 0, STRANGER, OTHER])), min_size=1, max_size=3)
FILES = st.tuples(OWNERS, st.sampled_from([0o600, 0o644, 0o640, 0o660, 0o666, 0o622]), st.booleans())
numbers = itertools.count()


def made(world: Path, folders: list[Any], file: tuple[int, int, bool]) -> Path:
    """Make the folders and the file; return its path, through the links."""
    at = world / str(next(numbers))
    at.mkdir()
    for number, (owner, mode, link) in enumerate(folders):
        real = at / f"d{number}"
        real.mkdir()
        os.chown(real, owner, owner)
        real.chmod(mode)
        if link is not None:
            (at / f"l{number}").symlink_to(real.name)
            os.lchown(at / f"l{number}", link, link)
        at = real if link is None else at / f"l{number}"
    path = at / "file"
    owner, mode, link = file
    path.write_text("content")
    os.chown(path, owner, owner)
    path.chmod(mode)
    if link:
        (at / "link").symlink_to("file")
        os.lchown(at / "link", owner, owner)
        path = at / "link"
    return path


def safe(folders: list[Any], file: tuple[int, int, bool], user: int) -> bool:
    """The rule, naively."""
    ours = {0, user}
    owner, mode, link = file
    return (
        all(o in ours and (not m & 0o022 or m & 0o1000) and to in {*ours, None} for o, m, to in folders)
        and owner in ours and not mode & 0o022 and not link
    )  # fmt: skip


def trusted(check: Callable[[Path], object], path: Path) -> bool:
    """Whether a check passes; what is refused is named."""
    try:
        check(path)
    except UntrustedError as error:
        assert "not trusted" in error.strerror and path.anchor in error.strerror
        return False
    except PermissionError:  # this user may not pass a folder
        return False
    return True


@as_root
@pytest.mark.parametrize("user", [0, STRANGER])
@settings(max_examples=150)
@given(folders=FOLDERS, file=FILES)
@example(folders=[(0, 0o1777, None), (STRANGER, 0o700, None)], file=(STRANGER, 0o600, False))
@example(folders=[(0, 0o1777, None)], file=(OTHER, 0o644, False))
@example(folders=[(STRANGER, 0o755, None)], file=(STRANGER, 0o600, False))
@example(folders=[(0, 0o755, 0)], file=(0, 0o644, False))
@example(folders=[(0, 0o755, None)], file=(0, 0o644, True))
def test_only_what_nobody_else_controls_is_opened(
    world: Path, user: int, folders: list[Any], file: tuple[int, int, bool]
) -> None:
    path = made(world, folders, file)
    owner, mode, link = folders[-1]
    with acting_as(user):
        readable = os.access(path, os.R_OK, effective_ids=True)
        opened = trusted(trust.check_file, path)
        inside = trusted(trust.check_folder, path.parent)
    assert opened == (readable and safe(folders, file, user))
    if inside:
        assert owner in {0, user} and not mode & 0o022 and link is None
        assert safe(folders[:-1], (0, 0o600, False), user)


@as_root
@settings(max_examples=80)
@given(folders=FOLDERS, file=FILES)
def test_writing_never_touches_what_a_strangers_link_points_to(
    world: Path, folders: list[Any], file: tuple[int, int, bool]
) -> None:
    path = made(world, folders, file)
    target = path.resolve()
    write_whole(path, "new")
    assert path.read_text() == "new"
    if path.is_symlink():
        (owner, mode, to) = folders[-1]
        assert safe([*folders[:-1], (owner, mode & ~0o1000, to)], (file[0], 0o600, False), 0)
    elif file[2]:
        assert target.read_text() == "content"
    status = path.resolve().stat()
    assert status.st_uid == 0 and (status.st_mode & 0o777 == 0o600 or file[0] == 0)


def test_a_link_a_pipe_and_a_second_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "dangling").symlink_to("nothing")
    (tmp_path / "circle").symlink_to("circle")
    os.mkfifo(tmp_path / "pipe")
    for name, why in (("link", "symbolic link"), ("dangling", "symbolic link"), ("pipe", "regular file")):
        with pytest.raises(UntrustedError, match=why):
            trust.check_file(tmp_path / name)
    with pytest.raises(UntrustedError, match="symbolic link"):
        trust.open_file(tmp_path / "dangling", os.O_RDWR | os.O_CREAT)
    assert not (tmp_path / "nothing").exists()
    with pytest.raises(OSError, match="Too many levels"):
        trust.check_file(tmp_path / "circle" / "file")
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o1777)
    os.link(tmp_path / "file", tmp_path / "shared" / "second")
    with pytest.raises(UntrustedError, match="second name"):
        trust.check_file(tmp_path / "shared" / "second")
    trust.check_file(tmp_path / "file")


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o777])
def test_what_is_made_is_its_owners_only(tmp_path: Path, mask: int) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with umask(mask):
        trust.make_folder(home / "a" / "b")
        trust.make_folders(home / "c" / "d")
        trust.make_own_folder(home / "e" / "f")
        trust.prepare_database(home / "g" / "x.sqlite")
        os.close(trust.open_file(home / "a" / "made", os.O_WRONLY | os.O_CREAT))
        os.close(trust.open_own_file(home / "e" / "made", os.O_WRONLY | os.O_CREAT))
        write_whole(home / "a" / "written", "text")
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in home.rglob("*")}
    assert len(modes) == 11
    assert modes == {path: 0o700 if path.is_dir() else 0o600 for path in modes}


def test_a_database_is_tightened_and_a_planted_log_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    path.write_text("")
    path.chmod(0o644)
    Path(f"{path}-wal").write_text("")
    Path(f"{path}-wal").chmod(0o640)
    trust.prepare_database(path)
    assert [file.stat().st_mode & 0o777 for file in tmp_path.iterdir()] == [0o600, 0o600]
    Path(f"{path}-journal").symlink_to("/etc/passwd")
    with pytest.raises(UntrustedError, match=r"x\.sqlite-journal is not trusted: it is a symbolic link"):
        trust.prepare_database(path)
    tmp_path.chmod(0o1777)
    with pytest.raises(UntrustedError, match="others can write to it"):
        trust.prepare_database(tmp_path / "y.sqlite")
    assert not (tmp_path / "y.sqlite").exists()
    tmp_path.chmod(0o700)


@as_root
def test_the_own_folder_of_another_user_is_refused(world: Path) -> None:
    for folder in (world / "taken", world / "mine"):
        folder.mkdir(mode=0o755)
    os.chown(world / "taken", STRANGER, STRANGER)
    trust.make_own_folder(world / "mine")
    with pytest.raises(UntrustedError, match=f"belongs to user {STRANGER}"):
        trust.make_own_folder(world / "taken")
    (world / "to").symlink_to("mine")
    with pytest.raises(UntrustedError, match="symbolic link"):
        trust.make_own_folder(world / "to")


@as_root
def test_a_group_counts_as_others_unless_it_is_the_users_own(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = world / "own-group"
    folder.mkdir()
    os.chown(folder, STRANGER, STRANGER)
    folder.chmod(0o775)
    members: list[str] = []
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: pwd.struct_passwd(("fish", "", uid, uid, "", "", "")))
    monkeypatch.setattr(grp, "getgrgid", lambda gid: grp.struct_group(("fish", "", gid, members)))
    with acting_as(STRANGER):
        trust.check_folder(folder)
        members.append("fish")
        trust.check_folder(folder)
        members.append("somebody")
        with pytest.raises(UntrustedError, match="others can write to it"):
            trust.check_folder(folder)
        members.remove("somebody")
        trust.check_folder(folder)
        accounts = [
            pwd.struct_passwd((name, "", uid, STRANGER, "", "", "")) for name, uid in (("fish", STRANGER), ("x", 7))
        ]
        monkeypatch.setattr(pwd, "getpwall", lambda: accounts)
        trust._primary_of.cache_clear()
        try:
            with pytest.raises(UntrustedError, match="others can write to it"):
                trust.check_folder(folder)
        finally:
            trust._primary_of.cache_clear()


ROOT = Path(trust.__file__).parent
#: Files that may make files or folders in another way, and why.
EXCEPT = {
    "adapters/local/adapter.py": "in the state directory, which is 0700 and trusted",
    "adapters/local/cgroups.py": "folders of the kernel",
    "adapters/local/job_files.py": "a keeper imports the standard library only; in the state directory",
    "adapters/local/keeper.py": "as job_files.py",
    "adapters/local/observe.py": "in the state directory",
    "adapters/start_claim.py": "a link that names a job, in a folder of `make_own_folder`",
    "cli/sweeps/tasks.py": "in a temporary folder of its own",
    "daemon/record_run.py": "in a temporary folder of its own",
    "profiles/probes/resctrl.py": "folders of the kernel",
}
MAKING = {"mkdir", "makedirs", "write_text", "write_bytes", "touch", "mkfifo", "mknod", "symlink_to", "symlink"}


def making(tree: ast.AST) -> Iterator[str]:
    """Calls that make a file or folder, or open a file for writing."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "O_CREAT":
            yield f"{node.lineno}: O_CREAT"
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        modes = [
            word.value
            for word in [*node.args, *(word.value for word in node.keywords)]
            if isinstance(word, ast.Constant)
        ]
        writes = any(isinstance(mode, str) and re.fullmatch("[wax][bt+]*", mode) for mode in modes)
        if (name in MAKING and isinstance(node.func, ast.Attribute)) or (name == "open" and writes):
            yield f"{node.lineno}: {ast.unparse(node)}"


@pytest.mark.xdist_group("sources")
def test_all_files_and_folders_are_made_in_one_place() -> None:
    found = {}
    for room in ("adapters", "cli", "daemon", "formats", "profiles", "simulate"):
        for path in (ROOT / room).rglob("*.py"):
            calls = [line for line in making(tree_of(path)) if "O_CREAT" not in line or not by_trust(path)]
            if calls:
                found[str(path.relative_to(ROOT))] = calls
    assert {name: calls for name, calls in found.items() if name not in EXCEPT} == {}
    assert set(found) == set(EXCEPT), "an exception is not needed any more"


def by_trust(path: Path) -> bool:
    """Whether a file that names O_CREAT gives it to `trust`."""
    return "os.open(" not in path.read_text()


def test_every_database_is_prepared() -> None:
    for room in ("adapters", "cli", "daemon", "formats", "profiles"):
        for path in (ROOT / room).rglob("*.py"):
            text = path.read_text().replace('sqlite3.connect(":memory:")', "")
            assert "sqlite3.connect(" not in text or "prepare_database(" in text, path


NAMESPACE = """
import sys; sys.path.insert(0, {root!r})
import trust
print(trust.make_folder({mine!r}))
try:
    print(trust.check_folder("/usr"))
except OSError as error:
    print(error.strerror)
"""


@pytest.mark.real
def test_a_user_namespace_that_does_not_know_root_still_has_a_home(world: Path) -> None:
    """There root's folders look like a stranger's: they may stand above, and are not trusted themselves."""
    home = world / "namespace"
    home.mkdir()
    prefix = ["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups"] if os.geteuid() == 0 else []
    if prefix:
        os.chown(home, STRANGER, STRANGER)
    code = NAMESPACE.format(root=str(ROOT), mine=str(home / "a"))
    prefix += ["unshare", "-U", "-r"]
    python = next((each for each in (sys.executable, "/usr/bin/python3") if runs([*prefix, each, "-c", ""])), None)
    if python is None:
        pytest.skip("no user namespace with a Python can be made here")
    done = subprocess.run([*prefix, python, "-B", "-c", code], capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert first == str(home / "a") and "/usr is not trusted: it belongs to user" in second


def runs(argv: list[str]) -> bool:
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


@pytest.mark.real
@as_root
def test_judging_as_another_account_imports_nothing(world: Path) -> None:
    script = f"""
import os, sys; sys.path.insert(0, {str(Path(trust.__file__).parent)!r})
import trust
with trust.as_account("games"):
    before = set(sys.modules)
    try:
        trust.check_file({str(world / "others")!r})
    except trust.UntrustedError as error:
        assert "others can write to it" in str(error), error
    sys.exit(",".join(set(sys.modules) - before) or None)
"""
    (world / "others").touch()
    (world / "others").chmod(0o664)  # so that the group has to be looked up
    games = pwd.getpwnam("games")
    os.chown(world / "others", games.pw_uid, games.pw_gid)
    for above in (world, *world.parents):  # pytest's own folders are root's alone
        above.chmod(above.stat().st_mode | 0o011)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


@as_root
def test_root_sees_as_another_account_and_is_itself_again(world: Path) -> None:
    folder = world / "of-games"
    folder.mkdir()
    games = pwd.getpwnam("games")
    os.chown(folder, games.pw_uid, games.pw_gid)
    before = os.geteuid(), os.getegid(), os.getgroups()
    with pytest.raises(UntrustedError, match="belongs to user games"):
        trust.check_folder(folder)
    with pytest.raises(ZeroDivisionError), trust.as_account(trust.owner_of(folder)):
        assert (os.geteuid(), os.getegid()) == (games.pw_uid, games.pw_gid) and 0 not in os.getgroups()
        trust.check_folder(folder)
        1 / 0  # noqa: B018
    assert (os.geteuid(), os.getegid(), os.getgroups()) == before
    for same in ("", "no such user", "root"):
        with trust.as_account(same):
            assert os.geteuid() == 0
    assert trust.owner_of(world / "none") == ""


def test_a_message_names_a_file_once(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("")
    path.chmod(0o666)
    with pytest.raises(UntrustedError) as untrusted:
        trust.check_file(path)
    assert trust.message_of(untrusted.value).count(str(path)) == 2  # of the file, and in the command that helps
    assert trust.message_of(untrusted.value).startswith(f"{path}: not trusted: it belongs to")
    assert trust.problem_of(untrusted.value, tmp_path / "g").startswith(f"{path} is not trusted")
    assert trust.message_of(FileNotFoundError(2, "No such file or directory", "f")) == "f: No such file or directory"
    assert trust.message_of(OSError(28, "No space left on device")) == "[Errno 28] No space left on device"
