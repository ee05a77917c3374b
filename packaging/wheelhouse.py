"""Make the wheelhouse of a release, for machines that reach no package index: `make release`.

Rule: the same wheel and lock give the same bytes. It has the wheel of pilotfish, every wheel that it needs, each with a
hash of the lock, and the lock. It needs the package index.

    python packaging/wheelhouse.py FOLDER [--source FOLDER]    FOLDER has the wheel, and gets an archive
"""

from __future__ import annotations

import argparse
import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

#: The Python and the processor for which the wheels are, as pip names them.
PYTHON, PROCESSOR = "3.11", "x86_64"
#: The C libraries that they run with: those of Debian 11, RHEL 9 and later.
PLATFORMS = tuple(f"manylinux_2_{minor}_{PROCESSOR}" for minor in (31, 28, 27, 24, 17, 12, 5))


def main(words: list[str]) -> int:
    """Write the archive into a folder, and its name to standard output."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="has one wheel of pilotfish")
    parser.add_argument("--source", type=Path, default=Path(), help="the checkout")
    options = parser.parse_args(words)
    folder, lock = options.folder.resolve(), options.source.resolve() / "packaging/requirements.lock"
    wheels = sorted(folder.glob("pilotfish-*.whl"))
    if len(wheels) != 1:
        raise SystemExit(f"{folder}: {len(wheels)} wheels of pilotfish (allowed: one; `make release` makes it)")
    epoch = int(subprocess.run(
        ["git", "-C", lock.parent, "log", "-1", "--format=%ct"], check=True, capture_output=True, text=True
    ).stdout)  # fmt: skip
    version = wheels[0].name.split("-")[1]
    title = f"pilotfish-{version}-offline-cp{PYTHON.replace('.', '')}-{PROCESSOR}"
    with tempfile.TemporaryDirectory(prefix="pilotfish-wheels-") as name:
        words_of_pip: list[str | Path] = [
            *(sys.executable, "-m", "pip", "download", "-qq", "--disable-pip-version-check", "--no-deps"),
            *("--python-version", PYTHON, "--only-binary", ":all:", "--require-hashes", "-r", lock, "-d", name),
            *(word for platform in PLATFORMS for word in ("--platform", platform)),
        ]
        subprocess.run(words_of_pip, check=True)
        for file in (wheels[0], lock):
            shutil.copyfile(file, Path(name, file.name))
        (folder / f"{title}.tar").write_bytes(packed(Path(name), title, epoch))
    print(folder / f"{title}.tar")
    return 0


def packed(folder: Path, title: str, epoch: int) -> bytes:
    """Return the files of a folder as a tar archive: in the order of names, with one time, one mode and no owners.

    Args:
        folder: what is packed; wheels are compressed already.
        title: of the folder in the archive.
        epoch: the time of every file, seconds since 1970.
    """
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(folder.iterdir()):
            about = tarfile.TarInfo(f"{title}/{path.name}")
            about.mtime, about.mode, about.size = epoch, 0o644, path.stat().st_size
            with path.open("rb") as file:
                archive.addfile(about, file)
    return content.getvalue()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
