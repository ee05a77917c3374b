"""Walk the life of the packages in a fresh Debian under a real systemd: install, upgrade, downgrade, remove, purge.

    make test-packages    root; the package archive and the package index; some minutes

First that for Debian, then that for rpm, whose Python Debian 12 has, too; Debian's rpm does not know what dpkg has
installed, so that nothing is said about its dependencies. The folder, build/packages, keeps the root file system, the
compiled simulator and the packages: of the commit that is checked out, and of a made-up next version that has another
journal. The first start is that of a machine that has compiled nothing. Prints each step with its time. Nothing on this
machine is changed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
if __name__ == "__main__":
    sys.path[:0] = [str(HERE.parents[2]), str(HERE.parents[1]), str(HERE.parent), str(HERE)]

import guardian
from machine import CLUSTER, ROOT, Machine
from waiting import look_until

import pilotfish

NEXT = "1.1.0"
PACKAGES = "systemd,systemd-sysv,dbus,python3,procps,passwd,iproute2,bash-completion,rpm"
#: Changes of the source that make the next version: the file, what is there, and what replaces it.
CHANGES = (
    ("__init__.py", f'__version__ = "{pilotfish.__version__}"', f'__version__ = "{NEXT}"'),
    ("daemon/state/journal_db.py", "VERSION = 1\n", "VERSION = 2\n"),
    ("daemon/state/journal_db.py", "= {}\n", '= {1: lambda database: database.execute("ALTER TABLE kept ADD COLUMN note TEXT") and None}\n'),
    ("daemon/state/journal_db.py", "state TEXT NOT NULL) WITHOUT ROWID;\n{mem", "state TEXT NOT NULL, note TEXT) WITHOUT ROWID;\n{mem"),
    ("CHANGELOG.md", f"## [{pilotfish.__version__}]", f"## [{NEXT}]\n- A made-up version.\n\n## [{pilotfish.__version__}]"),
)  # fmt: skip
CONFIG = """# Edited by the administrator.
schema: pilotfish/daemon/v1
cluster: cluster.yaml
state_dir: /var/lib/pilotfish
mode: shadow
adapter: {name: local, options: {cgroups: false}}
socket: {path: /run/pilotfish/pilotfish.sock, mode: "0660"}
access: {viewers: [pilotfish-web]}
"""
#: Seconds for a step, and for the compiler, which has what others leave of the processors.
PATIENCE_S, COMPILED_S = 900.0, 3600.0
#: Longest time of a first start, seconds.
FIRST_S = 60.0
KERNELS = "/var/cache/pilotfish/kernels"
ANSWER = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:{}').read().decode())"


def run(*words: str | Path, cwd: Path | None = None) -> None:
    """Run a command of this machine."""
    subprocess.run(words, cwd=cwd, check=True, stdout=subprocess.DEVNULL)


def make_packages(source: Path, folder: Path) -> dict[str, Path]:
    """Return the packages of a checkout, by their kinds, made in a folder if they are not there."""
    if not all(list(folder.glob(f"*.{kind}")) for kind in KINDS):
        run(sys.executable, source / "packaging/release.py", folder, "--source", source)
        run(sys.executable, source / "packaging/wheelhouse.py", folder, "--source", source)
        run(sys.executable, source / "packaging/packages.py", folder, "--source", source, "--level", "1")
    return {kind: next(folder.glob(f"*.{kind}")) for kind in KINDS}


def make_next(folder: Path) -> Path:
    """Return a checkout of the made-up next version."""
    if not folder.exists():
        run("git", "clone", "--quiet", ROOT, folder)
        for name, before, after in CHANGES:
            text = (folder / name).read_text()
            assert text.count(before) == 1, (name, before)
            (folder / name).write_text(text.replace(before, after))
        run("git", "commit", "--quiet", "--all", "--message=release: make up a next version", cwd=folder)
    return folder


def make_root(folder: Path) -> Path:
    """Return the root file system of a fresh Debian."""
    if not (folder / "usr").exists():
        run("mmdebstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", folder)
    return folder


#: Each kind of package: how it is installed, also over a newer one, how it is removed, and how its files are checked.
KINDS = {
    "deb": (("dpkg", "--force-confold", "--force-depends", "-i"), ("dpkg", "-r"), ("dpkg", "--verify")),
    "rpm": (("rpm", "--upgrade", "--nodeps", "--oldpackage"), ("rpm", "--erase", "--nodeps"), ("rpm", "--verify", "--nodeps")),
}  # fmt: skip


class Walk:
    """The walk of a kind of package in one machine."""

    def __init__(self, machine: Machine, kind: str) -> None:
        self.machine, self.kind = machine, kind

    def step(self, text: str, do: Callable[[], str | None]) -> None:
        """Do a step, and print its name, its time and its result."""
        began = time.monotonic()
        result = do() or ""
        print(f"{text:44} {time.monotonic() - began:6.1f} s  {result}", flush=True)

    def install(self, package: str) -> str:
        """Install a package; return the version of the command."""
        result = self.machine.process(*KINDS[self.kind][0], f"/packages/{package}", patience_s=PATIENCE_S)
        assert result.returncode == 0, result.stdout + result.stderr
        return self.machine.run("pilotfish", "--version")

    def wait_for(self, unit: str, state: str) -> str:
        """Wait until a unit is in a state."""
        state_of = lambda: self.machine.show(unit, "ActiveState")  # noqa: E731
        look_until(lambda: state_of() in (state, "failed"), COMPILED_S)
        assert state_of() == state, (state_of(), self.machine.journal("-u", unit))
        return f"{unit} {state}"

    def ready(self) -> str:
        """Wait until the daemon serves; return its mode and version."""
        serves = lambda: self.answer("9836/readyz") != ""  # noqa: E731
        assert look_until(serves, PATIENCE_S), self.machine.journal("-u", "pilotfishd")
        lines = self.machine.run("pilotfish", "status").splitlines()
        return next(line for line in lines if "shadow" in line)

    def answer(self, place: str) -> str:
        """Return what a port of the machine answers; "": nothing, or an error."""
        return self.machine.process("/opt/pilotfish/bin/python3", "-c", ANSWER.format(place)).stdout

    def pages(self) -> str:
        """Start the pages; they show the node of the cluster."""
        self.machine.run("systemctl", "start", "pilotfish-web")
        boards = lambda: [one for one in [self.answer("9837/api/v1/board")] if one]  # noqa: E731
        assert look_until(lambda: bool(boards()), 60.0), self.machine.journal("-u", "pilotfish-web")
        assert json.loads(boards()[0])["nodes"]["name"] == ["a"]
        assert "<title>pilotfish</title>" in self.answer("9837/")
        return self.wait_for("pilotfish-web", "active")

    def first_start(self) -> str:
        """Start the service while nothing is compiled for this machine; return what `status` and its log say."""
        began = time.monotonic()
        self.machine.run("systemctl", "start", "pilotfishd")
        status = self.machine.run("pilotfish", "status").splitlines()[0]
        log = "\n".join(self.machine.journal("-u", "pilotfishd"))
        assert time.monotonic() - began < FIRST_S, log
        assert "the simulator is the package's" in log, log
        return status

    def start(self) -> str:
        """Start the service."""
        result = self.machine.process("systemctl", "start", "pilotfishd", patience_s=PATIENCE_S)
        assert result.returncode == 0, self.machine.journal("-u", "pilotfishd")[-8:]
        return self.ready()

    def look(self) -> str:
        """Check what an installation consists of."""
        machine = self.machine
        machine.run("systemd-analyze", "verify", *(f"/usr/lib/systemd/system/{unit}" for unit in (
            "pilotfishd.service", "pilotfish-reap.timer", "pilotfish-web.service", "pilotfish-warm.service")))  # fmt: skip
        assert machine.run("getent", "passwd", "pilotfish", "pilotfish-web").count("\n") == 1
        assert machine.run("stat", "--format=%U %a", "/var/lib/pilotfish") == "pilotfish 700"
        assert "1" in machine.run("gzip", "-dc", "/usr/share/man/man1/pilotfish-status.1.gz")
        complete = (
            ". /usr/share/bash-completion/completions/pilotfish; COMP_WORDS=(pilotfish sta); COMP_CWORD=1; _pilotfish"
        )
        assert machine.run("bash", "-c", f'{complete}; echo "${{COMPREPLY[@]}}"') == "status"
        changed = machine.process(*KINDS[self.kind][2], "pilotfish").stdout.splitlines()
        assert [line.split()[1:] for line in changed] == [["c", "/etc/pilotfish/pilotfish.yaml"]], changed
        loaded = machine.run("find", "/opt/pilotfish", "!", "-user", "root", "-o", "-perm", "/022", "!", "-type", "l")
        assert loaded == "", loaded
        return f"{int(machine.run('du', '-sm', '/opt/pilotfish').split()[0])} MiB in /opt/pilotfish"

    def upgraded(self) -> str:
        """Check that the daemon of the next version runs, with the administrator's configuration and a copy."""
        status = self.ready()
        self.pages()
        assert self.machine.run("head", "-1", "/etc/pilotfish/pilotfish.yaml") == CONFIG.splitlines()[0]
        self.machine.run("test", "-e", "/var/lib/pilotfish/before-version-2-journal.sqlite")
        return status

    def go_back(self) -> str:
        """Do as the older program says of the newer journal."""
        advice = lambda: [line for line in self.machine.journal("-u", "pilotfishd") if "go back" in line]  # noqa: E731
        assert look_until(lambda: bool(advice()), PATIENCE_S), self.machine.journal("-u", "pilotfishd")
        self.machine.run("systemctl", "stop", "pilotfishd")
        self.machine.run("pilotfish", "restore", "/var/lib/pilotfish/before-version-2-journal.sqlite")
        return self.start()

    def removed(self) -> str:
        """Remove the package; the state and the configuration stay."""
        self.machine.run(*KINDS[self.kind][1], "pilotfish")
        assert self.machine.show("pilotfishd", "LoadState") == "not-found"
        self.machine.run("test", "-e", "/var/lib/pilotfish/journal.sqlite")
        if self.kind == "deb":
            self.machine.run("test", "-e", "/etc/pilotfish/pilotfish.yaml")
        else:  # rpm renames what the administrator has changed
            self.machine.run("test", "-e", "/etc/pilotfish/pilotfish.yaml.rpmsave", "-a", "!", "-e", "/opt/pilotfish")
        return ""

    def purged(self) -> str:
        """Purge the package: nothing of it stays but what the administrator wrote."""
        self.machine.run("dpkg", "-P", "pilotfish")
        traces = self.machine.run("find", "/", "-xdev", "-name", "*pilotfish*", "-not", "-path", "/proc/*",
                                  "-not", "-path", "/packages*", "-not", "-path", "/tmp/*", check=False).split()  # fmt: skip
        accounts = self.machine.run("getent", "passwd", "pilotfish", "pilotfish-web", check=False)
        assert accounts == "", accounts
        return f"left: {' '.join(traces)}"


def give_kernels(machine: Machine) -> None:
    """Put the compiled simulator of an earlier walk into the machine, instead of what the machine is compiling."""
    machine.run("systemctl", "stop", "pilotfish-warm")
    machine.run("mkdir", "-p", KERNELS)
    machine.run("tar", "-C", KERNELS, "-xf", "/packages/kernels.tar")
    machine.run("chown", "-R", "pilotfish:pilotfish", "/var/cache/pilotfish")
    machine.run("systemctl", "start", "--no-block", "pilotfish-warm")


def keep_kernels(machine: Machine, folder: Path) -> str:
    """Copy the compiled simulator out of the machine; return their number."""
    tar = machine.process("tar", "-C", KERNELS, "-cf", "/packages/kernels.tar", ".")
    assert tar.returncode == 0, tar.stderr
    return f"{(folder / 'kernels.tar').stat().st_size / 2**20:.0f} MiB"


def live(kind: str, this: str, newer: str, root: Path, packages: Path) -> None:
    """Walk from the installation of a package to its end.

    Args:
        kind: of the package, one of KINDS.
        this: its file of this version.
        newer: of the next one.
        root: of the fresh Debian.
        packages: the folder that has both; with the compiled simulator of a walk before, it is not compiled again.
    """
    folder = Path(tempfile.mkdtemp(dir=guardian.folder()))
    machine = Machine(folder, bare=True, seen={packages: "/packages"}, lower=root)
    try:
        walk = Walk(machine, kind)
        began = time.monotonic()
        walk.step(f"install {this}", lambda: walk.install(this))
        machine.write("/etc/pilotfish/cluster.yaml", CLUSTER)
        machine.write("/etc/pilotfish/pilotfish.yaml", CONFIG)
        walk.step("first start, in shadow", walk.first_start)
        print(f"{'from the file to a service that answers':44} {time.monotonic() - began:6.1f} s")
        is_compiled = (packages / "kernels.tar").exists()
        if is_compiled:
            walk.step("take the simulator that was compiled before", lambda: give_kernels(machine))
        walk.step("kernels compiled in the background", lambda: walk.wait_for("pilotfish-warm", "inactive"))
        walk.step("ready to plan", walk.ready)
        if not is_compiled:
            walk.step("keep the compiled simulator", lambda: keep_kernels(machine, packages))
        walk.step("the pages", walk.pages)
        walk.step("look at what is installed", walk.look)
        walk.step(f"upgrade to {NEXT}", lambda: walk.install(newer))
        walk.step("the new version serves, on a copied journal", walk.upgraded)
        walk.step("downgrade", lambda: walk.install(this))
        walk.step("restore, as the old program says", walk.go_back)
        walk.step("remove", walk.removed)
        if kind == "deb":
            walk.step("purge", walk.purged)
    finally:
        machine.down()


def main(folder: Path) -> int:
    """Make what is missing, and walk."""
    packages = folder / "packages"
    packages.mkdir(parents=True, exist_ok=True)
    versions = [make_packages(ROOT, folder / "this"), make_packages(make_next(folder / "source"), folder / "next")]
    for package in (path for paths in versions for path in paths.values()):
        (packages / package.name).write_bytes(package.read_bytes())
        print(f"{package.name}: {package.stat().st_size / 1e6:.1f} MB")
    root = make_root(folder / "root")
    for kind in KINDS:
        print(f"== {kind}", flush=True)
        live(kind, *(paths[kind].name for paths in versions), root, packages)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
