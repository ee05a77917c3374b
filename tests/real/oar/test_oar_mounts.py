"""A process goes back to the machine's folders, also where threads that it started meanwhile still run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import oar_mounts
import pytest

SCRIPT = """
import os, sys, threading
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import oar_mounts

mounts = lambda: os.readlink("/proc/thread-self/ns/mnt")
before, end = mounts(), threading.Event()
with oar_mounts.copied_folders(Path("copies")):
    within, thread = mounts(), threading.Thread(target=end.wait, daemon=True)
    thread.start()
after = mounts()
end.set()
print(within != before == after)
"""


@pytest.mark.skipif(not oar_mounts.possible(), reason="no mounts of one's own, or no OAR, here")
def test_it_returns_while_a_thread_shares_its_folder(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", SCRIPT, str(Path(oar_mounts.__file__).parent)]
    result = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (result.stdout, result.stderr) == ("True\n", "")
