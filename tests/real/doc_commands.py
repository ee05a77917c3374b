"""The commands of the README and of docs/, and what each needs in order to be run for real.

Rule: the commands are read from the documents. A command that no rule of RULES covers fails the test: add a rule with
what it needs and how it may end. Whatever ends with an error must say so in one clear line.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import pilotfish

ROOT = Path(pilotfish.__file__).resolve().parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
HINT = "pip install 'pilotfish["


@dataclass(frozen=True)
class Rule:
    """How commands that match `pattern` are run.

    Attributes:
        pattern: Searched in the line without its prompt. The first rule that matches counts.
        codes: Exit statuses that are allowed besides 0; the last line of stderr then starts with `pilotfish:`.
        says: What stderr or stdout must have in it when the command does not end with 0.
        skip: Why the line is not run here; it is tested elsewhere.
        once: It measures the machine, so one kind of user is enough.
        daemon: It needs a running daemon.
        shorten: (pattern, replacement): measure for a shorter time, make a shorter trace, or on a free port.
    """

    pattern: str
    codes: tuple[int, ...] = ()
    says: str = ""
    skip: str = ""
    once: bool = False
    daemon: bool = False
    shorten: tuple[str, str] | None = None


ANY_PORT = (r"--metrics-port \d+", "--metrics-port 0")
BRIEFLY = (r"^(pilotfish calibrate)(.*?)(?: --seconds \S+)?((?: .*)?)$", r"\1\2\3 --seconds 0.1 --force")
GRID = (BRIEFLY[0], r"taskset -c 0 \1\2\3 --seconds 0.1")
QUICKLY = ("$", " --settle 0.1")
BRIEF_SEARCH = " --generations 1 --population 4"
#: In order: the first that matches counts.
RULES = (
    Rule(
        r"^pilotfish (backup|restore)\b",
        skip="it needs the state of a service, as in tests/daemon/state/test_backup.py",
    ),
    Rule(
        r"^/opt/pilotfish/bin/pip ",
        skip="it installs a later version; the paths of the page are walked in test_backup.py",
    ),
    Rule(r"^sed -i '[^']*' \w+/slurm\.conf$"),
    Rule(r"^make ", skip="make run and make test run the tests"),
    Rule(r"^(\.|pip|git|python3? -m venv|source) ", skip="it prepares an environment, as `installed` does"),
    Rule(r"^(PYTHONPATH=\S+ )?python ", skip="tests/docs follows the recipes word by word"),
    Rule(r"^PYTHONPATH=", skip="tests/docs follows the recipes word by word"),
    Rule(
        r"^(sacct|sacctmgr|sshare|sprio|sdiag|sbatch|squeue|scontrol|sudo|systemctl|journalctl|man) |^cp /etc/slurm/|^mkdir site ",
        skip="tests/real/slurm types it on a real site",
    ),
    Rule(r"^sh measure\.sh", once=True),
    Rule(r"^(cd|sh|cat|ls|head) "),
    Rule(r"^pilotfish( \S+)* (--help|-h|--version)\b"),
    Rule(r"> */etc/", skip="tests/real/slurm types it on a real site"),
    Rule(r"^pilotfish record .*--adapter", skip="a worker that ran an OAR still sees it, and would record it for days"),
    # Slurm and OAR are not set up here; tests/real/slurm has a real Slurm.
    Rule(r"--adapter (slurm|oar)|/etc/pilotfish|/run/pilotfish|--setup|--undo", codes=(1, 64)),
    Rule(r"^pilotfish daemon\b", daemon=True),
    Rule(r" --watch\b", codes=(130,), daemon=True, shorten=("^", "timeout --preserve-status --signal INT 10 ")),
    Rule(r"^pilotfish explain\b", codes=(1,), daemon=True),  # 1: the document does not submit the workflow itself
    Rule(r"^pilotfish (submit|status|nodes|accuracy)\b", daemon=True),
    Rule(r"^pilotfish bundle\b", skip="tests/cli/service/test_bundle.py collects, with a configuration"),
    Rule(r"^pilotfish web\b", skip="tests/web/test_browser.py looks at the pages of a daemon"),
    Rule(r"^pilotfish web-token\b", skip="tests/cli/service/test_web.py makes one, and uses it"),
    Rule(r"^pilotfish top\b", skip="tests/cli/terminal looks at its screens"),
    Rule(r"^pilotfish cancel\b", codes=(1,), daemon=True),
    Rule(r"^pilotfish reap\b", codes=(1,)),
    Rule(r"^pilotfish doctor --adapter slurm\b", codes=(1,)),
    Rule(r"^pilotfish doctor\b", codes=(0, 1)),
    Rule(r"^pilotfish calibrate --switching", once=True, shorten=QUICKLY),
    Rule(r"^pilotfish calibrate --compare \S+\.json", codes=(1,)),  # 1: something changed
    Rule(r"^pilotfish calibrate --compare", codes=(1,), once=True, shorten=BRIEFLY),
    Rule(r"^pilotfish calibrate .*--grid\b", once=True, shorten=GRID),
    Rule(r"^pilotfish calibrate\b", once=True, shorten=BRIEFLY),
    Rule(r"^pilotfish profile corun\b", once=True, shorten=("corun", "corun --rounds 1")),
    Rule(r"^pilotfish profile (run|pairs)\b", once=True),
    Rule(r"--source likwid", codes=(1,)),  # 1: the file of that tool is not here
    Rule(r"^pilotfish run\b", shorten=ANY_PORT),
    Rule(r"^pilotfish simulate .*--decision-time", shorten=("$", " --select until=50000")),
    Rule(r"^pilotfish simulate .*allocation=contiguous", shorten=("$", " --select until=500000")),
    Rule(r"^pilotfish (plot|sweep)\b"),
    Rule(r"^pilotfish batsim .* pybatsim:", skip="it needs pybatsim, as in tests/real/test_batsim_components.py"),
    Rule(r"^pilotfish edc\b", skip="it waits for a Batsim, as in tests/adapters/batsim"),
    Rule(r"^pilotfish record\b", skip="it needs a record, as in tests/cli/service/test_record.py"),
    Rule(r"^pilotfish site record\b", skip="it needs a running Slurm, as in tests/real/slurm/test_slurm_record.py"),
    Rule(r"^pilotfish simulate .*-p slurm:site\b", skip="it needs the record of a real site"),
    Rule(
        r"^pilotfish whatif archer2\b",
        skip="it takes minutes; the same options run on a small site in tests/cli/whatif",
    ),
    Rule(
        r"^pilotfish generate site archer2\b",
        skip="it only makes the site of a command that takes minutes; another model is made on another page",
    ),
    Rule(r"^pilotfish score\b", skip="it needs the record of a real site, as in tests/real/slurm/test_slurm_score.py"),
    Rule(r"^pilotfish whatif site\b", skip="it needs the record of a real site, as in tests/simulate/slurm"),
    Rule(r"^pilotfish whatif \w+ --(set|scenario)\b", shorten=("$", " --repeat 1")),
    Rule(r"^pilotfish generate site university\b", shorten=(r"--days \d+", "--days 2")),
    Rule(r"^pilotfish train squared\b", shorten=("$", " --epochs 1"), once=True),
    Rule(r"^pilotfish evaluate --as thesis\b", once=True),
    Rule(r"^pilotfish generate site gpu\b", shorten=(r"--jobs \d+", "--jobs 600")),
    Rule(r"^pilotfish train rules\b", shorten=("--updates 20", "--updates 10 --seeds 1")),
    Rule(r"^pilotfish train\b", shorten=("$", BRIEF_SEARCH)),
    Rule(r"^pilotfish evaluate mine\b", shorten=("$", " --copies 2")),
    Rule(r"^pilotfish (evaluate|model)\b"),
    Rule(r"^pilotfish generate thesis\b", shorten=(r"--jobs \d+", "--jobs 200")),
    Rule(
        r"^pilotfish (demo|probes|profile|plan|simulate|replay|batsim|whatif|generate|convert|policies|predict|cluster|warm)\b"
    ),
)


@dataclass(frozen=True)
class Line:
    """A command of a document; each block starts in the folder of its own."""

    document: str
    block: int
    text: str

    @property
    def rule(self) -> Rule | None:
        """The rule for it."""
        return next((rule for rule in RULES if re.search(rule.pattern, self.text)), None)

    @property
    def typed(self) -> str:
        """What is run."""
        rule = self.rule
        bare = re.sub(r"\s+#.*", "", self.text)
        return re.sub(rule.shorten[0], rule.shorten[1], bare, count=1) if rule and rule.shorten else bare


def blocks(path: Path) -> list[tuple[str, str]]:
    """Return (language, text) of each fenced block of a document."""
    return re.findall(
        r"^```\{?(?:code-block\} *)?(\w+)\}?[^\n]*\n(.*?)^```$", path.read_text(encoding="utf-8"), re.M | re.S
    )


def lines(path: Path) -> list[Line]:
    """Return the commands of a document's console blocks; output, and what root does to a site, are left out."""
    found, name = [], path.relative_to(ROOT).as_posix()
    for number, (language, text) in enumerate(blocks(path)):
        if language == "console":
            joined = re.sub(r" *\\\n(?:> )? *", " ", text)
            typed = [line[2:] for line in joined.splitlines() if re.match(r"\$ |# pilotfish ", line)]
            found += [Line(name, number, line) for line in typed]
    return found


#: Documents that have commands. tests/docs follows those of docs/how-to.
WALKS = {
    path.relative_to(ROOT).as_posix(): found
    for path in DOCUMENTS
    if "how-to" not in path.parts and (found := lines(path))
}


def runs(line: Line) -> bool:
    """Whether a line is typed by all kinds of users."""
    return line.rule is not None and not line.rule.skip and not line.rule.once and "--dry-run" not in line.text


def first_uses() -> dict[str, list[Line]]:
    """Return the first line that does something of each command, as `profile list`, and what its block needs for it."""
    found: dict[str, list[Line]] = {}
    used: set[str] = set()
    for document, walk in WALKS.items():
        new = []
        for line in walk:
            command = re.match(r"pilotfish [a-z]+(?: [a-z]+(?= |$))?", line.text)
            if not runs(line):
                continue
            if command and command[0] in used:
                continue
            used |= {command[0]} if command else set()
            new.append(line)
        blocks = {line.block for line in new if line.text.startswith("pilotfish ")}
        found[document] = [
            line for line in walk if line.block in blocks and (line in new or (" -o " in line.text and runs(line)))
        ]
    return {document: lines for document, lines in found.items() if lines}


#: Files whose content is the first YAML block that has those lines after `schema: `, in the document or else in the first that has one.
SCHEMAS = {
    "dag.yaml": "pilotfish/workflow/v1",
    "lab.yaml": "pilotfish/cluster/v1",
    "small.yaml": "pilotfish/cluster/v1\nname: small",
    "service.yaml": "pilotfish/daemon/v1\ncluster: small.yaml",
    "study.yaml": "pilotfish/sweep/v1",
}


def examples(document: str) -> dict[str, str]:
    """Return name and content of the files that a document shows, as YAML or with the words `save this as`."""
    saved = re.findall(r"save this as `(\S+)`:\n\n```json\n(.*?)^```$", (ROOT / document).read_text(), re.M | re.S)
    texts = [text for language, text in blocks(ROOT / document) if language == "yaml"]
    shown = {name: [text for text in texts if f"schema: {schema}" in text] for name, schema in SCHEMAS.items()}
    return {name: found[0] for name, found in shown.items() if found} | dict(saved)


DAG = """\
schema: pilotfish/workflow/v1
name: dag-1
jobs:
  prepare: {command: [./prepare.sh, input.dat], profile: {threads: 2, service_demand: 12.5}}
  align: {after: [prepare], command: ./align.sh, profile: align, memory: 2GiB, walltime: "00:10:00"}
"""
LAB = """\
schema: pilotfish/cluster/v1
name: lab
node_types:
  xeon56: {sockets: 2, cores: 56, memory: 256GiB, memory_bandwidth: 80GB/s, power: {idle: 95, per_core: 1.7}}
nodes: [{names: "s[1-4]", type: xeon56}]
"""
STUDY = """\
schema: pilotfish/sweep/v1
workloads: [trace.swf.gz]
policies: [conservative, {policy: easy, order: [fcfs, sjf]}]
"""
CPUS = sorted(os.sched_getaffinity(0))
HERE = f"""\
schema: pilotfish/cluster/v1
name: here
node_types: {{here: {{cores: {len(CPUS)}, memory: 4GiB, memory_bandwidth: 10GB/s}}}}
nodes: [{{names: here, type: here, cpus: "{",".join(map(str, CPUS))}"}}]
oversubscription: 2.0
"""
SERVICE = """\
schema: pilotfish/daemon/v1
cluster: here.yaml
cycle_seconds: 0.2
access: {root: true}
metrics: {port: 0}
adapter: {name: local, options: {cgroups: false}}
"""
OURS = """\
from pilotfish.api import Start

class Easy:
    def __init__(self, half_life: float = 60) -> None:
        self.half_life = half_life

    def decide(self, now):
        free = now.free
        for job in now.waiting:
            if job.size > free:
                return
            free -= job.size
            yield Start(job)

Fair = Easy
"""
SACCT = """\
JobID|JobName|State|Start|ElapsedRaw|TotalCPU|NCPUS|NNodes|MaxRSS|ConsumedEnergyRaw
101|filter|COMPLETED|2026-02-03T04:05:06|100|06:20.500|4|1||30000
101.0|filter|COMPLETED|2026-02-03T04:05:06|100|06:20|4|1|2M|30000
"""
WORK = "#!/bin/sh\ni=0\nwhile [ $i -lt 200000 ]; do i=$((i + 1)); done\n"
DONE = "#!/bin/sh\nexit 0\n"
#: Files that the documents name but do not make.
FILES = {
    "dag.yaml": DAG,
    "lab.yaml": LAB,
    "cluster.yaml": HERE,
    "workflow.yaml": DAG,
    "study.yaml": STUDY,
    "here.yaml": HERE,
    "pilotfish.yaml": SERVICE,
    "mine.py": OURS,
    "my/__init__.py": "",
    "my/policies.py": OURS,
    "jobs.txt": SACCT,
    "input.dat": "x\n",
    "reads.fastq": "x\n",
    "align.sh": WORK,
    "prepare.sh": DONE,
    "off": "#!/bin/sh\ntouch off.mark\n",
    "on": "#!/bin/sh\nrm -f off.mark\n",
    "up": "#!/bin/sh\n! test -e off.mark\n",
    "watts": "#!/bin/sh\necho 42\n",
    "job.sh": DONE,
}
#: Commands that make the other files which the documents name, from those above.
MADE = (
    "pilotfish generate lublin --jobs 800 --procs 256 --load 0.8 -o trace.swf.gz",
    "pilotfish generate thesis --jobs 200 -o thesis.swf",
    "pilotfish generate lublin --jobs 400 --procs 256 --load 0.9 -o year.swf.gz",
    "pilotfish train linear year.swf.gz --seeds 1 --generations 1 --population 4 -o mine.pfmodel.json",
    "pilotfish calibrate --seconds 0.1 --force --out node.yaml --record calibrations",
    "cp calibrations/* monday.json",
    "cp monday.json friday.json",
    "pilotfish simulate trace.swf.gz --out run",
    "pilotfish simulate trace.swf.gz -p easy+opportunistic:t_idle=300 --out saving",
)
