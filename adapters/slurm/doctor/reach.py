"""Whether Slurm can be asked at all: its commands, its controller, who vouches for us, its clock, its version.

Rule: pure; a problem here means that nothing else can be known.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...findings import NOTE, OK, PROBLEM, WARNING, Finding
from .asked import Asked

#: releases between which what the adapter relies on was seen to work, or is documented
OLDEST, NEWEST = (20, 11), (25, 11)
#: munge takes no credential that is older or newer than this, seconds
TRUSTED_S = 300.0


def findings(asked: Asked) -> Iterator[Finding]:
    """In the order in which they would have to be mended."""
    if error := asked.errors.get("version"):
        yield Finding(PROBLEM, "commands", str(error), ("apt-get install slurm-client",))
        return
    if error := asked.errors.get("config"):
        yield _away(str(error))
        return
    release = ".".join(f"{part:02d}" for part in asked.controller)
    yield Finding(OK, "controller", f"slurmctld {release} answers in {1e3 * asked.answer_s:.0f} ms")
    if asked.client != asked.controller:
        mine = ".".join(f"{part:02d}" for part in asked.client)
        yield Finding(NOTE, "versions", f"the commands here are {mine}; Slurm's own rule is that they may be older")
    if not OLDEST <= asked.controller <= NEWEST:
        yield Finding(WARNING, "versions", f"{release} is outside what is known, 20.11 to 25.11: watch a dry run")
    if abs(asked.ahead_s) > TRUSTED_S / 2:
        yield Finding(WARNING, "clock", f"the controller's clock is {asked.ahead_s:+.0f} s from this machine's; "
                      f"beyond {TRUSTED_S:.0f} s munge takes nobody's word", ("timedatectl set-ntp true",))  # fmt: skip
    elif abs(asked.ahead_s) > 2.0:
        yield Finding(NOTE, "clock", f"the controller's clock is {asked.ahead_s:+.0f} s from this machine's; "
                      "pilotfish goes by the controller's")  # fmt: skip
    else:
        yield Finding(OK, "clock", "this machine's and the controller's agree")
    for name in ("time", "partitions", "nodes", "jobs"):
        if error := asked.errors.get(name):
            yield Finding(PROBLEM, name, str(error))


def _away(said: str) -> Finding:
    if "unge" in said:
        return Finding(PROBLEM, "munge", f"nobody vouches for us: {said}", ("systemctl status munge",))
    return Finding(PROBLEM, "controller", said, ("scontrol ping", "systemctl status slurmctld"))
