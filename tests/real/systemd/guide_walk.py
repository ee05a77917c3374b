"""Walk docs/guides/slurm.md word for word, from the wheel, on a real Slurm under a real systemd.

    python tests/real/systemd/guide_walk.py [WHEELS]

Each command of the guide's five steps, the brake, the audit and the undo is typed in turn, as root or as a user, in a
machine of its own (see machine.py). What is not the guide's: the program comes from the wheel, packages from a folder of
wheels, and a week lasts some seconds. Prints each command with its output. WHEELS keeps what pip downloads.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
if __name__ == "__main__":
    sys.path[:0] = [str(HERE.parents[2]), str(HERE.parents[1]), str(HERE.parent), str(HERE)]

import guardian
from machine import ROOT, Machine

GUIDE = (ROOT / "docs" / "guides" / "slurm.md").read_text(encoding="utf-8")
SLURM, WHEELS, USER, HOME = "/srv/slurm", "/srv/wheels", "games", "/srv/games"
SOURCE = "/opt/pilotfish/lib/python3.11/site-packages/pilotfish"
PATIENCE_S = 900.0
#: pip has the folder of wheels alone.
PIP = f"export PIP_CONFIG_FILE=/dev/null PIP_NO_INDEX=1 PIP_FIND_LINKS={WHEELS}"
#: Words of the guide, and what they stand for here.
HERE_IS = {
    "packaging/requirements.lock": f"{WHEELS}/requirements.lock",
    "--no-build-isolation .": f"{WHEELS}/pilotfish-*.whl",
    "USER=alice": f"USER={USER}",
}
#: Slurm resolves no name on a machine that has no address but its loopback.
SETTING = """set -e
ip address add 192.0.2.1/32 dev lo
echo "127.0.0.1 $(uname -n)" >> /etc/hosts
install -d -o {user} {home}
printf '#!/bin/sh\\nsleep 0.5\\n' > {home}/job.sh
LD_LIBRARY_PATH= /usr/bin/python3 /srv/checkout/tests/real/systemd/slurm_inside.py {slurm} > /srv/setting.log 2>&1 || {{ cat /srv/setting.log; exit 1; }}"""


@dataclass(frozen=True)
class Typed:
    """A command, and what became of it."""

    command: str
    code: int
    output: str
    seconds: float


def commands(title: str) -> Iterator[tuple[str, str]]:
    """Yield prompt and command of each line that a section of the guide shows, headings below it included."""
    (text,) = re.findall(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", GUIDE, re.M | re.S)
    yield from typed_lines(text)


def typed_lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield prompt and command of each line of a text's blocks."""
    for block in re.findall(r"^```(?:console|text)\n(.*?)^```$", text, re.M | re.S):
        for line in re.sub(r" \\\n>\s*", " ", block).splitlines():
            if line.startswith(("# ", "$ ")):
                yield line[0], line[2:]


class Walk:
    """An administrator who follows the guide on a machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.typed, self.jobs = machine, list[Typed](), list[str]()
        self.folder = "/"

    def type(self, prompt: str, command: str) -> Typed:
        """Type a command, as root (`#`) or as a user (`$`)."""
        for words, ours in HERE_IS.items():
            command = command.replace(words, ours)
        command = re.sub(r"\b4711\b", self.jobs[-1] if self.jobs else "4711", command)
        as_user, folder = (["runuser", "-u", USER, "--"], HOME) if prompt == "$" else ([], self.folder)
        begin = time.monotonic()
        inside = f"{PIP}; cd {folder} 2>/dev/null || cd /; {command}"
        result = self.machine.process(*as_user, "sh", "-c", inside, patience_s=PATIENCE_S)
        output = f"{result.stdout}{result.stderr}".rstrip()
        one = Typed(command, result.returncode, output, time.monotonic() - begin)
        if number := re.search(r"Submitted batch job (\d+)", output):
            self.jobs.append(number[1])
        self.typed.append(one)
        print(f"{prompt} {command}    [{one.code}, {one.seconds:.1f} s]\n{output}".rstrip(), flush=True)
        return one

    def step(self, title: str) -> list[Typed]:
        """Type all commands of a section."""
        print(f"\n== {title}", flush=True)
        return [self.type(*line) for line in commands(title)]

    def work(self, number: int, words: str = "") -> None:
        """Let users submit jobs, and wait until all have ended."""
        for place in range(number):
            self.type("$", f"sbatch -p batch -J w{place % 3} -n{1 + place % 4} -t{1 + place % 5} {words} job.sh")
        until = time.monotonic() + PATIENCE_S
        while self.machine.run("squeue", "--noheader") and time.monotonic() < until:
            time.sleep(0.5)


def prepare(folder: Path) -> None:
    """Build the wheel, and have what it needs, in a folder."""
    pip, lock = (
        [sys.executable, "-m", "pip", "download", "-q", "--require-hashes"],
        ROOT / "packaging/requirements.lock",
    )
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([*pip, "-r", str(lock), "-d", str(folder)], check=True, capture_output=True)
    for old in folder.glob("pilotfish*"):
        old.unlink()
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True, cwd="/")
    (sdist,) = folder.glob("pilotfish-*.tar.gz")
    with tarfile.open(sdist) as archive:
        member = next(one for one in archive if one.name.endswith("/packaging/requirements.lock"))
        content = archive.extractfile(member)
        assert content is not None
        (folder / "requirements.lock").write_bytes(content.read())


def walk(machine: Machine) -> Walk:
    """Follow the guide from its first to its last command."""
    setting = SETTING.format(user=USER, home=HOME, slurm=SLURM)
    result = machine.process("sh", "-c", setting, patience_s=PATIENCE_S)
    assert result.returncode == 0, f"{result.stdout}{result.stderr}"
    one = Walk(machine)
    for line in typed_lines(GUIDE.partition("\n## ")[0]):
        assert not one.type(*line).code, "pilotfish is installed"
    one.folder = SOURCE
    one.step("1. Look")
    one.step("2. Shadow")
    one.work(6)
    one.step("3. Card")
    one.step("4. Canary")
    one.work(6, "--begin=now+60 --comment=pilotfish:hold=60")
    one.type("#", "pilotfish score --config /etc/pilotfish/pilotfish.yaml --canary")
    one.step("5. Live")
    one.work(3)
    print("\n== The brake", flush=True)
    one.type("#", 'pilotfish pause --why "new switches"')
    one.type("#", "pilotfish pause --partition batch --for 2h")
    one.type("#", "pilotfish status")
    one.type("#", "pilotfish resume")
    one.type("#", "pilotfish log")
    one.step("Undo")
    return one


def main() -> None:
    """Walk, and say what did not end with 0."""
    guardian.start()
    wheels = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else Path(tempfile.mkdtemp(dir=guardian.folder()))
    prepare(wheels)
    begin = time.monotonic()
    machine = Machine(
        Path(tempfile.mkdtemp(dir=guardian.folder())), bare=True, seen={ROOT: "/srv/checkout", wheels: WHEELS}
    )
    try:
        typed = walk(machine).typed
    finally:
        machine.down()
    failed = [one for one in typed if one.code]
    print(f"\n{len(typed)} commands in {time.monotonic() - begin:.0f} s, {len(failed)} failed")
    for one in failed:
        print(f"[{one.code}] {one.command}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
