"""Start-up time, idle CPU time and memory of the daemon.

Rule: the installed service on the local adapter with its default cycle; it is ready when /readyz returns 200.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import psutil

from pilotfish.benchmarks.show import heading, number, table

PATIENCE_S = 30.0


def write_config(folder: Path, port: int) -> Path:
    """Write a configuration with one node on one CPU of this machine, and return its path."""
    (folder / "cluster.yaml").write_text(
        "schema: pilotfish/cluster/v1\nname: here\n"
        "node_types: {t: {cores: 1, memory: 1GiB, memory_bandwidth: 1GB/s}}\n"
        f"nodes: [{{names: 'a', type: t, cpus: '{min(os.sched_getaffinity(0))}'}}]\n"
    )
    config = folder / "pilotfish.yaml"
    config.write_text(
        "schema: pilotfish/daemon/v1\ncluster: cluster.yaml\nstate_dir: state\nprofiles: profiles.sqlite\n"
        "access: {root: true}\n"
        f"socket: {{path: '{folder}/s'}}\nmetrics: {{port: {port}}}\n"
        "adapter: {name: local, options: {cgroups: false}}\n"
    )
    return config


def ready(port: int) -> bool:
    """Return whether the daemon reports that it is ready."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=1) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def measure(quick: bool) -> None:
    """Print the table."""
    heading("Daemon; targets: idle CPU 0.5 % of a core, 200 MB, start-up 2 s")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    watch_s = 10.0 if quick else 30.0
    with tempfile.TemporaryDirectory(prefix="bench") as name:
        folder = Path(name)
        command = [str(Path(sys.executable).with_name("pilotfish")), "daemon", "--config"]
        with (folder / "log").open("w") as log:
            began = time.perf_counter()
            process = subprocess.Popen([*command, write_config(folder, port)], stdout=log, stderr=log)
            try:
                while not ready(port) and time.perf_counter() - began < PATIENCE_S and process.poll() is None:
                    time.sleep(0.01)
                started = time.perf_counter() - began
                if process.poll() is not None or started >= PATIENCE_S:
                    print("the daemon did not start:\n" + (folder / "log").read_text())
                    return
                time.sleep(2.0)
                daemon = psutil.Process(process.pid)
                before, watched = daemon.cpu_times(), time.perf_counter()
                time.sleep(watch_s)
                after, watched = daemon.cpu_times(), time.perf_counter() - watched
                busy = after.user + after.system - before.user - before.system
                memory = daemon.memory_info().rss / 1e6
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(PATIENCE_S)
    table(
        ("ready after s", "idle CPU % of a core", "RSS MB", "watched s"),
        [(number(started), number(100 * busy / watched), number(memory), number(watched))],
    )
