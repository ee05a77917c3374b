"""A Slurm whose controller asks job_submit.lua about every job that is submitted."""

from __future__ import annotations

import time
from pathlib import Path

from slurm_cluster import PLAIN, SlurmCluster

import pilotfish

SCRIPT = Path(pilotfish.__file__).resolve().parent / "docs" / "slurm" / "job_submit.lua"
PLUGIN = "JobSubmitPlugins=lua\n"


def missing() -> str:
    """Why the plugin cannot be had here, or ""."""
    found = [*Path("/usr/lib").glob("*/slurm*/job_submit_lua.so")]
    return "" if found else "not installed: job_submit_lua.so (package slurm-wlm-basic-plugins)"


class LuaSlurm(SlurmCluster):
    """As shipped, but for the partition `half`, which is handed over."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, nodes=2, extra=PLAIN + PLUGIN)
        self.script = self.config.with_name("job_submit.lua")
        self.served, self.unheld = path / "shared" / "heartbeat", path / "shared" / "unheld"
        self.asked = path / "shared" / "asked"

    def install(self, *changes: tuple[str, str]) -> None:
        """Put the script in place, with some of its text changed, such that the controller reads it again."""
        text = SCRIPT.read_text()
        paths = [("/run/pilotfish/heartbeat", str(self.served)), ("/run/pilotfish/unheld", str(self.unheld))]
        paths.append(("/run/pilotfish-asked/job", str(self.asked)))
        for old, new in (("PARTITIONS = {}", "PARTITIONS = {half = true}"), *paths, *changes):
            assert old in text, old
            text = text.replace(old, new, 1)
        if not self.script.exists() or self.script.read_text() != text:
            time.sleep(1.1)  # it tells a new script by whole seconds
            self.script.write_text(text)

    def _lay_out(self) -> None:
        self.script.parent.mkdir(parents=True, exist_ok=True)
        self.install()
        super()._lay_out()
