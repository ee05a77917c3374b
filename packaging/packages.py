"""Make the packages for Debian and for distributions with rpm from a wheel: `make release`.

Rule: the same wheels, Python and binutils give the same bytes. The program and all that it needs lie below
/opt/pilotfish, in an environment of the distribution's own Python; nothing of another package is used or replaced. It
needs the archive of wheelhouse.py, that Python, and the programs rpmbuild and strip. The simulator is compiled once,
which takes minutes, and kept in the user's cache.

    python packaging/packages.py FOLDER [--source FOLDER]    FOLDER has wheel and archive, and gets the packages
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: The Python of the distribution for which the package is: its minor version, and where its program lies.
PYTHON, PROGRAM = "3.11", "/usr/bin/python3.11"
#: Where packages are put together: always there, because the compiled simulator names the files that it comes from.
PLACE = Path("/var/tmp/pilotfish-package")
#: Folders of third parties that no program needs: their tests, and sources in C.
UNUSED = ("tests", "test", "include")
#: Parts of third parties that pilotfish never imports: for graphics cards, for Fortran, and for builds.
UNUSED_PARTS = ("numba/cuda", "numpy/distutils", "numpy/f2py", "setuptools", "_distutils_hack", "pkg_resources")
#: Endings of their files that only compilers and type checkers read.
UNUSED_ENDINGS = (".a", ".c", ".h", ".hpp", ".pxd", ".pyi")
#: Third parties whose libraries can be stripped; those that were changed after they were linked, as numpy's, cannot.
STRIPPED = ("llvmlite", "numba", "yaml")
UNITS = ("pilotfishd.service", "pilotfish-reap.service", "pilotfish-reap.timer", "pilotfish-warm.service",
         "pilotfish-web.service")  # fmt: skip
#: How numba compiles for `PORTABLE` of simulate/kernels/object_cache.py.
COMPILER = {"NUMBA_CPU_NAME": "x86-64-v2", "NUMBA_CPU_FEATURES": "", "PYTHONDONTWRITEBYTECODE": "1"}
#: The command.
SCRIPT = """#!/opt/pilotfish/bin/python3 -P
import sys

from pilotfish.cli.__main__ import main

sys.exit(main())
"""
CONTROL = """Package: pilotfish
Version: {version}
Architecture: {architecture}
Maintainer: {maintainer}
Installed-Size: {size}
Depends: python3 (>= {python}), python3 (<< {next}), libc6 (>= 2.28), libstdc++6, systemd
Recommends: slurm-client
Section: admin
Priority: optional
Description: co-scheduler that simulates before it dispatches
 pilotfish runs next to Slurm or OAR. It learns what jobs need, forecasts when
 they start and end, and places the jobs that are handed over to it. If it ends,
 jobs start in the resource manager's own order.
"""


def main(words: list[str]) -> int:
    """Write the packages into a folder, and their names to standard output."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="has one wheel of pilotfish")
    parser.add_argument("--source", type=Path, default=Path(), help="the checkout")
    parser.add_argument("--level", type=int, default=15, help="of the compression, 1 to 19")
    options = parser.parse_args(words)
    source, folder = options.source.resolve(), options.folder.resolve()
    wheels = sorted(folder.glob("pilotfish-*.whl"))
    if changed := _output("git", "-C", source, "status", "--porcelain"):
        raise SystemExit(f"not committed, so not part of a package: {changed.splitlines()[0].strip()}")
    if len(wheels) != 1:
        raise SystemExit(f"{folder}: {len(wheels)} wheels of pilotfish (allowed: one; `make release` makes it)")
    epoch = int(_output("git", "-C", source, "log", "-1", "--format=%ct"))
    os.umask(0o022)
    with place() as root:
        fill(root, source, wheels[0])
        version = wheels[0].name.split("-")[1]
        print(build_rpm(root, source, folder, version, epoch, options.level))
        print(build_deb(root, source, folder, version, epoch, options.level))
    return 0


@contextmanager
def place() -> Iterator[Path]:
    """Make PLACE, and remove it in the end. Raises SystemExit if it is there."""
    try:
        PLACE.mkdir(mode=0o700)
    except FileExistsError:
        raise SystemExit(
            f"{PLACE}: it is there (allowed: one build at a time; remove what a killed one left)"
        ) from None
    try:
        yield PLACE
    finally:
        shutil.rmtree(PLACE)


def fill(root: Path, source: Path, wheel: Path) -> None:
    """Put all files of the package below an empty folder.

    Args:
        root: stands for /.
        source: the checkout.
        wheel: of pilotfish.
    """
    environment = root / "opt/pilotfish"
    packages = environment / f"lib/python{PYTHON}/site-packages"
    packages.mkdir(parents=True)
    install_wheels(source, wheel, packages)
    _drop_unused(packages)
    _strip(packages)
    (environment / "bin").mkdir()
    (environment / "bin/python3").symlink_to(PROGRAM)
    (environment / "pyvenv.cfg").write_text(
        f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {PYTHON}\n"
    )
    _write(environment / "bin/pilotfish", SCRIPT, 0o755)
    if _output("dpkg", "--print-architecture") == "amd64":
        add_kernels(environment, packages / "pilotfish/simulate/kernels/portable")
    (environment / "monitoring").symlink_to(f"lib/python{PYTHON}/site-packages/pilotfish/monitoring")
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin/pilotfish").symlink_to("/opt/pilotfish/bin/pilotfish")
    for unit in UNITS:
        _copy(source / "systemd" / unit, root / "usr/lib/systemd/system" / unit)
    _copy(source / "systemd/pilotfish.sysusers.conf", root / "usr/lib/sysusers.d/pilotfish.conf")
    _copy(source / "systemd/pilotfish.tmpfiles.conf", root / "usr/lib/tmpfiles.d/pilotfish.conf")
    _copy(source / "systemd/pilotfish.slurm.yaml", root / "etc/pilotfish/pilotfish.yaml")
    share = root / "usr/share"
    for name in ("README.md", "SECURITY.md", "packaging/sbom.cdx.json"):
        _copy(source / name, share / "doc/pilotfish" / Path(name).name)
    _copy(source / "LICENSE", share / "doc/pilotfish/copyright")
    _compress(share / "doc/pilotfish/changelog.gz", (source / "CHANGELOG.md").read_bytes())
    _man_pages(source, share / "man/man1")
    generated = subprocess.run(
        [sys.executable, source / "packaging/completion.py"], check=True, capture_output=True, text=True
    )
    _write(share / "bash-completion/completions/pilotfish", generated.stdout)


def install_wheels(source: Path, wheel: Path, packages: Path) -> None:
    """Install pilotfish and all that it needs from the wheelhouse next to its wheel, and from nowhere else.

    Args:
        source: the checkout.
        wheel: of pilotfish.
        packages: the folder to install into.
    """
    with tempfile.TemporaryDirectory(prefix="pilotfish-wheels-") as name:
        (wheelhouse,) = wheel.parent.glob("pilotfish-*-offline-*.tar")
        subprocess.run(["tar", "-xf", wheelhouse, "-C", name, "--strip-components=1"], check=True)
        pip: list[str | Path] = [
            *(
                sys.executable,
                "-m",
                "pip",
                "install",
                "-qq",
                "--disable-pip-version-check",
                "--no-compile",
                "--no-deps",
            ),
            *("--no-index", "--find-links", name, "--target", packages, "--python-version", PYTHON),
            *("--only-binary", ":all:"),
        ]
        subprocess.run([*pip, "--require-hashes", "-r", source / "packaging/requirements.lock"], check=True)
        shutil.rmtree(packages / "bin")
        subprocess.run([*pip, wheel], check=True)


def add_kernels(environment: Path, folder: Path) -> None:
    """Compile the simulator for `PORTABLE` of simulate/kernels/object_cache.py, where it is not in the cache yet.

    Args:
        environment: of the package; its pilotfish compiles, under its Python.
        folder: for the compiled kernels, in a folder that is named after what they were compiled from.
    """
    if not Path(PROGRAM).exists():
        raise SystemExit(f"{PROGRAM}: missing (allowed: Python {PYTHON}, with which the simulator is compiled)")
    result = subprocess.run(
        [environment / "bin/python3", "-P", environment / "bin/pilotfish", "warm", "--json"],
        env=os.environ | COMPILER, check=True, stdout=subprocess.PIPE,
    )  # fmt: skip
    document = json.loads(result.stdout)
    for kernel in document["kernels"]:
        _copy(Path(kernel["file"]), folder / Path(document["directory"]).name / f"{kernel['kernel']}.o")


def build_deb(root: Path, source: Path, folder: Path, version: str, epoch: int, level: int = 1) -> Path:
    """Pack a root for Debian; return the file.

    Args:
        root: what is packed.
        source: the checkout.
        folder: to write into.
        version: of pilotfish.
        epoch: the time of every file, seconds since 1970.
        level: of the compression, 1 to 19.
    """
    control = root / "DEBIAN"
    control.mkdir()
    for script in ("postinst", "prerm", "postrm"):
        _copy(source / "packaging/deb" / script, control / script, 0o755)
    files = sorted(
        path for path in root.rglob("*") if path.is_file() and not path.is_symlink() and control not in path.parents
    )
    sums = (f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(root)}\n" for path in files)
    (control / "md5sums").write_text("".join(sums))
    (control / "conffiles").write_text("/etc/pilotfish/pilotfish.yaml\n")
    major, minor = PYTHON.split(".")
    architecture = _output("dpkg", "--print-architecture")
    size = sum(path.stat().st_size for path in files) // 1024
    (control / "control").write_text(CONTROL.format(
        version=version, architecture=architecture, size=size, python=PYTHON, next=f"{major}.{int(minor) + 1}",
        maintainer=_maintainer(),
    ))  # fmt: skip
    _settle(root, epoch)
    package = folder / f"pilotfish_{version}_{architecture}.deb"
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "-Zzstd", f"-z{level}", "--build", root, package],
        check=True, stdout=subprocess.DEVNULL, env=os.environ | {"SOURCE_DATE_EPOCH": str(epoch)},
    )  # fmt: skip
    return package


def build_rpm(root: Path, source: Path, folder: Path, version: str, epoch: int, level: int = 1) -> Path:
    """Pack a root for distributions with rpm; return the file. It needs the program rpmbuild.

    Args:
        root: what is packed.
        source: the checkout.
        folder: to write into.
        version: of pilotfish.
        epoch: the time of every file, seconds since 1970.
        level: of the compression, 1 to 19.
    """
    _settle(root, epoch)
    scripts = source / "packaging/rpm"
    spec = (scripts / "pilotfish.spec").read_text(encoding="utf-8")
    values = {"version": version, "maintainer": _maintainer(), "program": PROGRAM, "level": str(level)}
    values |= {name: (scripts / name).read_text(encoding="utf-8") for name in ("posttrans", "preun", "postun")}
    for name, value in values.items():
        spec = spec.replace(f"{{{name}}}", value)
    with tempfile.TemporaryDirectory(prefix="pilotfish-rpm-") as name:
        Path(name, "pilotfish.spec").write_text(spec, encoding="utf-8")
        settings = {
            "_topdir": name,
            "_rpmdir": f"{name}/out",
            "_rpmfilename": "pilotfish-%{VERSION}-%{RELEASE}.%{ARCH}.rpm",
        }
        words = [word for key, value in settings.items() for word in ("--define", f"{key} {value}")]
        result = subprocess.run(
            ["rpmbuild", "-bb", "--quiet", *words, f"{name}/pilotfish.spec"],
            env=os.environ | {"SOURCE_DATE_EPOCH": str(epoch), "PACKED_ROOT": str(root), "LC_ALL": "C.UTF-8"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if result.returncode:
            raise SystemExit(f"rpmbuild failed:\n{result.stdout}{result.stderr}")
        (package,) = Path(name, "out").iterdir()
        return Path(shutil.move(package, folder / package.name))


def _settle(root: Path, epoch: int) -> None:
    """Give everything below a root the modes of a package, and one time."""
    for path in (*root.rglob("*"), root):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        os.utime(path, (epoch, epoch), follow_symlinks=False)


def _maintainer() -> str:
    return os.environ.get("MAINTAINER", "its publisher <root@localhost>")


def _drop_unused(packages: Path) -> None:
    """Remove what no program needs, and what differs from one build to the next."""
    for name in ("bin", *UNUSED_PARTS):
        shutil.rmtree(packages / name, ignore_errors=True)
    for path in (*packages.glob("setuptools-*"), *packages.glob("distutils-precedence.pth")):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in sorted(packages.rglob("*"), reverse=True):
        room = path.relative_to(packages).parts[0]
        if room == "pilotfish":
            continue
        if path.is_dir() and path.name in UNUSED:
            shutil.rmtree(path)
        elif path.is_file() and (
            path.suffix in UNUSED_ENDINGS
            or (room.endswith(".dist-info") and path.name in ("RECORD", "direct_url.json", "REQUESTED"))
        ):
            path.unlink()


def _strip(packages: Path) -> None:
    """Remove from large libraries the names that only a debugger reads."""
    libraries = [path for name in STRIPPED for path in sorted((packages / name).rglob("*.so"))]
    subprocess.run(["strip", "--strip-unneeded", *libraries], check=True)


def _man_pages(source: Path, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        words: list[str | Path] = [sys.executable, "docs/generate.py", Path(name, "reference"), Path(name, "man")]
        subprocess.run(words, cwd=source, check=True, stdout=subprocess.DEVNULL)
        for page in sorted(Path(name, "man").rglob("*.1")):
            _compress(folder / f"{page.name}.gz", page.read_bytes())


def _copy(file: Path, place: Path, mode: int = 0o644) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, place)
    place.chmod(mode)


def _write(place: Path, text: str, mode: int = 0o644) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")
    place.chmod(mode)


def _compress(place: Path, content: bytes) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(gzip.compress(content, 9, mtime=0))


def _output(*words: str | Path) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
