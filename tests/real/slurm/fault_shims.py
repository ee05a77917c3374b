"""Commands of Slurm's that go wrong for the daemon which calls them, and clocks that were stepped.

Rule: what a command does is read from a file when it starts; without the file it is the real command, untouched. The
commands that change a job (`scontrol update JobId=`) or read jobs (`squeue`) can go wrong:
    slow     it is done three seconds later
    hang     nothing is done, and nothing is said
    after    it is done, and then hangs: its caller gives up something that was done
    late     it hangs, and is done eight seconds later all the same
    fails    it is done, and says that it failed
    lies     nothing is done, and it says that all is well; `squeue` shows an empty queue
    cut      it shows half of its answer
Once each, at an exact moment of a placement (the daemon reads the job again, holds it back if it may begin, pins it):
    kill-check   the caller dies while it reads the job again
    kill-held    it dies with the job held back, or let go
    kill-before  it dies with the pin recorded and nothing written
    kill-after   it dies with the write done
    kill-late    it dies, and two seconds later the write is done all the same
    kill-drain   the node is drained, the write is done, it dies: a pin to a node that takes nothing
Two modes wait in a placement until a user, or Slurm, has changed the job; the daemon must notice, or have prevented it:
    stale        the read that comes after the plan (`squeue`) shows what was before the change; the next one is true
    begins       the pin of a job in `caught` (`scontrol`) is done when the job has begun, or after some seconds
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from real_world import CLOCK

FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
READS = ("slow", "hang", "fails", "lies", "cut", "kill-check")
WRITES = (
    "slow",
    "hang",
    "after",
    "late",
    "fails",
    "lies",
    "kill-held",
    "kill-before",
    "kill-after",
    "kill-late",
    "kill-drain",
)
SHIM = """#!/bin/sh
clock= mode=
{{ read -r clock <{folder}/clock; read -r mode <{folder}/{name}; }} 2>/dev/null
case "$clock" in ""|+0) ;; *) export LD_PRELOAD={faketime} FAKETIME_TIMESTAMP_FILE={folder}/clock ;; esac
case "$mode:$*" in
    stale:*--states=pending*) mode= ;;
    stale:*--jobs=*) mv {folder}/planning {folder}/sprung 2>/dev/null && rm -f {folder}/{name} || mode= ;;
    stale:*) touch {folder}/planning; mode= ;;
    begins:*" ReqNodeList=n"*) job=${{2#JobId=}}; grep -qx "$job" {folder}/caught || mode= ;;
    begins:*) mode= ;;
    kill-held:*ReqNodeList=*) mode= ;;
    kill-check:*--jobs=*|kill-held:*StartTime=*|kill-[abld]*:*"update JobId="*ReqNodeList=*) mv {folder}/{name} {folder}/sprung 2>/dev/null || mode= ;;
    kill-*) mode= ;;
    *:*{pattern}*) ;;
    *) mode= ;;
esac
case "$*" in "update JobId="*) echo "$(date +%s.%N) $PPID ${{mode:-real}} $*" >>{folder}/sent ;; esac
case "$mode" in
    "") exec {real} "$@" ;;
    slow) sleep 3; exec {real} "$@" ;;
    hang) exec sleep 60 ;;
    after) {real} "$@" >/dev/null 2>&1; exec sleep 60 ;;
    late) (sleep 8; {real} "$@") >/dev/null 2>&1 & exec sleep 60 ;;
    fails) {real} "$@"; echo "{name}: error: something else" >&2; exit 1 ;;
    lies) exit 0 ;;
    cut) {real} "$@" | head -c 700 ;;
    stale)
        {real} "$@" >{folder}/stale.$$
        echo "$*" >{folder}/reading
        for _ in $(seq 30); do [ -e {folder}/go ] && break; sleep 0.1; done
        rm -f {folder}/reading {folder}/go
        cat {folder}/stale.$$; rm {folder}/stale.$$ ;;
    begins)
        end=$(($(date +%s%N) / 1000000 + 3700))
        while [ $(($(date +%s%N) / 1000000)) -lt $end ] && {squeue} -h -j "$job" -t pending -o %A | grep -q .; do
            sleep 0.1
        done
        exec {real} "$@" ;;
    kill-check|kill-before) kill -9 $PPID ;;
    kill-after|kill-held) {real} "$@"; kill -9 $PPID ;;
    kill-late) kill -9 $PPID; sleep 2; exec {real} "$@" ;;
    kill-drain)
        node=$(echo "$*" | sed -n 's/.*ReqNodeList=\\([^ ,[]*\\).*/\\1/p')
        [ -z "$node" ] || {real} update "NodeName=$node" State=DRAIN Reason=trap
        {real} "$@"
        kill -9 $PPID ;;
esac
"""
#: Daemons and reapers that are broken on purpose, to see that it is found.
BREAKS = {
    "pins": """
from pilotfish.adapters.slurm.handed_over.job_update import OurChanges
OurChanges.recognise = lambda self, job, now: job
""",
    "reads": """
from pilotfish.adapters.slurm.handed_over.job_writer import JobWriter
JobWriter.read_again = lambda self, job: job
""",
    "holds": """
from pilotfish.adapters.slurm.handed_over import job_writer
job_writer.may_begin = lambda job, now: False
""",
    "comments": """
from pilotfish.adapters.slurm.handed_over import job_update
from pilotfish.adapters.slurm.handed_over.job_writer import JobWriter
job_update.ALLOWED |= {"Comment"}
change = JobWriter.change
JobWriter.change = lambda self, job, fields: change(self, job, {**fields, "Comment": f"{job.comment} placed"})
""",
}


class Shims:
    """The commands and the clock of one daemon, in a folder that its user may read and write.

    Args:
        folder: A new folder.
        user: The user of the daemon.
        broken: One of BREAKS; "": nothing.
    """

    def __init__(self, folder: Path, user: str, broken: str = "") -> None:
        self._folder, breaks = folder, BREAKS.get(broken, "")
        for name in ("bin", "code", "plain"):
            (folder / name).mkdir(parents=True)
        for name, pattern in (("squeue", ""), ("scontrol", "update JobId="), ("sinfo", "never"), ("sdiag", "never")):
            shim = folder / "bin" / name
            words = {"name": name, "pattern": f'"{pattern}"', "real": shutil.which(name), "faketime": FAKETIME}
            words["squeue"] = shutil.which("squeue")
            shim.write_text(SHIM.format(folder=folder, **words))
            shim.chmod(0o755)
        (folder / "plain" / "sitecustomize.py").write_text(breaks)
        (folder / "code" / "sitecustomize.py").write_text(CLOCK.format(clock=str(folder / "clock")) + breaks)
        (folder / "sent").touch()
        for each in (folder, *folder.rglob("*")):
            shutil.chown(each, user)

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to be under them."""
        return {"PYTHONPATH": str(self._folder / "code"), "PATH": f"{self._folder / 'bin'}:{os.environ['PATH']}"}

    @property
    def without(self) -> dict[str, str]:
        """What a process needs that is to see the real commands and the real clock."""
        return {"PYTHONPATH": str(self._folder / "plain"), "PATH": os.environ["PATH"]}

    def set(self, name: str, mode: str) -> None:
        """Let a command (`squeue`, `scontrol`) go wrong in this way; "": let it be itself. `clock`: a step in seconds.

        Half a file would be read as something else, so it is replaced.
        """
        file = self._folder / name
        if mode:
            new = file.with_suffix(".new")
            new.write_text(f"{mode}\n")
            new.replace(file)
        else:
            file.unlink(missing_ok=True)

    def read(self, name: str) -> str:
        """What a shim, or a fault, left under a name; "": nothing."""
        try:
            return (self._folder / name).read_text()
        except FileNotFoundError:
            return ""

    def is_set(self, name: str) -> bool:
        """Whether a command still has something to do wrong."""
        return (self._folder / name).exists()
