"""Commands of Slurm's that kill the daemon which calls them, at an exact moment of a placement.

Rule: a trap is sprung once, and only by the process that it was set for; all else reaches the real command untouched.
The daemon reads the job again, journals the intent, holds back a job that may begin, reads it again, pins it (each one
`scontrol update`), and journals the outcome:
    check    it dies while it reads the job again: no intent yet
    held     it dies with the job held back, and not pinned
    before   it dies with the intent journalled and the job not pinned
    after    it dies with the write done and no outcome journalled
    late     it dies, and two seconds later the write is done all the same, whoever serves by then
    drain    the node is drained, the write is done, it dies: a pin to a node that takes nothing
"""

from __future__ import annotations

import shutil
from pathlib import Path

MOMENTS = ("check", "held", "before", "after", "late", "drain")
SHIM = """#!/bin/sh
read -r moment daemon 2>/dev/null <{trap}
case "$daemon:$moment:$*" in
    "$PPID:"{pattern}) mv {trap} {sprung} && echo "$*" >>{sprung} || exec {real} "$@" ;;
    *) exec {real} "$@" ;;
esac
{act}"""
READ = """kill -9 "$daemon"
"""
WRITE = """case $moment in
    held) {real} "$@"; kill -9 "$daemon" ;;
    before) kill -9 "$daemon" ;;
    after) {real} "$@"; kill -9 "$daemon" ;;
    late) kill -9 "$daemon"; sleep 2; exec {real} "$@" ;;
    drain)
        node=$(echo "$*" | sed 's/.*ReqNodeList=\\([^ ]*\\).*/\\1/')
        {real} update "NodeName=$node" State=DRAIN Reason=trap
        {real} "$@"
        kill -9 "$daemon" ;;
esac
"""


class Traps:
    """A folder with the commands, for the front of the daemon's PATH: `path`."""

    def __init__(self, folder: Path) -> None:
        self.path, self._trap, self._sprung = folder / "bin", folder / "trap", folder / "sprung"
        self.path.mkdir()
        for name, pattern, act in (
            ("squeue", 'check:*"--jobs="*', READ),
            ("scontrol", '[!ch]*:"update JobId="*ReqNodeList=*|"$PPID":held:"update JobId="*StartTime=uts*', WRITE),
        ):
            real, shim = shutil.which(name), self.path / name
            act = act.format(real=real)
            shim.write_text(SHIM.format(trap=self._trap, sprung=self._sprung, pattern=pattern, real=real, act=act))
            shim.chmod(0o755)

    def set(self, moment: str, daemon: int) -> None:
        """Let the daemon of this process id die at that moment of its next placement."""
        assert moment in MOMENTS
        self._sprung.unlink(missing_ok=True)
        self._trap.write_text(f"{moment} {daemon}\n")

    def victim(self) -> int:
        """The job that the daemon was placing when it died, 0 if the trap was not sprung."""
        words = self._sprung.read_text().split() if self._sprung.exists() else []
        found = [word.partition("=")[2] for word in words if word.startswith(("JobId=", "--jobs="))]
        return int(found[0].split(",")[0]) if found else 0

    def node(self) -> str:
        """The node to which it was about to pin, or pinned, the job."""
        words = self._sprung.read_text().split()
        return next((word.partition("=")[2] for word in words if word.startswith("ReqNodeList=")), "")
