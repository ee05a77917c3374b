"""Starts a real Slurm inside a systemd of its own, with its configuration where Debian has it, and leaves it running.

python3 slurm_inside.py FOLDER
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent), str(HERE.parent / "slurm")]

from slurm_site import SlurmSite

CONFIG = Path("/etc/slurm")
#: The partition of the guide.
BATCH = "PartitionName=batch Nodes=ALL MaxTime=1-0 DefaultTime=10 State=UP OverSubscribe=NO\n"

if __name__ == "__main__":
    site = SlurmSite(Path(sys.argv[1]), nodes=2, extra=BATCH)
    shutil.rmtree(CONFIG, ignore_errors=True)
    CONFIG.symlink_to(site.config.parent)
    site.up()
