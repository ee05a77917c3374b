"""The demo: a folder with a workflow of small real programs, ready to run on this machine.

Rule: files that a user changed are not overwritten; a file is ours while its hash is the one that we recorded. The
folder must be trusted, because its programs are run (see `trust`).
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from ..formats.documents.atomic_write import write_whole
from ..formats.documents.quantities import format_size
from ..formats.hostlist import local_node_names
from ..machine_share import usable_cpus, usable_memory
from ..simulate.errors import ConfigError, PilotfishError
from ..trust import make_folder

MANIFEST = ".pilotfish-demo.json"
FILES = ("work.py", "cluster.yaml", "workflow.yaml", "measure.sh")
CALIBRATION_S = 0.3
STREAM_S = 1.0
LONGEST_SHEBANG = 120

#: Profile -> its program; {gigabytes} is about a second of streaming here.
PROGRAMS = {
    "demo-transfer": "sleep 0.8",
    "demo-stream": "stream 64 {gigabytes}",
    "demo-long": "cpu 1.2",
    "demo-short": "cpu 0.5",
    "demo-checks": "duty 0.5 1.2",
}
#: Job -> (profile, jobs that it waits for): a small genome pipeline.
JOBS: dict[str, tuple[str, tuple[str, ...]]] = {
    "fetch-reads": ("demo-transfer", ()),
    "fetch-reference": ("demo-transfer", ()),
    "unpack-reads": ("demo-stream", ("fetch-reads",)),
    "index-reference": ("demo-short", ("fetch-reference",)),
    "quality-report": ("demo-checks", ("unpack-reads",)),
    "align-1": ("demo-long", ("unpack-reads", "index-reference")),
    "align-2": ("demo-long", ("unpack-reads", "index-reference")),
    "align-3": ("demo-long", ("unpack-reads", "index-reference")),
    "align-4": ("demo-long", ("unpack-reads", "index-reference")),
    "sort-12": ("demo-stream", ("align-1", "align-2")),
    "sort-34": ("demo-stream", ("align-3", "align-4")),
    "coverage": ("demo-stream", ("sort-12", "sort-34")),
    "call-variants": ("demo-long", ("sort-12", "sort-34")),
    "annotate": ("demo-short", ("call-variants",)),
    "publish": ("demo-transfer", ("annotate", "coverage", "quality-report")),
}


@dataclass(frozen=True, slots=True)
class DemoCpus:
    """The one or two CPUs of the demo; bytes/s of one stream, and of one on each CPU together; bytes for each CPU."""

    cpus: tuple[int, ...]
    one_stream: float
    all_streams: float
    memory: float


def write_demo(directory: Path, *, force: bool = False, machine: DemoCpus | None = None) -> list[str]:
    """Write the demo into `directory` and return the names of its files.

    Args:
        directory: created if absent.
        force: also overwrite changed files.
        machine: the CPUs to use; None = measure this machine (0.6 s).

    Raises:
        ConfigError: a file there was changed or is not ours, or the folder is not trusted.
        PilotfishError: the programs do not run here.
    """
    try:
        make_folder(directory)
        if not force:
            _refuse_changed(directory)
        work = directory / "work.py"
        write_whole(work, _work_text()).chmod(0o700)
        texts = _texts(machine or calibrate(work))
        for name, text in texts.items():
            write_whole(directory / name, text)
        hashes = {name: _hash(directory / name) for name in FILES}
        write_whole(directory / MANIFEST, json.dumps(hashes, indent=2) + "\n")
    except OSError as problem:
        raise ConfigError(str(problem.filename or directory), "", f"cannot be written: {problem.strerror}") from None
    return list(FILES)


def in_demo(path: Path) -> bool:
    """Return whether a file lies in a folder that `write_demo` wrote."""
    return (path.parent / MANIFEST).is_file()


def calibrate(work: Path) -> DemoCpus:
    """Measure the bandwidth of one stream here, and of streams on all of the demo's CPUs together."""
    cpus = choose_cpus()
    alone = _streams(work, cpus[:1])
    together = max(alone, _streams(work, cpus)) if len(cpus) > 1 else alone
    memory = usable_memory() / len(cpus)
    return DemoCpus(cpus, alone, together, memory)


def choose_cpus() -> tuple[int, ...]:
    """Return two CPUs that we may use, on different cores if possible; one if there is only one."""
    cpus = usable_cpus()
    other = [cpu for cpu in cpus[1:] if _core(cpu) != _core(cpus[0])] or cpus[1:]
    return (cpus[0], *other[:1])


def _core(cpu: int) -> tuple[str, str]:
    """Return the processor and core of a CPU; the CPU itself if the kernel does not show them."""
    topology = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology")
    try:
        return (topology / "physical_package_id").read_text(), (topology / "core_id").read_text()
    except OSError:
        return "", str(cpu)


def _streams(work: Path, cpus: tuple[int, ...]) -> float:
    before = os.sched_getaffinity(0)
    argv = [sys.executable, "-IS", str(work), "bandwidth", str(CALIBRATION_S)]
    children = []
    try:
        for cpu in cpus:
            os.sched_setaffinity(0, {cpu})
            children.append(subprocess.Popen(argv, stdout=subprocess.PIPE, text=True))
    finally:
        os.sched_setaffinity(0, before)
        answers = [child.communicate()[0] for child in children]
    try:
        return sum(float(answer) for answer in answers)
    except ValueError:
        raise PilotfishError(f"{work}: cannot measure the memory bandwidth of this machine") from None


def _work_text() -> str:
    """Return the programs' source, with an interpreter that exists in the first line."""
    text = Path(__file__).with_name("demo_work.py").read_text(encoding="utf-8")
    usable = " " not in sys.executable and len(sys.executable) < LONGEST_SHEBANG
    return f"#!{sys.executable} -IS\n{text}" if usable else f"#!/usr/bin/env python3\n{text}"


def _texts(machine: DemoCpus) -> dict[str, str]:
    gigabytes = f"{machine.one_stream * STREAM_S / 1e9:.1f}"
    programs = {name: work.format(gigabytes=gigabytes) for name, work in PROGRAMS.items()}
    rate = format_size(machine.one_stream, rate=True)
    return dict(zip(FILES[1:], (_cluster(machine), _workflow(programs), _script(programs, rate)), strict=True))


def _cluster(machine: DemoCpus) -> str:
    names = local_node_names(platform.node(), [(cpu,) for cpu in machine.cpus])
    nodes = "".join(f'  - {{names: {name}, type: one-cpu, cpus: "{cpu}", memory_domain: here}}\n'
                    for name, cpu in zip(names, machine.cpus, strict=True))  # fmt: skip
    description = "Two nodes, each one CPU" if len(machine.cpus) > 1 else "One node, the only usable CPU"
    return f"""\
# {description} of this machine. They share the memory; its bandwidth was measured on {date.today()}.
schema: pilotfish/cluster/v1
name: here
node_types:
  one-cpu:
    cores: 1
    memory: {format_size(machine.memory)}
    memory_bandwidth: {format_size(machine.all_streams, rate=True)}
nodes:
{nodes}oversubscription: 2.0   # two threads may share a CPU
"""


def _workflow(programs: dict[str, str]) -> str:
    jobs = ""
    for name, (profile, after) in JOBS.items():
        jobs += f"  {name}:\n"
        if after:
            jobs += f"    after: [{', '.join(after)}]\n"
        words = ", ".join(f'"{word}"' if word[0].isdigit() else word for word in programs[profile].split())
        jobs += f"    profile: {profile}\n    command: [./work.py, {words}]\n"
    return f"""\
# Real programs of about a second each: they compute, stream through memory, or sleep.
# measure.sh measures their profiles.
schema: pilotfish/workflow/v1
name: demo
jobs:
{jobs}"""


def _script(programs: dict[str, str], rate: str) -> str:
    lines = []
    for name, work in programs.items():
        option = f" --bandwidth {rate}" if work.startswith("stream") else ""
        lines.append(f'"$pilotfish" profile run --name {name}{option} -- ./work.py {work}\n')
    return f"""\
#!/bin/sh
# Measures the profiles of the demo's programs, about a second each. The bandwidth of `stream` was measured when
# this file was written, because no counter of memory traffic is required.
set -e
cd "$(dirname "$0")"
pilotfish=${{PILOTFISH:-pilotfish}}
{"".join(lines)}"""


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _refuse_changed(directory: Path) -> None:
    """Raise ConfigError for the first existing file that is not as we wrote it."""
    try:
        hashes = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        hashes = {}
    checksums = hashes if isinstance(hashes, dict) else {}
    for name in FILES:
        path = directory / name
        if path.exists() and checksums.get(name) != _hash(path):
            raise ConfigError(str(path), "", "was changed, or is not ours", "another folder, or --force to overwrite")
