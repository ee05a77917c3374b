"""Walk docs/guides/first-minutes.md word for word: from a bare Debian with a running Slurm to shadow mode with alerts.

    python tests/real/systemd/first_minutes_walk.py FOLDER    root; FOLDER/packages has the deb, as `make test-packages` makes it

The fresh Debian has Slurm, slurmdbd and MariaDB as its own units, and the files that `apt install prometheus` downloads; it
reaches no network. Prints each command with its time; fails if one fails, if all take longer than ten minutes, if the
service takes longer than one to start, or if less than half of the dashboards finds data. Nothing on this machine is changed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
if __name__ == "__main__":
    sys.path[:0] = [str(HERE.parents[2]), str(HERE.parents[1]), str(HERE.parent), str(HERE)]

import guardian
from guide_walk import typed_lines
from machine import ROOT, Machine
from waiting import look_until

GUIDE = ROOT / "docs/guides/first-minutes.md"
PACKAGES = (
    "systemd,systemd-sysv,dbus,python3,procps,passwd,iproute2,apt,ca-certificates,slurmctld,slurmd,slurmdbd,slurm-client,"
    "munge,mariadb-server,slurm-wlm-basic-plugins,slurm-wlm-mysql-plugin"
)
PATIENCE_S, SETTING_S, ALL_S, START_S = 900.0, 120.0, 600.0, 60.0
#: Seconds after which rates are known.
RATES_S = 40.0
SLURM = """ClusterName=bare
SlurmctldHost={host}(127.0.0.1)
SlurmUser=slurm
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=1024 State=UNKNOWN
PartitionName=batch Nodes=ALL Default=YES MaxTime=1-0 DefaultTime=10 DefMemPerCPU=100 State=UP
"""
DATABASE = """AuthType=auth/munge
DbdHost={host}
DbdAddr=127.0.0.1
SlurmUser=slurm
LogFile=/var/log/slurm/slurmdbd.log
PidFile=/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageUser=slurm
StoragePass=bare
StorageLoc=slurm_acct_db
"""
#: What a site has before it hears of pilotfish.
SETTING = """set -e
ip address add 192.0.2.1/32 dev lo  # without a further address, Slurm resolves no name
echo "127.0.0.1 localhost $(uname -n)" >/etc/hosts
install -d -o slurm -g slurm /var/lib/slurm/slurmctld /var/lib/slurm/slurmd /var/log/slurm
chown slurm: /etc/slurm/slurmdbd.conf && chmod 600 /etc/slurm/slurmdbd.conf
systemctl start mariadb munge
mariadb -e "CREATE DATABASE slurm_acct_db; GRANT ALL ON slurm_acct_db.* TO slurm@localhost IDENTIFIED BY 'bare'"
systemctl start slurmdbd
until sacctmgr -n show cluster >/dev/null 2>&1; do sleep 0.2; done
sacctmgr -i add cluster bare
sacctmgr -i add account research
sacctmgr -i add user root account=research
systemctl start slurmctld slurmd
until sinfo -h -t idle -o %n | grep -q .; do sleep 0.2; done
sbatch --wrap 'sleep 30'
sbatch --wrap 'sleep 600' --exclusive
sbatch --wrap 'sleep 1' --exclusive
"""
#: Asks Prometheus for what its first argument names.
QUERY = (
    "import sys, urllib.request as r; print(r.urlopen('http://127.0.0.1:9090/api/v1/' + sys.argv[1]).read().decode())"
)
#: Asks for the expressions of all panels; prints how many there are, and how many have data.
PANELS = """
import glob, json, urllib.parse, urllib.request
expressions = [
    target["expr"].replace("$__rate_interval", "2m").replace("$cluster", "bare").replace("$instance", ".*")
    for file in glob.glob("/opt/pilotfish/monitoring/*.dashboard.json")
    for panel in json.load(open(file))["panels"] for target in panel.get("targets", ())
]
def result(expression):
    words = urllib.parse.urlencode({"query": expression})
    return json.load(urllib.request.urlopen("http://127.0.0.1:9090/api/v1/query?" + words))["data"]["result"]
print(len(expressions), sum(bool(result(expression)) for expression in expressions))
"""


def make_root(folder: Path) -> Path:
    """Return the root file system of a fresh Debian with Slurm."""
    if not (folder / "usr").exists():
        keep = 'chroot "$1" apt-get install --download-only --yes --no-install-recommends prometheus'
        words = (
            "mmdebstrap",
            "--variant=minbase",
            "--skip=cleanup/apt",
            f"--include={PACKAGES}",
            f"--customize-hook={keep}",
        )
        subprocess.run([*words, "bookworm", folder], check=True, stdout=subprocess.DEVNULL)
    return folder


def type_all(machine: Machine) -> dict[str, float]:
    """Type each command of the guide; return the seconds of each."""
    seconds: dict[str, float] = {}
    for _, command in typed_lines(GUIDE.read_text(encoding="utf-8")):
        began = time.monotonic()
        inside = (
            f"export DEBIAN_FRONTEND=noninteractive; cd /packages; {command.replace('apt install', 'apt install -y')}"
        )
        result = machine.process("sh", "-c", inside, patience_s=PATIENCE_S)
        seconds[command] = time.monotonic() - began
        output = f"{result.stdout}{result.stderr}".strip()
        print(f"{seconds[command]:6.1f} s  # {command}", flush=True)
        if command.startswith(("pilotfish", "promtool")) and output:
            print("          " + output.replace("\n", "\n          "), flush=True)
        assert result.returncode == 0 or "doctor --adapter" in command, output[-3000:]
    return seconds


def ask(machine: Machine, question: str) -> dict[str, Any]:
    """Return what Prometheus answers; {}: it does not."""
    result = machine.process("python3", "-c", QUERY, question)
    return dict(json.loads(result.stdout)["data"]) if result.returncode == 0 else {}


def is_alive(machine: Machine) -> bool:
    """Return whether Prometheus reads the daemon and has its rules, and the pages answer."""
    samples = ask(machine, "query?query=up%7Bjob%3D%22pilotfish%22%7D").get("result", [])
    pages = machine.process("python3", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:9837/healthz')")
    has_rules = bool(ask(machine, "rules").get("groups"))
    return [one["value"][1] for one in samples] == ["1"] and has_rules and pages.returncode == 0


def main(folder: Path) -> int:
    """Make what is missing, and walk."""
    guardian.start()
    root = make_root(folder / "slurm-root")
    (package,) = sorted((folder / "packages").glob("pilotfish_1.0.0_*.deb"))
    print(f"{package.name}: {package.stat().st_size / 1e6:.1f} MB")
    place = Path(tempfile.mkdtemp(dir=guardian.folder()))
    machine = Machine(place, bare=True, seen={package.parent: "/packages"}, lower=root)
    try:
        host, cpus = machine.run("uname", "-n"), machine.run("nproc")
        machine.write("/etc/slurm/slurm.conf", SLURM.format(host=host, cpus=cpus))
        machine.write("/etc/slurm/slurmdbd.conf", DATABASE.format(host=host))
        machine.write("/etc/slurm/cgroup.conf", "CgroupPlugin=cgroup/v1\n")
        result = machine.process("sh", "-c", SETTING, patience_s=SETTING_S)
        assert result.returncode == 0, f"{result.stdout}{result.stderr}"
        began = time.monotonic()
        seconds = type_all(machine)
        assert look_until(lambda: is_alive(machine), 120.0), machine.journal("-u", "prometheus", "-u", "pilotfish-web")[
            -20:
        ]
        walk_s = time.monotonic() - began
        start_s = max(value for command, value in seconds.items() if "--now pilotfishd" in command)
        print(
            f"{walk_s:.0f} s from the first command to pages, metrics and rules; {start_s:.1f} s of them the first start"
        )
        time.sleep(RATES_S)
        number, alive = map(int, machine.run("python3", "-c", PANELS).split())
        print(f"{alive} of {number} expressions of the dashboards have data")
        assert walk_s < ALL_S and start_s < START_S and alive > number / 2
    finally:
        machine.down()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
