"""pilotfish as users install it: the wheel, built from the sdist, in a virtual environment of its own.

Rule: built once per run, outside of the checkout, in a folder that every user may read. The clean environment has no
extras; a second one has them all.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import metadata
from importlib.util import cache_from_source
from pathlib import Path

import forked
import guardian
import pytest
from packaging.requirements import Requirement

import pilotfish

ROOT = Path(pilotfish.__file__).resolve().parent
PATIENCE_S = 300.0
#: Compiles every kernel that is not in the cache yet.
WARM = ("-m", "pilotfish.cli", "warm")
EVERYBODY = "nobody"
IMPORT_ALL = """
import importlib, pkgutil, pilotfish
names = [module.name for module in pkgutil.walk_packages(pilotfish.__path__, "pilotfish.")]
assert len(names) > 100
for name in names:
    if not name.endswith("__main__"):
        try:
            importlib.import_module(name)
        except ImportError as error:
            print((error.name or f"{name}: {error}").split(".")[0])
"""


@dataclass(frozen=True)
class Installed:
    """An installation below `folder`: the wheel, the environment `clean`, and `full`, which has the extras."""

    folder: Path

    @property
    def wheel(self) -> Path:
        """The wheel that was installed."""
        (found,) = self.folder.glob("*.whl")
        return found

    @property
    def sdist(self) -> Path:
        """The archive of sources that the wheel was built from."""
        (found,) = self.folder.glob("*.tar.gz")
        return found

    @property
    def cache(self) -> Path:
        """Compiled kernels, for PILOTFISH_CACHE."""
        return self.folder / "cache"

    @property
    def command(self) -> list[str]:
        """The program, as an argument vector."""
        return [str(self.folder / "clean" / "bin" / "pilotfish")]

    def path(self, environment: str = "clean") -> str:
        """Return a PATH on which the `pilotfish` of that environment comes first."""
        return f"{self.folder / environment / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin"

    @cached_property
    def server(self) -> forked.Server:
        """An ordinary user's process that has imported the clean environment's pilotfish, whose forks run commands."""
        kept = {"LANG": "C.UTF-8", "PATH": self.path(), guardian.MARK: os.environ[guardian.MARK]}
        python = [*as_user(EVERYBODY), str(self.folder / "clean" / "bin" / "python")]
        return forked.Server(python, self.folder / "forked.py", kept)

    def full(self) -> Path:
        """Return the environment with all extras, made at the first call: the clean one, and what they ask for."""
        place = self.folder / "full"
        with locked(self.folder / "full.lock"):
            if not (place / "ready").exists():
                _environment(self.folder, place)
                _packages(place).joinpath("clean.pth").write_text(f"{_packages(self.folder / 'clean')}\n")
                script = (self.folder / "clean" / "bin" / "pilotfish").read_text()
                (place / "bin" / "pilotfish").write_text(script.replace(str(self.folder / "clean"), str(place)))
                (place / "bin" / "pilotfish").chmod(0o755)
                _add_requirements(self, place, "plot", "parquet")
                import_all(place)
                (place / "ready").touch()
        return place


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other processes of this run out."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def installed() -> Installed:
    """The wheel, installed; the first test that asks for it waits for a minute."""
    folder = guardian.folder() / "installed"
    with locked(guardian.folder() / "installed.lock"):
        if not folder.exists():
            folder.mkdir()
            _build(folder)
            (folder / "ready").touch()
    assert (folder / "ready").exists(), "the installation failed: see the first test that asked for it"
    return Installed(folder)


def _build(folder: Path) -> None:
    # The wheel from the sdist; setup-venv.sh has built with nothing but what [build-system] names.
    _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT))
    made = Installed(folder)
    _environment(folder, folder / "clean")
    _install(folder / "clean", "--no-deps", str(made.wheel))
    _add_requirements(made, folder / "clean")
    (folder / "missing").write_text(import_all(folder / "clean"))
    kept = Path(os.environ.get("PILOTFISH_CACHE") or Path.home() / ".cache" / "pilotfish")
    _run(str(folder / "clean" / "bin" / "python"), *WARM, PILOTFISH_CACHE=str(kept))
    shutil.copytree(kept / "kernels", made.cache / "kernels")
    _run("chmod", "-R", "a+rX", str(made.cache))
    shutil.copy(Path(__file__).with_name("forked.py"), folder)
    (folder / "forked.py").chmod(0o644)


def _environment(folder: Path, place: Path) -> None:
    _run(_python(folder), "-m", "venv", "--without-pip", str(place))


def _install(place: Path, *wanted: str) -> None:
    """Install into an environment, with the pip of ours; only what is imported is compiled, by `import_all`."""
    python = str(place / "bin" / "python")
    _run(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-compile", *wanted)


def _packages(place: Path) -> Path:
    """Return the folder of an environment's packages."""
    return next(place.glob("lib/python*/site-packages"))


def _add_requirements(made: Installed, place: Path, *extras: str) -> None:
    """Copy the packages that the installed wheel asks for, and those that they ask for, from our environment.

    pip would do the same from the network, in ten times the time. What no metadata name is not there.
    """
    clean, ours = _packages(made.folder / "clean"), Path(sysconfig.get_path("purelib"))
    if clean.parent.name != ours.parent.name:  # a Python of another version
        _install(place, f"{made.wheel}[{','.join(extras)}]")
        return
    (wheel,) = metadata.distributions(name="pilotfish", path=[str(clean)])
    wanted = [(wheel, need, extras) for need in wheel.requires or ()]
    there = {each.name for each in metadata.distributions(path=[str(clean)])}
    seen = set()
    while wanted:
        asking, text, options = wanted.pop()
        need = Requirement(text)
        if need.marker and not any(need.marker.evaluate({"extra": option}) for option in ("", *options)):
            continue
        found = metadata.distribution(need.name)
        assert need.specifier.contains(found.version, prereleases=True), f"{asking.name}: {text}, not {found.version}"
        if found.name not in there:
            _copy(found, ours, _packages(place))
            there.add(found.name)
        if (found.name, *need.extras) not in seen:
            seen.add((found.name, *need.extras))
            wanted += [(found, each, tuple(need.extras)) for each in found.requires or ()]


def _copy(package: metadata.Distribution, source: Path, target: Path) -> None:
    """Copy a package's files, and those that Python has compiled, but no scripts."""
    for file in package.files or ():
        if ".." not in file.parts:
            compiled = Path(cache_from_source(str(source / file))) if file.suffix == ".py" else source / file
            for path in {source / file, compiled}:
                if path.exists():
                    copied = target / path.relative_to(source)
                    copied.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(path, copied)


def import_all(place: Path) -> str:
    """Import each module of an environment's pilotfish, and return the names of the packages that are missing."""
    return _run(str(place / "bin" / "python"), "-I", "-c", IMPORT_ALL)


def _run(*argv: str, **environment: str) -> str:
    """Run a command in the root folder, away from the checkout, and return its output; fail with what it printed."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        argv, capture_output=True, text=True, cwd="/", env=clean | environment, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
    return done.stdout


@cache
def _python(folder: Path) -> str:
    """Return a Python that every user may run: this one, or else a copy, or else the system's.

    The same version compiles the same kernels, so the machine's cache serves this environment, too.
    """
    ours = Path(sys.executable).resolve()
    copied = folder / "python" / "bin" / ours.name
    if _may_run(ours):
        return str(ours)
    if not copied.exists():
        left_out = shutil.ignore_patterns(
            "site-packages", "__pycache__", "test", "idlelib", "tkinter", "config-*", "*.a"
        )
        library = f"lib/python{sys.version_info.major}.{sys.version_info.minor}"
        shutil.copytree(Path(sys.base_prefix) / library, folder / "python" / library, ignore=left_out)
        copied.parent.mkdir()
        shutil.copy(ours, copied)
    if _may_run(copied):
        return str(copied)
    return "/usr/bin/python3" if _may_run(Path("/usr/bin/python3")) else str(ours)


def _may_run(python: Path) -> bool:
    """Whether an ordinary user may run this Python, and it is recent enough."""
    code = "import sys, ensurepip, ssl, sqlite3, ctypes; sys.exit(sys.version_info < (3, 11))"
    shell = ["/bin/sh", "-c", 'exec "$@"', "sh"]  # setpriv itself may still read everything
    argv = [*as_user(EVERYBODY), *shell, str(python), "-I", "-c", code]
    return subprocess.run(argv, capture_output=True, cwd="/", check=False).returncode == 0


def as_user(name: str) -> list[str]:
    """Return the prefix that runs a command as that user; nothing, where we may not change users."""
    if os.geteuid() != 0 or name == "root":
        return []
    return ["setpriv", f"--reuid={name}", f"--regid={name if name != 'nobody' else 'nogroup'}", "--clear-groups"]
