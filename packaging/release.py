"""Make a release of the commit that is checked out: `make release`.

Rule: the same commit gives the same bytes, on any day, in any folder, under any umask. Nothing is built from files that
are not committed. No network is needed.

    python packaging/release.py FOLDER [--source FOLDER]
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path


def main(words: list[str]) -> int:
    """Write the files of a release into a folder, and their names to standard output."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="to write into; what it has is removed")
    parser.add_argument("--source", type=Path, default=Path(), help="the checkout")
    options = parser.parse_args(words)
    source, folder = options.source.resolve(), options.folder.resolve()
    if changed := _git(source, "status", "--porcelain"):
        print(f"not committed, so not part of a release: {changed.splitlines()[0].strip()}", file=sys.stderr)
        return 1
    commit, epoch = _git(source, "rev-parse", "HEAD"), int(_git(source, "log", "-1", "--format=%ct"))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="pilotfish-release-") as name:
        tree = Path(name, "tree")
        tree.mkdir()
        archive = subprocess.run(["git", "-C", source, "archive", "HEAD"], check=True, stdout=subprocess.PIPE).stdout
        subprocess.run(["tar", "-x", "-C", tree], input=archive, check=True)
        (tree / runpy.run_path(str(tree / "built_from.py"))["COMMIT_FILE"]).write_text(f"{commit}\n")
        version = runpy.run_path(str(tree / "__init__.py"))["__version__"]
        notes = release_notes((tree / "CHANGELOG.md").read_text(encoding="utf-8"), version)
        sdist = _build(tree, "--sdist", folder, epoch)
        repack(sdist, epoch)
        subprocess.run(["tar", "-xf", sdist, "-C", name], check=True)
        _build(Path(name, sdist.name.removesuffix(".tar.gz")), "--wheel", folder, epoch)
        (folder / "NOTES.md").write_text(notes, encoding="utf-8")
        bill = json.loads((tree / "packaging/sbom.cdx.json").read_text(encoding="utf-8"))
        (folder / f"pilotfish-{version}.cdx.json").write_text(bill_of_release(bill, version, commit), encoding="utf-8")
        shutil.copyfile(tree / "packaging/requirements.lock", folder / "requirements.lock")
    names = sorted(path.name for path in folder.iterdir())
    sums = [f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    (folder / "SHA256SUMS").write_text("".join(sums), encoding="ascii")
    print(*(str(folder / name) for name in (*names, "SHA256SUMS")), sep="\n")
    return 0


def release_notes(changelog: str, version: str) -> str:
    """Return what a changelog says of a version, its heading included. Raises SystemExit if it says nothing.

    Args:
        changelog: as Keep a Changelog has it.
        version: as in its heading.
    """
    sections = re.split(r"(?m)^(?=## )", changelog)
    text = next((section for section in sections if section.startswith(f"## [{version}]")), "")
    if not text.partition("\n")[2].strip():
        raise SystemExit(f"CHANGELOG.md: it says nothing of {version} (allowed: a section `## [{version}]`)")
    return text.strip() + "\n"


def bill_of_release(bill: dict[str, dict[str, dict[str, object]]], version: str, commit: str) -> str:
    """Return the bill of materials (CycloneDX) of what is released.

    Args:
        bill: that of the dependencies.
        version: of the release.
        commit: that it is built from.
    """
    component = bill["metadata"]["component"]
    component |= {"version": version, "properties": [{"name": "commit", "value": commit}]}
    return json.dumps(bill, indent=1, sort_keys=True) + "\n"


def repack(archive: Path, epoch: int) -> None:
    """Write a source distribution again, in the order of its names, with one time and no owners.

    Args:
        archive: a tar archive that gzip has compressed.
        epoch: the time of every file, seconds since 1970.
    """
    with tarfile.open(archive) as packed:
        members = [(member, packed.extractfile(member)) for member in sorted(packed, key=lambda member: member.name)]
        content = io.BytesIO()
        with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as plain:
            for member, file in members:
                is_program = member.isdir() or member.mode & 0o100
                member.mtime, member.mode = epoch, 0o755 if is_program else 0o644
                member.uid, member.gid, member.uname, member.gname, member.pax_headers = 0, 0, "", "", {}
                plain.addfile(member, file)
    archive.write_bytes(gzip.compress(content.getvalue(), 9, mtime=epoch))


def _build(tree: Path, kind: str, folder: Path, epoch: int) -> Path:
    """Build a distribution, and return its file."""
    before = set(folder.iterdir())
    argv = [sys.executable, "-m", "build", "--no-isolation", kind, "--outdir", str(folder), str(tree)]
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(epoch), "PYTHONHASHSEED": "0"}
    build = subprocess.run(argv, env=environment, umask=0o022, capture_output=True, text=True, check=False)
    if build.returncode:
        raise SystemExit(f"the build failed:\n{build.stdout}{build.stderr}")
    (built,) = set(folder.iterdir()) - before
    return built


def _git(source: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", source, *words], check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
