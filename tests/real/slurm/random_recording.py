"""Record hundreds of random jobs on a real Slurm with a fast clock, and print how far the twin is from it.

    python tests/real/slurm/random_recording.py FOLDER --jobs 300 --seed 7 --runs 3

The folder can be given to `SLURM_RECORDINGS`, see `tests/support/slurm_recordings.py`: a case per seed, with as many
runs of the same submissions. Needs root, Slurm and faketime. A run of 300 jobs takes about eight minutes.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2]), *(str(HERE.parents[number]) for number in (1, 0)), str(HERE)]

import fast_slurm
import guardian
from fast_slurm import FastSlurm
from rule_run import SPEED
from rule_sites import PRIORITIES, USERS

from pilotfish.adapters.slurm.site_commands import slurm_time
from pilotfish.benchmarks import slurm_truth
from pilotfish.formats.site.site_file_list import SITE_FILES

NODES, CORES = 16, 8
RULES = f"""{PRIORITIES}
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=1000
Licenses=tool:3
SchedulerParameters=bf_continue,max_sched_time=40
"""
PARTS = (
    "PartitionName=batch Nodes=n[1-12] MaxTime=240 DefaultTime=30 PriorityTier=2",
    "PartitionName=wide Nodes=n[5-16] MaxTime=600 DefaultTime=60",
)
PEOPLE = ("games", "news", "mail", "lp", "man", "list")
ACCOUNTS = (
    *USERS,
    "add account far parent=root Fairshare=2",
    *(f"add user {name} account=far" for name in PEOPLE[2:]),
    "add qos high Priority=100 MaxTRESPerUser=cpu=16",
    f"modify user where name={','.join(PEOPLE)} set qos+=high",
)
#: Fast seconds between two samples of the queue.
SAMPLE_S = 300.0
#: Fast seconds without a running job after which those that wait are given up; a requeued job waits for 121 s.
PATIENCE_S = 200.0
SAMPLES = (
    ("squeue JobID|Name|User|State|Priority|Reason|ExpectedStart|Nodes", "squeue -h -o %i|%j|%u|%t|%Q|%r|%S|%N"),
    ("sshare", "sshare -a -l -P"),
)


def submissions(seed: int, number: int) -> Iterator[tuple[float, str, str]]:
    """Yield (seconds after the first, name, arguments of sbatch) of random jobs, about as many as the nodes can take."""
    draw, moment, names = random.Random(seed), 0.0, list[str]()
    for index in range(number):
        name, run = f"j{index:04d}", max(20, int(draw.expovariate(1 / 300)))
        cpus = draw.choice((1, 1, 2, 4, 8, 16, 24, 48))
        words = [f"-n{cpus}", f"-t{max(1, round(run * draw.choice((1.2, 2, 4)) / 60))}", f"--uid={draw.choice(PEOPLE)}"]
        words += [f"-p {draw.choice(('batch', 'batch', 'wide', 'batch,wide'))}"]
        special = {
            f"-N{-(-cpus // CORES)} --exclusive": 0.1, "--qos=high": 0.15, "--mem-per-cpu=3000": 0.1, "-L tool": 0.05,
            f"--nice={draw.randrange(500)}": 0.1, "--begin=now+300": 0.03, "--array=0-3%2": 0.05,
        }  # fmt: skip
        words += [option for option, share in special.items() if draw.random() < share]
        if names and draw.random() < 0.08:
            words.append(f"-d afterany:${draw.choice(names[-20:])}")
        yield moment, name, f"{' '.join(words)} --wrap={shlex.quote(f'sleep {run}')}"
        names.append(name)
        moment += draw.expovariate(1 / 28)


def record(folder: Path, name: str, seed: int, number: int) -> None:
    """Record a run into `FOLDER/CASE/rN`, and the site next to it."""
    shapes = [f"CPUs={CORES} Sockets=2 CoresPerSocket=4 RealMemory=16000"] * NODES
    with tempfile.TemporaryDirectory(prefix="random-", dir=guardian.folder(), ignore_cleanup_errors=True) as place:
        slurm = FastSlurm(Path(place) / "slurm", RULES, PARTS, shapes, ACCOUNTS, SPEED)
        try:
            slurm.up()
            _play(slurm, folder / name, list(submissions(seed, number)))
        finally:
            slurm.down()


def _play(slurm: FastSlurm, run: Path, jobs: Sequence[tuple[float, str, str]]) -> None:
    run.mkdir(parents=True)
    begin, ids, samples, sampled = float(int(slurm.now())), dict[str, str](), list[str](), 0.0

    def pause(until: float) -> None:
        nonlocal sampled
        while (now := slurm.now()) < until or sampled <= now - SAMPLE_S:
            if sampled <= now - SAMPLE_S:
                sampled = now
                samples.append(f"# t={now - begin:.0f}")
                samples.extend(f"## {title}\n{slurm.run(*command.split())}" for title, command in SAMPLES)
            time.sleep(max(0.0, min(until - now, SAMPLE_S) / SPEED))

    for moment, name, words in jobs:
        pause(begin + moment)
        lines = [f"{other}={number}" for other, number in ids.items()]
        script = "\n".join([*lines, f"sbatch --parsable -J {name} -o /dev/null -D /tmp {words}"])
        ids[name] = slurm.run("sh", "-c", script)
    busy_at = slurm.now()
    while slurm.run("squeue", "--noheader") and slurm.now() < busy_at + PATIENCE_S:
        busy_at = slurm.now() if slurm.run("squeue", "--noheader", "--states=RUNNING,COMPLETING") else busy_at
        pause(slurm.now() + 20)
    slurm.run("scancel", "--state=PENDING")  # a limit, or memory that no node has, holds them for ever
    time.sleep(2.0)  # slurmdbd hears of the last ends a little later
    _write(run, "samples.txt.gz", "\n".join(samples))
    for name, command in (
        ("sacct.psv.gz", SITE_FILES["sacct.psv"].argv(slurm_time(begin), slurm_time(slurm.now() + 1))),
        ("scontrol_config.txt.gz", SITE_FILES["scontrol_config.txt"].argv()),
        ("../assoc.psv", SITE_FILES["assoc.psv"].argv()),
        ("../qos.psv", SITE_FILES["qos.psv"].argv()),
    ):
        _write(run, name, slurm.run(*command))
    slurm.run("sacctmgr", "-iQ", "dump", "pilot", f"file={slurm.shared() / 'dump.cfg'}")
    _write(run, "../sacctmgr_dump.cfg", (slurm.shared() / "dump.cfg").read_text())
    _write(run, "../slurm.conf", slurm.config.read_text())
    about = {"t0": begin, "speed": SPEED, "slurmctld_started": slurm.controller_started() - begin}
    _write(run, "run.json", json.dumps(about))


def _write(run: Path, name: str, text: str) -> None:
    data = text.encode() + b"\n"
    (run / name).resolve().write_bytes(gzip.compress(data) if name.endswith(".gz") else data)


def main() -> None:
    """Record, and print the table of `benchmarks slurm_truth`."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="is made")
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=1, help="of the same submissions")
    options = parser.parse_args()
    if why := fast_slurm.missing():
        sys.exit(f"no real Slurm with a fast clock: {why}")
    guardian.start()
    for number in range(1, options.runs + 1):
        record(options.folder.resolve(), f"seed{options.seed}/r{number}", options.seed, options.jobs)
        print(f"recorded run {number} of {options.runs}", flush=True)
    os.environ["SLURM_RECORDINGS"] = str(options.folder.resolve())
    slurm_truth.measure(quick=False)


if __name__ == "__main__":
    main()
