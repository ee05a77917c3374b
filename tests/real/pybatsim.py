"""pybatsim 3.2.1, with the schedulers that come with it, in a virtual environment of its own.

Rule: made once per run. It pins a pyzmq that does not compile with the Pythons that we support, so it gets ours, and no
package but those that its schedulers import.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

import guardian
import pytest
from installed import PATIENCE_S, _copy, _environment, _packages, locked

PACKAGES = ("pybatsim==3.2.1", "docopt==0.6.2", "procset==1.0", "sortedcontainers==2.4.0")
#: What pip says where there is no package index.
UNREACHABLE = ("No matching distribution found", "Could not find a version", "Connection", "Network is unreachable")


@pytest.fixture(scope="session")
def pybatsim() -> str:
    """The program `pybatsim`; the first test that asks for it waits for a few seconds."""
    place = guardian.folder() / "pybatsim"
    with locked(guardian.folder() / "pybatsim.lock"):
        if not place.exists():
            _environment(guardian.folder(), place)
            why = _install(place)
            (place / "skipped").write_text(why) if why else (place / "ready").touch()
    if (place / "skipped").exists():
        pytest.skip(f"SKIPPED, no pybatsim from the package index: {(place / 'skipped').read_text()}")
    assert (place / "ready").exists(), "the installation failed: see the first test that asked for it"
    return str(place / "bin" / "pybatsim")


def _install(place: Path) -> str:
    """Install pybatsim; return why there is none, or ""."""
    _copy(metadata.distribution("pyzmq"), Path(sysconfig.get_path("purelib")), _packages(place))
    pip = [sys.executable, "-m", "pip", "--python", str(place / "bin" / "python"), "--retries", "1", "--timeout", "10"]
    done = subprocess.run(
        [*pip, "install", "-q", "--no-deps", *PACKAGES], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    if done.returncode == 0:
        return ""
    assert any(words in done.stderr for words in UNREACHABLE), done.stderr
    return done.stderr.strip().splitlines()[-1]
