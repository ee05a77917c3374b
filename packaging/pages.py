"""Make the documentation as a site with search, and the manual pages, from a source distribution: `make release`.

Rule: the same source distribution gives the same bytes. A page loads nothing from another host. No network is needed.

    python packaging/pages.py FOLDER    FOLDER has the source distribution, and gets two archives
"""

from __future__ import annotations

import argparse
import gzip
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path


def main(words: list[str]) -> int:
    """Write both archives into a folder, and their names to standard output."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="has one source distribution of pilotfish")
    folder = parser.parse_args(words).folder.resolve()
    names = ("-docs.tar.gz", "-man.tar.gz")
    sources = [path for path in sorted(folder.glob("pilotfish-*.tar.gz")) if not path.name.endswith(names)]
    if len(sources) != 1:
        raise SystemExit(f"{folder}: {len(sources)} source distributions (allowed: one; `make release` makes it)")
    with tempfile.TemporaryDirectory(prefix="pilotfish-pages-") as name, tarfile.open(sources[0]) as packed:
        subprocess.run(["tar", "-xf", sources[0], "-C", name], check=True)
        release = sources[0].name.removesuffix(".tar.gz")
        epoch = int(packed.getmember(f"{release}/pyproject.toml").mtime)
        os.umask(0o022)
        site, manual = build(Path(name), Path(name, release), epoch)
        for content, ending in ((site, names[0]), (manual, names[1])):
            archive = folder / f"{release}{ending}"
            archive.write_bytes(pack(content, archive.name.removesuffix(".tar.gz"), epoch))
            print(archive)
    return 0


def build(folder: Path, source: Path, epoch: int) -> tuple[Path, Path]:
    """Return the folders of the site and of the manual pages.

    Args:
        folder: for what is made.
        source: of pilotfish; the pages say what this one can, not an installed one.
        epoch: the time that the pages name, seconds since 1970.
    """
    (folder / "path").mkdir()
    (folder / "path/pilotfish").symlink_to(source)
    fixed = {"PYTHONPATH": str(folder / "path"), "PYTHONHASHSEED": "0", "SOURCE_DATE_EPOCH": str(epoch), "TZ": "UTC"}
    environment = {**os.environ, **fixed, "LC_ALL": "C.UTF-8", "COLUMNS": "80"}
    site, manual = folder / "site", folder / "man"
    sphinx = ["-m", "sphinx", "-q", "-E", "-W", "-b", "html", "-d", str(folder / "doctrees"), "docs", str(site)]
    for argv in (["docs/generate.py", "docs/reference/generated", str(manual)], sphinx):
        result = subprocess.run(
            [sys.executable, *argv], cwd=source, env=environment, capture_output=True, text=True, check=False
        )
        if result.returncode:
            raise SystemExit(f"the pages cannot be made:\n{result.stdout}{result.stderr}")
    (site / ".buildinfo").unlink(missing_ok=True)
    return site, manual


def pack(folder: Path, name: str, epoch: int) -> bytes:
    """Return a folder as a tar archive that gzip has compressed: in the order of names, with one time and no owners.

    Args:
        folder: what is packed.
        name: of the folder in the archive.
        epoch: the time of every file, seconds since 1970.
    """
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(folder.rglob("*")):
            about = tarfile.TarInfo(f"{name}/{path.relative_to(folder).as_posix()}")
            about.mtime, about.mode = epoch, 0o755 if path.is_dir() else 0o644
            about.type = tarfile.DIRTYPE if path.is_dir() else tarfile.REGTYPE
            data = b"" if path.is_dir() else path.read_bytes()
            about.size = len(data)
            archive.addfile(about, io.BytesIO(data))
    return gzip.compress(content.getvalue(), 9, mtime=epoch)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
