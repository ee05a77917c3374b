"""Every command of the README and of docs/, typed as users type it, with the wheel installed in a clean environment.

An ordinary user types them all. Users whose home cannot be written, or who have none, type each command once: the home
decides where things are read and kept, whatever the options. Root makes the files that the documents name. Of the
first, and of those without a home, the lines that are one command alone run in a fork of a process that has imported the
installed pilotfish; the others start a Python each.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import doc_commands
import guardian
import pytest
from doc_commands import HINT, WALKS, Line, Rule
from installed import EVERYBODY, Installed, as_user
from real_world import eventually

ROOT_ONLY = os.geteuid() == 0
EVERYTHING = "user"  #: the kind that types every command
KINDS = ("read-only", "homeless")  #: the others
PATIENCE_S = 120.0
FORKS = (EVERYTHING, "homeless")  #: whose plain lines run in forks
#: A line that needs no shell.
PLAIN = re.compile(r"pilotfish [^|&;<>()$`*?~#{}\\\[\]\n]*")
ONCE_COLD = "homeless"  #: the kind that compiles more than the smallest kernel
#: What a command compiles where nothing is kept; tests/real/test_first_use.py has the simulator of workflows.
COLD = {"pilotfish simulate small.swf": ["reader", "replay"]}

#: Files that the commands of a document make.
MADE = {
    "docs/guides/replay.md": (
        "run/jobs.csv", "run.html", "day.png", "energy.png", "compare.svg", "workload.json", "platform.xml",
        "study/results.csv",
    ),
}  # fmt: skip

Done = subprocess.CompletedProcess[str]


class Person:
    """Somebody with a shell: a user, a home, a folder to work in, and the files that the documents name.

    Kinds: `root`; `user`, who is an ordinary one, as are the others; `read-only`, whose home cannot be written;
    `homeless`, who has none; `foreign`, whose HOME is somebody else's, as after `su` without a dash.
    """

    def __init__(self, kind: str, installed: Installed, folder: Path) -> None:
        self.kind, self.installed = kind, installed
        self.home, self.work, self.state = folder / "home", folder / "work", folder / "state"
        self.prefix = as_user("root" if kind == "root" else EVERYBODY)
        self.daemon: subprocess.Popen[bytes] | None = None
        self.took: dict[str, float] = {}  #: seconds by line
        self.forks = False
        for place in (self.home, self.work, self.state):
            place.mkdir()
        self.environment = {
            "LANG": "C.UTF-8", "COLUMNS": "100", "PILOTFISH_CACHE": str(installed.cache),
            guardian.MARK: os.environ[guardian.MARK], "PILOTFISH_TEST": os.environ["PILOTFISH_TEST"],
        }  # fmt: skip
        if kind != "homeless":
            self.environment["HOME"] = str(self.home)
        elif not ROOT_ONLY:
            self.environment["HOME"] = "/nonexistent"
        if kind in ("read-only", "homeless"):
            self.environment["PILOTFISH_STATE"] = str(self.state)
        if self.prefix:
            for place in (self.home, self.work, self.state):
                shutil.chown(place, EVERYBODY, "nogroup")
        if kind in ("read-only", "foreign"):
            if self.prefix:
                shutil.chown(self.home, "root", "root")
            self.home.chmod(0o555 if kind == "read-only" else 0o700 if self.prefix else 0o000)

    def type(
        self, line: str, folder: Path | None = None, environment: str = "clean"
    ) -> subprocess.CompletedProcess[str]:
        """Run a line in a shell, to its end."""
        begin, where = time.monotonic(), folder or self.work
        variables = self.environment | {"PATH": self.installed.path(environment)}
        if self.forks and environment == "clean" and PLAIN.fullmatch(line):
            words = shlex.split(line)[1:]
            done = self.installed.server.run(words, env=variables, cwd=str(where), timeout=PATIENCE_S)
            self.took[line] = time.monotonic() - begin
            return done
        with subprocess.Popen(
            [*self.prefix, "/bin/sh", "-c", line], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            stdin=subprocess.DEVNULL, cwd=where, start_new_session=True, env=variables,
        ) as shell:  # fmt: skip
            try:
                out, err = shell.communicate(timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                os.killpg(shell.pid, signal.SIGKILL)
                out, err = shell.communicate()
                err += f"\nnot over after {PATIENCE_S:g} s"
        self.took[line] = time.monotonic() - begin
        return Done(line, shell.returncode, out, err)

    def serve(self, line: str) -> None:
        """Start a daemon, and wait until it answers."""
        with (self.work / "daemon.log").open("ab") as log:
            before = log.tell()
            self.daemon = subprocess.Popen(
                [*self.prefix, "/bin/sh", "-c", f"exec {line}"], stdout=log, stderr=log, cwd=self.work,
                env=self.environment | {"PATH": self.installed.path()},
            )  # fmt: skip

        def answers() -> bool:
            assert self.daemon is not None
            said = (self.work / "daemon.log").read_bytes()[before:].decode()
            assert self.daemon.poll() is None, said
            return "pilotfish serves" in said and self.type("pilotfish status").returncode == 0

        eventually(answers, f"an answer of `{line}`")

    def dismiss(self) -> int:
        """End the daemon as systemd does; returns its exit status."""
        assert self.daemon is not None
        self.daemon.send_signal(signal.SIGTERM)
        code, self.daemon = self.daemon.wait(PATIENCE_S), None
        return code


@contextmanager
def person(kind: str, installed: Installed, stock: Path | None = None) -> Iterator[Person]:
    """Somebody of that kind, in folders of their own."""
    if kind == "root" and not ROOT_ONLY:
        pytest.skip("SKIPPED: not root, so nothing was run as root")
    with tempfile.TemporaryDirectory(dir=guardian.folder(), prefix=kind[0], ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        found = Person(kind, installed, Path(name))
        try:
            if stock:
                shutil.copytree(stock, found.work, dirs_exist_ok=True)
                if found.prefix:
                    subprocess.run(["chown", "-R", f"{EVERYBODY}:nogroup", found.work], check=True)
            yield found
        finally:
            if found.daemon:
                found.daemon.kill()
                found.daemon.wait()
            found.home.chmod(0o755)


def stock(installed: Installed) -> Path:
    """Return a folder with the files that the documents name, made once."""
    from installed import locked

    place = installed.folder / "stock"
    with locked(installed.folder / "stock.lock"):
        if not (place / "ready").exists():
            place.mkdir()
            for name, text in doc_commands.FILES.items():
                path = place / name
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
                path.chmod(0o755 if text.startswith("#!") else 0o644)
            with person("root" if ROOT_ONLY else "user", installed) as maker:
                for line in doc_commands.MADE:
                    done = maker.type(line, place)
                    assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
            (place / "ready").touch()
    return place


def wrong(line: Line, rule: Rule, done: Done) -> str:
    """Return what is wrong about how a command ended, "" if nothing is."""
    said = done.stderr.strip().splitlines()
    if "Traceback" in done.stderr:
        return "a traceback"
    if done.returncode == 0:
        return ""
    if done.returncode not in rule.codes:
        return f"exit status {done.returncode}"
    if rule.says not in done.stdout + done.stderr:
        return f"it does not say {rule.says!r}"
    if not (said and said[-1].startswith("pilotfish: ")) and not done.stdout.strip():
        return "no clear error"
    return ""


def walk(someone: Person, lines: list[Line]) -> list[str]:
    """Type the commands of a document in turn; returns what went wrong."""
    failed, block, folder = [], -1, someone.work
    for line in lines:
        rule = line.rule
        assert rule is not None
        if line.block != block:
            block, folder = line.block, someone.work
        if rule.skip or (rule.once and someone.kind != EVERYTHING):
            continue
        if line.typed.startswith("cd "):
            folder = folder / line.typed[3:].strip()
            continue
        if line.text.startswith("pilotfish daemon"):
            if someone.daemon:
                someone.dismiss()
            someone.serve(line.typed)
            if code := someone.dismiss():
                failed.append(f"{line.text}: exit status {code} after SIGTERM")
            continue
        if rule.daemon and not someone.daemon:
            someone.serve("pilotfish daemon --config pilotfish.yaml")
        done = someone.type(line.typed, folder)
        if done.returncode == 1 and HINT in done.stderr and "Traceback" not in done.stderr:
            if someone.kind != EVERYTHING:
                continue
            someone.installed.full()
            done = someone.type(line.typed, folder, "full")
        if problem := wrong(line, rule, done):
            failed.append(f"$ {line.typed}\n  {problem}: {done.stdout[-300:]}{done.stderr[-700:]}".rstrip())
    if someone.daemon and (code := someone.dismiss()):
        failed.append(f"the daemon's exit status is {code} after SIGTERM")
    return failed


@pytest.mark.parametrize("document", WALKS)
def test_every_command_has_a_rule(document: str) -> None:
    unknown = [line.text for line in WALKS[document] if line.rule is None]
    assert not unknown, f"{document}: doc_commands.RULES does not say how to run {unknown}"


def test_there_are_commands() -> None:
    assert "README.md" in WALKS and sum(map(len, WALKS.values())) > 20
    firsts = [line.text for lines in doc_commands.first_uses().values() for line in lines]
    for name in ("plan", "run", "submit", "simulate", "profile list"):
        assert len([text for text in firsts if re.match(rf"pilotfish {name}\b", text)]) == 1, name


def files(folder: Path) -> dict[Path, int]:
    """Return the files below a folder, with the time of their last change, nanoseconds."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def type_all(
    kind: str, documents: dict[str, list[Line]], installed: Installed, record_property: Callable[[str, object], None]
) -> None:
    """Type those lines of each document as somebody of that kind, in one folder."""
    failed = []
    with person(kind, installed, stock(installed)) as someone:
        someone.forks = kind in FORKS
        first = "pilotfish profile run --name align -- ./align.sh"  # documents name this profile
        done = someone.type(first)
        assert done.returncode == 0, done.stderr
        for document, lines in documents.items():
            for name, text in doc_commands.examples(document).items():
                if kind == EVERYTHING or name != "study.yaml":  # the stock has a shorter one
                    (someone.work / name).write_text(text)
            before = files(someone.work)
            failed += [f"{document}, as {kind}:\n{problem}" for problem in walk(someone, lines)]
            made = [path for path, time in files(someone.work).items() if before.get(path) != time]
            names = {str(path.relative_to(someone.work)) for path in made}
            if kind == EVERYTHING and (missing := set(MADE.get(document, ())) - names):
                failed.append(f"{document} did not make {sorted(missing)}")
            studies = [path for path in made if path.name == "results.csv"]
            rows = [row for path in studies for row in path.read_text().splitlines()[1:]]
            failed += [f"{document}, as {kind}: not done: {row}" for row in rows if ",done," not in row]
        slowest = sorted(someone.took.items(), key=lambda item: -item[1])[:3]
        words = "; ".join(f"{seconds:.1f} s: {line}" for line, seconds in slowest)
        record_property("measured", f"{len(someone.took)} commands in {sum(someone.took.values()):.0f} s ({words})")
    assert not failed, "\n\n".join(failed)


@pytest.mark.parametrize(
    "document",
    [pytest.param(name, marks=pytest.mark.xdist_group(f"installed {name.rpartition('/')[0]}")) for name in WALKS],
)
def test_every_command_can_be_typed(
    document: str, installed: Installed, record_property: Callable[[str, object], None]
) -> None:
    type_all(EVERYTHING, {document: WALKS[document]}, installed, record_property)


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.xdist_group(f"installed {kind}")) for kind in KINDS]
)
def test_each_command_can_be_typed_by_anybody(
    kind: str, installed: Installed, record_property: Callable[[str, object], None]
) -> None:
    type_all(kind, doc_commands.first_uses(), installed, record_property)


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.xdist_group(f"installed {kind}")) for kind in (*KINDS, "foreign")]
)
def test_what_keeps_nothing_needs_neither_home_nor_cache(kind: str, installed: Installed) -> None:
    with person(kind, installed, stock(installed)) as someone:
        someone.forks = kind != ONCE_COLD
        del someone.environment["PILOTFISH_CACHE"]  # each command compiles for itself
        someone.environment.pop("PILOTFISH_STATE", None)
        for line in (
            "pilotfish --version",
            "pilotfish policies",
            "pilotfish generate lublin --jobs 10 --procs 4 -o small.swf",
            "pilotfish convert lab.yaml platform.xml",
            "pilotfish convert small.swf small.json",
            *(COLD if kind == ONCE_COLD else ()),
            "pilotfish demo",
        ):
            done = someone.type(line)
            assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
            said = re.findall(r"^pilotfish: compiling the (\w+)[^:\n]*$", done.stderr, re.M)
            assert said == COLD.get(line, said), f"{line}: {done.stderr}"
        refused = someone.type("pilotfish profile run --name align -- ./prepare.sh")
        assert refused.returncode == 1 and "Traceback" not in refused.stderr
        last = refused.stderr.strip().splitlines()[-1]
        assert last.startswith("pilotfish: ") and "profiles.sqlite" in last, refused.stderr


@pytest.mark.xdist_group("installed root")
def test_the_wheel_is_the_repository_without_its_tests(installed: Installed) -> None:
    import pilotfish
    from pilotfish import __version__
    from pilotfish.built_from import commit_of

    names = zipfile.ZipFile(installed.wheel).namelist()
    rooms = {name.split("/")[1] for name in names if name.startswith("pilotfish/") and name.count("/") > 1}
    assert not rooms & {"tests", "benchmarks"} and __version__ in installed.wheel.name
    assert (
        commit_of(Path(pilotfish.__file__).parent)
        == zipfile.ZipFile(installed.wheel).read("pilotfish/commit.txt").decode().strip()
    )
    assert {"pilotfish/py.typed", "pilotfish/profiles/library/node_types.yaml"} <= set(names)
    assert not [name for name in names if name.endswith((".pyc", ".nbi", ".nbc"))]
    with tarfile.open(installed.sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "Makefile",
        "README.md",
        "tests/conftest.py",
        "tests/real/prepare.sh",
        "docs/slurm/job_submit.lua",
    } <= inside


@pytest.mark.xdist_group("installed root")
def test_every_module_of_it_can_be_imported(installed: Installed) -> None:
    missing = set((installed.folder / "missing").read_text().split())
    assert missing <= {
        "matplotlib",
        "bokeh",
        "pyarrow",
        "distributed",
        "starlette",
        "uvicorn",
        "textual",
        "gymnasium",
        "stable_baselines3",
    }
